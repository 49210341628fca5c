"""Constants, and ops that move elements: what their constraints refuse, and what they accept when extents are
unknown."""

from __future__ import annotations

import numpy as np

from tests.ir.ops.constraints import breaks, value
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, F64, I1, INDEX, TOKEN, Bounds, TensorType, tensor


def test_constant_c1():
    with breaks("C1"):
        ops.Constant(np.zeros(2, np.float32), result=tensor(2, of=F64))


def test_constant_o1():
    with breaks("O1"):
        ops.Constant(np.zeros(2, np.float32), result=tensor(None))
    with breaks("O1"):
        ops.Constant(np.zeros(2, np.int64), result=tensor(2, of=INDEX))


def test_iota_o1():
    with breaks("O1"):
        ops.Iota(0, result=tensor(2, of=I1))
    with breaks("O1"):
        ops.Iota(0, result=tensor(None))


def test_iota_c1():
    with breaks("C1"):
        ops.Iota(1, result=tensor(2))
    with breaks("C1"):
        ops.Iota(0, result=tensor())


def test_reshape_i1():
    with breaks("I1"):
        ops.Reshape(Value(TOKEN), result=tensor(2))


def test_reshape_o1():
    with breaks("O1"):
        ops.Reshape(value(2), result=tensor(None))
    with breaks("O1"):
        ops.Reshape(value(4), result=TensorType((None, None), F32, Bounds((2, 2))))
    ops.Reshape(value(4), result=TensorType((None, 2), F32, Bounds((2, None))))


def test_reshape_c1():
    with breaks("C1"):
        ops.Reshape(value(2), result=tensor(2, of=F64))


def test_reshape_c2():
    with breaks("C2"):
        ops.Reshape(value(2, 3), result=tensor(5))


def test_broadcast_in_dim_i1():
    with breaks("I1"):
        ops.BroadcastInDim(Value(TOKEN), (), result=tensor(2))


def test_broadcast_in_dim_o1():
    with breaks("O1"):
        ops.BroadcastInDim(value(2), (0,), result=tensor(2, None))


def test_broadcast_in_dim_c1():
    with breaks("C1"):
        ops.BroadcastInDim(value(2), (0,), result=tensor(2, of=F64))


def test_broadcast_in_dim_c2():
    with breaks("C2"):
        ops.BroadcastInDim(value(2), (0, 1), result=tensor(2, 2))


def test_broadcast_in_dim_c3():
    with breaks("C3"):
        ops.BroadcastInDim(value(2), (1,), result=tensor(2))
    with breaks("C3"):
        ops.BroadcastInDim(value(2), (-1,), result=tensor(2))


def test_broadcast_in_dim_c4():
    with breaks("C4"):
        ops.BroadcastInDim(value(2, 2), (0, 0), result=tensor(2, 2))


def test_broadcast_in_dim_c5():
    with breaks("C5"):
        ops.BroadcastInDim(value(2), (0,), result=tensor(3))


def test_transpose_i1():
    with breaks("I1"):
        ops.Transpose(Value(TOKEN), (), result=tensor())


def test_transpose_c1():
    with breaks("C1"):
        ops.Transpose(value(2), (0,), result=tensor(2, of=F64))


def test_transpose_c2():
    with breaks("C2"):
        ops.Transpose(value(2, 3), (0, 0))
    with breaks("C2"):
        ops.Transpose(value(2, 3), (0,), result=tensor(2, 3))


def test_transpose_c3():
    with breaks("C3"):
        ops.Transpose(value(2, 3), (1, 0), result=tensor(2, 3))


def test_reverse_i1():
    with breaks("I1"):
        ops.Reverse(Value(TOKEN), ())


def test_reverse_c1():
    with breaks("C1"):
        ops.Reverse(value(2), (0,), result=tensor(3))


def test_reverse_c2():
    with breaks("C2"):
        ops.Reverse(value(2, 3), (1, 1))


def test_reverse_c3():
    with breaks("C3"):
        ops.Reverse(value(2), (1,))


def test_concatenate_i1():
    with breaks("I1"):
        ops.Concatenate([Value(TOKEN)], 0)


def test_concatenate_c1():
    with breaks("C1"):
        ops.Concatenate([value(2), value(2, of=F64)], 0)


def test_concatenate_c2():
    with breaks("C2"):
        ops.Concatenate([value(3, 4), value(2, 5)], 0)
    with breaks("C2"):
        ops.Concatenate([value(2), value(2, 2)], 0)


def test_concatenate_c3():
    with breaks("C3"):
        ops.Concatenate([], 0)


def test_concatenate_c4():
    with breaks("C4"):
        ops.Concatenate([value(2)], 1)


def test_concatenate_c5():
    with breaks("C5"):
        ops.Concatenate([value(2)], 0, result=tensor(2, of=F64))


def test_concatenate_c6():
    with breaks("C6"):
        ops.Concatenate([value(2), value(3)], 0, result=tensor(6))


def test_pad_i1():
    with breaks("I1"):
        ops.Pad(Value(TOKEN), value(), (), (), (), result=tensor())


def test_pad_i2():
    with breaks("I2"):
        ops.Pad(value(2), value(1), (0,), (0,), (0,))


def test_pad_c1():
    with breaks("C1"):
        ops.Pad(value(2), value(of=F64), (0,), (0,), (0,))


def test_pad_c2():
    with breaks("C2"):
        ops.Pad(value(2), value(), (0,), (0, 0), (0,))


def test_pad_c3():
    with breaks("C3"):
        ops.Pad(value(2), value(), (1,), (1,), (-1,))


def test_pad_c4():
    with breaks("C4"):
        ops.Pad(value(2), value(), (1,), (1,), (0,), result=tensor(5))
    with breaks("C4"):
        ops.Pad(value(2), value(), (-2,), (-1,), (0,))
    with breaks("C4"):  # at most 3 elements, of which 10 are removed
        ops.Pad(Value(bounded(None, bounds=(3,))), value(), (-10,), (0,), (1,), result=tensor(None))


# What is unknown is not an error


def bounded(*shape, bounds):
    return TensorType(shape, tensor().element_type, Bounds(bounds))


def test_unknown_extents_fit_any():
    some = value(None, 3)
    assert ops.Add(some, value(2, None)).result.type is tensor(2, 3)
    assert ops.Concatenate([some, value(2, 3)], 0).result.type is tensor(None, 3)
    assert ops.Concatenate([some, value(2, 4)], 1).result.type is tensor(2, 7)
    assert ops.Pad(some, value(), (1, 1), (0, 0), (0, 0)).result.type is tensor(None, 4)
    ops.Reshape(some, result=tensor(5))
    ops.BroadcastInDim(some, (0, 1), result=tensor(7, 3))
    ops.Slice(some, (4, 0), (9, 3), (1, 1))


def test_bounds_are_kept():
    few = Value(bounded(None, 3, bounds=(4, None)))
    assert ops.Transpose(few, (1, 0)).result.type is bounded(3, None, bounds=(None, 4))
    assert ops.Concatenate([few, value(2, 3)], 0).result.type is bounded(None, 3, bounds=(6, None))
    assert ops.Pad(few, value(), (1, 0), (0, 0), (0, 0)).result.type is bounded(None, 3, bounds=(5, None))
    assert ops.Add(few, value(None, 3)).result.type is few.type
    assert ops.Add(few, value(2, 3)).result.type is tensor(2, 3)
    with breaks("C1"):
        ops.Add(few, value(5, 3))
