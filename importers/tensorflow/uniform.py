"""Ops on integers that express numbers by a scale and a zero point. Products and sums are computed with integers, and
rescaled by a multiplier of 31 bits and a shift, as TensorFlow's kernels do it."""

from __future__ import annotations

import numpy as np
from tensorflow.core.util.quantization.uniform_quant_ops_attr_pb2 import UniformQuantizedConvolutionDimensionNumbersAttr

from trivium.importers.convolution import Layout, dimension_numbers, reaches, same_padding
from trivium.importers.tensorflow.context import Context, Known, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I32, I64

LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1


@rule("UniformQuantize")
def quantize(
    ctx: Context, input: Value, scales: Known, zero_points: Known, *, quantization_axis: int,
    quantization_min_val: int, quantization_max_val: int,
) -> Value:  # fmt: skip
    """UniformQuantize(input, scales, zero_points; Tout, quantization_axis=-1, quantization_min_val,
    quantization_max_val) -> output"""
    inverse = _along(ctx, input, np.float32(1) / scales, quantization_axis)
    steps = ctx.add(ops.Floor(ctx.plus(ctx.times(input, inverse), ctx.scalar(0.5, F32))))
    # What is no 32-bit integer becomes the lowest one.
    inside = [ctx.compare("GE", steps, ctx.scalar(LOWEST, F32)), ctx.compare("LT", steps, ctx.scalar(-LOWEST, F32))]
    whole = ctx.convert(ctx.select(ctx.binary(ops.And, *inside), steps, ctx.scalar(0, F32)), I32)
    whole = ctx.select(ctx.binary(ops.And, *inside), whole, ctx.scalar(LOWEST, I32))
    shifted = ctx.plus(whole, _along(ctx, input, zero_points, quantization_axis))
    return _limited(ctx, shifted, quantization_min_val, quantization_max_val)


@rule("UniformDequantize")
def dequantize(
    ctx: Context, input: Value, scales: Known, zero_points: Known, *, quantization_axis: int,
    quantization_min_val: int, quantization_max_val: int,
) -> Value:  # fmt: skip
    """UniformDequantize(input, scales, zero_points; Tout, quantization_axis=-1, quantization_min_val,
    quantization_max_val) -> output"""
    numbers = ctx.convert(_centred(ctx, input, zero_points, quantization_axis), F32)
    return ctx.times(numbers, _along(ctx, input, scales, quantization_axis))


@rule("UniformRequantize")
def requantize(
    ctx: Context, input: Value, input_scales: Known, input_zero_points: Known, output_scales: Known,
    output_zero_points: Known, *, input_quantization_axis: int, input_quantization_min_val: int,
    input_quantization_max_val: int, output_quantization_axis: int, output_quantization_min_val: int,
    output_quantization_max_val: int,
) -> Value:  # fmt: skip
    """UniformRequantize(input, input_scales, input_zero_points, output_scales, output_zero_points; Tout,
    input_quantization_axis=-1, ..., output_quantization_axis=-1, output_quantization_min_val,
    output_quantization_max_val) -> output"""
    axis = max(input_quantization_axis, output_quantization_axis)
    centred = _centred(ctx, input, input_zero_points, input_quantization_axis)
    scaled = _rescaled(ctx, centred, _ratio(input_scales, output_scales), axis)
    shifted = ctx.plus(scaled, _along(ctx, scaled, output_zero_points, output_quantization_axis))
    return _limited(ctx, shifted, output_quantization_min_val, output_quantization_max_val)


@rule("UniformQuantizedAdd")
def add(
    ctx: Context, lhs: Value, rhs: Value, lhs_scales: Known, lhs_zero_points: Known, rhs_scales: Known,
    rhs_zero_points: Known, output_scales: Known, output_zero_points: Known, *, lhs_quantization_axis: int,
    lhs_quantization_min_val: int, lhs_quantization_max_val: int, rhs_quantization_axis: int,
    rhs_quantization_min_val: int, rhs_quantization_max_val: int, output_quantization_axis: int,
    output_quantization_min_val: int, output_quantization_max_val: int,
) -> Value:  # fmt: skip
    """UniformQuantizedAdd(lhs, rhs, lhs_scales, lhs_zero_points, rhs_scales, rhs_zero_points, output_scales,
    output_zero_points; lhs_quantization_axis=-1, ..., output_quantization_max_val) -> output"""
    terms = []
    for x, scales, zeros, axis in (
        (lhs, lhs_scales, lhs_zero_points, lhs_quantization_axis),
        (rhs, rhs_scales, rhs_zero_points, rhs_quantization_axis),
    ):
        terms.append(_rescaled(ctx, _centred(ctx, x, zeros, axis), _ratio(scales, output_scales), axis))
    total = ctx.plus(*terms)
    shifted = ctx.plus(total, _along(ctx, total, output_zero_points, output_quantization_axis))
    return _limited(ctx, shifted, output_quantization_min_val, output_quantization_max_val)


@rule("UniformQuantizedClipByValue")
def clip(
    ctx: Context, operand: Value, min: Value, max: Value, scales: Known, zero_points: Known, *,
    quantization_axis: int, quantization_min_val: int, quantization_max_val: int,
) -> Value:  # fmt: skip
    """UniformQuantizedClipByValue(operand, min, max, scales, zero_points; quantization_axis=-1, quantization_min_val,
    quantization_max_val) -> output"""
    if quantization_axis >= 0:
        shape = operand.type.static_shape
        min, max = (ctx.broadcast_in_dim(bound, shape, [quantization_axis]) for bound in (min, max))
    return ctx.binary(ops.Minimum, ctx.binary(ops.Maximum, operand, min), max)


@rule("UniformQuantizedDot")
def dot(
    ctx: Context, lhs: Value, rhs: Value, lhs_scales: Known, lhs_zero_points: Known, rhs_scales: Known,
    rhs_zero_points: Known, output_scales: Known, output_zero_points: Known, *, lhs_quantization_axis: int,
    lhs_quantization_min_val: int, lhs_quantization_max_val: int, rhs_quantization_axis: int,
    rhs_quantization_min_val: int, rhs_quantization_max_val: int, output_quantization_axis: int,
    output_quantization_min_val: int, output_quantization_max_val: int,
) -> Value:  # fmt: skip
    """UniformQuantizedDot(lhs, rhs, lhs_scales, lhs_zero_points, rhs_scales, rhs_zero_points, output_scales,
    output_zero_points; Tout, lhs_quantization_axis=-1, ..., output_quantization_max_val) -> output"""
    centred = _centred(ctx, lhs, lhs_zero_points, -1), _centred(ctx, rhs, rhs_zero_points, rhs_quantization_axis)
    total = ctx.matmul(*centred)
    axis = 1 if max(rhs_quantization_axis, output_quantization_axis) >= 0 else -1
    scaled = _rescaled(ctx, total, _ratio(lhs_scales, output_scales, rhs_scales), axis)
    shifted = ctx.plus(scaled, _along(ctx, scaled, output_zero_points, output_quantization_axis))
    return _limited(ctx, shifted, output_quantization_min_val, output_quantization_max_val)


@rule("UniformQuantizedConvolution")
def convolution(
    ctx: Context, lhs: Value, rhs: Value, lhs_scales: Known, lhs_zero_points: Known, rhs_scales: Known,
    rhs_zero_points: Known, output_scales: Known, output_zero_points: Known, *, window_strides: tuple[int, ...],
    padding: str, explicit_padding: tuple[int, ...], lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
    batch_group_count: int, feature_group_count: int, dimension_numbers: str, lhs_quantization_axis: int,
    lhs_quantization_min_val: int, lhs_quantization_max_val: int, rhs_quantization_axis: int,
    rhs_quantization_min_val: int, rhs_quantization_max_val: int, output_quantization_axis: int,
    output_quantization_min_val: int, output_quantization_max_val: int,
) -> Value:  # fmt: skip
    """UniformQuantizedConvolution(lhs, rhs, lhs_scales, lhs_zero_points, rhs_scales, rhs_zero_points, output_scales,
    output_zero_points; Tout, window_strides=[], padding, explicit_padding=[], lhs_dilation=[], rhs_dilation=[],
    batch_group_count=1, feature_group_count=1, dimension_numbers="", lhs_quantization_axis=-1, ...) -> output"""
    layouts = _layouts(dimension_numbers, lhs.type.rank)
    space = len(layouts[0].space)
    ones = (1,) * space
    strides, apart, spread = (x or ones for x in (window_strides, lhs_dilation, rhs_dilation))
    extents = [(n - 1) * step + 1 for n, step in zip(layouts[0].spatial(lhs.type.static_shape), apart, strict=True)]
    if padding == "SAME":
        sizes = reaches(layouts[1].spatial(rhs.type.static_shape), spread)
        pairs = same_padding(ctx, extents, sizes, strides)
    else:
        given = explicit_padding or (0,) * (2 * space)
        pairs = [(given[2 * i], given[2 * i + 1]) for i in range(space)]
    total = ctx.add(
        ops.Convolution(
            _centred(ctx, lhs, lhs_zero_points, -1),
            _centred(ctx, rhs, rhs_zero_points, rhs_quantization_axis),
            window_strides=list(strides),
            padding=list(pairs),
            lhs_dilation=list(apart),
            rhs_dilation=list(spread),
            dimension_numbers=_numbers(*layouts),
            feature_group_count=feature_group_count,
            batch_group_count=batch_group_count,
        )
    )
    axis = layouts[2].channels if max(rhs_quantization_axis, output_quantization_axis) >= 0 else -1
    scaled = _rescaled(ctx, total, _ratio(lhs_scales, output_scales, rhs_scales), axis)
    shifted = ctx.plus(scaled, _along(ctx, scaled, output_zero_points, output_quantization_axis))
    return _limited(ctx, shifted, output_quantization_min_val, output_quantization_max_val)


_numbers = dimension_numbers
"""Under another name, because an attribute has this one."""


def _layouts(text: str, rank: int) -> list[Layout]:
    """Returns the layouts of the operand, of the filter and of the result: channels come before space by default."""
    if not text:
        return [Layout(0, 1, tuple(range(2, rank)))] * 3
    x = UniformQuantizedConvolutionDimensionNumbersAttr.FromString(text.encode())
    roles = (
        (x.input_batch_dimension, x.input_feature_dimension, x.input_spatial_dimensions),
        (x.kernel_output_feature_dimension, x.kernel_input_feature_dimension, x.kernel_spatial_dimensions),
        (x.output_batch_dimension, x.output_feature_dimension, x.output_spatial_dimensions),
    )
    return [Layout(batch, channels, tuple(space)) for batch, channels, space in roles]


# Steps of these


def _along(ctx: Context, x: Value, values: np.ndarray, axis: int) -> Value:
    """Returns known numbers, one for all of `x` or one for each index of a dimension, in its shape."""
    value = ctx.elements(values)
    return ctx.broadcast_in_dim(value, x.type.static_shape, [axis]) if values.ndim else value


def _centred(ctx: Context, x: Value, zero_points: np.ndarray, axis: int) -> Value:
    return ctx.minus(ctx.convert(x, I32), _along(ctx, x, zero_points.astype(np.int32), axis))


def _limited(ctx: Context, x: Value, low: int, high: int) -> Value:
    limited = ctx.binary(ops.Maximum, ctx.binary(ops.Minimum, x, ctx.scalar(high, I32)), ctx.scalar(low, I32))
    return ctx.convert(limited, ctx.element_type)


def _ratio(scales: np.ndarray, output: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    """Returns by what integers are multiplied to have another scale."""
    product = scales.astype(np.float64) * (1 if others is None else others.astype(np.float64))
    return product / output.astype(np.float64)


def _rescaled(ctx: Context, x: Value, ratio: np.ndarray, axis: int) -> Value:
    """Multiplies by numbers in fixed point, and rounds."""
    fraction, exponent = np.frexp(ratio)
    factor = np.round(fraction * (1 << 31)).astype(np.int64)
    exponent = exponent + (factor == 1 << 31)
    factor = np.where(factor == 1 << 31, 1 << 30, factor)
    factor = np.where(exponent < -31, 0, factor)
    shift = np.clip(31 - exponent, 1, 62).astype(np.int64)
    half = _along(ctx, x, np.int64(1) << (shift - 1), axis)
    product = ctx.plus(ctx.times(ctx.convert(x, I64), _along(ctx, x, factor, axis)), half)
    return ctx.convert(ctx.binary(ops.ShiftRightArithmetic, product, _along(ctx, x, shift, axis)), I32)
