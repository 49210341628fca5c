"""Random numbers, bit for bit as TensorFlow's CPU kernels draw them: Philox 4x32-10 of Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3" (SC 2011), four words a counter, keyed by the op's seed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trivium.importers.tensorflow.context import Context, Known, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, F64, I64, UI32, UI64

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
SCRAMBLE = (0x3EC8F720, 0x02461E29)
"""The key with which TensorFlow mixes a seed into a key and a counter."""

PHILOX, AUTOMATIC = 1, 3


def philox(ctx: Context, counter: list[Value], key: list[Value]) -> list[Value]:
    """Ten rounds over four counter words and two key words, of any one shape."""
    for step in range(ROUNDS):
        if step:
            key = [ctx.plus(word, ctx.constant_like(word, weyl)) for word, weyl in zip(key, WEYL, strict=True)]
        (high0, low0), (high1, low1) = (
            _product(ctx, word, factor) for word, factor in zip(counter[::2], MULTIPLIERS, strict=True)
        )
        counter = [_xor(ctx, high1, counter[1], key[0]), low1, _xor(ctx, high0, counter[3], key[1]), low0]
    return counter


def _product(ctx: Context, word: Value, factor: int) -> tuple[Value, Value]:
    wide = ctx.times(ctx.convert(word, UI64), ctx.scalar(factor, UI64))
    return ctx.convert(_shifted(ctx, wide, 32), UI32), ctx.convert(wide, UI32)


def _shifted(ctx: Context, x: Value, bits: int) -> Value:
    return ctx.binary(ops.ShiftRightLogical, x, ctx.constant_like(x, bits))


def _xor(ctx: Context, *words: Value) -> Value:
    first, second, third = words
    return ctx.binary(ops.Xor, ctx.binary(ops.Xor, first, second), third)


def _words(ctx: Context, wide: Value) -> list[Value]:
    """Low and high half of a 0-d 64-bit number."""
    return [ctx.convert(wide, UI32), ctx.convert(_shifted(ctx, wide, 32), UI32)]


def _joined(ctx: Context, low: Value, high: Value) -> Value:
    shifted = ctx.binary(ops.ShiftLeft, ctx.convert(high, UI64), ctx.scalar(32, UI64))
    return ctx.add(ops.Or(shifted, ctx.convert(low, UI64)))


# Keys


def key_and_counter(ctx: Context, seed: Value) -> tuple[Value, Value]:
    """The key (1 word of 64 bits) and the counter (2 words) that follow from a seed of two integers."""
    seeds = ctx.add(ops.BitcastConvert(ctx.convert(seed, I64), result=seed.type.with_element(UI64)))
    counter = [word for i in range(2) for word in _words(ctx, ctx.reshape(ctx.slice(seeds, 0, i, i + 1), ()))]
    mixed = philox(ctx, counter, [ctx.scalar(word, UI32) for word in SCRAMBLE])
    key = ctx.reshape(_joined(ctx, mixed[0], mixed[1]), (1,))
    high = ctx.reshape(_joined(ctx, mixed[2], mixed[3]), (1,))
    return key, ctx.concatenate([ctx.full((1,), 0, UI64), high], 0)


@rule("StatelessRandomGetKeyCounter")
def get_key_counter(ctx: Context, seed: Value) -> tuple[Value, Value]:
    """StatelessRandomGetKeyCounter(seed) -> key, counter"""
    return key_and_counter(ctx, seed)


@rule("StatelessRandomGetKeyCounterAlg")
def get_key_counter_alg(ctx: Context, seed: Value) -> tuple[Value, Value, np.ndarray]:
    """StatelessRandomGetKeyCounterAlg(seed) -> key, counter, alg"""
    return *key_and_counter(ctx, seed), np.array(PHILOX, np.int32)


@rule("StatelessRandomGetAlg")
def get_alg(ctx: Context) -> np.ndarray:
    """StatelessRandomGetAlg() -> alg"""
    return np.array(PHILOX, np.int32)


# Bits


def bits(ctx: Context, count: int, key: Value, counter: Value) -> Value:
    """So many words of 32 bits: four for each counter from the given one on."""
    groups = -(-count // 4)
    low = ctx.reshape(ctx.slice(counter, 0, 0, 1), ())
    high = ctx.reshape(ctx.slice(counter, 0, 1, 2), ())
    lows = ctx.plus(ctx.iota((groups,), 0, UI64), low)
    carry = ctx.convert(ctx.compare("LT", lows, low), UI64)
    highs = ctx.plus(carry, high)
    counters = [*_words(ctx, lows), *_words(ctx, highs)]
    keys = [ctx.broadcast(word, (groups,)) for word in _words(ctx, ctx.reshape(key, ()))]
    rows = [ctx.unsqueeze(word, [1]) for word in philox(ctx, counters, keys)]
    return ctx.slice(ctx.reshape(ctx.concatenate(rows, 1), (4 * groups,)), 0, 0, count)


def uniform(ctx: Context, shape: tuple[int, ...], key: Value, counter: Value, kind: Any) -> Value:
    """Floats in [0, 1): random mantissas below the exponent of 1, less 1."""
    count = math.prod(shape)
    if kind is F32:
        words = bits(ctx, count, key, counter)
        mantissa = ctx.add(ops.And(words, ctx.full_like(words, 0x7FFFFF)))
        patterns = ctx.add(ops.Or(mantissa, ctx.full_like(words, 127 << 23)))
        numbers = ctx.add(ops.BitcastConvert(patterns, result=patterns.type.with_element(F32)))
    elif kind is F64:
        words = ctx.reshape(bits(ctx, 2 * count, key, counter), (count, 2))
        low, high = (ctx.convert(ctx.squeeze(ctx.slice(words, 1, i, i + 1), [1]), UI64) for i in range(2))
        upper = ctx.add(ops.And(low, ctx.full_like(low, 0xFFFFF)))
        mantissa = ctx.add(ops.Or(ctx.binary(ops.ShiftLeft, upper, ctx.scalar(32, UI64)), high))
        patterns = ctx.add(ops.Or(mantissa, ctx.full_like(low, 1023 << 52)))
        numbers = ctx.add(ops.BitcastConvert(patterns, result=patterns.type.with_element(F64)))
    else:
        ctx.unsupported("dtype", kind, "f32 or f64")
    return ctx.reshape(ctx.minus(numbers, ctx.constant_like(numbers, 1)), shape)


@rule("StatelessRandomUniformV2")
def stateless_uniform(ctx: Context, shape: Known, key: Value, counter: Value, alg: Known) -> Value:
    """StatelessRandomUniformV2(shape, key, counter, alg; dtype=DT_FLOAT) -> output"""
    _require_philox(ctx, alg)
    return uniform(ctx, _extents(shape), key, counter, ctx.element_type)


@rule("StatelessRandomUniform")
def stateless_uniform_seed(ctx: Context, shape: Known, seed: Value) -> Value:
    """StatelessRandomUniform(shape, seed; dtype=DT_FLOAT) -> output"""
    return uniform(ctx, _extents(shape), *key_and_counter(ctx, seed), ctx.element_type)


@rule("StatelessRandomNormalV2")
def stateless_normal(ctx: Context, shape: Known, key: Value, counter: Value, alg: Known) -> Value:
    """StatelessRandomNormalV2(shape, key, counter, alg; dtype=DT_FLOAT) -> output"""
    _require_philox(ctx, alg)
    return normal(ctx, _extents(shape), key, counter)


@rule("StatelessRandomNormal")
def stateless_normal_seed(ctx: Context, shape: Known, seed: Value) -> Value:
    """StatelessRandomNormal(shape, seed; dtype=DT_FLOAT) -> output"""
    return normal(ctx, _extents(shape), *key_and_counter(ctx, seed))


def normal(ctx: Context, shape: tuple[int, ...], key: Value, counter: Value) -> Value:
    """Pairs of uniform numbers as pairs of normal ones, by Box and Muller."""
    if ctx.element_type is not F32:
        ctx.unsupported("dtype", ctx.element_type, "f32")
    count = math.prod(shape)
    pairs = ctx.reshape(uniform(ctx, (2 * -(-count // 2),), key, counter, F32), (-(-count // 2), 2))
    first, second = (ctx.squeeze(ctx.slice(pairs, 1, i, i + 1), [1]) for i in range(2))
    tiny = ctx.constant_like(first, 1e-7)
    radius = ctx.add(ops.Sqrt(ctx.scaled(ctx.add(ops.Log(ctx.binary(ops.Maximum, first, tiny))), -2)))
    angle = ctx.scaled(second, 2 * math.pi)
    both = [ctx.unsqueeze(ctx.times(ctx.add(op(angle)), radius), [1]) for op in (ops.Sine, ops.Cosine)]
    flat = ctx.reshape(ctx.concatenate(both, 1), (2 * -(-count // 2),))
    return ctx.reshape(ctx.slice(flat, 0, 0, count), shape)


def _require_philox(ctx: Context, alg: np.ndarray) -> None:
    if int(alg) not in (PHILOX, AUTOMATIC):
        ctx.unsupported("alg", int(alg), "Philox")


def _extents(shape: np.ndarray) -> tuple[int, ...]:
    return tuple(int(extent) for extent in shape)
