"""Gradients of images of convolutions with strides, on devices that copy windows of images by themselves: they are
convolutions of an image with holes, which is not in memory. It is written with zeros in its holes. For windows of one
element, whose sums most often are of nothing but holes, that would take longer than to skip these."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trivium.compiler.passes.kernels import by_terms
from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.func import Module

MOST_BYTES = 1 << 29
"""The most bytes of an image with its holes."""


@dataclass(frozen=True)
class StridedGradients(Pass):
    """Afterwards, images of convolutions have no holes if `target` copies their windows."""

    target: Target

    NAME: ClassVar[str] = "strided-gradients"

    def run(self, module: Module) -> bool:
        found = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution) and self._gains(op)]
        for op in found:
            _rewrite(op)
        return bool(found)

    def _gains(self, op: ops.Convolution) -> bool:
        if not any(step > 1 for step in op.lhs_dilation or ()) or not by_terms(op, self.target):
            return False
        # A transposed image would be gathered element by element.
        is_transposed = isinstance(op.lhs.defining_op, ops.Transpose)
        nbytes = op.lhs.type.size * math.prod(op.lhs_dilation or ()) * op.lhs.type.dtype.itemsize
        return not is_transposed and 0 < nbytes <= MOST_BYTES


def _rewrite(op: ops.Convolution) -> None:
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
