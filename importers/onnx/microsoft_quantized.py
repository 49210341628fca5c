"""Quantized operators of ONNX Runtime: integers with a scale and a zero point. Elementwise ones and pools compute with
the numbers that integers express; products of integers stay integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from trivium.importers.onnx.context import Context, axis_of, rule
from trivium.importers.onnx.elementwise import leaky_relu, softmax
from trivium.importers.onnx.pooling import average_pool, max_pool
from trivium.importers.onnx.quantization import centered, matmul_integer, qlinear_conv, quantized
from trivium.importers.onnx.recurrent import (
    LSTM,
    Layer,
    Sizes,
    Step,
    direction_of,
    functions_of,
    lstm_step,
    require_sizes,
    run,
)
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I32, I64, UI8


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


@rule("com.microsoft::NhwcMaxPool")
def max_pool_of_channels_last(ctx: Context, x: Value, **options: Any) -> Value:
    """NhwcMaxPool(x, kernel_shape, ...): MaxPool of an image with its channels last"""
    found = max_pool(ctx, _channels_first(ctx, x, 1), **options)
    assert isinstance(found, Value)
    return _channels_last(ctx, found, 1)


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
    integers, step, zero = quantized_now(ctx, a)
    return matmul_integer_to_float(ctx, integers, b, step, b_scale, zero, b_zero, bias)


def quantized_now(ctx: Context, x: Value) -> tuple[Value, Value, Value]:
    """Returns numbers as integers of 8 bits whose range, which contains zero, is that of the numbers, and the scale and
    the zero point of these."""
    ends = [ctx.reduce(op, x, list(range(x.type.rank))) for op in (ops.Minimum, ops.Maximum)]
    nothing = ctx.scalar(0, F32)
    low, high = ctx.binary(ops.Minimum, ends[0], nothing), ctx.binary(ops.Maximum, ends[1], nothing)
    step = ctx.scaled(ctx.minus(high, low), 1 / 255)
    step = ctx.select(ctx.compare("EQ", step, nothing), ctx.scalar(1, F32), step)
    zero = quantized(ctx, ctx.over(ctx.add(ops.Negate(low)), step), None, UI8)
    return quantized(ctx, ctx.over(x, step), ctx.convert(zero, I32), UI8), step, zero


@rule("com.microsoft::DynamicQuantizeLSTM")
def dynamic_quantize_lstm(
    ctx: Context, x: Value, w: Value, r: Value, bias: Value | None, lengths: Value | None, hidden: Value | None,
    cell: Value | None, peepholes: Value | None, w_scale: Value, w_zero: Value, r_scale: Value, r_zero: Value,
    activation_alpha: Sequence[float] | None = None, activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None, clip: float | None = None, direction: str = "forward",
    hidden_size: int | None = None, input_forget: int = 0,
) -> Sequence[Value]:  # fmt: skip
    """DynamicQuantizeLSTM(X, W, R, B, sequence_lens, initial_h, initial_c, P, W_scale, W_zero_point, R_scale,
    R_zero_point, ...): the rows of all times, and the output of each, are expressed by integers of 8 bits first"""
    functions = functions_of(ctx, activations, LSTM, w, activation_alpha, activation_beta)
    of_gates = [ctx.transpose(weights, [0, 2, 1]) for weights in (w, r)]
    layer = Layer(direction, functions, clip, of_gates[0], of_gates[1], bias, lengths)
    require_sizes(ctx, layer, x, Sizes(4, hidden_size, [hidden, cell], peepholes))
    count, size = w.type.static_shape[0], w.type.static_shape[2]
    if bias is None:
        layer = replace(layer, bias=ctx.full([count, 2 * size], 0, F32))
    integers, step, zero = quantized_now(ctx, _until(ctx, x, lengths))

    def product(emit: Context, rows: tuple[Value, Value, Value], index: int, of: tuple[Value, Value, Value]) -> Value:
        weights, scale, shift = (direction_of(emit, part, index) for part in of)
        return matmul_integer_to_float(emit, rows[0], weights, rows[1], scale, rows[2], shift)

    given = [product(ctx, (integers, step, zero), index, (w, w_scale, w_zero)) for index in range(count)]

    def make(ctx: Context, index: int) -> Step:
        def gates(emit: Context, row: Value, hidden: Value) -> Value:
            own = emit.slice(row, 1, index * size, (index + 1) * size)
            return emit.plus(own, product(emit, quantized_now(emit, hidden), index, (r, r_scale, r_zero)))

        return lstm_step(ctx, layer, index, gates, peepholes, input_forget)

    return run(ctx, layer, ctx.concatenate(given, 2), [hidden, cell], make)


def _until(ctx: Context, x: Value, lengths: Value | None) -> Value:
    """Returns rows [time, batch, ...] with zeros after the end of the longest sequence."""
    if lengths is None:
        return x
    end = ctx.reduce(ops.Maximum, ctx.convert(lengths, I64), [0])
    return ctx.select(ctx.compare("LT", ctx.iota_like(x, 0), end), x, ctx.full_like(x, 0))
