"""One parallel nest over the elements of the outputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trivium.compiler.costs import FAR, is_reduction, takes_loop_or_branch
from trivium.compiler.fusion.demands import Demand, Opaque, covers, plain_variables, same_extents
from trivium.compiler.fusion.forms.attention import attention_around
from trivium.compiler.fusion.forms.chained import chained_around
from trivium.compiler.fusion.forms.contraction import Contraction, divided_loops_of_sums, loops_of_sums
from trivium.compiler.fusion.forms.form import Form, demanded
from trivium.compiler.fusion.forms.rows import Rows, is_near
from trivium.compiler.fusion.forms.running import Running
from trivium.compiler.fusion.turning import turned
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Indices, Variable, fresh
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.lowering.windows import takes_tail
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Operation, Value

if TYPE_CHECKING:
    from trivium.compiler.fusion.group import Group


class Elementwise(Form):
    """Becomes rows or a contraction when it accepts a reduction or contraction that is demanded once."""

    @property
    def is_flat(self) -> bool:
        return True

    def around(self, op: Operation, demand: Demand, target: Target) -> Form | None:
        if is_reduction(op):
            variables = None if isinstance(demand, Opaque) else plain_variables(demand)
            return None if variables is None else self._rows(op, variables, target)
        if takes_tail(op, target):
            return Running(self.space, op) if covers(demand, self.space, op.results[0].type.shape) else None
        apart = turned(op, target)
        loops = loops_of_sums(op, demand, self.space, apart.image)
        if loops is not None:
            return _attention(op, loops, target) or Contraction(loops, op, apart)
        divided = divided_loops_of_sums(op, demand, self.space)
        if divided is None or _attention(op, tuple(fresh(op.results[0].type.shape)), target) is not None:
            return None
        return Contraction(tuple(itertools.chain(*divided)), op, apart, divided=divided)

    def _rows(self, op: ops.Reduce, points: Sequence[Variable], target: Target) -> Rows | None:
        shape = op.inputs[0].type.shape
        if 0 in shape:
            return None
        reduced = [shape[d] for d in sorted(op.dimensions)]
        rest = [v for v in self.space if v.extent != 1 and v not in points]
        if not rest:
            return Rows(self.space, self.space, tuple(fresh(reduced)))
        if not points and math.prod(reduced) > target.fusion.serial_row:
            return None
        if not reduces_over(op, rest, target):
            return None
        return Rows(self.space, tuple(v for v in self.space if v in points), tuple(rest))

    def affords(self, op: Operation, demand: Indices, target: Target) -> bool:
        used, _ = demanded(op, demand)
        if self.misses_loops(used) and not takes_loop_or_branch(op) and self._follows_reduction(op, demand, target):
            return True
        return super().affords(op, demand, target)

    def _follows_reduction(self, op: Operation, demand: Indices, target: Target) -> bool:
        """Whether the op is computed from a reduction over the loops that its demand does not depend on. These loops
        then become a row, for which the op is computed once."""
        points = plain_variables(demand)
        if points is None:
            return False
        rest = [v for v in self.space if v not in points]
        pending, seen = [op], 0
        while pending and seen < FAR:
            seen += 1
            for operand in pending.pop().operands:
                source = operand.defining_op
                if is_reduction(source) and reduces_over(source, rest, target):
                    return True
                if source is not None and operand.type.size == op.results[0].type.size:
                    pending.append(source)
        return False

    def is_home(self, op: Operation, demand: Indices, target: Target) -> bool:
        if is_reduction(op):  # which will itself determine the points
            return same_extents(plain_variables(demand) or (), op.results[0].type.shape)
        if self._follows_reduction(op, demand, target):
            return same_extents(plain_variables(demand) or (), op.results[0].type.shape)
        return super().is_home(op, demand, target)

    def build(self, launches: Launches, group: Group) -> None:
        """Emits one kernel; and others for values of points, if the reduction that they follow has not joined."""
        outputs: dict[tuple[Variable, ...], list[tuple[Value, Indices]]] = {}
        for value, indices in group.outputs.items():
            outputs.setdefault(self.loops_of(indices), []).append((value, indices))
        for number, (nest, stored) in enumerate(outputs.items()):
            with launches.kernel(f"_points{number}" if number else "") as ctx, ctx.nest(nest):
                if group.is_deep and group.is_straight:
                    _compute_in_order(ctx, group)
                for value, indices in stored:
                    ctx.store(value, indices, ctx.element(value, indices))


def _compute_in_order(ctx: LoweringContext, group: Group) -> None:
    """Computes all members: without recursion, chains of them may be long."""
    for op in group.ordered():
        for demand in group.demands_for(op):
            if not isinstance(op, ops.Constant) and not isinstance(demand, Opaque):
                ctx.element(op.results[0], demand)


def _attention(op: Operation, space: tuple[Variable, ...], target: Target) -> Form | None:
    """Returns the form of a group whose product is the last one of attention, or of its gradients."""
    return attention_around(op, space, target) or chained_around(op, space, target)


def reduces_over(op: ops.Reduce, row: Sequence[Variable], target: Target) -> bool:
    """Whether a reduction can run over a row of these variables, which are contiguous in its operands, or not too
    many."""
    shape = op.inputs[0].type.shape
    return is_near(op, target) and same_extents(row, [shape[d] for d in sorted(op.dimensions)])
