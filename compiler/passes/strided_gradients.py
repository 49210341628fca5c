"""Gradients of images of convolutions with strides are convolutions of an image with holes, which is not in memory. On
devices that copy windows of images by themselves, and for depthwise ones on processors, whose windows slide along
lines, it is written with zeros in its holes. For windows of one element, whose sums most often are of nothing but
holes, that would take longer than to skip these.

If no windows overlap, as those of an image that is cut into patches, each result is a product with a single tap of the
kernel, and all results are one product of matrices, whose columns are the taps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trivium.compiler.passes.kernels import by_terms
from trivium.compiler.passes.layout import has_lines, is_channelwise
from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.func import Module

MOST_TAPS = 16
"""The taps of a window up to which a convolution of an image with holes has code for each."""

MOST_BYTES = 1 << 29
"""The most bytes of an image with its holes."""


@dataclass(frozen=True)
class StridedGradients(Pass):
    """Afterwards, images of convolutions have no holes if `target` reads their windows along memory, or if windows of
    many taps do not overlap."""

    target: Target

    NAME: ClassVar[str] = "strided-gradients"

    def run(self, module: Module) -> bool:
        every = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution)]
        holed = [op for op in every if any(step > 1 for step in op.lhs_dilation or ())]
        cut = [op for op in holed if self._cuts(op)]
        filled = [op for op in holed if op not in cut and self._gains(op)]
        for op in cut:
            _multiply(op)
        for op in filled:
            _fill(op)
        return bool(cut or filled)

    def _gains(self, op: ops.Convolution) -> bool:
        """Whether it takes less time to read zeros from memory than to skip holes."""
        if not self._reads_along_memory(op):
            return False
        # A transposed image would be gathered element by element.
        is_transposed = isinstance(op.lhs.defining_op, ops.Transpose)
        nbytes = op.lhs.type.size * math.prod(op.lhs_dilation or ()) * op.lhs.type.dtype.itemsize
        return not is_transposed and 0 < nbytes <= MOST_BYTES

    def _cuts(self, op: ops.Convolution) -> bool:
        """Whether the windows do not overlap, and have too many taps for separate code for each of them."""
        taps = [op.rhs.type.static_shape[d] for d in op.dimension_numbers.kernel_spatial_dimensions]
        steps = [*(op.window_strides or ()), *(op.rhs_dilation or ())]
        plain = op.feature_group_count == 1 == op.batch_group_count and set(steps) <= {1}
        apart = list(op.lhs_dilation or ()) == taps and list(op.padding or ()) == [(tap - 1, tap - 1) for tap in taps]
        return self.target.layouts is not None and plain and apart and math.prod(taps) > MOST_TAPS

    def _reads_along_memory(self, op: ops.Convolution) -> bool:
        if self.target.layouts is None:
            return by_terms(op, self.target)
        window = [op.rhs.type.static_shape[d] for d in op.dimension_numbers.kernel_spatial_dimensions]
        return is_channelwise(op) and has_lines(op) and math.prod(window) > 1


def _multiply(op: ops.Convolution) -> None:
    """Replaces an op by a product of matrices, whose columns, the features and taps, are moved to their places."""
    rewriter, numbers, kernel = Rewriter(op), op.dimension_numbers, op.rhs
    reversal = op.window_reversal or (False,) * len(numbers.kernel_spatial_dimensions)
    against = [d for d, turned in zip(numbers.kernel_spatial_dimensions, reversal, strict=True) if not turned]
    if against:  # the first tap meets the last element of a window's place
        kernel = rewriter.add(ops.Reverse(kernel, against))
    rows = [d for d in range(op.lhs.type.rank) if d != numbers.input_feature_dimension]
    columns = [d for d in range(kernel.type.rank) if d != numbers.kernel_input_feature_dimension]
    shape = [*(op.lhs.type.shape[d] for d in rows), *(kernel.type.shape[d] for d in columns)]
    contracted = [numbers.input_feature_dimension], [numbers.kernel_input_feature_dimension]
    product = rewriter.add(
        ops.DotGeneral(
            op.lhs,
            kernel,
            ops.DotDimensionNumbers((), (), *map(tuple, contracted)),
            precision_config=op.precision_config,
            result=op.result.type.with_shape(tuple(shape)),
        )
    )
    places = {numbers.output_batch_dimension: [rows.index(numbers.input_batch_dimension)]}
    places[numbers.output_feature_dimension] = [len(rows) + columns.index(numbers.kernel_output_feature_dimension)]
    spatial = numbers.input_spatial_dimensions, numbers.kernel_spatial_dimensions, numbers.output_spatial_dimensions
    for row, column, d in zip(*spatial, strict=True):
        places[d] = [rows.index(row), len(rows) + columns.index(column)]
    order = [place for d in range(op.result.type.rank) for place in places[d]]
    moved = rewriter.add(ops.Transpose(product, order))
    rewriter.replace(rewriter.add(ops.Reshape(moved, result=op.result.type)))


def _fill(op: ops.Convolution) -> None:
    """Replaces an op by one of an image with zeros in its holes."""
    rewriter, rank = Rewriter(op), op.lhs.type.rank
    between = [0] * rank
    for d, step in zip(op.dimension_numbers.input_spatial_dimensions, op.lhs_dilation or (), strict=True):
        between[d] = step - 1
    zero = rewriter.add(ops.Constant(np.zeros((), op.lhs.type.dtype)))
    image = rewriter.add(ops.Pad(op.lhs, zero, [0] * rank, [0] * rank, between))
    attributes = {name: value for name, value in op.attributes.items() if name != "lhs_dilation"}
    new = type(op).create([image, op.rhs], op.result_types, attributes, [], op.extra, op.location, op.segments)
    rewriter.add(new)
    rewriter.replace(*new.results)
