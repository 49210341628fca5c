"""Ops of older files, compared with NumPy."""

from __future__ import annotations

import numpy as np

from tests.ir.ops.records import Record, rounded
from tests.ir.ops.records.indexing import CUBE, GRID
from trivium.ir import ops
from trivium.ir.types import tensor


def dot(lhs, rhs):
    return Record(ops.Dot, (lhs, rhs), oracle=rounded(np.matmul), ulps=2)


def einsum(config, lhs, rhs):
    def oracle(lhs, rhs):
        return np.einsum(config, lhs, rhs)

    result = tensor(*oracle(lhs, rhs).shape, of=lhs.dtype)
    return Record(ops.Einsum, (lhs, rhs), {"einsum_config": config}, result, oracle, ulps=2)


def unary_einsum(config, operand):
    def oracle(operand):
        return np.einsum(config, operand)

    result = tensor(*oracle(operand).shape, of=operand.dtype)
    return Record(ops.UnaryEinsum, (operand,), {"einsum_config": config}, result, oracle, ulps=2)


def select(operand, index, dim, batch_dims, oracle):
    return Record(ops.TorchIndexSelect, (operand, index), {"dim": dim, "batch_dims": batch_dims}, oracle=oracle)


RECORDS = [
    Record(ops.Broadcast, (GRID,), {"broadcast_sizes": (2, 3)}, oracle=lambda x: np.tile(x, (2, 3, 1, 1))),
    Record(ops.Broadcast, (np.int32(7),), {"broadcast_sizes": ()}, oracle=lambda x: x),
    dot(GRID, GRID.T.copy()),
    dot(GRID, GRID[0].astype(np.float32)),
    dot(GRID[0], GRID[1]),
    einsum("ab,bc->ac", GRID, GRID.T.copy()),
    einsum("...a,b...->b...", CUBE[0], CUBE[:, :, 0].copy()),
    unary_einsum("abc->ca", CUBE),
    unary_einsum("aa->a", GRID[:, :4].copy()),
    select(GRID, np.int32([3, 0, 9]), 0, 0, lambda x, _: x[[3, 0, 3]]),
    select(GRID, np.int64([[1], [-2]]), 1, 0, lambda x, _: x[:, [[1], [0]]]),
    select(CUBE, np.int32([[0, 3], [1, 1], [2, 0]]), 1, 1, lambda x, i: np.take_along_axis(x, i[:, :, None], 1)),
]
