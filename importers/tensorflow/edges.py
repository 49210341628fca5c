"""Edges: elements that are added around a tensor, or taken from it, and the blocks of space that become batches between
such edges, as dilated convolutions are written."""

from __future__ import annotations

import math

import numpy as np

from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, Known, Tensor, rule
from trivium.ir import ops
from trivium.ir.core import Value


@rule("Pad")
def pad(ctx: Context, input: Value, paddings: Tensor) -> Value:
    """Pad(input, paddings) -> output"""
    return ctx.pad(input, *edges(ctx, paddings, "paddings"))


@rule("PadV2")
def pad_value(ctx: Context, input: Value, paddings: Tensor, constant_values: Value) -> Value:
    """PadV2(input, paddings, constant_values) -> output"""
    return ctx.pad(input, *edges(ctx, paddings, "paddings"), constant_values)


def edges(ctx: Context, given: Tensor, argument: str) -> tuple[list[Extent], list[Extent]]:
    """Returns how many elements are before, and how many are after, those of each dimension."""
    flat = given.reshape(-1) if isinstance(given, np.ndarray) else ctx.flattened(given)
    entries = ctx.given_sizes(flat, argument)
    return entries[::2], entries[1::2]


@rule("MirrorPad")
def mirror_pad(ctx: Context, input: Value, paddings: Tensor, *, mode: str) -> Value:
    """MirrorPad(input, paddings; mode) -> output"""
    skip = 1 if mode == "REFLECT" else 0  # the edge itself is not repeated
    for d, (low, high) in enumerate(zip(*edges(ctx, paddings, "paddings"), strict=True)):
        extent = ctx.extent(input, d)
        before = ctx.slice(input, d, skip, low + skip)
        after = ctx.slice(input, d, extent - high - skip, extent - skip)
        parts = [_flipped(ctx, before, d), input, _flipped(ctx, after, d)]
        input = ctx.concatenate([x for x in parts if x.type.shape[d] != 0], d)
    return input


@rule("MirrorPadGrad")
def mirror_pad_grad(ctx: Context, input: Value, paddings: Tensor, *, mode: str) -> Value:
    """MirrorPadGrad(input, paddings; mode) -> output"""
    skip = 1 if mode == "REFLECT" else 0
    for d, (low, high) in enumerate(zip(*edges(ctx, paddings, "paddings"), strict=True)):
        extent = ctx.extent(input, d) - low - high
        middle = ctx.slice(input, d, low, low + extent)
        before = _flipped(ctx, ctx.slice(input, d, 0, low), d)
        after = _flipped(ctx, ctx.slice(input, d, low + extent, low + extent + high), d)
        input = ctx.plus(middle, _placed(ctx, before, d, skip, extent))
        input = ctx.plus(input, _placed(ctx, after, d, extent - high - skip, extent))
    return input


def _placed(ctx: Context, x: Value, dimension: int, start: Extent, extent: Extent) -> Value:
    """Returns `x` among zeros, at `start` of a dimension of the given extent."""
    low: list[Extent] = [0] * x.type.rank
    high = list(low)
    low[dimension], high[dimension] = start, extent - start - ctx.extent(x, dimension)
    return ctx.pad(x, low, high)


def _flipped(ctx: Context, x: Value, dimension: int) -> Value:
    return ctx.add(ops.Reverse(x, dimensions=(dimension,)))


# Blocks of space that become batches


@rule("SpaceToBatchND")
def space_to_batch(ctx: Context, input: Value, block_shape: Known, paddings: Tensor) -> Value:
    """SpaceToBatchND(input, block_shape, paddings) -> output"""
    count, blocks = len(block_shape), [int(n) for n in block_shape]
    rest = input.type.rank - count - 1
    low, high = ([0, *edge, *[0] * rest] for edge in edges(ctx, paddings, "paddings"))
    x = ctx.pad(input, low, high)
    batch, *shape = ctx.extents(x)
    inner = [part for extent, n in zip(shape, blocks, strict=False) for part in (extent // n, n)]
    x = ctx.reshape(x, [batch, *inner, *shape[count:]])
    places = [1 + 2 * i for i in range(count)]
    moved = [*(i + 1 for i in places), 0, *places, *range(1 + 2 * count, x.type.rank)]
    x = ctx.transpose(x, moved)
    kept = [extent // n for extent, n in zip(shape, blocks, strict=False)]
    return ctx.reshape(x, [batch * math.prod(blocks), *kept, *shape[count:]])


@rule("BatchToSpaceND")
def batch_to_space(ctx: Context, input: Value, block_shape: Known, crops: Tensor) -> Value:
    """BatchToSpaceND(input, block_shape, crops) -> output"""
    count, blocks = len(block_shape), [int(n) for n in block_shape]
    batch, *shape = ctx.extents(input)
    outer = batch // math.prod(blocks)
    x = ctx.reshape(input, [*blocks, outer, *shape])
    order = [count, *(place for i in range(count) for place in (count + 1 + i, i)), *range(2 * count + 1, x.type.rank)]
    x = ctx.transpose(x, order)
    x = ctx.reshape(x, [outer, *(extent * n for extent, n in zip(shape, blocks, strict=False)), *shape[count:]])
    for i, (low, high) in enumerate(zip(*edges(ctx, crops, "crops"), strict=True), 1):
        x = ctx.slice(x, i, low, ctx.extent(x, i) - high)
    return x


@rule("SpaceToBatch")
def space_to_batch_2d(ctx: Context, input: Value, paddings: Tensor, *, block_size: int) -> Value:
    """SpaceToBatch(input, paddings; block_size) -> output"""
    return space_to_batch(ctx, input, np.array([block_size] * 2), paddings)


@rule("BatchToSpace")
def batch_to_space_2d(ctx: Context, input: Value, crops: Tensor, *, block_size: int) -> Value:
    """BatchToSpace(input, crops; block_size) -> output"""
    return batch_to_space(ctx, input, np.array([block_size] * 2), crops)
