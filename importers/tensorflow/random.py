"""Random numbers, bit for bit as TensorFlow's CPU kernels draw them: Philox 4x32-10 of Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3" (SC 2011), four words per counter, keyed by the op's seed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, Known, Operand, Tensor, rule
from trivium.importers.tensorflow.state import read_value, variable_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import BF16, F16, F32, F64, I64, UI16, UI32, UI64, ElementType, FloatType, IntegerType

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
SCRAMBLE = (0x3EC8F720, 0x02461E29)
"""The key with which TensorFlow scrambles a seed into a key and a counter."""

PHILOX, THREE_FRY, AUTOMATIC = 1, 2, 3


def philox(ctx: Context, counter: list[Value], key: list[Value]) -> list[Value]:
    """Computes ten rounds over four counter words and two key words, of any one shape."""
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
    """Returns the low and the high half of a 0-d 64-bit number."""
    return [ctx.convert(wide, UI32), ctx.convert(_shifted(ctx, wide, 32), UI32)]


def _joined(ctx: Context, low: Value, high: Value) -> Value:
    shifted = ctx.binary(ops.ShiftLeft, ctx.convert(high, UI64), ctx.scalar(32, UI64))
    return ctx.add(ops.Or(shifted, ctx.convert(low, UI64)))


# Keys


def key_and_counter(ctx: Context, seed: Value) -> tuple[Value, Value]:
    """Returns the key (1 word of 64 bits) and the counter (2 words) that follow from a seed of two integers."""
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


def bits(ctx: Context, count: Extent, key: Value, counter: Value) -> Value:
    """Returns `count` words of 32 bits: four for each counter from the given one on."""
    groups = (count + 3) // 4
    words = words_at(ctx, ctx.iota((groups,), 0, UI64), key, counter)
    return ctx.slice(ctx.reshape(words, (4 * groups,)), 0, 0, count)


def words_at(ctx: Context, offsets: Value, key: Value, counter: Value) -> Value:
    """Returns the four words of each of many counters, which are given by their distances from one."""
    low = ctx.reshape(ctx.slice(counter, 0, 0, 1), ())
    high = ctx.reshape(ctx.slice(counter, 0, 1, 2), ())
    lows = ctx.plus(offsets, low)
    carry = ctx.convert(ctx.compare("LT", lows, low), UI64)
    highs = ctx.plus(carry, high)
    counters = [*_words(ctx, lows), *_words(ctx, highs)]
    keys = [ctx.broadcast(word, ctx.extents(offsets)) for word in _words(ctx, ctx.reshape(key, ()))]
    rows = [ctx.unsqueeze(word, [1]) for word in philox(ctx, counters, keys)]
    return ctx.concatenate(rows, 1)


def uniform(ctx: Context, shape: Sequence[Extent], key: Value, counter: Value, kind: ElementType) -> Value:
    """Returns floats in [0, 1)."""
    if not isinstance(kind, FloatType):
        ctx.unsupported("dtype", kind, "a float")
    words = bits(ctx, math.prod(shape) * (2 if kind is F64 else 1), key, counter)
    return ctx.reshape(fractions(ctx, words, kind), shape)


MANTISSAS: dict[ElementType, tuple[int, int, ElementType]] = {
    F16: (10, 15, UI16),
    BF16: (7, 127, UI16),
    F32: (23, 127, UI32),
    F64: (52, 1023, UI64),
}
"""Of each float: the bits of its mantissa, the exponent of 1, and integers of its width."""


def fractions(ctx: Context, words: Value, kind: ElementType) -> Value:
    """Returns floats in [0, 1), of one word each, or of two: random mantissas below the exponent of 1, minus 1."""
    width, exponent, unsigned = MANTISSAS[kind]
    if kind is F64:
        words = ctx.reshape(words, (ctx.extent(words, 0) // 2, 2))
        high, low = (ctx.convert(ctx.squeeze(ctx.slice(words, 1, i, i + 1), [1]), UI64) for i in range(2))
        words = ctx.add(ops.Or(ctx.binary(ops.ShiftLeft, high, ctx.scalar(32, UI64)), low))
    patterns = ctx.convert(words, unsigned)
    mantissa = ctx.add(ops.And(patterns, ctx.full_like(patterns, (1 << width) - 1)))
    patterns = ctx.add(ops.Or(mantissa, ctx.full_like(patterns, exponent << width)))
    numbers = ctx.add(ops.BitcastConvert(patterns, result=patterns.type.with_element(kind)))
    return ctx.minus(numbers, ctx.constant_like(numbers, 1))


@rule("StatelessRandomUniformV2")
def stateless_uniform(ctx: Context, shape: Tensor, key: Value, counter: Value, alg: Known) -> Value:
    """StatelessRandomUniformV2(shape, key, counter, alg; dtype=DT_FLOAT) -> output"""
    require_philox(ctx, alg)
    return uniform(ctx, ctx.given_shape(shape), key, counter, ctx.element_type)


@rule("StatelessRandomUniform")
def stateless_uniform_seed(ctx: Context, shape: Tensor, seed: Value) -> Value:
    """StatelessRandomUniform(shape, seed; dtype=DT_FLOAT) -> output"""
    return uniform(ctx, ctx.given_shape(shape), *key_and_counter(ctx, seed), ctx.element_type)


@rule("StatelessRandomNormalV2")
def stateless_normal(ctx: Context, shape: Tensor, key: Value, counter: Value, alg: Known) -> Value:
    """StatelessRandomNormalV2(shape, key, counter, alg; dtype=DT_FLOAT) -> output"""
    require_philox(ctx, alg)
    return normal(ctx, ctx.given_shape(shape), key, counter)


@rule("StatelessRandomNormal")
def stateless_normal_seed(ctx: Context, shape: Tensor, seed: Value) -> Value:
    """StatelessRandomNormal(shape, seed; dtype=DT_FLOAT) -> output"""
    return normal(ctx, ctx.given_shape(shape), *key_and_counter(ctx, seed))


def normal(ctx: Context, shape: Sequence[Extent], key: Value, counter: Value) -> Value:
    """Returns normal numbers, computed in 32 or 64 bits."""
    count, kind = math.prod(shape), accumulation_type(ctx.element_type)
    even = 2 * ((count + 1) // 2)
    numbers = box_muller(ctx, uniform(ctx, (even,), key, counter, kind))
    return ctx.convert(ctx.reshape(ctx.slice(numbers, 0, 0, count), shape), ctx.element_type)


def box_muller(ctx: Context, numbers: Value) -> Value:
    """Returns pairs of uniform numbers, in a row, as pairs of normal ones, by Box and Muller."""
    count = ctx.extent(numbers, 0)
    pairs = ctx.reshape(numbers, (count // 2, 2))
    first, second = (ctx.squeeze(ctx.slice(pairs, 1, i, i + 1), [1]) for i in range(2))
    tiny = ctx.constant_like(first, 1e-7)
    radius = ctx.add(ops.Sqrt(ctx.scaled(ctx.add(ops.Log(ctx.binary(ops.Maximum, first, tiny))), -2)))
    angle = ctx.scaled(second, 2 * math.pi)
    both = [ctx.unsqueeze(ctx.times(ctx.add(op(angle)), radius), [1]) for op in (ops.Sine, ops.Cosine)]
    return ctx.reshape(ctx.concatenate(both, 1), (count,))


@rule("StatelessRandomUniformFullIntV2")
def stateless_full_int(ctx: Context, shape: Tensor, key: Value, counter: Value, alg: Known) -> Value:
    """StatelessRandomUniformFullIntV2(shape, key, counter, alg; dtype=DT_UINT64) -> output"""
    require_philox(ctx, alg)
    return full_ints(ctx, ctx.given_shape(shape), key, counter)


@rule("StatelessRandomUniformIntV2")
def stateless_int(
    ctx: Context, shape: Tensor, key: Value, counter: Value, alg: Known, minval: Value, maxval: Value
) -> Value:
    """StatelessRandomUniformIntV2(shape, key, counter, alg, minval, maxval) -> output"""
    require_philox(ctx, alg)
    return between(ctx, full_ints(ctx, ctx.given_shape(shape), key, counter), minval, maxval)


@rule("StatelessRandomUniformFullInt")
def stateless_full_int_seed(ctx: Context, shape: Tensor, seed: Value) -> Value:
    """StatelessRandomUniformFullInt(shape, seed; dtype=DT_UINT64) -> output"""
    return full_ints(ctx, ctx.given_shape(shape), *key_and_counter(ctx, seed))


@rule("StatelessRandomUniformInt")
def stateless_int_seed(ctx: Context, shape: Tensor, seed: Value, minval: Value, maxval: Value) -> Value:
    """StatelessRandomUniformInt(shape, seed, minval, maxval) -> output"""
    return between(ctx, full_ints(ctx, ctx.given_shape(shape), *key_and_counter(ctx, seed)), minval, maxval)


def full_ints(ctx: Context, shape: Sequence[Extent], key: Value, counter: Value) -> Value:
    """Returns integers among all values of the node's type; two words make 64 bits, the low one first."""
    count, kind = math.prod(shape), ctx.element_type
    assert isinstance(kind, IntegerType), kind
    if kind.width == 32:
        words = bits(ctx, count, key, counter)
    elif kind.width == 64:
        pairs = ctx.reshape(bits(ctx, 2 * count, key, counter), (count, 2))
        low, high = (ctx.squeeze(ctx.slice(pairs, 1, i, i + 1), [1]) for i in range(2))
        words = _joined(ctx, low, high)
    else:
        ctx.unsupported("dtype", kind, "32 or 64 bits")
    return ctx.reshape(ctx.add(ops.BitcastConvert(words, result=words.type.with_element(kind))), shape)


def between(ctx: Context, x: Value, low: Value, high: Value) -> Value:
    """Returns integers modulo the size of a range, as TensorFlow computes them."""
    kind = x.type.element_type
    unsigned = UI64 if kind.width == 64 else UI32
    words, start, end = (ctx.add(ops.BitcastConvert(v, result=v.type.with_element(unsigned))) for v in (x, low, high))
    chosen = ctx.plus(ctx.binary(ops.Remainder, words, ctx.minus(end, start)), start)
    return ctx.add(ops.BitcastConvert(chosen, result=chosen.type.with_element(kind)))


# Draws from the hidden generator. The ops' own seeds are already taken into account: the program's generator can be
# seeded from TensorFlow's, and the draws follow from it.


def drawn(ctx: Context, count: Extent) -> tuple[Value, Value]:
    """Returns the key and the counter of `count` words, which no other draw uses."""
    generator = ctx.state.generator
    assert generator is not None, f"{ctx.op} draws in a program without a generator"
    state = ctx.value(ctx.state.values[generator])
    moved = ctx.plus(ctx.slice(state, 0, 0, 1), ctx.reshape(ctx.number_as((count + 3) // 4, I64), (1,)))
    ctx.state.write(generator, ctx.concatenate([moved, ctx.slice(state, 0, 1, 3)], 0))
    wide = ctx.add(ops.BitcastConvert(state, result=state.type.with_element(UI64)))
    return ctx.slice(wide, 0, 2, 3), ctx.slice(wide, 0, 0, 2)


@rule("RandomUniform")
def random_uniform(ctx: Context, shape: Tensor, *, seed: int, seed2: int) -> Value:
    """RandomUniform(shape; seed=0, seed2=0, dtype) -> output"""
    extents = ctx.given_shape(shape)
    return uniform(ctx, extents, *drawn(ctx, 2 * math.prod(extents)), ctx.element_type)


@rule("RandomStandardNormal")
def random_normal(ctx: Context, shape: Tensor, *, seed: int, seed2: int) -> Value:
    """RandomStandardNormal(shape; seed=0, seed2=0, dtype) -> output"""
    extents = ctx.given_shape(shape)
    return normal(ctx, extents, *drawn(ctx, math.prod(extents) + 1))


@rule("RandomUniformInt")
def random_int(ctx: Context, shape: Tensor, minval: Value, maxval: Value, *, seed: int, seed2: int) -> Value:
    """RandomUniformInt(shape, minval, maxval; seed=0, seed2=0) -> output"""
    extents = ctx.given_shape(shape)
    return between(ctx, full_ints(ctx, extents, *drawn(ctx, 2 * math.prod(extents))), minval, maxval)


@rule("RngReadAndSkip")
def read_and_skip(ctx: Context, resource: Operand, alg: Known, delta: Value) -> Value:
    """RngReadAndSkip(resource, alg, delta) -> value"""
    require_philox(ctx, alg)
    old = read_value(ctx, resource)
    low, high = (ctx.slice(old, 0, i, i + 1) for i in range(2))
    words = [ctx.add(ops.BitcastConvert(x, result=x.type.with_element(UI64))) for x in (low, delta)]
    moved = ctx.plus(words[0], ctx.times(words[1], ctx.scalar(SKIPPED, UI64)))
    carry = ctx.convert(ctx.compare("LT", moved, words[0]), I64)
    counter = [ctx.add(ops.BitcastConvert(moved, result=low.type)), ctx.plus(high, carry)]
    ctx.state.write(variable_of(ctx, resource), ctx.concatenate([*counter, ctx.slice(old, 0, 2, 3)], 0))
    return old


SKIPPED = 256
"""The counters that TensorFlow's generators reserve for each requested number."""


def require_philox(ctx: Context, alg: np.ndarray) -> None:
    if int(alg) not in (PHILOX, AUTOMATIC):
        ctx.unsupported("alg", int(alg), "Philox")
