"""Random numbers, bit for bit the same as JAX's own. A key is the words that it consists of; the operations of a
generator on them are JAX's definition, traced to primitives, of which only the cipher (`threefry2x32`) and
`rng_bit_generator` are implemented here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import jax
import numpy as np

from trivium.importers.jax.context import Context, Ints, is_key, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import UI32, UI64, TensorType

Function = Callable[..., jax.Array]


class Generator(Protocol):
    """The functions of one key by which JAX defines a generator."""

    seed: Function
    split: Function
    random_bits: Function
    fold_in: Function


ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


@rule("random_wrap")
def random_wrap(ctx: Context, words: Value) -> Value:
    """random_wrap(base_array, impl)"""
    return words


@rule("random_unwrap")
def random_unwrap(ctx: Context, keys: Value) -> Value:
    """random_unwrap(keys)"""
    return keys


@rule("random_seed")
def random_seed(ctx: Context, seeds: Value, impl: Generator) -> Value:
    """random_seed(seeds, impl)"""
    return ctx.trace(_mapped(impl.seed, seeds.type.rank), seeds)[0]


@rule("random_split")
def random_split(ctx: Context, keys: Value, shape: Ints) -> Value:
    """random_split(keys, shape)"""
    impl, rank = _impl(ctx)
    return ctx.trace(_mapped(lambda key: impl.split(key, shape), rank), keys)[0]


@rule("random_bits")
def random_bits(ctx: Context, keys: Value, bit_width: int, shape: Ints) -> Value:
    """random_bits(keys, bit_width, shape)"""
    impl, rank = _impl(ctx)
    return ctx.trace(_mapped(lambda key: impl.random_bits(key, bit_width, shape), rank), keys)[0]


@rule("random_fold_in")
def random_fold_in(ctx: Context, keys: Value, data: Value) -> Value:
    """random_fold_in(keys, data): one is broadcast to the other"""
    impl, rank = _impl(ctx)
    rank = max(rank, data.type.rank)
    data = ctx.broadcast(data, ctx.result.static_shape[:rank])
    keys = ctx.broadcast(keys, ctx.result.static_shape)
    return ctx.trace(_mapped(impl.fold_in, rank), keys, data)[0]


def _impl(ctx: Context) -> tuple[Generator, int]:
    """Returns the generator of the equation's keys, and the rank of their array."""
    keys = ctx.operands[0]
    assert is_key(keys), keys
    return keys.dtype._impl, len(keys.shape)


def _mapped(function: Function, times: int) -> Function:
    for _ in range(times):
        function = jax.vmap(function)
    return function


@rule("iota_2x32_shape")
def iota_2x32_shape(ctx: Context, shape: Ints) -> Sequence[Value]:
    """iota_2x32_shape(shape): each element's index in row-major order, as the high and the low word of 64 bits"""
    count = math.prod(shape)
    if count >= 1 << 32:
        ctx.unsupported("shape", shape, "fewer than 2**32 elements")
    return ctx.full(shape, 0, UI32), ctx.reshape(ctx.iota((count,), 0, UI32), shape)


@rule("threefry2x32")
def threefry2x32(ctx: Context, key_0: Value, key_1: Value, x_0: Value, x_1: Value) -> Sequence[Value]:
    """threefry2x32(key, counter): Threefry-2x32 with 20 rounds (Salmon et al., 2011)"""
    shape = ctx.result.static_shape
    key_0, key_1, x_0, x_1 = (ctx.broadcast(value, shape) for value in (key_0, key_1, x_0, x_1))
    parity = ctx.add(ops.Xor(ctx.add(ops.Xor(key_0, key_1)), ctx.full(shape, PARITY, UI32)))
    schedule = (key_0, key_1, parity)
    x_0, x_1 = ctx.plus(x_0, key_0), ctx.plus(x_1, key_1)
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            x_0 = ctx.plus(x_0, x_1)
            x_1 = ctx.add(ops.Xor(_rotated(ctx, x_1, distance), x_0))
        x_0 = ctx.plus(x_0, schedule[(group + 1) % 3])
        injected = ctx.plus(schedule[(group + 2) % 3], ctx.full(shape, group + 1, UI32))
        x_1 = ctx.plus(x_1, injected)
    return x_0, x_1


def _rotated(ctx: Context, x: Value, distance: int) -> Value:
    """Returns the bits of `x` rotated to the left."""
    left = ctx.add(ops.ShiftLeft(x, ctx.full_like(x, distance)))
    right = ctx.add(ops.ShiftRightLogical(x, ctx.full_like(x, 32 - distance)))
    return ctx.add(ops.Or(left, right))


@rule("rng_bit_generator")
def rng_bit_generator(ctx: Context, key: Value, shape: Ints, algorithm: int) -> Sequence[Value]:
    """rng_bit_generator(key, shape, dtype, algorithm)"""
    names = {0: "DEFAULT", 1: "THREE_FRY", 2: "PHILOX"}
    state_type, output_type = ctx.result_types
    assert state_type is not None
    # StableHLO's state consists of 64-bit words, JAX's of 32-bit ones: each is a pair of them, the low word first.
    packed = None
    if key.type.element_type is UI32:
        pairs = ctx.reshape(key, (key.type.size // 2, 2))
        packed = ctx.add(ops.BitcastConvert(pairs, result=TensorType((key.type.size // 2,), UI64)))
    state, output = ctx.add(
        ops.RngBitGenerator(
            key if packed is None else packed,
            rng_algorithm=ops.RngAlgorithm(names[int(algorithm)]),
            output_state=(key if packed is None else packed).type,
            output=output_type,
        )
    )
    if packed is not None:
        words = state_type.with_shape((state_type.size // 2, 2))
        state = ctx.reshape(ctx.add(ops.BitcastConvert(state, result=words)), state_type.static_shape)
    return state, output


@rule("rng_uniform")
def rng_uniform(ctx: Context, low: Value, high: Value, shape: Ints) -> Value:
    """rng_uniform(a, b, shape): numbers of hidden state"""
    extents = ctx.elements(np.array(shape, np.int64))
    uniform = ops.RngDistribution("UNIFORM")
    return ctx.add(ops.Rng(low, high, extents, rng_distribution=uniform, result=ctx.result))
