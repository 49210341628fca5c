"""Padding of convolutions with few input features becomes an op. Their windows have short runs in memory, so checking
the edges, or rearranging every window, would take as long as the products; a padded copy of so few features takes next
to nothing, and may be written by the op that computes the image. So does that of an image whose channels are multiplied
with one each, in the gradient of a depthwise convolution's kernel: the products of each tap are a sum along lines. The
same is done for instructions that multiply tiles: these read evenly spaced rows of the image itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trivium.compiler.lowering.contraction import is_markable, matrix_instruction
from trivium.compiler.passes.layout import LEAST_POSITIONS, has_lines
from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.types import is_complex

FEW_FEATURES = 4
"""The number of features up to which padding is made explicit: pictures have three, or four with transparency."""


@dataclass(frozen=True)
class ExplicitPadding(Pass):
    """Afterwards, convolutions with few input features, and gradients of depthwise kernels, have no padding, and pads
    before them do; or, given a target, those that its instructions for tiles multiply."""

    NAME: ClassVar[str] = "explicit-padding"
    target: Target | None = None

    def run(self, module: Module) -> bool:
        convolutions = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution)]
        found = [op for op in convolutions if _pads(op) and self._gains(op)]
        for op in found:
            _pad(op, before_transpose=self.target is None)
        return bool(found)

    def _gains(self, op: ops.Convolution) -> bool:
        if self.target is not None:
            return _is_in_tiles(op, self.target)
        return (op.batch_group_count > 1 and has_lines(op)) or _has_few_features(op)


def _pads(op: ops.Convolution) -> bool:
    """Whether a convolution, of one group, has nothing but padding around its image."""
    amounts = [amount for pair in op.padding or () for amount in pair]
    dilated = any(step != 1 for step in op.lhs_dilation or ())
    return any(amounts) and min(amounts) >= 0 and not dilated and op.feature_group_count == 1


def _has_few_features(op: ops.Convolution) -> bool:
    numbers = op.dimension_numbers
    shape, image = op.result.type.static_shape, op.lhs.type.static_shape
    places = shape[numbers.output_batch_dimension] * math.prod(shape[d] for d in numbers.output_spatial_dimensions)
    few = image[numbers.input_feature_dimension] <= FEW_FEATURES
    return few and places >= LEAST_POSITIONS and not is_complex(op.lhs.type.element_type)


def _is_in_tiles(op: ops.Convolution, target: Target) -> bool:
    """Whether an instruction multiplies tiles of the image whose rows are runs of features."""
    if not is_markable(op) or op.batch_group_count != 1:
        return False
    matrix = matrix_instruction(op, target)
    feature, last = op.dimension_numbers.input_feature_dimension, op.lhs.type.rank - 1
    return matrix is not None and feature == last and op.lhs.type.static_shape[last] % matrix.depth == 0


def _pad(op: ops.Convolution, before_transpose: bool) -> None:
    """Replaces an op by one on its padded image. The pad of few features is put before a transpose, where the image
    lies as its producer has it."""
    rewriter, numbers, image, padding = Rewriter(op), op.dimension_numbers, op.lhs, op.padding or ()
    low, high = [0] * image.type.rank, [0] * image.type.rank
    for d, (before, after) in zip(numbers.input_spatial_dimensions, padding, strict=True):
        low[d], high[d] = before, after
    turned = image.defining_op
    if not before_transpose or not isinstance(turned, ops.Transpose):
        padded = with_zeros(rewriter, image, low, high)
    else:
        source = sorted(range(image.type.rank), key=turned.permutation.__getitem__)
        low, high = [low[d] for d in source], [high[d] for d in source]
        padded = rewriter.add(
            ops.Transpose(with_zeros(rewriter, turned.operand, low, high), permutation=turned.permutation)
        )
    attributes = {**op.attributes, "padding": tuple((0, 0) for _ in padding)}
    new = type(op).create([padded, op.rhs], op.result_types, attributes, [], op.extra, op.location, op.segments)
    rewriter.add(new)
    rewriter.replace(*new.results)


def with_zeros(rewriter: Rewriter, image: Value, low: list[int], high: list[int]) -> Value:
    """Returns an image with zeros around it."""
    zero = rewriter.add(ops.Constant(np.zeros((), image.type.dtype)))
    return rewriter.add(ops.Pad(image, zero, low, high, [0] * image.type.rank))
