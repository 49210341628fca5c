"""Kernels that are written by an op's own rule: sorts, scatters, windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivium.compiler.costs import free_values
from trivium.compiler.fusion.demands import Demand, Opaque, reads_once
from trivium.compiler.fusion.forms.form import Form
from trivium.compiler.lowering import kernel_rule, updated_in_place
from trivium.compiler.lowering.index import Indices
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Operation, Value

if TYPE_CHECKING:
    from trivium.compiler.fusion.group import Group


@dataclass(frozen=True, eq=False)
class Whole(Form):
    """The rule of `op` writes only the results of `op`; ops that compute its operands are fused into it."""

    op: Operation

    @property
    def principal(self) -> Operation:
        return self.op

    def taking(self, op: Operation, demand: Demand, others_read: int, target: Target) -> Form | None:
        # A scatter needs each slice of its updates once, and a sum each row: gathered ones are not stored in between.
        gathers = isinstance(self.op, ops.Scatter | ops.RaggedDot) and isinstance(op, ops.Gather)
        if gathers and isinstance(demand, Opaque) and demand.once:
            return self
        return super().taking(op, demand, others_read, target)

    def is_home(self, op: Operation, demand: Indices, target: Target) -> bool:
        return False

    def buffers(self, op: Operation) -> Sequence[Value]:
        return [operand for operand, _ in self.updated()] if op is self.op else ()

    def updated(self) -> Sequence[tuple[Value, Value]]:
        return updated_in_place(self.op)

    def reads(self, op: Operation, demand: Demand) -> Iterator[tuple[Value, Demand]]:
        if op is not self.op:
            yield from super().reads(op, demand)
            return
        in_place = self.buffers(op)
        for operand in dict.fromkeys((*op.operands, *free_values(op))):
            if operand not in in_place:
                yield operand, Opaque(reads_once(op, operand)) if operand.type.rank else ()

    def build(self, launches: Launches, group: Group) -> None:
        rule = kernel_rule(self.op)
        assert rule is not None
        rule(launches, self.op)
