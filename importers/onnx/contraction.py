"""Matrix products, determinants and convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.importers.convolution import (
    Layout,
    Windows,
    convolution,
    reaches,
    same_padding,
    transposed_convolution,
)
from trivium.importers.emit import Padding, accumulation_type
from trivium.importers.extents import Extent, chosen, larger, numbers_of
from trivium.importers.factorizations import diagonal_of, lapack
from trivium.importers.onnx.context import Context, require_rank, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import I32


@rule("MatMul")
def matmul(ctx: Context, a: Value, b: Value) -> Value:
    """MatMul(A, B), as NumPy's"""
    left, right = a.type.rank == 1, b.type.rank == 1
    a = ctx.unsqueeze(a, [0]) if left else a
    b = ctx.unsqueeze(b, [1]) if right else b
    result = ctx.matmul(a, b)
    dropped = [result.type.rank - 2] * left + [result.type.rank - 1] * right
    return ctx.squeeze(result, dropped) if dropped else result


@rule("Gemm", since=7)
def gemm(
    ctx: Context, a: Value, b: Value, c: Value | None = None, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0,
) -> Value:  # fmt: skip
    """Gemm(A, B, C, alpha, beta, transA, transB)"""
    product = ctx.dot(a, b, ([0 if transA else 1], [1 if transB else 0]))
    product = ctx.scaled(product, alpha)
    return product if c is None else ctx.plus(product, ctx.scaled(c, beta))


@rule("Det")
def det(ctx: Context, x: Value) -> Value:
    """Det(X), of each matrix, by its LU factors"""
    *batch, size, columns = x.type.static_shape
    if size != columns:
        ctx.unsupported("X", f"matrices of {size} rows and {columns} columns", "square ones")
    kind = x.type.element_type
    if not x.type.size:
        return ctx.full(batch, 0 if 0 in batch else 1, kind)
    factors, pivots, _ = lapack(ctx, "getrf", ctx.convert(x, accumulation_type(kind)))
    product = ctx.reduce(ops.Multiply, diagonal_of(ctx, factors), [len(batch)])
    moved = ctx.compare("NE", pivots, ctx.elements(np.arange(1, size + 1), I32))
    count = ctx.reduce(ops.Add, ctx.convert(moved, I32), [len(batch)])
    is_odd = ctx.compare("NE", ctx.binary(ops.And, count, ctx.scalar(1, I32)), ctx.scalar(0, I32))
    return ctx.convert(ctx.select(is_odd, ctx.add(ops.Negate(product)), product), kind)


def require_windows(
    x: Value, sizes: Sequence[int], kernel_shape: Sequence[int] | None, strides: Sequence[int] | None,
    dilations: Sequence[int] | None, pads: Sequence[int] | None,
) -> None:  # fmt: skip
    """Rejects attributes that do not describe windows, of these sizes, of a batch of images."""
    require_rank(x, "X", 3, or_more=True)
    spatial = x.type.rank - 2
    if len(sizes) != spatial:
        raise Error(f"windows have {len(sizes)} dimensions, expected {spatial}, as X has type {x.type}")
    if kernel_shape is not None and tuple(kernel_shape) != tuple(sizes):
        raise Error(f"kernel_shape has {list(kernel_shape)}, expected {list(sizes)}, as W has")
    for name, entries, count in (("strides", strides, 1), ("dilations", dilations, 1), ("pads", pads, 2)):
        if entries and len(entries) != count * spatial:
            raise Error(f"{name} has {len(entries)} entries, expected {count * spatial}")


@rule("Conv")
def conv(
    ctx: Context, x: Value, w: Value, bias: Value | None = None, auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None, group: int = 1, kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None, strides: Sequence[int] | None = None,
) -> Value:  # fmt: skip
    """Conv(X, W, B, ...): NCHW, any number of spatial dimensions"""
    spatial: int = x.type.rank - 2
    require_windows(x, w.type.static_shape[2:], kernel_shape, strides, dilations, pads)
    strides, dilations = strides or [1] * spatial, dilations or [1] * spatial
    sizes = w.type.static_shape[2:]
    padding = padding_of(ctx, x, reaches(sizes, dilations), strides, auto_pad, pads)
    layout, windows = Layout.channels_first(spatial), Windows(sizes, strides, dilations, padding)
    return _biased(ctx, convolution(ctx, x, w, windows, layout, layout, group), bias)


@rule("ConvTranspose")
def conv_transpose(
    ctx: Context, x: Value, w: Value, bias: Value | None = None, auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None, group: int = 1, kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None, output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None, strides: Sequence[int] | None = None,
) -> Value:  # fmt: skip
    """ConvTranspose(X, W, B, ...): the gradient of a convolution's input"""
    spatial: int = x.type.rank - 2
    require_windows(x, w.type.static_shape[2:], kernel_shape, strides, dilations, pads)
    strides, dilations = strides or [1] * spatial, dilations or [1] * spatial
    for name, entries in (("output_padding", output_padding), ("output_shape", output_shape)):
        if entries and len(entries) != spatial:
            raise Error(f"{name} has {len(entries)} entries, expected {spatial}")
    edges: Sequence[Extent] = pads or [0] * 2 * spatial
    extra = output_padding or [0] * spatial
    sizes = w.type.static_shape[2:]
    whole = None
    if output_shape is not None:
        whole = [
            (extent - 1) * stride + reach + more - wanted
            for extent, stride, reach, more, wanted in zip(
                ctx.extents(x)[2:], strides, reaches(sizes, dilations), extra, output_shape, strict=True
            )
        ]
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):  # each extent times its stride
        whole = [
            reach + more - stride for stride, reach, more in zip(strides, reaches(sizes, dilations), extra, strict=True)
        ]
    if whole is not None:
        # What is missing where the total is negative is added at the end.
        lows = [chosen(ctx, "LT", total, 0, 0, total // 2 if auto_pad == "SAME_UPPER" else total - total // 2)
                for total in whole]  # fmt: skip
        edges = [*lows, *(total - low for total, low in zip(whole, lows, strict=True))]
    layout, known = Layout.channels_first(spatial), numbers_of(edges)
    padding = list(zip(edges[:spatial], edges[spatial:], strict=True)) if known else [(0, 0)] * spatial
    windows = Windows(sizes, strides, dilations, padding)
    result = transposed_convolution(ctx, x, w, windows, extra, layout, layout, group)
    if not known:  # what a convolution pads less is removed from its result
        lows, highs = ([0, 0, *(-edge for edge in side)] for side in (edges[:spatial], edges[spatial:]))
        result = ctx.pad(result, lows, highs)
    return _biased(ctx, result, bias)


def _biased(ctx: Context, x: Value, bias: Value | None) -> Value:
    """Returns `x` [N, C, spatial] with one number added per channel."""
    return x if bias is None else ctx.plus(x, ctx.reshape(bias, (bias.type.size, *[1] * (x.type.rank - 2))))


def padding_of(
    ctx: Context, x: Value, windows: Sequence[int], strides: Sequence[int], auto_pad: str,
    pads: Sequence[int] | None, ceil_mode: bool = False,
) -> Padding:  # fmt: skip
    """Returns the low and high padding of each spatial dimension."""
    spatial = len(windows)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return same_padding(ctx, ctx.extents(x)[2:], windows, strides, odd_in_front=auto_pad == "SAME_LOWER")
    if auto_pad not in ("NOTSET", "VALID"):
        ctx.unsupported("auto_pad", auto_pad, "NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    given = list(pads or [0] * 2 * spatial) if auto_pad == "NOTSET" else [0] * 2 * spatial
    padding = [(given[i], given[i + spatial]) for i in range(spatial)]
    if not ceil_mode:
        return padding
    rounded = []
    for (low, high), extent, window, stride in zip(padding, ctx.extents(x)[2:], windows, strides, strict=True):
        count = -(-(extent + low + high - window) // stride)
        # A window that would start in the padding after the last element is dropped.
        count = chosen(ctx, "GE", count * stride, extent + low, count - 1, count)
        rounded.append((low, larger(ctx, count * stride + window - extent - low, high)))
    return rounded
