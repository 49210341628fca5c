"""Pooling and its gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.convolution import Layout, Windows
from trivium.importers.emit import lowest
from trivium.importers.extents import Extent, is_number
from trivium.importers.tensorflow.context import Context, Known, rule
from trivium.importers.tensorflow.convolution import require_entries, windows_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1


@rule("MaxPool")
def max_pool(
    ctx: Context,
    input: Value,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
) -> Value:
    """MaxPool(input; ksize, strides, padding, explicit_paddings=[], data_format="NHWC") -> output"""
    layout, windows = windows_in(ctx, ctx.extents(input), ksize, strides, padding, data_format, explicit_paddings)
    return _pooled(ctx, ops.Maximum, layout, input, windows)


@rule("MaxPoolV2")
def max_pool_sizes(
    ctx: Context, input: Value, ksize: Known, strides: Known, *, padding: str, data_format: str
) -> Value:
    """MaxPoolV2(input, ksize, strides; padding, data_format="NHWC") -> output"""
    layout, windows = windows_in(ctx, ctx.extents(input), ksize.tolist(), strides.tolist(), padding, data_format)
    return _pooled(ctx, ops.Maximum, layout, input, windows)


@rule("MaxPool3D")
def max_pool_3d(
    ctx: Context, input: Value, *, ksize: tuple[int, ...], strides: tuple[int, ...], padding: str, data_format: str
) -> Value:
    """MaxPool3D(input; ksize, strides, padding, data_format="NDHWC") -> output"""
    layout, windows = windows_in(ctx, ctx.extents(input), ksize, strides, padding, data_format)
    return _pooled(ctx, ops.Maximum, layout, input, windows)


@rule("AvgPool", "AvgPool3D")
def avg_pool(
    ctx: Context, value: Value, *, ksize: tuple[int, ...], strides: tuple[int, ...], padding: str, data_format: str
) -> Value:
    """AvgPool(value; ksize, strides, padding, data_format="NHWC") -> output"""
    layout, windows = windows_in(ctx, ctx.extents(value), ksize, strides, padding, data_format)
    total = _pooled(ctx, ops.Add, layout, value, windows)
    return ctx.over(total, _counts(ctx, layout, ctx.extents(value), windows, value))


# Gradients


@rule("MaxPoolGrad")
def max_pool_grad(
    ctx: Context,
    orig_input: Value,
    orig_output: Value,
    grad: Value,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
) -> Value:
    """MaxPoolGrad(orig_input, orig_output, grad; ksize, strides, padding, explicit_paddings=[],
    data_format="NHWC") -> output"""
    layout, windows = windows_in(ctx, ctx.extents(orig_input), ksize, strides, padding, data_format, explicit_paddings)
    return _scattered(ctx, layout, orig_input, grad, windows)


@rule("MaxPoolGradV2")
def max_pool_grad_sizes(
    ctx: Context,
    orig_input: Value,
    orig_output: Value,
    grad: Value,
    ksize: Known,
    strides: Known,
    *,
    padding: str,
    data_format: str,
) -> Value:
    """MaxPoolGradV2(orig_input, orig_output, grad, ksize, strides; padding, data_format="NHWC") -> output"""
    shape = ctx.extents(orig_input)
    layout, windows = windows_in(ctx, shape, ksize.tolist(), strides.tolist(), padding, data_format)
    return _scattered(ctx, layout, orig_input, grad, windows)


@rule("MaxPool3DGrad")
def max_pool_3d_grad(
    ctx: Context,
    orig_input: Value,
    orig_output: Value,
    grad: Value,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
) -> Value:
    """MaxPool3DGrad(orig_input, orig_output, grad; ksize, strides, padding, data_format="NDHWC") -> output"""
    layout, windows = windows_in(ctx, ctx.extents(orig_input), ksize, strides, padding, data_format)
    return _to_all_largest(ctx, layout, orig_input, orig_output, grad, windows)


@rule("MaxPoolGradGrad", "MaxPool3DGradGrad")
def max_pool_grad_grad(
    ctx: Context,
    orig_input: Value,
    orig_output: Value,
    grad: Value,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
) -> Value:
    """MaxPoolGradGrad(orig_input, orig_output, grad; ksize, strides, padding, data_format="NHWC") -> output"""
    layout, windows = windows_in(ctx, ctx.extents(orig_input), ksize, strides, padding, data_format)
    return _at_largest(ctx, layout, orig_input, orig_output, grad, windows)


@rule("MaxPoolGradGradV2")
def max_pool_grad_grad_sizes(
    ctx: Context,
    orig_input: Value,
    orig_output: Value,
    grad: Value,
    ksize: Known,
    strides: Known,
    *,
    padding: str,
    data_format: str,
) -> Value:
    """MaxPoolGradGradV2(orig_input, orig_output, grad, ksize, strides; padding, data_format="NHWC") -> output"""
    shape = ctx.extents(orig_input)
    layout, windows = windows_in(ctx, shape, ksize.tolist(), strides.tolist(), padding, data_format)
    return _at_largest(ctx, layout, orig_input, orig_output, grad, windows)


def _at_largest(ctx: Context, layout: Layout, x: Value, y: Value, gradient: Value, windows: Windows) -> Value:
    """Returns the gradient at the first element of each window that is the window's result."""
    low, high = edges(layout, windows)
    x, gradient = ctx.pad(x, low, high, lowest(x.type.element_type)), ctx.pad(gradient, low, high)
    chosen, is_found = ctx.full_like(y, 0), ctx.full(y.type.static_shape, False, I1)
    for place in np.ndindex(*windows.sizes):
        value, candidate = (_elements_at(ctx, layout, v, y.type.static_shape, place, windows) for v in (x, gradient))
        is_here = ctx.binary(ops.And, ctx.compare("EQ", value, y), ctx.add(ops.Not(is_found)))
        chosen, is_found = ctx.select(is_here, candidate, chosen), ctx.binary(ops.Or, is_found, is_here)
    return chosen


def _elements_at(
    ctx: Context, layout: Layout, x: Value, shape: Sequence[int], place: Sequence[int], windows: Windows
) -> Value:
    """Returns the elements at one place in each window."""
    for dimension, start, stride in zip(layout.space, place, windows.strides, strict=True):
        x = ctx.slice(x, dimension, start, start + (shape[dimension] - 1) * stride + 1, stride)
    return x


@rule("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool_grad(
    ctx: Context,
    orig_input_shape: Known,
    grad: Value,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
) -> Value:
    """AvgPoolGrad(orig_input_shape, grad; ksize, strides, padding, data_format="NHWC") -> output"""
    shape = [int(n) for n in orig_input_shape]
    layout, windows = windows_in(ctx, shape, ksize, strides, padding, data_format)
    shares = ctx.over(grad, _counts(ctx, layout, shape, windows, grad))
    return _spread(ctx, layout, shape, shares, windows)


def _scattered(ctx: Context, layout: Layout, x: Value, gradient: Value, windows: Windows) -> Value:
    """Passes each gradient to the first largest element of its window."""
    kind = x.type.element_type
    low, high = edges(layout, windows)
    # Padding never wins, and is cut off again.
    padded = ctx.pad(x, low, high, lowest(kind))
    scalar = [padded.type.with_shape(())] * 2

    def at_least(emit: Context, held: Value, new: Value) -> Value:
        return emit.compare("GE", held, new)

    gathered = ctx.add(
        ops.SelectAndScatter(
            padded,
            gradient,
            ctx.scalar(0, kind),
            window_dimensions=along(layout, windows.sizes),
            window_strides=along(layout, windows.strides),
            select=ctx.region(scalar, at_least),
            scatter=ctx.combiner(ops.Add, kind),
        )
    )
    return ctx.pad(gathered, [-n for n in low], [-n for n in high])


def _to_all_largest(ctx: Context, layout: Layout, x: Value, y: Value, gradient: Value, windows: Windows) -> Value:
    """Passes each gradient to all elements of its window that are the window's result: in three dimensions,
    TensorFlow's kernel does not choose one."""
    total = ctx.full_like(x, 0)
    interior = [n - 1 for n in along(layout, windows.strides)]
    for place in np.ndindex(*windows.sizes):
        # The results and gradients of windows, where the elements at this place of each window are.
        before: list[Extent] = [0] * layout.rank
        after: list[Extent] = [0] * layout.rank
        for i, start, (low, _), stride in zip(layout.space, place, windows.padding, windows.strides, strict=True):
            before[i] = start - low
            after[i] = ctx.extent(x, i) - before[i] - (ctx.extent(y, i) - 1) * stride - 1
        is_largest = ctx.compare("EQ", x, ctx.pad(y, before, after, math.nan, interior))
        share = ctx.pad(gradient, before, after, 0, interior)
        total = ctx.plus(total, ctx.select(is_largest, share, ctx.full_like(share, 0)))
    return total


def _spread(ctx: Context, layout: Layout, shape: Sequence[int], shares: Value, windows: Windows) -> Value:
    """Returns for each element the sum of the shares of the windows that contain it."""
    count = layout.rank
    low, _ = edges(layout, windows)
    sizes, strides = along(layout, windows.sizes), along(layout, windows.strides)
    interior = [n - 1 for n in strides]
    before, after = [], []
    for i in range(count):
        have = (shares.type.shape[i] - 1) * strides[i] + 1
        before.append(sizes[i] - 1 - low[i])
        after.append(shape[i] + low[i] - have)
    spread = ctx.pad(shares, before, after, 0, interior)
    return ctx.reduce_window(ops.Add, spread, sizes)


# Helpers


def windows_in(
    ctx: Context,
    shape: Sequence[Extent],
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
    explicit: Sequence[int] = (),
) -> tuple[Layout, Windows]:
    if data_format not in ("NHWC", "NCHW", "NDHWC", "NCDHW"):
        ctx.unsupported("data_format", data_format, "NHWC, NCHW, NDHWC or NCDHW")
    layout = Layout.named(data_format)
    require_entries(ctx, "ksize", ksize, layout.rank)
    if ksize[layout.batch] != 1 or ksize[layout.channels] != 1:
        ctx.unsupported("ksize", tuple(ksize), "1 for batch and channels")
    return layout, windows_of(ctx, layout, shape, layout.spatial(ksize), strides, padding, explicit)


def _pooled(ctx: Context, op: type, layout: Layout, x: Value, windows: Windows) -> Value:
    padding = list(zip(*edges(layout, windows), strict=True))
    return ctx.reduce_window(op, x, along(layout, windows.sizes), along(layout, windows.strides), padding)


def _counts(ctx: Context, layout: Layout, shape: Sequence[Extent], windows: Windows, like: Value) -> Value:
    """Returns how many elements each window contains; padding does not count."""
    if all(is_number(edge, 0) for pair in windows.padding for edge in pair):
        return ctx.constant_like(like, math.prod(windows.sizes))
    extents = [extent if i in layout.space else 1 for i, extent in enumerate(shape)]
    return _pooled(ctx, ops.Add, layout, ctx.full(extents, 1, like.type.element_type), windows)


def along(layout: Layout, values: Sequence[int]) -> list[int]:
    """Returns one entry per dimension: the given ones for space, 1 for the others."""
    whole = [1] * layout.rank
    for i, value in zip(layout.space, values, strict=True):
        whole[i] = value
    return whole


def edges(layout: Layout, windows: Windows) -> tuple[list[Extent], list[Extent]]:
    low: list[Extent] = [0] * layout.rank
    high: list[Extent] = [0] * layout.rank
    for i, (before, after) in zip(layout.space, windows.padding, strict=True):
        low[i], high[i] = before, after
    return low, high
