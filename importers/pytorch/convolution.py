"""Convolutions of any number of spatial dimensions, transposed ones, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.importers.convolution import (
    Layout,
    Windows,
    filter_gradient,
    input_gradient,
    reaches,
    same_padding,
    transposed_convolution,
)
from trivium.importers.convolution import convolution as convolve
from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent
from trivium.importers.pytorch.context import Context, rule, spread
from trivium.ir import ops
from trivium.ir.core import Value

Ints = Sequence[int]
Spread = Sequence[int] | int
"""One number for all spatial dimensions, or one number each."""


@rule("aten.convolution.default")
def convolution(
    ctx: Context,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Spread,
    padding: Spread,
    dilation: Spread,
    transposed: bool,
    output_padding: Spread,
    groups: int,
) -> Value:
    """convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation,
    bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor"""
    shape = ctx.shape
    count = len(weight.type.shape) - 2
    batched = input if input.type.rank == count + 2 else ctx.unsqueeze(input, [0])
    stride, padding, dilation = spread(stride, count, 1), spread(padding, count), spread(dilation, count, 1)
    layout, windows = Layout.channels_first(count), _windows(ctx, weight, stride, padding, dilation)
    kind = input.type.element_type
    # With a bias, the sum is rounded once, as in PyTorch.
    wide = kind if bias is None else accumulation_type(kind)
    if transposed:
        beyond = spread(output_padding, count)
        result = transposed_convolution(ctx, batched, weight, windows, beyond, layout, layout, groups, wide)
    else:
        result = convolve(ctx, batched, weight, windows, layout, layout, groups, wide)
    result = ctx.reshape(result, shape)
    if bias is None:
        return result
    bias = ctx.broadcast_in_dim(ctx.convert(bias, wide), shape, [len(shape) - count - 1])
    return ctx.convert(ctx.plus(result, bias), kind)


@rule("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default")
def conv(
    ctx: Context,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Spread = 1,
    padding: Spread = 0,
    dilation: Spread = 1,
    groups: int = 1,
) -> Value:
    """conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0,
    SymInt[2] dilation=1, SymInt groups=1) -> Tensor"""
    return convolution(ctx, input, weight, bias, stride, padding, dilation, False, (0,), groups)


@rule("aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding")
def conv_padding(
    ctx: Context,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Spread = 1,
    padding: str = "valid",
    dilation: Spread = 1,
    groups: int = 1,
) -> Value:
    """conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str padding="valid",
    SymInt[2] dilation=1, SymInt groups=1) -> Tensor"""
    kernel = ctx.extents(weight)[2:]
    count = len(kernel)
    if padding == "valid":
        return conv(ctx, input, weight, bias, stride, 0, dilation, groups)
    lead = input.type.rank - count
    reach = reaches(kernel, spread(dilation, count, 1))
    edges = same_padding(ctx, (1,) * count, reach, (1,) * count)  # windows that move by 1 need as much for any extent
    padded = ctx.pad(input, [0] * lead + [low for low, _ in edges], [0] * lead + [high for _, high in edges])
    return conv(ctx, padded, weight, bias, stride, 0, dilation, groups)


@rule("aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input")
def conv_transpose(
    ctx: Context,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Spread = 1,
    padding: Spread = 0,
    output_padding: Spread = 0,
    groups: int = 1,
    dilation: Spread = 1,
) -> Value:
    """conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0,
    SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> Tensor"""
    return convolution(ctx, input, weight, bias, stride, padding, dilation, True, output_padding, groups)


@rule("aten.convolution_backward.default")
def convolution_backward(
    ctx: Context,
    grad_output: Value,
    input: Value,
    weight: Value,
    bias_sizes: Ints | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Value | None, Value | None, Value | None]:
    """convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride,
    SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask)
    -> (Tensor, Tensor, Tensor)"""
    count = weight.type.rank - 2
    if input.type.rank != count + 2:
        ctx.unsupported("input", f"rank {input.type.rank}", "a batch dimension")
    stride, padding, dilation = spread(stride, count, 1), spread(padding, count), spread(dilation, count, 1)
    layout, windows = Layout.channels_first(count), _windows(ctx, weight, stride, padding, dilation)
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        if transposed:
            of_input = convolve(ctx, grad_output, weight, windows, layout, layout, groups)
            of_input = _cropped(ctx, of_input, ctx.extents(input)[2:])
        else:
            extents = ctx.extents(input)[2:]
            of_input = input_gradient(ctx, grad_output, weight, windows, extents, layout, layout, groups)
    if output_mask[1]:
        # In a transposed convolution, the tensor that the window slides over and the tensor that it makes are swapped.
        still, moving = (grad_output, input) if transposed else (input, grad_output)
        of_weight = filter_gradient(ctx, still, moving, windows, layout, layout, groups)
    if output_mask[2]:
        of_bias = ctx.reduce(ops.Add, grad_output, [d for d in range(grad_output.type.rank) if d != 1])
    return of_input, of_weight, of_bias


def _windows(ctx: Context, weight: Value, stride: Ints, padding: Ints, dilation: Ints) -> Windows:
    return Windows(ctx.extents(weight)[2:], stride, dilation, [(p, p) for p in padding])


def _cropped(ctx: Context, x: Value, extents: Sequence[Extent]) -> Value:
    """Returns the first elements of each spatial dimension: output padding is outside the range that the window reaches
    in whole steps."""
    for d, extent in enumerate(extents, 2):
        x = ctx.slice(x, d, 0, extent)
    return x
