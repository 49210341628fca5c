"""Parts of tensors, and tensors with something around them: boxes whose bounds are numbers, or are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast, get_args

from trivium.importers.extents import Extent, chosen, clamped, divided, larger, numbers_of, scalar_of
from trivium.importers.onnx.context import Context, axes_of, require_same_length, rule
from trivium.importers.onnx.shape import axes_from_front
from trivium.importers.padding import Mode, places_of_padding
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error


class Range(NamedTuple):
    """A part of one dimension, as NumPy slices it."""

    low: Extent
    high: Extent
    step: Extent


@rule("Slice", since=10)
def slice_(
    ctx: Context, x: Value, starts: Value, ends: Value, axes: Value | None = None, steps: Value | None = None
) -> Value:
    """Slice(data, starts, ends, axes, steps), as in NumPy; a negative step reverses"""
    starts, ends = _of_one_length(ctx, starts, ends, *(x for x in (axes, steps) if x is not None))
    lows, highs = ctx.listed(starts, "starts"), ctx.listed(ends, "ends")
    places: Sequence[Extent] = ctx.listed(axes, "axes") if axes is not None else range(len(lows))
    strides: Sequence[Extent] = ctx.listed(steps, "steps") if steps is not None else [1] * len(lows)
    require_same_length(starts=lows, ends=highs, axes=places, steps=strides)
    ranges = [Range(*entry) for entry in zip(lows, highs, strides, strict=True)]
    known = numbers_of(places)
    if known is not None:
        for axis, taken in zip(axes_of(known, x.type.rank), ranges, strict=True):
            x = _taken(ctx, x, axis, taken)
        return x
    places = axes_from_front(ctx, places, x.type.rank)
    for axis, extent in enumerate(ctx.extents(x)):
        bounds = Range(0, extent, 1)
        for place, given in zip(places, ranges, strict=True):
            bounds = Range(*(chosen(ctx, "EQ", place, axis, a, b) for a, b in zip(given, bounds, strict=True)))
        x = _taken(ctx, x, axis, bounds)
    return x


def _of_one_length(ctx: Context, starts: Value, ends: Value, *others: Value) -> list[Value]:
    """Returns lists whose lengths are computed with the length that is known of another one: they all have one."""
    known = [x.type.static_shape for x in (starts, ends, *others) if x.type.is_static]
    if not known:
        return [starts, ends]
    return [x if x.type.is_static or x.type.rank != 1 else ctx.reshape(x, known[0]) for x in (starts, ends)]


def _taken(ctx: Context, x: Value, axis: int, taken: Range) -> Value:
    """Returns the part of `x` along one dimension."""
    extent, step = ctx.extent(x, axis), taken.step
    known = numbers_of([extent, *taken])
    if known is not None:
        return _static(ctx, x, axis, range(known[0])[slice(*known[1:])])
    low, high = (chosen(ctx, "LT", bound, 0, extent + bound, bound) for bound in taken[:2])
    if isinstance(step, int) and step > 0:
        start, limit = clamped(ctx, low, 0, extent), clamped(ctx, high, 0, extent)
        return ctx.slice(x, axis, start, larger(ctx, start, limit), step)
    # To the front, the first element is the last one at most, and the one after the last may be before the first.
    least, most = chosen(ctx, "GT", step, 0, 0, -1), chosen(ctx, "GT", step, 0, extent, extent - 1)
    start, limit = clamped(ctx, low, least, most), clamped(ctx, high, least, most)
    toward = chosen(ctx, "GT", step, 0, 1, -1)
    count = larger(ctx, divided(ctx, limit - start + step - toward, step), 0)
    places = ctx.plus(ctx.times(ctx.iota([count], 0), scalar_of(ctx, step)), scalar_of(ctx, start))
    return ctx.take(x, places, axis)


def _static(ctx: Context, x: Value, axis: int, taken: range) -> Value:
    if not taken:
        return ctx.slice(x, axis, 0, 0)
    if taken.step > 0:
        return ctx.slice(x, axis, taken[0], taken[-1] + 1, taken.step)
    return ctx.add(ops.Reverse(ctx.slice(x, axis, taken[-1], taken[0] + 1, -taken.step), dimensions=(axis,)))


@rule("Pad", since=11)
def pad(
    ctx: Context, x: Value, pads: Value, value: Value | None = None, axes: Value | None = None, mode: str = "constant"
) -> Value:
    """Pad(data, pads, constant_value, axes, mode)"""
    amounts = ctx.listed(pads, "pads")
    places: Sequence[Extent] = ctx.listed(axes, "axes") if axes is not None else range(x.type.rank)
    if len(amounts) != 2 * len(places):
        raise Error(f"pads has {len(amounts)} entries, expected {2 * len(places)}")
    lows, highs = (_spread(ctx, places, part, x.type.rank) for part in _halves(amounts))
    if mode == "constant":
        return ctx.pad(x, lows, highs, 0 if value is None else ctx.reshape(value, ()))
    if mode not in get_args(Mode):
        ctx.unsupported("mode", mode, "constant, reflect, edge or wrap")
    for axis, edges in enumerate(zip(lows, highs, strict=True)):
        if edges != (0, 0):
            x = ctx.take(x, places_of_padding(ctx, ctx.extent(x, axis), edges, cast(Mode, mode)), axis)
    return x


def _halves(entries: Sequence[Extent]) -> tuple[Sequence[Extent], Sequence[Extent]]:
    return entries[: len(entries) // 2], entries[len(entries) // 2 :]


def _spread(ctx: Context, axes: Sequence[Extent], entries: Sequence[Extent], rank: int) -> list[Extent]:
    """Returns entries at their axes, and 0 elsewhere."""
    spread: list[Extent] = [0] * rank
    for axis, entry in zip(axes_from_front(ctx, axes, rank), entries, strict=True):
        spread = [chosen(ctx, "EQ", axis, d, entry, before) for d, before in enumerate(spread)]
    return spread
