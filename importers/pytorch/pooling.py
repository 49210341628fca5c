"""Pooling: windows reduced to their largest element or their mean, and their gradients."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch

from trivium.importers.convolution import Geometry, largest_of_windows
from trivium.importers.emit import accumulation_type, in_single
from trivium.importers.extents import Extent, Size, is_number, scalar_of
from trivium.importers.pytorch.context import Context, rule, spread
from trivium.importers.pytorch.indexing import scatter_into
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I32, I64

MOST_WINDOWS = 16
"""The most windows that may contain a position, from which its gradient is computed one by one."""

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
    geometry = _geometry(ctx, x, kernel_size, stride, padding, dilation, ceil_mode)
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
    return ctx.reduce_window(ops.Maximum, x, *_geometry(ctx, x, kernel_size, stride, padding, dilation, ceil_mode))


def _geometry(
    ctx: Context, x: Value, kernel: Ints, stride: Ints, padding: Spread, dilation: Spread, ceil_mode: bool
) -> Geometry:
    """Returns the windows over the last dimensions. The windows that `ceil_mode` adds follow from the result's shape,
    and are padded."""
    count = int(ctx.op.split("pool")[1][0])
    kernel = spread(kernel, count)
    stride = spread(stride, count) if stride else kernel
    padding, dilation = spread(padding, count), spread(dilation, count, 1)
    lead = x.type.rank - count
    shape = ctx.shape if "backward" not in ctx.op else (0,) * x.type.rank
    edges: list[tuple[int, Extent]] = []
    for k, s, p, d, out, extent in zip(
        kernel, stride, padding, dilation, shape[lead:], ctx.extents(x)[lead:], strict=True
    ):
        is_known = isinstance(out, int) and isinstance(extent, int)
        if is_number(out, 0) or not (is_known or ceil_mode):
            edges.append((p, p))
        else:  # negative if the last windows do not reach the end
            edges.append((p, (out - 1) * s + (k - 1) * d + 1 - extent - p))
    ones = (1,) * lead
    return (*ones, *kernel), (*ones, *stride), (*((0, 0),) * lead, *edges), (*ones, *dilation)


def _with_indices(ctx: Context, x: Value, geometry: Geometry) -> tuple[Value, Value]:
    """Returns the largest element of each window and its position in the flattened spatial dimensions; the first of
    equal ones."""
    count = int(ctx.op.split("pool")[1][0])
    spatial = ctx.extents(x)[-count:]
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
    count = int(ctx.op.split("pool")[1][0])
    kernel, stride, padding, dilation = (
        spread(given, count) for given in (kernel_size, stride or kernel_size, padding, dilation)
    )
    # The windows that may contain a position, along each dimension.
    reaches = [-(-((k - 1) * d + 1) // s) for k, s, d in zip(kernel, stride, dilation, strict=True)]
    if math.prod(reaches) > MOST_WINDOWS or None in x.type.shape[-count:] or 0 in grad_output.type.shape:
        return adaptive_max_pool_backward(ctx, grad_output, x, indices)
    # Images whose channels come last in memory are computed in that order.
    order = [*range(x.type.rank - count - 1), *range(x.type.rank - count, x.type.rank), x.type.rank - count - 1]
    order = order if _is_channels_last(ctx, x) else list(range(x.type.rank))
    extents = ctx.extents(x)
    shape = [extents[d] for d in order]
    spatial = [order.index(x.type.rank - count + i) for i in range(count)]
    windows = _Windows(ctx, shape, spatial, stride, padding, reaches)
    place = ctx.iota((math.prod(shape[d] for d in spatial),), 0)
    place = ctx.reshape(place, [extent if d in spatial else 1 for d, extent in enumerate(shape)])
    place = ctx.broadcast(ctx.convert(place, I32), shape)
    indices = windows.padded(ctx.transpose(ctx.convert(indices, I32), order), -1)
    wide = accumulation_type(grad_output.type.element_type)
    gradients, total = windows.padded(ctx.transpose(grad_output, order), 0), None
    for before in itertools.product(*(range(reach - 1, -1, -1) for reach in reaches)):
        chosen = ctx.compare("EQ", windows.at(indices, before), place)
        term = ctx.convert(windows.at(gradients, before), wide)
        term = ctx.select(chosen, term, ctx.full(shape, 0, wide))
        total = term if total is None else ctx.plus(total, term)
    assert total is not None, "a position is in at least one window"
    return ctx.transpose(ctx.convert(total, x.type.element_type), np.argsort(order).tolist())


def _is_channels_last(ctx: Context, x: Value) -> bool:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    meta = ctx.metas.get(x)
    if meta is None or meta.ndim not in formats or meta.is_contiguous():
        return False
    return meta.is_contiguous(memory_format=formats[meta.ndim])


@dataclass(frozen=True)
class _Windows:
    """The windows that contain the positions of an image along its `spatial` dimensions: the last one that begins at or
    before a position, and those before that, `reaches` in all."""

    ctx: Context
    shape: Sequence[Extent]
    spatial: Sequence[int]
    stride: Sequence[int]
    padding: Sequence[int]
    reaches: Sequence[int]

    def padded(self, x: Value, fill: int) -> Value:
        """Returns what windows have, with `fill` for those beyond the edges."""
        low, high = [0] * x.type.rank, [0] * x.type.rank
        for d, s, p, reach in zip(self.spatial, self.stride, self.padding, self.reaches, strict=True):
            low[d] = reach - 1
            high[d] = self._last(d, s, p) - self.ctx.extent(x, d)
        return self.ctx.pad(x, low, high, fill)

    def at(self, x: Value, before: Sequence[int]) -> Value:
        """Returns, for each position, the value of one of its windows: `before` counts back from the last one."""
        ctx = self.ctx
        for d, s, p, reach, number in zip(self.spatial, self.stride, self.padding, self.reaches, before, strict=True):
            begin = reach - 1 - number
            x = ctx.slice(x, d, begin, begin + self._last(d, s, p))
            held = ctx.extents(x)
            several = [*held[: d + 1], s, *held[d + 1 :]]
            kept = [*range(d + 1), *range(d + 2, len(several))]
            repeated = ctx.reshape(ctx.broadcast_in_dim(x, several, kept), [*held[:d], held[d] * s, *held[d + 1 :]])
            x = ctx.slice(repeated, d, p, p + self._extent(d))
        return x

    def _last(self, dimension: int, stride: int, padding: int) -> int:
        """Returns the number of windows that begin at or before the last position."""
        return (self._extent(dimension) - 1 + padding) // stride + 1

    def _extent(self, dimension: int) -> int:
        extent = self.shape[dimension]
        assert isinstance(extent, int), "only images of known sizes have windows"
        return extent


@rule("aten.adaptive_max_pool2d_backward.default", "aten.adaptive_max_pool3d_backward.default")
def adaptive_max_pool_backward(ctx: Context, grad_output: Value, x: Value, indices: Value) -> Value:
    """adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor"""
    count = int(ctx.op.split("pool")[1][0])
    shape = ctx.extents(x)
    planes, area = math.prod(shape[:-count]), math.prod(shape[-count:])
    windows = math.prod(ctx.extents(grad_output)[-count:])
    gradients = ctx.reshape(grad_output, (planes, windows))
    zeros = ctx.full((planes, area), 0, x.type.element_type)
    summed = scatter_into(ctx, ops.Add, zeros, 1, ctx.reshape(indices, (planes, windows)), gradients)
    return ctx.reshape(summed, shape)


@rule("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
@in_single
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
    geometry = _geometry(ctx, x, kernel_size, stride, padding, (), ceil_mode)
    total = ctx.reduce_window(ops.Add, x, *geometry)
    shape = ctx.extents(total)
    counts = _counts(ctx, x, geometry, count_include_pad, divisor_override, shape)
    return ctx.over(total, ctx.broadcast(counts, shape))


@rule("aten.avg_pool2d_backward.default", "aten.avg_pool3d_backward.default")
@in_single
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
    window, strides, edges, _ = geometry = _geometry(ctx, x, kernel_size, stride, padding, (), ceil_mode)
    shape = ctx.extents(grad_output)
    counts = _counts(ctx, x, geometry, count_include_pad, divisor_override, shape)
    shares = ctx.over(grad_output, ctx.broadcast(counts, shape))
    # Each element sums the shares of the windows that contain it: a window slides over the shares, spread out by
    # strides.
    low = [k - 1 - p for k, (p, _) in zip(window, edges, strict=True)]
    high = [
        0 if (k, s, before) == (1, 1, 0) else extent + k - 1 - before - ((out - 1) * s + 1)
        for extent, k, before, out, s in zip(ctx.extents(x), window, low, shape, strides, strict=True)
    ]
    spaced = ctx.pad(shares, low, high, 0, [s - 1 for s in strides])
    return ctx.reduce_window(ops.Add, spaced, window)


def _counts(
    ctx: Context, x: Value, geometry: Geometry, include_pad: bool, override: int | None, shape: Sequence[Extent]
) -> Value:
    """Returns the divisor of each window's sum: the product of one factor per dimension. Elements beyond the declared
    padding do not count."""
    window, strides, edges, _ = geometry
    kind, rank = x.type.element_type, len(window)
    if override is not None:
        return ctx.scalar(override, kind)
    known, computed = np.ones((1,) * rank), []
    for d, (k, s, (p, _), extent, out) in enumerate(zip(window, strides, edges, ctx.extents(x), shape, strict=True)):
        if (k, s, p) == (1, 1, 0):
            continue
        column = (-1,) + (1,) * (rank - 1 - d)
        low, high = -p * include_pad, extent + p * include_pad
        if isinstance(high, int) and isinstance(out, int):
            start = np.arange(out) * s - p
            known = known * (np.minimum(start + k, high) - np.maximum(start, low)).reshape(column)
        else:
            start = ctx.minus(ctx.times(ctx.iota([out], 0), ctx.scalar(s, I64)), ctx.scalar(p, I64))
            end = ctx.binary(ops.Minimum, ctx.plus(start, ctx.scalar(k, I64)), scalar_of(ctx, high))
            along = ctx.minus(end, ctx.binary(ops.Maximum, start, ctx.scalar(low, I64)))
            computed.append(ctx.reshape(ctx.convert(along, kind), (out, *column[1:])))
    return reduce(ctx.times, computed, ctx.elements(known, kind))


@rule(
    *("aten.adaptive_avg_pool1d.default", "aten.adaptive_avg_pool2d.default", "aten._adaptive_avg_pool2d.default"),
    *("aten.adaptive_avg_pool3d.default", "aten._adaptive_avg_pool3d.default"),
)
@in_single
def adaptive_avg_pool(ctx: Context, x: Value, output_size: Ints) -> Value:
    """_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor"""
    count = len(spread(output_size, int(ctx.op.split("pool")[1][0])))
    for d in range(x.type.rank - count, x.type.rank):
        x = _adaptive_mean(ctx, x, d, ctx.shape[d - ctx.result.rank])
    return x


def _adaptive_mean(ctx: Context, x: Value, d: int, out: Extent) -> Value:
    """Returns the means of `out` parts of a dimension; parts overlap if it is not divisible."""
    extent = ctx.extent(x, d)
    if extent == out:
        return x
    if is_number(out, 1):
        return ctx.mean(x, (d,), keep=True)
    if isinstance(extent, Size) or isinstance(out, Size):
        return _mean_of_parts(ctx, x, d, out)
    if extent % out == 0:
        split = ctx.reshape(x, (*ctx.extents(x)[:d], out, extent // out, *ctx.extents(x)[d + 1 :]))
        return ctx.mean(split, (d + 1,))
    limits = [(i * extent // out, -(-(i + 1) * extent // out)) for i in range(out)]
    return ctx.concatenate([ctx.mean(ctx.slice(x, d, low, high), (d,), keep=True) for low, high in limits], d)


def _mean_of_parts(ctx: Context, x: Value, d: int, out: Extent) -> Value:
    """Returns the same where the dimension has a dynamic size: each part adds up the elements between its limits."""
    extents, kind = ctx.extents(x), x.type.element_type
    part, place = (ctx.iota([out, extents[d]], i) for i in range(2))
    whole, parts, one = scalar_of(ctx, extents[d]), scalar_of(ctx, out), ctx.scalar(1, I64)
    low = ctx.over(ctx.times(part, whole), parts)
    high = ctx.over(ctx.minus(ctx.plus(ctx.times(ctx.plus(part, one), whole), parts), one), parts)
    is_part = ctx.binary(ops.And, ctx.compare("GE", place, low), ctx.compare("LT", place, high))
    shape = [*extents[:d], out, *extents[d:]]
    spread_out = ctx.broadcast_in_dim(x, shape, [i for i in range(len(shape)) if i != d])
    taken = ctx.select(ctx.broadcast_in_dim(is_part, shape, [d, d + 1]), spread_out, ctx.scalar(0, kind))
    counts = ctx.reduce(ops.Add, ctx.convert(is_part, kind), [1])
    return ctx.over(ctx.reduce(ops.Add, taken, [d + 1]), ctx.reshape(counts, [out, *[1] * (x.type.rank - 1 - d)]))
