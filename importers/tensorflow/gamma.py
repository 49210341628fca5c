"""Gamma distributions: TensorFlow's samples, up to rounding, by the method of Marsaglia and Tsang, "A simple method for
generating gamma variables" (TOMS 2000)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.importers.extents import Extent, divided, is_number, larger
from trivium.importers.tensorflow.context import Context, Known, Tensor, rule
from trivium.importers.tensorflow.random import box_muller, drawn, fractions, key_and_counter, require_philox, words_at
from trivium.importers.tensorflow.rejection import by_column
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, I1, UI64

RESERVED = 256
"""The counters that TensorFlow reserves for each sample."""


@rule("StatelessRandomGammaV3")
def stateless_gamma(ctx: Context, shape: Tensor, key: Value, counter: Value, alg: Known, alpha: Value) -> Value:
    """StatelessRandomGammaV3(shape, key, counter, alg, alpha; dtype) -> output"""
    require_philox(ctx, alg)
    return _gamma(ctx, ctx.given_shape(shape), key, counter, alpha)


@rule("StatelessRandomGammaV2")
def stateless_gamma_seed(ctx: Context, shape: Tensor, seed: Value, alpha: Value) -> Value:
    """StatelessRandomGammaV2(shape, seed, alpha; dtype) -> output"""
    return _gamma(ctx, ctx.given_shape(shape), *key_and_counter(ctx, seed), alpha)


@rule("RandomGamma")
def random_gamma(ctx: Context, shape: Tensor, alpha: Value, *, seed: int, seed2: int) -> Value:
    """RandomGamma(shape, alpha; seed=0, seed2=0) -> output"""
    extents = (*ctx.given_shape(shape), *ctx.extents(alpha))
    return _gamma(ctx, extents, *drawn(ctx, 4 * RESERVED * math.prod(extents)), alpha)


def _gamma(ctx: Context, shape: Sequence[Extent], key: Value, counter: Value, alpha: Value) -> Value:
    count, kinds = math.prod(shape), math.prod(ctx.extents(alpha))
    if is_number(count, 0) or is_number(kinds, 0):
        return ctx.full(shape, 0, ctx.element_type)
    each = divided(ctx, count, larger(ctx, kinds, 1))
    flat = ctx.reshape(ctx.convert(alpha, F64), (kinds,))
    flat = ctx.reshape(ctx.broadcast(flat, (each, kinds)), (count,))
    draws = _Draws(ctx, by_column(ctx, each, kinds, RESERVED), key, counter)
    one = ctx.scalar(1, F64)
    is_small = ctx.compare("LT", flat, one)
    shift = ctx.select(is_small, ctx.scalar(2 / 3, F64), ctx.scalar(-1 / 3, F64))
    sample, calls, second, has_second = _accepted(ctx, draws, ctx.plus(flat, shift))
    more = ctx.select(has_second, second, draws.uniform(ctx, calls)[1])
    power = ctx.add(ops.Power(more, ctx.over(one, flat)))
    sample = ctx.select(is_small, ctx.times(sample, power), sample)
    first = draws.uniform(ctx, ctx.full((count,), 0, UI64))[1]
    exponential = ctx.add(ops.Negate(ctx.add(ops.LogPlusOne(ctx.add(ops.Negate(first))))))
    sample = ctx.select(ctx.compare("EQ", flat, one), exponential, sample)
    return ctx.convert(ctx.reshape(sample, shape), ctx.element_type)


class _Draws:
    """The stream of each sample. A draw has two numbers, of which the second one is taken first."""

    def __init__(self, ctx: Context, starts: Value, key: Value, counter: Value):
        self.starts, self.key, self.counter = starts, key, counter
        self.count = ctx.extent(starts, 0)

    def uniform(self, ctx: Context, calls: Value) -> list[Value]:
        return self._pair(ctx, self._fractions(ctx, calls))

    def normal(self, ctx: Context, calls: Value) -> list[Value]:
        return self._pair(ctx, box_muller(ctx, self._fractions(ctx, calls)))

    def _fractions(self, ctx: Context, calls: Value) -> Value:
        words = words_at(ctx, ctx.plus(self.starts, calls), self.key, self.counter)
        return fractions(ctx, ctx.reshape(words, (4 * self.count,)), F64)

    def _pair(self, ctx: Context, numbers: Value) -> list[Value]:
        rows = ctx.reshape(numbers, (self.count, 2))
        return [ctx.squeeze(ctx.slice(rows, 1, i, i + 1), [1]) for i in range(2)]


def _accepted(ctx: Context, draws: _Draws, d: Value) -> Sequence[Value]:
    """Draws normal and uniform numbers for each sample until one is accepted. Returns it for the shape `d`, how many
    draws it took, and a uniform number that is left over, if there is one."""
    count = draws.count
    c = ctx.over(ctx.scalar(1 / 3, F64), ctx.add(ops.Sqrt(d)))
    nothing, no = ctx.full((count,), 0, F64), ctx.full((count,), False, I1)
    start = [no, nothing, ctx.full((count,), 0, UI64), nothing, no, nothing, no]
    types = [x.type for x in start]

    def goes_on(emit: Context, is_done: Value, *rest: Value) -> Value:
        return emit.add(ops.Not(emit.reduce(ops.And, is_done, [0])))

    def taken(
        emit: Context, pair: list[Value], held: Value, has: Value, calls: Value, wanted: Value
    ) -> tuple[Value, Value, Value, Value]:
        """Takes the number that is held, or the second one of a new pair, whose first one is held then."""
        is_new = emit.add(ops.And(wanted, emit.add(ops.Not(has))))
        number = emit.select(has, held, pair[1])
        held = emit.select(is_new, pair[0], held)
        has = emit.add(ops.Xor(has, wanted))
        return number, held, has, emit.plus(calls, emit.convert(is_new, UI64))

    def step(emit: Context, is_done: Value, sample: Value, calls: Value, *held: Value) -> list[Value]:
        normal, has_normal, uniform, has_uniform = held
        active, one = emit.add(ops.Not(is_done)), emit.scalar(1, F64)
        pair = draws.normal(emit, calls)
        x, normal, has_normal, calls = taken(emit, pair, normal, has_normal, calls, active)
        v = emit.plus(one, emit.times(c, x))
        positive = emit.compare("GT", v, emit.scalar(0, F64))
        active = emit.add(ops.And(active, positive))
        v = emit.times(emit.times(v, v), v)
        pair = draws.uniform(emit, calls)
        u, uniform, has_uniform, calls = taken(emit, pair, uniform, has_uniform, calls, active)
        square = emit.times(x, x)
        inner = emit.minus(one, emit.scaled(emit.times(square, square), 0.0331))
        rest = emit.plus(emit.minus(one, v), emit.add(ops.Log(v)))
        outer = emit.plus(emit.scaled(square, 0.5), emit.times(d, rest))
        fits = emit.compare("LT", emit.add(ops.Log(u)), outer)
        fits = emit.add(ops.And(active, emit.add(ops.Or(emit.compare("LT", u, inner), fits))))
        sample = emit.select(fits, emit.times(d, v), sample)
        return [emit.add(ops.Or(is_done, fits)), sample, calls, normal, has_normal, uniform, has_uniform]

    loop = ops.While(start, cond=ctx.region(types, goes_on), body=ctx.region(types, step))
    _, sample, calls, _, _, uniform, has_uniform = ctx.add(loop)
    return sample, calls, uniform, has_uniform
