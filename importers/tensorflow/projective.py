"""Images under projective transforms: each pixel of the result is read where a transform maps it to."""

from __future__ import annotations

from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, Tensor, rule
from trivium.importers.tensorflow.indexing import gathered_nd
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I32


@rule("ImageProjectiveTransformV2")
def projective_transform(
    ctx: Context, images: Value, transforms: Value, output_shape: Tensor, *, interpolation: str, fill_mode: str
) -> Value:
    """ImageProjectiveTransformV2(images, transforms, output_shape; interpolation, fill_mode="CONSTANT") ->
    transformed_images"""
    fill = ctx.scalar(0, F32)
    return _transformed(ctx, images, transforms, output_shape, fill, interpolation, fill_mode)


@rule("ImageProjectiveTransformV3")
def projective_transform_filled(
    ctx: Context,
    images: Value,
    transforms: Value,
    output_shape: Tensor,
    fill_value: Value,
    *,
    interpolation: str,
    fill_mode: str,
) -> Value:
    """ImageProjectiveTransformV3(images, transforms, output_shape, fill_value; interpolation, fill_mode="CONSTANT") ->
    transformed_images"""
    return _transformed(ctx, images, transforms, output_shape, fill_value, interpolation, fill_mode)


def _transformed(
    ctx: Context,
    images: Value,
    transforms: Value,
    output_shape: Tensor,
    fill: Value,
    interpolation: str,
    fill_mode: str,
) -> Value:
    if fill_mode not in MODES:
        ctx.unsupported("fill_mode", fill_mode, " or ".join(MODES))
    if interpolation not in ("NEAREST", "BILINEAR"):
        ctx.unsupported("interpolation", interpolation, "NEAREST or BILINEAR")
    batch, height, width, _ = ctx.extents(images)
    shape = [batch, *ctx.given_sizes(output_shape, "output_shape"), 1]
    x, y, exists = _sources(ctx, transforms, shape)
    x, y = (MODES[fill_mode](ctx, at, have) for at, have in ((x, width), (y, height)))
    filling = ctx.convert(fill, images.type.element_type)
    numbers = ctx.iota(shape, 0, I32)

    def pixels(row: Value, column: Value) -> Value:
        """Returns the pixels at whole places, and the filling where there is none."""
        inside = ctx.binary(ops.And, _is_inside(ctx, row, height), _is_inside(ctx, column, width))
        places = [ctx.convert(ctx.select(inside, at, ctx.full_like(at, 0)), I32) for at in (row, column)]
        found = gathered_nd(ctx, images, ctx.concatenate([numbers, *places], 3))
        return ctx.select(ctx.broadcast(inside, ctx.extents(found)), found, filling)

    if interpolation == "NEAREST":
        made = pixels(*(ctx.add(ops.RoundNearestAfz(at)) for at in (y, x)))
    else:
        top, left = (ctx.add(ops.Floor(at)) for at in (y, x))
        one = ctx.scalar(1, F32)
        bottom, right = ctx.plus(top, one), ctx.plus(left, one)

        def mixed(first: Value, second: Value, at: Value, low: Value, high: Value) -> Value:
            return ctx.plus(ctx.times(ctx.minus(high, at), first), ctx.times(ctx.minus(at, low), second))

        def line(row: Value) -> Value:
            ends = [ctx.convert(pixels(row, column), F32) for column in (left, right)]
            return mixed(ends[0], ends[1], x, left, right)

        made = ctx.convert(mixed(line(top), line(bottom), y, top, bottom), images.type.element_type)
    return ctx.select(ctx.broadcast(exists, ctx.extents(made)), made, filling)


def _sources(ctx: Context, transforms: Value, shape: list[Extent]) -> tuple[Value, Value, Value]:
    """Returns the column and the row from which each pixel comes, and whether they are finite. A single transform is
    that of all images."""
    across, down = (ctx.iota(shape, d, F32) for d in (2, 1))
    if transforms.type.shape[0] != 1:
        # An index beyond the end is that of the last row, which is the first one if there is one.
        transforms = ctx.take(transforms, ctx.iota(shape[:1], 0, I32))
    count = ctx.extent(transforms, 0)
    a = [ctx.reshape(ctx.slice(transforms, 1, i, i + 1), [count, 1, 1, 1]) for i in range(8)]

    def mapped(first: Value, second: Value, third: Value) -> Value:
        return ctx.plus(ctx.plus(ctx.times(first, across), ctx.times(second, down)), third)

    projection = mapped(a[6], a[7], ctx.scalar(1, F32))
    exists = ctx.compare("NE", projection, ctx.scalar(0, F32))
    by = ctx.select(exists, projection, ctx.scalar(1, F32))
    return ctx.over(mapped(*a[:3]), by), ctx.over(mapped(*a[3:6]), by), exists


def _is_inside(ctx: Context, at: Value, have: Extent) -> Value:
    last = ctx.number_as(have - 1, F32)
    return ctx.binary(ops.And, ctx.compare("GE", at, ctx.scalar(0, F32)), ctx.compare("LE", at, last))


# What is beyond the edges


def _clamped(ctx: Context, at: Value, have: Extent) -> Value:
    return ctx.binary(ops.Minimum, ctx.binary(ops.Maximum, at, ctx.scalar(0, F32)), ctx.number_as(have - 1, F32))


def _truncated(ctx: Context, x: Value) -> Value:
    """Returns numbers without their fraction."""
    down = ctx.add(ops.Floor(ctx.add(ops.Abs(x))))
    return ctx.times(down, ctx.add(ops.Sign(x)))


def _reflected(ctx: Context, at: Value, have: Extent) -> Value:
    """`dcba|abcd|dcba`"""
    zero, extent, period = ctx.scalar(0, F32), ctx.number_as(have, F32), ctx.number_as(have * 2, F32)
    one = ctx.scalar(1, F32)
    before = ctx.plus(ctx.times(period, _truncated(ctx, ctx.over(ctx.add(ops.Negate(at)), period))), at)
    mirrored = ctx.minus(ctx.add(ops.Negate(before)), one)
    is_far = ctx.compare("LT", before, ctx.add(ops.Negate(extent)))
    before = ctx.select(is_far, ctx.plus(before, period), mirrored)
    after = ctx.minus(at, ctx.times(period, _truncated(ctx, ctx.over(at, period))))
    turned = ctx.minus(ctx.minus(period, after), one)
    after = ctx.select(ctx.compare("GE", after, extent), turned, after)
    return _beyond(ctx, at, have, before, after, zero)


def _wrapped(ctx: Context, at: Value, have: Extent) -> Value:
    """`abcd|abcd|abcd`"""
    zero, extent, one = ctx.scalar(0, F32), ctx.number_as(have, F32), ctx.scalar(1, F32)
    # As TensorFlow counts the turns: by one less than the extent.
    last = ctx.binary(ops.Maximum, ctx.number_as(have - 1, F32), one)
    turns = ctx.plus(_truncated(ctx, ctx.over(ctx.add(ops.Negate(at)), last)), one)
    before = ctx.plus(at, ctx.times(extent, turns))
    after = ctx.minus(at, ctx.times(extent, _truncated(ctx, ctx.over(at, last))))
    return _beyond(ctx, at, have, before, after, zero)


def _beyond(ctx: Context, at: Value, have: Extent, before: Value, after: Value, zero: Value) -> Value:
    """Replaces places before the first one and after the last one."""
    last = ctx.number_as(have - 1, F32)
    found = ctx.select(ctx.compare("GT", at, last), after, at)
    found = ctx.select(ctx.compare("LT", at, zero), before, found)
    return _clamped(ctx, found, have)


MODES = {"REFLECT": _reflected, "WRAP": _wrapped, "CONSTANT": lambda ctx, at, have: at, "NEAREST": _clamped}
