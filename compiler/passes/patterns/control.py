"""Control flow with a known outcome, and ops that only carry values."""

from __future__ import annotations

from trivium.compiler.passes.patterns.matching import constant
from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir.builder import Rewriter, inline_block
from trivium.ir.core import Region
from trivium.ir.ops import Case, GetTupleElement, If, Tuple, While

CONTROL = PatternSet()
pattern = CONTROL.pattern


def chosen_branch(op: If | Case) -> Region | None:
    """Returns the branch that runs, if it is known, else None. For a case out of range it is the last branch."""
    index = constant(op.operands[0])
    if index is None:
        return None
    if isinstance(op, If):
        return op.true_branch if index.item() else op.false_branch
    return op.branches[index.item() if 0 <= index.item() < len(op.branches) else -1]


@pattern(If, Case)
def branch_of_constant(op):
    """if true then a else b == a;  case i of branches == branches[i]"""
    branch = chosen_branch(op)
    return None if branch is None else tuple(inline_block(branch.block, (), Rewriter(op)))


@pattern(While)
def while_false(op):
    """while false do ... from x == x"""
    condition = constant(op.cond.terminator.operands[0])
    return tuple(op.operand) if condition is not None and not condition.item() else None


@pattern(GetTupleElement)
def element_of_tuple(op):
    """tuple(x, y, ...)[i] == the i-th element"""
    inner = op.operand.defining_op
    return inner.val[op.index] if isinstance(inner, Tuple) else None
