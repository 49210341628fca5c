"""Resizing: each dimension by itself. A place of the result is at a coordinate of the operand, and is combined from the
elements around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trivium.importers.extents import Extent, Size, numbers_of, scalar_of
from trivium.importers.onnx.context import Context, axes_of, require_same_length, require_shape, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.known import evaluate_known
from trivium.ir.types import F32, F64, I64, is_integer

NEAREST = {
    "round_prefer_floor": lambda ctx, x: ctx.add(ops.Ceil(ctx.minus(x, ctx.scalar(0.5, F64)))),
    "round_prefer_ceil": lambda ctx, x: ctx.add(ops.Floor(ctx.plus(x, ctx.scalar(0.5, F64)))),
    "floor": lambda ctx, x: ctx.add(ops.Floor(x)),
    "ceil": lambda ctx, x: ctx.add(ops.Ceil(x)),
}
POLICIES = ("stretch", "not_larger", "not_smaller")


@dataclass(frozen=True)
class Options:
    """The attributes of a node."""

    mode: str
    coordinates: str
    rounding: str
    cubic: float
    exclude_outside: bool
    antialias: bool


@dataclass(frozen=True)
class Axis:
    """One dimension that is resized. `scale` and the part of it that is read are numbers of 64 bits."""

    dimension: int
    given: Extent
    extent: Extent
    scale: Value
    start: Value
    end: Value


@rule("Resize", since=11)
def resize(
    ctx: Context, x: Value, roi: Value | None = None, scales: Value | None = None, sizes: Value | None = None,
    antialias: int = 0, axes: Sequence[int] | None = None, coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest", nearest_mode: str = "round_prefer_floor",
) -> Value:  # fmt: skip
    """Resize(X, roi, scales, sizes, ...)"""
    options = Options(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(exclude_outside), bool(antialias)
    )
    _require(ctx, options, keep_aspect_ratio_policy)
    dimensions = axes_of(axes, x.type.rank) if axes is not None else tuple(range(x.type.rank))
    given = [ctx.extent(x, dimension) for dimension in dimensions]
    if sizes is not None and sizes.type.shape != (0,):
        wanted = ctx.listed(sizes, "sizes")
        require_same_length(dimensions=dimensions, sizes=wanted)
        if (known := numbers_of(wanted)) is not None and min(known, default=0) < 0:
            raise Error(f"sizes has {list(known)}, expected no negative numbers")
        extents, factors = _of_sizes(ctx, given, wanted, keep_aspect_ratio_policy)
    else:
        if scales is None:
            ctx.unsupported("scales", "neither scales nor sizes", "one of them")
        require_shape(scales, "scales", [len(dimensions)])
        extents, factors = _of_scales(ctx, given, scales)
    crops = roi is not None and roi.type.shape != (0,) and options.coordinates == "tf_crop_and_resize"
    if crops and roi is not None:
        require_shape(roi, "roi", [2 * len(dimensions)])
    # Without a box, the whole image is taken.
    whole = [ctx.scalar(bound, F64) for bound in (0, 1) for _ in dimensions]
    bounds = _elements(ctx, roi) if crops and roi is not None else whole
    resized = [
        Axis(*entry)
        for entry in zip(dimensions, given, extents, factors, bounds, bounds[len(dimensions) :], strict=False)
        if crops or not _stays(entry[3])
    ]
    if all(isinstance(a, int) and isinstance(b, int) and a <= b for a, b in zip(given, extents, strict=True)):
        resized.reverse()  # elements of a row are combined before there are more rows
    outside = None
    wide = x if options.mode == "nearest" or not is_integer(x.type.element_type) else ctx.convert(x, F32)
    for axis in resized:
        places = _coordinates(ctx, axis, options.coordinates)
        wide = _along(ctx, wide, axis, places, options)
        if crops:
            beyond = ctx.add(ops.Or(ctx.compare("LT", places, ctx.scalar(0, F64)), ctx.compare(
                "GT", places, ctx.convert(scalar_of(ctx, axis.given - 1), F64))))  # fmt: skip
            beyond = ctx.reshape(beyond, (axis.extent, *[1] * (x.type.rank - 1 - axis.dimension)))
            outside = beyond if outside is None else ctx.binary(ops.Or, outside, beyond)
    if options.antialias and is_integer(x.type.element_type):  # as other runtimes do; without a filter, they truncate
        wide = ctx.add(ops.RoundNearestAfz(ctx.convert(wide, F32)))
    result = ctx.convert(wide, x.type.element_type)
    return result if outside is None else ctx.select(outside, ctx.full_like(result, extrapolation_value), result)


def _require(ctx: Context, options: Options, policy: str) -> None:
    for argument, value, expected in (
        ("mode", options.mode, ("nearest", "linear", "cubic")),
        ("nearest_mode", options.rounding, tuple(NEAREST)),
        ("coordinate_transformation_mode", options.coordinates, tuple(COORDINATES)),
        ("keep_aspect_ratio_policy", policy, POLICIES),
    ):
        if value not in expected:
            ctx.unsupported(argument, value, "one of " + ", ".join(expected))


@rule("Upsample", since=9)
def upsample(ctx: Context, x: Value, scales: Value, mode: str = "nearest") -> Value:
    """Upsample(X, scales, mode)"""
    return resize(
        ctx, x, None, scales, coordinate_transformation_mode="asymmetric", mode=mode, nearest_mode="floor"
    )  # fmt: skip


@rule("Upsample", since=7)
def earlier_upsample(ctx: Context, x: Value, scales: Sequence[float], mode: str = "nearest") -> Value:
    """Upsample(X, scales, mode)"""
    return upsample(ctx, x, ctx.elements(scales, F32), mode)


@rule("Resize", since=10)
def earlier_resize(ctx: Context, x: Value, scales: Value, mode: str = "nearest") -> Value:
    """Resize(X, scales, mode), as Upsample; where an image becomes smaller, the nearest element is the next one, as in
    ONNX Runtime"""
    if mode != "nearest":
        return upsample(ctx, x, scales, mode)
    one = ctx.full_like(scales, 1)
    less, more = (ctx.binary(op, scales, one) for op in (ops.Minimum, ops.Maximum))
    smaller = resize(ctx, x, None, less, coordinate_transformation_mode="asymmetric", nearest_mode="ceil")
    return upsample(ctx, smaller, more, mode)


def _stays(factor: Value) -> bool:
    """Whether a dimension is known to keep its extent."""
    known = evaluate_known(factor)
    return known is not None and known.item() == 1


def _elements(ctx: Context, x: Value) -> list[Value]:
    wide = ctx.convert(x, F64)
    return [ctx.reshape(ctx.slice(wide, 0, i, i + 1), ()) for i in range(x.type.size)]


def _of_scales(ctx: Context, given: Sequence[Extent], scales: Value) -> tuple[list[Extent], list[Value]]:
    extents: list[Extent] = []
    for index, extent in enumerate(given):
        factor = ctx.reshape(ctx.slice(scales, 0, index, index + 1), ())
        # Multiplied in 32 bits, where 10 times the float nearest to 0.7 is 7.
        count = ctx.add(ops.Floor(ctx.times(ctx.convert(scalar_of(ctx, extent), F32), ctx.convert(factor, F32))))
        known = evaluate_known(count)
        extents.append(int(known) if known is not None else Size(ctx, ctx.convert(count, I64), is_extent=True))
    return extents, _elements(ctx, scales)


def _of_sizes(
    ctx: Context, given: Sequence[Extent], sizes: Sequence[Extent], policy: str
) -> tuple[list[Extent], list[Value]]:
    pairs = [[ctx.convert(scalar_of(ctx, extent), F64) for extent in pair] for pair in zip(given, sizes, strict=True)]
    factors = [ctx.over(wanted, have) for have, wanted in pairs]
    if policy == "stretch":
        return list(sizes), factors
    factor = factors[0]
    for other in factors[1:]:
        factor = ctx.binary(ops.Minimum if policy == "not_larger" else ops.Maximum, factor, other)
    extents: list[Extent] = []
    for have, _ in pairs:
        count = ctx.add(ops.Floor(ctx.plus(ctx.times(factor, have), ctx.scalar(0.5, F64))))
        known = evaluate_known(count)
        extents.append(int(known) if known is not None else Size(ctx, ctx.convert(count, I64), is_extent=True))
    return extents, [factor] * len(given)


# Coordinates


def _coordinates(ctx: Context, axis: Axis, name: str) -> Value:
    """Returns where in the operand the places of the result are."""
    # In 32 bits, as other runtimes do: 1.5 over the float nearest to 0.6 is 2.5, on whose side a nearest element is.
    axis = replace(axis, **{name: ctx.convert(getattr(axis, name), F32) for name in ("scale", "start", "end")})
    places = ctx.iota([axis.extent], 0, F32)
    have, count = (ctx.convert(scalar_of(ctx, extent), F32) for extent in (axis.given, axis.extent))
    return ctx.convert(COORDINATES[name](ctx, axis, places, have, count), F64)


def _half_pixel(ctx: Context, axis: Axis, places: Value, have: Value, count: Value) -> Value:
    half = ctx.scalar(0.5, F32)
    return ctx.minus(ctx.over(ctx.plus(places, half), axis.scale), half)


def _symmetric(ctx: Context, axis: Axis, places: Value, have: Value, count: Value) -> Value:
    adjustment = ctx.over(count, ctx.times(axis.scale, have))
    offset = ctx.times(ctx.times(have, ctx.scalar(0.5, F32)), ctx.minus(ctx.scalar(1, F32), adjustment))
    return ctx.plus(offset, _half_pixel(ctx, axis, places, have, count))


def _pytorch(ctx: Context, axis: Axis, places: Value, have: Value, count: Value) -> Value:
    one = ctx.scalar(1, F32)
    found = _half_pixel(ctx, axis, places, have, count)
    return ctx.select(ctx.compare("GT", count, one), found, ctx.full_like(found, 0))


def _align_corners(ctx: Context, axis: Axis, places: Value, have: Value, count: Value) -> Value:
    # ONNX's tests take the length before it is rounded down to a whole number of elements.
    one, length = ctx.scalar(1, F32), ctx.times(axis.scale, have)
    steps = ctx.minus(length, one)
    steps = ctx.select(ctx.compare("EQ", count, one), one, steps)
    return ctx.over(ctx.times(places, ctx.minus(have, one)), steps)


def _crop(ctx: Context, axis: Axis, places: Value, have: Value, count: Value) -> Value:
    one, last = ctx.scalar(1, F32), ctx.minus(have, ctx.scalar(1, F32))
    steps = ctx.add(ops.Maximum(ctx.minus(count, one), one))
    step = ctx.over(ctx.times(ctx.minus(axis.end, axis.start), last), steps)
    along = ctx.plus(ctx.times(axis.start, last), ctx.times(places, step))
    middle = ctx.times(ctx.times(ctx.plus(axis.start, axis.end), ctx.scalar(0.5, F32)), last)
    return ctx.select(ctx.compare("GT", count, one), along, middle)


COORDINATES: dict[str, Callable[[Context, Axis, Value, Value, Value], Value]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": _pytorch,
    "align_corners": _align_corners,
    "asymmetric": lambda ctx, axis, places, have, count: ctx.over(places, axis.scale),
    "tf_half_pixel_for_nn": lambda ctx, axis, places, have, count: ctx.over(
        ctx.plus(places, ctx.scalar(0.5, F32)), axis.scale
    ),
    "tf_crop_and_resize": _crop,
}


# Elements around a coordinate


def _along(ctx: Context, x: Value, axis: Axis, places: Value, options: Options) -> Value:
    """Returns `x` resized along one dimension."""
    last = scalar_of(ctx, axis.given - 1)
    first = ctx.scalar(0, I64)
    if options.mode == "nearest":
        at = ctx.convert(NEAREST[options.rounding](ctx, places), I64)
        return ctx.take(x, ctx.add(ops.Clamp(first, at, last)), axis.dimension)
    if options.antialias:
        return _filtered(ctx, x, axis, places, options)
    floor = ctx.add(ops.Floor(places))
    taps = (0, 1) if options.mode == "linear" else (-1, 0, 1, 2)
    kernel = _kernel(options)
    weights = [kernel(ctx, ctx.minus(ctx.plus(floor, ctx.scalar(tap, F64)), places)) for tap in taps]
    at = [ctx.plus(ctx.convert(floor, I64), ctx.scalar(tap, I64)) for tap in taps]
    if options.exclude_outside:
        weights = _inside(ctx, weights, at, last)
    kind, total = x.type.element_type, None
    for weight, place in zip(weights, at, strict=True):
        weight = ctx.reshape(ctx.convert(weight, kind), (axis.extent, *[1] * (x.type.rank - 1 - axis.dimension)))
        part = ctx.times(ctx.take(x, ctx.add(ops.Clamp(first, place, last)), axis.dimension), weight)
        total = part if total is None else ctx.plus(total, part)
    assert total is not None
    return total


def _inside(ctx: Context, weights: Sequence[Value], at: Sequence[Value], last: Value) -> list[Value]:
    """Returns weights without those of elements that do not exist, of sum 1."""
    zero = ctx.scalar(0, I64)
    kept = []
    for weight, place in zip(weights, at, strict=True):
        is_inside = ctx.add(ops.And(ctx.compare("GE", place, zero), ctx.compare("LE", place, last)))
        kept.append(ctx.select(is_inside, weight, ctx.full_like(weight, 0)))
    total = kept[0]
    for weight in kept[1:]:
        total = ctx.plus(total, weight)
    return [ctx.over(weight, total) for weight in kept]


Kernel = Callable[[Context, Value], Value]


def _kernel(options: Options) -> Kernel:
    """Returns the weight of an element by its distance."""
    if options.mode == "linear":
        return lambda ctx, x: ctx.add(ops.Maximum(ctx.minus(ctx.full_like(x, 1), ctx.add(ops.Abs(x))),
                                                  ctx.full_like(x, 0)))  # fmt: skip
    a = options.cubic

    def polynomial(ctx: Context, x: Value, *factors: float) -> Value:
        result = ctx.full_like(x, factors[0])
        for factor in factors[1:]:
            result = ctx.plus(ctx.times(result, x), ctx.full_like(x, factor))
        return result

    def cubic(ctx: Context, x: Value) -> Value:
        x = ctx.add(ops.Abs(x))
        near, far = polynomial(ctx, x, a + 2, -(a + 3), 0, 1), polynomial(ctx, x, a, -5 * a, 8 * a, -4 * a)
        inner = ctx.select(ctx.compare("LT", x, ctx.full_like(x, 2)), far, ctx.full_like(x, 0))
        return ctx.select(ctx.compare("LE", x, ctx.full_like(x, 1)), near, inner)

    return cubic


def _filtered(ctx: Context, x: Value, axis: Axis, places: Value, options: Options) -> Value:
    """Returns `x` resized with a kernel that is as much wider as the result is smaller. Elements beyond the edges, as
    far as a kernel reaches, count as the edges, unless they are excluded."""
    one = ctx.scalar(1, F64)
    narrow = ctx.add(ops.Minimum(axis.scale, one))
    reach = axis.given * 2 + 4
    positions = ctx.minus(ctx.iota([axis.given + reach * 2], 0, I64), scalar_of(ctx, reach))
    distance = ctx.minus(ctx.unsqueeze(ctx.convert(positions, F64), [0]), ctx.unsqueeze(places, [1]))
    weights = _kernel(options)(ctx, ctx.times(distance, narrow))
    last, first = scalar_of(ctx, axis.given - 1), ctx.scalar(0, I64)
    source = ctx.add(ops.Clamp(first, positions, last))
    if options.exclude_outside:
        weights = ctx.select(
            ctx.unsqueeze(ctx.compare("EQ", source, positions), [0]), weights, ctx.full_like(weights, 0)
        )
    weights = ctx.over(weights, ctx.reduce(ops.Add, weights, [1], keep=True))
    hot = ctx.compare("EQ", ctx.unsqueeze(source, [1]), ctx.unsqueeze(ctx.iota([axis.given], 0), [0]))
    matrix = ctx.dot(weights, ctx.convert(hot, F64), ([1], [0]))
    kind = x.type.element_type
    result = ctx.dot(x, ctx.convert(matrix, kind), ([axis.dimension], [1]))
    order = list(np.insert(np.arange(x.type.rank - 1), axis.dimension, x.type.rank - 1))
    return ctx.transpose(result, [int(place) for place in order])
