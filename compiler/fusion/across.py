"""Transposes before reductions and gathers of rows. As a part of such a kernel, a transpose costs nothing if its array
is read along memory. But if the rows run across it, while they run along other arrays, each element is loaded
individually, from a different cache line than its neighbour; a separate kernel transposes squares of elements in
registers."""

from __future__ import annotations

from trivium.compiler.fusion.demands import Demand, Opaque
from trivium.compiler.fusion.forms import Rows
from trivium.compiler.fusion.group import Group
from trivium.ir import ops
from trivium.ir.core import Operation, Value

LEAST = 1 << 12
"""The number of elements from which on a transpose is worth a launch: smaller arrays stay in the first-level cache."""


LONG = 8
"""The number of elements from which on what a gather takes at once is a row."""


def reads_across(group: Group, op: Operation) -> bool:
    """Whether the rows of a group would run across the operand of a transpose, and run along another array as large."""
    if not isinstance(op, ops.Transpose) or op.operand.type.size < LEAST:
        return False
    last = op.permutation.index(op.operand.type.rank - 1)
    if last < op.operand.type.rank - 1 and any(_takes_rows(member, op.result) for member in group.members):
        return True
    form = group.form
    if not isinstance(form, Rows):
        return False
    across = all(_is_fixed(form, demand, last) for demand in group.demands.get(op.result, ()))
    return across and any(
        value.type.size >= op.operand.type.size and not all(_is_fixed(form, demand, -1) for demand in demands)
        for value, demands in group.demands.items()
        if value not in op.results and not _is_moved(value, group)
    )


def _takes_rows(op: Operation, value: Value) -> bool:
    """Whether an op gathers rows of a value, or of a reshape of it."""
    if not isinstance(op, ops.Gather) or op.slice_sizes[-1] < LONG:
        return False
    source = op.operand
    while source is not value and isinstance(made := source.defining_op, ops.Reshape):
        source = made.operand
    return source is value


def _is_fixed(form: Rows, demand: Demand, dimension: int) -> bool:
    """Whether an index is the same for all elements of a row."""
    return isinstance(demand, Opaque) or not demand or not set(demand[dimension].variables()) & set(form.row)


def _is_moved(value: Value, group: Group) -> bool:
    """Whether the group computes a value, instead of reading it."""
    return value.defining_op in group.members
