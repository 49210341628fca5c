"""The ops of one kernel, or of the few that one op becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from trivium.compiler.fusion.demands import Demand
from trivium.compiler.fusion.forms.form import Form
from trivium.compiler.kernel import Kernel
from trivium.compiler.lowering.index import Indices
from trivium.compiler.lowering.launches import Argument, Launches
from trivium.compiler.lowering.origins import origin_of
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Operation, Value
from trivium.ir.errors import Error
from trivium.ir.location import Location


@dataclass(eq=False)
class Group:
    """`position` is that of the group's last op in the block, `form` how its loops are arranged. `outputs` get buffers.
    `demands` holds for each value at which indices the group uses it, `depth` how many ops follow it at most."""

    position: int
    form: Form
    members: dict[Operation, None] = field(default_factory=dict)
    outputs: dict[Value, Indices] = field(default_factory=dict)
    demands: dict[Value, dict[Demand, None]] = field(default_factory=dict)
    depth: dict[Value, int] = field(default_factory=dict)

    @property
    def last(self) -> Operation:
        """The op that the group began with."""
        return next(iter(self.members))

    def ordered(self) -> list[Operation]:
        """The members in program order: they joined from the end."""
        return list(reversed(self.members))

    def origins(self) -> tuple[Location, ...]:
        """Where the members come from. Constants are part of what uses them."""
        return tuple(dict.fromkeys(op.location for op in self.ordered() if not isinstance(op, ops.Constant)))

    def reads(self) -> int:
        """How many values the group demands that it does not compute, as far as is known."""
        return sum(value.defining_op not in self.members for value in self.demands)

    def sole_demand(self, op: Operation) -> Demand | None:
        """The demand for the op's results, if there is only one."""
        found = {demand for result in op.results for demand in self.demands.get(result, ())}
        return found.pop() if len(found) == 1 else None

    def kernels(self, name: str, target: Target) -> list[tuple[Kernel, Sequence[Argument]]]:
        """The group's kernels, and the values that their parameters are bound to, in the order of their launches."""
        launches = Launches(name, self.members, target)
        try:
            self.form.build(launches, self)
        except Error as error:
            raise error.add(**origin_of(self.last), during=f"lowering to kernel {name}") from None
        return launches.finished
