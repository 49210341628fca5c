"""Normal numbers between bounds, by rejection from the three distributions of Robert, "Simulation of truncated normal
variables" (Statistics and computing, 1995), so that bounds may be far from the mean. TensorFlow's kernels do the same,
but draw one number after the other, in as many parts as they have threads. Here, each number has a stream of its own:
the distribution is the same, the numbers are others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, Tensor, rule
from trivium.importers.tensorflow.random import drawn, key_and_counter
from trivium.importers.tensorflow.rejection import Streams, Trials, by_column, until_accepted
from trivium.ir import ops
from trivium.ir.core import Value

RESERVED = 256
"""The counters that are reserved for each number."""

NEAR = 1.3
"""The deviations from the mean to a bound from which normal numbers are tried."""


@rule("ParameterizedTruncatedNormal")
def parameterized_truncated_normal(
    ctx: Context, shape: Tensor, means: Value, stdevs: Value, minvals: Value, maxvals: Value, *, seed: int, seed2: int
) -> Value:
    """ParameterizedTruncatedNormal(shape, means, stdevs, minvals, maxvals; seed=0, seed2=0) -> output"""
    extents = ctx.given_shape(shape)

    def of_rows(x: Value) -> Value:
        return ctx.reshape(x, (*ctx.extents(x), *[1] * (len(extents) - 1))) if x.type.rank else x

    parameters = [of_rows(x) for x in (means, stdevs, minvals, maxvals)]
    return _bounded(ctx, extents, drawn(ctx, 4 * RESERVED * math.prod(extents)), parameters)


@rule("StatelessParameterizedTruncatedNormal")
def stateless_parameterized_truncated_normal(
    ctx: Context, shape: Tensor, seed: Value, means: Value, stddevs: Value, minvals: Value, maxvals: Value
) -> Value:
    """StatelessParameterizedTruncatedNormal(shape, seed, means, stddevs, minvals, maxvals; dtype) -> output"""
    extents = ctx.given_shape(shape)
    return _bounded(ctx, extents, key_and_counter(ctx, seed), (means, stddevs, minvals, maxvals))


class _Bounds(NamedTuple):
    """The bounds of standard normal numbers, of which the low one is closer to zero if both are on one side of it."""

    low: Value
    high: Value

    def hold(self, ctx: Context, x: Value) -> Value:
        return ctx.add(ops.And(ctx.compare("GE", x, self.low), ctx.compare("LE", x, self.high)))


def _bounded(
    ctx: Context, shape: Sequence[Extent], key_and_counter: tuple[Value, Value], parameters: Sequence[Value]
) -> Value:
    """Returns normal numbers with parameters that broadcast to their shape: means, deviations and bounds. They are NaN
    where there are none."""
    if 0 in shape:
        return ctx.full(shape, 0, ctx.element_type)
    kind, count = accumulation_type(ctx.element_type), math.prod(shape)
    flat = [ctx.reshape(ctx.broadcast(ctx.convert(x, kind), shape), (count,)) for x in parameters]
    mean, deviation, least, most = flat
    zero, infinity = ctx.full_like(mean, 0), ctx.full_like(mean, math.inf)
    is_reversed = ctx.compare("EQ", least, ctx.add(ops.Negate(infinity)))
    is_reversed = ctx.add(ops.Or(is_reversed, ctx.compare("LT", most, mean)))
    scale = ctx.select(is_reversed, ctx.add(ops.Negate(deviation)), deviation)
    near, far = ctx.select(is_reversed, most, least), ctx.select(is_reversed, least, most)
    bounds = _Bounds(*(ctx.over(ctx.minus(x, mean), scale) for x in (near, far)))
    is_valid = ctx.add(ops.And(ctx.compare("GT", deviation, zero), ctx.compare("LT", least, most)))
    streams = Streams(by_column(ctx, count, 1, RESERVED), *key_and_counter, kind)
    methods = _Methods(ctx, bounds)

    def step(trials: Trials, numbers: list[Value]) -> Sequence[Value]:
        for first, second in zip(numbers[::2], numbers[1::2], strict=True):
            trials.accept(*methods.tried(trials.ctx, first, second))
        return ()

    is_known, nothing = ctx.add(ops.Not(is_valid)), ctx.full_like(mean, math.nan)
    numbers = ctx.plus(ctx.times(until_accepted(ctx, streams, is_known, nothing, (), step), scale), mean)
    numbers = ctx.binary(ops.Minimum, ctx.binary(ops.Maximum, numbers, least), most)
    return ctx.convert(ctx.reshape(numbers, shape), ctx.element_type)


class _Methods:
    """How numbers between bounds are proposed: as normal ones if many of these are between them, as uniform ones if the
    bounds are close to each other, and else as exponential ones that begin at the low bound."""

    def __init__(self, ctx: Context, bounds: _Bounds):
        def number(x: float) -> Value:
            return ctx.constant_like(bounds.low, x)

        self.bounds, (low, high) = bounds, bounds
        is_below = ctx.add(ops.And(ctx.compare("LT", low, number(-NEAR)), ctx.compare("GE", high, number(0))))
        is_above = ctx.add(ops.And(ctx.compare("GT", high, number(NEAR)), ctx.compare("LE", low, number(0))))
        self.is_normal = ctx.add(ops.Or(is_below, is_above))
        square = ctx.times(low, low)
        root = ctx.add(ops.Sqrt(ctx.plus(square, number(4))))
        exponent = ctx.plus(number(0.5), ctx.scaled(ctx.times(low, ctx.minus(low, root)), 0.25))
        widest = ctx.over(ctx.scaled(ctx.add(ops.Exponential(exponent)), 2), ctx.plus(low, root))
        self.width = ctx.minus(high, low)
        self.is_uniform = ctx.compare("LT", self.width, widest)
        self.square = ctx.select(ctx.compare("LT", low, number(0)), number(0), square)
        self.rate = ctx.scaled(ctx.plus(low, root), 0.5)

    def tried(self, ctx: Context, first: Value, second: Value) -> tuple[Value, Value]:
        """Returns whether proposed numbers are accepted, and these."""
        low, high = self.bounds
        # 1 less a uniform number below 1 has a logarithm.
        positive = ctx.minus(ctx.constant_like(first, 1), first)
        logarithm = ctx.add(ops.Log(positive))
        radius = ctx.add(ops.Sqrt(ctx.scaled(logarithm, -2)))
        normal = ctx.times(ctx.add(ops.Cosine(ctx.scaled(second, 2 * math.pi))), radius)
        uniform = ctx.plus(ctx.times(first, self.width), low)
        exponential = ctx.minus(low, ctx.over(logarithm, self.rate))
        height = ctx.scaled(ctx.minus(self.square, ctx.times(uniform, uniform)), 0.5)
        away = ctx.minus(self.rate, exponential)
        peak = ctx.scaled(ctx.times(away, away), -0.5)
        fits_uniform = ctx.compare("LE", second, ctx.add(ops.Exponential(height)))
        fits_exponential = ctx.compare("LE", second, ctx.add(ops.Exponential(peak)))
        fits_exponential = ctx.add(ops.And(fits_exponential, ctx.compare("LE", exponential, high)))
        fits = ctx.select(self.is_uniform, fits_uniform, fits_exponential)
        sample = ctx.select(self.is_uniform, uniform, exponential)
        fits = ctx.select(self.is_normal, self.bounds.hold(ctx, normal), fits)
        return fits, ctx.select(self.is_normal, normal, sample)
