"""Concatenations of arrays of one shape that are computed from the same values: one launch, whose loops run over the
elements of all of them together, so that what they have in common is computed once."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivium.compiler.fusion.demands import Demand
from trivium.compiler.fusion.forms.form import Form
from trivium.compiler.lowering import INDEXING, is_elementwise
from trivium.compiler.lowering.index import fresh, indices_of
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Operation, Value

if TYPE_CHECKING:
    from trivium.compiler.fusion.group import Group

FEWEST, MOST = 3, 64
"""The numbers of pieces from which, and up to which, they are computed together."""
MOST_OPS = 48
"""The number of ops of a piece up to which those that it has in common with others are looked for."""
GAIN = 1.5
"""How many times as many ops the pieces have, one by one."""


@dataclass(frozen=True, eq=False)
class Stacked(Form):
    """Pieces that are computed together. `common`: the ops that they are computed by."""

    op: ops.Concatenate
    common: AbstractSet[Operation]

    @classmethod
    def of(cls, op: ops.Concatenate) -> Stacked | None:
        """Returns the form of a concatenation; None if its pieces share too few ops to be worth computing together."""
        pieces = op.inputs
        if not FEWEST <= len(pieces) <= MOST or len({piece.type for piece in pieces}) > 1 or not pieces[0].type.size:
            return None
        found = [_ops_of(piece) for piece in pieces]
        common = set[Operation]().union(*found)
        pays = sum(map(len, found)) >= GAIN * len(common) > 0
        return cls(tuple(fresh(pieces[0].type.shape)), op, common) if pays else None

    def taking(self, op: Operation, demand: Demand, others_read: int, target: Target) -> Form | None:
        # The pieces that are still to be computed are no arrays that the kernel reads.
        return super().taking(op, demand, 0 if op in self.common else others_read, target)

    def reads(self, op: Operation, demand: Demand) -> Iterator[tuple[Value, Demand]]:
        if op is not self.op:
            yield from super().reads(op, demand)
            return
        for operand in dict.fromkeys(self.op.inputs):
            yield operand, indices_of(self.space)

    def build(self, launches: Launches, group: Group) -> None:
        at, dimension = indices_of(self.space), self.op.dimension
        extent = self.op.inputs[0].type.static_shape[dimension]
        with launches.kernel() as ctx, ctx.nest(self.space):
            for number, operand in enumerate(self.op.inputs):
                place = at[dimension] + number * extent
                target = (*at[:dimension], place, *at[dimension + 1 :])
                ctx.store(self.op.result, target, ctx.element(operand, at))
            for value, indices in group.outputs.items():
                if value is not self.op.result:
                    ctx.store(value, indices, ctx.element(value, indices))


def _ops_of(piece: Value) -> set[Operation]:
    """Returns the last elementwise ops that a piece is computed by, seen through what changes places only."""
    seen, pending, found = {piece}, [piece], set[Operation]()
    while pending and len(found) < MOST_OPS:
        value = pending.pop()
        op = value.defining_op
        if op is None or value.type.size != piece.type.size:
            continue
        if is_elementwise(op):
            found.add(op)
        elif type(op) not in INDEXING:
            continue
        new = [operand for operand in op.operands if operand not in seen]
        seen.update(new)
        pending += new
    return found
