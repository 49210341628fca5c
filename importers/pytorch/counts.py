"""Draws of counts, from Poisson and binomial distributions: by the methods that PyTorch uses, too, which draw from the
exact distributions. Those with small means are counted event by event. Those with large ones are drawn by rejection
(Hörmann, "The transformed rejection method for generating Poisson random variables", and "The generation of binomial
random variates", 1993)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from trivium.importers.extents import Extent
from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.random import moved, uniform, until_accepted
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64

LARGE = 10.0
"""The mean from which on counts are drawn by rejection."""


class Hat(NamedTuple):
    """A curve above a distribution, from which counts are drawn before some are rejected: (2 `a` / d + `b`) * u +
    `center` for a uniform u between -1/2 and 1/2 that is d from the nearer end. Above, `scale` is how much, and below
    `quick`, all are accepted that are not in its tails."""

    a: Value
    b: Value
    center: Value
    scale: Value
    quick: Value


@rule("aten.poisson.default")
def poisson(ctx: Context, x: Value, generator: None = None) -> Value:
    """poisson(Tensor self, Generator? generator=None) -> Tensor"""
    given, shape = ctx.convert(x, F64), ctx.extents(x)
    zero, one, endless = (ctx.full_like(given, number) for number in (0, 1, math.inf))
    is_usual = _and(ctx, ctx.compare("GT", given, zero), ctx.compare("LT", given, endless))
    rate = ctx.select(is_usual, given, one)
    is_large = ctx.compare("GE", rate, ctx.full_like(rate, LARGE))
    least, log_rate = ctx.add(ops.Exponential(ctx.add(ops.Negate(rate)))), ctx.add(ops.Log(rate))
    b = moved(ctx, ctx.add(ops.Sqrt(rate)), 0.931, 2.53)
    scale = moved(ctx, ctx.over(one, moved(ctx, b, -3.4)), 1.1239, 1.1328)
    quick = moved(ctx, ctx.over(one, moved(ctx, b, -2)), 0.9277, -3.6224)
    hat = Hat(moved(ctx, b, -0.059, 0.02483), b, moved(ctx, rate, 0.43), scale, quick)

    def logarithm(emit: Context, count: Value) -> Value:
        """Returns that of the probability of a count."""
        return emit.minus(emit.minus(emit.times(count, log_rate), rate), _log_factorial(emit, count))

    def draw(emit: Context, before: Value, product: Value) -> tuple[Value, list[Value]]:
        # The events within one unit of time: a product is the exponential of the negative time of the last one.
        product = emit.times(product, uniform(emit, shape, F64))
        is_over = emit.compare("LE", product, least)
        counted = emit.select(is_over, before, moved(emit, before, 1))
        is_accepted, drawn = _drawn(emit, shape, hat, endless, logarithm)
        return emit.select(is_large, is_accepted, is_over), [emit.select(is_large, drawn, counted), product]

    count, _ = until_accepted(ctx, is_usual, [zero, one], draw)
    # There is one number for the rates 0 and infinity, and none for a negative rate.
    is_limit = ctx.binary(ops.Or, ctx.compare("EQ", given, zero), ctx.compare("EQ", given, endless))
    others = ctx.select(is_limit, given, ctx.full_like(given, math.nan))
    return ctx.shaped(ctx.select(is_usual, count, others))


@rule("aten.binomial.default")
def binomial(ctx: Context, count: Value, prob: Value, generator: None = None) -> Value:
    """binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor"""
    shape = ctx.shape
    given, share = (ctx.broadcast(ctx.convert(side, F64), shape) for side in (count, prob))
    zero, one, half = (ctx.full_like(given, number) for number in (0, 1, 0.5))
    is_none = ctx.binary(ops.Or, *(ctx.compare("LE", side, zero) for side in (given, share)))
    is_all = ctx.compare("GE", share, one)
    is_finite = ctx.compare("LT", given, ctx.full_like(given, math.inf))
    is_usual = _and(ctx, _and(ctx, ctx.compare("GT", given, zero), is_finite), ctx.compare("GT", share, zero))
    is_usual = _and(ctx, is_usual, ctx.compare("LT", share, one))
    trials, share = ctx.select(is_usual, given, one), ctx.select(is_usual, share, half)
    # Of successes and failures, the rarer ones are counted.
    is_rare = ctx.compare("LE", share, half)
    p = ctx.select(is_rare, share, ctx.minus(one, share))
    q, mean = ctx.minus(one, p), ctx.times(trials, p)
    is_large = ctx.compare("GE", mean, ctx.full_like(mean, LARGE))
    log_q = ctx.add(ops.LogPlusOne(ctx.add(ops.Negate(p))))
    deviation, log_odds = ctx.add(ops.Sqrt(ctx.times(mean, q))), ctx.add(ops.Log(ctx.over(p, q)))
    b = moved(ctx, deviation, 1.15, 2.53)
    a = ctx.plus(moved(ctx, b, -0.0873, 0.0248), ctx.scaled(p, 0.01))
    scale = ctx.times(moved(ctx, ctx.over(one, b), 2.83, 5.1), deviation)
    hat = Hat(a, b, moved(ctx, mean, 0.5), scale, moved(ctx, ctx.over(one, b), 0.92, -4.2))
    mode = ctx.add(ops.Floor(ctx.times(moved(ctx, trials, 1), p)))

    def ways(emit: Context, k: Value) -> Value:
        """Returns the logarithm of k! (n - k)!."""
        return emit.plus(_log_factorial(emit, k), _log_factorial(emit, emit.minus(trials, k)))

    most = ways(ctx, mode)

    def logarithm(emit: Context, k: Value) -> Value:
        """Returns that of the probability of a count relative to the most likely one's."""
        return emit.plus(emit.minus(most, ways(emit, k)), emit.times(emit.minus(k, mode), log_odds))

    def draw(emit: Context, before: Value, place: Value) -> tuple[Value, list[Value]]:
        # The trials until the next success are distributed geometrically.
        waited = emit.over(emit.add(ops.Log(uniform(emit, shape, F64))), log_q)
        place = emit.plus(place, emit.add(ops.Ceil(waited)))
        is_over = emit.compare("GT", place, trials)
        counted = emit.select(is_over, before, moved(emit, before, 1))
        is_accepted, drawn = _drawn(emit, shape, hat, trials, logarithm)
        return emit.select(is_large, is_accepted, is_over), [emit.select(is_large, drawn, counted), place]

    rare, _ = until_accepted(ctx, is_usual, [zero, zero], draw)
    found = ctx.select(is_rare, rare, ctx.minus(trials, rare))
    others = ctx.select(is_none, zero, ctx.select(is_all, given, ctx.full_like(given, math.nan)))
    return ctx.shaped(ctx.select(is_usual, found, others))


def _drawn(
    ctx: Context, shape: Sequence[Extent], hat: Hat, most: Value, logarithm: Callable[[Context, Value], Value]
) -> tuple[Value, Value]:
    """Returns counts from 0 to `most` that are drawn from below a hat, and which of them are accepted. `logarithm` is
    that of the distribution."""
    one, u, v = ctx.full_like(most, 1), moved(ctx, uniform(ctx, shape, F64), -0.5), uniform(ctx, shape, F64)
    end = ctx.minus(ctx.full_like(u, 0.5), ctx.add(ops.Abs(u)))
    slope = ctx.plus(ctx.over(ctx.scaled(hat.a, 2), end), hat.b)
    count = ctx.add(ops.Floor(ctx.plus(ctx.times(slope, u), hat.center)))
    is_possible = _and(ctx, ctx.compare("GE", count, ctx.full_like(count, 0)), ctx.compare("LE", count, most))
    count = ctx.select(is_possible, count, one)
    is_quick = _and(ctx, ctx.compare("GE", end, ctx.full_like(end, 0.07)), ctx.compare("LE", v, hat.quick))
    height = ctx.over(ctx.times(v, hat.scale), ctx.plus(ctx.over(hat.a, ctx.times(end, end)), hat.b))
    is_below = ctx.compare("LE", ctx.add(ops.Log(height)), logarithm(ctx, count))
    return _and(ctx, is_possible, ctx.binary(ops.Or, is_quick, is_below)), count


def _log_factorial(ctx: Context, count: Value) -> Value:
    return ctx.add(ops.Lgamma(moved(ctx, count, 1)))


def _and(ctx: Context, one: Value, other: Value) -> Value:
    return ctx.binary(ops.And, one, other)
