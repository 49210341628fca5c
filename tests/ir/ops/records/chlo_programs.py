"""CHLO's scans, grouped products and constants, compared with loops in Python and NumPy."""

from __future__ import annotations

import numpy as np

from tests.ir.ops.records import Record, exact
from tests.ir.ops.records.indexing import CUBE, GRID
from trivium.ir import ops
from trivium.ir.attributes import DenseElements, Float, Integer
from trivium.ir.builder import region
from trivium.ir.ops import RaggedDotDimensionNumbers
from trivium.ir.types import F32, I32, tensor


def mulhi(lhs, rhs):
    width = lhs.dtype.itemsize * 8
    return Record(ops.Mulhi, (lhs, rhs), oracle=exact(lambda x, y: (x * y) >> width))


def cumulative(operand, dimension, reverse):
    """Returns a sum whose carry is a slice."""
    part = tensor(*np.delete(operand.shape, dimension).tolist(), of=operand.dtype)

    def step(builder, x, carry):
        total = builder.add(ops.Add(x, carry))
        return [total, total]

    def oracle(array, init):
        turned = np.flip(array, dimension) if reverse else array
        sums = np.cumsum(turned, dimension, dtype=array.dtype)
        last = np.take(sums, -1, dimension)
        return (np.flip(sums, dimension) if reverse else sums), last + init

    attributes = {
        "dimension": dimension,
        "is_reverse": reverse,
        "body": lambda: region([part, part], step),
        "outputs": [tensor(*operand.shape, of=operand.dtype)],
        "carries": [part],
    }
    return Record(ops.Scan, ((operand,), (np.zeros(part.shape, operand.dtype),)), attributes, oracle=oracle)


RANDOM = np.random.default_rng(0)
LHS, RHS = RANDOM.normal(size=(6, 3)).astype(np.float32), RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
ROWS = RaggedDotDimensionNumbers((), (), (1,), (1,), (0,), (0,))
CONTRACTED = RaggedDotDimensionNumbers((), (), (0,), (0,), (0,), ())
TURNED = RaggedDotDimensionNumbers((), (), (1,), (0,), (1,), ())
BATCHED = RaggedDotDimensionNumbers((0,), (0,), (2,), (1,), (0,), ())
BATCH_AND_ROWS = RaggedDotDimensionNumbers((0,), (1,), (2,), (2,), (1,), (0,))


def rows_oracle(lhs, rhs, sizes):
    result = np.zeros((lhs.shape[0], rhs.shape[2]), np.float32)
    start = 0
    for group, size in enumerate(sizes):
        result[start : start + size] = lhs[start : start + size] @ rhs[group]
        start += size
    return result


def contracted_oracle(lhs, rhs, sizes):
    ends = np.cumsum(sizes)
    return np.stack([lhs[e - n : e].T @ rhs[e - n : e] for e, n in zip(ends, sizes, strict=True)])


def batched_oracle(lhs, rhs, sizes):
    result = lhs @ rhs
    result[sum(sizes) :] = 0
    return result


def ragged(numbers, lhs, rhs, sizes, oracle):
    named = {"ragged_dot_dimension_numbers": numbers}
    return Record(ops.RaggedDot, (lhs, rhs, np.int32(sizes)), named, oracle=oracle, ulps=64)


def segments_oracle(weights, rows, sizes):
    ends, terms = np.cumsum(sizes), weights[:, None] * rows
    return np.stack([terms[e - n : e].sum(0) for e, n in zip(ends, sizes, strict=True)])


STACK = RANDOM.normal(size=(2, 5, 3)).astype(np.float32)
EXPERTS = RANDOM.normal(size=(3, 2, 3, 4)).astype(np.float32)

RECORDS = [
    Record(ops.ChloConstant, (), {"value": DenseElements(GRID)}, oracle=lambda: GRID),
    Record(ops.ConstantLike, (GRID,), {"value": Float(1.5, F32)}, oracle=lambda x: np.full_like(x, 1.5)),
    Record(ops.ConstantLike, (CUBE,), {"value": Integer(-7, I32)}, oracle=lambda x: np.full_like(x, -7)),
    mulhi(np.int8([64, -64, -128, 127]), np.int8([4, -4, -128, 127])),
    mulhi(np.uint32([2**31, 2**32 - 1]), np.uint32([2, 2**32 - 1])),
    mulhi(np.int64([2**60, -(2**63)]), np.int64([16, -(2**63)])),
    mulhi(np.uint64([2**63, 2**64 - 1]), np.uint64([2, 2**64 - 1])),
    cumulative(np.int32([1, 2, 3, 4]), 0, False),
    cumulative(CUBE, 1, True),
    ragged(ROWS, LHS, RHS, [2, 3], rows_oracle),
    ragged(CONTRACTED, LHS, LHS[:, :2].copy(), [2, 4], contracted_oracle),
    ragged(CONTRACTED, LHS[:, 0].copy(), LHS, [2, 0, 4, 3], segments_oracle),
    ragged(CONTRACTED, LHS[:, :1].copy(), LHS, [0, 3, 1], contracted_oracle),
    ragged(TURNED, LHS[:, :1].T.copy(), LHS, [1, 3], lambda lhs, rhs, sizes: contracted_oracle(lhs.T, rhs, sizes)),
    ragged(BATCHED, STACK, RHS, [0, 1], batched_oracle),
    ragged(
        BATCH_AND_ROWS,
        STACK,
        EXPERTS,
        [[1, 2, 2], [0, 4, 1]],
        lambda x, w, sizes: np.stack([rows_oracle(x[b], w[:, b], sizes[b]) for b in range(2)]),
    ),
]
