"""Elementwise arithmetic: what its constraints refuse."""

from __future__ import annotations

from tests.ir.ops.constraints import breaks, value
from trivium.ir import ops
from trivium.ir.types import F64, I1, I32, UI8, tensor


def test_numeric_unary_i1():
    with breaks("I1"):
        ops.Negate(value(2, of=I1))


def test_signed_unary_i1():
    with breaks("I1"):
        ops.Sign(value(2, of=UI8))


def test_rounding_unary_i1():
    with breaks("I1"):
        ops.Floor(value(2, of=I32))


def test_abs_i1():
    with breaks("I1"):
        ops.Abs(value(2, of=UI8))


def test_abs_c1():
    with breaks("C1"):
        ops.Abs(value(2), result=tensor(3))


def test_abs_c2():
    with breaks("C2"):
        ops.Abs(value(2), result=tensor(2, of=F64))


def test_numeric_binary_i1():
    with breaks("I1"):
        ops.Subtract(value(2, of=I1), value(2, of=I1))


def test_numeric_binary_i2():
    with breaks("I2"):
        ops.Subtract(value(2), value(2, of=I1))
