"""Dilation of images: the largest sum of an element in a window and the filter's element at its place, and its
gradients, which belong to the first place with the largest sum."""

from __future__ import annotations

from functools import reduce

import ml_dtypes
import numpy as np

from trivium.importers.convolution import Layout, Windows
from trivium.importers.emit import lowest
from trivium.importers.tensorflow.context import Context, rule
from trivium.importers.tensorflow.convolution import windows_of
from trivium.importers.tensorflow.image import edges_of, pieces_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1, I32


@rule("Dilation2D")
def dilation(
    ctx: Context, input: Value, filter: Value, *, strides: tuple[int, ...], rates: tuple[int, ...], padding: str
) -> Value:
    """Dilation2D(input, filter; strides, rates, padding) -> output"""
    return _largest(ctx, input, filter, _windows(ctx, input, filter, strides, rates, padding))[0]


@rule("Dilation2DBackpropInput")
def dilation_backprop_input(
    ctx: Context,
    input: Value,
    filter: Value,
    out_backprop: Value,
    *,
    strides: tuple[int, ...],
    rates: tuple[int, ...],
    padding: str,
) -> Value:
    """Dilation2DBackpropInput(input, filter, out_backprop; strides, rates, padding) -> in_backprop"""
    windows = _windows(ctx, input, filter, strides, rates, padding)
    low, high = edges_of(windows)
    padded = [extent + a + b for extent, a, b in zip(ctx.extents(input), low, high, strict=True)]
    moved = []
    for place, share in _shares(ctx, input, filter, out_backprop, windows):
        # Each share goes back to where its element was.
        starts = [0, *(at * rate for at, rate in zip(place, windows.dilations, strict=True)), 0]
        steps = [1, *windows.strides, 1]
        given = zip(padded, starts, ctx.extents(share), steps, strict=True)
        ends = [extent - (start + (count - 1) * step + 1) for extent, start, count, step in given]
        moved.append(ctx.pad(share, starts, ends, 0, [step - 1 for step in steps]))
    found = reduce(ctx.plus, moved)
    for d in (1, 2):
        found = ctx.slice(found, d, low[d], low[d] + ctx.extent(input, d))
    return found


@rule("Dilation2DBackpropFilter")
def dilation_backprop_filter(
    ctx: Context,
    input: Value,
    filter: Value,
    out_backprop: Value,
    *,
    strides: tuple[int, ...],
    rates: tuple[int, ...],
    padding: str,
) -> Value:
    """Dilation2DBackpropFilter(input, filter, out_backprop; strides, rates, padding) -> filter_backprop"""
    windows = _windows(ctx, input, filter, strides, rates, padding)
    shares = _shares(ctx, input, filter, out_backprop, windows)
    totals = [ctx.unsqueeze(ctx.reduce(ops.Add, share, (0, 1, 2)), (0,)) for _, share in shares]
    return ctx.reshape(ctx.concatenate(totals, 0), ctx.extents(filter))


def _windows(
    ctx: Context, input: Value, filter: Value, strides: tuple[int, ...], rates: tuple[int, ...], padding: str
) -> Windows:
    sizes = filter.type.shape[:2]
    if None in sizes:
        ctx.unsupported("filter", f"shape {filter.type.shape}", "numbers for its first two dimensions")
    return windows_of(ctx, Layout.named("NHWC"), ctx.extents(input), sizes, strides, padding, (), rates)


def _largest(ctx: Context, input: Value, filter: Value, windows: Windows) -> tuple[Value, Value]:
    """Returns the largest sum of each window, and the number of its place. Nothing counts beyond the edge, and no sum
    that is not a number."""
    edges = edges_of(windows)
    inside = ctx.full([1, *ctx.extents(input)[1:3], 1], True, I1)
    given = pieces_of(ctx, ctx.pad(input, *edges), windows)
    present = pieces_of(ctx, ctx.pad(inside, *edges, False), windows)
    best = ctx.full_like(given[0], lowest_finite(ctx, input))
    at = ctx.convert(ctx.full_like(best, 0), I32)
    rows = ctx.reshape(filter, [len(given), ctx.extent(filter, 2)])
    for number, (piece, is_inside) in enumerate(zip(given, present, strict=True)):
        row = ctx.reshape(ctx.slice(rows, 0, number, number + 1), [ctx.extent(filter, 2)])
        total = ctx.plus(piece, ctx.broadcast(row, ctx.extents(piece)))
        counts = ctx.broadcast_in_dim(is_inside, ctx.extents(piece), range(4))
        better = ctx.binary(ops.And, ctx.compare("GT", total, best), counts)
        best = ctx.select(better, total, best)
        at = ctx.select(better, ctx.full_like(at, number), at)
    return best, at


def _shares(
    ctx: Context, input: Value, filter: Value, gradient: Value, windows: Windows
) -> list[tuple[tuple[int, ...], Value]]:
    """Returns for each place in a window the gradients of the windows whose largest sum is there."""
    _, at = _largest(ctx, input, filter, windows)
    zero = ctx.full_like(gradient, 0)
    places = enumerate(np.ndindex(*windows.sizes))
    return [(place, ctx.select(ctx.compare("EQ", at, ctx.full_like(at, n)), gradient, zero)) for n, place in places]


def lowest_finite(ctx: Context, x: Value) -> float:
    """Returns the smallest finite number of an element type."""
    low = lowest(x.type.element_type)
    return low if np.isfinite(low) else -float(ml_dtypes.finfo(x.type.dtype).max)
