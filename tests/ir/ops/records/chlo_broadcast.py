"""Implicit broadcasting, compared with NumPy's."""

from __future__ import annotations

import numpy as np

from tests.ir.ops.records import Record
from trivium.ir import ops
from trivium.ir.ops import ChloComparisonDirection

ROW = np.float32([2.0, 3.0, 0.5])
GRID = np.float32([[1.5, 2.0, 4.0], [3.0, 1.0, 2.5]])
BITS = np.uint8([3, 5, 7])
SHIFTS = np.uint8([[1], [2]])


def binary(op, lhs, rhs, oracle, ulps=0):
    return Record(op, (lhs, rhs), oracle=oracle, ulps=ulps)


def static(op):
    """Returns what the op on operands of equal shapes gives; that op has its own tests."""
    return lambda lhs, rhs: op.STATIC.evaluate(*np.broadcast_arrays(lhs, rhs))


RECORDS = [
    binary(ops.BroadcastAdd, ROW, GRID, np.add),
    Record(
        ops.BroadcastAdd,
        (GRID, np.float32([10, 20])),
        {"broadcast_dimensions": (0,)},
        oracle=lambda x, y: x + y[:, None],
    ),
    binary(ops.BroadcastSubtract, np.float32(1), GRID, np.subtract),
    binary(ops.BroadcastMultiply, GRID, GRID[:, :1], np.multiply),
    binary(ops.BroadcastDivide, GRID, ROW, np.divide),
    binary(ops.BroadcastRemainder, GRID, ROW, np.fmod, ulps=1),
    binary(ops.BroadcastPower, ROW, GRID, np.power, ulps=2),
    binary(ops.BroadcastMaximum, ROW, GRID, np.maximum),
    binary(ops.BroadcastMinimum, GRID, ROW, np.minimum),
    binary(ops.BroadcastAtan2, ROW, GRID, np.arctan2, ulps=2),
    binary(ops.BroadcastAnd, BITS, SHIFTS, np.bitwise_and),
    binary(ops.BroadcastOr, BITS, SHIFTS, np.bitwise_or),
    binary(ops.BroadcastXor, BITS, SHIFTS, np.bitwise_xor),
    binary(ops.BroadcastShiftLeft, BITS, SHIFTS, np.left_shift),
    binary(ops.BroadcastShiftRightArithmetic, BITS.astype(np.int8), SHIFTS.astype(np.int8), np.right_shift),
    binary(ops.BroadcastShiftRightLogical, BITS, SHIFTS, np.right_shift),
    binary(ops.BroadcastNextAfter, ROW, GRID, np.nextafter),
    binary(ops.BroadcastPolygamma, np.float32([1, 2]).reshape(2, 1), ROW, static(ops.BroadcastPolygamma)),
    binary(ops.BroadcastZeta, GRID + np.float32(1), ROW, static(ops.BroadcastZeta)),
    Record(
        ops.BroadcastCompare,
        (ROW, GRID),
        {"comparison_direction": ChloComparisonDirection.LT},
        oracle=np.less,
    ),
    binary(ops.BroadcastComplex, ROW, GRID, lambda re, im: re + 1j * im),
    Record(ops.BroadcastSelect, (np.array([[True], [False]]), ROW, np.float32(9)), oracle=np.where),
]
