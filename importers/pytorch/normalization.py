"""Batch, layer, group and RMS normalization, forward and backward, with the statistics that training saves and
updates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import ml_dtypes

from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent
from trivium.importers.pytorch.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import ElementType

Ints = Sequence[int]
Triple = tuple[Value | None, Value | None, Value | None]


@rule(
    *("aten._native_batch_norm_legit.default", "aten.native_batch_norm.default"),
    "aten._native_batch_norm_legit_functional.default",
)
def batch_norm_with_statistics(
    ctx: Context,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value, ...]:
    """_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean,
    Tensor running_var, bool training, float momentum, float eps)
    -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)"""
    if not training:
        assert running_mean is not None
        assert running_var is not None
        inverse = _inverse_deviation(ctx, running_var, eps)
        result = _normalized(ctx, input, running_mean, inverse, weight, bias)
        used = running_mean, inverse
        if any(kind is not None and kind.shape == (0,) for kind in ctx.results[1:]):
            # On the CPU, PyTorch returns no statistics unless it computes them.
            used = (ctx.full((0,), 0, running_mean.type.element_type),) * 2
        kept = (running_mean, running_var) if "functional" in ctx.op else ()
        return _as_described(ctx, result, *used, *kept)
    mean, variance, inverse = _statistics(ctx, input, eps)
    result = _normalized(ctx, input, mean, inverse, weight, bias)
    if running_mean is None or running_var is None:
        return _as_described(ctx, result, mean, inverse)
    if "functional" not in ctx.op:
        ctx.unsupported("running_mean", "a buffer to update", "the functional form of the op")
    unbiased = ctx.times(variance, _correction(ctx, input, variance.type.element_type))
    updated = (_updated(ctx, old, new, momentum) for old, new in ((running_mean, mean), (running_var, unbiased)))
    return _as_described(ctx, result, mean, inverse, *updated)


def _as_described(ctx: Context, *values: Value) -> tuple[Value, ...]:
    """Returns results in the element types that PyTorch says they have."""
    kinds = [kind or value.type for kind, value in zip(ctx.results, values, strict=False)]
    rest = values[len(kinds) :]
    return *(ctx.convert(x, kind.element_type) for x, kind in zip(values, kinds, strict=False)), *rest


@rule("aten._native_batch_norm_legit.no_stats")
def batch_norm_no_stats(
    ctx: Context, input: Value, weight: Value | None, bias: Value | None, training: bool, momentum: float, eps: float
) -> tuple[Value, ...]:
    """_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum,
    float eps) -> (Tensor, Tensor, Tensor)"""
    return batch_norm_with_statistics(ctx, input, weight, bias, None, None, True, momentum, eps)


@rule("aten._native_batch_norm_legit_no_training.default")
def batch_norm_no_training(
    ctx: Context,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value, ...]:
    """_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean,
    Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)"""
    return batch_norm_with_statistics(ctx, input, weight, bias, running_mean, running_var, False, momentum, eps)


@rule("aten.batch_norm.default")
def batch_norm(
    ctx: Context,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Value:
    """batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training,
    float momentum, float eps, bool cudnn_enabled) -> Tensor"""
    return batch_norm_with_statistics(ctx, input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@rule("aten.native_batch_norm_backward.default")
def batch_norm_backward(
    ctx: Context,
    grad_out: Value,
    input: Value,
    weight: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    save_mean: Value | None,
    save_invstd: Value | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> Triple:
    """native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor?
    running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor,
    Tensor, Tensor)"""
    if train:
        assert save_mean is not None
        assert save_invstd is not None
        mean, inverse = save_mean, save_invstd
        if mean.type.element_type != accumulation_type(mean.type.element_type):
            # PyTorch keeps them in f32, but describes them as narrow. Their errors would not cancel out in the sums.
            mean, _, inverse = _statistics(ctx, input, eps)
    else:
        assert running_mean is not None
        assert running_var is not None
        mean, inverse = running_mean, _inverse_deviation(ctx, running_var, eps)
    over = [d for d in range(input.type.rank) if d != 1]
    wide = accumulation_type(mean.type.element_type)
    mean, inverse = ctx.convert(mean, wide), ctx.convert(inverse, wide)
    gradient = ctx.convert(grad_out, wide)
    normal = ctx.times(ctx.minus(ctx.convert(input, wide), _channel(ctx, mean, input)), _channel(ctx, inverse, input))
    of_bias = ctx.reduce(ops.Add, gradient, over)
    of_weight = ctx.reduce(ops.Add, ctx.times(gradient, normal), over)
    of_input = None
    if output_mask[0]:
        if train:
            share = _share(ctx, input, over, wide)
            common = ctx.plus(
                _channel(ctx, ctx.times(of_bias, share), input),
                ctx.times(normal, _channel(ctx, ctx.times(of_weight, share), input)),
            )
            gradient = ctx.minus(gradient, common)
        scale = inverse if weight is None else ctx.times(inverse, ctx.convert(weight, wide))
        of_input = ctx.convert(ctx.times(gradient, _channel(ctx, scale, input)), input.type.element_type)
    kinds = [x.type.element_type if x else wide for x in (input, weight, weight)]
    found = zip((of_input, of_weight, of_bias), output_mask, kinds, strict=True)
    a, b, c = (ctx.convert(x, kind) if x is not None and wanted else None for x, wanted, kind in found)
    return a, b, c


def _correction(ctx: Context, x: Value, kind: ElementType) -> Value:
    """Returns what makes the variances of channels unbiased, n / (n - 1) for n elements."""
    count = ctx.count(x, [d for d in range(x.type.rank) if d != 1])
    if isinstance(count, int):
        return ctx.scalar(count / max(count - 1, 1), kind)
    number, one = ctx.number_as(count, kind), ctx.scalar(1, kind)
    return ctx.over(number, ctx.binary(ops.Maximum, ctx.minus(number, one), one))


def _share(ctx: Context, x: Value, dimensions: Sequence[int], kind: ElementType) -> Value:
    """Returns the reciprocal of the number of elements along dimensions."""
    count = ctx.count(x, dimensions)
    if isinstance(count, int):
        return ctx.scalar(1 / count, kind)
    return ctx.over(ctx.scalar(1, kind), ctx.number_as(count, kind))


def _statistics(ctx: Context, x: Value, eps: float) -> tuple[Value, Value, Value]:
    """Returns mean, variance and inverse deviation of each channel, in two passes."""
    over = [d for d in range(x.type.rank) if d != 1]
    wide = ctx.convert(x, accumulation_type(x.type.element_type))
    mean = ctx.mean(wide, over)
    deviation = ctx.minus(wide, _channel(ctx, mean, x))
    variance = ctx.mean(ctx.times(deviation, deviation), over)
    return mean, variance, _inverse_deviation(ctx, variance, eps)


def _inverse_deviation(ctx: Context, variance: Value, eps: float) -> Value:
    return ctx.add(ops.Rsqrt(ctx.plus(variance, ctx.scalar_like(eps, variance))))


def _normalized(ctx: Context, x: Value, mean: Value, inverse: Value, weight: Value | None, bias: Value | None) -> Value:
    """Returns `(x - mean) * inverse * weight + bias`, channel by channel; the factors are combined first."""
    kind = accumulation_type(mean.type.element_type)
    mean, inverse = ctx.convert(mean, kind), ctx.convert(inverse, kind)
    scale = inverse if weight is None else ctx.times(inverse, ctx.convert(weight, kind))
    centered = ctx.minus(ctx.convert(x, kind), _channel(ctx, mean, x))
    result = ctx.times(centered, _channel(ctx, scale, x))
    if bias is not None:
        result = ctx.plus(result, _channel(ctx, ctx.convert(bias, kind), x))
    return ctx.convert(result, x.type.element_type)


def _updated(ctx: Context, old: Value, new: Value, momentum: float) -> Value:
    """Returns the running statistic after a batch."""
    new = ctx.convert(new, old.type.element_type)
    return ctx.plus(ctx.scaled(old, 1 - momentum), ctx.scaled(new, momentum))


def _channel(ctx: Context, x: Value, like: Value) -> Value:
    """Returns one number per channel, broadcast to a tensor whose dimension 1 is the channels."""
    return ctx.broadcast_in_dim(x, ctx.extents(like), [1])


# Over the last dimensions


@rule("aten.native_layer_norm.default")
def native_layer_norm(
    ctx: Context, input: Value, normalized_shape: Ints, weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, Value, Value]:
    """native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps)
    -> (Tensor, Tensor, Tensor)"""
    kind = input.type.element_type
    over = range(input.type.rank - len(normalized_shape), input.type.rank)
    wide = ctx.convert(input, accumulation_type(kind))
    mean = ctx.mean(wide, over, keep=True)
    centered = ctx.minus(wide, mean)
    inverse = _inverse_deviation(ctx, ctx.mean(ctx.times(centered, centered), over, keep=True), eps)
    result = _affine(ctx, ctx.times(centered, inverse), weight, bias)
    saved = [
        ctx.convert(x, meta.element_type) if meta else x
        for x, meta in zip((mean, inverse), ctx.results[1:], strict=False)
    ]
    return ctx.convert(result, kind), *saved  # type: ignore[return-value]


@rule("aten.layer_norm.default")
def layer_norm(
    ctx: Context,
    input: Value,
    normalized_shape: Ints,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Value:
    """layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05,
    bool cudnn_enable=True) -> Tensor"""
    return native_layer_norm(ctx, input, normalized_shape, weight, bias, eps)[0]


@rule("aten.rms_norm.default")
def rms_norm(
    ctx: Context, input: Value, normalized_shape: Ints, weight: Value | None = None, eps: float | None = None
) -> Value:
    """rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor"""
    kind = input.type.element_type
    over = range(input.type.rank - len(normalized_shape), input.type.rank)
    wide = ctx.convert(input, accumulation_type(kind))
    eps = float(ml_dtypes.finfo(wide.type.dtype).eps) if eps is None else eps
    inverse = _inverse_deviation(ctx, ctx.mean(ctx.times(wide, wide), over, keep=True), eps)
    return ctx.convert(_affine(ctx, ctx.times(wide, inverse), weight, None), kind)


def _affine(ctx: Context, x: Value, weight: Value | None, bias: Value | None) -> Value:
    kind = x.type.element_type
    x = x if weight is None else ctx.times(x, ctx.convert(weight, kind))
    return x if bias is None else ctx.plus(x, ctx.convert(bias, kind))


@rule("aten.native_layer_norm_backward.default")
def native_layer_norm_backward(
    ctx: Context,
    grad_out: Value,
    input: Value,
    normalized_shape: Ints,
    mean: Value,
    rstd: Value,
    weight: Value | None,
    bias: Value | None,
    output_mask: Sequence[bool],
) -> Triple:
    """native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd,
    Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"""
    kind = input.type.element_type
    first = input.type.rank - len(normalized_shape)
    inner, outer = range(first, input.type.rank), range(first)
    wide = accumulation_type(kind)
    gradient = ctx.convert(grad_out, wide)
    inverse = ctx.convert(rstd, wide)
    normal = ctx.times(ctx.minus(ctx.convert(input, wide), ctx.convert(mean, wide)), inverse)
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        scaled = gradient if weight is None else ctx.times(gradient, ctx.convert(weight, wide))
        along = ctx.mean(scaled, inner, keep=True)
        across = ctx.mean(ctx.times(scaled, normal), inner, keep=True)
        rest = ctx.minus(ctx.minus(scaled, along), ctx.times(normal, across))
        of_input = ctx.convert(ctx.times(rest, inverse), kind)
    if output_mask[1] and weight is not None:
        of_weight = ctx.convert(ctx.reduce(ops.Add, ctx.times(gradient, normal), outer), weight.type.element_type)
    if output_mask[2] and bias is not None:
        of_bias = ctx.convert(ctx.reduce(ops.Add, gradient, outer), bias.type.element_type)
    return of_input, of_weight, of_bias


# Over groups of channels


@rule("aten.native_group_norm.default")
def native_group_norm(
    ctx: Context,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    N: Extent,
    C: Extent,
    HxW: Extent,
    group: int,
    eps: float,
) -> tuple[Value, Value, Value]:
    """native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float
    eps) -> (Tensor, Tensor, Tensor)"""
    kind = input.type.element_type
    wide = ctx.reshape(ctx.convert(input, accumulation_type(kind)), (N, group, C // group * HxW))
    mean = ctx.mean(wide, (2,), keep=True)
    centered = ctx.minus(wide, mean)
    inverse = _inverse_deviation(ctx, ctx.mean(ctx.times(centered, centered), (2,), keep=True), eps)
    shape = ctx.extents(input)
    result = ctx.reshape(ctx.times(centered, inverse), shape)
    for op, factor in ((ops.Multiply, weight), (ops.Add, bias)):
        if factor is not None:
            channel = ctx.broadcast_in_dim(ctx.convert(factor, result.type.element_type), shape, [1])
            result = ctx.binary(op, result, channel)
    saved = (ctx.convert(ctx.reshape(x, (N, group)), kind) for x in (mean, inverse))
    return ctx.convert(result, kind), *saved  # type: ignore[return-value]


@rule("aten.group_norm.default")
def group_norm(
    ctx: Context,
    input: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Value:
    """group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05,
    bool cudnn_enabled=True) -> Tensor"""
    batch, channels, *rest = ctx.extents(input)
    return native_group_norm(ctx, input, weight, bias, batch, channels, math.prod(rest), num_groups, eps)[0]
