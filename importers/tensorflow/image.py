"""Resizing of images. The origins of each pixel are known: rows and columns are gathered, weighted and added up; in the
gradients, they are scattered."""

from __future__ import annotations

from functools import reduce

import numpy as np

from trivium.importers.convolution import Layout, Windows
from trivium.importers.emit import require_computable
from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, Known, Tensor, rule, shape_of
from trivium.importers.tensorflow.convolution import windows_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I32, I64

FAR = 2.0**62
"""Further away than any pixel."""


@rule("ResizeNearestNeighbor")
def resize_nearest(
    ctx: Context, images: Value, size: Tensor, *, align_corners: bool, half_pixel_centers: bool
) -> Value:
    """ResizeNearestNeighbor(images, size; align_corners=false, half_pixel_centers=false) -> resized_images"""
    for dimension, extent in enumerate(_sizes(ctx, size), 1):
        have = ctx.extent(images, dimension)
        shift = 0.5 if align_corners or half_pixel_centers else 0
        if isinstance(have, int) and isinstance(extent, int):
            chosen = np.floor(_places(have, extent, align_corners, half_pixel_centers) + shift)
            rows = ctx.elements(np.clip(chosen, 0, have - 1).astype(np.int32))
        else:
            places = _computed_places(ctx, have, extent, align_corners, half_pixel_centers)
            rows = _within(ctx, ctx.add(ops.Floor(ctx.plus(places, ctx.scalar(shift, F32)))), have)
        images = ctx.take(images, rows, dimension)
    return images


def _sizes(ctx: Context, size: Tensor) -> list[Extent]:
    """Returns the height and the width of results."""
    sizes = ctx.given_sizes(size, "size")
    if any(isinstance(extent, int) and extent <= 0 for extent in sizes):
        ctx.unsupported("size", sizes, "positive numbers")
    return sizes


def _computed_places(
    ctx: Context, have: Extent, wanted: Extent, align_corners: bool, half_pixel_centers: bool
) -> Value:
    """Returns what `_places` does, where the program computes how many pixels there are."""
    scale = _computed_scale(ctx, have, wanted, align_corners)
    shift = ctx.scalar(0.5 if half_pixel_centers else 0, F32)
    return ctx.minus(ctx.times(ctx.plus(ctx.iota([wanted], 0, F32), shift), scale), shift)


def _computed_scale(ctx: Context, have: Extent, wanted: Extent, align_corners: bool) -> Value:
    """Returns the distance of new pixels among the old ones."""
    old, new = ctx.number_as(have, F32), ctx.number_as(wanted, F32)
    scale, one = ctx.over(old, new), ctx.scalar(1, F32)
    if align_corners:
        several = ctx.compare("GT", ctx.binary(ops.Minimum, old, new), one)
        scale = ctx.select(several, ctx.over(ctx.minus(old, one), ctx.minus(new, one)), scale)
    return scale


def whole_places(ctx: Context, places: Value) -> Value:
    """Returns places as integers. What is no number, or too large for one, is before all others."""
    far = ctx.full_like(places, FAR)
    is_near = ctx.compare("LT", ctx.add(ops.Abs(places)), far)
    return ctx.convert(ctx.select(is_near, places, ctx.add(ops.Negate(far))), I64)


def _within(ctx: Context, places: Value, have: Extent) -> Value:
    """Returns whole numbers as places of pixels, the nearest ones that exist."""
    last = ctx.minus(ctx.number_as(have, I32), ctx.scalar(1, I32))
    return ctx.add(ops.Clamp(ctx.scalar(0, I32), ctx.convert(places, I32), last))


@rule("ResizeNearestNeighborGrad")
def resize_nearest_grad(
    ctx: Context, grads: Value, size: Known, *, align_corners: bool, half_pixel_centers: bool
) -> Value:
    """ResizeNearestNeighborGrad(grads, size; align_corners=false, half_pixel_centers=false) -> output"""
    for dimension, extent in enumerate(size.tolist(), 1):
        have = grads.type.shape[dimension]
        places = _places(extent, have, align_corners, half_pixel_centers)
        chosen = np.floor(places + 0.5) if align_corners else np.floor(places + (0.5 if half_pixel_centers else 0))
        rows = np.clip(chosen, 0, extent - 1).astype(np.int64)
        grads = _scattered(ctx, grads, rows[:, None], np.ones((have, 1)), extent, dimension)
    return grads


@rule("ResizeBilinear")
def resize_bilinear(
    ctx: Context, images: Value, size: Tensor, *, align_corners: bool, half_pixel_centers: bool
) -> Value:
    """ResizeBilinear(images, size; align_corners=false, half_pixel_centers=false) -> resized_images"""
    images = ctx.convert(images, F32)
    for dimension, extent in reversed(list(enumerate(_sizes(ctx, size), 1))):
        have = ctx.extent(images, dimension)
        if isinstance(have, int) and isinstance(extent, int):
            taps, weights = _bilinear(have, extent, align_corners, half_pixel_centers)
            rows, share = [ctx.elements(at.astype(np.int32)) for at in taps.T], ctx.elements(weights[:, 1])
        else:
            places = _computed_places(ctx, have, extent, align_corners, half_pixel_centers)
            ends = ctx.add(ops.Floor(places)), ctx.add(ops.Ceil(places))
            rows, share = [_within(ctx, at, have) for at in ends], ctx.minus(places, ends[0])
        low, high = (ctx.take(images, at, dimension) for at in rows)
        share = ctx.broadcast_in_dim(share, ctx.extents(low), [dimension])
        images = ctx.plus(low, ctx.times(ctx.minus(high, low), share))
    return images


@rule("ResizeBilinearGrad")
def resize_bilinear_grad(
    ctx: Context, grads: Value, original_image: Tensor, *, align_corners: bool, half_pixel_centers: bool
) -> Value:
    """ResizeBilinearGrad(grads, original_image; align_corners=false, half_pixel_centers=false) -> output"""
    for dimension in (1, 2):
        have = shape_of(original_image)[dimension]
        taps = _bilinear(have, grads.type.shape[dimension], align_corners, half_pixel_centers)
        grads = _scattered(ctx, grads, *taps, have, dimension)
    return ctx.convert(grads, ctx.element_type)


@rule("ResizeBicubic")
def resize_bicubic(
    ctx: Context, images: Value, size: Tensor, *, align_corners: bool, half_pixel_centers: bool
) -> Value:
    """ResizeBicubic(images, size; align_corners=false, half_pixel_centers=false) -> resized_images"""
    images = ctx.convert(images, F32)
    for dimension, extent in enumerate(_sizes(ctx, size), 1):
        have = ctx.extent(images, dimension)
        if isinstance(have, int) and isinstance(extent, int):
            images = _gathered(ctx, images, *_bicubic(have, extent, align_corners, half_pixel_centers), dimension)
            continue
        taps = _computed_bicubic(ctx, have, extent, align_corners, half_pixel_centers)
        parts = [(ctx.take(images, at, dimension), weight) for at, weight in taps]
        shape = ctx.extents(parts[0][0])
        images = reduce(ctx.plus, [ctx.times(x, ctx.broadcast_in_dim(w, shape, [dimension])) for x, w in parts])
    return images


@rule("ResizeBicubicGrad")
def resize_bicubic_grad(
    ctx: Context, grads: Value, original_image: Tensor, *, align_corners: bool, half_pixel_centers: bool
) -> Value:
    """ResizeBicubicGrad(grads, original_image; align_corners=false, half_pixel_centers=false) -> output"""
    for dimension in (1, 2):
        have = shape_of(original_image)[dimension]
        taps = _bicubic(have, grads.type.shape[dimension], align_corners, half_pixel_centers)
        grads = _scattered(ctx, grads, *taps, have, dimension)
    return ctx.convert(grads, ctx.element_type)


@rule("ResizeArea")
def resize_area(ctx: Context, images: Value, size: Tensor, *, align_corners: bool) -> Value:
    """ResizeArea(images, size; align_corners=false) -> resized_images"""
    images = ctx.convert(images, F32)
    for dimension, wanted in enumerate(_sizes(ctx, size), 1):
        have = ctx.extent(images, dimension)
        if isinstance(have, int) and isinstance(wanted, int):
            weights = ctx.elements(_areas(have, wanted, align_corners))
        else:
            weights = _computed_areas(ctx, have, wanted, align_corners)
        places = [d for d in range(4) if d != dimension]
        summed = ctx.dot(weights, images, ([1], [dimension]))
        order = [places.index(d) + 1 if d != dimension else 0 for d in range(4)]
        images = ctx.transpose(summed, order)
    return images


@rule("ExtractImagePatches")
def extract_patches(
    ctx: Context,
    images: Value,
    *,
    ksizes: tuple[int, ...],
    strides: tuple[int, ...],
    rates: tuple[int, ...],
    padding: str,
) -> Value:
    """ExtractImagePatches(images; ksizes, strides, rates, padding) -> patches"""
    layout = Layout.named("NHWC")
    windows = windows_of(ctx, layout, ctx.extents(images), ksizes[1:3], strides, padding, (), rates)
    pieces = pieces_of(ctx, ctx.pad(images, *edges_of(windows)), windows)
    return ctx.concatenate(pieces, 3)


@rule("ExtractVolumePatches")
def extract_volume_patches(
    ctx: Context, input: Value, *, ksizes: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> Value:
    """ExtractVolumePatches(input; ksizes, strides, padding) -> patches"""
    layout = Layout.named("NDHWC")
    windows = windows_of(ctx, layout, ctx.extents(input), ksizes[1:4], strides, padding)
    return ctx.concatenate(pieces_of(ctx, ctx.pad(input, *edges_of(windows)), windows), 4)


def edges_of(windows: Windows) -> tuple[list[Extent], list[Extent]]:
    """Returns the padding of images below and above."""
    low, high = ([0, *(pair[side] for pair in windows.padding), 0] for side in range(2))
    return low, high


def pieces_of(ctx: Context, padded: Value, windows: Windows) -> list[Value]:
    """Returns for each place in a window the elements that are there in all windows."""
    space = range(len(windows.sizes))
    reach = [(size - 1) * rate for size, rate in zip(windows.sizes, windows.dilations, strict=True)]
    counts = [(ctx.extent(padded, 1 + i) - reach[i] - 1) // windows.strides[i] + 1 for i in space]
    pieces = []
    for place in np.ndindex(*windows.sizes):
        piece = padded
        for i in space:
            start = place[i] * windows.dilations[i]
            piece = ctx.slice(piece, 1 + i, start, start + (counts[i] - 1) * windows.strides[i] + 1, windows.strides[i])
        pieces.append(piece)
    return pieces


def _places(have: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """Returns the position of each new pixel among the old ones, in single precision as TensorFlow computes it."""
    require_computable(have * wanted, "the matrix of the resize")
    if align_corners and wanted > 1:
        scale = np.float32(have - 1) / np.float32(wanted - 1)
    else:
        scale = np.float32(have) / np.float32(wanted)
    shift = np.float32(0.5 if half_pixel_centers else 0)
    return (np.arange(wanted, dtype=np.float32) + shift) * scale - shift


def _bilinear(have: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> tuple[np.ndarray, np.ndarray]:
    """Returns two old pixels for each new one, and the share of each."""
    places = _places(have, wanted, align_corners, half_pixel_centers)
    low = np.floor(places)
    share = places - low
    return np.clip([low, np.ceil(places)], 0, have - 1).T.astype(int), np.stack([1 - share, share], 1)


CUBIC_STEPS = 1024
"""TensorFlow looks up the cubic's weights in a table with this many steps."""


def _bicubic(have: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> tuple[np.ndarray, np.ndarray]:
    """Returns four old pixels for each new one, and their weights, by Keys' cubic: a is -0.5 if the centres of pixels
    are at a half, and then nothing beyond the edge counts; otherwise it is -0.75, and the edge is repeated."""
    a = -0.5 if half_pixel_centers else -0.75
    places = _places(have, wanted, align_corners, half_pixel_centers)
    low = np.floor(places)
    share = np.round((places - low) * CUBIC_STEPS) / CUBIC_STEPS
    taps = np.arange(-1, 3)
    distance = np.abs(share[:, None] - taps)
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    weights = np.where(distance <= 1, near, far)
    at = low[:, None] + taps
    if half_pixel_centers:
        weights = np.where((at >= 0) & (at < have), weights, 0)
        weights /= weights.sum(1, keepdims=True)
    return np.clip(at, 0, have - 1).astype(int), weights


def _computed_bicubic(
    ctx: Context, have: Extent, wanted: Extent, align_corners: bool, half_pixel_centers: bool
) -> list[tuple[Value, Value]]:
    """Returns what `_bicubic` does, one tap after the other, where the program computes how many pixels there are."""
    a = -0.5 if half_pixel_centers else -0.75
    places = _computed_places(ctx, have, wanted, align_corners, half_pixel_centers)
    low = ctx.add(ops.Floor(places))
    steps = ctx.add(ops.RoundNearestEven(ctx.scaled(ctx.minus(places, low), CUBIC_STEPS)))
    share, zero = ctx.scaled(steps, 1 / CUBIC_STEPS), ctx.full_like(low, 0)
    rows, weights = [], []
    for tap, polynomial in zip(range(-1, 3), ("far", "near", "near", "far"), strict=True):
        distance = ctx.add(ops.Abs(ctx.minus(share, ctx.scalar(tap, F32))))
        factors = (a + 2, -(a + 3), 0, 1) if polynomial == "near" else (a, -5 * a, 8 * a, -4 * a)
        numbers = [ctx.scalar(x, F32) for x in factors]
        weight = reduce(lambda sum, x: ctx.plus(ctx.times(sum, distance), x), numbers)
        at = ctx.plus(low, ctx.scalar(tap, F32))
        if half_pixel_centers:
            is_there = ctx.compare("GE", at, zero), ctx.compare("LT", at, ctx.number_as(have, F32))
            weight = ctx.select(ctx.binary(ops.And, *is_there), weight, zero)
        rows.append(_within(ctx, at, have))
        weights.append(weight)
    if half_pixel_centers:
        total = reduce(ctx.plus, weights)
        weights = [ctx.over(weight, total) for weight in weights]
    return list(zip(rows, weights, strict=True))


def _areas(have: int, wanted: int, align_corners: bool) -> np.ndarray:
    """Returns how much of each new pixel each old one covers, in single precision as TensorFlow computes it."""
    require_computable(have * wanted, "the matrix of the resize")
    is_aligned = align_corners and have > 1 and wanted > 1
    scale = np.float32(have - 1) / np.float32(wanted - 1) if is_aligned else np.float32(have) / np.float32(wanted)
    shares = np.zeros((wanted, have), np.float32)
    for new in range(wanted):
        start, end = np.float32(new) * scale, np.float32(new + 1) * scale
        for old in range(int(np.floor(start)), int(np.ceil(end))):
            whole = old + 1 <= end
            share = (old + 1 - start if whole else scale) if old < start else (np.float32(1) if whole else end - old)
            shares[new, min(max(old, 0), have - 1)] += share
    return shares / scale


def _computed_areas(ctx: Context, have: Extent, wanted: Extent, align_corners: bool) -> Value:
    """Returns what `_areas` does, where the program computes how many pixels there are."""
    scale, one = _computed_scale(ctx, have, wanted, align_corners), ctx.scalar(1, F32)
    new, old = (ctx.iota([wanted, have], d, F32) for d in range(2))
    start, end, after = ctx.times(new, scale), ctx.times(ctx.plus(new, one), scale), ctx.plus(old, one)
    # What is beyond the last pixel counts as the last one.
    is_last = ctx.compare("GE", after, ctx.number_as(have, F32))
    is_whole = ctx.binary(ops.And, ctx.compare("LE", after, end), ctx.add(ops.Not(is_last)))
    begins_before = ctx.compare("LT", old, start)
    first = ctx.select(is_whole, ctx.minus(after, start), scale)
    share = ctx.select(begins_before, first, ctx.select(is_whole, one, ctx.minus(end, old)))
    meets = ctx.binary(
        ops.And, ctx.compare("LT", old, end), ctx.binary(ops.Or, is_last, ctx.compare("GT", after, start))
    )
    return ctx.over(ctx.select(meets, share, ctx.full_like(share, 0)), scale)


def _gathered(ctx: Context, x: Value, places: np.ndarray, weights: np.ndarray, dimension: int) -> Value:
    """Returns sums of rows along a dimension: one of each column of `places`, by their weights."""
    parts = [
        _weighted(ctx, ctx.take(x, ctx.elements(at.astype(np.int32)), dimension), share, dimension)
        for at, share in zip(places.T, weights.T, strict=True)
    ]
    return reduce(ctx.plus, parts)


def _scattered(ctx: Context, x: Value, places: np.ndarray, weights: np.ndarray, extent: int, dimension: int) -> Value:
    """Adds each row along a dimension to rows of the result, by weights: the transpose of `_gathered`."""
    others = tuple(i for i in range(x.type.rank) if i != dimension)
    numbers = ops.ScatterDimensionNumbers(
        update_window_dims=others,
        inserted_window_dims=(dimension,),
        scatter_dims_to_operand_dims=(dimension,),
        index_vector_dim=1,
    )
    shape = [extent if i == dimension else size for i, size in enumerate(ctx.extents(x))]
    total = ctx.full(shape, 0, x.type.element_type)
    for at, share in zip(places.T, weights.T, strict=True):
        total = ctx.add(
            ops.Scatter(
                [total],
                ctx.elements(at.astype(np.int32)[:, None]),
                [_weighted(ctx, x, share, dimension)],
                scatter_dimension_numbers=numbers,
                update_computation=ctx.combiner(ops.Add, x.type.element_type),
            )
        )[0]
    return total


def _weighted(ctx: Context, x: Value, weights: np.ndarray, dimension: int) -> Value:
    if (weights == 1).all():
        return x
    weight = ctx.elements(weights.astype(x.type.dtype))
    return ctx.times(x, ctx.broadcast_in_dim(weight, ctx.extents(x), [dimension]))
