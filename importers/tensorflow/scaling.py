"""Resizing with any scale and translation, as `tf.image.resize` does it with antialiasing: products with matrices of
weights, which follow from a sampling kernel."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context, Tensor, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32

Kernel = Callable[[Context, Value], Value]
"""From distances to weights."""


def _if_below(ctx: Context, x: Value, limit: float, found: Value, otherwise: Value | float = 0.0) -> Value:
    other = otherwise if isinstance(otherwise, Value) else ctx.full_like(x, otherwise)
    return ctx.select(ctx.compare("LT", x, ctx.full_like(x, limit)), found, other)


def _polynomial(ctx: Context, x: Value, *coefficients: float) -> Value:
    """Evaluates by Horner's rule, from the highest power down."""
    total = ctx.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = ctx.plus(ctx.times(total, x), ctx.full_like(x, coefficient))
    return total


def _lanczos(radius: float) -> Kernel:
    def weight(ctx: Context, x: Value) -> Value:
        turn = ctx.scaled(x, math.pi)
        waves = ctx.times(ctx.add(ops.Sine(turn)), ctx.add(ops.Sine(ctx.scaled(turn, 1 / radius))))
        found = ctx.over(ctx.scaled(waves, radius), ctx.times(turn, turn))
        found = ctx.select(ctx.compare("LE", x, ctx.full_like(x, 1e-3)), ctx.full_like(x, 1), found)
        return ctx.select(ctx.compare("GT", x, ctx.full_like(x, radius)), ctx.full_like(x, 0), found)

    return weight


def _gaussian(ctx: Context, x: Value) -> Value:
    return _if_below(ctx, x, 1.5, ctx.add(ops.Exponential(ctx.scaled(ctx.times(x, x), -2))))


def _box(ctx: Context, x: Value) -> Value:
    half = ctx.full_like(x, 0.5)
    edge = ctx.select(ctx.compare("EQ", x, half), half, ctx.full_like(x, 0))
    return _if_below(ctx, x, 0.5, ctx.full_like(x, 1), edge)


def _triangle(ctx: Context, x: Value) -> Value:
    return _if_below(ctx, x, 1, ctx.minus(ctx.full_like(x, 1), x))


def _cubic(near: tuple[float, ...], far: tuple[float, ...]) -> Kernel:
    def weight(ctx: Context, x: Value) -> Value:
        return _if_below(ctx, x, 1, _polynomial(ctx, x, *near), _if_below(ctx, x, 2, _polynomial(ctx, x, *far)))

    return weight


KERNELS: dict[str, tuple[Kernel, float]] = {
    "lanczos1": (_lanczos(1), 1),
    "lanczos3": (_lanczos(3), 3),
    "lanczos5": (_lanczos(5), 5),
    "gaussian": (_gaussian, 1.5),
    "box": (_box, 1),
    "triangle": (_triangle, 1),
    "keyscubic": (_cubic((1.5, -2.5, 0, 1), (-0.5, 2.5, -4, 2)), 2),
    "mitchellcubic": (_cubic((7 / 6, -2, 0, 8 / 9), (-7 / 18, 2, -10 / 3, 16 / 9)), 2),
}
"""The sampling kernels, and how far they reach."""

LEAST = 1000 * float(np.finfo(np.float32).tiny)
"""The smallest sum of weights that is divided by."""


@rule("ScaleAndTranslate")
def scale_and_translate(
    ctx: Context, images: Value, size: Tensor, scale: Value, translation: Value, *, kernel_type: str, antialias: bool
) -> Value:
    """ScaleAndTranslate(images, size, scale, translation; kernel_type="lanczos3", antialias=true) -> resized_images"""
    rows, columns = _matrices(
        ctx, ctx.extents(images)[1:3], ctx.given_sizes(size, "size"), scale, translation, kernel_type, antialias
    )
    return _resized(ctx, ctx.convert(images, F32), rows, columns, 1)


@rule("ScaleAndTranslateGrad")
def scale_and_translate_grad(
    ctx: Context,
    grads: Value,
    original_image: Value,
    scale: Value,
    translation: Value,
    *,
    kernel_type: str,
    antialias: bool,
) -> Value:
    """ScaleAndTranslateGrad(grads, original_image, scale, translation; kernel_type="lanczos3", antialias=true)
    -> output"""
    rows, columns = _matrices(
        ctx, ctx.extents(original_image)[1:3], ctx.extents(grads)[1:3], scale, translation, kernel_type, antialias
    )
    return _resized(ctx, grads, rows, columns, 0)


def _resized(ctx: Context, images: Value, rows: Value, columns: Value, side: int) -> Value:
    """Returns the products of the height and the width of images with matrices, whose dimension `side` is summed."""
    turned = ctx.dot(images, columns, ([2], [side]))  # batch, height, features, width
    return ctx.transpose(ctx.dot(turned, rows, ([1], [side])), (0, 3, 2, 1))


def _matrices(
    ctx: Context,
    have: list[Extent],
    wanted: list[Extent],
    scale: Value,
    translation: Value,
    kernel_type: str,
    antialias: bool,
) -> list[Value]:
    """Returns the weights for the height and for the width."""
    if kernel_type not in KERNELS:
        ctx.unsupported("kernel_type", kernel_type, f"one of {', '.join(KERNELS)}")
    found = []
    for d in range(2):
        step, shift = (ctx.reshape(ctx.slice(x, 0, d, d + 1), ()) for x in (scale, translation))
        found.append(_weights(ctx, have[d], wanted[d], step, shift, kernel_type, antialias))
    return found


def _weights(
    ctx: Context, have: Extent, wanted: Extent, scale: Value, shift: Value, kernel_type: str, antialias: bool
) -> Value:
    """Returns the matrix from results (rows) to elements (columns)."""
    kernel, reach = KERNELS[kernel_type]
    shape = [wanted, have]
    inverse = ctx.over(ctx.scalar(1, F32), scale)
    wide = ctx.binary(ops.Maximum, inverse, ctx.scalar(1, F32)) if antialias else ctx.scalar(1, F32)
    half = ctx.scalar(0.5, F32)
    places = ctx.plus(ctx.iota([wanted], 0, F32), half)
    centre = ctx.minus(ctx.times(places, inverse), ctx.times(inverse, shift))
    extent = ctx.number_as(have, F32)
    # A result whose centre is outside of the image is zero.
    zero = ctx.full_like(centre, 0)
    outside = ctx.binary(ops.Or, ctx.compare("LT", centre, zero), ctx.compare("GT", centre, extent))
    # Where the window is outside of the image, the element at its edge counts.
    margin, last = ctx.times(ctx.scalar(reach, F32), wide), ctx.minus(extent, ctx.scalar(1, F32))
    starts = ctx.add(ops.Ceil(ctx.minus(ctx.minus(centre, margin), half)))
    ends = ctx.add(ops.Floor(ctx.minus(ctx.plus(centre, margin), half)))
    limits = [ctx.broadcast_in_dim(_clamped(ctx, x, last), shape, [0]) for x in (starts, ends)]
    elements = ctx.iota(shape, 1, F32)
    within = ctx.binary(ops.And, ctx.compare("GE", elements, limits[0]), ctx.compare("LE", elements, limits[1]))
    distance = ctx.minus(ctx.plus(elements, half), ctx.broadcast_in_dim(centre, shape, [0]))
    weights = kernel(ctx, ctx.add(ops.Abs(ctx.over(distance, wide))))
    weights = ctx.select(within, weights, ctx.full_like(weights, 0))
    total = ctx.reduce(ops.Add, weights, [1])
    counts = ctx.compare("GE", ctx.add(ops.Abs(total)), ctx.full_like(total, LEAST))
    counts = ctx.binary(ops.And, counts, ctx.add(ops.Not(outside)))
    share = ctx.select(counts, ctx.over(ctx.full_like(total, 1), total), zero)
    return ctx.times(weights, ctx.broadcast_in_dim(share, shape, [0]))


def _clamped(ctx: Context, x: Value, last: Value) -> Value:
    return ctx.add(ops.Clamp(ctx.scalar(0, F32), x, last))
