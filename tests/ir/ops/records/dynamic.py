"""Ops whose shapes and sizes are operands: each compared with its static counterpart, or with NumPy."""

from __future__ import annotations

import numpy as np

from tests.ir.ops.records import Record
from tests.ir.ops.records.indexing import CROSSED, CUBE, GRID, ROWS
from trivium.ir import ops
from trivium.ir.ops import ConvDimensionNumbers
from trivium.ir.types import F64, I32, UI8, tensor

INDICES = np.int32([[3], [0], [-2], [9]])


def dynamic_iota(shape, dimension, element):
    def oracle(extents):
        result = np.indices(extents.tolist())[dimension]
        return result.astype(element.dtype)

    result = tensor(*shape, of=element)
    return Record(ops.DynamicIota, (np.array(shape),), {"iota_dimension": dimension}, result, oracle)


def broadcast(operand, shape, dimensions, **known):
    def oracle(array, extents):
        single = np.ones(len(extents), int)
        single[list(dimensions)] = array.shape
        ordered = array.transpose(np.argsort(dimensions)).reshape(single)
        return np.broadcast_to(ordered, extents)

    named = {"broadcast_dimensions": dimensions, **known}
    result = tensor(*shape, of=operand.dtype)
    return Record(ops.DynamicBroadcastInDim, (operand, np.int32(shape)), named, result, oracle)


def pad(operand, value, *edges):
    def oracle(array, value, *_):
        low, high, interior = (np.array(edge) for edge in edges)
        spread = np.full((np.array(array.shape) - 1) * (interior + 1) + 1, value, array.dtype)
        spread[tuple(slice(None, None, step + 1) for step in interior)] = array
        whole = np.pad(spread, np.maximum([low, high], 0).T, constant_values=value)
        cropped = np.maximum([-low, -high], 0).T
        return whole[tuple(slice(a, n - b) for (a, b), n in zip(cropped, whole.shape, strict=True))]

    result = oracle(operand, value)
    operands = (operand, value, *(np.int64(edge) for edge in edges))
    return Record(ops.DynamicPad, operands, {}, tensor(*result.shape, of=operand.dtype), oracle)


def real_slice(operand, start, limit, strides):
    def oracle(array, *box):
        return array[tuple(slice(*part) for part in zip(*box, strict=True))]

    operands = (operand, *(np.int64(part) for part in (start, limit, strides)))
    shape = oracle(*operands).shape
    return Record(ops.RealDynamicSlice, operands, {}, tensor(*shape, of=operand.dtype), oracle)


def gather(operand, indices, numbers, sizes):
    static = ops.Gather.evaluate(operand, indices, numbers, sizes)
    named = {"dimension_numbers": numbers}
    result = tensor(*static.shape, of=operand.dtype)
    return Record(ops.DynamicGather, (operand, indices, np.int64(sizes)), named, result, lambda *_: static)


PLAIN = ConvDimensionNumbers(0, 1, (2,), 1, 0, (2,), 0, 1, (2,))


def conv(lhs, rhs, padding, stride):
    """One input feature and one output feature: NumPy's correlation."""

    def oracle(lhs, rhs, padding):
        row = np.pad(lhs[0, 0], padding[0])
        return np.correlate(row, rhs[0, 0], "valid")[::stride].reshape(1, 1, -1)

    named = {
        "window_strides": (stride,),
        "dimension_numbers": PLAIN,
        "feature_group_count": 1,
        "batch_group_count": 1,
    }
    operands = (lhs, rhs, np.int32(padding))
    return Record(ops.DynamicConv, operands, named, tensor(*oracle(*operands).shape, of=lhs.dtype), oracle)


RECORDS = [
    dynamic_iota((2, 3), 1, I32),
    dynamic_iota((4, 2), 0, F64),
    dynamic_iota((3,), 0, UI8),
    Record(ops.DynamicReshape, (GRID, np.int64([2, 10])), {}, tensor(2, 10), lambda x, _: x.reshape(2, 10)),
    Record(ops.DynamicReshape, (GRID[:1, :1], np.zeros(0, np.int64)), {}, tensor(), lambda x, _: x.reshape(())),
    broadcast(GRID[:, :1], (3, 5, 4), (2, 1)),
    broadcast(GRID[0], (4, 5), (1,), known_expanding_dimensions=(), known_nonexpanding_dimensions=(0,)),
    broadcast(np.float32(3), (2, 2), ()),
    Record(ops.GetDimensionSize, (GRID,), {"dimension": 1}, oracle=lambda _: np.int32(5)),
    Record(ops.SetDimensionSize, (GRID, np.int32(2)), {"dimension": 1}, tensor(4, 2), lambda x, _: x[:, :2]),
    pad(GRID, np.float32(7), (1, -1), (2, 0), (0, 1)),
    pad(np.int32([1, 2, 3]), np.int32(0), (0,), (-2,), (2,)),
    real_slice(GRID, (1, 0), (4, 5), (2, 3)),
    real_slice(CUBE, (0, 2, 1), (2, 2, 4), (1, 1, 1)),
    gather(GRID, INDICES, ROWS, (1, 5)),
    gather(CUBE, np.int32([[[0, 1, 2, 3, 9]], [[-1, 3, 2, 1, 0]]]), CROSSED, (2, 2, 1)),
    conv(np.arange(8, dtype=np.float32).reshape(1, 1, 8), np.float32([[[1, 2, 3]]]), [[1, 2]], 2),
    conv(np.arange(6, dtype=np.float64).reshape(1, 1, 6), np.float64([[[1, -2]]]), [[0, 0]], 1),
]
