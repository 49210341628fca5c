"""Exponentials, logarithms, roots and angles: what their constraints refuse."""

from __future__ import annotations

import pytest

from tests.ir.ops.constraints import breaks, value
from trivium.ir import ops
from trivium.ir.errors import VerificationError
from trivium.ir.types import I32


def test_transcendental_i1():
    with breaks("I1"):
        ops.Exponential(value(2, of=I32))


def test_atan2_i1():
    with breaks("I1"):
        ops.Atan2(value(2, of=I32), value(2, of=I32))


def test_atan2_i2():
    with breaks("I2"):
        ops.Atan2(value(2), value(2, of=I32))


@pytest.mark.parametrize(
    ("numbers", "mode"), [((1.0, 0.0, 0), "DEFAULT"), ((0.0, -1.0, 0), "TOLERANCE"), ((0.0, 0.0, 1), "HIGHEST")]
)
def test_tolerances_belong_to_their_mode(numbers, mode):
    with pytest.raises(VerificationError, match="expected positive ones, and only in mode TOLERANCE"):
        ops.ResultAccuracy(*numbers, ops.ResultAccuracyMode(mode))
