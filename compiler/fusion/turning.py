"""How a convolution is computed that has its features last, while its image or its result has them first in memory. Its
transposes may be part of its kernel, which then has neighbouring positions in its lanes and packs every window; or they
become kernels of their own, which turn squares of elements in registers."""

from __future__ import annotations

import math

from trivium.compiler.lowering.contraction import conv_windows
from trivium.compiler.target import LayoutCosts, Target
from trivium.ir import ops
from trivium.ir.core import Operation
from trivium.ir.types import F32, F64


def is_turned(op: Operation, target: Target) -> bool:
    """Whether the transposes before and after `op` are kernels of their own, because that costs less."""
    if target.layouts is None or not isinstance(op, ops.Convolution) or not _has_features_last(op):
        return False
    kind = op.result.type.element_type
    if kind not in (F32, F64) or any(operand.type.element_type is not kind for operand in op.operands):
        return False
    return _in_order(op, target, target.layouts) < _as_it_lies(op, target, target.layouts)


def _has_features_last(op: ops.Convolution) -> bool:
    numbers, last = op.dimension_numbers, op.result.type.rank - 1
    plain = op.feature_group_count == 1 == op.batch_group_count and set(op.lhs_dilation or ()) <= {1}
    return plain and last > 1 and numbers.input_feature_dimension == last == numbers.output_feature_dimension


def _as_it_lies(op: ops.Convolution, target: Target, costs: LayoutCosts) -> float:
    """Returns the cost with positions in the lanes."""
    terms, features, _ = _extents(op)
    vectors = _vectors(op, target, op.result.type.size // features)
    return terms * vectors * (features / target.multiply_adds + costs.windows)


def _in_order(op: ops.Convolution, target: Target, costs: LayoutCosts) -> float:
    """Returns the cost with features in the lanes."""
    terms, features, inputs = _extents(op)
    positions, vectors = op.result.type.size // features, _vectors(op, target, features)
    turned = op.lhs.type.size // inputs * _vectors(op, target, inputs) + positions * vectors
    packed = 0 if isinstance(op.rhs.defining_op, ops.Constant) else terms * vectors
    return terms * vectors * positions / target.multiply_adds + costs.squares * turned + costs.elements * packed


def _extents(op: ops.Convolution) -> tuple[int, int, int]:
    """Returns the numbers of terms of each sum, of features, and of input features."""
    inputs = op.rhs.type.shape[op.dimension_numbers.kernel_input_feature_dimension]
    return inputs * math.prod(window.size for window in conv_windows(op)), op.result.type.shape[-1], inputs


def _vectors(op: ops.Convolution, target: Target, elements: int) -> int:
    return -(-elements // (target.vector_bytes // op.result.type.dtype.itemsize))
