"""Convolutions and their gradients, in every layout, from TensorFlow's attributes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.importers.convolution import (
    Layout,
    Windows,
    convolution,
    filter_gradient,
    input_gradient,
    reaches,
    same_padding,
)
from trivium.importers.extents import Extent, Size
from trivium.importers.tensorflow.context import Context, Known, Tensor, rule
from trivium.ir.core import Value


def windows_of(
    ctx: Context,
    layout: Layout,
    shape: Sequence[Extent],
    sizes: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit: Sequence[int] = (),
    dilations: Sequence[int] | None = None,
) -> Windows:
    """Returns the windows over an input of a shape, from an op's attributes, which have one entry per dimension;
    `sizes` are those of space."""
    require_rank(ctx, layout, "input", shape)
    for name, given in (("strides", strides), ("dilations", dilations or [1] * layout.rank)):
        require_entries(ctx, name, given, layout.rank)
        if given[layout.batch] != 1 or given[layout.channels] != 1:
            ctx.unsupported(name, tuple(given), "1 for batch and channels")
    steps = layout.spatial(strides)
    spread = layout.spatial(dilations) if dilations else [1] * len(steps)
    if padding == "EXPLICIT":
        require_entries(ctx, "explicit_paddings", explicit, 2 * layout.rank)
        pairs = tuple((int(explicit[2 * i]), int(explicit[2 * i + 1])) for i in layout.space)
    elif padding == "SAME":
        pairs = same_padding(ctx, layout.spatial(shape), reaches(sizes, spread), steps)
    else:
        pairs = ((0, 0),) * len(steps)
    return Windows(tuple(sizes), tuple(steps), tuple(spread), pairs)


def require_rank(ctx: Context, layout: Layout, argument: str, shape: Sequence[Extent | None] | np.ndarray) -> None:
    """Rejects an argument whose rank is not the layout's: TensorFlow does not check the ranks of all arguments, and
    none of those whose shapes it does not know."""
    if len(shape) != layout.rank:
        ctx.unsupported(argument, f"rank {len(shape)}", f"rank {layout.rank}")


def require_entries(ctx: Context, argument: str, given: Sequence[int], count: int) -> None:
    """Rejects a list of another length than expected."""
    if len(given) != count:
        ctx.unsupported(argument, tuple(given), f"{count} entries")


# Forward


@rule("Conv2D")
def conv2d(
    ctx: Context,
    input: Value,
    filter: Value,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> Value:
    """Conv2D(input, filter; strides, padding, explicit_paddings=[], data_format="NHWC", dilations=[1,1,1,1]) ->
    output"""
    layout = _layout(ctx, data_format)
    windows = _filter_windows(
        ctx, layout, ctx.extents(input), filter.type.shape, strides, padding, explicit_paddings, dilations
    )
    return _forward(ctx, layout, input, filter, windows)


@rule("Conv3D")
def conv3d(
    ctx: Context,
    input: Value,
    filter: Value,
    *,
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
    dilations: tuple[int, ...],
) -> Value:
    """Conv3D(input, filter; strides, padding, data_format="NDHWC", dilations=[1,1,1,1,1]) -> output"""
    layout = _layout(ctx, data_format)
    windows = _filter_windows(ctx, layout, ctx.extents(input), filter.type.shape, strides, padding, (), dilations)
    return _forward(ctx, layout, input, filter, windows)


@rule("DepthwiseConv2dNative")
def depthwise(
    ctx: Context,
    input: Value,
    filter: Value,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> Value:
    """DepthwiseConv2dNative(input, filter; strides, padding, explicit_paddings=[], data_format="NHWC",
    dilations=[1,1,1,1]) -> output"""
    layout = _layout(ctx, data_format)
    windows = _filter_windows(
        ctx, layout, ctx.extents(input), filter.type.shape, strides, padding, explicit_paddings, dilations
    )
    return _forward(ctx, layout, input, _grouped_filter(ctx, filter), windows)


# Gradients


@rule("Conv2DBackpropInput")
def conv2d_input_gradient(
    ctx: Context,
    input_sizes: Tensor,
    filter: Value,
    out_backprop: Value,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> Value:
    """Conv2DBackpropInput(input_sizes, filter, out_backprop; strides, padding, explicit_paddings=[],
    data_format="NHWC", dilations=[1,1,1,1]) -> output"""
    layout = _layout(ctx, data_format)
    shape = _full_sizes(ctx, layout, input_sizes, out_backprop, filter)
    windows = _filter_windows(ctx, layout, shape, filter.type.shape, strides, padding, explicit_paddings, dilations)
    return _input_gradient(ctx, layout, shape, filter, out_backprop, windows)


@rule("Conv3DBackpropInputV2")
def conv3d_input_gradient(
    ctx: Context,
    input_sizes: Tensor,
    filter: Value,
    out_backprop: Value,
    *,
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
    dilations: tuple[int, ...],
) -> Value:
    """Conv3DBackpropInputV2(input_sizes, filter, out_backprop; strides, padding, data_format="NDHWC",
    dilations=[1,1,1,1,1]) -> output"""
    layout = _layout(ctx, data_format)
    shape = _full_sizes(ctx, layout, input_sizes, out_backprop, filter)
    windows = _filter_windows(ctx, layout, shape, filter.type.shape, strides, padding, (), dilations)
    return _input_gradient(ctx, layout, shape, filter, out_backprop, windows)


@rule("DepthwiseConv2dNativeBackpropInput")
def depthwise_input_gradient(
    ctx: Context,
    input_sizes: Tensor,
    filter: Value,
    out_backprop: Value,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> Value:
    """DepthwiseConv2dNativeBackpropInput(input_sizes, filter, out_backprop; strides, padding, explicit_paddings=[],
    data_format="NHWC", dilations=[1,1,1,1]) -> output"""
    layout = _layout(ctx, data_format)
    shape = ctx.given_shape(input_sizes, "input_sizes")
    windows = _filter_windows(ctx, layout, shape, filter.type.shape, strides, padding, explicit_paddings, dilations)
    return _input_gradient(ctx, layout, shape, _grouped_filter(ctx, filter), out_backprop, windows)


@rule("Conv2DBackpropFilter")
def conv2d_filter_gradient(
    ctx: Context,
    input: Value,
    filter_sizes: Known,
    out_backprop: Value,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> Value:
    """Conv2DBackpropFilter(input, filter_sizes, out_backprop; strides, padding, explicit_paddings=[],
    data_format="NHWC", dilations=[1,1,1,1]) -> output"""
    layout = _layout(ctx, data_format)
    windows = _filter_windows(
        ctx, layout, ctx.extents(input), filter_sizes, strides, padding, explicit_paddings, dilations
    )
    groups = _groups(ctx, input.type.static_shape[layout.channels], int(filter_sizes[-2]))
    return _filter_gradient(ctx, layout, input, out_backprop, windows, groups)


@rule("Conv3DBackpropFilterV2")
def conv3d_filter_gradient(
    ctx: Context,
    input: Value,
    filter_sizes: Known,
    out_backprop: Value,
    *,
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
    dilations: tuple[int, ...],
) -> Value:
    """Conv3DBackpropFilterV2(input, filter_sizes, out_backprop; strides, padding, data_format="NDHWC",
    dilations=[1,1,1,1,1]) -> output"""
    layout = _layout(ctx, data_format)
    windows = _filter_windows(ctx, layout, ctx.extents(input), filter_sizes, strides, padding, (), dilations)
    groups = _groups(ctx, input.type.static_shape[layout.channels], int(filter_sizes[-2]))
    return _filter_gradient(ctx, layout, input, out_backprop, windows, groups)


@rule("DepthwiseConv2dNativeBackpropFilter")
def depthwise_filter_gradient(
    ctx: Context,
    input: Value,
    filter_sizes: Known,
    out_backprop: Value,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> Value:
    """DepthwiseConv2dNativeBackpropFilter(input, filter_sizes, out_backprop; strides, padding, explicit_paddings=[],
    data_format="NHWC", dilations=[1,1,1,1]) -> output"""
    layout = _layout(ctx, data_format)
    windows = _filter_windows(
        ctx, layout, ctx.extents(input), filter_sizes, strides, padding, explicit_paddings, dilations
    )
    gradient = _filter_gradient(ctx, layout, input, out_backprop, windows, int(filter_sizes[2]))
    return ctx.reshape(gradient, [int(n) for n in filter_sizes])


@rule("Conv")
def conv(
    ctx: Context,
    input: Value,
    filter: Value,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
    groups: int,
) -> Value:
    """Conv(input, filter; strides, padding, explicit_paddings=[], data_format="CHANNELS_LAST", dilations=[],
    batch_dims=1, groups=1) -> output"""
    last = data_format == "CHANNELS_LAST"
    names = {4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}.get(input.type.rank)
    if names is None:
        ctx.unsupported("input", f"rank {input.type.rank}", "rank 4 or 5")
    layout = Layout.named(names[last])
    windows = _filter_windows(
        ctx, layout, ctx.extents(input), filter.type.shape, strides, padding, explicit_paddings, dilations
    )
    return _forward(ctx, layout, input, filter, windows)


# Helpers


def _layout(ctx: Context, data_format: str) -> Layout:
    if data_format not in ("NHWC", "NCHW", "NDHWC", "NCDHW"):
        ctx.unsupported("data_format", data_format, "NHWC, NCHW, NDHWC or NCDHW")
    return Layout.named(data_format)


def _filter_windows(
    ctx: Context,
    layout: Layout,
    shape: Sequence[Extent],
    filter_shape: Sequence[int] | np.ndarray,
    strides: Sequence[int],
    padding: str,
    explicit: Sequence[int],
    dilations: Sequence[int],
) -> Windows:
    require_rank(ctx, layout, "filter", filter_shape)
    sizes = [int(n) for n in filter_shape[: len(layout.space)]]
    return windows_of(ctx, layout, shape, sizes, strides, padding, explicit, dilations)


def _full_sizes(ctx: Context, layout: Layout, given: Tensor, gradient: Value, filter: Value) -> tuple[Extent, ...]:
    """Returns the input's shape, of which TensorFlow may pass only the spatial part."""
    sizes = ctx.given_shape(given, "input_sizes")
    if len(sizes) != len(layout.space):
        return sizes
    require_rank(ctx, layout, "filter", filter.type.shape)
    require_rank(ctx, layout, "out_backprop", gradient.type.shape)
    shape = [ctx.extent(gradient, layout.batch)] * layout.rank
    for i, n in zip(layout.space, sizes, strict=True):
        shape[i] = n
    shape[layout.channels] = filter.type.static_shape[-2]
    return tuple(shape)


def _grouped_filter(ctx: Context, filter: Value) -> Value:
    """Returns a depthwise filter (space, channels, multiplier) as that of a convolution with one group per channel."""
    *space, channels, multiplier = filter.type.shape
    return ctx.reshape(filter, (*space, 1, channels * multiplier))


def _groups(ctx: Context, channels: Extent, of_filter: int) -> int:
    """Returns how many groups of an input's channels there are, each with as many as the filter has."""
    if not isinstance(channels, int):
        ctx.unsupported("input", "a dynamic number of channels", "a known one")
    if not of_filter:
        ctx.unsupported("filter", "no input channels", "at least one")
    return channels // of_filter


def _forward(ctx: Context, layout: Layout, x: Value, filter: Value, windows: Windows) -> Value:
    kernel = Layout.filter_last(len(layout.space))
    groups = _groups(ctx, ctx.extent(x, layout.channels), filter.type.static_shape[kernel.channels])
    return convolution(ctx, x, filter, windows, layout, kernel, groups)


def _input_gradient(
    ctx: Context, layout: Layout, shape: Sequence[Extent], filter: Value, gradient: Value, windows: Windows
) -> Value:
    kernel = Layout.filter_last(len(layout.space))
    channels = shape[layout.channels]
    if isinstance(channels, Size):  # TensorFlow may know it although the program computes it
        channels = ctx.result.shape[layout.channels] or channels
    groups = _groups(ctx, channels, filter.type.static_shape[kernel.channels])
    require_rank(ctx, layout, "out_backprop", gradient.type.shape)
    return input_gradient(ctx, gradient, filter, windows, layout.spatial(shape), layout, kernel, groups)


def _filter_gradient(ctx: Context, layout: Layout, x: Value, gradient: Value, windows: Windows, groups: int) -> Value:
    require_rank(ctx, layout, "out_backprop", gradient.type.shape)
    return filter_gradient(ctx, x, gradient, windows, layout, Layout.filter_last(len(layout.space)), groups)
