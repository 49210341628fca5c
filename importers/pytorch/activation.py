"""Activation functions, with those gradients for which PyTorch has ops of their own."""

from __future__ import annotations

import math

from trivium.importers.emit import accumulation_type, in_single
from trivium.importers.pytorch.context import Context, Number, rule
from trivium.importers.pytorch.elementwise import clamp, clamp_min, conj
from trivium.ir import ops
from trivium.ir.core import Value


@rule("aten.relu.default")
def relu(ctx: Context, x: Value) -> Value:
    """relu(Tensor self) -> Tensor"""
    return clamp_min(ctx, x, 0)


@rule("aten.hardtanh.default", "aten.relu6.default")
def hardtanh(ctx: Context, x: Value, min_val: Number = -1, max_val: Number = 1) -> Value:
    """hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor"""
    low, high = (0, 6) if "relu6" in ctx.op else (min_val, max_val)
    return clamp(ctx, x, low, high)


@rule("aten.hardtanh_backward.default")
def hardtanh_backward(ctx: Context, grad_output: Value, x: Value, min_val: Number, max_val: Number) -> Value:
    """hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor"""
    inside = ctx.binary(
        ops.And, ctx.compare("GT", x, ctx.scalar_like(min_val, x)), ctx.compare("LT", x, ctx.scalar_like(max_val, x))
    )
    return ctx.select(inside, grad_output, ctx.full_like(grad_output, 0))


@rule("aten.threshold.default")
def threshold(ctx: Context, x: Value, threshold: Number, value: Number) -> Value:
    """threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor"""
    return ctx.select(ctx.compare("LE", x, ctx.scalar_like(threshold, x)), ctx.scalar_like(value, x), x)


@rule("aten.threshold_backward.default")
def threshold_backward(ctx: Context, grad_output: Value, x: Value, threshold: Number) -> Value:
    """threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor"""
    stopped = ctx.compare("LE", x, ctx.scalar_like(threshold, x))
    return ctx.select(stopped, ctx.full_like(grad_output, 0), grad_output)


@rule("aten.leaky_relu.default")
@in_single
def leaky_relu(ctx: Context, x: Value, negative_slope: Number = 0.01) -> Value:
    """leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor"""
    return ctx.select(ctx.compare("GT", x, ctx.scalar_like(0, x)), x, ctx.times(x, ctx.scalar_like(negative_slope, x)))


@rule("aten.elu.default")
@in_single
def elu(ctx: Context, x: Value, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Value:
    """elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor"""
    below = ctx.add(ops.ExponentialMinusOne(ctx.times(x, ctx.scalar_like(input_scale, x))))
    below = ctx.times(below, ctx.scalar_like(alpha * scale, x))
    return ctx.select(ctx.compare("GT", x, ctx.scalar_like(0, x)), ctx.times(x, ctx.scalar_like(scale, x)), below)


@rule("aten.gelu.default")
@in_single
def gelu(ctx: Context, x: Value, *, approximate: str = "none") -> Value:
    """gelu(Tensor self, *, str approximate="none") -> Tensor"""
    return ctx.times(x, _gelu_gate(ctx, x, approximate)[0])


@rule("aten.gelu_backward.default")
@in_single
def gelu_backward(ctx: Context, grad_output: Value, x: Value, *, approximate: str = "none") -> Value:
    """gelu_backward(Tensor grad_output, Tensor self, *, str approximate="none") -> Tensor"""
    gate, slope = _gelu_gate(ctx, x, approximate)
    return ctx.times(grad_output, ctx.plus(gate, ctx.times(x, slope)))


def _gelu_gate(ctx: Context, x: Value, approximate: str) -> tuple[Value, Value]:
    """Returns the factor of `x` in the gelu, and its derivative."""
    if approximate == "none":
        gate = ctx.scaled(ctx.plus(ctx.add(ops.Erf(ctx.scaled(x, math.sqrt(0.5)))), ctx.scalar_like(1, x)), 0.5)
        bell = ctx.add(ops.Exponential(ctx.scaled(ctx.times(x, x), -0.5)))
        return gate, ctx.scaled(bell, 1 / math.sqrt(2 * math.pi))
    cubic, scale = 0.044715, math.sqrt(2 / math.pi)
    square = ctx.times(x, x)
    inner = ctx.scaled(ctx.plus(x, ctx.scaled(ctx.times(square, x), cubic)), scale)
    tanh = ctx.add(ops.Tanh(inner))
    gate = ctx.scaled(ctx.plus(tanh, ctx.scalar_like(1, x)), 0.5)
    rise = ctx.scaled(ctx.minus(ctx.scalar_like(1, x), ctx.times(tanh, tanh)), 0.5 * scale)
    return gate, ctx.times(rise, ctx.plus(ctx.scaled(square, 3 * cubic), ctx.scalar_like(1, x)))


@rule("aten.silu.default")
@in_single
def silu(ctx: Context, x: Value) -> Value:
    """silu(Tensor self) -> Tensor"""
    return ctx.times(x, ctx.add(ops.Logistic(x)))


@rule("aten.hardsigmoid.default", "aten.hardswish.default")
@in_single
def hardsigmoid(ctx: Context, x: Value) -> Value:
    """hardsigmoid(Tensor self) -> Tensor"""
    shifted = ctx.plus(x, ctx.scalar_like(3, x))
    gate = ctx.add(ops.Clamp(ctx.scalar_like(0, x), shifted, ctx.scalar_like(6, x)))
    return ctx.over(ctx.times(x, gate) if "swish" in ctx.op else gate, ctx.scalar_like(6, x))


@rule("aten.softplus.default")
@in_single
def softplus(ctx: Context, x: Value, beta: Number = 1, threshold: Number = 20) -> Value:
    """softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor"""
    steep = ctx.times(x, ctx.scalar_like(beta, x))
    soft = ctx.over(ctx.add(ops.LogPlusOne(ctx.add(ops.Exponential(steep)))), ctx.scalar_like(beta, x))
    return ctx.select(ctx.compare("GT", steep, ctx.scalar_like(threshold, x)), x, soft)


@rule("aten.log_sigmoid.default")
@in_single
def log_sigmoid(ctx: Context, x: Value) -> Value:
    """log_sigmoid(Tensor self) -> Tensor"""
    # min(x, 0) - log(1 + exp(-|x|)) never overflows.
    tail = ctx.add(ops.LogPlusOne(ctx.add(ops.Exponential(ctx.add(ops.Negate(ctx.add(ops.Abs(x))))))))
    return ctx.minus(ctx.binary(ops.Minimum, x, ctx.scalar_like(0, x)), tail)


@rule("aten.tanh_backward.default")
@in_single
def tanh_backward(ctx: Context, grad_output: Value, output: Value) -> Value:
    """tanh_backward(Tensor grad_output, Tensor output) -> Tensor"""
    return ctx.times(grad_output, conj(ctx, ctx.minus(ctx.scalar_like(1, output), ctx.times(output, output))))


@rule("aten.sigmoid_backward.default")
@in_single
def sigmoid_backward(ctx: Context, grad_output: Value, output: Value) -> Value:
    """sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor"""
    return ctx.times(
        ctx.times(grad_output, conj(ctx, ctx.minus(ctx.scalar_like(1, output), output))), conj(ctx, output)
    )


@rule("aten._softmax_backward_data.default", "aten._log_softmax_backward_data.default")
def softmax_backward(ctx: Context, grad_output: Value, output: Value, dim: int, input_dtype: object) -> Value:
    """_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor"""
    over = (dim % output.type.rank,) if output.type.rank else ()
    wide = accumulation_type(output.type.element_type)
    grad_output, output = ctx.convert(grad_output, wide), ctx.convert(output, wide)
    if "log" in ctx.op:
        total = ctx.reduce(ops.Add, grad_output, over, keep=True)
        gradient = ctx.minus(grad_output, ctx.times(ctx.add(ops.Exponential(output)), total))
    else:
        weighted = ctx.times(grad_output, output)
        gradient = ctx.minus(weighted, ctx.times(output, ctx.reduce(ops.Add, weighted, over, keep=True)))
    return ctx.convert(gradient, ctx.result.element_type)
