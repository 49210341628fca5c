"""Shared by the forms of kernels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivium.compiler.costs import is_marked_contraction, is_reduction, takes_loop_or_branch, worth_storing
from trivium.compiler.fusion.demands import Demand, Opaque, covers, reads
from trivium.compiler.lowering import is_elementwise
from trivium.compiler.lowering.index import Indices, Variable, indices_of
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.lowering.windows import takes_tail
from trivium.compiler.target import Target
from trivium.ir.core import Operation, Value

if TYPE_CHECKING:
    from trivium.compiler.fusion.group import Group


@dataclass(frozen=True, eq=False)
class Form(ABC):
    """How the loops of a kernel are arranged: which ops it accepts, what these then read, and how the kernel is built.
    `space` are the loop variables of the outputs."""

    space: tuple[Variable, ...]

    @property
    def principal(self) -> Operation | None:
        """The op that the kernel is named after, if the form has one."""
        return None

    @property
    def writes_parts(self) -> bool:
        """Whether each of several kernels writes elements that no other one reads or writes."""
        return False

    @property
    def is_flat(self) -> bool:
        """Whether there is only the nest of loops over the elements of the outputs."""
        return False

    # What it accepts

    def includes(self, op: Operation) -> bool:
        """Whether the kernel computes the op, whatever else it accepts."""
        return False

    def taking(self, op: Operation, demand: Demand, others_read: int, target: Target) -> Form | None:
        """Returns the form of the group after accepting `op`, whose results have this one demand; None if `op` does not
        fit. `others_read`: the number of values that the group already reads."""
        if arranges_loops(op, target):
            return self.around(op, demand, target)
        if isinstance(demand, Opaque):
            fits = demand.once and is_elementwise(op)
        else:
            few = len(op.operands) < 2 or others_read <= target.fusion.reads
            fits = few and self.affords(op, demand, target)
        return self if fits else None

    def around(self, op: Operation, demand: Demand, target: Target) -> Form | None:
        """Returns the form after accepting a reduction or contraction; None if it does not fit."""
        return None

    def affords(self, op: Operation, demand: Indices, target: Target) -> bool:
        """Whether the repeated computation of elements of the op's results is cheap enough."""
        used, repeats = demanded(op, demand)
        if self.misses_loops(used):
            # The op is computed again in each iteration of the loops that the demand does not depend on.
            return not worth_storing(op, target) and not takes_loop_or_branch(op)
        return repeats <= (1 if takes_loop_or_branch(op) else 2)

    def misses_loops(self, used: set[Variable]) -> bool:
        """Whether a demand that depends on these variables is the same in all iterations of another loop."""
        return bool(used) and used != extended(self.space)

    def is_home(self, op: Operation, demand: Indices, target: Target) -> bool:
        """Whether the kernel computes every element of the op's results exactly once, so that it can also store
        them."""
        return covers(demand, self.space, op.results[0].type.shape)

    def loops_of(self, indices: Indices) -> tuple[Variable, ...]:
        """Returns the loops over the elements of an output: all, unless it is one value for each of some points."""
        used = {v for index in indices for v in index.variables()}
        return self.space if used == extended(self.space) else tuple(v for v in self.space if v in used)

    # What it reads

    def first_demand(self) -> Indices:
        """Returns the indices at which the kernel demands the results of its last op."""
        return indices_of(self.space)

    def reads(self, op: Operation, demand: Demand) -> Iterator[tuple[Value, Demand]]:
        """Yields the operands of `op`, each with the demand for it if the op's results are demanded at `demand`."""
        return reads(op, demand)

    def buffers(self, op: Operation) -> Sequence[Value]:
        """Returns the operands that `op` reads from memory, so that they need buffers."""
        return ()

    def updated(self) -> Sequence[tuple[Value, Value]]:
        """Returns the operands that the kernels update in place, each with the result that replaces it."""
        return ()

    # What it becomes

    @abstractmethod
    def build(self, launches: Launches, group: Group) -> None:
        """Emits the kernels of a group that has this form."""


def arranges_loops(op: Operation, target: Target) -> bool:
    """Whether a group that accepts the op may get a different form."""
    return is_reduction(op) or is_marked_contraction(op) or takes_tail(op, target)


def extended(variables: Sequence[Variable]) -> set[Variable]:
    """Returns the variables with more than one value."""
    return {v for v in variables if v.extent != 1}


def demanded(op: Operation, demand: Indices) -> tuple[set[Variable], float]:
    """Returns the variables that a demand depends on, and how often each element of the op's results is demanded."""
    used = {v for index in demand for v in index.variables()}
    return used, math.prod(v.extent for v in used) / max(1, op.results[0].type.size)
