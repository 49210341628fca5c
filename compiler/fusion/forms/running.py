"""A running fold with what is made of each of its results: the results themselves are not stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivium.compiler.fusion.demands import Demand, Opaque
from trivium.compiler.fusion.forms.form import Form
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import indices_of
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.lowering.scalars import Scalar
from trivium.compiler.lowering.windows import fold_running
from trivium.ir import ops
from trivium.ir.core import Operation, Value

if TYPE_CHECKING:
    from trivium.compiler.fusion.group import Group


@dataclass(frozen=True, eq=False)
class Running(Form):
    """Every result of `op` is demanded once, in `space`, in whose loops the fold runs."""

    op: ops.ReduceWindow

    @property
    def principal(self) -> Operation:
        return self.op

    def reads(self, op: Operation, demand: Demand) -> Iterator[tuple[Value, Demand]]:
        if op is not self.op or isinstance(demand, Opaque):
            yield from super().reads(op, demand)
            return
        yield from ((operand, demand) for operand in self.op.inputs)
        yield from ((operand, ()) for operand in self.op.init_values)

    def build(self, launches: Launches, group: Group) -> None:
        def write(ctx: LoweringContext, total: Sequence[Scalar]) -> None:
            ctx.know(self.op.results[0], indices_of(self.space), total[0])
            for value, indices in group.outputs.items():
                ctx.store(value, indices, ctx.element(value, indices))

        fold_running(launches, self.op, self.space, write)
