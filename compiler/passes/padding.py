"""Padding of convolutions with few input features becomes an op. Their windows have short runs in memory, so checking
the edges, or rearranging every window, would take as long as the products; a padded copy of so few features takes next
to nothing, and may be written by the op that computes the image."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trivium.compiler.passes.layout import LEAST_POSITIONS
from trivium.compiler.passes.manager import Pass, blocks
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.types import is_complex

FEW_FEATURES = 4
"""The number of features up to which padding is made explicit: pictures have three, or four with transparency."""


@dataclass(frozen=True)
class ExplicitPadding(Pass):
    """Afterwards, convolutions with few input features have no padding, and pads before them do."""

    NAME: ClassVar[str] = "explicit-padding"

    def run(self, module: Module) -> bool:
        found = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution) and _gains(op)]
        for op in found:
            _pad(op)
        return bool(found)


def _gains(op: ops.Convolution) -> bool:
    numbers, padding = op.dimension_numbers, op.padding or ()
    shape, image = op.result.type.static_shape, op.lhs.type.static_shape
    places = shape[numbers.output_batch_dimension] * math.prod(shape[d] for d in numbers.output_spatial_dimensions)
    few = image[numbers.input_feature_dimension] <= FEW_FEATURES and op.feature_group_count == 1
    pads = any(amount for pair in padding for amount in pair) and all(
        amount >= 0 for pair in padding for amount in pair
    )
    dilated = any(step != 1 for step in op.lhs_dilation or ())
    return few and pads and not dilated and places >= LEAST_POSITIONS and not is_complex(op.lhs.type.element_type)


def _pad(op: ops.Convolution) -> None:
    """Replaces an op by one on its padded image. The pad is put before a transpose, where the image lies as its
    producer has it."""
    rewriter, numbers, image, padding = Rewriter(op), op.dimension_numbers, op.lhs, op.padding or ()
    low, high = [0] * image.type.rank, [0] * image.type.rank
    for d, (before, after) in zip(numbers.input_spatial_dimensions, padding, strict=True):
        low[d], high[d] = before, after
    turned = image.defining_op if isinstance(image.defining_op, ops.Transpose) else None
    if turned is None:
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
