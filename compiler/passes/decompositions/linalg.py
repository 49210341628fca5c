"""Factorizations of matrices of narrow floats: computed in a type that LAPACK supports, and rounded once."""

from __future__ import annotations

from trivium.compiler.passes.decompositions.table import converted, is_static, pattern, result
from trivium.ir.ops import Cholesky, TriangularSolve
from trivium.ir.ops.quantization import with_types
from trivium.ir.types import F32, FloatType


@pattern(Cholesky, TriangularSolve)
def in_32_bits(op):
    """Computes the op on operands of 32 bits."""
    kind = op.result.type.element_type
    if not isinstance(kind, FloatType) or kind.width >= 32 or not is_static(op):
        return None
    wide = op.result.type.with_element(F32)
    operands = [converted(value, value.type.with_element(F32)) for value in op.operands]
    return converted(result(with_types(op, operands, [wide])), op.result.type)
