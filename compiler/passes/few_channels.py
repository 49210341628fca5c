"""Convolutions whose features, or those of a group, do not fill vectors, such as filters of pictures. Lines do. The
features of the image and of the result move before their lines, along which windows then slide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.layout import of_floats, to_first, to_last
from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.target import MASKED_BYTES
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.core import Value
from trivium.ir.func import Module

MOST = 6
FEWEST_TAPS = 4
"""The numbers of features of a depthwise convolution to which, and of taps from which, moving the features takes less
time than it saves."""
FILLED = 3 / 4
"""The share of the lanes of a line's vectors that positions must fill at least."""

# The time of products of vectors that keep the multipliers busy, which take as long as:
ACROSS, ALONG = (1.2, 1.0), 1.04
"""products with features in the lanes, of one vector or of two, and those with positions there;"""
TAP, MANY = 5, 8
"""going on to the next tap with features in the lanes, of which there are as many or more in the image;"""
TURNED = 8
"""turning a vector's worth of elements."""


@dataclass(frozen=True)
class FewChannels(Pass):
    """Afterwards, convolutions in groups of so few features that they do not fill vectors have lines last."""

    NAME: ClassVar[str] = "few-channels"

    vector_bytes: int

    def run(self, module: Module) -> bool:
        found = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution)]
        found = [op for op in found if runs_along_lines(op, op.result.type.rank - 1, self.vector_bytes)]
        for op in found:
            _rewrite(op)
        return bool(found)


def runs_along_lines(op: ops.Convolution, feature: int, vector_bytes: int) -> bool:
    """Whether a convolution, in whose image and result the features are the dimension `feature`, is one of few features
    in each group, and its windows can slide along lines that fill vectors better."""
    numbers, shape, image = op.dimension_numbers, op.result.type.static_shape, op.lhs.type.static_shape
    places = numbers.input_feature_dimension, numbers.output_feature_dimension
    batches = numbers.input_batch_dimension, numbers.output_batch_dimension
    if len(shape) < 3 or places != (feature, feature) or batches != (0, 0):
        return False
    rows, line = numbers.input_spatial_dimensions, numbers.output_spatial_dimensions[-1]
    plain = of_floats(op) and op.batch_group_count == 1 and all(step == 1 for step in op.lhs_dilation or ())
    slides = rows[-1] == line == max(rows) and (op.window_strides or (1,))[-1] <= 2
    taps = math.prod(op.rhs.type.static_shape[d] for d in numbers.kernel_spatial_dimensions)
    if not (plain and slides and taps > 1 and op.result.type.size > 0):
        return False
    lanes = vector_bytes // op.result.type.dtype.itemsize
    if shape[feature] == image[feature] == op.feature_group_count:
        return shape[feature] <= min(MOST, lanes // 2) and lanes // 2 <= shape[line] and taps >= FEWEST_TAPS
    few = shape[feature] // op.feature_group_count
    return vector_bytes >= MASKED_BYTES and _gains(op, lanes, few, shape[line])


def _gains(op: ops.Convolution, lanes: int, features: int, line: int) -> bool:
    """Whether products with neighbouring positions in the lanes, and turning the image and the result for them, take
    less time than products with features in the lanes."""
    vectors = -(-features // lanes)
    if vectors > len(ACROSS) or not fills_lines(line, lanes):
        return False
    terms = op.rhs.type.size // op.rhs.type.static_shape[op.dimension_numbers.kernel_output_feature_dimension]
    inputs = op.rhs.type.static_shape[op.dimension_numbers.kernel_input_feature_dimension]
    across = terms * ACROSS[vectors - 1] * vectors + TAP * terms / max(inputs, MANY)
    turned = op.lhs.type.size / op.result.type.size * features + features
    return across > terms * ALONG / _filled(line, lanes) * features / lanes + TURNED * turned / lanes


def fills_lines(line: int, lanes: int) -> bool:
    """Whether the positions of a line fill enough of its vectors."""
    return _filled(line, lanes) >= FILLED


def _filled(line: int, lanes: int) -> float:
    return line / (-(-line // lanes) * lanes)


def _rewrite(op: ops.Convolution) -> None:
    rewriter, rank, numbers = Rewriter(op), op.result.type.rank, op.dimension_numbers
    places = {d: d + 1 for d in range(1, rank - 1)}
    turned = ops.ConvDimensionNumbers(
        input_batch_dimension=0,
        input_feature_dimension=1,
        input_spatial_dimensions=tuple(places[d] for d in numbers.input_spatial_dimensions),
        kernel_input_feature_dimension=numbers.kernel_input_feature_dimension,
        kernel_output_feature_dimension=numbers.kernel_output_feature_dimension,
        kernel_spatial_dimensions=numbers.kernel_spatial_dimensions,
        output_batch_dimension=0,
        output_feature_dimension=1,
        output_spatial_dimensions=tuple(places[d] for d in numbers.output_spatial_dimensions),
    )
    image = _transposed(rewriter, op.lhs, to_first(rank))
    shape = op.result.type.static_shape
    types = [op.result.type.with_shape(tuple(shape[d] for d in to_first(rank)))]
    attributes = {**op.attributes, "dimension_numbers": turned}
    new = type(op).create([image, op.rhs], types, attributes, [], op.extra, op.location, op.segments)
    rewriter.add(new)
    rewriter.replace(_transposed(rewriter, new.results[0], to_last(rank)))


def _transposed(rewriter: Rewriter, x: Value, order: tuple[int, ...]) -> Value:
    return rewriter.add(ops.Transpose(x, permutation=order))
