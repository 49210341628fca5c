"""Slices at fixed and computed positions: what their constraints refuse."""

from __future__ import annotations

from tests.ir.ops.constraints import breaks, value
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, I32, I64, TOKEN, tensor


def indices(*elements):
    return [value(of=element) for element in elements]


def test_slice_i1():
    with breaks("I1"):
        ops.Slice(Value(TOKEN), (), (), (), result=tensor())


def test_slice_c1():
    with breaks("C1"):
        ops.Slice(value(4), (0,), (2,), (1,), result=tensor(2, of=F64))


def test_slice_c2():
    with breaks("C2"):
        ops.Slice(value(4), (0, 0), (2,), (1,))


def test_slice_c3():
    with breaks("C3"):
        ops.Slice(value(4), (-1,), (2,), (1,))
    with breaks("C3"):
        ops.Slice(value(4), (3,), (2,), (1,))
    with breaks("C3"):
        ops.Slice(value(4), (0,), (5,), (1,))


def test_slice_c4():
    with breaks("C4"):
        ops.Slice(value(4), (0,), (2,), (0,))


def test_slice_c5():
    with breaks("C5"):
        ops.Slice(value(4), (0,), (3,), (2,), result=tensor(1))


def test_dynamic_slice_i1():
    with breaks("I1"):
        ops.DynamicSlice(Value(TOKEN), [], (), result=tensor())


def test_dynamic_slice_i2():
    with breaks("I2"):
        ops.DynamicSlice(value(4), [value()], (2,))
    with breaks("I2"):
        ops.DynamicSlice(value(4), [value(1, of=I32)], (2,))


def test_dynamic_slice_c1():
    with breaks("C1"):
        ops.DynamicSlice(value(4), indices(I32), (2,), result=tensor(2, of=F64))


def test_dynamic_slice_c2():
    with breaks("C2"):
        ops.DynamicSlice(value(4, 4), indices(I32), (2, 2))
    with breaks("C2"):
        ops.DynamicSlice(value(4, 4), indices(I32, I32), (2,))


def test_dynamic_slice_c3():
    with breaks("C3"):
        ops.DynamicSlice(value(4, 4), indices(I32, I64), (2, 2))


def test_dynamic_slice_c4():
    with breaks("C4"):
        ops.DynamicSlice(value(4), indices(I32), (5,))
    with breaks("C4"):
        ops.DynamicSlice(value(4), indices(I32), (-1,))


def test_dynamic_slice_c5():
    with breaks("C5"):
        ops.DynamicSlice(value(4), indices(I32), (2,), result=tensor(3))


def test_dynamic_update_slice_i1():
    with breaks("I1"):
        ops.DynamicUpdateSlice(Value(TOKEN), value(), [])


def test_dynamic_update_slice_i3():
    with breaks("I3"):
        ops.DynamicUpdateSlice(value(4), value(2), [value()])


def test_dynamic_update_slice_c1():
    with breaks("C1"):
        ops.DynamicUpdateSlice(value(4), value(2), indices(I32), result=tensor(5))


def test_dynamic_update_slice_c2():
    with breaks("C2"):
        ops.DynamicUpdateSlice(value(4), value(2, of=F64), indices(I32))


def test_dynamic_update_slice_c3():
    with breaks("C3"):
        ops.DynamicUpdateSlice(value(4), value(2, 1), indices(I32))


def test_dynamic_update_slice_c4():
    with breaks("C4"):
        ops.DynamicUpdateSlice(value(4), value(2), [])


def test_dynamic_update_slice_c5():
    with breaks("C5"):
        ops.DynamicUpdateSlice(value(4, 4), value(2, 2), indices(I32, I64))


def test_dynamic_update_slice_c6():
    with breaks("C6"):
        ops.DynamicUpdateSlice(value(4), value(5), indices(I32))
