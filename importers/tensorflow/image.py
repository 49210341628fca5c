"""Resizing images. Where each pixel comes from is known: rows and columns are gathered, or mixed by a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from trivium.importers.tensorflow.context import Context, Known, rule
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
    ctx: Context, grads: Value, original_image: Any, *, align_corners: bool, half_pixel_centers: bool
) -> Value:
    """ResizeBilinearGrad(grads, original_image; align_corners=false, half_pixel_centers=false) -> output"""
    for dimension in (1, 2):
        extent = original_image.shape[dimension] if isinstance(original_image, np.ndarray) else None
        have = extent if extent is not None else original_image.type.shape[dimension]
        weights = _bilinear(have, grads.type.shape[dimension], align_corners, half_pixel_centers)
        grads = _mixed(ctx, grads, weights.T, dimension)
    return grads


def _places(have: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """Where each of the new pixels lies among the old ones, in single precision as TensorFlow computes it."""
    if align_corners and wanted > 1:
        scale = np.float32(have - 1) / np.float32(wanted - 1)
    else:
        scale = np.float32(have) / np.float32(wanted)
    shift = np.float32(0.5 if half_pixel_centers else 0)
    return (np.arange(wanted, dtype=np.float32) + shift) * scale - shift


def _bilinear(have: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """What each new pixel takes of each old one."""
    places = _places(have, wanted, align_corners, half_pixel_centers)
    low = np.floor(places)
    share = places - low
    weights = np.zeros((wanted, have), np.float32)
    rows = np.arange(wanted)
    np.add.at(weights, (rows, np.clip(low, 0, have - 1).astype(int)), 1 - share)
    np.add.at(weights, (rows, np.clip(low + 1, 0, have - 1).astype(int)), share)
    return weights


def _mixed(ctx: Context, x: Value, weights: np.ndarray, dimension: int) -> Value:
    """The rows along a dimension, mixed by a matrix."""
    mixed = ctx.dot(x, ctx.elements(weights.astype(x.type.dtype)), ([dimension], [1]))
    order = list(range(x.type.rank - 1))
    order.insert(dimension, x.type.rank - 1)
    return ctx.transpose(mixed, order)
