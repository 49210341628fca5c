"""Convolutions with few input features, such as those of pictures, on devices that copy lines of terms by themselves. A
row of a window, or as many of them as the stride moves it, becomes the features of an image with as many columns as the
result, filled up with zeros to whole lines. All of it is written once: each column of a picture then has several
copies, but none of them is gathered element by element while products wait for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from trivium.compiler.lowering.contraction import is_markable
from trivium.compiler.passes.kernels import FEWEST_PLACES, LINE
from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Rewriter
from trivium.ir.core import Value
from trivium.ir.func import Module

NOWHERE = -(1 << 30)
"""What a position outside adds to the place of an element: more than all others together."""


@dataclass(frozen=True)
class WindowRows(Pass):
    """Afterwards, the images of two-dimensional convolutions have features of whole lines if `target` copies these and
    a row of a window fits one."""

    target: Target

    NAME: ClassVar[str] = "window-rows"

    def run(self, module: Module) -> bool:
        found = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution) and self._gains(op)]
        for op in found:
            _rewrite(op)
        return bool(found)

    def _gains(self, op: ops.Convolution) -> bool:
        numbers, kind = op.dimension_numbers, op.lhs.type
        plain = op.feature_group_count == 1 == op.batch_group_count and is_markable(op) and kind.rank == 4
        if not plain or not self.target.copies_terms(str(kind.element_type)):
            return False
        if (
            numbers.input_batch_dimension
            or numbers.output_feature_dimension != 3
            or any(d != 1 for d in op.lhs_dilation or ())
        ):
            return False
        if kind.element_type is not op.rhs.type.element_type or any(op.window_reversal or ()):
            return False
        if kind.size >= -NOWHERE or op.rhs.type.size >= -NOWHERE:
            return False
        places = op.result.type.size // max(1, op.result.type.static_shape[-1])
        return (
            places >= FEWEST_PLACES
            and _taps(op) != (1, 1)
            and _taps(op)[1] * _inputs(op) <= LINE // kind.dtype.itemsize
        )


def _inputs(op: ops.Convolution) -> int:
    return op.rhs.type.static_shape[op.dimension_numbers.kernel_input_feature_dimension]


def _taps(op: ops.Convolution) -> tuple[int, int]:
    """Returns the rows and columns of a window."""
    rows, columns = op.dimension_numbers.kernel_spatial_dimensions
    return op.rhs.type.static_shape[rows], op.rhs.type.static_shape[columns]


@dataclass(frozen=True)
class _Source:
    """A tensor with zeros around it: `dimensions` of the padded one, in the order of memory, of which the first one is
    kept. `before`: the zeros before the first element, by dimension of the padded tensor."""

    value: Value
    dimensions: tuple[int, ...]
    before: dict[int, int]

    def places(self, dimension: int, positions: np.ndarray) -> np.ndarray:
        """Returns how much positions along a dimension add to the places of elements, in the order of memory, in what
        is kept: so little that these are negative for zeros."""
        number = self.dimensions.index(dimension)
        extents = self.value.type.static_shape
        found = positions - self.before[dimension]
        inside = (found >= 0) & (found < extents[number])
        return np.where(inside, found * math.prod(extents[number + 1 :]), NOWHERE).astype(np.int32)


def _source(value: Value, first: int) -> _Source:
    """Returns what a tensor is transposed and padded from, if the dimension `first` stays the first one there."""
    before, dimensions = dict.fromkeys(range(value.type.rank), 0), tuple(range(value.type.rank))
    found = _Source(value, dimensions, dict(before))
    while True:
        match value.defining_op:
            case ops.Transpose(operand=operand, permutation=permutation):
                dimensions = tuple(dimensions[permutation.index(d)] for d in range(len(dimensions)))
            case ops.Pad(operand=operand, edge_padding_low=low, edge_padding_high=high, interior_padding=inner) as pad:
                if any(inner) or min(*low, *high) < 0 or not _is_zero(pad.padding_value):
                    return found
                for dimension, amount in zip(dimensions, low, strict=True):
                    before[dimension] += amount
                if low[dimensions.index(first)] or high[dimensions.index(first)]:
                    return found
            case _:
                return found
        value = operand
        if dimensions[0] == first:
            found = _Source(value, dimensions, dict(before))


def _is_zero(value: Value) -> bool:
    constant = value.defining_op
    return isinstance(constant, ops.Constant) and not any(constant.value.array.tobytes())


@dataclass(frozen=True)
class _Lines:
    """How the rows of a window become lines. A line has `folded` rows, `within` rows of the image apart, and begins
    `step` rows after the one before. A window has `taps` lines, `dilation` apart, and is `between` lines after the
    one before."""

    folded: int
    step: int
    within: int
    taps: int
    dilation: int
    between: int


def _lines(op: ops.Convolution) -> _Lines:
    (rows, columns), room = _taps(op), LINE // op.lhs.type.dtype.itemsize // _inputs(op)
    stride, apart = _pair(op.window_strides)[0], _pair(op.rhs_dilation)[0]
    if rows * columns <= room:
        return _Lines(rows, stride, apart, 1, 1, 1)
    if apart == 1 and rows % stride == 0 and stride * columns <= room:
        # As many rows as a stride moves the window. None of them is outside of it: an infinite number there, times the
        # zero of a kernel that is filled up, would not be zero.
        return _Lines(stride, stride, 1, rows // stride, 1, 1)
    return _Lines(1, 1, 1, rows, apart, stride)


def _pair(given: Sequence[int] | None) -> tuple[int, int]:
    rows, columns = given or (1, 1)
    return rows, columns


def _rewrite(op: ops.Convolution) -> None:
    rewriter, numbers, lines = Rewriter(op), op.dimension_numbers, _lines(op)
    room, used = LINE // op.lhs.type.dtype.itemsize, lines.folded * _taps(op)[1] * _inputs(op)
    # The row, the column and the feature of each element of a line; of those that are filled up, outside.
    spot = np.unravel_index(np.minimum(np.arange(room), used - 1), (lines.folded, _taps(op)[1], _inputs(op)))
    row, column, feature = (*spot[:2], np.where(np.arange(room) < used, spot[2], -1))
    turned = replace(
        numbers,
        input_spatial_dimensions=(1, 2),
        input_feature_dimension=3,
        kernel_output_feature_dimension=0,
        kernel_spatial_dimensions=(1, 2),
        kernel_input_feature_dimension=3,
    )
    attributes = {
        **op.attributes,
        "dimension_numbers": turned,
        "padding": ((0, 0), (0, 0)),
        "window_strides": (lines.between, 1),
        "rhs_dilation": (lines.dilation, 1),
    }
    operands = [
        _image(rewriter, op, lines, (row, column, feature)),
        _kernel(rewriter, op, lines, (row, column, feature)),
    ]
    new = type(op).create(operands, op.result_types, attributes, [], op.extra, op.location, op.segments)
    rewriter.add(new)
    rewriter.replace(*new.results)


Spots = tuple[np.ndarray, np.ndarray, np.ndarray]


def _image(rewriter: Rewriter, op: ops.Convolution, lines: _Lines, spots: Spots) -> Value:
    """Returns the image as lines: one for each row of them, and each column of the result."""
    numbers, (row, column, feature) = op.dimension_numbers, spots
    down, across = (op.result.type.static_shape[d] for d in numbers.output_spatial_dimensions)
    low = [before for before, _ in op.padding or ((0, 0), (0, 0))]
    height = (down - 1) * lines.between + (lines.taps - 1) * lines.dilation + 1
    y, x = numbers.input_spatial_dimensions
    source = _source(op.lhs, numbers.input_batch_dimension)
    up = source.places(y, np.arange(height)[:, None, None] * lines.step + row * lines.within - low[0])
    first = np.arange(across)[None, :, None] * _pair(op.window_strides)[1] - low[1]
    along = source.places(x, first + column * _pair(op.rhs_dilation)[1])
    return _taken(rewriter, source.value, _sums(up, source.places(numbers.input_feature_dimension, feature)), along)


def _kernel(rewriter: Rewriter, op: ops.Convolution, lines: _Lines, spots: Spots) -> Value:
    """Returns the kernel as lines, with its output features first."""
    numbers, (row, column, feature) = op.dimension_numbers, spots
    first, (y, x) = numbers.kernel_output_feature_dimension, numbers.kernel_spatial_dimensions
    source = _source(op.rhs, first)
    if source.dimensions[0] != first:
        order = (first, *(d for d in range(4) if d != first))
        kernel = rewriter.add(ops.Transpose(op.rhs, permutation=order))
        source = _Source(kernel, order, dict.fromkeys(order, 0))
    up = source.places(y, np.arange(lines.taps)[:, None, None] * lines.folded + row)
    along = _sums(source.places(x, column), source.places(numbers.kernel_input_feature_dimension, feature))
    return _taken(rewriter, source.value, up, along)


def _sums(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Returns the sums of what two dimensions add to places."""
    return np.maximum(one + other, NOWHERE).astype(np.int32)


def _taken(rewriter: Rewriter, source: Value, up: np.ndarray, along: np.ndarray) -> Value:
    """Returns a tensor of the elements of each first index that are at the sums of two numbers, or zeros where these
    are negative."""
    kind, first = source.type, source.type.static_shape[0]
    up, along = (part.reshape((1,) * (3 - part.ndim) + part.shape) for part in (up, along))
    shape = np.broadcast_shapes(up.shape, along.shape)
    flat = rewriter.add(ops.Reshape(source, result=kind.with_shape((first, kind.size // first))))

    def everywhere(value: Value, dimensions: tuple[int, ...], *more: int) -> Value:
        return rewriter.add(ops.BroadcastInDim(value, dimensions, result=value.type.with_shape((*more, *shape))))

    parts = []
    for part in (up, along):
        dimensions = tuple(d for d, extent in enumerate(part.shape) if extent > 1)
        constant = rewriter.add(ops.Constant(value=DenseElements(part.reshape([part.shape[d] for d in dimensions]))))
        parts.append(everywhere(constant, dimensions))
    places = rewriter.add(ops.Add(*parts))
    numbers = ops.GatherDimensionNumbers(
        offset_dims=(0,), collapsed_slice_dims=(1,), start_index_map=(1,), index_vector_dim=len(shape)
    )
    taken = rewriter.add(ops.Gather(flat, places, dimension_numbers=numbers, slice_sizes=(first, 1)))
    nothing = rewriter.add(ops.Constant(np.zeros((), np.int32)))
    inside = rewriter.add(ops.Compare(places, everywhere(nothing, ()), comparison_direction="GE"))
    mask = everywhere(inside, tuple(range(1, 1 + len(shape))), first)
    zero = rewriter.add(ops.Constant(np.zeros((), kind.dtype)))
    return rewriter.add(ops.Select(mask, taken, everywhere(zero, (), first)))
