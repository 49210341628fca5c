"""Arithmetic and logic on each element: what its constraints refuse."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.ir.ops.constraints import breaks, value
from tests.ir.ops.records import body
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.declare import OPS, Op
from trivium.ir.errors import VerificationError
from trivium.ir.ops import elementwise
from trivium.ir.types import F32, F64, I1, I32, INDEX, TOKEN, UI8, Type, tensor

ONE = sorted((op for op in OPS.values() if issubclass(op, elementwise.Unary)), key=lambda op: op.NAME)
TWO = sorted((op for op in OPS.values() if issubclass(op, elementwise.Binary)), key=lambda op: op.NAME)


def element_of(op: type[Op]) -> Type:
    """One of the element types that an op takes."""
    for element in (F32, I32):
        with suppress(VerificationError):
            op(*[value(2, of=element) for _ in op.OPERANDS])
            return element
    raise AssertionError(op)


@pytest.mark.parametrize("op", ONE)
def test_every_unary_op(op: type[Op]) -> None:
    with breaks("I1"):
        op(value(2, of=INDEX))
    element = element_of(op)
    with breaks("C1"):
        op(value(2, of=element), result=tensor(3, of=element))


@pytest.mark.parametrize("op", TWO)
def test_every_binary_op(op: type[Op]) -> None:
    element = element_of(op)
    with breaks("I1"):
        op(value(2, of=INDEX), value(2, of=element), result=tensor(2, of=element))
    with breaks("I2"):
        op(value(2, of=element), value(2, of=INDEX), result=tensor(2, of=element))
    with breaks("C1"):
        op(value(2, of=element), value(3, of=element), result=tensor(2, of=element))


def test_unary_c1():
    with breaks("C1"):
        ops.Negate(value(2), result=tensor(3))


def test_numeric_unary_i1():
    with breaks("I1"):
        ops.Negate(value(2, of=I1))


def test_signed_unary_i1():
    with breaks("I1"):
        ops.Sign(value(2, of=UI8))


def test_rounding_unary_i1():
    with breaks("I1"):
        ops.Floor(value(2, of=I32))


def test_integer_unary_i1():
    with breaks("I1"):
        ops.Popcnt(value(2))


def test_transcendental_i1():
    with breaks("I1"):
        ops.Exponential(value(2, of=I32))


def test_abs_i1():
    with breaks("I1"):
        ops.Abs(value(2, of=UI8))


def test_abs_c1():
    with breaks("C1"):
        ops.Abs(value(2), result=tensor(3))


def test_abs_c2():
    with breaks("C2"):
        ops.Abs(value(2), result=tensor(2, of=F64))


def test_not_i1():
    with breaks("I1"):
        ops.Not(value(2))


def test_binary_i1():
    with breaks("I1"):
        ops.Add(Value(TOKEN), value(2), result=tensor(2))


def test_binary_i2():
    with breaks("I2"):
        ops.Add(value(2), Value(TOKEN), result=tensor(2))


def test_binary_c1():
    with breaks("C1"):
        ops.Add(value(2), value(2, of=F64))
    with breaks("C1"):
        ops.Add(value(2), value(3))


def test_numeric_binary_i1():
    with breaks("I1"):
        ops.Subtract(value(2, of=I1), value(2, of=I1))


def test_numeric_binary_i2():
    with breaks("I2"):
        ops.Subtract(value(2), value(2, of=I1))


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


def test_atan2_i1():
    with breaks("I1"):
        ops.Atan2(value(2, of=I32), value(2, of=I32))


def test_atan2_i2():
    with breaks("I2"):
        ops.Atan2(value(2), value(2, of=I32))


def test_map_c1():
    with breaks("C1"):
        ops.Map([value(2), value(3)], (0,), body(ops.Add, F32, F32)(), result=tensor(2))


def test_map_i1():
    with breaks("I1"):
        ops.Map([Value(TOKEN)], (), body(ops.Negate, F32)())


def test_map_c2():
    with breaks("C2"):
        ops.Map([], (), body(ops.Negate, F32)())
    with breaks("C2"):
        ops.Map([], (), body(ops.Negate, F32)(), result=tensor(2))


def test_map_c3():
    with breaks("C3"):
        ops.Map([value(2, 3)], (1, 0), body(ops.Negate, F32)())


def test_map_c4():
    with breaks("C4"):
        ops.Map([value(2), value(2)], (0,), body(ops.Negate, F32)())


@pytest.mark.parametrize(
    ("numbers", "mode"), [((1.0, 0.0, 0), "DEFAULT"), ((0.0, -1.0, 0), "TOLERANCE"), ((0.0, 0.0, 1), "HIGHEST")]
)
def test_tolerances_belong_to_their_mode(numbers, mode):
    with pytest.raises(VerificationError, match="expected positive ones, and only in mode TOLERANCE"):
        ops.ResultAccuracy(*numbers, ops.ResultAccuracyMode(mode))
