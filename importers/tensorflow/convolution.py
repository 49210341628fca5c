"""Convolutions and their gradients, in every layout. A gradient is a convolution again: of the dilated gradient with
the mirrored filter, or of the input with the dilated gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trivium.importers.tensorflow.context import Context, Known, rule
from trivium.ir import ops
from trivium.ir.core import Value


@dataclass(frozen=True)
class Layout:
    """Where a format (`NHWC`, `NCHW`, `NDHWC`...) has batch, channels and space."""

    text: str

    @property
    def batch(self) -> int:
        return self.text.index("N")

    @property
    def channels(self) -> int:
        return self.text.index("C")

    @property
    def space(self) -> tuple[int, ...]:
        return tuple(i for i, letter in enumerate(self.text) if letter not in "NC")

    def spatial(self, values: Sequence[int]) -> list[int]:
        """The entries of a list with one a dimension that belong to space."""
        return [int(values[i]) for i in self.space]


@dataclass(frozen=True)
class Windows:
    """How windows move over space: one entry a spatial dimension."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]


def windows_of(
    ctx: Context,
    layout: Layout,
    extents: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit: Sequence[int] = (),
    dilations: Sequence[int] | None = None,
) -> Windows:
    """The windows of an op's attributes, which have one entry a dimension; `extents` and `sizes` are those of space."""
    for name, given in (("strides", strides), ("dilations", dilations or [1] * len(layout.text))):
        if any(given[i] != 1 for i in (layout.batch, layout.channels)):
            ctx.unsupported(name, tuple(given), "1 for batch and channels")
    steps = layout.spatial(strides)
    spread = layout.spatial(dilations) if dilations else [1] * len(steps)
    reach = [(size - 1) * n + 1 for size, n in zip(sizes, spread, strict=True)]
    if padding == "EXPLICIT":
        pairs = [(int(explicit[2 * i]), int(explicit[2 * i + 1])) for i in layout.space]
    elif padding == "SAME":
        pairs = [_same(*entry) for entry in zip(extents, reach, steps, strict=True)]
    else:
        pairs = [(0, 0)] * len(steps)
    return Windows(tuple(sizes), tuple(steps), tuple(spread), tuple(pairs))


def _same(extent: int, reach: int, step: int) -> tuple[int, int]:
    """TensorFlow's SAME: as many windows as steps fit; what is odd goes behind."""
    total = max((-(-extent // step) - 1) * step + reach - extent, 0)
    return total // 2, total - total // 2


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
        ctx, layout, input.type.shape, filter.type.shape, strides, padding, explicit_paddings, dilations
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
    windows = _filter_windows(ctx, layout, input.type.shape, filter.type.shape, strides, padding, (), dilations)
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
        ctx, layout, input.type.shape, filter.type.shape, strides, padding, explicit_paddings, dilations
    )
    return _forward(ctx, layout, input, _grouped_filter(ctx, filter), windows)


# Gradients


@rule("Conv2DBackpropInput")
def conv2d_input_gradient(
    ctx: Context,
    input_sizes: Known,
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
    shape = _full_sizes(layout, input_sizes, out_backprop, filter.type.shape[-2])
    windows = _filter_windows(ctx, layout, shape, filter.type.shape, strides, padding, explicit_paddings, dilations)
    return _input_gradient(ctx, layout, shape, filter, out_backprop, windows)


@rule("Conv3DBackpropInputV2")
def conv3d_input_gradient(
    ctx: Context,
    input_sizes: Known,
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
    shape = _full_sizes(layout, input_sizes, out_backprop, filter.type.shape[-2])
    windows = _filter_windows(ctx, layout, shape, filter.type.shape, strides, padding, (), dilations)
    return _input_gradient(ctx, layout, shape, filter, out_backprop, windows)


@rule("DepthwiseConv2dNativeBackpropInput")
def depthwise_input_gradient(
    ctx: Context,
    input_sizes: Known,
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
    shape = tuple(int(n) for n in input_sizes)
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
        ctx, layout, input.type.shape, filter_sizes, strides, padding, explicit_paddings, dilations
    )
    groups = input.type.shape[layout.channels] // int(filter_sizes[-2])
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
    windows = _filter_windows(ctx, layout, input.type.shape, filter_sizes, strides, padding, (), dilations)
    groups = input.type.shape[layout.channels] // int(filter_sizes[-2])
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
        ctx, layout, input.type.shape, filter_sizes, strides, padding, explicit_paddings, dilations
    )
    gradient = _filter_gradient(ctx, layout, input, out_backprop, windows, int(filter_sizes[2]))
    return ctx.reshape(gradient, [int(n) for n in filter_sizes])


# Words


def _layout(ctx: Context, data_format: str) -> Layout:
    if data_format not in ("NHWC", "NCHW", "NDHWC", "NCDHW"):
        ctx.unsupported("data_format", data_format, "NHWC, NCHW, NDHWC or NCDHW")
    return Layout(data_format)


def _filter_windows(
    ctx: Context,
    layout: Layout,
    shape: Sequence[int],
    filter_shape: Sequence[int] | np.ndarray,
    strides: Sequence[int],
    padding: str,
    explicit: Sequence[int],
    dilations: Sequence[int],
) -> Windows:
    sizes = [int(n) for n in filter_shape[: len(layout.space)]]
    return windows_of(ctx, layout, layout.spatial(shape), sizes, strides, padding, explicit, dilations)


def _full_sizes(layout: Layout, sizes: np.ndarray, gradient: Value, channels: int) -> tuple[int, ...]:
    """The input's shape, of which TensorFlow may give the spatial part alone."""
    if len(sizes) == len(layout.text):
        return tuple(int(n) for n in sizes)
    shape = [gradient.type.shape[layout.batch]] * len(layout.text)
    for i, n in zip(layout.space, sizes, strict=True):
        shape[i] = int(n)
    shape[layout.channels] = channels
    return tuple(shape)


def _grouped_filter(ctx: Context, filter: Value) -> Value:
    """A depthwise filter (space, channels, multiplier) as one of a convolution with a group for each channel."""
    *space, channels, multiplier = filter.type.shape
    return ctx.reshape(filter, (*space, 1, channels * multiplier))


def _forward(ctx: Context, layout: Layout, x: Value, filter: Value, windows: Windows) -> Value:
    count = len(layout.space)
    numbers = ops.ConvDimensionNumbers(
        input_batch_dimension=layout.batch,
        input_feature_dimension=layout.channels,
        input_spatial_dimensions=layout.space,
        kernel_input_feature_dimension=count,
        kernel_output_feature_dimension=count + 1,
        kernel_spatial_dimensions=tuple(range(count)),
        output_batch_dimension=layout.batch,
        output_feature_dimension=layout.channels,
        output_spatial_dimensions=layout.space,
    )
    return ctx.add(
        ops.Convolution(
            x,
            filter,
            window_strides=windows.strides,
            padding=windows.padding,
            rhs_dilation=windows.dilations,
            dimension_numbers=numbers,
            feature_group_count=x.type.shape[layout.channels] // filter.type.shape[count],
            batch_group_count=1,
        )
    )


def _input_gradient(
    ctx: Context, layout: Layout, shape: Sequence[int], filter: Value, gradient: Value, windows: Windows
) -> Value:
    count = len(layout.space)
    groups = shape[layout.channels] // filter.type.shape[count]
    mirrored = _swapped(ctx, ctx.add(ops.Reverse(filter, dimensions=tuple(range(count)))), groups)
    padding = []
    for i, axis in enumerate(layout.space):
        reach = (windows.sizes[i] - 1) * windows.dilations[i] + 1
        low = reach - 1 - windows.padding[i][0]
        have = (gradient.type.shape[axis] - 1) * windows.strides[i] + 1
        padding.append((low, shape[axis] + reach - 1 - have - low))
    numbers = ops.ConvDimensionNumbers(
        input_batch_dimension=layout.batch,
        input_feature_dimension=layout.channels,
        input_spatial_dimensions=layout.space,
        kernel_input_feature_dimension=count,
        kernel_output_feature_dimension=count + 1,
        kernel_spatial_dimensions=tuple(range(count)),
        output_batch_dimension=layout.batch,
        output_feature_dimension=layout.channels,
        output_spatial_dimensions=layout.space,
    )
    return ctx.add(
        ops.Convolution(
            gradient,
            mirrored,
            window_strides=(1,) * count,
            padding=tuple(padding),
            lhs_dilation=windows.strides,
            rhs_dilation=windows.dilations,
            dimension_numbers=numbers,
            feature_group_count=groups,
            batch_group_count=1,
        )
    )


def _swapped(ctx: Context, filter: Value, groups: int) -> Value:
    """A filter (space, inputs of a group, all outputs) with the two exchanged: (space, outputs of a group, all
    inputs)."""
    *space, inputs, outputs = filter.type.shape
    count = len(space)
    split = ctx.reshape(filter, (*space, inputs, groups, outputs // groups))
    moved = ctx.transpose(split, (*range(count), count + 2, count + 1, count))
    return ctx.reshape(moved, (*space, outputs // groups, groups * inputs))


def _filter_gradient(ctx: Context, layout: Layout, x: Value, gradient: Value, windows: Windows, groups: int) -> Value:
    """The input with its batch as features, convolved with the gradient, whose batch is contracted; groups of the
    input's channels are groups of the batch then."""
    count = len(layout.space)
    padding = []
    for i, axis in enumerate(layout.space):
        reach = (windows.sizes[i] - 1) * windows.dilations[i] + 1
        have = (gradient.type.shape[axis] - 1) * windows.strides[i] + 1
        low = windows.padding[i][0]
        padding.append((low, have + reach - 1 - x.type.shape[axis] - low))
    numbers = ops.ConvDimensionNumbers(
        input_batch_dimension=layout.channels,
        input_feature_dimension=layout.batch,
        input_spatial_dimensions=layout.space,
        kernel_input_feature_dimension=layout.batch,
        kernel_output_feature_dimension=layout.channels,
        kernel_spatial_dimensions=layout.space,
        output_batch_dimension=count,
        output_feature_dimension=count + 1,
        output_spatial_dimensions=tuple(range(count)),
    )
    return ctx.add(
        ops.Convolution(
            x,
            gradient,
            window_strides=windows.dilations,
            padding=tuple(padding),
            rhs_dilation=windows.strides,
            dimension_numbers=numbers,
            feature_group_count=1,
            batch_group_count=groups,
        )
    )
