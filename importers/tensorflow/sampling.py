"""Distributions other than uniform and normal ones, shuffling, and draws from generators that are variables. The
stateless ops and those on variables draw what TensorFlow's CPU kernels draw; the others, which draw from the hidden
generator, have a stream of their own."""

from __future__ import annotations

import math

import numpy as np

from trivium.importers.emit import accumulation_type
from trivium.importers.tensorflow.context import Context, Known, Operand, rule
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
from trivium.ir.types import F64, I32, UI64

# Normal numbers within two deviations

RESERVED = 256
"""The words that TensorFlow reserves for each truncated number."""

TRIED = 4
"""The counters from which a group of numbers is chosen. That of 16 normal numbers fewer than 4 are within two
deviations happens once in 10 ** 15 times."""


def truncated(ctx: Context, shape: tuple[int, ...], key: Value, counter: Value) -> Value:
    """Returns the first of normal numbers that are within two deviations. Numbers form groups of four, of two in 64
    bits, each with counters of its own."""
    count, kind = math.prod(shape), accumulation_type(ctx.element_type)
    each = 2 if kind is F64 else 4
    groups = -(-count // each)
    starts = ctx.times(ctx.iota((groups, TRIED), 0, UI64), ctx.scalar(each * RESERVED // 4, UI64))
    offsets = ctx.reshape(ctx.plus(starts, ctx.iota((groups, TRIED), 1, UI64)), (groups * TRIED,))
    words = ctx.reshape(words_at(ctx, offsets, key, counter), (4 * TRIED * groups,))
    numbers = ctx.reshape(box_muller(ctx, fractions(ctx, words, kind)), (groups, each * TRIED))
    is_outside = ctx.compare("GE", ctx.add(ops.Abs(numbers)), ctx.constant_like(numbers, 2))
    _, inside = ctx.sort([ctx.convert(is_outside, I32), numbers], 1)
    chosen = ctx.reshape(ctx.slice(inside, 1, 0, each), (groups * each,))
    return ctx.convert(ctx.reshape(ctx.slice(chosen, 0, 0, count), shape), ctx.element_type)


@rule("TruncatedNormal")
def truncated_normal(ctx: Context, shape: Known, *, seed: int, seed2: int) -> Value:
    """TruncatedNormal(shape; seed=0, seed2=0, dtype) -> output"""
    extents = ctx.known_shape(shape)
    return truncated(ctx, extents, *drawn(ctx, RESERVED * (math.prod(extents) + 3)))


@rule("StatelessTruncatedNormalV2")
def stateless_truncated_normal(ctx: Context, shape: Known, key: Value, counter: Value, alg: Known) -> Value:
    """StatelessTruncatedNormalV2(shape, key, counter, alg; dtype=DT_FLOAT) -> output"""
    require_philox(ctx, alg)
    return truncated(ctx, ctx.known_shape(shape), key, counter)


@rule("StatelessTruncatedNormal")
def stateless_truncated_normal_seed(ctx: Context, shape: Known, seed: Value) -> Value:
    """StatelessTruncatedNormal(shape, seed; dtype=DT_FLOAT) -> output"""
    return truncated(ctx, ctx.known_shape(shape), *key_and_counter(ctx, seed))


# Normal numbers between bounds of each row


@rule("ParameterizedTruncatedNormal")
def parameterized_truncated_normal(
    ctx: Context, shape: Known, means: Value, stdevs: Value, minvals: Value, maxvals: Value, *, seed: int, seed2: int
) -> Value:
    """ParameterizedTruncatedNormal(shape, means, stdevs, minvals, maxvals; seed=0, seed2=0) -> output"""
    extents = ctx.known_shape(shape)
    kind = accumulation_type(ctx.element_type)
    numbers = uniform(ctx, extents, *drawn(ctx, 2 * math.prod(extents)), kind)

    def of_rows(x: Value) -> Value:
        return ctx.reshape(x, (*x.type.static_shape, *[1] * (len(extents) - 1))) if x.type.rank else x

    return _bounded(ctx, numbers, *map(of_rows, (means, stdevs, minvals, maxvals)))


def _bounded(ctx: Context, numbers: Value, *parameters: Value) -> Value:
    """Returns normal numbers between bounds: where the distribution function has uniform values between theirs."""
    kind = numbers.type.element_type
    mean, deviation, low, high = (ctx.convert(x, kind) for x in parameters)
    one = ctx.scalar(1, kind)

    def below(bound: Value) -> Value:
        """How probable a number below a bound is."""
        away = ctx.over(ctx.over(ctx.minus(bound, mean), deviation), ctx.scalar(math.sqrt(2), kind))
        return ctx.scaled(ctx.plus(one, ctx.add(ops.Erf(away))), 0.5)

    start, end = below(low), below(high)
    chosen = ctx.plus(start, ctx.times(ctx.minus(end, start), numbers))
    most = 1 - float(np.finfo(kind.dtype).eps)
    spread = ctx.minus(ctx.scaled(chosen, 2), one)
    spread = ctx.binary(ops.Minimum, ctx.binary(ops.Maximum, spread, ctx.scalar(-most, kind)), ctx.scalar(most, kind))
    away = ctx.times(ctx.scaled(deviation, math.sqrt(2)), ctx.add(ops.ErfInv(spread)))
    return ctx.convert(ctx.plus(mean, away), ctx.element_type)


# Categories, and orders


@rule("StatelessMultinomial")
def stateless_multinomial(ctx: Context, logits: Value, num_samples: Known, seed: Value) -> Value:
    """StatelessMultinomial(logits, num_samples, seed; output_dtype=DT_INT64) -> output"""
    return _categories(ctx, logits, int(num_samples), *key_and_counter(ctx, seed))


@rule("Multinomial")
def multinomial(ctx: Context, logits: Value, num_samples: Known, *, seed: int, seed2: int) -> Value:
    """Multinomial(logits, num_samples; seed=0, seed2=0, output_dtype=DT_INT64) -> output"""
    count = logits.type.static_shape[0] * int(num_samples)
    return _categories(ctx, logits, int(num_samples), *drawn(ctx, 2 * count))


def _categories(ctx: Context, logits: Value, count: int, key: Value, counter: Value) -> Value:
    """Returns, for each row of logits, how many cumulative probabilities uniform numbers reach. TensorFlow's kernel
    draws row after row, as long as one thread does all of them."""
    rows, classes = logits.type.static_shape
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
    count = value.type.static_shape[0]
    pairs = ctx.reshape(bits(ctx, 2 * count, *drawn(ctx, 2 * count)), (count, 2))
    first, second = (ctx.squeeze(ctx.slice(pairs, 1, i, i + 1), [1]) for i in range(2))
    high = ctx.binary(ops.ShiftLeft, ctx.convert(first, UI64), ctx.scalar(32, UI64))
    keys = ctx.add(ops.Or(high, ctx.convert(second, UI64)))
    return ctx.take(value, ctx.sort([keys, ctx.iota((count,), 0)], 0)[1])


# Generators that are variables


def _from_variable(ctx: Context, resource: Operand, algorithm: Known, count: int) -> tuple[Value, Value]:
    """Returns the key and the counter of the next `count` numbers, and moves the generator past them."""
    state = read_and_skip(ctx, resource, algorithm, ctx.scalar(count, UI64))
    wide = ctx.add(ops.BitcastConvert(state, result=state.type.with_element(UI64)))
    return ctx.slice(wide, 0, 2, 3), ctx.slice(wide, 0, 0, 2)


@rule("StatefulUniform")
def stateful_uniform(ctx: Context, resource: Operand, algorithm: Known, shape: Known) -> Value:
    """StatefulUniform(resource, algorithm, shape; dtype=DT_FLOAT) -> output"""
    extents = ctx.known_shape(shape)
    return uniform(ctx, extents, *_from_variable(ctx, resource, algorithm, math.prod(extents)), ctx.element_type)


@rule("StatefulStandardNormalV2")
def stateful_normal(ctx: Context, resource: Operand, algorithm: Known, shape: Known) -> Value:
    """StatefulStandardNormalV2(resource, algorithm, shape; dtype=DT_FLOAT) -> output"""
    extents = ctx.known_shape(shape)
    return normal(ctx, extents, *_from_variable(ctx, resource, algorithm, math.prod(extents)))


@rule("StatefulTruncatedNormal")
def stateful_truncated_normal(ctx: Context, resource: Operand, algorithm: Known, shape: Known) -> Value:
    """StatefulTruncatedNormal(resource, algorithm, shape; dtype=DT_FLOAT) -> output"""
    extents = ctx.known_shape(shape)
    return truncated(ctx, extents, *_from_variable(ctx, resource, algorithm, math.prod(extents)))


@rule("StatefulUniformFullInt")
def stateful_full_int(ctx: Context, resource: Operand, algorithm: Known, shape: Known) -> Value:
    """StatefulUniformFullInt(resource, algorithm, shape; dtype=DT_UINT64) -> output"""
    extents = ctx.known_shape(shape)
    return full_ints(ctx, extents, *_from_variable(ctx, resource, algorithm, math.prod(extents)))


@rule("StatefulUniformInt")
def stateful_int(
    ctx: Context, resource: Operand, algorithm: Known, shape: Known, minval: Value, maxval: Value
) -> Value:
    """StatefulUniformInt(resource, algorithm, shape, minval, maxval) -> output"""
    return between(ctx, stateful_full_int(ctx, resource, algorithm, shape), minval, maxval)


@rule("RngSkip")
def rng_skip(ctx: Context, resource: Operand, algorithm: Known, delta: Value) -> None:
    """RngSkip(resource, algorithm, delta)"""
    read_and_skip(ctx, resource, algorithm, ctx.add(ops.BitcastConvert(delta, result=delta.type.with_element(UI64))))
