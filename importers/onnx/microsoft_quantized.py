"""Quantized operators of ONNX Runtime: integers with a scale and a zero point. Elementwise ones and pools compute with
the numbers that integers express; products of integers stay integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trivium.importers.onnx.context import Context, axis_of, rule
from trivium.importers.onnx.elementwise import leaky_relu, softmax
from trivium.importers.onnx.pooling import average_pool
from trivium.importers.onnx.quantization import centered, matmul_integer, qlinear_conv, quantized
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I32, UI8


def _expressed(ctx: Context, x: Value, scale: Value, zero: Value | None) -> Value:
    """Returns the numbers that integers express."""
    shift = None if zero is None else ctx.reshape(zero, ())
    return ctx.times(ctx.convert(centered(ctx, x, shift), F32), ctx.reshape(scale, ()))


def _stored(ctx: Context, x: Value, scale: Value, zero: Value | None, like: Value) -> Value:
    """Returns the integers that express numbers, of the type of `like`."""
    shift = None if zero is None else ctx.reshape(zero, ())
    return quantized(ctx, ctx.over(x, ctx.reshape(scale, ())), shift, like.type.element_type)


@rule("com.microsoft::QLinearAdd", "com.microsoft::QLinearMul")
def binary(
    ctx: Context, a: Value, a_scale: Value, a_zero: Value | None, b: Value, b_scale: Value, b_zero: Value | None,
    scale: Value, zero: Value | None = None,
) -> Value:  # fmt: skip
    """QLinearAdd(A, A_scale, A_zero_point, B, B_scale, B_zero_point, C_scale, C_zero_point)"""
    op = ctx.plus if ctx.op.endswith("Add") else ctx.times
    return _stored(ctx, op(_expressed(ctx, a, a_scale, a_zero), _expressed(ctx, b, b_scale, b_zero)), scale, zero, a)


Computed = Callable[[Value], Value]


def _between(
    ctx: Context, x: Value, given: tuple[Value, Value | None], made: tuple[Value, Value | None], compute: Computed
) -> Value:
    """Computes with the numbers that `x` expresses by a scale and a zero point, and expresses the result by others."""
    return _stored(ctx, compute(_expressed(ctx, x, *given)), *made, x)


@rule("com.microsoft::QLinearSigmoid")
def sigmoid(
    ctx: Context, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None
) -> Value:
    """QLinearSigmoid(X, X_scale, X_zero_point, Y_scale, Y_zero_point)"""
    return _between(ctx, x, (x_scale, x_zero), (scale, zero), lambda numbers: ctx.add(ops.Logistic(numbers)))


@rule("com.microsoft::QLinearLeakyRelu")
def quantized_leaky_relu(
    ctx: Context, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None,
    alpha: float = 0.01,
) -> Value:  # fmt: skip
    """QLinearLeakyRelu(X, X_scale, X_zero_point, Y_scale, Y_zero_point, alpha)"""
    return _between(ctx, x, (x_scale, x_zero), (scale, zero), lambda numbers: leaky_relu(ctx, numbers, alpha))


@rule("com.microsoft::QLinearSoftmax")
def quantized_softmax(
    ctx: Context, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value, axis: int = -1,
    opset: int = 13,
) -> Value:  # fmt: skip
    """QLinearSoftmax(X, X_scale, x_zero_point, y_scale, y_zero_point, axis, opset)"""
    axis = axis_of(axis, x.type.rank)
    if opset < 13 and axis != x.type.rank - 1:
        ctx.unsupported("axis", axis, "the last dimension in operator sets before 13")
    return _between(ctx, x, (x_scale, x_zero), (scale, zero), lambda numbers: softmax(ctx, numbers, axis))


@rule("com.microsoft::QLinearAveragePool")
def quantized_average_pool(
    ctx: Context, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None,
    channels_last: int = 0, **options: Any,
) -> Value:  # fmt: skip
    """QLinearAveragePool(X, x_scale, x_zero_point, y_scale, y_zero_point, ...)"""

    def pooled(numbers: Value) -> Value:
        first = average_pool(ctx, _channels_first(ctx, numbers, channels_last), **options)
        return _channels_last(ctx, first, channels_last)

    return _between(ctx, x, (x_scale, x_zero), (scale, zero), pooled)


@rule("com.microsoft::QLinearGlobalAveragePool")
def quantized_global_average_pool(
    ctx: Context, x: Value, x_scale: Value, x_zero: Value, scale: Value, zero: Value, channels_last: int = 0
) -> Value:
    """QLinearGlobalAveragePool(X, x_scale, x_zero_point, y_scale, y_zero_point, channels_last)"""
    space = list(range(1, x.type.rank - 1) if channels_last else range(2, x.type.rank))
    return _between(ctx, x, (x_scale, x_zero), (scale, zero), lambda numbers: ctx.mean(numbers, space, keep=True))


def _channels_first(ctx: Context, x: Value, is_last: int) -> Value:
    return ctx.transpose(x, [0, x.type.rank - 1, *range(1, x.type.rank - 1)]) if is_last else x


def _channels_last(ctx: Context, x: Value, is_last: int) -> Value:
    return ctx.transpose(x, [0, *range(2, x.type.rank), 1]) if is_last else x


@rule("com.microsoft::QLinearConcat")
def quantized_concat(ctx: Context, scale: Value, zero: Value, *inputs: Value, axis: int) -> Value:
    """QLinearConcat(Y_scale, Y_zero_point, (tensor, scale, zero_point)..., axis)"""
    given = zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    parts = [_stored(ctx, _expressed(ctx, *part), scale, zero, zero) for part in given]
    return ctx.concatenate(parts, axis_of(axis, parts[0].type.rank))


@rule("com.microsoft::QLinearWhere")
def quantized_where(
    ctx: Context, condition: Value, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value, y_zero: Value,
    scale: Value, zero: Value,
) -> Value:  # fmt: skip
    """QLinearWhere(condition, X, x_scale, x_zero_point, Y, y_scale, y_zero_point, z_scale, z_zero_point)"""
    chosen = ctx.select(condition, _expressed(ctx, x, x_scale, x_zero), _expressed(ctx, y, y_scale, y_zero))
    return _stored(ctx, chosen, scale, zero, x)


# Products


@rule("com.microsoft::QLinearConv")
def convolution(ctx: Context, *operands: Value, channels_last: int = 0, **options: Any) -> Value:
    """QLinearConv(x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B, channels_last, ...)"""
    x, *rest = operands
    found = qlinear_conv(ctx, _channels_first(ctx, x, channels_last), *rest, **options)
    return _channels_last(ctx, found, channels_last)


@rule("com.microsoft::QGemm")
def quantized_gemm(
    ctx: Context, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value,
    c: Value | None = None, scale: Value | None = None, zero: Value | None = None, alpha: float = 1.0,
    transA: int = 0, transB: int = 0,
) -> Value:  # fmt: skip
    """QGemm(A, a_scale, a_zero_point, B, b_scale, b_zero_point, C, y_scale, y_zero_point, alpha, transA, transB)"""
    a, b = ctx.transpose(a, [1, 0]) if transA else a, ctx.transpose(b, [1, 0]) if transB else b
    total = matmul_integer(ctx, a, b, a_zero, b_zero)
    total = total if c is None else ctx.plus(total, c)
    numbers = ctx.times(ctx.convert(total, F32), ctx.scaled(ctx.times(a_scale, b_scale), alpha))
    if scale is None:
        return numbers
    return _stored(ctx, numbers, scale, zero, a if zero is None else zero)


@rule("com.microsoft::MatMulIntegerToFloat")
def matmul_integer_to_float(
    ctx: Context, a: Value, b: Value, a_scale: Value, b_scale: Value, a_zero: Value | None = None,
    b_zero: Value | None = None, bias: Value | None = None,
) -> Value:  # fmt: skip
    """MatMulIntegerToFloat(A, B, a_scale, b_scale, a_zero_point, b_zero_point, bias)"""
    product = ctx.convert(matmul_integer(ctx, a, b, a_zero, b_zero), F32)
    product = ctx.times(product, ctx.times(a_scale, b_scale))
    return product if bias is None else ctx.plus(product, bias)


@rule("com.microsoft::DynamicQuantizeMatMul")
def dynamic_quantize_matmul(
    ctx: Context, a: Value, b: Value, b_scale: Value, b_zero: Value | None = None, bias: Value | None = None
) -> Value:
    """DynamicQuantizeMatMul(A, B, b_scale, b_zero_point, bias): A is expressed by integers of 8 bits first"""
    ends = [ctx.reduce(op, a, list(range(a.type.rank))) for op in (ops.Minimum, ops.Maximum)]
    nothing = ctx.scalar(0, F32)
    low, high = ctx.binary(ops.Minimum, ends[0], nothing), ctx.binary(ops.Maximum, ends[1], nothing)
    step = ctx.scaled(ctx.minus(high, low), 1 / 255)
    step = ctx.select(ctx.compare("EQ", step, nothing), ctx.scalar(1, F32), step)
    zero = quantized(ctx, ctx.over(ctx.add(ops.Negate(low)), step), None, UI8)
    integers = quantized(ctx, ctx.over(a, step), ctx.convert(zero, I32), UI8)
    return matmul_integer_to_float(ctx, integers, b, step, b_scale, zero, b_zero, bias)
