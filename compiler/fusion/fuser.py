"""Divides a block into groups of ops that share a kernel. The block is walked from its end: an op joins the groups that
demand its elements if that computes nothing twice; otherwise it gets a buffer, which is written by a group that
computes it anyway, or by its own group.

Demands are symbolic: the indices of each value over the group's loop variables. So "demanded once" is a fact, not a
guess: a softmax recognizes that its sum and its quotient demand the same exponentials, and a reduction that it can run
inside the loop over the rows of its consumer.

Kernels run in the order of their last ops. Every kernel runs before all readers of its results: a group may have a
second result only if that stays true, which prevents cycles without a search.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from trivium.compiler.costs import (
    as_cheap_as_loading,
    free_values,
    is_addressing,
    is_kernel_op,
    is_marked_contraction,
    is_reduction,
    takes_loop_or_branch,
    worth_storing,
)
from trivium.compiler.fusion.across import reads_across
from trivium.compiler.fusion.demands import Demand, Opaque, computes_once
from trivium.compiler.fusion.forms import Rows, Stacked, arranges_loops, form_of
from trivium.compiler.fusion.group import MOST_DEEP, Group
from trivium.compiler.lowering import kernel_rule
from trivium.compiler.lowering.index import indices_of
from trivium.compiler.lowering.sections import section_of
from trivium.compiler.lowering.windows import takes_tail
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Block, Operation, Value

MOST_MEMBERS, MOST_OF_SIBLINGS = 320, 80
"""The number of ops in one kernel, and up to which another reduction joins it."""
MOST_COMPUTED = 8
"""The number of pieces that a kernel chooses from and computes itself, by more than a few instructions."""
MOST_CHOSEN = 8
"""The number of pieces that a kernel chooses from for each of many elements, rather than reading what was put together:
each choice is between two halves, and lanes with different ones wait for each other."""
SMALL = 1 << 12
"""The number of elements up to which values that only the caller reads are computed last, and pieces are chosen."""

VIEWS = (ops.Reshape, ops.OptimizationBarrier)


@dataclass
class Fusion:
    """The division of a block: groups and other ops in the order in which they run, and the values that are views of
    other values in a different shape."""

    items: list[Group | Operation]
    views: dict[Value, Value]


def fuse(block: Block, target: Target) -> Fusion:
    """Divides the ops of a block into groups, and ops that become steps of their own."""
    return _Fuser(block, target).run()


class _Fuser:
    def __init__(self, block: Block, target: Target):
        self._block = block
        self._target = target
        self._readers: dict[Value, dict[Group, None]] = {}
        """The groups that demand elements of each value."""
        self._needed: dict[Value, int] = {}
        """The values that must have buffers, with the position of their first reader."""
        self._items: list[tuple[int, Group | Operation]] = []
        self._views: dict[Value, Value] = {}
        self._reductions: dict[object, list[Group]] = {}

    def run(self) -> Fusion:
        operations = _ordered(self._block, self._target) if self._target.launch_kind else list(self._block)
        for position in reversed(range(len(operations))):
            self._visit(operations[position], position)
        self._items.sort(key=lambda item: item[0])
        return Fusion([item for _, item in self._items], self._views)

    def _visit(self, op: Operation, position: int) -> None:
        if op is self._block.last:
            self._need(op.operands, position)
        elif self._target.sections and (section := section_of(op)):
            if self._is_read(op):
                self._need((section.whole, section.place), position)
                self._items.append((position, op))
        elif is_kernel_op(op):
            if self._is_read(op) and not isinstance(op, ops.Constant):
                self._assign(op, position)
        elif self._is_read(op) or not op.is_pure:
            self._need((*op.operands, *free_values(op)), position)
            self._items.append((position, op))

    def _is_read(self, op: Operation) -> bool:
        return any(result in self._needed or self._readers.get(result) for result in op.results)

    def _need(self, values: Iterable[Value], position: int) -> None:
        """Records that `values` must have buffers, for a reader at `position`."""
        for value in values:
            self._needed[value] = min(position, self._needed.get(value, position))

    # Where an op goes

    def _assign(self, op: Operation, position: int) -> None:
        readers = list(dict.fromkeys(group for result in op.results for group in self._readers.get(result, ())))
        needed = min((self._needed[r] for r in op.results if r in self._needed), default=None)
        if isinstance(op, ops.OptimizationBarrier):
            self._view(op, readers, needed)
        elif needed is None and self._joins(op, readers):
            for group in readers:
                self._join(group, op)
        elif kernel_rule(op) is not None:
            self._begin(op, position)
        elif isinstance(op, VIEWS):
            self._view(op, readers, needed)
        else:
            self._materialize(op, position, readers, needed)

    def _joins(self, op: Operation, readers: list[Group]) -> bool:
        """Whether the op becomes a member of all groups that read it."""
        if kernel_rule(op) is not None and not takes_tail(op, self._target):
            return False
        return self._may_repeat(op, readers) and all(self._accepts(group, op) for group in readers)

    def _may_repeat(self, op: Operation, readers: list[Group]) -> bool:
        if len(readers) == 1 or is_addressing(op) or as_cheap_as_loading(op, self._target):
            return True
        return all(group.form.includes(op) for group in readers)

    def _view(self, op: Operation, readers: list[Group], needed: int | None) -> None:
        """Makes the results views of the operands' buffers."""
        first = min(_positions(readers, needed))
        for operand, result in zip(op.operands, op.results, strict=True):
            self._views[result] = operand
            self._need([operand], first)

    def _materialize(self, op: Operation, position: int, readers: list[Group], needed: int | None) -> None:
        """Assigns buffers to the op's results, written by a kernel that computes them anyway if there is one."""
        for group in sorted(readers, key=lambda group: group.position):
            others = [reader for reader in readers if reader is not group]
            if all(group.position < reader for reader in _positions(others, needed)) and self._is_home(group, op):
                self._join(group, op, output=True)
                return
        if is_reduction(op) and self._joins_sibling(op, min(_positions(readers, needed))):
            return
        group = self._begin(op, position)
        if is_reduction(op):
            self._reductions.setdefault(_reduced(op), []).append(group)

    def _begin(self, op: Operation, position: int) -> Group:
        """Begins a new group with the op, which other ops may join."""
        group = Group(position, form_of(op))
        self._items.append((position, group))
        for result in op.results:
            self._demand(group, result, group.form.first_demand(), 0)
        self._join(group, op, output=True)
        return group

    def _is_home(self, group: Group, op: Operation) -> bool:
        """Whether the group computes every element of the op's results, once."""
        demand = group.sole_demand(op)
        if demand is None or isinstance(demand, Opaque) or not self._accepts(group, op):
            return False
        if group.is_deep and group.form.loops_of(demand) != group.form.space:
            return False
        return group.form.is_home(op, demand, self._target)

    def _joins_sibling(self, op: ops.Reduce, before: int) -> bool:
        """Lets a reduction join another one over the same elements if possible, and returns whether it did. They share
        the loop over the points, not the loop over the row."""
        for group in self._reductions.get(_reduced(op), ()):
            form = group.form
            fits = group.position < before and len(group.members) < MOST_OF_SIBLINGS
            if fits and isinstance(form, Rows) and form.points == form.space and _shares_input(group, op):
                for result in op.results:
                    self._demand(group, result, indices_of(form.points), 0)
                self._join(group, op, output=True)
                return True
        return False

    # What a group accepts

    def _accepts(self, group: Group, op: Operation) -> bool:
        if group.form.includes(op):
            return True
        if len(group.members) >= MOST_MEMBERS or not self._is_within_reach(group, op):
            return False
        if _chooses_often(op) and not group.form.writes_parts:
            return False
        if is_addressing(op):
            return self._target.layouts is None or not reads_across(group, op)
        form = group.form
        if self._repeats_code(group, op) or (isinstance(op, ops.Concatenate) and Stacked.of(op) is not None):
            return False
        lone = is_marked_contraction(op) or takes_tail(op, self._target)
        if lone and any(form.loops_of(at) != form.space for at in group.outputs.values()):
            return False
        demands = group.demands_for(op)
        if len(demands) > 1 and not computes_once(op, demands):
            return False
        forms = [form.taking(op, demand, group.reads(), self._target) for demand in demands]
        return forms[0] is not None if len(forms) == 1 else all(taken is form for taken in forms)

    def _repeats_code(self, group: Group, op: Operation) -> bool:
        """Whether an op of much code is computed for a piece of a concatenation that chooses between many pieces: the
        kernel would have such code for each."""
        if group.form.writes_parts or not (worth_storing(op, self._target) or takes_loop_or_branch(op)):
            return False
        if not any(isinstance(demand, Opaque) for demand in group.demands_for(op)):
            return False
        return any(
            isinstance(member, ops.Concatenate) and len(member.inputs) > MOST_COMPUTED for member in group.members
        )

    def _is_within_reach(self, group: Group, op: Operation) -> bool:
        """Whether recursion reaches all members after `op` joins, or the group computes them in order."""
        if not group.is_deep and max(group.depth.get(result, 0) for result in op.results) < MOST_DEEP:
            return True
        return group.is_straight and not arranges_loops(op, self._target) and not takes_loop_or_branch(op)

    def _join(self, group: Group, op: Operation, output: bool = False) -> None:
        """Makes `op` a member: each demand for its results becomes demands for its operands."""
        group.members[op] = None
        demands = dict.fromkeys(demand for result in op.results for demand in group.demands.get(result, ()))
        if output:
            for result in op.results:
                group.outputs[result] = next(iter(demands))  # type: ignore[assignment]
        if arranges_loops(op, self._target):
            (demand,) = demands
            group.form = group.form.around(op, demand, self._target) or group.form
        self._need(group.form.buffers(op), group.position)
        depth = 1 + max(group.depth.get(result, 0) for result in op.results)
        for demand in demands:
            for operand, at in group.form.reads(op, demand):
                self._demand(group, operand, at, depth)

    def _demand(self, group: Group, value: Value, demand: Demand, depth: int) -> None:
        group.demands.setdefault(value, {})[demand] = None
        group.depth[value] = max(depth, group.depth.get(value, 0))
        group.deepest = max(depth, group.deepest)
        self._readers.setdefault(value, {})[group] = None


def _ordered(block: Block, target: Target) -> list[Operation]:
    """Returns the ops with those last that compute small results from what is there anyway, such as the new statistics
    of a batch norm, or the logarithms of a softmax's denominators: then what they read can be part of a kernel that
    ends later than they began."""
    *before, end = block
    late: dict[Operation, None] = {}
    for op in reversed(before):
        plain = is_kernel_op(op) and op.is_pure and kernel_rule(op) is None and not arranges_loops(op, target)
        small = plain and (all(r.type.size <= SMALL for r in op.results) or _follows_logarithm(op))
        if small and all(_is_read_late(r, end, late) for r in op.results):
            late[op] = None
    return [*(op for op in before if op not in late), *reversed(late), end]


def _chooses_often(op: Operation) -> bool:
    """Whether an op is a concatenation of many pieces with many elements."""
    return isinstance(op, ops.Concatenate) and len(op.inputs) > MOST_CHOSEN and op.result.type.size > SMALL


def _follows_logarithm(op: Operation | None, most: int = 3) -> bool:
    """Whether an op is a logarithm of a reduction's results, or one of the few ops after it."""
    if op is None or most == 0:
        return False
    if isinstance(op, ops.Log):
        return is_reduction(_reshaped(op.operand).defining_op)
    same = [x for x in op.operands if x.type.size == op.results[0].type.size]
    return any(_follows_logarithm(x.defining_op, most - 1) for x in same)


def _is_read_late(value: Value, end: Operation, late: Container[Operation]) -> bool:
    return all(user is end or user in late for user, _ in value.uses)


def _positions(readers: Sequence[Group], needed: int | None) -> list[int]:
    """Returns the positions in the block of the readers of an op's results."""
    return [group.position for group in readers] + ([needed] if needed is not None else [])


def _reduced(op: ops.Reduce) -> object:
    """Returns a key that is equal for reductions that can share a loop over their points."""
    return op.inputs[0].type.shape, tuple(sorted(op.dimensions))


def _shares_input(group: Group, op: ops.Reduce) -> bool:
    """Whether the group already reads one of the reduction's inputs, or what one is computed from: only then does a
    common kernel save anything."""
    read = set(map(_reshaped, group.demands))
    made = [value for operand in op.inputs for value in (operand, *_operands(_reshaped(operand)))]
    return not read.isdisjoint(map(_reshaped, made))


def _reshaped(value: Value) -> Value:
    """Returns what a value is a reshape of, or the value."""
    while isinstance(made := value.defining_op, ops.Reshape):
        value = made.operand
    return value


def _operands(value: Value) -> Sequence[Value]:
    """Returns what a value is computed from."""
    return value.defining_op.operands if value.defining_op is not None else ()
