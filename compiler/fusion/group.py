"""The ops of one kernel, or of the few kernels that one op becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from trivium.compiler.costs import takes_loop_or_branch
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

MOST_DEEP = 40
"""The length of a chain of dependent ops in one kernel whose elements are computed by recursion."""


@dataclass(eq=False)
class Group:
    """`position` is that of the group's last op in the block, `form` the arrangement of its loops. `outputs` get
    buffers. `demands` maps each value to the indices at which the group uses it, `depth` maps it to the maximum number
    of ops that follow it, and `deepest` is the largest of these numbers."""

    position: int
    form: Form
    members: dict[Operation, None] = field(default_factory=dict)
    outputs: dict[Value, Indices] = field(default_factory=dict)
    demands: dict[Value, dict[Demand, None]] = field(default_factory=dict)
    depth: dict[Value, int] = field(default_factory=dict)
    deepest: int = 0

    @property
    def is_deep(self) -> bool:
        """Whether a chain of the members is too long for recursion."""
        return self.deepest >= MOST_DEEP

    @property
    def is_straight(self) -> bool:
        """Whether every iteration of the kernel computes the same elements of the members, so that it can compute them
        in program order."""
        whole = all(self.form.loops_of(at) == self.form.space for at in self.outputs.values())
        return self.form.is_flat and whole and not any(map(takes_loop_or_branch, self.members))

    @property
    def last(self) -> Operation:
        """The op that the group began with."""
        return next(iter(self.members))

    def ordered(self) -> list[Operation]:
        """Returns the members in program order: they joined in reverse order."""
        return list(reversed(self.members))

    def computed(self) -> tuple[Operation, ...]:
        """Returns the members in program order, except constants, which are part of the ops that use them."""
        return tuple(op for op in self.ordered() if not isinstance(op, ops.Constant))

    def reads(self) -> int:
        """Returns the number of arrays that the group demands and, as far as is known, does not compute."""
        return sum(value.defining_op not in self.members and not _is_one_number(value) for value in self.demands)

    def demands_for(self, op: Operation) -> list[Demand]:
        """Returns the distinct demands for the op's results."""
        return list(dict.fromkeys(demand for result in op.results for demand in self.demands.get(result, ())))

    def sole_demand(self, op: Operation) -> Demand | None:
        """Returns the demand for the op's results if there is only one, else None."""
        found = self.demands_for(op)
        return found[0] if len(found) == 1 else None

    def kernels(self, name: str, target: Target) -> list[tuple[Kernel, Sequence[Argument]]]:
        """Returns the group's kernels in the order of their launches, each with the values that its parameters are
        bound to."""
        launches = Launches(name, self.members, target)
        try:
            self.form.build(launches, self)
        except Error as error:
            raise error.add(**origin_of(self.last), during=f"lowering to kernel {name}") from None
        return launches.finished


def _is_one_number(value: Value) -> bool:
    """Whether all elements of a value are one number, which no stream of memory is read for."""
    while isinstance(op := value.defining_op, ops.BroadcastInDim):
        value = op.operand
    return value.type.size == 1 or (isinstance(op, ops.Constant) and op.value.is_splat)
