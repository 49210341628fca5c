"""Boxes in images: the best ones without those that overlap them, and what images have inside of boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent, Size, clamped, larger, scalar_of
from trivium.importers.onnx.context import Context, require_rank, rule
from trivium.importers.onnx.selection import selected
from trivium.importers.selection import coordinates
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I1, I64


@rule("NonMaxSuppression")
def non_max_suppression(
    ctx: Context, boxes: Value, scores: Value, most: Value | None = None, shared: Value | None = None,
    least: Value | None = None, center_point_box: int = 0,
) -> Value:  # fmt: skip
    """NonMaxSuppression(boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold, center_point_box):
    rows of batch, class and box, as many as there are"""
    require_rank(boxes, "boxes", 3)
    require_rank(scores, "scores", 3)
    batch, classes, count = ctx.extents(scores)
    limit: Extent = 0 if most is None else clamped(ctx, ctx.number(most, "max_output_boxes_per_class"), 0, count)
    shape = (batch, classes, count)
    sides = [ctx.broadcast(ctx.unsqueeze(side, [1]), shape) for side in _sides(ctx, boxes, bool(center_point_box))]
    most_shared = ctx.scalar(0, F32) if shared is None else ctx.reshape(shared, ())
    rest = ctx.full(shape, True, I1)
    if least is not None:
        rest = ctx.compare("GT", scores, ctx.reshape(least, ()))
    chosen = _chosen(ctx, sides, scores, rest, most_shared, limit)  # [batch, classes, limit], -1 where there is none
    return _listed(ctx, chosen)


def _sides(ctx: Context, boxes: Value, is_centered: bool) -> list[Value]:
    """Returns the top, left, bottom and right of each box, given by any two opposite corners, or by its center."""
    columns = [ctx.squeeze(ctx.slice(boxes, 2, i, i + 1), [2]) for i in range(4)]
    if is_centered:
        x, y, width, height = columns
        halves = (ctx.scaled(height, 0.5), ctx.scaled(width, 0.5))
        return [op(middle, half) for op in (ctx.minus, ctx.plus) for middle, half in zip((y, x), halves, strict=True)]
    return [ctx.binary(op, columns[i], columns[i + 2]) for op in (ops.Minimum, ops.Maximum) for i in range(2)]


def _chosen(
    ctx: Context, sides: Sequence[Value], scores: Value, rest: Value, most_shared: Value, limit: Extent
) -> Value:
    """Returns the best boxes of each class, in their order, then -1: each is the best of those that are left, and
    removes those that share more than a part of their area with it."""
    batch, classes, count = ctx.extents(scores)
    none = scalar_of(ctx, count)
    _, order = ctx.sort([scores, ctx.iota_like(scores, 2)], 2, descending=True)
    _, ranks = ctx.sort([order, ctx.iota_like(order, 2)], 2)  # the place of each box among all
    room = ctx.full((batch, classes, larger(ctx, limit, 1)), -1, I64)
    start = [ctx.scalar(0, I64), room, rest]
    types, end = [value.type for value in start], scalar_of(ctx, limit)

    def goes_on(emit: Context, turn: Value, found: Value, rest: Value) -> Value:
        some = emit.reduce(ops.Or, rest, list(range(rest.type.rank)))
        return emit.add(ops.And(emit.compare("LT", turn, end), some))

    def step(emit: Context, turn: Value, found: Value, rest: Value) -> list[Value]:
        best = emit.reduce(ops.Minimum, emit.select(rest, ranks, none), [2], keep=True)
        is_best = emit.compare("EQ", ranks, best)
        own = [_only(emit, is_best, side) for side in sides]
        gone = emit.binary(ops.Or, is_best, emit.compare("GT", _shared(emit, own, sides), most_shared))
        place = _only(emit, is_best, emit.iota_like(ranks, 2))
        place = emit.select(emit.compare("LT", best, none), place, emit.scalar(-1, I64))
        zero = emit.scalar(0, I64)
        found = emit.add(ops.DynamicUpdateSlice(found, place, [zero, zero, turn]))
        return [emit.plus(turn, emit.scalar(1, I64)), found, emit.binary(ops.And, rest, emit.add(ops.Not(gone)))]

    return ctx.add(ops.While(start, cond=ctx.region(types, goes_on), body=ctx.region(types, step)))[1]


def _only(ctx: Context, chosen: Value, x: Value) -> Value:
    """Returns the element of each row that is chosen; 0 where none is."""
    return ctx.reduce(ops.Add, ctx.select(chosen, x, ctx.full_like(x, 0)), [2], keep=True)


def _shared(ctx: Context, own: Sequence[Value], sides: Sequence[Value]) -> Value:
    """Returns the area that each box shares with another one, as a part of the area that the two cover."""
    nothing = ctx.scalar(0, F32)

    def area(top: Value, left: Value, bottom: Value, right: Value) -> Value:
        return ctx.times(ctx.minus(bottom, top), ctx.minus(right, left))

    starts = [ctx.binary(ops.Maximum, mine, theirs) for mine, theirs in zip(own[:2], sides[:2], strict=True)]
    ends = [ctx.binary(ops.Minimum, mine, theirs) for mine, theirs in zip(own[2:], sides[2:], strict=True)]
    heights = [ctx.binary(ops.Maximum, ctx.minus(b, a), nothing) for a, b in zip(starts, ends, strict=True)]
    common, mine, theirs = ctx.times(*heights), area(*own), area(*sides)
    whole = ctx.minus(ctx.plus(mine, theirs), common)
    smallest = ctx.binary(ops.Minimum, ctx.binary(ops.Minimum, mine, theirs), ctx.binary(ops.Minimum, whole, common))
    return ctx.select(ctx.compare("GT", smallest, nothing), ctx.over(common, whole), ctx.scalar(-1, F32))


def _listed(ctx: Context, chosen: Value) -> Value:
    """Returns the index of each entry that is not negative, with the entry in place of its last part."""
    shape = ctx.extents(chosen)
    flat = ctx.reshape(chosen, [math.prod(shape)])
    kept = ctx.compare("GE", flat, ctx.full_like(flat, 0))
    places, boxes = selected(ctx, kept, ctx.iota_like(flat, 0), flat)
    batch, classes, _ = coordinates(ctx, places, shape)
    return ctx.concatenate([ctx.unsqueeze(x, [1]) for x in (batch, classes, boxes)], 1)


# Regions of interest


@rule("RoiAlign", since=16)
def roi_align(
    ctx: Context, x: Value, boxes: Value, images: Value, coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg", output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Value:  # fmt: skip
    """RoiAlign(X, rois, batch_indices, ...): samples in the cells of a grid in each box, combined"""
    if mode not in ("avg", "max") or coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
        ctx.unsupported("mode", f"{mode}, {coordinate_transformation_mode}", "avg or max, half_pixel or not")
    is_moved = coordinate_transformation_mode == "half_pixel"
    kind = accumulation_type(x.type.element_type)
    sides = ctx.scaled(ctx.convert(boxes, kind), spatial_scale)
    sides = ctx.minus(sides, ctx.scalar(0.5, kind)) if is_moved else sides
    left, top, right, bottom = (ctx.squeeze(ctx.slice(sides, 1, i, i + 1), [1]) for i in range(4))
    *_, height, width = ctx.extents(x)
    rows = _samples(ctx, top, bottom, output_height, sampling_ratio, is_moved, height)
    columns = _samples(ctx, left, right, output_width, sampling_ratio, is_moved, width)
    taps = [_corner(ctx, x, images, row, column) for row in rows.taps for column in columns.taps]
    exists = ctx.binary(ops.And, _as_rows(ctx, rows.exists), _as_columns(ctx, columns.exists))
    exists = ctx.unsqueeze(exists, [5])
    if mode == "max":
        best = ctx.binary(ops.Maximum, ctx.binary(ops.Maximum, *taps[:2]), ctx.binary(ops.Maximum, *taps[2:]))
        found = ctx.reduce(ops.Maximum, ctx.select(exists, best, ctx.scalar(-math.inf, kind)), [2, 4])
        empty = ctx.compare("EQ", found, ctx.scalar(-math.inf, kind))
        found = ctx.select(empty, ctx.scalar(0, kind), found)
    else:
        total = ctx.plus(ctx.plus(*taps[:2]), ctx.plus(*taps[2:]))
        total = ctx.reduce(ops.Add, ctx.select(exists, total, ctx.scalar(0, kind)), [2, 4])
        counts = ctx.binary(ops.Maximum, ctx.times(rows.each, columns.each), ctx.scalar(1, kind))
        found = ctx.over(total, ctx.reshape(counts, (ctx.extent(counts, 0), 1, 1, 1)))
    return ctx.convert(ctx.transpose(found, (0, 3, 1, 2)), x.type.element_type)


@rule("RoiAlign")
def first_roi_align(ctx: Context, x: Value, boxes: Value, images: Value, **options: str) -> Value:
    """RoiAlign(X, rois, batch_indices, ...): without coordinate_transformation_mode"""
    return roi_align(ctx, x, boxes, images, "output_half_pixel", **options)  # type: ignore[arg-type]


@rule("MaxRoiPool")
def max_roi_pool(ctx: Context, x: Value, rois: Value, pooled_shape: Sequence[int], spatial_scale: float = 1.0) -> Value:
    """MaxRoiPool(X, rois, pooled_shape, spatial_scale): the largest element in each cell of a grid in each box"""
    columns = [ctx.squeeze(ctx.slice(rois, 1, i, i + 1), [1]) for i in range(5)]
    image = ctx.convert(columns[0], I64)
    left, top, right, bottom = (ctx.add(ops.RoundNearestAfz(ctx.scaled(x, spatial_scale))) for x in columns[1:])
    found = _largest(ctx, ctx.take(x, image), 2, top, bottom, pooled_shape[0])
    found = _largest(ctx, found, 3, left, right, pooled_shape[1])
    is_empty = ctx.compare("EQ", found, ctx.full_like(found, -math.inf))
    return ctx.select(is_empty, ctx.full_like(found, 0), found)


def _largest(ctx: Context, x: Value, dimension: int, low: Value, high: Value, cells: int) -> Value:
    """Returns the largest element in each cell along a dimension, whose cells differ from box to box."""
    kind = low.type.element_type
    length = ctx.binary(ops.Maximum, ctx.plus(ctx.minus(high, low), ctx.scalar(1, kind)), ctx.scalar(1, kind))
    size = ctx.over(length, ctx.scalar(cells, kind))
    place = ctx.unsqueeze(ctx.iota([ctx.extent(x, dimension)], 0, kind), [0])
    parts = []
    for cell in range(cells):
        start = ctx.plus(ctx.add(ops.Floor(ctx.scaled(size, cell))), low)
        end = ctx.plus(ctx.add(ops.Ceil(ctx.scaled(size, cell + 1))), low)
        is_inside = ctx.binary(
            ops.And,
            ctx.compare("GE", place, ctx.unsqueeze(start, [1])),
            ctx.compare("LT", place, ctx.unsqueeze(end, [1])),
        )
        is_inside = ctx.broadcast_in_dim(is_inside, ctx.extents(x), [0, dimension])
        kept = ctx.select(is_inside, x, ctx.full_like(x, -math.inf))
        parts.append(ctx.reduce(ops.Maximum, kept, [dimension], keep=True))
    return ctx.concatenate(parts, dimension)


class Samples(NamedTuple):
    """Samples along one dimension, [box, cell, sample]: two places with their weights, and which of them exist; and how
    many a cell of each box has."""

    taps: Sequence[tuple[Value, Value]]
    exists: Value
    each: Value


def _samples(ctx: Context, low: Value, high: Value, cells: int, ratio: int, is_moved: bool, extent: Extent) -> Samples:
    kind = low.type.element_type
    zero, one = ctx.scalar(0, kind), ctx.scalar(1, kind)
    length = ctx.minus(high, low)
    length = length if is_moved else ctx.binary(ops.Maximum, length, one)
    size = ctx.scaled(length, 1 / cells)
    count = ctx.full_like(size, ratio) if ratio > 0 else ctx.add(ops.Ceil(size))
    most: Extent = ratio
    if ratio <= 0:
        top = ctx.convert(ctx.reduce(ops.Maximum, count, [0], init=0), I64)
        most = Size(ctx, top, is_extent=True)
    shape = [ctx.extent(low, 0), cells, most]
    low, size, count_here = (ctx.reshape(value, (shape[0], 1, 1)) for value in (low, size, count))
    sample = ctx.iota(shape, 2, kind)
    step = ctx.over(ctx.times(ctx.plus(sample, ctx.scalar(0.5, kind)), size), count_here)
    place = ctx.plus(ctx.plus(low, ctx.times(ctx.iota(shape, 1, kind), size)), step)
    end, last = (ctx.convert(scalar_of(ctx, value), kind) for value in (extent, extent - 1))
    is_near = ctx.binary(ops.And, ctx.compare("GE", place, ctx.scalar(-1, kind)), ctx.compare("LE", place, end))
    place = ctx.binary(ops.Minimum, ctx.binary(ops.Maximum, place, zero), last)
    floor = ctx.add(ops.Floor(place))
    part = ctx.minus(place, floor)
    after = ctx.binary(ops.Minimum, ctx.plus(floor, one), last)
    weights = [ctx.select(is_near, weight, zero) for weight in (ctx.minus(ctx.full_like(part, 1), part), part)]
    taps = [(ctx.convert(at, I64), weight) for at, weight in zip((floor, after), weights, strict=True)]
    return Samples(taps, ctx.compare("LT", sample, count_here), count)


def _as_rows(ctx: Context, x: Value) -> Value:
    return ctx.unsqueeze(x, [3, 4])


def _as_columns(ctx: Context, x: Value) -> Value:
    return ctx.unsqueeze(x, [1, 2])


def _corner(ctx: Context, x: Value, images: Value, row: tuple[Value, Value], column: tuple[Value, Value]) -> Value:
    """Returns the elements of all channels at places, times their weights: [box, cell, sample, cell, sample, channel],
    first of rows and then of columns."""
    count, channels, height, width = ctx.extents(x)
    flat = ctx.reshape(ctx.transpose(x, (0, 2, 3, 1)), (count * height * width, channels))
    image = ctx.reshape(ctx.convert(images, I64), (ctx.extent(images, 0), 1, 1, 1, 1))
    at = ctx.plus(ctx.times(image, scalar_of(ctx, height)), _as_rows(ctx, row[0]))
    at = ctx.plus(ctx.times(at, scalar_of(ctx, width)), _as_columns(ctx, column[0]))
    weight = ctx.times(_as_rows(ctx, row[1]), _as_columns(ctx, column[1]))
    taken = ctx.convert(ctx.take(flat, at, 0), weight.type.element_type)
    return ctx.times(taken, ctx.unsqueeze(weight, [5]))
