"""Parts of images that boxes cut out, resized to one size."""

from __future__ import annotations

from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, Tensor, rule
from trivium.importers.tensorflow.indexing import gathered_nd
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
    images, count = ctx.convert(image, F32), ctx.extent(boxes, 0)
    height, width = ctx.given_sizes(crop_size, "crop_size")
    rows, columns = (
        _places(ctx, boxes, d, ctx.extent(image, d + 1), extent) for d, extent in enumerate((height, width))
    )
    # Places are [boxes, height, 1, 1] and [boxes, 1, width, 1].
    rows, columns = ctx.reshape(rows, [count, height, 1, 1]), ctx.reshape(columns, [count, 1, width, 1])
    shape = [count, height, width, 1]
    chosen = ctx.broadcast(ctx.reshape(box_ind, [count, 1, 1, 1]), shape)

    def pixels(row: Value, column: Value) -> Value:
        places = [ctx.broadcast(ctx.convert(x, I32), shape) for x in (row, column)]
        return gathered_nd(ctx, images, ctx.concatenate([chosen, *places], 3))

    if method == "nearest":
        made = pixels(*(ctx.add(ops.RoundNearestAfz(x)) for x in (rows, columns)))
    else:
        (top, down), (left, across) = (_parted(ctx, x) for x in (rows, columns))
        bottom, right = (ctx.add(ops.Ceil(x)) for x in (rows, columns))
        upper = _between(ctx, pixels(top, left), pixels(top, right), across)
        lower = _between(ctx, pixels(bottom, left), pixels(bottom, right), across)
        made = _between(ctx, upper, lower, down)
    inside = [_is_inside(ctx, x, ctx.extent(image, d)) for d, x in enumerate((rows, columns), 1)]
    exists = ctx.broadcast(ctx.add(ops.And(*(ctx.broadcast(x, shape) for x in inside))), ctx.extents(made))
    return ctx.select(exists, made, ctx.scalar(extrapolation_value, F32))


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
