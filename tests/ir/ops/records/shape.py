"""Constants, and ops that move elements. The oracles use NumPy's functions, or compute index by index where each
element goes."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.ir.ops.records import Lax, Record
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.types import BF16, C64, F32, I8, I64, TensorType, element_type_of, tensor

CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
BF16_CUBE = CUBE.astype(ml_dtypes.bfloat16)
I4_ROW = np.array([-8, 7, 3], ml_dtypes.int4)
EMPTY = np.zeros((2, 0, 3), np.int32)


def like(array, *shape):
    return TensorType(shape, element_type_of(array.dtype))


def constant(elements):
    return Record(ops.Constant, (), {"value": elements}, oracle=lambda: np.array(elements.array))


def iota(dimension, result):
    def oracle():
        along = [1] * result.rank
        along[dimension] = -1
        return np.ones(result.shape, result.dtype) * np.arange(result.shape[dimension]).astype(result.dtype).reshape(
            along
        )

    return Record(ops.Iota, (), {"iota_dimension": dimension}, result, oracle)


def broadcast(operand, dimensions, *shape):
    def oracle(array):
        result = np.empty(shape, array.dtype)
        for index in np.ndindex(shape):
            at = tuple(index[d] if extent != 1 else 0 for d, extent in zip(dimensions, array.shape, strict=True))
            result[index] = array[at]
        return result

    return Record(ops.BroadcastInDim, (operand,), {"broadcast_dimensions": dimensions}, like(operand, *shape), oracle)


def pad(operand, *dimensions, value=-1):
    low, high, interior = zip(*dimensions, strict=True) if dimensions else ((), (), ())
    names = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    oracle = Lax("pad", padding_config=dimensions)
    return Record(ops.Pad, (operand, np.array(value, operand.dtype)), names, oracle=oracle)


def cropped(array, _):
    return np.array([[array[0, 1], -1]], array.dtype)


RECORDS = [
    constant(DenseElements(np.array([[1, 2], [3, 4]], np.int8))),
    constant(DenseElements.splat(1.5, tensor(2, 3, of=BF16))),
    iota(0, tensor(5, of=I64)),
    iota(1, tensor(2, 3, 2, of=F32)),
    iota(0, tensor(300, of=I8)),
    iota(2, tensor(1, 2, 4, of=C64)),
    *(
        Record(ops.Reshape, (x,), result=like(x, 4, 6), oracle=lambda x: x.ravel().reshape(4, 6))
        for x in (CUBE, BF16_CUBE)
    ),
    Record(ops.Reshape, (np.float32([[7]]),), result=tensor(of=F32), oracle=lambda x: x[0, 0]),
    Record(ops.Reshape, (EMPTY,), result=like(EMPTY, 0), oracle=np.ravel),
    broadcast(np.array(3, np.int8), (), 2, 2),
    broadcast(CUBE[0], (0, 2), 3, 2, 4),
    broadcast(CUBE[0], (2, 0), 4, 2, 3),
    broadcast(CUBE[:, :1, 0], (1, 0), 5, 2),
    broadcast(I4_ROW, (0,), 3, 2),
    *(
        Record(
            ops.Transpose,
            (x,),
            {"permutation": (2, 0, 1)},
            oracle=lambda x: np.einsum("abc->cab", x.astype("f4")).astype(x.dtype),
        )
        for x in (CUBE, BF16_CUBE)
    ),
    Record(ops.Transpose, (np.array(2, np.int8),), {"permutation": ()}, oracle=lambda x: x),
    Record(ops.Reverse, (CUBE,), {"dimensions": (2, 0)}, oracle=lambda x: x[::-1, :, ::-1]),
    Record(ops.Reverse, (CUBE,), {"dimensions": ()}, oracle=lambda x: x),
    Record(ops.Concatenate, ((CUBE, CUBE[:, :1], -CUBE),), {"dimension": 1}, oracle=lambda *x: np.hstack(x)),
    Record(ops.Concatenate, ((I4_ROW,),), {"dimension": 0}, oracle=lambda x: x),
    Record(
        ops.Concatenate, ((EMPTY, EMPTY + 1, np.ones((2, 1, 3), np.int32)),), {"dimension": 1}, oracle=lambda *x: x[2]
    ),
    pad(CUBE, (1, 0, 0), (0, 2, 1), (1, 1, 2)),
    pad(CUBE, (-1, 0, 0), (0, -1, 1), (-2, -2, 3)),
    pad(CUBE[0], (-1, 3, 0), (2, -4, 1)),
    pad(np.array([], np.float32), (1, 2, 4)),
    pad(np.array(3, np.int8)),
    Record(
        ops.Pad,
        (BF16_CUBE[0], np.array(-1, ml_dtypes.bfloat16)),
        {"edge_padding_low": (0, -2), "edge_padding_high": (-2, -3), "interior_padding": (0, 1)},
        oracle=cropped,
    ),
]
