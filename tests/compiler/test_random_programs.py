"""Compiled equals interpreted, on random programs."""

from __future__ import annotations

import pytest

from tests.compiler.lowering.running import expect_same
from tests.compiler.random_programs import random_program


@pytest.mark.parametrize("seed", range(150))
def test_random_program(seed: int) -> None:
    module, arguments = random_program(seed)
    module.verify()
    expect_same(module, arguments)
