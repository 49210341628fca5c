"""Convolutions, their gradients and their padding, defined once for all frameworks: the roles of the dimensions, the
movement of windows, and how a gradient is itself a convolution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from trivium.importers.dynamic import DynamicEmitter
from trivium.importers.emit import Emitter, Padding, lowest
from trivium.importers.extents import Extent, is_number, larger, numbers_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64, ElementType, TensorType, is_float

Entry = TypeVar("Entry", bound=Extent)


@dataclass(frozen=True)
class Layout:
    """Which dimensions of a tensor are batch, channels and space. A filter's `batch` is its output channels, its
    `channels` its input channels."""

    batch: int
    channels: int
    space: tuple[int, ...]

    @classmethod
    def named(cls, text: str) -> Layout:
        """Returns a layout by its name: `NHWC`, or `HWIO` of a filter."""
        roles = {letter: i for i, letter in enumerate(text)}
        batch, channels = ("N", "C") if "N" in roles else ("O", "I")
        space = tuple(i for letter, i in roles.items() if letter not in (batch, channels))
        return cls(roles[batch], roles[channels], space)

    @classmethod
    def channels_first(cls, count: int) -> Layout:
        """Returns `NCHW`, or `OIHW`, with `count` spatial dimensions."""
        return cls(0, 1, tuple(range(2, count + 2)))

    @classmethod
    def filter_last(cls, count: int) -> Layout:
        """Returns `HWIO` with `count` spatial dimensions."""
        return cls(count + 1, count, tuple(range(count)))

    @property
    def exchanged(self) -> Layout:
        """The layout with batch and channels swapped."""
        return Layout(self.channels, self.batch, self.space)

    @property
    def rank(self) -> int:
        return len(self.space) + 2

    def spatial(self, values: Iterable[Entry]) -> list[Entry]:
        """Returns the spatial entries of a list with one entry per dimension."""
        listed = list(values)
        return [listed[i] for i in self.space]


@dataclass(frozen=True)
class Windows:
    """How windows move over space: one entry per spatial dimension. The sizes are numbers, or extents, for emitters
    that know of these."""

    sizes: Sequence[Any]
    strides: Sequence[int]
    dilations: Sequence[int]
    padding: Padding

    @property
    def reaches(self) -> list[Any]:
        return reaches(self.sizes, self.dilations)


def reaches(sizes: Sequence[Any], dilations: Sequence[int]) -> list[Any]:
    """The number of elements that each window spans."""
    return [(size - 1) * step + 1 for size, step in zip(sizes, dilations, strict=True)]


def same_padding(
    emit: Emitter, extents: Sequence[Extent], reach: Sequence[Extent], strides: Sequence[int],
    odd_in_front: bool = False,
) -> Padding:  # fmt: skip
    """Returns the padding with which the number of windows is the extent divided by the stride, rounded up; an odd
    element goes at the end."""
    pairs = []
    for extent, window, stride in zip(extents, reach, strides, strict=True):
        total = larger(emit, (-(-extent // stride) - 1) * stride + window - extent, 0)
        small, large = total // 2, total - total // 2
        pairs.append((large, small) if odd_in_front else (small, large))
    return tuple(pairs)


def dimension_numbers(lhs: Layout, rhs: Layout, result: Layout) -> ops.ConvDimensionNumbers:
    """Returns StableHLO's form of three layouts."""
    return ops.ConvDimensionNumbers(
        input_batch_dimension=lhs.batch,
        input_feature_dimension=lhs.channels,
        input_spatial_dimensions=lhs.space,
        kernel_output_feature_dimension=rhs.batch,
        kernel_input_feature_dimension=rhs.channels,
        kernel_spatial_dimensions=rhs.space,
        output_batch_dimension=result.batch,
        output_feature_dimension=result.channels,
        output_spatial_dimensions=result.space,
    )


def convolution(
    emit: Emitter, x: Value, filter: Value, windows: Windows, layout: Layout, kernel: Layout, groups: int = 1,
    element_type: ElementType | None = None,
) -> Value:  # fmt: skip
    """Returns `x` convolved with `filter`, whose layout is `kernel`; the result has the layout of `x`, and by default
    its element type."""
    edges = dict(zip(layout.space, windows.padding, strict=True))
    x, around = emit.with_known_padding(x, [edges.get(axis, (0, 0)) for axis in range(layout.rank)], 0)
    geometry = {
        "window_strides": tuple(windows.strides),
        "padding": tuple(around[axis] for axis in layout.space),
        "lhs_dilation": None,
        "rhs_dilation": tuple(windows.dilations),
        "dimension_numbers": dimension_numbers(layout, kernel, layout),
    }
    return _convolved(emit, x, filter, geometry, groups, element_type)


def _convolved(
    emit: Emitter, x: Value, filter: Value, geometry: dict[str, Any], groups: int, element_type: ElementType | None
) -> Value:
    result = None
    if element_type not in (None, x.type.element_type):
        known = {name: value for name, value in geometry.items() if name != "window_reversal"}
        result = TensorType(
            ops.Convolution.infer(x.type, filter.type, **known, batch_group_count=1).shape, element_type
        )
    return emit.add(
        ops.Convolution(x, filter, **geometry, feature_group_count=groups, batch_group_count=1, result=result)
    )


def input_gradient(
    emit: DynamicEmitter, gradient: Value, filter: Value, windows: Windows, extents: Sequence[Extent], layout: Layout,
    kernel: Layout, groups: int = 1,
) -> Value:  # fmt: skip
    """Returns the gradient of a convolution's input, whose spatial extents are `extents`."""
    padding = []
    for axis, extent, reach, stride, (front, _) in zip(
        layout.space, extents, windows.reaches, windows.strides, windows.padding, strict=True
    ):
        have, low = _dilated(emit.extent(gradient, axis), stride), reach - 1 - front
        padding.append((low, extent + reach - 1 - have - low))
    return _spread_convolution(emit, gradient, filter, windows, padding, layout, kernel, groups)


def transposed_convolution(
    emit: DynamicEmitter, x: Value, filter: Value, windows: Windows, beyond: Sequence[int], layout: Layout,
    kernel: Layout, groups: int = 1, element_type: ElementType | None = None,
) -> Value:  # fmt: skip
    """Returns the gradient of the input of the convolution whose gradient is `x`, with `beyond` elements after the last
    one that a window reaches, one entry per spatial dimension. Space may have any extent, except 0."""
    padding = [
        (reach - 1 - low, reach - 1 - high + more)
        for reach, (low, high), more in zip(windows.reaches, windows.padding, beyond, strict=True)
    ]
    return _spread_convolution(emit, x, filter, windows, padding, layout, kernel, groups, element_type)


def _spread_convolution(
    emit: DynamicEmitter, x: Value, filter: Value, windows: Windows, padding: Padding, layout: Layout, kernel: Layout,
    groups: int, element_type: ElementType | None = None,
) -> Value:  # fmt: skip
    """Convolves the elements of `x`, spaced by the strides, with the reversed windows."""
    count, strides = len(layout.space), windows.strides
    if numbers_of([edge for pair in padding for edge in pair]) is None:
        edges, apart = dict(zip(layout.space, padding, strict=True)), dict(zip(layout.space, strides, strict=True))
        low, high = ([edges.get(axis, (0, 0))[side] for axis in range(layout.rank)] for side in range(2))
        x = emit.pad(x, low, high, 0, [apart.get(axis, 1) - 1 for axis in range(layout.rank)])
        padding, strides = [(0, 0)] * count, (1,) * count
    geometry = {
        "window_strides": (1,) * count,
        "padding": tuple(padding),
        "lhs_dilation": tuple(strides),
        "rhs_dilation": tuple(windows.dilations),
        "window_reversal": (True,) * count,
        "dimension_numbers": dimension_numbers(layout, kernel, layout),
    }
    return _convolved(emit, x, exchanged_features(emit, filter, kernel, groups), geometry, groups, element_type)


def filter_gradient(
    emit: DynamicEmitter, x: Value, gradient: Value, windows: Windows, layout: Layout, kernel: Layout, groups: int = 1
) -> Value:
    """Returns the gradient of a convolution's filter: `x` convolved with `gradient`, where the sum runs over the batch.
    Strides and dilations are swapped."""
    edges: list[tuple[Extent, Extent]] = [(0, 0)] * layout.rank
    for axis, reach, stride, (low, _) in zip(
        layout.space, windows.reaches, windows.strides, windows.padding, strict=True
    ):
        have = _dilated(emit.extent(gradient, axis), stride)
        edges[axis] = low, have + reach - 1 - emit.extent(x, axis) - low
    x, padding = emit.with_known_padding(x, edges, 0)
    return emit.add(
        ops.Convolution(
            x,
            gradient,
            window_strides=tuple(windows.dilations),
            padding=tuple(padding[axis] for axis in layout.space),
            rhs_dilation=tuple(windows.strides),
            dimension_numbers=dimension_numbers(layout.exchanged, layout.exchanged, kernel.exchanged),
            feature_group_count=1,
            batch_group_count=groups,
        )
    )


def exchanged_features(emit: DynamicEmitter, filter: Value, kernel: Layout, groups: int) -> Value:
    """Returns a filter that, group by group, takes the given one's output channels and returns its input channels; in
    the same layout."""
    order = list(range(filter.type.rank))
    if groups == 1:
        order[kernel.batch], order[kernel.channels] = kernel.channels, kernel.batch
        return emit.transpose(filter, order)
    shape = emit.extents(filter)
    given, taken = shape[kernel.batch] // groups, shape[kernel.channels]
    split = emit.reshape(filter, [*shape[: kernel.batch], groups, given, *shape[kernel.batch + 1 :]])
    outputs, inputs = kernel.batch + 1, kernel.channels + (kernel.channels > kernel.batch)
    order = list(range(split.type.rank))
    order[outputs], order[inputs] = inputs, outputs
    shape[kernel.batch], shape[kernel.channels] = groups * taken, given
    return emit.reshape(emit.transpose(split, order), shape)


def _dilated(count: Extent, stride: int) -> Extent:
    """Returns the extent of elements with gaps between them."""
    return 0 if is_number(count, 0) else (count - 1) * stride + 1


Geometry = tuple[Sequence[int], Sequence[int], Padding, Sequence[int]]
"""Windows over all dimensions: their extents, strides, padding and dilations."""


def largest_of_windows(emit: Emitter, x: Value, places: Value, geometry: Geometry) -> tuple[Value, Value]:
    """Returns the largest element of each window, and what `places` (i64, not negative) has there: the first of equal
    ones. A NaN is the largest."""
    window, strides, given, dilations = geometry
    kind = x.type.element_type
    x, padding = emit.with_known_padding(x, given, lowest(kind))
    places, _ = emit.with_known_padding(places, given, -1)

    def larger(emit: Emitter, best: Value, at: Value, new: Value, here: Value) -> tuple[Value, Value]:
        better = emit.compare("GT", new, best)
        if is_float(kind):
            better = emit.add(ops.Or(better, emit.compare("NE", new, new)))
        # The padding has the index -1, and loses against every element.
        first = emit.compare("LT", at, emit.scalar(0, I64))
        earlier = emit.add(ops.And(emit.compare("EQ", new, best), emit.compare("LT", here, at)))
        real = emit.compare("GE", here, emit.scalar(0, I64))
        taken = emit.add(ops.And(real, emit.add(ops.Or(first, emit.add(ops.Or(better, earlier))))))
        return emit.select(taken, new, best), emit.select(taken, here, at)

    types = [TensorType((), kind), TensorType((), I64)] * 2
    values, indices = emit.add(
        ops.ReduceWindow(
            [x, places],
            [emit.scalar(lowest(kind), kind), emit.scalar(-1, I64)],
            window_dimensions=tuple(window),
            window_strides=tuple(strides),
            base_dilations=(1,) * len(window),
            window_dilations=tuple(dilations),
            padding=padding,
            body=emit.region(types, larger),
        )
    )
    return values, indices
