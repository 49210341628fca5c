"""Matrix products, convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.importers.convolution import Layout, Windows, convolution, input_gradient, reaches, same_padding
from trivium.importers.emit import accumulation_type
from trivium.importers.onnx.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value


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


@rule("Einsum")
def einsum(ctx: Context, *values: Value, equation: str) -> Value:
    """Einsum(inputs, equation), of two operands without repeated letters in one of them"""
    sources, _, target = equation.replace(" ", "").partition("->")
    terms = sources.split(",")
    plain = all(len(set(term)) == len(term) and term.isalpha() for term in terms) and "->" in equation
    if len(terms) != 2 or not plain:
        ctx.unsupported("equation", equation, "two operands, each letter once in an operand, and an explicit result")
    (lhs, rhs), (left, right) = values, terms
    batch = [letter for letter in left if letter in right and letter in target]
    summed = [letter for letter in left if letter in right and letter not in target]
    lone = [[letter for letter in term if letter not in other and letter not in target] for term, other in
            ((left, right), (right, left))]  # fmt: skip
    lhs, left = ctx.reduce(ops.Add, lhs, [left.index(c) for c in lone[0]]), _without(left, lone[0])
    rhs, right = ctx.reduce(ops.Add, rhs, [right.index(c) for c in lone[1]]), _without(right, lone[1])
    contracting = [left.index(c) for c in summed], [right.index(c) for c in summed]
    batching = [left.index(c) for c in batch], [right.index(c) for c in batch]
    made = "".join(batch) + _without(left, [*batch, *summed]) + _without(right, [*batch, *summed])
    return ctx.transpose(ctx.dot(lhs, rhs, contracting, batching), [made.index(letter) for letter in target])


def _without(letters: str, dropped: Sequence[str]) -> str:
    return "".join(letter for letter in letters if letter not in dropped)


@rule("Conv")
def conv(
    ctx: Context, x: Value, w: Value, bias: Value | None = None, auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None, group: int = 1, kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None, strides: Sequence[int] | None = None,
) -> Value:  # fmt: skip
    """Conv(X, W, B, ...): NCHW, any number of spatial dimensions"""
    spatial: int = x.type.rank - 2
    strides, dilations = strides or [1] * spatial, dilations or [1] * spatial
    sizes = w.type.static_shape[2:]
    padding = _padding(ctx, x, reaches(sizes, dilations), strides, auto_pad, pads)
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
    if auto_pad != "NOTSET" or output_shape is not None:
        ctx.unsupported("auto_pad or output_shape", auto_pad, "explicit pads")
    spatial: int = x.type.rank - 2
    strides, dilations = strides or [1] * spatial, dilations or [1] * spatial
    pads, extra = pads or [0] * 2 * spatial, output_padding or [0] * spatial
    sizes = w.type.static_shape[2:]
    windows = Windows(sizes, strides, dilations, list(zip(pads[:spatial], pads[spatial:], strict=True)))
    extents = [
        (extent - 1) * stride + reach - low - high + more
        for extent, stride, reach, (low, high), more in zip(
            x.type.static_shape[2:], strides, windows.reaches, windows.padding, extra, strict=True
        )
    ]
    layout = Layout.channels_first(spatial)
    return _biased(ctx, input_gradient(ctx, x, w, windows, extents, layout, layout, group), bias)


def _biased(ctx: Context, x: Value, bias: Value | None) -> Value:
    """Returns `x` [N, C, spatial] with one number added per channel."""
    return x if bias is None else ctx.plus(x, ctx.reshape(bias, (bias.type.size, *[1] * (x.type.rank - 2))))


def _padding(
    ctx: Context, x: Value, windows: Sequence[int], strides: Sequence[int], auto_pad: str,
    pads: Sequence[int] | None, ceil_mode: bool = False,
) -> list[tuple[int, int]]:  # fmt: skip
    """Returns the low and high padding of each spatial dimension."""
    spatial = len(windows)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return list(same_padding(x.type.static_shape[2:], windows, strides, odd_in_front=auto_pad == "SAME_LOWER"))
    if auto_pad not in ("NOTSET", "VALID"):
        ctx.unsupported("auto_pad", auto_pad, "NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    given = list(pads or [0] * 2 * spatial) if auto_pad == "NOTSET" else [0] * 2 * spatial
    padding = [(given[i], given[i + spatial]) for i in range(spatial)]
    if not ceil_mode:
        return padding
    rounded = []
    for (low, high), extent, window, stride in zip(padding, x.type.shape[2:], windows, strides, strict=True):
        count = -(-(extent + low + high - window) // stride)
        # A window that would start in the padding after the last element is dropped.
        count -= (count * stride) >= extent + low
        rounded.append((low, max(high, count * stride + window - extent - low)))
    return rounded


@rule("MaxPool")
def max_pool(
    ctx: Context, x: Value, kernel_shape: Sequence[int], auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: Sequence[int] | None = None, pads: Sequence[int] | None = None, storage_order: int = 0,
    strides: Sequence[int] | None = None,
) -> Value:  # fmt: skip
    """MaxPool(X, kernel_shape, ...)"""
    spatial: int = x.type.rank - 2
    strides, dilations = strides or [1] * spatial, dilations or [1] * spatial
    windows = reaches(kernel_shape, dilations)
    padding = _padding(ctx, x, windows, strides, auto_pad, pads, bool(ceil_mode))
    return ctx.reduce_window(
        ops.Maximum, x, (1, 1, *kernel_shape), (1, 1, *strides), ((0, 0), (0, 0), *padding), (1, 1, *dilations)
    )


@rule("AveragePool")
def average_pool(
    ctx: Context, x: Value, kernel_shape: Sequence[int], auto_pad: str = "NOTSET", ceil_mode: int = 0,
    count_include_pad: int = 0, dilations: Sequence[int] | None = None, pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:  # fmt: skip
    """AveragePool(X, kernel_shape, ...): by how many elements each window has, padding counted if asked for"""
    spatial: int = x.type.rank - 2
    strides, dilations = strides or [1] * spatial, dilations or [1] * spatial
    windows = reaches(kernel_shape, dilations)
    padding = _padding(ctx, x, windows, strides, auto_pad, pads, bool(ceil_mode))
    window = (1, 1, *kernel_shape), (1, 1, *strides), ((0, 0), (0, 0), *padding), (1, 1, *dilations)
    kind = x.type.element_type
    wide = ctx.convert(x, accumulation_type(kind))
    sums = ctx.reduce_window(ops.Add, wide, *window)
    ones = np.ones((1, 1, *x.type.static_shape[2:]), wide.type.dtype)
    if count_include_pad:
        given = _padding(ctx, x, windows, strides, auto_pad, pads)
        ones = np.pad(ones, ((0, 0), (0, 0), *given), constant_values=1)
        rest = tuple((low - mine, high - yours) for (low, high), (mine, yours) in zip(padding, given, strict=True))
        window = (window[0], window[1], ((0, 0), (0, 0), *rest), window[3])
    counts = ctx.reduce_window(ops.Add, ctx.elements(ones), *window)
    return ctx.convert(ctx.over(sums, counts), kind)


@rule("GlobalAveragePool", "GlobalMaxPool")
def global_pool(ctx: Context, x: Value) -> Value:
    """GlobalAveragePool(X)"""
    dimensions = range(2, x.type.rank)
    if ctx.op == "GlobalMaxPool":
        return ctx.reduce(ops.Maximum, x, list(dimensions), keep=True)
    kind = x.type.element_type
    return ctx.convert(ctx.mean(ctx.convert(x, accumulation_type(kind)), list(dimensions), keep=True), kind)
