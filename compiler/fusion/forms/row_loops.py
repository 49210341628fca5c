"""The loops of a kernel of rows. Values that depend only on the point are computed once for it; reductions that do not
depend on each other share one loop over the row; and intermediates of the row are stored between the loops if that pays
off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

from trivium.compiler.costs import is_addressing, is_reduction, worth_storing
from trivium.compiler.fusion.demands import Demand, Opaque
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Indices, Variable, indices_of
from trivium.compiler.lowering.reduction import commutes, reduce_together
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Operation, Value

if TYPE_CHECKING:
    from trivium.compiler.fusion.group import Group


class RowLoops:
    """Emits a group's kernel into `ctx`: a parallel nest over `points`, with reductions and loops over `row` inside."""

    def __init__(
        self, ctx: LoweringContext, group: Group, points: Sequence[Variable], row: Sequence[Variable], target: Target
    ) -> None:
        self._ctx, self._group, self._target = ctx, group, target
        self._points, self._row = points, row
        self._members = group.ordered()

    def emit(self) -> None:
        """Emits the nest. Reductions run level by level: those of one level do not depend on each other."""
        stored, levels = self._stored(), self._levels()
        for op in self._members:
            if is_reduction(op):
                self._ctx.reduced[op] = self._reduced_variables(op)
        with self._ctx.nest(self._points):
            for level in range(max(levels.values()) + 1):
                members = [op for op in self._members if levels[op] == level]
                self._reduce([op for op in members if is_reduction(op)])
                for op in members:
                    if not is_reduction(op):
                        self._compute(op, op in stored)
            self._store_outputs()

    def _levels(self) -> dict[Operation, int]:
        """Returns the maximum number of reductions in a chain that ends in each member, including the member itself."""
        levels: dict[Operation, int] = {}
        for op in self._members:
            before = [levels[source] for value in op.operands if (source := value.defining_op) in levels]
            levels[op] = max(before, default=0) + is_reduction(op)
        return levels

    def _reduce(self, reductions: Sequence[ops.Reduce]) -> None:
        """Emits reductions that do not depend on each other; those whose order is free share one loop."""
        demands = [(op, at) for op in reductions if is_known(at := self._group.sole_demand(op))]
        together = [(op, at) for op, at in demands if commutes(op.body)]
        if len(together) > 1:
            with self._ctx.b.computing(*(op for op, _ in together)):
                reduce_together(self._ctx, together)
        for op, at in demands:
            if len(together) < 2 or (op, at) not in together:
                self._ctx.element(op.results[0], at)

    def _compute(self, op: Operation, stored: bool) -> None:
        """Emits an op if it is stored for the row, or computed once for a point."""
        at = self._group.sole_demand(op)
        if not is_known(at):
            return
        if stored:
            self._store(op, at)
        elif self._is_of_point(at) and not is_addressing(op):
            self._ctx.element(op.results[0], at)

    def _reduced_variables(self, op: ops.Reduce) -> tuple[Variable, ...]:
        """Returns a variable for each reduced dimension: those of the row, and new ones for dimensions of extent 1."""
        shape = op.inputs[0].type.shape
        variables = iter([v for v in self._row if v.extent != 1])
        return tuple(Variable(1) if shape[d] == 1 else next(variables) for d in sorted(op.dimensions))

    def _is_of_point(self, at: Indices) -> bool:
        return not any(v in self._row for index in at for v in index.variables())

    def _store_outputs(self) -> None:
        """Stores the outputs that are not stored yet: first those of the point, then those of the row in one loop."""
        ctx = self._ctx
        rest = [(value, at) for value, at in self._group.outputs.items() if not ctx.is_written(value)]
        for value, at in rest:
            if self._is_of_point(at):
                ctx.store(value, at, ctx.element(value, at))
        of_row = [(value, at) for value, at in rest if not self._is_of_point(at)]
        if of_row:
            with ctx.parallel(self._row):
                for value, at in of_row:
                    ctx.store(value, at, ctx.element(value, at))

    # Intermediates

    def _stored(self) -> set[Operation]:
        """Returns the members whose results are stored for the row: several loops need them, and they cost more to
        compute again than to load."""
        size = math.prod(v.extent for v in self._row)
        if size > self._target.fusion.scratch_row:
            return set()
        counts = self._counts()
        stored: set[Operation] = set()
        room = self._target.fusion.scratch_bytes
        for op in self._members:
            if counts.get(op, 0) > 1 and worth_storing(op, self._target) and self._spans_row(op):
                value = op.results[0]
                needed = 0 if value in self._group.outputs else size * value.type.dtype.itemsize
                if needed <= room:
                    room -= needed
                    stored.add(op)
        return stored

    def _counts(self) -> dict[Operation, int]:
        """Returns the number of loops over the row that need each member."""
        loops = [list(op.operands) for op in self._members if is_reduction(op)]
        loops.append([value for value, at in self._group.outputs.items() if not self._is_of_point(at)])
        counts: dict[Operation, int] = {}
        for roots in loops:
            for op in self._sources(roots):
                counts[op] = counts.get(op, 0) + 1
        return counts

    def _spans_row(self, op: Operation) -> bool:
        """Whether the whole row of the op's result is demanded, with one demand only."""
        at = self._group.sole_demand(op)
        if not is_known(at) or len(op.results) != 1:
            return False
        return {v for v in self._row if v.extent != 1} <= {index.variable for index in at}

    def _sources(self, roots: Sequence[Value]) -> set[Operation]:
        """Returns the members that `roots` are computed from, up to reductions, which are computed earlier."""
        found: set[Operation] = set()
        pending = list(roots)
        while pending:
            op = pending.pop().defining_op
            if op is None or op in found or op not in self._group.members or is_reduction(op):
                continue
            found.add(op)
            pending.extend(op.operands)
        return found

    def _store(self, op: Operation, at: Indices) -> None:
        """Computes and stores an intermediate for the whole row: in its buffer if it has one, else in scratch."""
        ctx, value = self._ctx, op.results[0]
        if value in self._group.outputs:
            with ctx.parallel(self._row):
                ctx.store(value, at, ctx.element(value, at))
            ctx.redirect(value, at, *ctx.written_place(value))
            return
        row = [v for v in self._row if v.extent != 1]
        buffer = ctx.scratch(value.type.element_type, [v.extent for v in row])
        with ctx.parallel(row):
            ctx.write(buffer, indices_of(row), ctx.element(value, at))
        ctx.redirect(value, at, buffer, indices_of(row))


def is_known(demand: Demand | None) -> TypeGuard[Indices]:
    """Whether a demand has indices that are known when the kernel is compiled."""
    return demand is not None and not isinstance(demand, Opaque)
