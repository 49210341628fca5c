"""A sample of the suite: random calls of some ops of each family, drawn by a seed."""

import os

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
pytest.importorskip("tensorflow")

from tests.suites.tensorflow.checks import EQUAL, INVALID, REFUSED, checked
from tests.suites.tensorflow.draws import drawn

pytestmark = pytest.mark.tensorflow

ACCEPTED = 3
"""Calls of an op that TensorFlow must accept."""


@pytest.mark.parametrize(
    "op",
    [
        *("AddV2", "Atan2", "Cast", "ClipByValue", "Cumsum", "FloorMod", "Identity", "Log1p", "SquaredDifference"),
        *(
            "ResourceApplyAdaMax",
            "ResourceApplyCenteredRMSProp",
            "ResourceApplyFtrl",
            "ResourceApplyRMSProp",
            "SelectV2",
            "Sum",
            "TanhGrad",
        ),
    ],
)
def test_random_calls(op: str) -> None:
    verdicts = []
    for seed in range(60):
        call = drawn(op, seed)
        verdict = checked(call)
        assert verdict.kind in (EQUAL, REFUSED, INVALID), f"{call}: {verdict}"
        verdicts.append(verdict.kind)
        if len(verdicts) - verdicts.count(INVALID) == ACCEPTED:
            break
    assert EQUAL in verdicts
