"""Rows that strides skip: a convolution of one element with strides reads only some rows of its image. If the image is
transposed for it, the rows that it skips need no transpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.manager import Pass, blocks
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.func import Module


@dataclass(frozen=True)
class SkipRows(Pass):
    """Afterwards, a transpose that serves one convolution has only the rows that the convolution reads. Rows stay
    whole, so that squares of them can be transposed: strides along the last spatial dimension remain."""

    NAME: ClassVar[str] = "skip-rows"

    def run(self, module: Module) -> bool:
        found = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution) and _skips_rows(op)]
        for op in found:
            _slice(op)
        return bool(found)


def _skips_rows(op: ops.Convolution) -> bool:
    kernel = {op.rhs.type.shape[d] for d in op.dimension_numbers.kernel_spatial_dimensions}
    padded = any(amount for side in op.padding or () for amount in side)
    dilated = any(step > 1 for step in op.lhs_dilation or ())
    skips = any(step > 1 for step in (op.window_strides or ())[:-1])
    if not skips or padded or dilated or kernel != {1}:
        return False
    turned = op.lhs.defining_op
    return isinstance(turned, ops.Transpose) and len(list(op.lhs.users)) == len(list(turned.operand.users)) == 1


def _slice(op: ops.Convolution) -> None:
    rewriter, turned = Rewriter(op), op.lhs.defining_op
    assert isinstance(turned, ops.Transpose)
    assert op.window_strides is not None
    *skipped, last = op.window_strides
    image, shape = turned.operand, turned.operand.type.static_shape
    steps = [1] * len(shape)
    for dimension, step in zip(op.dimension_numbers.input_spatial_dimensions, skipped, strict=False):
        steps[turned.permutation[dimension]] = step
    rows = rewriter.add(ops.Slice(image, (0,) * len(shape), shape, tuple(steps)))
    lhs = rewriter.add(ops.Transpose(rows, permutation=turned.permutation))
    attributes = op.attributes | {"window_strides": (*(1 for _ in skipped), last)}
    new = type(op).create([lhs, op.rhs], op.result_types, attributes, [], op.extra, op.location, op.segments)
    rewriter.add(new)
    rewriter.replace(new.results[0])
