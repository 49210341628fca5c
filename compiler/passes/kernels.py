"""Layouts of convolutions' kernels: a kernel that is only known at run time, as in training, is transposed, so that its
output features come last. A transpose moves squares of elements; a convolution that reads such a kernel in its original
order gathers every element individually. On devices that do not pack constants, those that are kernels are transposed,
too, when the program is compiled."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from trivium.compiler.passes.manager import Pass, blocks
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Rewriter
from trivium.ir.core import Value
from trivium.ir.func import Module


@dataclass(frozen=True)
class TurnedKernels(Pass):
    """Afterwards, kernels with several taps that are not constants have their features last if images do."""

    known: bool = False
    """Whether constants are transposed, not what is only known at run time."""

    NAME: ClassVar[str] = "turned-kernels"

    def run(self, module: Module) -> bool:
        convolutions = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution)]
        found = [op for op in convolutions if _gains(op) and _is_known(op.rhs) == self.known]
        for op in found:
            _turn(op)
        return bool(found)


def _gains(op: ops.Convolution) -> bool:
    numbers, last = op.dimension_numbers, op.result.type.rank - 1
    plain = op.feature_group_count == 1 == op.batch_group_count and op.result.type.size > 0
    images = numbers.input_feature_dimension == last == numbers.output_feature_dimension
    taps = math.prod(op.rhs.type.static_shape[d] for d in numbers.kernel_spatial_dimensions)
    return plain and images and taps > 1 and numbers.kernel_output_feature_dimension != last


def _is_known(value: Value) -> bool:
    while isinstance(value.defining_op, ops.Transpose):
        value = value.defining_op.operand
    return isinstance(value.defining_op, ops.Constant)


def _transposed(rewriter: Rewriter, kernel: Value, permutation: tuple[int, ...]) -> Value:
    source, order = kernel, permutation
    while isinstance(source.defining_op, ops.Transpose):
        inner = source.defining_op
        source, order = inner.operand, tuple(inner.permutation[d] for d in order)
    if isinstance(source.defining_op, ops.Constant):
        array = np.ascontiguousarray(source.defining_op.value.array.transpose(order))
        return rewriter.add(ops.Constant(value=DenseElements(array)))
    return rewriter.add(ops.Transpose(kernel, permutation=permutation))


def _turn(op: ops.Convolution) -> None:
    rewriter, numbers, rank = Rewriter(op), op.dimension_numbers, op.rhs.type.rank
    order = *numbers.kernel_spatial_dimensions, numbers.kernel_input_feature_dimension
    kernel = _transposed(rewriter, op.rhs, (*order, numbers.kernel_output_feature_dimension))
    turned = replace(
        numbers,
        kernel_spatial_dimensions=tuple(range(rank - 2)),
        kernel_input_feature_dimension=rank - 2,
        kernel_output_feature_dimension=rank - 1,
    )
    attributes = {**op.attributes, "dimension_numbers": turned}
    new = type(op).create([op.lhs, kernel], op.result_types, attributes, [], op.extra, op.location, op.segments)
    rewriter.add(new)
    rewriter.replace(*new.results)
