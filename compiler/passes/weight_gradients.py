"""Layouts of convolutions' weight gradients: convolutions of an image, with its features as a batch, and a window of
almost its size, the gradient of the result. Each of their few positions is a product over all positions of the image.
Vectors hold neighbouring output features. For this the gradient is packed once, and the image, whose features are the
rows, has these last and is padded; otherwise every window of every feature would be packed. Convolutions of images not
much larger than the window look alike. Those with constant kernels stay if they have more features than the window has
positions: their runs of features are long. Others, such as those that embed patches, gain as gradients do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from trivium.compiler.passes.layout import is_plain
from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.passes.padding import with_zeros
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.core import Value
from trivium.ir.func import Module

FEWEST_TERMS = 512
"""The number of terms of each sum from which it pays off to transpose the image."""


@dataclass(frozen=True)
class WeightGradients(Pass):
    """Afterwards, weight gradients whose output features fill vectors have them last in their result, and the input
    features last in their image, which is padded."""

    NAME: ClassVar[str] = "weight-gradients"

    vector_bytes: int

    def run(self, module: Module) -> bool:
        found = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution) and self._gains(op)]
        for op in found:
            _turn(op)
        return bool(found)

    def _gains(self, op: ops.Convolution) -> bool:
        numbers = op.dimension_numbers
        if not is_plain(op) or any(amount < 0 for pair in op.padding or () for amount in pair):
            return False
        taps = _extent(op.result, numbers.output_spatial_dimensions)
        window = _extent(op.rhs, numbers.kernel_spatial_dimensions)
        summed = _extent(op.lhs, [numbers.input_feature_dimension])
        terms = window * summed
        features = _extent(op.result, [numbers.output_feature_dimension])
        lanes = self.vector_bytes // op.result.type.dtype.itemsize
        whole = features > 0 and features % lanes == 0
        first = numbers.input_batch_dimension != op.lhs.type.rank - 1
        runs = isinstance(op.rhs.defining_op, ops.Constant) and summed > window
        return whole and first and not runs and 1 < taps < window and terms >= FEWEST_TERMS


def _extent(value: Value, dimensions: Sequence[int]) -> int:
    return math.prod(value.type.static_shape[d] for d in dimensions)


def _turn(op: ops.Convolution) -> None:
    rewriter, numbers, kind = Rewriter(op), op.dimension_numbers, op.result.type
    image = numbers.input_feature_dimension, *numbers.input_spatial_dimensions, numbers.input_batch_dimension
    result = *numbers.output_spatial_dimensions, numbers.output_batch_dimension, numbers.output_feature_dimension
    rank = len(image)
    turned = replace(
        numbers,
        input_feature_dimension=0,
        input_spatial_dimensions=tuple(range(1, rank - 1)),
        input_batch_dimension=rank - 1,
        output_spatial_dimensions=tuple(range(rank - 2)),
        output_batch_dimension=rank - 2,
        output_feature_dimension=rank - 1,
    )
    types = [kind.with_shape(tuple(kind.static_shape[d] for d in result))]
    padding = tuple((0, 0) for _ in numbers.input_spatial_dimensions)
    attributes = {**op.attributes, "dimension_numbers": turned, "padding": padding}
    operands = [_image(rewriter, op, image), op.rhs]
    new = type(op).create(operands, types, attributes, [], op.extra, op.location, op.segments)
    rewriter.add(new)
    order = tuple(map(result.index, range(rank)))
    rewriter.replace(rewriter.add(ops.Transpose(new.results[0], permutation=order)))


def _image(rewriter: Rewriter, op: ops.Convolution, order: tuple[int, ...]) -> Value:
    """Returns the image with its dimensions in this order, and padded. A pad of it comes after the transpose, which
    thus makes no copy of its own."""
    pad, padding = op.lhs.defining_op, [(0, 0), *(op.padding or ()), (0, 0)]
    if not isinstance(pad, ops.Pad):
        turned = rewriter.add(ops.Transpose(op.lhs, permutation=order))
    else:
        inner = rewriter.add(ops.Transpose(pad.operand, permutation=order))
        lists = (pad.edge_padding_low, pad.edge_padding_high, pad.interior_padding)
        turned = rewriter.add(ops.Pad(inner, pad.padding_value, *([each[d] for d in order] for each in lists)))
    low, high = map(list, zip(*padding, strict=True))
    return with_zeros(rewriter, turned, low, high) if any((*low, *high)) else turned
