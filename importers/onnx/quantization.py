"""Quantized tensors: integers (or narrow floats) with a scale and a zero point. Products of integers stay integers:
they are summed in 32 bits and scaled once."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.importers.emit import integer_range
from trivium.importers.onnx.cast import converted
from trivium.importers.onnx.context import Context, axis_of, element_type, rule
from trivium.importers.onnx.contraction import conv, matmul
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, F64, I32, UI8, ElementType, IntegerType, is_float


@rule("QuantizeLinear", "com.microsoft::QuantizeLinear")
def quantize_linear(
    ctx: Context, x: Value, scale: Value, zero: Value | None = None, axis: int = 1, block_size: int = 0,
    output_dtype: int = 0, precision: int = 0, saturate: int = 1,
) -> Value:  # fmt: skip
    """QuantizeLinear(x, y_scale, y_zero_point, axis, block_size, output_dtype, precision, saturate)"""
    kind = zero.type.element_type if zero is not None else element_type(output_dtype) if output_dtype else UI8
    steps = _spread(ctx, scale, x, axis, block_size)
    wide = element_type(precision) if precision else _common_kind(x, scale)
    quotient = ctx.over(ctx.convert(x, wide), ctx.convert(steps, wide))
    shift = None if zero is None else _spread(ctx, zero, x, axis, block_size)
    return quantized(ctx, quotient, shift, kind, bool(saturate))


def _common_kind(x: Value, scale: Value) -> ElementType:
    kinds = (x.type.element_type, scale.type.element_type)
    return kinds[1] if kinds[0] is kinds[1] and is_float(kinds[1]) else F64 if F64 in kinds else F32


def quantized(ctx: Context, x: Value, zero: Value | None, kind: ElementType, saturate: bool = True) -> Value:
    """Returns the numbers of steps `x`, moved by the zero point, in the element type `kind`, at most its limits."""
    if not isinstance(kind, IntegerType):
        return converted(ctx, x, kind, saturate, "up")
    wide = ctx.convert(ctx.add(ops.RoundNearestEven(x)), F32)
    if zero is not None:
        wide = ctx.plus(wide, ctx.convert(zero, F32))
    low, high = (ctx.scalar(bound, F32) for bound in integer_range(kind))
    return converted(ctx, ctx.add(ops.Clamp(low, wide, high)), kind, True, "up")


@rule("DequantizeLinear", "com.microsoft::DequantizeLinear")
def dequantize_linear(
    ctx: Context, x: Value, scale: Value, zero: Value | None = None, axis: int = 1, block_size: int = 0,
    output_dtype: int = 0,
) -> Value:  # fmt: skip
    """DequantizeLinear(x, x_scale, x_zero_point, axis, block_size, output_dtype)"""
    kind = element_type(output_dtype) if output_dtype else scale.type.element_type
    steps = ctx.convert(_spread(ctx, scale, x, axis, block_size), F32)
    shift = None if zero is None else _spread(ctx, zero, x, axis, block_size)
    return ctx.convert(ctx.times(ctx.convert(centered(ctx, x, shift), F32), steps), kind)


def centered(ctx: Context, x: Value, zero: Value | None) -> Value:
    """Returns `x` less its zero point, as integers of 32 bits if it has integers."""
    wide = I32 if isinstance(x.type.element_type, IntegerType) else F32
    x = ctx.convert(x, wide)
    return x if zero is None else ctx.minus(x, ctx.convert(zero, wide))


def _spread(ctx: Context, x: Value, like: Value, axis: int, block: int) -> Value:
    """Returns scales, or zero points, in a shape that is broadcast to that of `like`: one for all elements, one for
    each index along `axis`, or one for each block of indices."""
    if x.type.size == 1 and not block:
        return ctx.reshape(x, ())
    axis = axis_of(axis, like.type.rank)
    if not block:
        return ctx.reshape(x, (x.type.size, *[1] * (like.type.rank - 1 - axis)))
    shape = list(x.type.static_shape)
    repeated = ctx.broadcast_in_dim(
        x, (*shape[: axis + 1], block, *shape[axis + 1 :]), [d for d in range(len(shape) + 1) if d != axis + 1]
    )
    shape[axis] *= block
    return ctx.slice(ctx.reshape(repeated, shape), axis, 0, ctx.extent(like, axis))


@rule("MatMulInteger")
def matmul_integer(ctx: Context, a: Value, b: Value, a_zero: Value | None = None, b_zero: Value | None = None) -> Value:
    """MatMulInteger(A, B, a_zero_point, b_zero_point): in 32 bits"""
    return matmul(ctx, centered(ctx, a, _rows(ctx, a_zero, a)), centered(ctx, b, b_zero))


def _rows(ctx: Context, x: Value | None, a: Value) -> Value | None:
    """Returns numbers for the rows of a left matrix, in a shape that is broadcast to its own."""
    if x is None or x.type.rank != 1 or x.type.shape == (1,):
        return x
    return ctx.unsqueeze(x, [1])


@rule("QLinearMatMul")
def qlinear_matmul(
    ctx: Context, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value, scale: Value,
    zero: Value,
) -> Value:  # fmt: skip
    """QLinearMatMul(a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point)"""
    product = matmul_integer(ctx, a, b, a_zero, b_zero)
    rows = _rows(ctx, a_scale, a)
    assert rows is not None
    return _rescaled(ctx, product, (rows, b_scale, scale), zero)


def _rescaled(ctx: Context, x: Value, scales: tuple[Value, Value, Value], zero: Value) -> Value:
    """Returns sums of products in the scale of the result."""
    left, right, result = (ctx.convert(scale, F32) for scale in scales)
    factor = ctx.over(ctx.times(left, right), result)
    return quantized(ctx, ctx.times(ctx.convert(x, F32), factor), zero, zero.type.element_type)


@rule("ConvInteger")
def conv_integer(
    ctx: Context, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None,
    auto_pad: str = "NOTSET", dilations: Sequence[int] | None = None, group: int = 1,
    kernel_shape: Sequence[int] | None = None, pads: Sequence[int] | None = None, strides: Sequence[int] | None = None,
) -> Value:  # fmt: skip
    """ConvInteger(x, w, x_zero_point, w_zero_point, ...): in 32 bits"""
    x = centered(ctx, x, None if x_zero is None else ctx.reshape(x_zero, ()))
    w = centered(ctx, w, _filters(ctx, w_zero, w))
    return conv(ctx, x, w, None, auto_pad, dilations, group, kernel_shape, pads, strides)


def _filters(ctx: Context, x: Value | None, w: Value) -> Value | None:
    """Returns numbers for the output channels of a filter, in a shape that is broadcast to its own."""
    return None if x is None else ctx.reshape(x, (x.type.size, *[1] * (w.type.rank - 1)))


@rule("QLinearConv")
def qlinear_conv(
    ctx: Context, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value, scale: Value,
    zero: Value, bias: Value | None = None, **options: object,
) -> Value:  # fmt: skip
    """QLinearConv(x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B, ...)"""
    sums = conv_integer(ctx, x, w, x_zero, w_zero, **options)  # type: ignore[arg-type]
    behind = [1] * (x.type.rank - 2)
    if bias is not None:
        sums = ctx.plus(sums, ctx.reshape(bias, (bias.type.size, *behind)))
    of_channels = ctx.reshape(w_scale, (w_scale.type.size, *behind))
    scales = (ctx.reshape(x_scale, ()), of_channels, ctx.reshape(scale, ()))
    return _rescaled(ctx, sums, scales, ctx.reshape(zero, ()))
