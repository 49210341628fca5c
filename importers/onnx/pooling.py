"""Pooling: windows combined to one element, where their largest elements are, and what puts those back."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.importers.convolution import largest_of_windows, reaches
from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent, scalar_of
from trivium.importers.onnx.context import Context, rule
from trivium.importers.onnx.contraction import padding_of, require_windows
from trivium.importers.onnx.indexing import scattered
from trivium.importers.selection import coordinates
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import I64


@rule("MaxPool")
def max_pool(
    ctx: Context, x: Value, kernel_shape: Sequence[int], auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: Sequence[int] | None = None, pads: Sequence[int] | None = None, storage_order: int = 0,
    strides: Sequence[int] | None = None,
) -> Value | Sequence[Value]:  # fmt: skip
    """MaxPool(X, kernel_shape, ...): the largest element of each window, and its place in all of X"""
    spatial: int = x.type.rank - 2
    require_windows(x, kernel_shape, None, strides, dilations, pads)
    strides, dilations = strides or [1] * spatial, dilations or [1] * spatial
    windows = reaches(kernel_shape, dilations)
    padding = padding_of(ctx, x, windows, strides, auto_pad, pads, bool(ceil_mode))
    window = (1, 1, *kernel_shape), (1, 1, *strides), ((0, 0), (0, 0), *padding), (1, 1, *dilations)
    if ctx.outputs == 1:
        return ctx.reduce_window(ops.Maximum, x, *window)
    values, places = largest_of_windows(ctx, x, _places_in_images(ctx, x), window)
    return values, _places_in_all(ctx, x, places, bool(storage_order))


def _places_in_images(ctx: Context, x: Value) -> Value:
    """Returns the position of each element in its flattened image."""
    extents = ctx.extents(x)[2:]
    places = ctx.reshape(ctx.iota([math.prod(extents)], 0), extents)
    return ctx.broadcast(places, ctx.extents(x))


def _places_in_all(ctx: Context, x: Value, places: Value, by_columns: bool) -> Value:
    """Returns positions in all of `x` for positions in its images, which are flattened `by_columns` if the first
    spatial dimension is the one that varies fastest."""
    batch, channels, *extents = ctx.extents(x)
    if by_columns:
        found, step = coordinates(ctx, places, extents), 1
        places = ctx.scalar(0, I64)
        for at, extent in zip(found, extents, strict=True):
            places = ctx.plus(places, ctx.times(at, scalar_of(ctx, step)))
            step = step * extent
    images = ctx.reshape(ctx.iota([batch * channels], 0), (batch, channels, *[1] * len(extents)))
    return ctx.plus(places, ctx.times(images, scalar_of(ctx, math.prod(extents))))


@rule("MaxUnpool")
def max_unpool(
    ctx: Context, x: Value, indices: Value, output_shape: Value | None = None, *, kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None, strides: Sequence[int] | None = None,
) -> Value:  # fmt: skip
    """MaxUnpool(X, I, output_shape, kernel_shape, pads, strides): elements are put back where MaxPool found them, in an
    image of the size that MaxPool had, and zeros elsewhere"""
    require_windows(x, kernel_shape, None, strides, None, pads)
    count, channels, *extents = ctx.extents(x)
    spatial = len(extents)
    strides, pads = strides or [1] * spatial, pads or [0] * 2 * spatial
    sizes = [
        (extent - 1) * step - low - high + reach
        for extent, step, low, high, reach in zip(
            extents, strides, pads[:spatial], pads[spatial:], kernel_shape, strict=True
        )
    ]
    shape: list[Extent] = [count, channels, *sizes]
    numbers = ops.ScatterDimensionNumbers(
        inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1
    )
    room = ctx.full([math.prod(shape)], 0, x.type.element_type)
    flat = [ctx.reshape(part, [math.prod(ctx.extents(x))]) for part in (indices, x)]
    spread = scattered(ctx, room, ctx.unsqueeze(flat[0], [1]), flat[1], numbers)
    result = ctx.reshape(spread, shape)
    if output_shape is None:
        return result
    wanted = ctx.listed(output_shape, "output_shape")
    return ctx.pad(result, [0] * len(shape), [a - b for a, b in zip(wanted, shape, strict=True)])


@rule("AveragePool")
def average_pool(
    ctx: Context, x: Value, kernel_shape: Sequence[int], auto_pad: str = "NOTSET", ceil_mode: int = 0,
    count_include_pad: int = 0, dilations: Sequence[int] | None = None, pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:  # fmt: skip
    """AveragePool(X, kernel_shape, ...): by how many elements each window has, padding counted if asked for"""
    spatial: int = x.type.rank - 2
    require_windows(x, kernel_shape, None, strides, dilations, pads)
    strides, dilations = strides or [1] * spatial, dilations or [1] * spatial
    windows = reaches(kernel_shape, dilations)
    padding = padding_of(ctx, x, windows, strides, auto_pad, pads, bool(ceil_mode))
    window = (1, 1, *kernel_shape), (1, 1, *strides), ((0, 0), (0, 0), *padding), (1, 1, *dilations)
    kind = x.type.element_type
    wide = ctx.convert(x, accumulation_type(kind))
    sums = ctx.reduce_window(ops.Add, wide, *window)
    ones = ctx.full((1, 1, *ctx.extents(x)[2:]), 1, wide.type.element_type)
    if count_include_pad:
        given = padding_of(ctx, x, windows, strides, auto_pad, pads)
        lows, highs = zip((0, 0), (0, 0), *given, strict=True)
        ones = ctx.pad(ones, lows, highs, 1)
        rest = tuple((low - mine, high - yours) for (low, high), (mine, yours) in zip(padding, given, strict=True))
        window = (window[0], window[1], ((0, 0), (0, 0), *rest), window[3])
    counts = ctx.reduce_window(ops.Add, ones, *window)
    return ctx.convert(ctx.over(sums, counts), kind)


@rule("GlobalAveragePool", "GlobalMaxPool")
def global_pool(ctx: Context, x: Value) -> Value:
    """GlobalAveragePool(X)"""
    dimensions = range(2, x.type.rank)
    if ctx.op == "GlobalMaxPool":
        return ctx.reduce(ops.Maximum, x, list(dimensions), keep=True)
    kind = x.type.element_type
    return ctx.convert(ctx.mean(ctx.convert(x, accumulation_type(kind)), list(dimensions), keep=True), kind)


@rule("LpPool", since=2)
def lp_pool(
    ctx: Context, x: Value, kernel_shape: Sequence[int], auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: Sequence[int] | None = None, p: int = 2, pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:  # fmt: skip
    """LpPool(X, kernel_shape, ...): the p-norm of each window"""
    spatial: int = x.type.rank - 2
    require_windows(x, kernel_shape, None, strides, dilations, pads)
    if p < 1:
        raise Error(f"p has {p}, expected a positive number")
    strides, dilations = strides or [1] * spatial, dilations or [1] * spatial
    padding = padding_of(ctx, x, reaches(kernel_shape, dilations), strides, auto_pad, pads, bool(ceil_mode))
    kind = x.type.element_type
    powers = _powers(ctx, ctx.convert(x, accumulation_type(kind)), p)
    sums = ctx.reduce_window(
        ops.Add, powers, (1, 1, *kernel_shape), (1, 1, *strides), ((0, 0), (0, 0), *padding), (1, 1, *dilations)
    )
    return ctx.convert(_powers(ctx, sums, 1 / p), kind)


@rule("GlobalLpPool", since=2)
def global_lp_pool(ctx: Context, x: Value, p: int = 2) -> Value:
    """GlobalLpPool(X, p)"""
    kind = x.type.element_type
    powers = _powers(ctx, ctx.convert(x, accumulation_type(kind)), p)
    sums = ctx.reduce(ops.Add, powers, list(range(2, x.type.rank)), keep=True)
    return ctx.convert(_powers(ctx, sums, 1 / p), kind)


def _powers(ctx: Context, x: Value, exponent: float) -> Value:
    x = ctx.add(ops.Abs(x))
    return x if exponent == 1 else ctx.binary(ops.Power, x, ctx.full_like(x, exponent))
