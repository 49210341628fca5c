"""Convolutions of any number of spatial dimensions, transposed ones, and their gradients: each is one `convolution`,
with dilations, reversed windows and exchanged dimensions where the gradient asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.importers.pytorch.context import Context, rule, spread
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import TensorType

Ints = Sequence[int]
Spread = Sequence[int] | int
"""One number for all spatial dimensions, or one each."""
Padding = Sequence[tuple[int, int]]


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
    shape = ctx.result.static_shape
    count = len(weight.type.shape) - 2
    batched = input if input.type.rank == count + 2 else ctx.unsqueeze(input, [0])
    stride, padding, dilation = spread(stride, count, 1), spread(padding, count), spread(dilation, count, 1)
    if transposed:
        grown = spread(output_padding, count)
        result = _transposed(ctx, batched, weight, stride, padding, dilation, grown, groups)
    else:
        edges = [(p, p) for p in padding]
        result = convolve(ctx, batched, weight, stride, edges, rhs_dilation=dilation, groups=groups)
    result = ctx.reshape(result, shape)
    if bias is None:
        return result
    return ctx.plus(result, ctx.broadcast_in_dim(bias, shape, [len(shape) - count - 1]))


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
    kernel = weight.type.static_shape[2:]
    count = len(kernel)
    if padding == "valid":
        return conv(ctx, input, weight, bias, stride, 0, dilation, groups)
    # An even window takes the odd element at the end.
    spans = [d * (k - 1) for d, k in zip(spread(dilation, count, 1), kernel, strict=True)]
    lead = input.type.rank - count
    padded = ctx.pad(input, [0] * lead + [s // 2 for s in spans], [0] * lead + [s - s // 2 for s in spans])
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
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        if transposed:
            edges = [(p, p) for p in padding]
            of_input = convolve(ctx, grad_output, weight, stride, edges, rhs_dilation=dilation, groups=groups)
            of_input = _cropped(ctx, of_input, input.type.static_shape)
        else:
            spans = _spans(weight, dilation)
            grown = [
                extent - ((out - 1) * s + span - 2 * p)
                for extent, out, s, span, p in zip(
                    input.type.shape[2:], grad_output.type.shape[2:], stride, spans, padding, strict=True
                )
            ]
            of_input = _transposed(ctx, grad_output, weight, stride, padding, dilation, grown, groups)
    if output_mask[1]:
        # A transposed convolution exchanges what its window slides over and what it makes.
        still, moving = (grad_output, input) if transposed else (input, grad_output)
        of_weight = _weight_gradient(ctx, still, moving, weight.type, stride, padding, dilation, groups)
    if output_mask[2]:
        of_bias = ctx.reduce(ops.Add, grad_output, [d for d in range(grad_output.type.rank) if d != 1])
    return of_input, of_weight, of_bias


def convolve(
    ctx: Context,
    lhs: Value,
    rhs: Value,
    stride: Ints,
    padding: Padding,
    *,
    lhs_dilation: Ints | None = None,
    rhs_dilation: Ints | None = None,
    reverse: bool = False,
    groups: int = 1,
    batch_groups: int = 1,
    exchanged: bool = False,
) -> Value:
    """`lhs` [N, C, spatial] and `rhs` [O, I, spatial] to [N, O, spatial]. With `exchanged`, batch and channels have
    changed places in all three, as the gradient of a weight wants it."""
    count = lhs.type.rank - 2
    spatial = tuple(range(2, count + 2))
    one, other = (1, 0) if exchanged else (0, 1)
    numbers = ops.ConvDimensionNumbers(
        input_batch_dimension=one,
        input_feature_dimension=other,
        input_spatial_dimensions=spatial,
        kernel_output_feature_dimension=one,
        kernel_input_feature_dimension=other,
        kernel_spatial_dimensions=spatial,
        output_batch_dimension=one,
        output_feature_dimension=other,
        output_spatial_dimensions=spatial,
    )
    gaps, steps = lhs_dilation or (1,) * count, rhs_dilation or (1,) * count
    extents = [
        max(((n - 1) * gap + 1 if n else 0) + low + high - ((k - 1) * d + 1), -1) // s + 1
        for n, gap, (low, high), k, d, s in zip(
            lhs.type.shape[2:], gaps, padding, rhs.type.shape[2:], steps, stride, strict=True
        )
    ]
    batch, features = lhs.type.shape[one] // batch_groups, rhs.type.shape[one]
    shape = (features, batch) if exchanged else (batch, features)
    return ctx.add(
        ops.Convolution(
            lhs,
            rhs,
            window_strides=tuple(stride),
            padding=tuple(padding),
            lhs_dilation=tuple(gaps),
            rhs_dilation=tuple(steps),
            window_reversal=(reverse,) * count,
            dimension_numbers=numbers,
            feature_group_count=groups,
            batch_group_count=batch_groups,
            result=TensorType((*shape, *extents), lhs.type.element_type),
        )
    )


def _transposed(
    ctx: Context, x: Value, weight: Value, stride: Ints, padding: Ints, dilation: Ints, grown: Ints, groups: int
) -> Value:
    """The transposed convolution: `x` with gaps of `stride`, and the window, [C_in, C_out / groups, spatial],
    reversed."""
    edges = [
        (span - 1 - p, span - 1 - p + more)
        for span, p, more in zip(_spans(weight, dilation), padding, grown, strict=True)
    ]
    kernel = _exchange_features(ctx, weight, groups)
    ones = (1,) * len(stride)
    return convolve(
        ctx, x, kernel, ones, edges, lhs_dilation=stride, rhs_dilation=dilation, reverse=True, groups=groups
    )


def _exchange_features(ctx: Context, weight: Value, groups: int) -> Value:
    """[G * I, O, spatial] to [G * O, I, spatial]."""
    features, others, *window = weight.type.static_shape
    if groups == 1:
        return ctx.transpose(weight, [1, 0, *range(2, weight.type.rank)])
    split = ctx.reshape(weight, (groups, features // groups, others, *window))
    exchanged = ctx.transpose(split, [0, 2, 1, *range(3, split.type.rank)])
    return ctx.reshape(exchanged, (groups * others, features // groups, *window))


def _weight_gradient(
    ctx: Context,
    still: Value,
    moving: Value,
    weight: TensorType,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Value:
    """The gradient of a weight: `still` (what the window slid over) convolved with `moving` (what met each place of
    it), the batch being what is summed over. Stride and dilation change places."""
    kernel = weight.static_shape[2:]
    edges = [
        (p, (k - 1) * d + (m - 1) * s + 1 - n - p)
        for p, k, d, m, s, n in zip(
            padding, kernel, dilation, moving.type.shape[2:], stride, still.type.shape[2:], strict=True
        )
    ]
    gradient = convolve(ctx, still, moving, dilation, edges, rhs_dilation=stride, batch_groups=groups, exchanged=True)
    return ctx.reshape(gradient, weight.static_shape)


def _spans(weight: Value, dilation: Ints) -> list[int]:
    """How far each window reaches."""
    return [d * (k - 1) + 1 for k, d in zip(weight.type.shape[2:], dilation, strict=True)]


def _cropped(ctx: Context, x: Value, shape: Ints) -> Value:
    """The first elements of each dimension: output padding lies outside of what the window reaches in whole steps."""
    for d, extent in enumerate(shape):
        x = ctx.slice(x, d, 0, extent)
    return x
