"""Bitwise logic, shifts, and counts of bits: what their constraints refuse."""

from __future__ import annotations

from tests.ir.ops.constraints import breaks, value
from trivium.ir import ops
from trivium.ir.types import I1, I32


def test_integer_unary_i1():
    with breaks("I1"):
        ops.Popcnt(value(2))


def test_not_i1():
    with breaks("I1"):
        ops.Not(value(2))


def test_bitwise_binary_i1():
    with breaks("I1"):
        ops.And(value(2), value(2))


def test_bitwise_binary_i2():
    with breaks("I2"):
        ops.And(value(2, of=I1), value(2))


def test_shift_i1():
    with breaks("I1"):
        ops.ShiftLeft(value(2), value(2, of=I32))


def test_shift_i2():
    with breaks("I2"):
        ops.ShiftLeft(value(2, of=I32), value(2))
