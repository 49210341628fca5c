"""Whether a comparator orders all elements: then it does not matter which pairs a sort compares. Of two floats neither
of which is less than the other, because one is NaN, that cannot be said; what StableHLO leaves open there, here every
device does as the interpreter does, which merges runs from their beginnings on."""

from __future__ import annotations

from trivium.compiler.kernel.dtypes import FLOATS
from trivium.compiler.lowering.radix import same
from trivium.compiler.lowering.scalars import dtype_of, is_pair
from trivium.ir import ops
from trivium.ir.core import Block, OpResult, Region, Value
from trivium.ir.types import is_boolean


def is_order(comparator: Region) -> bool:
    """Whether a comparator compares one function of its elements, or several, in turn, with that of the others; each
    function has values of which two are always less, equal or greater."""
    (result,) = comparator.block.terminator.operands
    return _orders(result, comparator.block)


def _orders(value: Value, inside: Block) -> bool:
    op = value.defining_op if isinstance(value, OpResult) else None
    match op:
        case ops.Compare():
            return _compares(op, inside, "LT", "GT")
        case ops.Or():
            return _in_turn(op.lhs, op.rhs, inside) or _in_turn(op.rhs, op.lhs, inside)
        case ops.Select():
            return _chooses(op, inside)
    return False


def _in_turn(first: Value, rest: Value, inside: Block) -> bool:
    """first or (equal and next): if the first keys are equal, the next ones are compared."""
    both = rest.defining_op
    if not isinstance(both, ops.And):
        return False
    pairs = (both.lhs, both.rhs), (both.rhs, both.lhs)
    return any(_ties(equal, first, inside, "EQ") and _orders(following, inside) for equal, following in pairs)


def _chooses(op: ops.Select, inside: Block) -> bool:
    """equal ? next : first, or the other way round."""
    return (_ties(op.pred, op.on_false, inside, "EQ") and _orders(op.on_true, inside)) or (
        _ties(op.pred, op.on_true, inside, "NE") and _orders(op.on_false, inside)
    )


def _ties(equal: Value, first: Value, inside: Block, direction: str) -> bool:
    """Whether `equal` says, in this direction, whether the keys that `first` compares are equal."""
    one, other = equal.defining_op, first.defining_op
    if not isinstance(one, ops.Compare) or not isinstance(other, ops.Compare):
        return False
    alike = {one.lhs, one.rhs} == {other.lhs, other.rhs}
    return alike and _compares(one, inside, direction) and _compares(other, inside, "LT", "GT")


def _compares(op: ops.Compare, inside: Block, *directions: str) -> bool:
    """Whether an op compares, in one of these directions, a function of one element with that of the other, and no
    values are without order."""
    kind = op.lhs.type.element_type
    floats = is_pair(kind) or (not is_boolean(kind) and dtype_of(kind) in FLOATS)
    total = not floats or (not is_pair(kind) and op.compare_type is ops.ComparisonType.TOTALORDER)
    known = op.comparison_direction.value in directions and not op.lhs.type.rank
    return total and known and (same(op.lhs, op.rhs, inside) or same(op.rhs, op.lhs, inside))
