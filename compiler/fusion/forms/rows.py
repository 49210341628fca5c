"""A parallel nest over points, with reductions over a row and loops over that row inside: softmax, layer
normalization."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivium.compiler.costs import free_values, is_reduction, takes_loop_or_branch
from trivium.compiler.fusion.demands import Demand, Opaque, plain_variables, row_indices, same_extents
from trivium.compiler.fusion.forms.form import Form, demanded, extended
from trivium.compiler.fusion.forms.row_loops import RowLoops
from trivium.compiler.lowering.index import Indices, Variable
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Operation, Value

if TYPE_CHECKING:
    from trivium.compiler.fusion.group import Group


@dataclass(frozen=True, eq=False)
class Rows(Form):
    """Reductions run over `row` for each of `points`."""

    points: tuple[Variable, ...]
    row: tuple[Variable, ...]

    def taking(self, op: Operation, demand: Demand, others_read: int, target: Target) -> Form | None:
        """Refuses a reduction that the kernel's own one depends on, if rows run across large arrays: several groups of
        threads can share the rows of a kernel that only has one loop over them."""
        if target.fusion.across and is_reduction(op) and not is_near(op, target):
            return None
        return super().taking(op, demand, others_read, target)

    def around(self, op: Operation, demand: Demand, target: Target) -> Form | None:
        """Accepts reductions over the same row, for the same points."""
        points = None if isinstance(demand, Opaque) else plain_variables(demand)
        if not is_reduction(op) or points is None or set(points) != extended(self.points):
            return None
        shape = op.inputs[0].type.shape
        return self if same_extents(self.row, [shape[d] for d in sorted(op.dimensions)]) else None

    def affords(self, op: Operation, demand: Indices, target: Target) -> bool:
        used, repeats = demanded(op, demand)
        if used <= set(self.points):
            return repeats <= 1 or not takes_loop_or_branch(op)
        return super().affords(op, demand, target)

    def misses_loops(self, used: set[Variable]) -> bool:
        return used not in (extended(self.space), extended((*self.points, *self.row)))

    def is_home(self, op: Operation, demand: Indices, target: Target) -> bool:
        points = [v for v in self.points if v.extent != 1]
        if plain_variables(demand) == points and same_extents(points, op.results[0].type.shape):
            return True
        return super().is_home(op, demand, target)

    def reads(self, op: Operation, demand: Demand) -> Iterator[tuple[Value, Demand]]:
        if not is_reduction(op) or isinstance(demand, Opaque):
            yield from super().reads(op, demand)
            return
        shape, kept = op.inputs[0].type.shape, iter(demand)
        reduced = sorted(op.dimensions)
        inner = dict(zip(reduced, row_indices(self.row, [shape[d] for d in reduced]), strict=True))
        at = tuple(inner[d] if d in inner else next(kept) for d in range(len(shape)))
        for operand in op.inputs:
            yield operand, at
        for operand in (*op.init_values, *free_values(op)):
            yield operand, ()

    def build(self, launches: Launches, group: Group) -> None:
        with launches.kernel() as ctx:
            RowLoops(ctx, group, self.points, self.row, launches.target).emit()


def is_near(op: ops.Reduce, target: Target) -> bool:
    """Whether the rows of a reduction are contiguous in its operands, or these are small."""
    shape = op.inputs[0].type.shape
    contiguous = shape[-1:] == (1,) or len(shape) - 1 in op.dimensions
    return contiguous or op.inputs[0].type.size <= target.fusion.across
