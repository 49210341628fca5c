"""Rewrites of reductions."""

from __future__ import annotations

from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir.core import Value
from trivium.ir.ops import (
    Add,
    And,
    BroadcastInDim,
    Compare,
    ComparisonDirection,
    Iota,
    Maximum,
    Minimum,
    Multiply,
    Not,
    Or,
    Reduce,
    Reshape,
    Select,
)

FOLDS = PatternSet()
pattern = FOLDS.pattern

COMBINING = Add, Multiply, Maximum, Minimum, And, Or
"""The operations that combine an element with the initial value."""


@pattern(Reduce)
def reduction_of_single_elements(op):
    """A reduction along dimensions of extent 1, as that of an index's only number, combines each element with the
    initial value."""
    kind, made = op.inputs[0].type, op.body.block.terminator.operands[0].defining_op
    if len(op.inputs) != 1 or not kind.is_static or any(kind.shape[d] != 1 for d in op.dimensions):
        return None
    arguments, result = tuple(op.body.block.arguments), op.results[0].type
    if not isinstance(made, COMBINING) or made.operands != arguments or result.element_type is not kind.element_type:
        return None
    first = BroadcastInDim(op.init_values[0], broadcast_dimensions=(), result=result).result
    return type(made)(first, Reshape(op.inputs[0], result=result).result)


@pattern(Select)
def first_of_several_nans(op):
    """argmax(NaN, NaN) == the smaller index   (JAX's reducer takes its first argument, which is the earlier element
    only if elements are combined in order)"""
    fold = op.parent_op
    if not isinstance(fold, Reduce) or len(fold.inputs) != 2 or not isinstance(fold.inputs[1].defining_op, Iota):
        return None
    value, index, other, place = fold.body.arguments
    if (op.on_true, op.on_false) != (index, place) or not isinstance(keep := op.pred.defining_op, Or):
        return None
    better = keep.lhs.defining_op
    if not isinstance(better, Or) or not _compares(better.rhs, ComparisonDirection.NE, value, value):
        return None
    if not any(_compares(better.lhs, way, value, other) for way in (ComparisonDirection.GT, ComparisonDirection.LT)):
        return None
    equal = keep.rhs.defining_op
    if not isinstance(equal, And) or not _compares(equal.lhs, ComparisonDirection.EQ, value, other):
        return None
    if not _compares(equal.rhs, ComparisonDirection.LT, index, place):
        return None
    is_number = Not(Compare(other, other, comparison_direction=ComparisonDirection.NE).result)
    first = And(better.result, Or(is_number.result, equal.rhs).result)
    return Select(Or(first.result, keep.rhs).result, index, place)


def _compares(x: Value, direction: ComparisonDirection, lhs: Value, rhs: Value) -> bool:
    op = x.defining_op
    return isinstance(op, Compare) and op.comparison_direction is direction and (op.lhs, op.rhs) == (lhs, rhs)
