"""Depthwise convolutions of few features, such as filters of pictures: their features do not fill a vector. Lines do.
The features of the image and of the result move before their lines, along which windows then slide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.layout import of_floats, to_first, to_last
from trivium.compiler.passes.manager import Pass, blocks
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.core import Value
from trivium.ir.func import Module

MOST = 6
FEWEST_TAPS = 4
"""The numbers of features to which, and of taps from which, moving the features takes less time than it saves."""


@dataclass(frozen=True)
class FewChannels(Pass):
    """Afterwards, depthwise convolutions with so few features that they do not fill half a vector have lines last."""

    NAME: ClassVar[str] = "few-channels"

    vector_bytes: int

    def run(self, module: Module) -> bool:
        found = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution)]
        found = [op for op in found if is_filter(op, op.result.type.rank - 1, self.vector_bytes)]
        for op in found:
            _rewrite(op)
        return bool(found)


def is_filter(op: ops.Convolution, feature: int, vector_bytes: int) -> bool:
    """Whether a convolution is a depthwise one of few features, which are the dimension `feature` of its image and its
    result, and its windows can slide along lines that fill half a vector at least."""
    numbers, shape, image = op.dimension_numbers, op.result.type.static_shape, op.lhs.type.static_shape
    places = (numbers.input_feature_dimension, numbers.output_feature_dimension)
    if (
        len(shape) < 3
        or places != (feature, feature)
        or numbers.input_batch_dimension
        or numbers.output_batch_dimension
    ):
        return False
    features, rows, line = shape[feature], numbers.input_spatial_dimensions, numbers.output_spatial_dimensions[-1]
    plain = of_floats(op) and op.batch_group_count == 1 and all(step == 1 for step in op.lhs_dilation or ())
    depthwise = features == image[feature] == op.feature_group_count
    lanes = vector_bytes // op.result.type.dtype.itemsize
    few = features <= min(MOST, lanes // 2) and lanes // 2 <= shape[line]
    slides = rows[-1] == line == max(rows) and (op.window_strides or (1,))[-1] <= 2
    return plain and depthwise and few and slides and op.rhs.type.size >= FEWEST_TAPS * features > 0


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
