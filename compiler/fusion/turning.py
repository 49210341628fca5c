"""How a convolution is computed that has its features last, while its image, result or kernel has them elsewhere in
memory. Transposes may be part of the convolution's kernel, which then has neighbouring positions in its lanes and
packs every window, or gathers the elements of weights; or they become separate kernels, which transpose squares of
elements in registers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trivium.compiler.lowering.contraction import conv_windows, matrix_instruction, operand_order
from trivium.compiler.passes.few_channels import runs_along_lines
from trivium.compiler.passes.kernels import by_terms, copies_image
from trivium.compiler.passes.padding import FEW_FEATURES
from trivium.compiler.target import LayoutCosts, Target
from trivium.ir import ops
from trivium.ir.core import Operation
from trivium.ir.types import BF16, F16, F32, F64, I8, I32, UI8, Type

ONE_BY_ONE = 2
"""The cost of an element in rows of so few features that all are packed one by one, in those of a vector of windows."""

_MULTIPLIED: dict[Type, tuple[set[Type], ...]] = {
    F32: ({F32}, {F16}, {BF16}),
    F64: ({F64},),
    F16: ({F16},),
    BF16: ({BF16},),
    I32: ({I8, UI8},),
}
"""The types of operands that are multiplied with one another, by the type of the result."""


@dataclass(frozen=True)
class Turned:
    """Which transposes around a contraction are kernels of their own: those of its image and its result, and that of a
    convolution's kernel."""

    image: bool = False
    kernel: bool = False


def turned(op: Operation, target: Target) -> Turned:
    """Returns the transposes around `op` that are kernels of their own, because that costs less."""
    if not isinstance(op, ops.Convolution):
        return Turned()
    if target.layouts is None:
        copied = copies_image(op, target) and isinstance(op.lhs.defining_op, ops.Transpose)
        return Turned(copied, isinstance(op.rhs.defining_op, ops.Transpose) and by_terms(op, target))
    if _is_weight_gradient(op) or runs_along_lines(op, 1, target.vector_bytes):
        return Turned(image=True)
    if not _has_features_last(op):
        return Turned()
    kinds = {operand.type.element_type for operand in op.operands}
    if not any(kinds <= together for together in _MULTIPLIED.get(op.result.type.element_type, ())):
        return Turned()
    cheaper = _in_order(op, target, target.layouts) < _as_it_lies(op, target, target.layouts)
    return Turned(cheaper, _is_across(op))


def _has_features_last(op: ops.Convolution) -> bool:
    numbers, last = op.dimension_numbers, op.result.type.rank - 1
    plain = op.feature_group_count == 1 == op.batch_group_count
    return plain and last > 1 and numbers.input_feature_dimension == last == numbers.output_feature_dimension


def _is_weight_gradient(op: ops.Convolution) -> bool:
    """Whether the batch dimension comes last, as the pass of weight gradients has it: in lanes."""
    numbers, last = op.dimension_numbers, op.result.type.rank - 1
    return last > 1 and numbers.input_batch_dimension == last == numbers.output_feature_dimension


def _is_across(op: ops.Convolution) -> bool:
    """Whether the kernel is a transpose that has its output features last, of what has them elsewhere."""
    source, order = operand_order(op.rhs)
    last = op.dimension_numbers.kernel_output_feature_dimension
    return last == op.rhs.type.rank - 1 != order[-1] and not isinstance(source.defining_op, ops.Constant)


def _as_it_lies(op: ops.Convolution, target: Target, costs: LayoutCosts) -> float:
    """Returns the cost with positions in the lanes."""
    terms, features, _ = _extents(op)
    vectors = _vectors(op, target, op.result.type.size // features)
    # In steps of several positions, narrow numbers are packed one by one.
    loads = target.vector_bytes // 4 if _is_narrow(op) and _is_strided(op) else 1
    return terms * vectors * (features / _products(op, target) + costs.windows * loads)


def _in_order(op: ops.Convolution, target: Target, costs: LayoutCosts) -> float:
    """Returns the cost with features in the lanes."""
    terms, features, inputs = _extents(op)
    positions, vectors = op.result.type.size // features, _vectors(op, target, features)
    turned = op.lhs.type.size // inputs * _vectors(op, target, inputs) + positions * vectors
    if not isinstance(op.rhs.defining_op, ops.Constant):
        turned += terms * vectors
    packed = costs.rows * _vectors(op, target, terms) if _is_narrow(op) else 0
    if _is_narrow(op) and inputs <= FEW_FEATURES:
        packed = ONE_BY_ONE * costs.windows * terms
    return terms * vectors * positions / _products(op, target) + costs.squares * turned + positions * packed


def _products(op: ops.Convolution, target: Target) -> float:
    """Returns the number of products of vectors in one unit of cost."""
    matrix = matrix_instruction(op, target)
    return target.multiply_adds * (1 if matrix is None else matrix.speed)


def _is_narrow(op: ops.Convolution) -> bool:
    """Whether rows of the image are packed for products, because they are narrower than these."""
    return op.lhs.type.dtype.itemsize < 4


def _is_strided(op: ops.Convolution) -> bool:
    """Whether the windows of neighbouring positions begin at every second element of a line of the image, or fewer."""
    window = conv_windows(op)[-1]
    return window.stride != 1 and window.size > 1


def _extents(op: ops.Convolution) -> tuple[int, int, int]:
    """Returns the numbers of terms of each sum, of features, and of input features."""
    inputs = op.rhs.type.shape[op.dimension_numbers.kernel_input_feature_dimension]
    return inputs * math.prod(window.size for window in conv_windows(op)), op.result.type.shape[-1], inputs


def _vectors(op: ops.Convolution, target: Target, elements: int) -> int:
    return -(-elements // (target.vector_bytes // max(4, op.result.type.dtype.itemsize)))
