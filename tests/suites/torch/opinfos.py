"""The op database as tests, for `python -m tests.suites.torch`, which says by the environment which of its tables."""

from __future__ import annotations

import json
import os

import pytest
import torch

from tests.suites.torch.comparison import Case, cases, check

SETTINGS = json.loads(os.environ["TRIVIUM_TORCH_SUITE"])
"""`kind`: of table. `samples`: how many for each op. `options`: of the backend."""

torch.set_num_threads(1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases(SETTINGS["kind"]), ids=lambda case: case.name)
def test_op(case: Case) -> None:
    check(case, SETTINGS["samples"], SETTINGS["options"])
