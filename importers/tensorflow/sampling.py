"""Truncated normal numbers, categories, shuffling, and draws from generators that are variables. The
stateless ops and those on variables draw what TensorFlow's CPU kernels draw; the others, which draw from the hidden
generator, have a stream of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, Known, Operand, Tensor, rule
from trivium.importers.tensorflow.random import (
    between,
    bits,
    box_muller,
    drawn,
    fractions,
    full_ints,
    key_and_counter,
    normal,
    read_and_skip,
    require_philox,
    uniform,
    words_at,
)
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, I32, I64, UI32, UI64

# Normal numbers within two deviations

RESERVED = 256
"""The words that TensorFlow reserves for each truncated number."""

TRIED = 4
"""The counters from which a group of numbers is chosen. That of 16 normal numbers fewer than 4 are within two
deviations happens once in 10 ** 15 times."""


def truncated(ctx: Context, shape: Sequence[Extent], key: Value, counter: Value) -> Value:
    """Returns the first of normal numbers that are within two deviations. Numbers form groups of four, of two in 64
    bits, each with counters of its own."""
    count, kind = math.prod(shape), accumulation_type(ctx.element_type)
    each = 2 if kind is F64 else 4
    groups = (count + each - 1) // each
    starts = ctx.times(ctx.iota((groups, TRIED), 0, UI64), ctx.scalar(each * RESERVED // 4, UI64))
    offsets = ctx.reshape(ctx.plus(starts, ctx.iota((groups, TRIED), 1, UI64)), (groups * TRIED,))
    words = ctx.reshape(words_at(ctx, offsets, key, counter), (4 * TRIED * groups,))
    numbers = ctx.reshape(box_muller(ctx, fractions(ctx, words, kind)), (groups, each * TRIED))
    is_outside = ctx.compare("GE", ctx.add(ops.Abs(numbers)), ctx.constant_like(numbers, 2))
    _, inside = ctx.sort([ctx.convert(is_outside, I32), numbers], 1)
    chosen = ctx.reshape(ctx.slice(inside, 1, 0, each), (groups * each,))
    return ctx.convert(ctx.reshape(ctx.slice(chosen, 0, 0, count), shape), ctx.element_type)


@rule("TruncatedNormal")
def truncated_normal(ctx: Context, shape: Tensor, *, seed: int, seed2: int) -> Value:
    """TruncatedNormal(shape; seed=0, seed2=0, dtype) -> output"""
    extents = ctx.given_shape(shape)
    return truncated(ctx, extents, *drawn(ctx, RESERVED * (math.prod(extents) + 3)))


@rule("StatelessTruncatedNormalV2")
def stateless_truncated_normal(ctx: Context, shape: Tensor, key: Value, counter: Value, alg: Known) -> Value:
    """StatelessTruncatedNormalV2(shape, key, counter, alg; dtype=DT_FLOAT) -> output"""
    require_philox(ctx, alg)
    return truncated(ctx, ctx.given_shape(shape), key, counter)


@rule("StatelessTruncatedNormal")
def stateless_truncated_normal_seed(ctx: Context, shape: Tensor, seed: Value) -> Value:
    """StatelessTruncatedNormal(shape, seed; dtype=DT_FLOAT) -> output"""
    return truncated(ctx, ctx.given_shape(shape), *key_and_counter(ctx, seed))


# Categories, and orders


@rule("StatelessMultinomial")
def stateless_multinomial(ctx: Context, logits: Value, num_samples: Known, seed: Value) -> Value:
    """StatelessMultinomial(logits, num_samples, seed; output_dtype=DT_INT64) -> output"""
    return _categories(ctx, logits, int(num_samples), *key_and_counter(ctx, seed))


@rule("Multinomial")
def multinomial(ctx: Context, logits: Value, num_samples: Known, *, seed: int, seed2: int) -> Value:
    """Multinomial(logits, num_samples; seed=0, seed2=0, output_dtype=DT_INT64) -> output"""
    count = ctx.extent(logits, 0) * int(num_samples)
    return _categories(ctx, logits, int(num_samples), *drawn(ctx, 2 * count))


def _categories(ctx: Context, logits: Value, count: int, key: Value, counter: Value) -> Value:
    """Returns, for each row of logits, how many cumulative probabilities uniform numbers reach. TensorFlow's kernel
    draws row after row, as long as one thread does all of them."""
    rows, classes = ctx.extents(logits)
    wide = ctx.convert(logits, F64)
    least, none = ctx.scalar(-np.inf, F64), ctx.scalar(0, F64)
    is_finite = ctx.add(ops.IsFinite(wide))
    largest = ctx.reduce(ops.Maximum, ctx.select(is_finite, wide, least), [1], keep=True)
    weights = ctx.select(is_finite, ctx.add(ops.Exponential(ctx.minus(wide, largest))), none)
    sums = ctx.cumulative(ops.Add, weights, 1)
    numbers = ctx.times(uniform(ctx, (rows, count), key, counter, F64), ctx.slice(sums, 1, classes - 1, classes))
    reached = ctx.compare("LE", ctx.unsqueeze(sums, [1]), ctx.unsqueeze(numbers, [2]))
    return ctx.reduce(ops.Add, ctx.convert(reached, ctx.element_type), [2])


@rule("RandomShuffle")
def random_shuffle(ctx: Context, value: Value, *, seed: int, seed2: int) -> Value:
    """RandomShuffle(value; seed=0, seed2=0) -> output"""
    if not value.type.rank:
        return value
    count = ctx.extent(value, 0)
    pairs = ctx.reshape(bits(ctx, 2 * count, *drawn(ctx, 2 * count)), (count, 2))
    first, second = (ctx.squeeze(ctx.slice(pairs, 1, i, i + 1), [1]) for i in range(2))
    high = ctx.binary(ops.ShiftLeft, ctx.convert(first, UI64), ctx.scalar(32, UI64))
    keys = ctx.add(ops.Or(high, ctx.convert(second, UI64)))
    return ctx.take(value, ctx.sort([keys, ctx.iota((count,), 0)], 0)[1])


@rule("StatelessShuffle")
def stateless_shuffle(ctx: Context, value: Value, key: Value, counter: Value, alg: Known) -> Value:
    """StatelessShuffle(value, key, counter, alg) -> output"""
    require_philox(ctx, alg)
    if not value.type.rank or value.type.static_shape[0] < 2:
        return value
    count = value.type.static_shape[0]
    left = ctx.minus(ctx.scalar(count, UI32), ctx.iota((count - 1,), 0, UI32))
    chosen = ctx.binary(ops.Remainder, bits(ctx, count - 1, key, counter), left)
    places = ctx.convert(ctx.plus(chosen, ctx.iota((count - 1,), 0, UI32)), I64)
    return ctx.take(value, _exchanged(ctx, count, places))


def _exchanged(ctx: Context, count: int, places: Value) -> Value:
    """Returns the numbers below `count` after each place but the last one was exchanged with the given one in turn."""
    start = [ctx.scalar(0, I64), ctx.iota((count,), 0, I64)]
    types = [x.type for x in start]

    def goes_on(emit: Context, place: Value, order: Value) -> Value:
        return emit.compare("LT", place, emit.scalar(count - 1, I64))

    def step(emit: Context, place: Value, order: Value) -> list[Value]:
        other = emit.reshape(emit.add(ops.DynamicSlice(places, [place], slice_sizes=[1])), ())
        here, there = (emit.add(ops.DynamicSlice(order, [at], slice_sizes=[1])) for at in (place, other))
        order = emit.add(ops.DynamicUpdateSlice(order, here, [other]))
        order = emit.add(ops.DynamicUpdateSlice(order, there, [place]))
        return [emit.plus(place, emit.scalar(1, I64)), order]

    return ctx.add(ops.While(start, cond=ctx.region(types, goes_on), body=ctx.region(types, step)))[1]


# Generators that are variables


def from_variable(ctx: Context, resource: Operand, algorithm: Known, count: Extent) -> tuple[Value, Value]:
    """Returns the key and the counter of the next `count` numbers, and moves the generator past them."""
    state = read_and_skip(ctx, resource, algorithm, ctx.number_as(count, UI64))
    wide = ctx.add(ops.BitcastConvert(state, result=state.type.with_element(UI64)))
    return ctx.slice(wide, 0, 2, 3), ctx.slice(wide, 0, 0, 2)


@rule("StatefulUniform")
def stateful_uniform(ctx: Context, resource: Operand, algorithm: Known, shape: Tensor) -> Value:
    """StatefulUniform(resource, algorithm, shape; dtype=DT_FLOAT) -> output"""
    extents = ctx.given_shape(shape)
    return uniform(ctx, extents, *from_variable(ctx, resource, algorithm, math.prod(extents)), ctx.element_type)


@rule("StatefulStandardNormalV2")
def stateful_normal(ctx: Context, resource: Operand, algorithm: Known, shape: Tensor) -> Value:
    """StatefulStandardNormalV2(resource, algorithm, shape; dtype=DT_FLOAT) -> output"""
    extents = ctx.given_shape(shape)
    return normal(ctx, extents, *from_variable(ctx, resource, algorithm, math.prod(extents)))


@rule("StatefulTruncatedNormal")
def stateful_truncated_normal(ctx: Context, resource: Operand, algorithm: Known, shape: Tensor) -> Value:
    """StatefulTruncatedNormal(resource, algorithm, shape; dtype=DT_FLOAT) -> output"""
    extents = ctx.given_shape(shape)
    return truncated(ctx, extents, *from_variable(ctx, resource, algorithm, math.prod(extents)))


@rule("StatefulUniformFullInt")
def stateful_full_int(ctx: Context, resource: Operand, algorithm: Known, shape: Tensor) -> Value:
    """StatefulUniformFullInt(resource, algorithm, shape; dtype=DT_UINT64) -> output"""
    extents = ctx.given_shape(shape)
    return full_ints(ctx, extents, *from_variable(ctx, resource, algorithm, math.prod(extents)))


@rule("StatefulUniformInt")
def stateful_int(
    ctx: Context, resource: Operand, algorithm: Known, shape: Tensor, minval: Value, maxval: Value
) -> Value:
    """StatefulUniformInt(resource, algorithm, shape, minval, maxval) -> output"""
    return between(ctx, stateful_full_int(ctx, resource, algorithm, shape), minval, maxval)


@rule("RngSkip")
def rng_skip(ctx: Context, resource: Operand, algorithm: Known, delta: Value) -> None:
    """RngSkip(resource, algorithm, delta)"""
    read_and_skip(ctx, resource, algorithm, ctx.add(ops.BitcastConvert(delta, result=delta.type.with_element(UI64))))
