"""Which ops form a kernel. Seen from the end of a block: an op joins the kernels that ask for its elements where that
costs nothing twice; else it gets a buffer, from the kernel that computes it anyway or from one of its own.

What a kernel asks for is known symbolically, as the indices of each value over the kernel's loop variables. So "asked
for once" is a fact, not a guess: a softmax finds that its sum and its quotient ask for the same exponentials, and a
reduction that it can run inside the loop over the rows of its consumer.

Kernels run in the order of their last ops. Every kernel stands before all that read its results: a group may give out
a second result only where that stays true, which keeps cycles out without a search.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trivium.compiler.costs import (
    free_values,
    is_expensive,
    is_fold,
    is_free,
    is_heavy,
    is_kernel_op,
    is_light,
    is_marked,
)
from trivium.compiler.lowering import is_elementwise, kernel_rule, updated_in_place
from trivium.compiler.lowering.contraction import operand_order
from trivium.compiler.lowering.index import Indices, Variable, fresh, places
from trivium.compiler.requests import (
    Opaque,
    Request,
    covers,
    plain_variables,
    reads,
    reads_once,
    row_indices,
    same_extents,
)
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Block, Operation, Value
from trivium.ir.location import Location

MOST_MEMBERS = 160
MOST_DEEP = 40
"""Ops that depend on each other in one kernel: elements are computed by recursion."""

VIEWS = (ops.Reshape, ops.OptimizationBarrier)
CONTRACTIONS = (ops.DotGeneral, ops.Convolution)


@dataclass(eq=False)
class Group:
    """The ops of one kernel. `space` are the loop variables of its outputs; where reductions run inside, they run over
    `row` for each of `points`. `requests` tells at which indices each value is asked for."""

    position: int
    space: tuple[Variable, ...] = ()
    whole: Operation | None = None
    contraction: Operation | None = None
    points: tuple[Variable, ...] | None = None
    row: tuple[Variable, ...] = ()
    members: dict[Operation, None] = field(default_factory=dict)
    outputs: dict[Value, Indices] = field(default_factory=dict)
    requests: dict[Value, dict[Request, None]] = field(default_factory=dict)
    depth: dict[Value, int] = field(default_factory=dict)

    def ordered(self) -> list[Operation]:
        """The members in program order: they joined from the end."""
        return list(reversed(self.members))

    def origins(self) -> tuple[Location, ...]:
        """Where the members come from. Constants are part of what uses them."""
        return tuple(dict.fromkeys(op.location for op in self.ordered() if not isinstance(op, ops.Constant)))

    def reads(self) -> int:
        """How many values the group asks for that it does not compute, as far as is known."""
        return sum(value.defining_op not in self.members for value in self.requests)

    def sole_request(self, op: Operation) -> Request | None:
        """The one way in which the group asks for the op's results, if there is only one."""
        found = {request for result in op.results for request in self.requests.get(result, ())}
        return found.pop() if len(found) == 1 else None


Item = Group | Operation


@dataclass
class Plan:
    """What a block becomes: kernels and other ops in the order in which they run, and the values that are others in
    another shape."""

    items: list[Item]
    views: dict[Value, Value]


def fuse(block: Block, target: Target) -> Plan:
    """Divides the ops of a block into kernels and ops that become steps of their own."""
    return _Fuser(block, target).run()


class _Fuser:
    def __init__(self, block: Block, target: Target):
        self._block = block
        self._target = target
        self._limits = target.fusion
        self._demand: dict[Value, dict[Group, None]] = {}
        self._needed: dict[Value, int] = {}
        self._items: list[tuple[int, Item]] = []
        self._views: dict[Value, Value] = {}
        self._reductions: dict[object, list[Group]] = {}

    def run(self) -> Plan:
        operations = list(self._block)
        for position in reversed(range(len(operations))):
            self._visit(operations[position], position)
        self._items.sort(key=lambda item: item[0])
        return Plan([item for _, item in self._items], self._views)

    def _visit(self, op: Operation, position: int) -> None:
        kind = type(op)
        if op is self._block.last:
            self._need(op.operands, position)
        elif is_kernel_op(op):
            if self._is_asked(op) and kind is not ops.Constant:
                self._place(op, position)
        elif self._is_asked(op) or not op.is_pure:
            self._need((*op.operands, *free_values(op)), position)
            self._items.append((position, op))

    def _is_asked(self, op: Operation) -> bool:
        return any(result in self._needed or self._demand.get(result) for result in op.results)

    def _need(self, values: Sequence[Value], position: int) -> None:
        """States that `values` must have buffers, for a reader at `position`."""
        for value in values:
            self._needed[value] = min(position, self._needed.get(value, position))

    # Where an op goes

    def _place(self, op: Operation, position: int) -> None:
        groups = list(dict.fromkeys(group for result in op.results for group in self._demand.get(result, ())))
        needed = min((self._needed[r] for r in op.results if r in self._needed), default=None)
        if kernel_rule(op) is not None:
            self._alone(op, position)
        elif isinstance(op, ops.OptimizationBarrier):
            self._view(op, groups, needed)
        elif needed is None and self._may_repeat(op, groups) and all(self._accepts(group, op) for group in groups):
            for group in groups:
                self._join(group, op)
        elif isinstance(op, VIEWS):
            self._view(op, groups, needed)
        else:
            self._materialize(op, position, groups, needed)

    def _may_repeat(self, op: Operation, groups: list[Group]) -> bool:
        return len(groups) == 1 or is_free(op) or is_light(op, self._target)

    def _view(self, op: Operation, groups: list[Group], needed: int | None) -> None:
        """The results are the operands' buffers."""
        first = min([group.position for group in groups] + ([needed] if needed is not None else []))
        for operand, result in zip(op.operands, op.results, strict=True):
            self._views[result] = operand
            self._need([operand], first)

    def _alone(self, op: Operation, position: int) -> None:
        """A kernel by its own rule; what it reads may be fused into it."""
        group = Group(position, whole=op)
        group.members[op] = None
        group.outputs = dict.fromkeys(op.results, ())
        self._items.append((position, group))
        in_place = [operand for operand, _ in updated_in_place(op)]
        self._need(in_place, position)
        for operand in dict.fromkeys((*op.operands, *free_values(op))):
            if operand not in in_place:
                self._ask(group, operand, () if not operand.type.rank else Opaque(reads_once(op, operand)), 0)

    def _materialize(self, op: Operation, position: int, groups: list[Group], needed: int | None) -> None:
        """Gives the op's results buffers, written by a kernel that computes them anyway where there is one."""
        for group in sorted(groups, key=lambda group: group.position):
            readers = [other.position for other in groups if other is not group]
            readers += [needed] if needed is not None else []
            if all(group.position < reader for reader in readers) and self._is_home(group, op):
                self._join(group, op, output=True)
                return
        if is_fold(op) and self._joins_sibling(op, groups, needed):
            return
        group = Group(position, fresh_space(op))
        self._items.append((position, group))
        for result in op.results:
            self._ask(group, result, places(group.space), 0)
        if is_fold(op):
            shape, dimensions = op.inputs[0].type.shape, tuple(sorted(op.dimensions))
            self._reductions.setdefault((shape, dimensions), []).append(group)
        self._join(group, op, output=True)

    def _is_home(self, group: Group, op: Operation) -> bool:
        """Whether the group computes every element of the op's results, once."""
        request = group.sole_request(op)
        if group.whole is not None:  # its rule writes its own results, and no others
            return False
        if request is None or isinstance(request, Opaque) or not self._accepts(group, op):
            return False
        shape = op.results[0].type.shape
        if not is_fold(op):
            return covers(request, group.space, shape)
        if group.points is None:  # the reduction itself will say what the points are
            return same_extents(plain_variables(request) or (), shape)
        return covers(request, group.points, shape)

    def _joins_sibling(self, op: ops.Reduce, groups: list[Group], needed: int | None) -> bool:
        """A reduction over the same elements shares the loop over the points, not the loop over the row."""
        readers = [group.position for group in groups] + ([needed] if needed is not None else [])
        shape, dimensions = op.inputs[0].type.shape, tuple(sorted(op.dimensions))
        for group in self._reductions.get((shape, dimensions), ()):
            request = places(group.points or ())
            fits = group.position < min(readers) and len(group.members) < MOST_MEMBERS // 2
            if fits and group.points is not None and group.points == group.space and self._shares(group, op):
                for result in op.results:
                    self._ask(group, result, request, 0)
                self._join(group, op, output=True)
                return True
        return False

    def _shares(self, group: Group, op: ops.Reduce) -> bool:
        """Whether the group reads one of the reduction's inputs already: only then a common kernel saves anything."""
        return any(group.requests.get(operand) or _leads_to(operand, group) for operand in op.inputs)

    # What a group takes in

    def _accepts(self, group: Group, op: Operation) -> bool:
        if len(group.members) >= MOST_MEMBERS or max(group.depth.get(r, 0) for r in op.results) >= MOST_DEEP:
            return False
        if is_free(op):
            return True
        request = group.sole_request(op)
        if request is None:
            return False
        if isinstance(op, CONTRACTIONS) and is_marked(op):
            return self._takes_contraction(group, op, request)
        if is_fold(op):
            return self._takes_reduction(group, op, request)
        if isinstance(request, Opaque):
            return request.once and is_elementwise(op)
        if len(op.operands) > 1 and group.reads() > self._limits.reads:
            return False
        return self._is_affordable(group, op, request)

    def _is_affordable(self, group: Group, op: Operation, request: Indices) -> bool:
        """Whether few elements are computed more than once."""
        asked = {v for index in request for v in index.variables()}
        size = op.results[0].type.size
        repeats = math.prod(v.extent for v in asked) / max(1, size)
        if group.points is not None and asked <= set(group.points):
            return repeats <= 1 or not is_heavy(op)
        if asked != set(v for v in group.space if v.extent != 1) and asked != _reach(group):
            # Asked for at fewer indices than the loops have: computed again in each round of the others, unless a
            # reduction behind it will make them a row.
            cheap = not is_expensive(op, self._target) and not is_heavy(op)
            return cheap or (not is_heavy(op) and _follows_reduction(group, op, request))
        return repeats <= (1 if is_heavy(op) else 2)

    def _takes_contraction(self, group: Group, op: Operation, request: Request) -> bool:
        """As the contraction whose epilogue the group is: it asks for every sum once."""
        if group.whole is not None or group.contraction is not None or group.points is not None:
            return False
        variables = None if isinstance(request, Opaque) else plain_variables(request)
        shape = op.results[0].type.shape
        if variables is None or [v.extent for v in variables] != [extent for extent in shape if extent != 1]:
            return False
        return set(variables) == {v for v in group.space if v.extent != 1}

    def _takes_reduction(self, group: Group, op: ops.Reduce, request: Request) -> bool:
        return self._row_of(group, op, request) is not None

    def _row_of(
        self, group: Group, op: ops.Reduce, request: Request
    ) -> tuple[tuple[Variable, ...], tuple[Variable, ...]] | None:
        """The points and the row that the reduction has in the group; None where it does not fit."""
        if group.whole is not None or group.contraction is not None or isinstance(request, Opaque):
            return None
        shape = op.inputs[0].type.shape
        reduced = [shape[d] for d in sorted(op.dimensions)]
        points = plain_variables(request)
        if points is None or 0 in shape:
            return None
        if group.points is not None:
            same = set(points) == {v for v in group.points if v.extent != 1}
            return (group.points, group.row) if same and same_extents(group.row, reduced) else None
        space = [v for v in group.space if v.extent != 1]
        rest = [v for v in space if v not in points]
        if not rest:
            return tuple(group.space), tuple(fresh(reduced))
        serial = not points and math.prod(reduced) > self._limits.serial_row
        if serial or not _reduces(op, rest):
            return None
        return tuple(v for v in group.space if v in points), tuple(rest)

    # Joining

    def _join(self, group: Group, op: Operation, output: bool = False) -> None:
        """Makes `op` a member: it asks for its operands where it is asked for."""
        group.members[op] = None
        requests = dict.fromkeys(request for result in op.results for request in group.requests.get(result, ()))
        if output:
            for result in op.results:
                group.outputs[result] = next(iter(requests))  # type: ignore[assignment]
        if isinstance(op, CONTRACTIONS) and is_marked(op):
            group.contraction = op
            (request,) = requests
            # The loops in the order of the sums' dimensions: the outputs may be transposes of them.
            group.space = tuple(index.variable or Variable(1) for index in request)  # type: ignore[union-attr]
            self._need([operand_order(operand)[0] for operand in op.operands], group.position)
            return
        depth = 1 + max(group.depth.get(result, 0) for result in op.results)
        for request in requests:
            if is_fold(op) and not isinstance(request, Opaque):
                asked = self._reduction_reads(group, op, request)
            else:
                asked = reads(op, request)
            for operand, at in asked:
                self._ask(group, operand, at, depth)

    def _reduction_reads(self, group: Group, op: ops.Reduce, request: Indices) -> Iterator[tuple[Value, Request]]:
        found = self._row_of(group, op, request)
        if found is None:
            yield from reads(op, request)
            return
        group.points, group.row = found
        shape, kept = op.inputs[0].type.shape, iter(request)
        inner = dict(
            zip(sorted(op.dimensions), row_indices(group.row, [shape[d] for d in sorted(op.dimensions)]), strict=True)
        )
        at = tuple(inner[d] if d in inner else next(kept) for d in range(len(shape)))
        for operand in op.inputs:
            yield operand, at
        for operand in (*op.init_values, *free_values(op)):
            yield operand, ()

    def _ask(self, group: Group, value: Value, request: Request, depth: int) -> None:
        group.requests.setdefault(value, {})[request] = None
        group.depth[value] = max(depth, group.depth.get(value, 0))
        self._demand.setdefault(value, {})[group] = None


def fresh_space(op: Operation) -> tuple[Variable, ...]:
    return tuple(fresh(op.results[0].type.shape))


def _follows_reduction(group: Group, op: Operation, request: Indices) -> bool:
    """Whether the op is computed from a reduction over the loops that it is not asked for in."""
    points = plain_variables(request)
    if points is None or group.points is not None:
        return False
    rest = [v for v in group.space if v not in points]
    pending, seen = [op], 0
    while pending and seen < MOST_DEEP:
        seen += 1
        for operand in pending.pop().operands:
            source = operand.defining_op
            if is_fold(source) and _reduces(source, rest):
                return True
            if source is not None and operand.type.size == op.results[0].type.size:
                pending.append(source)
    return False


def _reduces(op: ops.Reduce, row: Sequence[Variable]) -> bool:
    """Whether a reduction can run over a row of these variables, which are contiguous in its operands."""
    shape = op.inputs[0].type.shape
    contiguous = shape[-1:] == (1,) or len(shape) - 1 in op.dimensions
    return contiguous and same_extents(row, [shape[d] for d in sorted(op.dimensions)])


def _reach(group: Group) -> set[Variable]:
    return {v for v in (*(group.points or ()), *group.row) if v.extent != 1}


def _leads_to(value: Value, group: Group) -> bool:
    """Whether an operand's own operands are read by the group: the value was computed from them there."""
    op = value.defining_op
    return op is not None and any(operand in group.requests for operand in op.operands)
