"""Cases of ops on integers that express numbers. Results are compared as the integers that they store."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tests.importers.tensorflow.cases import Case, case

raw = tf.raw_ops

R = np.random.default_rng(5)
INT8, INT32 = (-128, 127), (-(1 << 31), (1 << 31) - 1)
STORED = {tf.qint8: tf.int8, tf.quint8: tf.uint8, tf.qint32: tf.int32}


def limits(**ranges: tuple[int, int]) -> dict[str, int]:
    return {
        f"{name}quantization_{end}_val": bound
        for name, given in ranges.items()
        for end, bound in zip(("min", "max"), given, strict=True)
    }


def stored(x: Any) -> Any:
    return tf.bitcast(x, STORED[x.dtype])


def q(x: Any) -> Any:
    return tf.bitcast(x, {tf.int8: tf.qint8, tf.int32: tf.qint32, tf.uint8: tf.quint8}[x.dtype])


def quantized(x: Any, scales: Any, zeros: Any, dtype: Any = tf.qint8, axis: int = -1) -> Any:
    bounds = {tf.qint8: INT8, tf.quint8: (0, 255), tf.qint32: INT32}[dtype]
    return stored(
        raw.UniformQuantize(
            input=x, scales=scales, zero_points=zeros, Tout=dtype, quantization_axis=axis,
            quantization_min_val=bounds[0], quantization_max_val=bounds[1],
        )
    )  # fmt: skip


def dequantized(x: Any, scales: Any, zeros: Any, axis: int = -1) -> Any:
    return raw.UniformDequantize(
        input=q(x), scales=scales, zero_points=zeros, Tout=tf.float32, quantization_axis=axis,
        quantization_min_val=-128, quantization_max_val=127,
    )  # fmt: skip


def requantized(x: Any, scales: Any, out: Any, axes: tuple[int, int] = (-1, -1)) -> Any:
    zeros = [np.zeros(np.shape(s), np.int32) + offset for s, offset in ((scales, 3), (out, -2))]
    return stored(
        raw.UniformRequantize(
            input=q(x), input_scales=scales, input_zero_points=zeros[0], output_scales=out, output_zero_points=zeros[1],
            Tout=tf.qint8, input_quantization_axis=axes[0], output_quantization_axis=axes[1],
            **limits(input_=INT32 if x.dtype == tf.int32 else INT8, output_=INT8),
        )
    )  # fmt: skip


def combined(op: Any, a: Any, b: Any, scales: Any = 0.2, axis: int = -1, **options: Any) -> Any:
    is_sum = op is raw.UniformQuantizedAdd
    inner = INT32 if is_sum else INT8
    return stored(
        op(
            lhs=q(a), rhs=q(b), lhs_scales=0.3, lhs_zero_points=3, rhs_scales=scales,
            rhs_zero_points=np.zeros(np.shape(scales), np.int32) - (5 if is_sum else 0), output_scales=0.5,
            output_zero_points=7, rhs_quantization_axis=axis, **options,
            **limits(lhs_=inner, rhs_=inner, output_=INT32),
        )
    )  # fmt: skip


def clipped(x: Any, low: Any, high: Any) -> Any:
    return stored(
        raw.UniformQuantizedClipByValue(
            operand=q(x), min=q(low), max=q(high), scales=0.1, zero_points=0,
            quantization_min_val=INT32[0], quantization_max_val=INT32[1],
        )
    )  # fmt: skip


def restored(x: Any, **options: Any) -> Any:
    return raw.Dequantize(input=q(x), min_range=-2.0, max_range=3.0, **options)


def rounded(x: Any, options: dict[str, Any]) -> Any:
    """Returns the same by way of f32."""
    return tf.cast(restored(x, **options | {"dtype": tf.float32}), options.get("dtype", tf.float32))


def i8(*shape: int) -> np.ndarray:
    return R.integers(-128, 128, shape).astype(np.int8)


def i32(*shape: int) -> np.ndarray:
    return R.integers(-3000, 3000, shape).astype(np.int32)


NUMBERS = np.array([0.05, 0.15, -0.25, 100, -100, np.nan, np.inf, -np.inf, 0.35, 3e9, -3e9], np.float32)
SCALES = np.array([0.1, 0.2, 0.3, 0.4, 0.5], np.float32)
ZEROS = np.array([1, -2, 0, 5, 9], np.int32)

FRACTIONS = np.linspace(-9, 9, 20, dtype=np.float32).reshape(4, 5)

UNIFORM_CASES = [
    *(
        case("UniformQuantize", lambda x, dtype=dtype: quantized(x, 0.1, 3, dtype), NUMBERS)
        for dtype in (tf.qint8, tf.quint8, tf.qint32)
    ),
    case(
        "UniformQuantize", lambda x: quantized(x, SCALES, ZEROS, axis=1), R.standard_normal((4, 5)).astype(np.float32)
    ),
    case("UniformDequantize", lambda x: dequantized(x, 0.1, 3), i8(7)),
    case("UniformDequantize", lambda x: dequantized(x, SCALES, ZEROS, 0), i32(5, 2)),
    case("UniformRequantize", lambda x: requantized(x, 0.3, 0.1), i8(40)),
    case("UniformRequantize", lambda x: requantized(x, 0.3, 0.7), i32(40)),
    case("UniformRequantize", lambda x: requantized(x, SCALES, 0.7, (1, -1)), i32(6, 5)),
    case("UniformQuantizedAdd", lambda a, b: combined(raw.UniformQuantizedAdd, a, b), i32(30), i32(30)),
    case(
        "UniformQuantizedDot", lambda a, b: combined(raw.UniformQuantizedDot, a, b, Tout=tf.qint32), i8(3, 9), i8(9, 5)
    ),
    case(
        "UniformQuantizedDot",
        lambda a, b: combined(raw.UniformQuantizedDot, a, b, SCALES, 1, Tout=tf.qint32),
        *(i8(3, 9), i8(9, 5)),
    ),
    *(
        case(
            "UniformQuantizedConvolution",
            lambda a, b, given=given: combined(raw.UniformQuantizedConvolution, a, b, Tout=tf.qint32, **given),
            *(i8(2, 3, 6, 5), i8(4, 3, 3, 2)),
        )
        for given in (
            {"padding": "VALID"},
            {"padding": "SAME", "window_strides": [2, 1]},
            {"padding": "EXPLICIT", "explicit_padding": [1, 0, 2, 1], "rhs_dilation": [2, 1]},
        )
    ),
    case(
        "UniformQuantizedConvolution",
        lambda a, b: combined(raw.UniformQuantizedConvolution, a, b, SCALES[:4], 0, Tout=tf.qint32, padding="SAME"),
        *(i8(2, 3, 6, 5), i8(4, 3, 3, 2)),
    ),
    case("UniformQuantizedClipByValue", clipped, i32(9), np.array(-700, np.int32), np.array(900, np.int32)),
    *(
        Case("Dequantize", lambda x, given=given: restored(x, **given), (x,), lambda x, given=given: rounded(x, given))
        for x in (i8(9), R.integers(0, 256, 9).astype(np.uint8))
        for given in (
            {"mode": "MIN_COMBINED"},
            {"mode": "MIN_FIRST"},
            {"mode": "SCALED"},
            {"mode": "SCALED", "narrow_range": True},
            {"mode": "SCALED", "dtype": tf.bfloat16},
        )
    ),
]
