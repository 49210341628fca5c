"""Layers: biases, activations, normalization and losses, with their gradients."""

from __future__ import annotations

import math

from trivium.importers.extents import Extent, larger
from trivium.importers.tensorflow.context import Context, Known, Operand, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32

# Biases


@rule("BiasAdd", "BiasAddV1")
def bias_add(ctx: Context, value: Value, bias: Value, *, data_format: str = "NHWC") -> Value:
    """BiasAdd(value, bias; data_format="NHWC") -> output"""
    return ctx.plus(value, ctx.broadcast_in_dim(bias, ctx.extents(value), [_channel(value, data_format)]))


@rule("BiasAddGrad")
def bias_add_grad(ctx: Context, out_backprop: Value, *, data_format: str) -> Value:
    """BiasAddGrad(out_backprop; data_format="NHWC") -> output"""
    channel = _channel(out_backprop, data_format)
    return ctx.reduce(ops.Add, out_backprop, [d for d in range(out_backprop.type.rank) if d != channel])


def _channel(x: Value, data_format: str) -> int:
    return 1 if data_format.startswith("NC") else x.type.rank - 1


# Activations


@rule("Relu")
def relu(ctx: Context, features: Value) -> Value:
    """Relu(features) -> activations"""
    return ctx.binary(ops.Maximum, features, ctx.constant_like(features, 0))


@rule("Relu6")
def relu6(ctx: Context, features: Value) -> Value:
    """Relu6(features) -> activations"""
    return ctx.binary(ops.Minimum, relu(ctx, features), ctx.constant_like(features, 6))


@rule("LeakyRelu")
def leaky_relu(ctx: Context, features: Value, *, alpha: float) -> Value:
    """LeakyRelu(features; alpha=0.2) -> activations"""
    return ctx.select(_positive(ctx, features), features, ctx.scaled(features, alpha))


@rule("Elu")
def elu(ctx: Context, features: Value) -> Value:
    """Elu(features) -> activations"""
    return ctx.select(_positive(ctx, features), features, ctx.add(ops.ExponentialMinusOne(features)))


SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.7580993408473768599402175208123
"""The constants of Klambauer et al. 2017: lambda, and lambda times alpha."""


@rule("Selu")
def selu(ctx: Context, features: Value) -> Value:
    """Selu(features) -> activations"""
    below = ctx.scaled(ctx.add(ops.ExponentialMinusOne(features)), SELU_ALPHA)
    return ctx.select(_positive(ctx, features), ctx.scaled(features, SELU_SCALE), below)


@rule("Softplus")
def softplus(ctx: Context, features: Value) -> Value:
    """Softplus(features) -> activations"""
    small = ctx.add(ops.Exponential(ctx.add(ops.Negate(ctx.add(ops.Abs(features))))))
    return ctx.plus(relu(ctx, features), ctx.add(ops.LogPlusOne(small)))


@rule("Softsign")
def softsign(ctx: Context, features: Value) -> Value:
    """Softsign(features) -> activations"""
    return ctx.over(features, ctx.plus(ctx.add(ops.Abs(features)), ctx.constant_like(features, 1)))


@rule("Softmax")
def softmax(ctx: Context, logits: Value) -> Value:
    """Softmax(logits) -> softmax"""
    powers = ctx.add(ops.Exponential(_below_largest(ctx, logits)))
    return ctx.over(powers, ctx.reduce(ops.Add, powers, [logits.type.rank - 1], keep=True))


@rule("LogSoftmax")
def log_softmax(ctx: Context, logits: Value) -> Value:
    """LogSoftmax(logits) -> logsoftmax"""
    shifted = _below_largest(ctx, logits)
    total = ctx.reduce(ops.Add, ctx.add(ops.Exponential(shifted)), [logits.type.rank - 1], keep=True)
    return ctx.minus(shifted, ctx.add(ops.Log(total)))


def _below_largest(ctx: Context, x: Value) -> Value:
    return ctx.minus(x, ctx.reduce(ops.Maximum, x, [x.type.rank - 1], keep=True))


def _positive(ctx: Context, x: Value) -> Value:
    return ctx.compare("GT", x, ctx.constant_like(x, 0))


# Their gradients


def _where(ctx: Context, inside: Value, gradients: Value) -> Value:
    """Returns the gradients inside, and zero outside unless they are not finite: TensorFlow's kernels multiply."""
    return ctx.times(gradients, ctx.convert(inside, gradients.type.element_type))


@rule("ReluGrad")
def relu_grad(ctx: Context, gradients: Value, features: Value) -> Value:
    """ReluGrad(gradients, features) -> backprops"""
    return _where(ctx, _positive(ctx, features), gradients)


@rule("Relu6Grad")
def relu6_grad(ctx: Context, gradients: Value, features: Value) -> Value:
    """Relu6Grad(gradients, features) -> backprops"""
    inside = ctx.add(ops.And(_positive(ctx, features), ctx.compare("LT", features, ctx.constant_like(features, 6))))
    return _where(ctx, inside, gradients)


@rule("LeakyReluGrad")
def leaky_relu_grad(ctx: Context, gradients: Value, features: Value, *, alpha: float) -> Value:
    """LeakyReluGrad(gradients, features; alpha=0.2) -> backprops"""
    return ctx.select(_positive(ctx, features), gradients, ctx.scaled(gradients, alpha))


@rule("EluGrad")
def elu_grad(ctx: Context, gradients: Value, outputs: Value) -> Value:
    """EluGrad(gradients, outputs) -> backprops"""
    below = ctx.times(gradients, ctx.plus(outputs, ctx.constant_like(outputs, 1)))
    return ctx.select(ctx.compare("LT", outputs, ctx.constant_like(outputs, 0)), below, gradients)


@rule("SeluGrad")
def selu_grad(ctx: Context, gradients: Value, outputs: Value) -> Value:
    """SeluGrad(gradients, outputs) -> backprops"""
    below = ctx.times(gradients, ctx.plus(outputs, ctx.constant_like(outputs, SELU_ALPHA)))
    is_below = ctx.compare("LT", outputs, ctx.constant_like(outputs, 0))
    return ctx.select(is_below, below, ctx.scaled(gradients, SELU_SCALE))


@rule("SoftplusGrad")
def softplus_grad(ctx: Context, gradients: Value, features: Value) -> Value:
    """SoftplusGrad(gradients, features) -> backprops"""
    return ctx.times(gradients, ctx.add(ops.Logistic(features)))


@rule("SoftsignGrad")
def softsign_grad(ctx: Context, gradients: Value, features: Value) -> Value:
    """SoftsignGrad(gradients, features) -> backprops"""
    around = ctx.plus(ctx.add(ops.Abs(features)), ctx.constant_like(features, 1))
    return ctx.over(gradients, ctx.times(around, around))


# Losses


@rule("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(ctx: Context, features: Value, labels: Value) -> tuple[Value, Value]:
    """SoftmaxCrossEntropyWithLogits(features, labels) -> loss, backprop"""
    features, labels = ctx.aligned(features, labels)
    logs = log_softmax(ctx, features)
    # A label of zero counts nothing, even if the logarithm is infinite.
    zero = ctx.constant_like(logs, 0)
    terms = ctx.select(ctx.compare("EQ", labels, zero), zero, ctx.times(labels, logs))
    loss = ctx.add(ops.Negate(ctx.reduce(ops.Add, terms, [1])))
    return loss, ctx.minus(ctx.add(ops.Exponential(logs)), labels)


@rule("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(ctx: Context, features: Value, labels: Value) -> tuple[Value, Value]:
    """SparseSoftmaxCrossEntropyWithLogits(features, labels) -> loss, backprop"""
    logs = log_softmax(ctx, features)
    kind = labels.type.element_type
    column = ctx.unsqueeze(labels, [1])
    at = ctx.compare("EQ", column, ctx.iota(ctx.extents(features), 1, kind))
    zero = ctx.constant_like(logs, 0)
    loss = ctx.add(ops.Negate(ctx.reduce(ops.Add, ctx.select(at, logs, zero), [1])))
    backprop = ctx.minus(ctx.add(ops.Exponential(logs)), ctx.convert(at, logs.type.element_type))
    # A label outside the classes results in NaN, as in TensorFlow's CPU kernels under XLA.
    inside = ctx.reduce(ops.Or, at, [1])
    nan = ctx.constant_like(logs, math.nan)
    return ctx.select(inside, loss, nan), ctx.select(ctx.unsqueeze(inside, [1]), backprop, nan)


# Batch normalization


@rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(
    ctx: Context,
    x: Value,
    scale: Value,
    offset: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float,
    exponential_avg_factor: float,
    data_format: str,
    is_training: bool,
) -> list[Value]:
    """FusedBatchNormV3(x, scale, offset, mean, variance; epsilon=1e-4, exponential_avg_factor=1, data_format="NHWC",
    is_training=true) -> y, batch_mean, batch_variance, reserve_space_1, reserve_space_2, reserve_space_3"""
    wide = ctx.convert(x, F32)
    batch_mean, batch_variance, used_mean, used_variance = mean, variance, mean, variance
    if is_training:
        used_mean, used_variance, count = _moments(ctx, wide, data_format)
        batch_mean = used_mean
        batch_variance = _unbiased(ctx, used_variance, count)
        if exponential_avg_factor != 1:
            batch_mean = _blend(ctx, mean, batch_mean, exponential_avg_factor)
            batch_variance = _blend(ctx, variance, batch_variance, exponential_avg_factor)
    factor = ctx.times(ctx.add(ops.Rsqrt(ctx.plus(used_variance, ctx.constant_like(scale, epsilon)))), scale)
    channel = _channel(x, data_format)
    centred = ctx.minus(wide, ctx.broadcast_in_dim(used_mean, ctx.extents(wide), [channel]))
    scaled = ctx.times(centred, ctx.broadcast_in_dim(factor, ctx.extents(wide), [channel]))
    y = ctx.plus(scaled, ctx.broadcast_in_dim(offset, ctx.extents(wide), [channel]))
    results = [ctx.convert(y, x.type.element_type), batch_mean, batch_variance, used_mean, used_variance]
    return results + [ctx.full((0,), 0, F32)] * (len(ctx.node.outputs) - 5)


def _moments(ctx: Context, x: Value, data_format: str) -> tuple[Value, Value, Extent]:
    """Returns mean and variance of each channel, and the number of values that they summarize."""
    channel = _channel(x, data_format)
    others = [d for d in range(x.type.rank) if d != channel]
    mean = ctx.mean(x, others)
    centred = ctx.minus(x, ctx.broadcast_in_dim(mean, ctx.extents(x), [channel]))
    return mean, ctx.mean(ctx.times(centred, centred), others), ctx.count(x, others)


def _unbiased(ctx: Context, variance: Value, count: Extent) -> Value:
    """Returns the estimate of the variance of a whole from that of some values of it."""
    if isinstance(count, int):
        return ctx.scaled(variance, count / max(count - 1, 1))
    less = larger(ctx, count - 1, 1)
    return ctx.times(variance, ctx.over(ctx.number_as(count, F32), ctx.number_as(less, F32)))


def _blend(ctx: Context, old: Value, new: Value, factor: float) -> Value:
    return ctx.plus(ctx.scaled(old, 1 - factor), ctx.scaled(new, factor))


@rule("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(
    ctx: Context,
    y_backprop: Value,
    x: Value,
    scale: Value,
    mean: Value,
    variance: Value,
    *rest: Operand,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> list[Value]:
    """FusedBatchNormGradV3(y_backprop, x, scale, reserve_space_1, reserve_space_2, reserve_space_3; epsilon=1e-4,
    data_format="NHWC", is_training=true) -> x_backprop, scale_backprop, offset_backprop, reserve_4, reserve_5"""
    channel = _channel(x, data_format)
    others = [d for d in range(x.type.rank) if d != channel]
    shape = x.type.shape

    def spread(row: Value) -> Value:
        return ctx.broadcast_in_dim(row, shape, [channel])

    dy, wide = ctx.convert(y_backprop, F32), ctx.convert(x, F32)
    inverse = ctx.add(ops.Rsqrt(ctx.plus(variance, ctx.constant_like(variance, epsilon))))
    normal = ctx.times(ctx.minus(wide, spread(mean)), spread(inverse))
    offset_gradient = ctx.reduce(ops.Add, dy, others)
    scale_gradient = ctx.reduce(ops.Add, ctx.times(dy, normal), others)
    if is_training:
        share = 1 / math.prod(shape[d] for d in others)
        dy = ctx.minus(dy, spread(ctx.scaled(offset_gradient, share)))
        dy = ctx.minus(dy, ctx.times(normal, spread(ctx.scaled(scale_gradient, share))))
    dx = ctx.convert(ctx.times(dy, spread(ctx.times(scale, inverse))), x.type.element_type)
    nothing = ctx.full((0,), 0, F32)
    return [dx, scale_gradient, offset_gradient, nothing, nothing]


# Classes


@rule("OneHot")
def one_hot(ctx: Context, indices: Value, depth: Known, on_value: Value, off_value: Value, *, axis: int) -> Value:
    """OneHot(indices, depth, on_value, off_value; axis=-1) -> output"""
    count = indices.type.rank + 1
    at = ctx.axis(axis, count)
    wide = ctx.unsqueeze(indices, [at])
    shape = ctx.extents(wide)
    shape[at] = int(depth)
    hit = ctx.compare("EQ", wide, ctx.iota(shape, at, indices.type.element_type))
    return ctx.select(hit, on_value, off_value)


# Quantization that training simulates
