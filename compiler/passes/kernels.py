"""Layouts of convolutions' kernels: a kernel that is only known at run time, as in training, is transposed, so that its
output features come last. A transpose moves squares of elements; a convolution that reads such a kernel in its original
order gathers every element individually. On devices that do not pack constants, those that are kernels are transposed,
too, when the program is compiled. On devices that copy boxes of arrays by themselves, kernels of many products have
their input features last instead: matrix instructions multiply rows of terms."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from trivium.compiler.lowering.contraction import operand_order
from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Rewriter
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.types import BF16, F16

LINE, FEWEST_PLACES = 128, 1024
"""The bytes of a row of terms that are copied at once, and the number of results from which on it pays off to transpose
a kernel for it: each of its elements is moved twice."""


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
            _turn(op, _features_last(op))
        return bool(found)


@dataclass(frozen=True)
class KernelsByTerms(Pass):
    """Afterwards, kernels with several taps have their input features last if `target` copies rows of terms by
    itself."""

    target: Target

    NAME: ClassVar[str] = "kernels-by-terms"

    def run(self, module: Module) -> bool:
        convolutions = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution)]
        found = [op for op in convolutions if by_terms(op, self.target) and _differs(op)]
        for op in found:
            _turn(op, _terms_last(op), forward=True)
        return bool(found)


def by_terms(op: ops.Convolution, target: Target) -> bool:
    """Whether a convolution's kernel should have its input features last, because the device copies rows of them."""
    return copies_image(op, target) and _has_taps(op)


def copies_image(op: ops.Convolution, target: Target) -> bool:
    """Whether the device copies rows of the features of a convolution's image."""
    numbers, kernel = op.dimension_numbers, op.rhs.type
    if not _is_plain(op) or op.lhs.type.element_type is not kernel.element_type:
        return False
    nbytes = kernel.static_shape[numbers.kernel_input_feature_dimension] * kernel.dtype.itemsize
    places = op.result.type.size // op.result.type.static_shape[-1]
    return target.copies_terms(str(kernel.element_type)) and nbytes % LINE == 0 and places >= FEWEST_PLACES


def copies_windows(op: ops.Convolution, target: Target) -> bool:
    """Whether a convolution is a gradient of a kernel, whose batch is the features of an image, and the device copies
    rows of these, of many windows."""
    numbers, (image, order) = op.dimension_numbers, operand_order(op.lhs)
    if op.feature_group_count != 1 or op.batch_group_count != 1 or image.type.element_type not in (BF16, F16):
        return False
    if order[0] != numbers.input_feature_dimension or order[-1] != numbers.input_batch_dimension:
        return False
    same = image.type.element_type is op.rhs.type.element_type
    nbytes = image.type.static_shape[-1] * image.type.dtype.itemsize
    return same and target.copies_terms(str(image.type.element_type)) and nbytes > 0 and nbytes % LINE == 0


def _is_plain(op: ops.Convolution) -> bool:
    """Whether a convolution has one group, and images with their features last."""
    numbers, last = op.dimension_numbers, op.result.type.rank - 1
    plain = op.feature_group_count == 1 == op.batch_group_count and op.result.type.size > 0
    return plain and numbers.input_feature_dimension == last == numbers.output_feature_dimension


def _has_taps(op: ops.Convolution) -> bool:
    return math.prod(op.rhs.type.static_shape[d] for d in op.dimension_numbers.kernel_spatial_dimensions) > 1


def _gains(op: ops.Convolution) -> bool:
    last = op.dimension_numbers.kernel_output_feature_dimension == op.rhs.type.rank - 1
    return _is_plain(op) and _has_taps(op) and not last


def _differs(op: ops.Convolution) -> bool:
    """Whether a kernel has other dimensions last than its input features, or windows are reversed."""
    return _terms_last(op) != tuple(range(op.rhs.type.rank)) or any(op.window_reversal or ())


def _features_last(op: ops.Convolution) -> tuple[int, ...]:
    """Returns the dimensions of a kernel in the order in which its output features come last."""
    numbers = op.dimension_numbers
    order = *numbers.kernel_spatial_dimensions, numbers.kernel_input_feature_dimension
    return *order, numbers.kernel_output_feature_dimension


def _terms_last(op: ops.Convolution) -> tuple[int, ...]:
    """Returns the same in the order in which its input features come last."""
    *order, output = _features_last(op)
    return output, *order


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


def _turn(op: ops.Convolution, order: tuple[int, ...], forward: bool = False) -> None:
    """Transposes a kernel. `forward`: it is reversed, not its windows."""
    rewriter, numbers = Rewriter(op), op.dimension_numbers
    kernel, reversal = op.rhs, op.window_reversal or ()
    if forward and any(reversal):
        spatial = zip(numbers.kernel_spatial_dimensions, reversal, strict=True)
        reverse = ops.Reverse(kernel, dimensions=tuple(dimension for dimension, is_reversed in spatial if is_reversed))
        kernel = rewriter.add(reverse)
    kernel = _transposed(rewriter, kernel, order)
    turned = replace(
        numbers,
        kernel_spatial_dimensions=tuple(map(order.index, numbers.kernel_spatial_dimensions)),
        kernel_input_feature_dimension=order.index(numbers.kernel_input_feature_dimension),
        kernel_output_feature_dimension=order.index(numbers.kernel_output_feature_dimension),
    )
    attributes = {**op.attributes, "dimension_numbers": turned}
    if forward:
        attributes.pop("window_reversal", None)
    new = type(op).create([op.lhs, kernel], op.result_types, attributes, [], op.extra, op.location, op.segments)
    rewriter.add(new)
    rewriter.replace(*new.results)
