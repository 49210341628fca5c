"""What the constraints of all elementwise ops, and those of `map`, refuse."""

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
from trivium.ir.types import F32, F64, I32, INDEX, TOKEN, Type, tensor

ONE = sorted((op for op in OPS.values() if issubclass(op, elementwise.Unary)), key=lambda op: op.NAME)
TWO = sorted((op for op in OPS.values() if issubclass(op, elementwise.Binary)), key=lambda op: op.NAME)


def element_of(op: type[Op]) -> Type:
    """Returns one of the element types that an op takes."""
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
