"""Shapes, constants, and ops that move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import onnx

from trivium.importers.extents import Extent, Size, chosen, from_front, numbers_of, scalar_of, with_inferred
from trivium.importers.onnx.cast import converted
from trivium.importers.onnx.context import (
    Context,
    axes_of,
    axis_of,
    element_type,
    require_rank,
    require_same_length,
    rule,
)
from trivium.importers.onnx.files import array_of
from trivium.importers.selection import ranged
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.known import evaluate_known
from trivium.ir.types import I64


@rule("Constant")
def constant(
    ctx: Context, value: onnx.TensorProto | None = None, value_int=None, value_ints=None, value_float=None,
    value_floats=None,
) -> Value:  # fmt: skip
    """Constant(value)"""
    if value is not None:
        return ctx.elements(array_of(value, ctx.folder))
    if value_int is not None or value_ints is not None:
        return ctx.elements(np.array(value_ints if value_int is None else value_int, np.int64))
    return ctx.elements(np.array(value_floats if value_float is None else value_float, np.float32))


@rule("ConstantOfShape")
def constant_of_shape(ctx: Context, shape: Value, value: onnx.TensorProto | None = None) -> Value:
    """ConstantOfShape(input, value)"""
    element = np.zeros(1, np.float32) if value is None else array_of(value, ctx.folder)
    sizes = ctx.listed(shape, "input")
    if (numbers := numbers_of(sizes)) is not None:
        return ctx.elements(np.broadcast_to(element.reshape(()), numbers))
    return ctx.broadcast_in_dim(ctx.elements(element.reshape(())), sizes, [])


@rule("Shape")
def shape(ctx: Context, x: Value, start: int = 0, end: int | None = None) -> Value:
    """Shape(data, start, end)"""
    return ctx.vector(ctx.extents(x)[start:end])


@rule("Size")
def size(ctx: Context, x: Value) -> Value:
    """Size(data)"""
    return scalar_of(ctx, math.prod(ctx.extents(x)))


@rule("Range")
def range_(ctx: Context, start: Value, limit: Value, delta: Value) -> Value:
    """Range(start, limit, delta)"""
    bounds = [evaluate_known(value) for value in (start, limit, delta)]
    kind = start.type.element_type
    if all(bound is not None for bound in bounds):
        first, last, step = (bound.item() for bound in bounds if bound is not None)
        if step == 0:
            ctx.unsupported("delta", 0, "another number")
        return ctx.ramp(first, step, max(0, math.ceil((last - first) / step)), kind)
    first, last, step = (ctx.reshape(value, ()) for value in (start, limit, delta))
    return ranged(ctx, first, last, step)


@rule("EyeLike")
def eye_like(ctx: Context, x: Value, k: int = 0, dtype: int | None = None) -> Value:
    """EyeLike(input, dtype, k)"""
    kind = x.type.element_type if dtype is None else element_type(dtype)
    rows, columns = (ctx.iota_like(x, d) for d in range(2))
    return converted(ctx, ctx.compare("EQ", columns, ctx.plus(rows, ctx.scalar(k, I64))), kind, True, "up")


@rule("Reshape", since=5)
def reshape(ctx: Context, x: Value, shape: Value, allowzero: int = 0) -> Value:
    """Reshape(data, shape): 0 keeps an extent, -1 is inferred"""
    sizes, given = ctx.listed(shape, "shape"), ctx.extents(x)
    if not allowzero:
        kept = [*given, *sizes[len(given) :]]
        sizes = [
            a if isinstance(a, Size) and a.is_extent else chosen(ctx, "EQ", a, 0, b, a)
            for a, b in zip(sizes, kept, strict=False)
        ]
    return ctx.reshape(x, with_inferred(ctx, sizes, given))


@rule("Flatten")
def flatten(ctx: Context, x: Value, axis: int = 1) -> Value:
    """Flatten(input, axis)"""
    extents = ctx.extents(x)
    if not -len(extents) <= axis <= len(extents):
        raise Error(f"axis has {axis}, expected a number from {-len(extents)} to {len(extents)}")
    axis = axis + len(extents) if axis < 0 else axis
    return ctx.reshape(x, (math.prod(extents[:axis]), math.prod(extents[axis:])))


@rule("Squeeze", since=13)
def squeeze(ctx: Context, x: Value, axes: Value | None = None) -> Value:
    """Squeeze(data, axes)"""
    if axes is None:
        if not x.type.is_static:
            ctx.unsupported("axes", f"nothing for {x.type}", "axes: the rank of the result depends on dynamic sizes")
        return ctx.squeeze(x, [index for index, extent in enumerate(x.type.static_shape) if extent == 1])
    places = ctx.listed(axes, "axes")
    known = numbers_of(places)
    if known is not None:
        return ctx.squeeze(x, axes_of(known, x.type.rank))
    return ctx.reshape(x, remaining(ctx, ctx.extents(x), places))


@rule("Unsqueeze", since=13)
def unsqueeze(ctx: Context, x: Value, axes: Value) -> Value:
    """Unsqueeze(data, axes)"""
    places = ctx.listed(axes, "axes")
    known, rank = numbers_of(places), x.type.rank + len(places)
    if known is not None:
        return ctx.unsqueeze(x, axes_of(known, rank))
    places, given = axes_from_front(ctx, places, rank), ctx.extents(x)
    sizes: list[Extent] = []
    before: Extent = 0  # the number of inserted dimensions so far
    for dimension in range(rank):
        source: Extent = 1
        for index, extent in enumerate(given):
            source = chosen(ctx, "EQ", before + index, dimension, extent, source)
        inserted = among(ctx, places, dimension, 1, 0)
        sizes.append(chosen(ctx, "EQ", inserted, 1, 1, source))
        before = before + inserted
    return ctx.reshape(x, sizes)


def axes_from_front(ctx: Context, axes: Sequence[Extent], rank: int) -> list[Extent]:
    """Returns axes counted from the front."""
    return [from_front(ctx, axis, rank) for axis in axes]


def among(ctx: Context, axes: Sequence[Extent], dimension: int, on_true: Extent, on_false: Extent) -> Extent:
    """Returns `on_true` if a dimension is one of the axes, otherwise `on_false`."""
    result = on_false
    for axis in axes:
        result = chosen(ctx, "EQ", axis, dimension, on_true, result)
    return result


def remaining(ctx: Context, extents: Sequence[Extent], axes: Sequence[Extent]) -> list[Extent]:
    """Returns the extents without those at the axes, which are computed."""
    axes = axes_from_front(ctx, axes, len(extents))
    results: list[Extent] = [1] * (len(extents) - len(axes))
    place: Extent = 0  # the number of dimensions that remain so far
    for dimension, extent in enumerate(extents):
        stays = among(ctx, axes, dimension, 0, 1)
        for index, result in enumerate(results):
            here = chosen(ctx, "EQ", stays, 1, chosen(ctx, "EQ", place, index, extent, result), result)
            results[index] = here
        place = place + stays
    return results


@rule("Transpose")
def transpose(ctx: Context, x: Value, perm: Sequence[int] | None = None) -> Value:
    """Transpose(data, perm)"""
    return ctx.transpose(x, perm if perm is not None else list(reversed(range(x.type.rank))))


@rule("Expand")
def expand(ctx: Context, x: Value, shape: Value) -> Value:
    """Expand(input, shape)"""
    return ctx.broadcast(x, ctx.common_shape(ctx.extents(x), ctx.listed(shape, "shape")))


@rule("Tile", since=6)
def tile(ctx: Context, x: Value, repeats: Value) -> Value:
    """Tile(input, repeats)"""
    counts, extents = ctx.listed(repeats, "repeats"), ctx.extents(x)
    require_same_length(dimensions=extents, repeats=counts)
    spread = [number for pair in zip(counts, extents, strict=True) for number in pair]
    repeated = ctx.broadcast_in_dim(x, spread, range(1, 2 * x.type.rank, 2))
    return ctx.reshape(repeated, [count * extent for count, extent in zip(counts, extents, strict=True)])


@rule("Concat", since=4)
def concat(ctx: Context, *values: Value, axis: int) -> Value:
    """Concat(inputs, axis)"""
    return ctx.concatenate(values, axis_of(axis, values[0].type.rank))


@rule("Split", since=13)
def split(
    ctx: Context, x: Value, sizes: Value | None = None, axis: int = 0, num_outputs: int | None = None
) -> Sequence[Value]:
    """Split(input, split, axis, num_outputs): the last part may be smaller"""
    axis = axis_of(axis, x.type.rank)
    extent = ctx.extent(x, axis)
    if sizes is not None:
        parts = ctx.listed(sizes, "split")
        if (known := numbers_of(parts)) is not None and isinstance(extent, int) and sum(known) != extent:
            raise Error(f"split has the sum {sum(known)}, expected the extent {extent} of dimension {axis}")
    else:
        count = num_outputs or ctx.outputs
        if count != ctx.outputs:
            raise Error(f"num_outputs has {count}, expected the number of outputs, {ctx.outputs}")
        each = (extent + count - 1) // count
        parts = [*[each] * (count - 1), extent - each * (count - 1)]
    starts = [0, *accumulate(parts)]
    return [ctx.slice(x, axis, start, start + part) for start, part in zip(starts, parts, strict=False)]


@rule("DepthToSpace")
def depth_to_space(ctx: Context, x: Value, blocksize: int, mode: str = "DCR") -> Value:
    """DepthToSpace(input, blocksize, mode)"""
    n, c, h, w = _blocks(ctx, x, blocksize, mode)
    deep = c // blocksize**2
    if mode == "DCR":
        parts, order = (n, blocksize, blocksize, deep, h, w), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (n, deep, blocksize, blocksize, h, w), (0, 1, 4, 2, 5, 3)
    return ctx.reshape(ctx.transpose(ctx.reshape(x, parts), order), (n, deep, h * blocksize, w * blocksize))


def _blocks(ctx: Context, x: Value, size: int, mode: str) -> list[Extent]:
    """Returns the extents of an image whose blocks are moved; rejects other operands and attributes."""
    require_rank(x, "input", 4)
    if size < 1:
        raise Error(f"blocksize has {size}, expected a positive number")
    if mode not in ("DCR", "CRD"):
        ctx.unsupported("mode", mode, "DCR or CRD")
    return ctx.extents(x)


@rule("SpaceToDepth")
def space_to_depth(ctx: Context, x: Value, blocksize: int, mode: str = "DCR") -> Value:
    """SpaceToDepth(input, blocksize, mode)"""
    n, c, h, w = _blocks(ctx, x, blocksize, mode)
    parts = ctx.reshape(x, (n, c, h // blocksize, blocksize, w // blocksize, blocksize))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return ctx.reshape(ctx.transpose(parts, order), (n, c * blocksize**2, h // blocksize, w // blocksize))
