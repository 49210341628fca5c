"""Reading images at coordinates: grids, deformed convolutions, regions of interest; and windows as columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import in_single
from trivium.importers.extents import Extent, Size, divided, scalar_of
from trivium.importers.onnx.context import Context, axis_of, rule
from trivium.importers.onnx.contraction import require_windows
from trivium.importers.onnx.indexing import scattered
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I1, I64

Tap = tuple[Value, Value]
"""Places along one dimension, and the weights of what is there."""


@rule("GridSample", since=16)
@in_single
def grid_sample(
    ctx: Context, x: Value, grid: Value, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Value:
    """GridSample(X, grid, align_corners, mode, padding_mode): places in [-1, 1], the last dimension of X first"""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in ("linear", "cubic", "nearest") or padding_mode not in ("zeros", "border", "reflection"):
        ctx.unsupported("mode", f"{mode}, {padding_mode}", "linear, cubic or nearest; zeros, border or reflection")
    batch, channels, *out = *ctx.extents(x)[:2], *ctx.extents(grid)[1:-1]
    extents = ctx.extents(x)[2:]
    points = ctx.reshape(grid, (batch, math.prod(out), len(extents)))
    taps = []
    for index, extent in enumerate(extents):
        last = len(extents) - 1 - index
        place = ctx.squeeze(ctx.slice(points, 2, last, last + 1), [2])
        place = _unnormalized(ctx, place, extent, bool(align_corners))
        # A cubic reads further away: its elements are kept inside, each by itself.
        if padding_mode == "border" and mode != "cubic":
            place = _clamped(ctx, place, extent - 1)
        elif padding_mode == "reflection" and mode != "cubic":
            place = _reflected(ctx, place, extent, bool(align_corners))
        found = _taps(ctx, place, mode)
        if padding_mode != "zeros":
            found = [
                (_bounded(ctx, at, extent, padding_mode, bool(align_corners)), weight) for at, weight in found
            ]  # fmt: skip
        taps.append(found)
    result = sampled(ctx, x, taps)
    return ctx.reshape(result, (batch, channels, *out))


def _bounded(ctx: Context, at: Value, extent: Extent, padding: str, corners: bool) -> Value:
    """Returns whole places inside, by the rule that the padding has for any."""
    place = ctx.convert(at, F32)
    if padding == "reflection":
        place = _reflected(ctx, place, extent, corners)
    return ctx.convert(_clamped(ctx, place, extent - 1), I64)


def _real(ctx: Context, extent: Extent, like: Value) -> Value:
    """Returns an extent as a float."""
    return ctx.convert(scalar_of(ctx, extent), like.type.element_type)


def _unnormalized(ctx: Context, x: Value, extent: Extent, corners: bool) -> Value:
    one = ctx.full_like(x, 1)
    if corners:
        return ctx.times(ctx.plus(x, one), ctx.scaled(_real(ctx, extent - 1, x), 0.5))
    return ctx.scaled(ctx.minus(ctx.times(ctx.plus(x, one), _real(ctx, extent, x)), one), 0.5)


def _clamped(ctx: Context, x: Value, last: Extent) -> Value:
    """Returns places from the first to the last one."""
    return ctx.add(ops.Clamp(ctx.scalar(0, x.type.element_type), x, _real(ctx, last, x)))


def _reflected(ctx: Context, x: Value, extent: Extent, corners: bool) -> Value:
    """Returns places reflected at the first and the last element, or half an element beyond them."""
    low = ctx.scalar(0.0 if corners else -0.5, x.type.element_type)
    turn = _real(ctx, (extent - 1) * 2 if corners else extent * 2, x)
    away = ctx.add(ops.Abs(ctx.minus(x, low)))
    rest = ctx.binary(ops.Remainder, away, turn)
    found = ctx.plus(ctx.binary(ops.Minimum, rest, ctx.minus(turn, rest)), low)
    return ctx.select(ctx.compare("EQ", turn, ctx.full_like(turn, 0)), ctx.full_like(x, 0), found)


def _taps(ctx: Context, place: Value, mode: str) -> list[Tap]:
    """Returns the elements around places along one dimension, with their weights."""
    if mode == "nearest":
        at = ctx.add(ops.RoundNearestEven(place))
        return [(ctx.convert(at, I64), ctx.full_like(place, 1))]
    floor = ctx.add(ops.Floor(place))
    t = ctx.minus(place, floor)
    at = ctx.convert(floor, I64)
    if mode == "linear":
        return [(at, ctx.minus(ctx.full_like(t, 1), t)), (ctx.plus(at, ctx.full_like(at, 1)), t)]
    shifted = [ctx.plus(at, ctx.full_like(at, shift)) for shift in (-1, 0, 1, 2)]
    return list(zip(shifted, _cubic(ctx, t), strict=True))


def _cubic(ctx: Context, t: Value) -> list[Value]:
    """Returns the weights of the four elements around a point, which is `t` after the second one."""
    a = -0.75

    def polynomial(x: Value, *factors: float) -> Value:
        result = ctx.full_like(x, factors[0])
        for factor in factors[1:]:
            result = ctx.plus(ctx.times(result, x), ctx.full_like(x, factor))
        return result

    one = ctx.full_like(t, 1)
    rest = ctx.minus(one, t)
    far, near = (a, -5 * a, 8 * a, -4 * a), (a + 2, -(a + 3), 0, 1)
    return [polynomial(ctx.plus(t, one), *far), polynomial(t, *near), polynomial(rest, *near),
            polynomial(ctx.plus(rest, one), *far)]  # fmt: skip


def sampled(ctx: Context, x: Value, taps: Sequence[Sequence[Tap]]) -> Value:
    """Returns `x` [N, C, spatial] at points [N, P], as [N, C, P]: the sum over all combinations of taps. Taps outside
    count as 0."""
    total = None
    for combination in itertools.product(*taps):
        value = _read(ctx, x, [at for at, _ in combination])
        for _, weight in combination:
            value = ctx.times(value, ctx.unsqueeze(ctx.convert(weight, x.type.element_type), [1]))
        total = value if total is None else ctx.plus(total, value)
    assert total is not None
    return total


def _read(ctx: Context, x: Value, places: Sequence[Value]) -> Value:
    batch, channels, *extents = ctx.extents(x)
    flat = ctx.transpose(ctx.reshape(x, (batch, channels, math.prod(extents))), [0, 2, 1])
    index, is_inside = None, None
    for at, extent in zip(places, extents, strict=True):
        zero, last = ctx.scalar(0, I64), scalar_of(ctx, extent - 1)
        here = ctx.add(ops.And(ctx.compare("GE", at, zero), ctx.compare("LE", at, last)))
        is_inside = here if is_inside is None else ctx.add(ops.And(is_inside, here))
        at = ctx.add(ops.Clamp(zero, at, ctx.add(ops.Maximum(zero, last))))
        index = at if index is None else ctx.plus(ctx.times(index, scalar_of(ctx, extent)), at)
    assert index is not None
    assert is_inside is not None
    numbers = ops.GatherDimensionNumbers(
        offset_dims=(2,), collapsed_slice_dims=(1,), operand_batching_dims=(0,), start_indices_batching_dims=(0,),
        start_index_map=(1,), index_vector_dim=2,
    )  # fmt: skip
    taken = ctx.gather(flat, ctx.unsqueeze(index, [2]), numbers, [1, 1, channels])
    taken = ctx.transpose(taken, [0, 2, 1])
    return ctx.select(ctx.unsqueeze(is_inside, [1]), taken, ctx.full_like(taken, 0))


@rule("DeformConv")
@in_single
def deform_conv(
    ctx: Context, x: Value, w: Value, offset: Value, bias: Value | None = None, mask: Value | None = None,
    dilations: Sequence[int] | None = None, group: int = 1, kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1, pads: Sequence[int] | None = None, strides: Sequence[int] | None = None,
) -> Value:  # fmt: skip
    """DeformConv(X, W, offset, B, mask, ...): a convolution whose windows read each element at a position of its own"""
    require_windows(x, w.type.static_shape[2:], kernel_shape, strides, dilations, pads)
    batch, _, *extents = ctx.extents(x)
    filters, inner, *sizes = w.type.static_shape
    channels, spatial, out = inner * group, len(sizes), ctx.extents(offset)[2:]
    strides, dilations, pads = strides or [1] * spatial, dilations or [1] * spatial, pads or [0] * 2 * spatial
    taps, points = math.prod(sizes), math.prod(out)
    moved = ctx.reshape(offset, (batch * offset_group, taps, spatial, points))
    places = []
    for d in range(spatial):
        window = ctx.elements(np.indices(sizes)[d].reshape(-1, 1) * dilations[d] - pads[d])
        start = ctx.scaled(ctx.reshape(ctx.iota(out, d), (1, points)), strides[d])
        here = ctx.squeeze(ctx.slice(moved, 2, d, d + 1), [2])
        at = ctx.plus(here, ctx.convert(ctx.plus(window, start), x.type.element_type))
        places.append(_taps(ctx, ctx.reshape(at, (batch * offset_group, taps * points)), "linear"))
    grouped = ctx.reshape(x, (batch * offset_group, channels // offset_group, *extents))
    columns = sampled(ctx, grouped, places)
    columns = ctx.reshape(columns, (batch, offset_group, channels // offset_group, taps, points))
    if mask is not None:
        columns = ctx.times(columns, ctx.reshape(mask, (batch, offset_group, 1, taps, points)))
    columns = ctx.reshape(columns, (batch, group, inner * taps, points))
    weights = ctx.reshape(w, (group, filters // group, inner * taps))
    product = ctx.dot(weights, columns, ([2], [2]), ([0], [1]))
    result = ctx.reshape(ctx.transpose(product, [2, 0, 1, 3]), (batch, filters, *out))
    return result if bias is None else ctx.plus(result, ctx.reshape(bias, (filters, *[1] * spatial)))


@rule("Col2Im")
def col2im(
    ctx: Context, x: Value, image_shape: Value, block_shape: Value, dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None, strides: Sequence[int] | None = None,
) -> Value:  # fmt: skip
    """Col2Im(input, image_shape, block_shape, dilations, pads, strides): columns are added where they were read"""
    extents, sizes = ctx.listed(image_shape, "image_shape"), ctx.listed(block_shape, "block_shape")
    spatial = len(extents)
    strides, dilations, pads = strides or [1] * spatial, dilations or [1] * spatial, pads or [0] * 2 * spatial
    batch, rows, count = ctx.extents(x)
    taps = math.prod(sizes)
    channels = divided(ctx, rows, taps) if isinstance(taps, Size) else rows // taps
    out = [
        (extent + low + high - (size - 1) * dilation - 1) // step + 1
        for extent, low, high, size, dilation, step in zip(
            extents, pads[:spatial], pads[spatial:], sizes, dilations, strides, strict=True
        )
    ]
    zero, index, is_inside = ctx.scalar(0, I64), ctx.scalar(0, I64), ctx.scalar(True, I1)
    for d, extent in enumerate(extents):
        tap = ctx.scaled(ctx.reshape(ctx.iota(sizes, d), (taps, 1)), dilations[d])
        start = ctx.scaled(ctx.reshape(ctx.iota(out, d), (1, count)), strides[d])
        at = ctx.minus(ctx.plus(tap, start), ctx.scalar(pads[d], I64))
        here = ctx.binary(ops.And, ctx.compare("GE", at, zero), ctx.compare("LT", at, scalar_of(ctx, extent)))
        is_inside = ctx.binary(ops.And, is_inside, here)
        index = ctx.plus(ctx.times(index, scalar_of(ctx, extent)), at)
    # What a scatter writes at a negative place is dropped.
    index = ctx.reshape(ctx.select(is_inside, index, ctx.scalar(-1, I64)), (taps * count, 1))
    room = ctx.full((batch, channels, math.prod(extents)), 0, x.type.element_type)
    numbers = ops.ScatterDimensionNumbers(
        update_window_dims=(0, 1), inserted_window_dims=(2,), scatter_dims_to_operand_dims=(2,), index_vector_dim=1
    )
    added = scattered(ctx, room, index, ctx.reshape(x, (batch, channels, taps * count)), numbers, "add")
    return ctx.reshape(added, (batch, channels, *extents))


@rule("AffineGrid")
@in_single
def affine_grid(ctx: Context, theta: Value, size: Value, align_corners: int = 0) -> Value:
    """AffineGrid(theta, size, align_corners): where in [-1, 1] each place of an image comes from, last dimension
    first"""
    _, _, *extents = ctx.listed(size, "size")
    kind, axes = theta.type.element_type, []
    for d, extent in enumerate(extents):
        count = ctx.convert(scalar_of(ctx, extent), kind)
        steps = ctx.iota(extents, d, kind)
        if align_corners:
            last = ctx.add(ops.Maximum(ctx.minus(count, ctx.scalar(1, kind)), ctx.scalar(1, kind)))
            along = ctx.over(ctx.scaled(steps, 2), last)
        else:
            along = ctx.over(ctx.plus(ctx.scaled(steps, 2), ctx.scalar(1, kind)), count)
        axes.append(ctx.minus(along, ctx.scalar(1, kind)))
    parts = [ctx.unsqueeze(x, [len(extents)]) for x in (*reversed(axes), ctx.full_like(axes[0], 1))]
    points = ctx.concatenate(parts, len(extents))
    grid = ctx.dot(theta, points, ([2], [len(extents)]))
    return ctx.transpose(grid, [0, *range(2, grid.type.rank), 1])


@rule("TensorScatter")
def tensor_scatter(
    ctx: Context, past: Value, update: Value, starts: Value | None = None, axis: int = -2, mode: str = "linear"
) -> Value:
    """TensorScatter(past_cache, update, write_indices, axis, mode): each entry of a batch is written at its own
    position"""
    if mode not in ("linear", "circular"):
        ctx.unsupported("mode", mode, "linear or circular")
    axis = axis_of(axis, past.type.rank)
    order = [0, axis, *(d for d in range(1, past.type.rank) if d != axis)]
    moved = ctx.transpose(update, order)
    extents, count = ctx.extents(past), scalar_of(ctx, ctx.extent(update, axis))
    places = ctx.iota([extents[0], extents[axis]], 1)
    if starts is not None:
        places = ctx.minus(places, ctx.unsqueeze(ctx.convert(starts, I64), [1]))
    if mode == "circular":
        whole = scalar_of(ctx, extents[axis])
        places = ctx.binary(ops.Remainder, ctx.plus(ctx.binary(ops.Remainder, places, whole), whole), whole)
    zero = ctx.full_like(places, 0)
    is_new = ctx.add(ops.And(ctx.compare("GE", places, zero), ctx.compare("LT", places, count)))
    numbers = ops.GatherDimensionNumbers(
        offset_dims=tuple(range(2, past.type.rank)), collapsed_slice_dims=(1,), operand_batching_dims=(0,),
        start_indices_batching_dims=(0,), start_index_map=(1,), index_vector_dim=2,
    )  # fmt: skip
    rest = ctx.extents(moved)[2:]
    taken = ctx.gather(moved, ctx.unsqueeze(ctx.select(is_new, places, zero), [2]), numbers, [1, 1, *rest])
    is_new = ctx.unsqueeze(is_new, list(range(2, past.type.rank)))
    kept = ctx.select(is_new, taken, ctx.transpose(past, order))
    return ctx.transpose(kept, [order.index(d) for d in range(past.type.rank)])
