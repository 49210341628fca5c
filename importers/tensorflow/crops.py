"""Parts of images that boxes cut out, resized to one size."""

from __future__ import annotations

from dataclasses import dataclass

from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, Tensor, rule
from trivium.importers.tensorflow.indexing import gathered_nd, scattered
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I32


@rule("CropAndResize")
def crop_and_resize(
    ctx: Context,
    image: Value,
    boxes: Value,
    box_ind: Value,
    crop_size: Tensor,
    *,
    method: str,
    extrapolation_value: float,
) -> Value:
    """CropAndResize(image, boxes, box_ind, crop_size; method="bilinear", extrapolation_value=0) -> crops"""
    height, width = ctx.given_sizes(crop_size, "crop_size")
    images = ctx.convert(image, F32)
    cut = _cut_of(ctx, ctx.extents(image), boxes, box_ind, height, width)

    def pixels(row: Value, column: Value) -> Value:
        return gathered_nd(ctx, images, cut.indices(ctx, row, column))

    if method == "nearest":
        made = pixels(*cut.nearest(ctx))
    else:
        (top, down), (left, across) = (_parted(ctx, x) for x in (cut.rows, cut.columns))
        bottom, right = (ctx.add(ops.Ceil(x)) for x in (cut.rows, cut.columns))
        upper = _between(ctx, pixels(top, left), pixels(top, right), across)
        lower = _between(ctx, pixels(bottom, left), pixels(bottom, right), across)
        made = _between(ctx, upper, lower, down)
    exists = ctx.broadcast(cut.exists(ctx), ctx.extents(made))
    return ctx.select(exists, made, ctx.scalar(extrapolation_value, F32))


@dataclass(frozen=True)
class Cut:
    """Where the pixels of boxes are, as fractions: rows [boxes, height, 1, 1] and columns [boxes, 1, width, 1] of the
    images, of the shape `whole`, with the numbers `images` [boxes, height, width, 1]."""

    rows: Value
    columns: Value
    images: Value
    whole: list[Extent]

    def indices(self, ctx: Context, row: Value, column: Value) -> Value:
        """Returns the positions of whole rows and columns, [boxes, height, width, 3]."""
        shape = ctx.extents(self.images)
        places = [ctx.broadcast(ctx.convert(x, I32), shape) for x in (row, column)]
        return ctx.concatenate([self.images, *places], 3)

    def nearest(self, ctx: Context) -> list[Value]:
        return [ctx.add(ops.RoundNearestAfz(x)) for x in (self.rows, self.columns)]

    def exists(self, ctx: Context) -> Value:
        """Whether a place is in its image, [boxes, height, width, 1]."""
        shape = ctx.extents(self.images)
        inside = [_is_inside(ctx, x, self.whole[d]) for d, x in enumerate((self.rows, self.columns), 1)]
        return ctx.add(ops.And(*(ctx.broadcast(x, shape) for x in inside)))


def _cut_of(ctx: Context, whole: list[Extent], boxes: Value, box_ind: Value, height: Extent, width: Extent) -> Cut:
    count = ctx.extent(boxes, 0)
    rows, columns = (_places(ctx, boxes, d, whole[d + 1], extent) for d, extent in enumerate((height, width)))
    rows, columns = ctx.reshape(rows, [count, height, 1, 1]), ctx.reshape(columns, [count, 1, width, 1])
    images = ctx.broadcast(ctx.reshape(box_ind, [count, 1, 1, 1]), [count, height, width, 1])
    return Cut(rows, columns, images, whole)


# Gradients


@rule("CropAndResizeGradImage")
def crop_and_resize_grad_image(
    ctx: Context, grads: Value, boxes: Value, box_ind: Value, image_size: Tensor, *, method: str
) -> Value:
    """CropAndResizeGradImage(grads, boxes, box_ind, image_size; method="bilinear") -> output"""
    whole = ctx.given_sizes(image_size, "image_size")
    _, height, width, _ = ctx.extents(grads)
    cut = _cut_of(ctx, whole, boxes, box_ind, height, width)
    exists = ctx.broadcast(cut.exists(ctx), ctx.extents(grads))
    total = ctx.full(whole, 0, accumulation_type(ctx.element_type))
    one = ctx.scalar(1, F32)
    if method == "nearest":
        parts = [(*cut.nearest(ctx), one, one)]
    else:
        (top, down), (left, across) = (_parted(ctx, x) for x in (cut.rows, cut.columns))
        bottom, right = (ctx.add(ops.Ceil(x)) for x in (cut.rows, cut.columns))
        ends = [(top, ctx.minus(one, down)), (bottom, down)], [(left, ctx.minus(one, across)), (right, across)]
        parts = [(row, column, share, other) for row, share in ends[0] for column, other in ends[1]]
    for row, column, share, other in parts:
        part = ctx.times(ctx.times(grads, share), other)
        part = ctx.convert(ctx.select(exists, part, ctx.full_like(part, 0)), total.type.element_type)
        total = scattered(ctx, ops.Add, total, cut.indices(ctx, row, column), part)
    return ctx.convert(total, ctx.element_type)


@rule("CropAndResizeGradBoxes")
def crop_and_resize_grad_boxes(ctx: Context, grads: Value, image: Value, boxes: Value, box_ind: Value) -> Value:
    """CropAndResizeGradBoxes(grads, image, boxes, box_ind; method="bilinear") -> output"""
    whole, images = ctx.extents(image), ctx.convert(image, F32)
    _, height, width, _ = ctx.extents(grads)
    cut = _cut_of(ctx, whole, boxes, box_ind, height, width)
    (top, down), (left, across) = (_parted(ctx, x) for x in (cut.rows, cut.columns))
    bottom, right = (ctx.add(ops.Ceil(x)) for x in (cut.rows, cut.columns))
    corners = [[gathered_nd(ctx, images, cut.indices(ctx, y, x)) for x in (left, right)] for y in (top, bottom)]
    (top_left, top_right), (bottom_left, bottom_right) = corners
    slopes = (
        _between(ctx, ctx.minus(bottom_left, top_left), ctx.minus(bottom_right, top_right), across),
        _between(ctx, ctx.minus(top_right, top_left), ctx.minus(bottom_right, bottom_left), down),
    )
    exists = ctx.broadcast(cut.exists(ctx), ctx.extents(grads))
    sides = []
    for slope, dimension, wanted in ((slopes[0], 1, height), (slopes[1], 2, width)):
        part = ctx.times(slope, grads)
        part = ctx.select(exists, part, ctx.full_like(part, 0))
        part = ctx.reduce(ops.Add, part, [d for d in (1, 2, 3) if d != dimension])
        sides.append(_of_ends(ctx, part, whole[dimension], wanted))
    (top, bottom), (left, right) = sides
    return ctx.concatenate([ctx.unsqueeze(x, [1]) for x in (top, left, bottom, right)], 1)


def _of_ends(ctx: Context, part: Value, have: Extent, wanted: Extent) -> list[Value]:
    """Returns how much both ends of boxes move the places that are between them, [boxes, wanted]."""
    last = ctx.number_as(have - 1, F32)
    if wanted == 1:
        return [ctx.reduce(ops.Add, ctx.times(ctx.scaled(part, 0.5), last), [1])] * 2
    ratio = ctx.over(last, ctx.number_as(wanted - 1, F32))
    share = ctx.unsqueeze(ctx.times(ctx.iota([wanted], 0, F32), ratio), [0])
    return [ctx.reduce(ops.Add, ctx.times(part, x), [1]) for x in (ctx.minus(last, share), share)]


# Helpers


def _places(ctx: Context, boxes: Value, dimension: int, have: Extent, wanted: Extent) -> Value:
    """Returns the rows, or columns, of images that boxes cut out, as fractions: [boxes, wanted]."""
    low, high = (ctx.slice(boxes, 1, d, d + 1) for d in (dimension, dimension + 2))
    last = ctx.number_as(have - 1, F32)
    if wanted == 1:
        return ctx.times(ctx.scaled(ctx.plus(low, high), 0.5), last)
    step = ctx.over(ctx.times(ctx.minus(high, low), last), ctx.number_as(wanted - 1, F32))
    return ctx.plus(ctx.times(low, last), ctx.times(ctx.unsqueeze(ctx.iota([wanted], 0, F32), [0]), step))


def _parted(ctx: Context, places: Value) -> tuple[Value, Value]:
    """Returns places before others, and how far these are behind them."""
    before = ctx.add(ops.Floor(places))
    return before, ctx.minus(places, before)


def _between(ctx: Context, first: Value, second: Value, weight: Value) -> Value:
    return ctx.plus(first, ctx.times(ctx.minus(second, first), weight))


def _is_inside(ctx: Context, places: Value, have: Extent) -> Value:
    last = ctx.number_as(have - 1, F32)
    ends = ctx.compare("GE", places, ctx.scalar(0, F32)), ctx.compare("LE", places, last)
    return ctx.add(ops.And(*ends))
