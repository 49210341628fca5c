"""Contractions absorb transposes of their operands into their dimension numbers."""

from __future__ import annotations

from dataclasses import replace

from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir.ops import DotDimensionNumbers, DotGeneral, Transpose

CONTRACTION = PatternSet()
pattern = CONTRACTION.pattern


@pattern(DotGeneral)
def dot_of_transposed_lhs(op):
    """dot(transpose(x), y) == dot(x, y) with x's own dimensions   (if the order of the result does not change)"""
    return _without_transpose(op, "lhs")


@pattern(DotGeneral)
def dot_of_transposed_rhs(op):
    """dot(x, transpose(y)) == dot(x, y) with y's own dimensions   (if the order of the result does not change)"""
    return _without_transpose(op, "rhs")


def _without_transpose(op: DotGeneral, side: str) -> DotGeneral | None:
    operands = {"lhs": op.lhs, "rhs": op.rhs}
    inner = operands[side].defining_op
    if not isinstance(inner, Transpose):
        return None
    numbers: DotDimensionNumbers = op.dot_dimension_numbers
    batching = getattr(numbers, f"{side}_batching_dimensions")
    contracting = getattr(numbers, f"{side}_contracting_dimensions")
    # Batching and contracting dimensions are named, so their order is free; the others appear in the result in order.
    free = [inner.permutation[d] for d in range(inner.result.type.rank) if d not in (*batching, *contracting)]
    if free != sorted(free):
        return None
    renamed = replace(
        numbers,
        **{
            f"{side}_batching_dimensions": tuple(inner.permutation[d] for d in batching),
            f"{side}_contracting_dimensions": tuple(inner.permutation[d] for d in contracting),
        },
    )
    operands[side] = inner.operand
    options = {name: value for name, value in op.attributes.items() if name != "dot_dimension_numbers"}
    return DotGeneral(
        operands["lhs"],
        operands["rhs"],
        dot_dimension_numbers=renamed,
        result=op.result.type,
        extra=op.extra,
        **options,
    )
