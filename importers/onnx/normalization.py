"""Normalizations."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.importers.emit import accumulation_type
from trivium.importers.onnx.context import Context, axis_of, require_rank, require_shape, rule
from trivium.importers.onnx.statistics import batch_statistics
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import F32


@rule("BatchNormalization", since=7)
def batch_normalization(
    ctx: Context, x: Value, scale: Value, bias: Value, mean: Value, variance: Value, epsilon: float = 1e-5,
    momentum: float = 0.9, training_mode: int = 0, spatial: int = 1,
) -> Value | Sequence[Value]:  # fmt: skip
    """BatchNormalization(X, scale, B, input_mean, input_var, epsilon), with given statistics"""
    require_rank(x, "X", 1, or_more=True)
    for name, value in (("scale", scale), ("B", bias), ("input_mean", mean), ("input_var", variance)):
        require_shape(value, name, [x.type.shape[1] if x.type.rank > 1 else 1])
    if not spatial:
        ctx.unsupported("spatial", 0, "1")
    if training_mode:
        return batch_statistics(ctx, x, scale, bias, mean, variance, epsilon, momentum)
    if ctx.outputs > 1:
        ctx.unsupported("outputs", f"{ctx.outputs} outputs", "1, without training_mode")
    shape, kind = (ctx.extent(scale, 0), *[1] * (x.type.rank - 2)), accumulation_type(x.type.element_type)
    scale, bias, mean, variance = (ctx.convert(value, kind) for value in (scale, bias, mean, variance))
    factor = ctx.times(scale, ctx.add(ops.Rsqrt(ctx.plus(variance, ctx.scalar(epsilon, kind)))))
    offset = ctx.minus(bias, ctx.times(mean, factor))
    result = ctx.plus(ctx.times(ctx.convert(x, kind), ctx.reshape(factor, shape)), ctx.reshape(offset, shape))
    return ctx.convert(result, x.type.element_type)


@rule("LayerNormalization")
def layer_normalization(
    ctx: Context, x: Value, scale: Value, bias: Value | None = None, axis: int = -1, epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Sequence[Value]:  # fmt: skip
    """LayerNormalization(X, Scale, B, axis, epsilon): the statistics are computed in float32"""
    dimensions = list(range(axis_of(axis, x.type.rank), x.type.rank))
    wide = ctx.convert(x, F32) if stash_type == 1 else x
    normal, mean, inverse = _normalized(ctx, wide, dimensions, epsilon)
    result = ctx.times(ctx.convert(normal, x.type.element_type), scale)
    return result if bias is None else ctx.plus(result, bias), mean, inverse


@rule("InstanceNormalization")
def instance_normalization(ctx: Context, x: Value, scale: Value, bias: Value, epsilon: float = 1e-5) -> Value:
    """InstanceNormalization(input, scale, B, epsilon)"""
    shape = (ctx.extent(scale, 0), *[1] * (x.type.rank - 2))
    wide = ctx.convert(x, accumulation_type(x.type.element_type))
    normal, _, _ = _normalized(ctx, wide, list(range(2, x.type.rank)), epsilon)
    normal = ctx.convert(normal, x.type.element_type)
    return ctx.plus(ctx.times(normal, ctx.reshape(scale, shape)), ctx.reshape(bias, shape))


@rule("GroupNormalization", since=18)
def group_normalization_of_groups(
    ctx: Context, x: Value, scale: Value, bias: Value, num_groups: int, epsilon: float = 1e-5
) -> Value:
    """GroupNormalization(X, scale, bias, num_groups, epsilon): one scale and one bias for each group"""
    _require_groups(x, num_groups)
    _, channels, *_ = ctx.extents(x)
    size = channels // num_groups
    scale, bias = (ctx.reshape(ctx.broadcast_in_dim(v, (num_groups, size), [0]), (channels,)) for v in (scale, bias))
    return group_normalization(ctx, x, scale, bias, num_groups, epsilon, stash_type=0)


@rule("GroupNormalization", since=21)
def group_normalization(
    ctx: Context, x: Value, scale: Value, bias: Value, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Value:
    """GroupNormalization(X, scale, bias, num_groups, epsilon)"""
    _require_groups(x, num_groups)
    count, channels, *extents = ctx.extents(x)
    grouped = ctx.reshape(x, (count, num_groups, channels // num_groups, *extents))
    wide = ctx.convert(grouped, F32) if stash_type == 1 else grouped
    normal, _, _ = _normalized(ctx, wide, list(range(2, grouped.type.rank)), epsilon)
    shape = (channels, *[1] * len(extents))
    normal = ctx.reshape(ctx.convert(normal, x.type.element_type), ctx.extents(x))
    return ctx.plus(ctx.times(normal, ctx.reshape(scale, shape)), ctx.reshape(bias, shape))


def _require_groups(x: Value, count: int) -> None:
    require_rank(x, "X", 2, or_more=True)
    channels = x.type.shape[1]
    if count < 1 or (channels is not None and channels % count):
        raise Error(f"num_groups has {count}, expected a divisor of the channels of {x.type}")


def _normalized(ctx: Context, x: Value, dimensions: list[int], epsilon: float) -> tuple[Value, Value, Value]:
    """Returns `x` with mean 0 and variance 1 over `dimensions`; its mean, and the reciprocal of its deviation."""
    mean = ctx.mean(x, dimensions, keep=True)
    centered = ctx.minus(x, mean)
    variance = ctx.mean(ctx.times(centered, centered), dimensions, keep=True)
    inverse = ctx.add(ops.Rsqrt(ctx.plus(variance, ctx.scalar(epsilon, x.type.element_type))))
    return ctx.times(centered, inverse), mean, inverse
