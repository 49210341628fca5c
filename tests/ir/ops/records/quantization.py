"""Quantized elements: the ops that convert to and from them, and other ops on them. Oracles compute with fractions, so
that only the result is rounded."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tests.ir.ops.records import Record
from tests.ir.quantized import per_axis, per_tensor
from trivium.ir import ops
from trivium.ir.types import F16, F32, F64, I1, I8, I16, I32, UI8, QuantizedType, tensor

REALS = np.array([[4.0, 15.0, -7.3, 1e9], [0.0, -0.26, -1e9, 100.0]], np.float32)
STORED = np.array([[10, -128, 127, 0], [-1, 5, 64, -77]], np.int8)
TENTHS, HALVES = per_tensor(0.1, -30), per_tensor(0.5, -20)
ROWS = per_axis(0, (0.1, 0.5), (-30, -20))
COLUMNS = per_axis(1, (0.1, 0.5, 1.0, 3.0), (0, 1, -2, 5))


def numbers(array: np.ndarray, kind: QuantizedType) -> np.ndarray:
    """Returns exactly what stored integers express; the scale is a number of the expressed type."""
    scales, zero_points = kind.parameters(array.shape)
    scales = np.broadcast_to(scales.astype(kind.expressed_type.dtype).astype(np.float64), array.shape)
    return fractions(array.astype(np.int64) - zero_points) * fractions(scales)


def fractions(array: Any) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array).tolist())


def nearest(values: np.ndarray, kind: QuantizedType) -> np.ndarray:
    """Returns the stored integers that express the nearest numbers; a tie goes to the even one."""
    scales, zero_points = kind.parameters(values.shape)
    scales = fractions(np.broadcast_to(scales.astype(kind.expressed_type.dtype).astype(np.float64), values.shape))
    places = values / scales + np.broadcast_to(zero_points, values.shape)
    held = [min(max(round(place), kind.storage_min), kind.storage_max) for place in places.reshape(-1)]
    return np.array(held, np.int64).astype(kind.dtype).reshape(values.shape)


def quantized(op: Any, arrays: Any, kinds: Any, result: Any, function: Callable[..., Any], **attributes: Any) -> Record:
    """Returns a record of an op that computes with what its operands express."""

    def oracle(*given: np.ndarray) -> np.ndarray:
        pairs = zip(given, kinds, strict=True)
        values = [numbers(a, k) if isinstance(k, QuantizedType) else fractions(a) for a, k in pairs]
        outcome = function(*values)
        if isinstance(result, QuantizedType):
            return nearest(outcome, result)
        return np.asarray(outcome).astype(np.float64).astype(result.dtype)

    shape = np.shape(function(*map(fractions, arrays)))
    types = tuple(tensor(*array.shape, of=kind) for array, kind in zip(arrays, kinds, strict=True))
    return Record(op, tuple(arrays), attributes, tensor(*shape, of=result), oracle, types=types)


def same(values: np.ndarray) -> np.ndarray:
    return values


def moved(op: Any, kind: QuantizedType, result: Any, function: Callable[..., Any], **attributes: Any) -> Record:
    """Returns a record of an op that moves the stored integers."""
    return Record(op, (STORED,), attributes, result, function, types=(tensor(2, 4, of=kind),))


def choose(pred: np.ndarray, on_true: np.ndarray, on_false: np.ndarray) -> np.ndarray:
    return np.where(pred, on_true, on_false)


QUANTIZE, DEQUANTIZE = ops.UniformQuantize, ops.UniformDequantize
PRODUCT = {"dot_dimension_numbers": ops.DotDimensionNumbers((), (), (1,), (0,))}
WEIGHTS = np.array([[1, -2], [3, 100], [-128, 7], [0, 0]], np.int8)

CONVOLUTION = {
    "dimension_numbers": ops.ConvDimensionNumbers(0, 1, (2,), 1, 0, (2,), 0, 1, (2,)),
    "feature_group_count": 1,
    "batch_group_count": 1,
    "padding": ((1, 1),),
}
SIGNAL, KERNELS = STORED.reshape(1, 2, 4), WEIGHTS.reshape(2, 2, 2)


def convolved(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """A convolution of one dimension, padded by a zero at each end."""
    zeros = fractions(np.zeros((1, 2, 1)))
    lhs = np.concatenate([zeros, lhs, zeros], 2)
    return np.array([[[np.sum(lhs[0, :, at : at + 2] * kernel) for at in range(5)] for kernel in rhs]])


UI8_KIND = per_tensor(0.1, 128, UI8)
LESS = {"comparison_direction": ops.ComparisonDirection.LT}

RECORDS = [
    quantized(QUANTIZE, [REALS], [F32], ROWS, same),
    *(quantized(QUANTIZE, [REALS], [F32], kind, same) for kind in (TENTHS, HALVES, COLUMNS)),
    quantized(QUANTIZE, [REALS], [F32], per_tensor(0.1, 128, UI8), same),
    quantized(QUANTIZE, [REALS], [F32], per_tensor(0.25, 0, I16), same),
    quantized(QUANTIZE, [REALS.astype(np.float64)], [F64], per_tensor(0.1, -3, number=F64), same),
    quantized(QUANTIZE, [STORED], [TENTHS], per_tensor(0.3, 7), same),
    quantized(QUANTIZE, [STORED], [ROWS], COLUMNS, same),
    *(quantized(DEQUANTIZE, [STORED], [kind], F32, same) for kind in (TENTHS, ROWS, COLUMNS)),
    quantized(DEQUANTIZE, [STORED], [per_tensor(0.5, -3, number=F16)], F16, same),
    quantized(ops.Add, [STORED, STORED[::-1]], [TENTHS, HALVES], per_tensor(0.7, 3), lambda x, y: x + y),
    quantized(ops.Multiply, [STORED, STORED[::-1]], [TENTHS, HALVES], per_tensor(3.1, 3), lambda x, y: x * y),
    quantized(ops.Negate, [STORED], [HALVES], TENTHS, lambda x: -x),
    quantized(
        ops.DotGeneral, [STORED, WEIGHTS], [TENTHS, per_tensor(0.5)], per_tensor(0.05, 0, I32), np.dot, **PRODUCT
    ),
    quantized(
        ops.DotGeneral, [STORED, WEIGHTS], [TENTHS, per_axis(1)], per_axis(1, (0.1, 0.2), None, I32), np.dot, **PRODUCT
    ),
    quantized(ops.DotGeneral, [REALS[:, :2], WEIGHTS[:2]], [F32, per_axis(1)], F32, np.dot, **PRODUCT),
    moved(ops.Transpose, ROWS, tensor(4, 2, of=per_axis(1, (0.1, 0.5), (-30, -20))), np.transpose, permutation=(1, 0)),
    moved(ops.Reshape, ROWS, tensor(2, 2, 2, of=ROWS), lambda x: x.reshape(2, 2, 2)),
    moved(ops.BitcastConvert, COLUMNS, tensor(2, 4, of=I8), same),
    moved(ops.Reverse, HALVES, tensor(2, 4, of=HALVES), lambda x: x[:, ::-1], dimensions=(1,)),
    quantized(ops.UniformDequantize, [STORED.view(np.uint8)], [UI8_KIND], F32, same),
    quantized(ops.Maximum, [STORED, STORED[::-1]], [TENTHS, HALVES], per_tensor(0.7, -5), np.maximum),
    quantized(
        ops.Clamp,
        [np.int8(-3), STORED, np.int8(90)],
        [HALVES, TENTHS, HALVES],
        TENTHS,
        lambda a, x, b: np.clip(x, a, b),
    ),
    quantized(ops.Select, [STORED > 3, STORED, STORED[::-1]], [I1, TENTHS, TENTHS], per_tensor(0.3, 7), choose),
    quantized(ops.Convolution, [SIGNAL, KERNELS], [TENTHS, HALVES], per_tensor(0.05, 0, I32), convolved, **CONVOLUTION),
    quantized(
        ops.Convolution,
        [SIGNAL, KERNELS],
        [TENTHS, per_axis()],
        per_axis(1, (0.13, 0.23), None, I32),
        convolved,
        **CONVOLUTION,
    ),
    Record(
        ops.Compare,
        (STORED, STORED[::-1]),
        LESS,
        None,
        lambda x, y: numbers(x, TENTHS) < numbers(y, HALVES),
        types=(tensor(2, 4, of=TENTHS), tensor(2, 4, of=HALVES)),
    ),
    Record(
        ops.Iota,
        (),
        {"iota_dimension": 1},
        tensor(2, 4, of=HALVES),
        lambda: nearest(fractions([[0, 1, 2, 3]] * 2), HALVES),
        types=(),
    ),
]
