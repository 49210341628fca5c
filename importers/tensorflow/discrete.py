"""Poisson and binomial distributions: the samples of TensorFlow's CPU kernels, unless rounding decides otherwise
whether a draw is accepted. Small means count how many waiting times fit, as in Knuth, "Seminumerical algorithms"; large
ones are drawn by transformed rejection, as in Hörmann, "The transformed rejection method for generating Poisson random
variables" (1993) and "The generation of binomial random variates" (1993)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import broadcast_shape
from trivium.importers.extents import Extent, divided, larger
from trivium.importers.tensorflow.context import Context, Known, Operand, Tensor, rule
from trivium.importers.tensorflow.random import drawn, key_and_counter
from trivium.importers.tensorflow.rejection import Streams, Trials, by_column, until_accepted
from trivium.importers.tensorflow.sampling import from_variable
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, I32, FloatType

RESERVED = 256
"""The counters that TensorFlow reserves for each sample."""

FEW = 10
"""The mean from which samples are drawn by transformed rejection."""

RESERVED_FOR_FEW = 42
"""The counters that TensorFlow reserves for each sample of a binomial distribution whose mean is small."""

TAILS = (
    *(0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211),
    *(0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287),
)
"""What Stirling's formula lacks of the logarithms of the first factorials."""


@rule("StatelessRandomPoisson")
def stateless_poisson(ctx: Context, shape: Tensor, seed: Value, lam: Value) -> Value:
    """StatelessRandomPoisson(shape, seed, lam; dtype) -> output"""
    return _poisson(ctx, ctx.given_shape(shape), *key_and_counter(ctx, seed), lam)


@rule("RandomPoissonV2")
def random_poisson(ctx: Context, shape: Tensor, rate: Value, *, seed: int, seed2: int) -> Value:
    """RandomPoissonV2(shape, rate; seed=0, seed2=0, dtype=DT_INT64) -> output"""
    extents = (*ctx.given_shape(shape), *ctx.extents(rate))
    return _poisson(ctx, extents, *drawn(ctx, 4 * RESERVED * math.prod(extents)), rate)


def _poisson(ctx: Context, shape: Sequence[Extent], key: Value, counter: Value, rate: Value) -> Value:
    if 0 in shape:
        return ctx.full(shape, 0, ctx.element_type)
    rates, rows, columns = _of_samples(ctx, shape, ctx.convert(rate, F64))
    streams = Streams(by_column(ctx, rows, columns, RESERVED), key, counter, F64)
    is_few = ctx.compare("LT", rates, ctx.scalar(FEW, F64))
    is_finite = ctx.add(ops.IsFinite(rates))
    is_known = ctx.add(ops.Not(ctx.add(ops.Or(is_few, is_finite))))
    limit = ctx.add(ops.Exponential(ctx.add(ops.Negate(rates))))
    box = _PoissonBox(ctx, rates)

    def step(trials: Trials, numbers: list[Value], product: Value, waited: Value) -> Sequence[Value]:
        emit, is_many = trials.ctx, trials.ctx.add(ops.Not(is_few))
        numbers = numbers[::-1]
        for number in numbers:
            product = emit.times(product, number)
            is_over = emit.compare("LE", product, limit)
            trials.accept(emit.add(ops.And(is_few, is_over)), waited)
            waited = emit.plus(waited, emit.scalar(1, F64))
        fits, sample = box.tried(emit, *numbers)
        trials.accept(emit.add(ops.And(is_many, fits)), sample)
        return product, waited

    start = [ctx.full_like(rates, 1), ctx.full_like(rates, 0)]
    # A rate that is infinite, or none, is its own sample, which no integer is.
    known = rates if isinstance(ctx.element_type, FloatType) else start[1]
    samples = until_accepted(ctx, streams, is_known, known, start, step)
    return ctx.convert(ctx.reshape(samples, shape), ctx.element_type)


def _of_samples(ctx: Context, shape: Sequence[Extent], parameter: Value) -> tuple[Value, Extent, Extent]:
    """Returns a parameter for each sample, in a row; also how many samples there are for each of its values, and how
    many values."""
    columns = math.prod(ctx.extents(parameter))
    rows = divided(ctx, math.prod(shape), larger(ctx, columns, 1))
    row = ctx.reshape(parameter, (columns,))
    return ctx.reshape(ctx.broadcast(row, (rows, columns)), (rows * columns,)), rows, columns


class _Box:
    """The function from uniform to proposed numbers, and the box in which each of these is accepted."""

    def __init__(self, ctx: Context, a: Value, b: Value, center: Value, height: Value):
        self.a, self.b, self.center, self.height = a, b, center, height

    def proposed(self, ctx: Context, first: Value, second: Value) -> tuple[Value, Value, Value]:
        """Returns proposed numbers, whether they are in the box, and how far the uniform ones are from their ends."""
        half, u = ctx.constant_like(first, 0.5), ctx.minus(first, ctx.constant_like(first, 0.5))
        inside = ctx.minus(half, ctx.add(ops.Abs(u)))
        slope = ctx.plus(ctx.over(ctx.scaled(self.a, 2), inside), self.b)
        number = ctx.add(ops.Floor(ctx.plus(ctx.times(slope, u), self.center)))
        is_wide = ctx.compare("GE", inside, ctx.constant_like(inside, 0.07))
        is_low = ctx.compare("LE", second, self.height)
        return number, ctx.add(ops.And(is_wide, is_low)), inside

    def density(self, ctx: Context, scale: Value, second: Value, inside: Value) -> Value:
        """Returns the logarithm of how high a uniform number is under the proposed distribution."""
        slope = ctx.plus(ctx.over(self.a, ctx.times(inside, inside)), self.b)
        return ctx.add(ops.Log(ctx.over(ctx.times(second, scale), slope)))


class _PoissonBox(_Box):
    def __init__(self, ctx: Context, rates: Value):
        def number(x: float) -> Value:
            return ctx.constant_like(rates, x)

        b = ctx.plus(number(0.931), ctx.scaled(ctx.add(ops.Sqrt(rates)), 2.53))
        a = ctx.plus(number(-0.059), ctx.scaled(b, 0.02483))
        height = ctx.minus(number(0.9277), ctx.over(number(3.6224), ctx.minus(b, number(2))))
        super().__init__(ctx, a, b, ctx.plus(rates, number(0.43)), height)
        self.scale = ctx.plus(number(1.1239), ctx.over(number(1.1328), ctx.minus(b, number(3.4))))
        self.rates, self.log_rates = rates, ctx.add(ops.Log(rates))

    def tried(self, ctx: Context, first: Value, second: Value) -> tuple[Value, Value]:
        """Returns whether proposed numbers are accepted, and these."""
        number, is_inside, inside = self.proposed(ctx, first, second)
        is_narrow = ctx.compare("LT", inside, ctx.constant_like(inside, 0.013))
        is_negative = ctx.compare("LT", number, ctx.constant_like(number, 0))
        is_above = ctx.add(ops.And(is_narrow, ctx.compare("GT", second, inside)))
        is_out = ctx.add(ops.Or(is_negative, is_above))
        wanted = ctx.minus(ctx.times(number, self.log_rates), self.rates)
        factorial = ctx.add(ops.Lgamma(ctx.plus(number, ctx.constant_like(number, 1))))
        density = self.density(ctx, self.scale, second, inside)
        is_under = ctx.compare("LE", density, ctx.minus(wanted, factorial))
        is_under = ctx.add(ops.And(is_under, ctx.add(ops.Not(is_out))))
        return ctx.add(ops.Or(is_inside, is_under)), number


@rule("StatelessRandomBinomial")
def stateless_binomial(ctx: Context, shape: Tensor, seed: Value, counts: Value, probs: Value) -> Value:
    """StatelessRandomBinomial(shape, seed, counts, probs; dtype=DT_INT64) -> output"""
    return _binomial(ctx, ctx.given_shape(shape), *key_and_counter(ctx, seed), counts, probs)


@rule("StatefulRandomBinomial")
def stateful_binomial(
    ctx: Context, resource: Operand, algorithm: Known, shape: Tensor, counts: Value, probs: Value
) -> Value:
    """StatefulRandomBinomial(resource, algorithm, shape, counts, probs; dtype=DT_INT64) -> output"""
    extents = ctx.given_shape(shape)
    columns = math.prod(broadcast_shape(counts.type.static_shape, probs.type.static_shape))
    moved = columns * 200 * (math.prod(extents) // max(columns, 1) + 3) // 4
    return _binomial(ctx, extents, *from_variable(ctx, resource, algorithm, moved), counts, probs)


def _binomial(ctx: Context, shape: Sequence[Extent], key: Value, counter: Value, counts: Value, probs: Value) -> Value:
    if 0 in shape:
        return ctx.full(shape, 0, ctx.element_type)
    common = broadcast_shape(counts.type.static_shape, probs.type.static_shape)
    counts, probs = (ctx.broadcast(x, common) for x in (counts, probs))
    # TensorFlow chooses the method in the type of the parameters, and draws in 64 bits.
    zero, half, one = (ctx.constant_like(probs, x) for x in (0, 0.5, 1))
    is_upper = ctx.compare("GT", probs, half)
    lower = ctx.select(is_upper, ctx.minus(one, probs), probs)
    is_few = ctx.compare("LT", ctx.times(counts, lower), ctx.constant_like(counts, FEW))
    is_none = ctx.add(ops.Or(ctx.compare("LE", counts, zero), ctx.compare("LE", probs, zero)))
    is_known = ctx.add(ops.Or(is_none, ctx.add(ops.Not(ctx.compare("LT", probs, one)))))
    known = ctx.select(is_none, zero, ctx.times(counts, probs))
    known = ctx.select(ctx.compare("GE", probs, one), ctx.select(is_none, zero, counts), known)
    parameters = [counts, lower, is_upper, is_few, is_known, known]
    wide = [x if x.type.element_type is is_few.type.element_type else ctx.convert(x, F64) for x in parameters]
    spread = [_of_samples(ctx, shape, x)[0] for x in wide]
    counts, lower, is_upper, is_few, is_known, known = spread
    _, rows, columns = _of_samples(ctx, shape, wide[0])
    starts = ctx.select(is_few, *(by_column(ctx, rows, columns, each) for each in (RESERVED_FOR_FEW, RESERVED)))
    streams = Streams(starts, key, counter, F64)
    box = _BinomialBox(ctx, counts, lower)
    scale = ctx.add(ops.LogPlusOne(ctx.add(ops.Negate(lower))))

    def step(trials: Trials, numbers: list[Value], tried: Value, successes: Value) -> Sequence[Value]:
        emit, is_many = trials.ctx, trials.ctx.add(ops.Not(is_few))
        numbers = numbers[::-1]
        for number in numbers:
            tried = emit.plus(tried, emit.add(ops.Ceil(emit.over(emit.add(ops.Log(number)), scale))))
            is_over = emit.compare("GT", tried, counts)
            trials.accept(emit.add(ops.And(is_few, is_over)), successes)
            successes = emit.plus(successes, emit.scalar(1, F64))
        fits, sample = box.tried(emit, *numbers)
        trials.accept(emit.add(ops.And(is_many, fits)), sample)
        return tried, successes

    start = [ctx.full_like(counts, 0)] * 2
    samples = until_accepted(ctx, streams, is_known, start[0], start, step)
    samples = ctx.select(is_upper, ctx.minus(counts, samples), samples)
    samples = ctx.select(is_known, known, samples)
    return ctx.convert(ctx.reshape(samples, shape), ctx.element_type)


class _BinomialBox(_Box):
    def __init__(self, ctx: Context, counts: Value, probs: Value):
        def number(x: float) -> Value:
            return ctx.constant_like(counts, x)

        mean = ctx.times(counts, probs)
        others = ctx.minus(number(1), probs)
        deviation = ctx.add(ops.Sqrt(ctx.times(mean, others)))
        b = ctx.plus(number(1.15), ctx.scaled(deviation, 2.53))
        a = ctx.plus(ctx.plus(number(-0.0873), ctx.scaled(b, 0.0248)), ctx.scaled(probs, 0.01))
        height = ctx.minus(number(0.92), ctx.over(number(4.2), b))
        super().__init__(ctx, a, b, ctx.plus(mean, number(0.5)), height)
        self.counts, self.odds = counts, ctx.over(probs, others)
        self.scale = ctx.times(ctx.plus(number(2.83), ctx.over(number(5.1), b)), deviation)
        self.mode = ctx.add(ops.Floor(ctx.times(ctx.plus(counts, number(1)), probs)))

    def tried(self, ctx: Context, first: Value, second: Value) -> tuple[Value, Value]:
        """Returns whether proposed numbers are accepted, and these."""
        k, is_inside, inside = self.proposed(ctx, first, second)
        is_possible = ctx.compare("GE", k, ctx.constant_like(k, 0))
        is_possible = ctx.add(ops.And(is_possible, ctx.compare("LE", k, self.counts)))
        density = self.density(ctx, self.scale, second, inside)
        is_under = ctx.compare("LE", density, self._bound(ctx, k))
        return ctx.add(ops.Or(is_inside, ctx.add(ops.And(is_possible, is_under)))), k

    def _bound(self, ctx: Context, k: Value) -> Value:
        """Returns the logarithm of how probable numbers are, in proportion to the most probable one."""
        one, half, m, n = ctx.constant_like(k, 1), ctx.constant_like(k, 0.5), self.mode, self.counts
        above, below = (ctx.plus(ctx.minus(n, x), one) for x in (m, k))

        def term(factor: Value, of: Value, over: Value) -> Value:
            return ctx.times(factor, ctx.add(ops.Log(ctx.over(of, over))))

        terms = [
            term(ctx.plus(m, half), ctx.plus(m, one), ctx.times(self.odds, above)),
            term(ctx.plus(n, one), above, below),
            term(ctx.plus(k, half), ctx.times(self.odds, below), ctx.plus(k, one)),
            *(_tail(ctx, x) for x in (m, ctx.minus(n, m))),
        ]
        total = terms[0]
        for other in terms[1:]:
            total = ctx.plus(total, other)
        for x in (k, ctx.minus(n, k)):
            total = ctx.minus(total, _tail(ctx, x))
        return total


def _tail(ctx: Context, k: Value) -> Value:
    """Returns what Stirling's formula lacks of the logarithm of a factorial."""
    last = ctx.constant_like(k, len(TAILS) - 1)
    place = ctx.binary(ops.Minimum, ctx.binary(ops.Maximum, k, ctx.constant_like(k, 0)), last)
    table = ctx.take(ctx.elements(np.array(TAILS), F64), ctx.convert(place, I32))
    next_one = ctx.plus(k, ctx.constant_like(k, 1))
    square = ctx.times(next_one, next_one)
    second = ctx.minus(ctx.constant_like(k, 1 / 360), ctx.over(ctx.constant_like(k, 1 / 1260), square))
    series = ctx.over(ctx.minus(ctx.constant_like(k, 1 / 12), ctx.over(second, square)), next_one)
    return ctx.select(ctx.compare("LE", k, last), table, series)
