"""Boxes drawn into images."""

from __future__ import annotations

import numpy as np

from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, rule
from trivium.importers.tensorflow.image import whole_places
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I64

COLORS = np.array(
    [
        *((1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1)),
        *((0.5, 0.5, 0, 1), (0.5, 0, 0, 1), (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1)),
    ],
    np.float32,
)
"""The colours of TensorFlow's kernel, which repeat; in images of one channel, all are white."""

DEPTHS = (1, 3, 4)


@rule("DrawBoundingBoxes")
def draw_boxes(ctx: Context, images: Value, boxes: Value) -> Value:
    """DrawBoundingBoxes(images, boxes) -> output"""
    depth = _depth(ctx, images)
    colors = np.ones((len(COLORS), 1), np.float32) if depth == 1 else COLORS[:, :depth]
    return _drawn(ctx, images, boxes, ctx.elements(np.ascontiguousarray(colors)))


@rule("DrawBoundingBoxesV2")
def draw_colored_boxes(ctx: Context, images: Value, boxes: Value, colors: Value) -> Value:
    """DrawBoundingBoxesV2(images, boxes, colors) -> output"""
    if 0 in colors.type.shape:
        return draw_boxes(ctx, images, boxes)
    depth = _depth(ctx, images)
    have = colors.type.shape[1]
    if have is None or have < depth:
        ctx.unsupported("colors", colors.type, f"{depth} channels, as images, or more")
    return _drawn(ctx, images, boxes, ctx.slice(colors, 1, 0, depth))


def _depth(ctx: Context, images: Value) -> int:
    depth = images.type.shape[3]
    if depth not in DEPTHS:
        ctx.unsupported("images", f"{depth or 'an unknown number of'} channels", "1, 3 or 4")
    return depth


def _drawn(ctx: Context, images: Value, boxes: Value, colors: Value) -> Value:
    """Draws the edges of boxes, later ones over earlier ones."""
    batch, height, width, _ = ctx.extents(images)
    count = ctx.extent(boxes, 1)
    shape = [batch, count, height, width]

    def line(number: int, extent: Extent) -> Value:
        """Returns a row or column of each box."""
        scale = ctx.number_as(extent - 1, F32)
        place = ctx.times(ctx.squeeze(ctx.slice(boxes, 2, number, number + 1), [2]), scale)
        return ctx.broadcast_in_dim(whole_places(ctx, place), shape, [0, 1])

    def along(low: Value, high: Value, place: Value) -> tuple[Value, Value]:
        """Returns whether places are on an end of a side, and whether they are on the side."""
        ends = (ctx.compare("EQ", place, x) for x in (low, high))
        within = ctx.compare("LE", low, place), ctx.compare("LE", place, high)
        return ctx.binary(ops.Or, *ends), ctx.binary(ops.And, *within)

    top, left, bottom, right = (line(i, (height, width)[i % 2]) for i in range(4))
    on_row, in_rows = along(top, bottom, ctx.iota(shape, 2))
    on_column, in_columns = along(left, right, ctx.iota(shape, 3))
    is_upright = ctx.binary(ops.And, ctx.compare("LE", top, bottom), ctx.compare("LE", left, right))
    edges = ctx.binary(ops.Or, ctx.binary(ops.And, on_row, in_columns), ctx.binary(ops.And, on_column, in_rows))
    covers = ctx.binary(ops.And, is_upright, edges)
    number = ctx.select(covers, ctx.iota(shape, 1), ctx.full(shape, -1, I64))
    topmost = ctx.reduce(ops.Maximum, number, [1], init=-1)
    zero, kinds = ctx.scalar(0, I64), ctx.number_as(ctx.extent(colors, 0), I64)
    which = ctx.binary(ops.Remainder, ctx.binary(ops.Maximum, topmost, zero), kinds)
    found = ctx.convert(ctx.take(colors, which), images.type.element_type)
    is_drawn = ctx.broadcast_in_dim(ctx.compare("GE", topmost, zero), ctx.extents(images), [0, 1, 2])
    return ctx.select(is_drawn, found, images)
