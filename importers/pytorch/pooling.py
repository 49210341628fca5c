"""Pooling: windows reduced to their largest element or their mean, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.convolution import Geometry, largest_of_windows
from trivium.importers.pytorch.context import Context, rule, spread
from trivium.importers.pytorch.indexing import scatter_into
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import TensorType

Ints = Sequence[int]
Spread = Sequence[int] | int
"""One number for all spatial dimensions, or one number each."""


@rule("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool_with_indices(
    ctx: Context,
    x: Value,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Spread = 0,
    dilation: Spread = 1,
    ceil_mode: bool = False,
) -> tuple[Value, Value | None]:
    """max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1,
    bool ceil_mode=False) -> (Tensor, Tensor)"""
    geometry = _geometry(ctx, x, kernel_size, stride, padding, dilation)
    if not ctx.used[1]:
        return ctx.reduce_window(ops.Maximum, x, *geometry), None
    return _with_indices(ctx, x, geometry)


@rule("aten.max_pool1d.default", "aten.max_pool2d.default", "aten.max_pool3d.default")
def max_pool(
    ctx: Context,
    x: Value,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Spread = 0,
    dilation: Spread = 1,
    ceil_mode: bool = False,
) -> Value:
    """max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1,
    bool ceil_mode=False) -> Tensor"""
    return ctx.reduce_window(ops.Maximum, x, *_geometry(ctx, x, kernel_size, stride, padding, dilation))


def _geometry(ctx: Context, x: Value, kernel: Ints, stride: Ints, padding: Spread, dilation: Spread) -> Geometry:
    """Returns the windows over the last dimensions. The windows that `ceil_mode` adds follow from the result's shape,
    and are padded."""
    count = int(ctx.op.split("pool")[1][0])
    kernel = spread(kernel, count)
    stride = spread(stride, count) if stride else kernel
    padding, dilation = spread(padding, count), spread(dilation, count, 1)
    lead = x.type.rank - count
    shape = ctx.result.shape if "backward" not in ctx.op else None
    edges = []
    for i, (k, s, p, d) in enumerate(zip(kernel, stride, padding, dilation, strict=True)):
        extent = x.type.shape[lead + i]
        out = shape[lead + i] if shape else 0
        # Negative if the last windows do not reach the end.
        edges.append((p, (out - 1) * s + (k - 1) * d + 1 - extent - p if out else p))
    ones = (1,) * lead
    return (*ones, *kernel), (*ones, *stride), (*((0, 0),) * lead, *edges), (*ones, *dilation)


def _with_indices(ctx: Context, x: Value, geometry: Geometry) -> tuple[Value, Value]:
    """Returns the largest element of each window and its position in the flattened spatial dimensions; the first of
    equal ones."""
    count = int(ctx.op.split("pool")[1][0])
    spatial = TensorType(x.type.shape[-count:], x.type.element_type).static_shape
    place = ctx.iota((math.prod(spatial),), 0)
    places = ctx.broadcast(ctx.reshape(place, spatial), ctx.extents(x))
    return largest_of_windows(ctx, x, places, geometry)


@rule("aten.max_pool2d_with_indices_backward.default", "aten.max_pool3d_with_indices_backward.default")
def max_pool_backward(
    ctx: Context,
    grad_output: Value,
    x: Value,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    indices: Value,
) -> Value:
    """max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2]
    padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor"""
    return adaptive_max_pool_backward(ctx, grad_output, x, indices)


@rule("aten.adaptive_max_pool2d_backward.default", "aten.adaptive_max_pool3d_backward.default")
def adaptive_max_pool_backward(ctx: Context, grad_output: Value, x: Value, indices: Value) -> Value:
    """adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor"""
    count = int(ctx.op.split("pool")[1][0])
    planes = math.prod(x.type.shape[:-count])
    area, windows = math.prod(x.type.shape[-count:]), math.prod(grad_output.type.shape[-count:])
    gradients = ctx.reshape(grad_output, (planes, windows))
    zeros = ctx.full((planes, area), 0, x.type.element_type)
    summed = scatter_into(ctx, ops.Add, zeros, 1, ctx.reshape(indices, (planes, windows)), gradients)
    return ctx.reshape(summed, x.type.shape)


@rule("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def avg_pool(
    ctx: Context,
    x: Value,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Spread = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False,
    bool count_include_pad=True, int? divisor_override=None) -> Tensor"""
    geometry = _geometry(ctx, x, kernel_size, stride, padding, ())
    total = ctx.reduce_window(ops.Add, x, *geometry)
    counts = _counts(x, geometry, padding, count_include_pad, divisor_override, total.type.shape)
    return ctx.over(total, ctx.broadcast(ctx.elements(counts, x.type.element_type), ctx.extents(total)))


@rule("aten.avg_pool2d_backward.default", "aten.avg_pool3d_backward.default")
def avg_pool_backward(
    ctx: Context,
    grad_output: Value,
    x: Value,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Value:
    """avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding,
    bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor"""
    window, strides, edges, _ = geometry = _geometry(ctx, x, kernel_size, stride, padding, ())
    shape = grad_output.type.static_shape
    counts = _counts(x, geometry, padding, count_include_pad, divisor_override, shape)
    shares = ctx.over(grad_output, ctx.broadcast(ctx.elements(counts, x.type.element_type), shape))
    # Each element sums the shares of the windows that contain it: a window slides over the shares, spread out by
    # strides.
    low = [k - 1 - p for k, (p, _) in zip(window, edges, strict=True)]
    high = [
        extent + k - 1 - before - ((out - 1) * s + 1)
        for extent, k, before, out, s in zip(x.type.shape, window, low, shape, strides, strict=True)
    ]
    spaced = ctx.pad(shares, low, high, 0, [s - 1 for s in strides])
    return ctx.reduce_window(ops.Add, spaced, window)


def _counts(
    x: Value, geometry: Geometry, padding: Spread, include_pad: bool, override: int | None, shape: Sequence[int | None]
) -> np.ndarray:
    """Returns the divisor of each window's sum, as one factor per dimension; their product is the divisor. Elements
    beyond the declared padding do not count."""
    window, strides, edges, _ = geometry
    if override is not None:
        return np.asarray(override)
    counts = np.ones((1,) * len(window))
    for d, (k, s, (p, _), extent, out) in enumerate(zip(window, strides, edges, x.type.shape, shape, strict=True)):
        if (k, s, p) == (1, 1, 0) and extent == out:
            continue
        assert extent is not None, "an extent stays open"
        assert out is not None, "the number of windows stays open"
        start = np.arange(out) * s - p
        low, high = (-p, extent + p) if include_pad else (0, extent)
        along = np.minimum(start + k, high) - np.maximum(start, low)
        counts = counts * along.reshape((-1,) + (1,) * (len(window) - 1 - d))
    return counts


@rule(
    *("aten.adaptive_avg_pool1d.default", "aten.adaptive_avg_pool2d.default", "aten._adaptive_avg_pool2d.default"),
    *("aten.adaptive_avg_pool3d.default", "aten._adaptive_avg_pool3d.default"),
)
def adaptive_avg_pool(ctx: Context, x: Value, output_size: Ints) -> Value:
    """_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor"""
    count = len(spread(output_size, int(ctx.op.split("pool")[1][0])))
    wanted = TensorType(ctx.result.shape[-count:], x.type.element_type).static_shape
    for d in range(x.type.rank - count, x.type.rank):
        x = _adaptive_mean(ctx, x, d, wanted[d - ctx.result.rank])
    return x


def _adaptive_mean(ctx: Context, x: Value, d: int, out: int) -> Value:
    """Returns the means of `out` parts of a dimension; parts overlap if it is not divisible."""
    extent = x.type.shape[d]
    if extent == out:
        return x
    if out == 1:
        return ctx.mean(x, (d,), keep=True)
    if extent % out == 0:
        split = ctx.reshape(x, (*ctx.extents(x)[:d], out, extent // out, *ctx.extents(x)[d + 1 :]))
        return ctx.mean(split, (d + 1,))
    limits = [(i * extent // out, -(-(i + 1) * extent // out)) for i in range(out)]
    return ctx.concatenate([ctx.mean(ctx.slice(x, d, low, high), (d,), keep=True) for low, high in limits], d)
