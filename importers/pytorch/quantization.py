"""Integers that express numbers, as PyTorch's quantization of exported programs writes them (`quantized_decomposed`),
and products of integers of 8 bits."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.importers.emit import accumulation_type
from trivium.importers.pytorch.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, F64, I32, I64, ElementType

SMALLEST = 2.0**-23
"""The smallest step of a row, which is the distance of 1 from the next number."""


@rule("quantized_decomposed.quantize_per_tensor.default")
def quantize_per_tensor(
    ctx: Context, input: Value, scale: float, zero_point: int, quant_min: int, quant_max: int
) -> Value:
    """quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype)
    -> Tensor"""
    return _quantized(ctx, input, ctx.scalar(1 / scale, F32), ctx.scalar(zero_point, F32), quant_min, quant_max)


@rule("quantized_decomposed.quantize_per_tensor.tensor")
def quantize_per_tensor_tensor(
    ctx: Context, input: Value, scale: Value, zero_point: Value, quant_min: int, quant_max: int
) -> Value:
    """quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max,
    ScalarType dtype) -> Tensor"""
    # PyTorch reads the step as a number, of 64 bits.
    wide = ctx.convert(_only(ctx, scale), F64)
    inverse = ctx.convert(ctx.over(ctx.full_like(wide, 1), wide), F32)
    return _quantized(ctx, input, inverse, ctx.convert(_only(ctx, zero_point), F32), quant_min, quant_max)


@rule("quantized_decomposed.quantize_per_channel.default")
def quantize_per_channel(
    ctx: Context, input: Value, scales: Value, zero_points: Value, axis: int, quant_min: int, quant_max: int
) -> Value:
    """quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max,
    ScalarType dtype) -> Tensor"""
    inverse = ctx.over(ctx.full_like(scales, 1), scales)
    inverse, zero = _along(ctx, inverse, input, axis), _along(ctx, zero_points, input, axis)
    return _quantized(ctx, input, inverse, zero, quant_min, quant_max)


@rule("quantized_decomposed.quantize_per_token.default")
def quantize_per_token(
    ctx: Context, input: Value, scales: Value, zero_points: Value, quant_min: int, quant_max: int
) -> Value:
    """quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max,
    ScalarType dtype) -> Tensor"""
    product = _times(ctx, input, ctx.over(ctx.full_like(scales, 1), scales))
    found = ctx.add(ops.RoundNearestEven(ctx.plus(*ctx.promoted(product, zero_points))))
    return _clamped(ctx, found, quant_min, quant_max)


def _quantized(ctx: Context, x: Value, inverse: Value, zero: Value, low: int, high: int) -> Value:
    """Returns the nearest integers to `x * inverse`, moved by `zero`, from `low` to `high`."""
    product = _times(ctx, ctx.convert(x, F32), inverse)
    return _clamped(ctx, ctx.plus(*ctx.promoted(ctx.add(ops.RoundNearestEven(product)), zero)), low, high)


def _clamped(ctx: Context, x: Value, low: int, high: int) -> Value:
    ends = [ctx.scalar(end, x.type.element_type) for end in (low, high)]
    return ctx.convert(ctx.add(ops.Clamp(ends[0], x, ends[1])), ctx.result.element_type)


@rule("quantized_decomposed.dequantize_per_tensor.default", "quantized_decomposed.dequantize_per_tensor.tensor")
def dequantize_per_tensor(
    ctx: Context, input: Value, scale: Value | float, zero_point: Value | int, quant_min: int, quant_max: int,
    *, out_dtype: object = None,
) -> Value:  # fmt: skip
    """dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype,
    *, ScalarType? out_dtype=None) -> Tensor"""
    kind = ctx.result.element_type
    wide = accumulation_type(kind)
    scale, zero = (_number(ctx, scale, wide), _number(ctx, zero_point, kind))
    centered = ctx.minus(ctx.convert(input, kind), zero)
    return ctx.convert(ctx.times(ctx.convert(centered, wide), scale), kind)


def _number(ctx: Context, x: Value | float, kind: ElementType) -> Value:
    return ctx.convert(_only(ctx, x), kind) if isinstance(x, Value) else ctx.scalar(x, kind)


@rule("quantized_decomposed.dequantize_per_channel.default")
def dequantize_per_channel(
    ctx: Context, input: Value, scales: Value, zero_points: Value | None, axis: int, quant_min: int, quant_max: int,
    *, out_dtype: object = None,
) -> Value:  # fmt: skip
    """dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max,
    ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor"""
    zero = None if zero_points is None else _along(ctx, zero_points, input, axis)
    return _dequantized(ctx, input, _along(ctx, scales, input, axis), zero)


@rule("quantized_decomposed.dequantize_per_token.default")
def dequantize_per_token(
    ctx: Context, input: Value, scales: Value, zero_points: Value, quant_min: int, quant_max: int, dtype: object,
    output_dtype: object,
) -> Value:  # fmt: skip
    """dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType
    dtype, ScalarType output_dtype) -> Tensor"""
    return _dequantized(ctx, input, scales, zero_points)


@rule("quantized_decomposed.dequantize_per_channel_group.default")
def dequantize_per_channel_group(
    ctx: Context, w_int8: Value, scales: Value, zero_points: Value | None, quant_min: int, quant_max: int,
    dtype: object, group_size: int, output_dtype: object,
) -> Value:  # fmt: skip
    """dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max,
    ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor"""
    columns = w_int8.type.static_shape[-1]
    # One step for all columns is allowed for fewer of them than a group has.
    size = columns if group_size > columns and scales.type.static_shape[-1] == 1 else group_size
    grouped = ctx.reshape(w_int8, (w_int8.type.size // size, size))
    column = ctx.reshape(scales, (scales.type.size, 1))
    zero = None if zero_points is None else ctx.reshape(zero_points, (zero_points.type.size, 1))
    return ctx.reshape(_dequantized(ctx, grouped, column, zero), w_int8.type.static_shape)


def _dequantized(ctx: Context, x: Value, scales: Value, zero: Value | None) -> Value:
    """Returns `(x - zero) * scales`, of the type of the result."""
    centered = x if zero is None else ctx.minus(*ctx.promoted(x, zero))
    return ctx.convert(_times(ctx, centered, scales), ctx.result.element_type)


def _times(ctx: Context, a: Value, b: Value) -> Value:
    return ctx.times(*ctx.promoted(a, b))


def _only(ctx: Context, x: Value) -> Value:
    """Returns the only element of a tensor."""
    return ctx.reshape(x, ())


def _along(ctx: Context, x: Value, other: Value, axis: int) -> Value:
    """Returns a vector along an axis of another tensor."""
    return ctx.reshape(x, [x.type.shape[0] if d == axis % other.type.rank else 1 for d in range(other.type.rank)])


@rule("quantized_decomposed.choose_qparams.tensor", "quantized_decomposed.choose_qparams_symmetric.tensor")
def choose_qparams(ctx: Context, input: Value, quant_min: int, quant_max: int, eps: float) -> tuple[Value, Value]:
    """choose_qparams(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)"""
    every, nothing = range(input.type.rank), ctx.scalar_like(0, input)
    low, high = _ends(ctx, input, nothing, every, keep=False)
    least, unsigned = ctx.scalar_like(eps, input), quant_min >= 0
    if "symmetric" in ctx.op:
        largest = ctx.binary(ops.Maximum, ctx.add(ops.Negate(low)), high)
        scale = ctx.binary(ops.Maximum, ctx.over(largest, ctx.scalar_like((quant_max - quant_min) / 2, input)), least)
        zero = ctx.scalar(128 if unsigned else 0, I64)
    else:
        length = ctx.scalar_like(float(quant_max - quant_min), input)
        scale = ctx.binary(ops.Maximum, ctx.over(ctx.minus(high, low), length), least)
        steps = ctx.convert(ctx.add(ops.RoundNearestEven(ctx.over(low, scale))), I32)
        moved = ctx.convert(ctx.minus(ctx.scalar(quant_min, I32), steps), I64)
        zero = ctx.add(ops.Clamp(ctx.scalar(quant_min, I64), moved, ctx.scalar(quant_max, I64)))
    return ctx.reshape(ctx.convert(scale, F64), (1,)), ctx.reshape(zero, (1,))


@rule("quantized_decomposed._choose_qparams_per_token_asymmetric_impl.default")
def choose_qparams_per_token_asymmetric(ctx: Context, input: Value) -> tuple[Value, Value]:
    """_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)"""
    least, most = (ctx.scalar_like(end, input) for end in (-128, 127))
    low, high = _ends(ctx, input, ctx.scalar_like(0, input), [input.type.rank - 1], keep=True)
    scale = ctx.over(ctx.minus(high, low), ctx.scalar_like(255, input))
    scale = ctx.binary(ops.Maximum, scale, ctx.scalar_like(SMALLEST, input))
    below, above = ctx.over(low, scale), ctx.over(high, scale)
    error = ctx.plus(ctx.plus(below, least), ctx.plus(above, most))
    zero = ctx.select(
        ctx.compare("GT", error, ctx.full_like(error, 0)), ctx.minus(least, below), ctx.minus(most, above)
    )
    zero = ctx.add(ops.RoundNearestEven(ctx.add(ops.Clamp(least, zero, most))))
    return ctx.convert(scale, F64), ctx.convert(zero, I64)


def _ends(ctx: Context, x: Value, nothing: Value, dimensions: Sequence[int], keep: bool) -> tuple[Value, Value]:
    """Returns the smallest and the largest of the elements and zero."""
    low, high = (ctx.binary(op, ctx.reduce(op, x, dimensions, keep=keep), nothing) for op in (ops.Minimum, ops.Maximum))
    return low, high


@rule("aten._int_mm.default")
def int_mm(ctx: Context, x: Value, mat2: Value) -> Value:
    """_int_mm(Tensor self, Tensor mat2) -> Tensor"""
    return ctx.matmul(ctx.convert(x, I32), ctx.convert(mat2, I32))


@rule("aten._weight_int8pack_mm.default")
def weight_int8pack_mm(ctx: Context, x: Value, mat2: Value, scales: Value) -> Value:
    """_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor"""
    wide = [ctx.convert(value, F32) for value in (x, mat2, scales)]
    product = ctx.dot(wide[0], wide[1], ([1], [1]))
    return ctx.convert(ctx.times(product, wide[2]), ctx.result.element_type)
