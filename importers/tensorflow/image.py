"""Resizing of images. The origin of each pixel is known: rows and columns are gathered, or mixed by a matrix."""

from __future__ import annotations

import numpy as np

from trivium.importers.convolution import Layout
from trivium.importers.emit import require_computable
from trivium.importers.tensorflow.context import Context, Known, Tensor, rule, shape_of
from trivium.importers.tensorflow.convolution import windows_of
from trivium.ir.core import Value
from trivium.ir.types import F32


@rule("ResizeNearestNeighbor")
def resize_nearest(ctx: Context, images: Value, size: Known, *, align_corners: bool, half_pixel_centers: bool) -> Value:
    """ResizeNearestNeighbor(images, size; align_corners=false, half_pixel_centers=false) -> resized_images"""
    for dimension, extent in enumerate(size.tolist(), 1):
        have = images.type.shape[dimension]
        places = _places(have, extent, align_corners, half_pixel_centers)
        chosen = np.floor(places + 0.5) if align_corners else np.floor(places + (0.5 if half_pixel_centers else 0))
        rows = np.clip(chosen, 0, have - 1).astype(np.int32)
        images = ctx.take(images, ctx.elements(rows), dimension)
    return images


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
        grads = _mixed(ctx, grads, np.eye(extent)[rows].T, dimension)
    return grads


@rule("ResizeBilinear")
def resize_bilinear(
    ctx: Context, images: Value, size: Known, *, align_corners: bool, half_pixel_centers: bool
) -> Value:
    """ResizeBilinear(images, size; align_corners=false, half_pixel_centers=false) -> resized_images"""
    images = ctx.convert(images, F32)
    for dimension, extent in enumerate(size.tolist(), 1):
        weights = _bilinear(images.type.shape[dimension], extent, align_corners, half_pixel_centers)
        images = _mixed(ctx, images, weights, dimension)
    return images


@rule("ResizeBilinearGrad")
def resize_bilinear_grad(
    ctx: Context, grads: Value, original_image: Tensor, *, align_corners: bool, half_pixel_centers: bool
) -> Value:
    """ResizeBilinearGrad(grads, original_image; align_corners=false, half_pixel_centers=false) -> output"""
    for dimension in (1, 2):
        have = shape_of(original_image)[dimension]
        weights = _bilinear(have, grads.type.shape[dimension], align_corners, half_pixel_centers)
        grads = _mixed(ctx, grads, weights.T, dimension)
    return grads


@rule("ResizeBicubic")
def resize_bicubic(ctx: Context, images: Value, size: Known, *, align_corners: bool, half_pixel_centers: bool) -> Value:
    """ResizeBicubic(images, size; align_corners=false, half_pixel_centers=false) -> resized_images"""
    images = ctx.convert(images, F32)
    for dimension, extent in enumerate(size.tolist(), 1):
        weights = _bicubic(images.type.shape[dimension], extent, align_corners, half_pixel_centers)
        images = _mixed(ctx, images, weights, dimension)
    return images


@rule("ResizeBicubicGrad")
def resize_bicubic_grad(
    ctx: Context, grads: Value, original_image: Tensor, *, align_corners: bool, half_pixel_centers: bool
) -> Value:
    """ResizeBicubicGrad(grads, original_image; align_corners=false, half_pixel_centers=false) -> output"""
    for dimension in (1, 2):
        have = shape_of(original_image)[dimension]
        weights = _bicubic(have, grads.type.shape[dimension], align_corners, half_pixel_centers)
        grads = _mixed(ctx, grads, weights.T, dimension)
    return grads


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
    shape = images.type.shape
    windows = windows_of(ctx, layout, shape[1:3], ksizes[1:3], strides, padding, (), rates)
    low, high = ([0, windows.padding[0][side], windows.padding[1][side], 0] for side in range(2))
    padded = ctx.pad(images, low, high)
    reach = [(size - 1) * rate for size, rate in zip(windows.sizes, windows.dilations, strict=True)]
    counts = [(padded.type.shape[1 + i] - reach[i] - 1) // windows.strides[i] + 1 for i in range(2)]
    pieces = []
    for place in np.ndindex(*windows.sizes):
        piece = padded
        for i in range(2):
            start = place[i] * windows.dilations[i]
            piece = ctx.slice(piece, 1 + i, start, start + (counts[i] - 1) * windows.strides[i] + 1, windows.strides[i])
        pieces.append(piece)
    return ctx.concatenate(pieces, 3)


def _places(have: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """Returns the position of each new pixel among the old ones, in single precision as TensorFlow computes it."""
    require_computable(have * wanted, "the matrix of the resize")
    if align_corners and wanted > 1:
        scale = np.float32(have - 1) / np.float32(wanted - 1)
    else:
        scale = np.float32(have) / np.float32(wanted)
    shift = np.float32(0.5 if half_pixel_centers else 0)
    return (np.arange(wanted, dtype=np.float32) + shift) * scale - shift


def _bilinear(have: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """Returns the share of each old pixel in each new one."""
    places = _places(have, wanted, align_corners, half_pixel_centers)
    low = np.floor(places)
    share = places - low
    weights = np.zeros((wanted, have), np.float32)
    rows = np.arange(wanted)
    np.add.at(weights, (rows, np.clip(low, 0, have - 1).astype(int)), 1 - share)
    np.add.at(weights, (rows, np.clip(low + 1, 0, have - 1).astype(int)), share)
    return weights


CUBIC_STEPS = 1024
"""TensorFlow looks up the cubic's weights in a table with this many steps."""


def _bicubic(have: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """Returns the same for Keys' cubic: a is -0.5 if the centres of pixels are at a half, and then nothing beyond the
    edge counts; otherwise it is -0.75, and the edge is repeated."""
    a = -0.5 if half_pixel_centers else -0.75
    places = _places(have, wanted, align_corners, half_pixel_centers)
    low = np.floor(places)
    share = np.round((places - low) * CUBIC_STEPS) / CUBIC_STEPS
    weights = np.zeros((wanted, have))
    for tap in range(-1, 3):
        distance = np.abs(share - tap)
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        weight = np.where(distance <= 1, near, far)
        at = low + tap
        if half_pixel_centers:
            weight = np.where((at >= 0) & (at < have), weight, 0)
        np.add.at(weights, (np.arange(wanted), np.clip(at, 0, have - 1).astype(int)), weight)
    return weights / weights.sum(1, keepdims=True) if half_pixel_centers else weights


def _mixed(ctx: Context, x: Value, weights: np.ndarray, dimension: int) -> Value:
    """Returns the rows along a dimension, mixed by a matrix."""
    mixed = ctx.dot(x, ctx.elements(weights.astype(x.type.dtype)), ([dimension], [1]))
    order = list(range(x.type.rank - 1))
    order.insert(dimension, x.type.rank - 1)
    return ctx.transpose(mixed, order)
