"""Control flow whose way is known, and ops that only carry values."""

from __future__ import annotations

from trivium.compiler.passes.patterns.matching import constant
from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir.builder import Rewriter, inline_block
from trivium.ir.core import Region, Value
from trivium.ir.ops import Case, GetTupleElement, If, Tuple, While

CONTROL = PatternSet()
pattern = CONTROL.pattern


@pattern(If)
def if_constant(op):
    """if true then a else b == a"""
    pred = constant(op.pred)
    return None if pred is None else _inlined(op, op.true_branch if pred.item() else op.false_branch)


@pattern(Case)
def case_constant(op):
    """case i of branches == branches[i]   (the last one where i is out of range)"""
    index = constant(op.index)
    if index is None:
        return None
    chosen = index.item() if 0 <= index.item() < len(op.branches) else -1
    return _inlined(op, op.branches[chosen])


@pattern(While)
def while_false(op):
    """while false do ... from x == x"""
    condition = constant(op.cond.terminator.operands[0])
    return tuple(op.operand) if condition is not None and not condition.item() else None


@pattern(GetTupleElement)
def element_of_tuple(op):
    """tuple(x, y, ...)[i] == the i-th"""
    inner = op.operand.defining_op
    return inner.val[op.index] if isinstance(inner, Tuple) else None


def _inlined(op, region: Region) -> tuple[Value, ...]:
    return tuple(inline_block(region.block, (), Rewriter(op)))
