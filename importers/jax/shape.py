"""Ops that move elements. In arrays of random keys they move whole keys, with the dimensions of a key's words."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.importers.jax.context import Context, Ints, key_shape, rule
from trivium.ir import ops
from trivium.ir.core import Value


def _words(ctx: Context) -> tuple[int, ...]:
    """Returns the dimensions of the words of one element of the first operand."""
    return key_shape(ctx.operands[0]) if ctx.operands else ()


@rule("broadcast_in_dim")
def broadcast_in_dim(ctx: Context, x: Value, *sizes: Value, shape: Ints, broadcast_dimensions: Ints) -> Value:
    """broadcast_in_dim(operand, shape, broadcast_dimensions)"""
    if sizes:
        ctx.unsupported("shape", "sizes that are values", "static sizes")
    words = _words(ctx)
    dimensions = (*broadcast_dimensions, *range(len(shape), len(shape) + len(words)))
    return ctx.broadcast_in_dim(x, (*shape, *words), dimensions)


@rule("reshape")
def reshape(ctx: Context, x: Value, *sizes: Value, new_sizes: Ints, dimensions: Ints | None) -> Value:
    """reshape(operand, new_sizes, dimensions)"""
    if sizes:
        ctx.unsupported("new_sizes", "sizes that are values", "static sizes")
    if dimensions is not None:
        x = ctx.transpose(x, dimensions)
    return ctx.reshape(x, (*new_sizes, *_words(ctx)))


@rule("squeeze")
def squeeze(ctx: Context, x: Value, dimensions: Ints) -> Value:
    """squeeze(operand, dimensions)"""
    return ctx.squeeze(x, dimensions)


@rule("expand_dims")
def expand_dims(ctx: Context, x: Value, dimensions: Ints) -> Value:
    """expand_dims(operand, dimensions)"""
    return ctx.unsqueeze(x, dimensions)


@rule("transpose")
def transpose(ctx: Context, x: Value, permutation: Ints) -> Value:
    """transpose(operand, permutation)"""
    return ctx.transpose(x, (*permutation, *range(len(permutation), x.type.rank)))


@rule("rev")
def rev(ctx: Context, x: Value, dimensions: Ints) -> Value:
    """rev(operand, dimensions)"""
    return ctx.add(ops.Reverse(x, dimensions=dimensions)) if dimensions else x


@rule("slice")
def slice(ctx: Context, x: Value, start_indices: Ints, limit_indices: Ints, strides: Ints | None) -> Value:
    """slice(operand, start_indices, limit_indices, strides)"""
    words = _words(ctx)
    return ctx.add(
        ops.Slice(
            x,
            start_indices=(*start_indices, *[0] * len(words)),
            limit_indices=(*limit_indices, *words),
            strides=(*(strides or [1] * len(start_indices)), *[1] * len(words)),
        )
    )


@rule("concatenate")
def concatenate(ctx: Context, *values: Value, dimension: int) -> Value:
    """concatenate(operands, dimension)"""
    return ctx.concatenate(values, dimension)


@rule("tile")
def tile(ctx: Context, x: Value, reps: Ints) -> Value:
    """tile(operand, reps)"""
    spread = [extent for pair in zip(reps, x.type.static_shape, strict=True) for extent in pair]
    repeated = ctx.broadcast_in_dim(x, spread, range(1, 2 * x.type.rank, 2))
    return ctx.reshape(repeated, [count * extent for count, extent in zip(reps, x.type.static_shape, strict=True)])


@rule("stack")
def stack(ctx: Context, *values: Value, axis: int) -> Value:
    """stack(operands, axis)"""
    return ctx.concatenate([ctx.unsqueeze(value, [axis]) for value in values], axis)


@rule("unstack")
def unstack(ctx: Context, x: Value, axis: int) -> Sequence[Value]:
    """unstack(operand, axis)"""
    return [ctx.squeeze(ctx.slice(x, axis, at, at + 1), [axis]) for at in range(x.type.shape[axis])]


@rule("pad")
def pad(ctx: Context, x: Value, value: Value, padding_config: Sequence[tuple[int, int, int]]) -> Value:
    """pad(operand, padding_value, padding_config)"""
    low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())
    return ctx.pad(x, low, high, value, interior)


@rule("iota")
def iota(ctx: Context, *sizes: Value, shape: Ints, dimension: int) -> Value:
    """iota(dtype, shape, dimension)"""
    if sizes:
        ctx.unsupported("shape", "sizes that are values", "static sizes")
    return ctx.iota(shape, dimension, ctx.result.element_type)


@rule("split")
def split(ctx: Context, x: Value, sizes: Ints, axis: int) -> Sequence[Value]:
    """split(operand, sizes, axis)"""
    parts, start = [], 0
    for size in sizes:
        parts.append(ctx.slice(x, axis, start, start + size))
        start += size
    return parts


@rule("empty", "empty2")
def empty(ctx: Context) -> Value:
    """empty(shape, dtype): any content is right; zeros are repeatable"""
    return ctx.full(ctx.result.static_shape, 0, ctx.result.element_type)


@rule("sharding_constraint")
def sharding_constraint(ctx: Context, x: Value) -> Value:
    """sharding_constraint(x, sharding): a program runs on one device"""
    return x
