"""Norms, statistics of a batch, and the steps of optimizers."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.importers.emit import accumulation_type
from trivium.importers.onnx.context import Context, axis_of, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32


@rule("LpNormalization")
def lp_normalization(ctx: Context, x: Value, axis: int = -1, p: int = 2) -> Value:
    """LpNormalization(input, axis, p): 0 where the norm is 0"""
    if p not in (1, 2):
        ctx.unsupported("p", p, "1 or 2")
    axis = axis_of(axis, x.type.rank)
    sizes = ctx.add(ops.Abs(x)) if p == 1 else ctx.times(x, x)
    norm = ctx.reduce(ops.Add, sizes, [axis], keep=True)
    norm = norm if p == 1 else ctx.add(ops.Sqrt(norm))
    zero = ctx.full_like(norm, 0)
    return ctx.select(ctx.compare("EQ", norm, zero), zero, ctx.over(x, norm))


@rule("LRN")
def local_response(
    ctx: Context, x: Value, size: int, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0
) -> Value:
    """LRN(X, alpha, beta, bias, size): divides by the squares of the channels around"""
    window, padding = [1] * x.type.rank, [(0, 0)] * x.type.rank
    window[1], padding[1] = size, ((size - 1) // 2, size // 2)
    squares = ctx.reduce_window(ops.Add, ctx.times(x, x), window, padding=padding)
    total = ctx.plus(ctx.scaled(squares, alpha / size), ctx.full_like(x, bias))
    return ctx.over(x, ctx.binary(ops.Power, total, ctx.full_like(x, beta)))


def batch_statistics(
    ctx: Context, x: Value, scale: Value, bias: Value, mean: Value, variance: Value, epsilon: float, momentum: float
) -> Sequence[Value]:
    """Returns `x` normalized by its own statistics, and the running ones moved toward those."""
    rest, kind = [d for d in range(x.type.rank) if d != 1], accumulation_type(x.type.element_type)
    shape = (ctx.extent(scale, 0), *[1] * (x.type.rank - 2))
    wide = ctx.convert(x, kind)
    own = ctx.mean(wide, rest)
    centered = ctx.minus(wide, ctx.reshape(own, shape))
    spread = ctx.mean(ctx.times(centered, centered), rest)
    factor = ctx.times(ctx.convert(scale, kind), ctx.add(ops.Rsqrt(ctx.plus(spread, ctx.scalar(epsilon, kind)))))
    y = ctx.plus(ctx.times(centered, ctx.reshape(factor, shape)), ctx.reshape(ctx.convert(bias, kind), shape))
    moved = [
        ctx.plus(ctx.scaled(old, momentum), ctx.scaled(ctx.convert(new, old.type.element_type), 1 - momentum))
        for old, new in ((mean, own), (variance, spread))
    ]
    return [ctx.convert(y, x.type.element_type), *moved]


# Optimizers


@rule("ai.onnx.preview.training::Momentum")
def momentum_step(
    ctx: Context, rate: Value, count: Value, *values: Value, alpha: float, beta: float, mode: str,
    norm_coefficient: float,
) -> Sequence[Value]:  # fmt: skip
    """Momentum(R, T, X..., G..., V..., ...)"""
    if mode not in ("standard", "nesterov"):
        ctx.unsupported("mode", mode, "standard or nesterov")
    xs, gradients, velocities = _thirds(values)
    is_first = ctx.compare("EQ", count, ctx.full_like(count, 0))
    adjusted = ctx.select(is_first, ctx.scalar(1, F32), ctx.scalar(beta, F32))
    new, moved = [], []
    for x, g, v in zip(xs, gradients, velocities, strict=True):
        g = ctx.plus(ctx.scaled(x, norm_coefficient), g)
        v = ctx.plus(ctx.scaled(v, alpha), ctx.times(ctx.convert(adjusted, x.type.element_type), g))
        step = v if mode == "standard" else ctx.plus(g, ctx.scaled(v, alpha))
        new.append(ctx.minus(x, ctx.times(rate, step)))
        moved.append(v)
    return [*new, *moved]


@rule("ai.onnx.preview.training::Adagrad")
def adagrad_step(
    ctx: Context, rate: Value, count: Value, *values: Value, decay_factor: float = 0.0, epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> Sequence[Value]:  # fmt: skip
    """Adagrad(R, T, X..., G..., H..., ...)"""
    turns = ctx.scaled(ctx.convert(count, F32), decay_factor)
    rate = ctx.over(rate, ctx.plus(turns, ctx.full_like(turns, 1)))
    new, moved = [], []
    for x, g, h in zip(*_thirds(values), strict=True):
        g = ctx.plus(ctx.scaled(x, norm_coefficient), g)
        h = ctx.plus(h, ctx.times(g, g))
        deviation = ctx.plus(ctx.add(ops.Sqrt(h)), ctx.full_like(h, epsilon))
        new.append(ctx.minus(x, ctx.over(ctx.times(rate, g), deviation)))
        moved.append(h)
    return [*new, *moved]


@rule("ai.onnx.preview.training::Adam")
def adam_step(
    ctx: Context, rate: Value, count: Value, *values: Value, alpha: float = 0.9, beta: float = 0.999,
    epsilon: float = 1e-6, norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0,
) -> Sequence[Value]:  # fmt: skip
    """Adam(R, T, X..., G..., V..., H..., ...)"""
    each = len(values) // 4
    turns = ctx.convert(count, F32)

    def left(base: float) -> Value:
        return ctx.minus(ctx.scalar(1, F32), ctx.binary(ops.Power, ctx.scalar(base, F32), turns))

    adjusted = ctx.over(ctx.times(rate, ctx.add(ops.Sqrt(left(beta)))), left(alpha))
    adjusted = ctx.select(ctx.compare("GT", count, ctx.full_like(count, 0)), adjusted, rate)
    new, firsts, seconds = [], [], []
    for x, g, v, h in zip(*(values[i * each : (i + 1) * each] for i in range(4)), strict=True):
        g = ctx.plus(ctx.scaled(x, norm_coefficient), g)
        v = ctx.plus(ctx.scaled(v, alpha), ctx.scaled(g, 1 - alpha))
        h = ctx.plus(ctx.scaled(h, beta), ctx.scaled(ctx.times(g, g), 1 - beta))
        step = ctx.over(ctx.times(adjusted, v), ctx.plus(ctx.add(ops.Sqrt(h)), ctx.full_like(h, epsilon)))
        new.append(ctx.scaled(ctx.minus(x, step), 1 - norm_coefficient_post))
        firsts.append(v)
        seconds.append(h)
    return [*new, *firsts, *seconds]


def _thirds(values: Sequence[Value]) -> list[Sequence[Value]]:
    each = len(values) // 3
    return [values[i * each : (i + 1) * each] for i in range(3)]
