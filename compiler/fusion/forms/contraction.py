"""A matrix product or convolution as a marked kernel, with the ops that follow it as the epilogue."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trivium.compiler.fusion.demands import Demand, Opaque, plain_variables, row_major_variables
from trivium.compiler.fusion.forms.form import Form, extended
from trivium.compiler.fusion.turning import Turned
from trivium.compiler.kernel import Access, Kernel, Register, contraction_kernel
from trivium.compiler.kernel import Contraction as Mark
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.contraction import Loops, by_places, loops_of, operand_order, prologue
from trivium.compiler.lowering.elementwise import converted
from trivium.compiler.lowering.index import Index, Variable, indices_of, linearize, variable
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.lowering.scalars import dtype_of
from trivium.compiler.passes.kernels import copies_windows
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Operation, Value
from trivium.ir.types import accumulation_type

if TYPE_CHECKING:
    from trivium.compiler.fusion.group import Group


@dataclass(frozen=True, eq=False)
class Contraction(Form):
    """Every sum of `op` is demanded once, in `space`; `turned` tells which transposes before it are not part of the
    kernel."""

    op: Operation
    turned: Turned
    divided: tuple[tuple[Variable, ...], ...] = field(default=(), kw_only=True)
    """The variables of each of the op's dimensions, if a reshape divides some."""

    @property
    def principal(self) -> Operation:
        return self.op

    def buffers(self, op: Operation) -> Sequence[Value]:
        return [source for source, _ in self._sources()] if op is self.op else ()

    def reads(self, op: Operation, demand: Demand) -> Iterator[tuple[Value, Demand]]:
        return iter(()) if op is self.op else super().reads(op, demand)

    def build(self, launches: Launches, group: Group) -> None:
        ctx = launches.context()
        launches.add(self._kernel(ctx, group, launches.target), ctx.arguments)

    def store(self, ctx: LoweringContext, group: Group) -> None:
        """Emits the epilogue, for one sum, which is known."""
        for value, indices in group.outputs.items():
            ctx.store(value, indices, ctx.element(value, indices))

    def _kernel(self, ctx: LoweringContext, group: Group, target: Target) -> Kernel:
        """Returns the marked kernel; its epilogue computes and stores the outputs."""
        op, loops = self.op, loops_of(self.op)
        variables: list[tuple[Variable, ...]] = [(v,) for v in self.space]
        if self.divided:
            variables, loops = list(self.divided), loops.divided([[v.extent for v in one] for one in self.divided])
        elif isinstance(op, ops.Convolution) and copies_windows(op, target):
            loops = by_places(loops)
        accumulate = dtype_of(accumulation_type(op.results[0].type.element_type))
        outer = [name for name, loop in loops.loops.items() if loop.role != "k"]
        accesses = self._accesses(ctx, loops)
        with ExitStack() as stack:
            block = stack.enter_context(ctx.block(ctx.b.block(accumulate, *["i64"] * len(outer))))
            total, registers = block.parameters[0], dict(zip(outer, block.parameters[1:], strict=True))
            for one, names in zip(variables, loops.result, strict=True):
                if len(one) == len(names):
                    for v, name in zip(one, names, strict=True):
                        ctx.bind(v, variable(registers[name]))
                else:
                    (v,) = one
                    ctx.bind(v, _result_index(loops, names, registers))
            at = tuple(linearize(indices_of(one), [v.extent for v in one]) for one in variables)
            ctx.know(op.results[0], at, converted(ctx, total, op.results[0].type.element_type))
            self.store(ctx, group)
        prologues = [prologue(ctx, op, side, accumulate, len(loops.loops)) for side in ("lhs", "rhs")]
        mark = Mark(tuple(loops.loops.values()), *accesses, accumulate, block, *prologues)  # type: ignore[arg-type]
        return contraction_kernel(ctx.b.name, ctx.b.params, mark, op)

    def _accesses(self, ctx: LoweringContext, loops: Loops) -> list[Access]:
        accesses = []
        for side, (source, order) in zip(("lhs", "rhs"), self._sources(), strict=True):
            buffer = ctx.buffer(source, source.type.shape, "in")
            accesses.append(loops.access(buffer, side, order))
        return accesses

    def _sources(self) -> list[tuple[Value, tuple[int, ...]]]:
        """Returns the tensors that the kernel reads, each with the operand's dimensions in their order."""
        apart = self.turned.image, self.turned.kernel
        return [
            (operand, tuple(range(operand.type.rank))) if is_apart else operand_order(operand)
            for operand, is_apart in zip(self.op.operands, apart, strict=True)
        ]


def divided_loops_of_sums(
    op: Operation, demand: Demand, space: Sequence[Variable]
) -> tuple[tuple[Variable, ...], ...] | None:
    """Does the same for a product whose dimensions are divided by a reshape: returns the variables of each dimension,
    the outermost first."""
    if isinstance(demand, Opaque) or not isinstance(op, ops.DotGeneral):
        return None
    found = [row_major_variables(index) for index in demand]
    variables = [v for one in found if one is not None for v in one]
    if None in found or len(set(variables)) != len(variables) or set(variables) != extended(space):
        return None
    if [math.prod(v.extent for v in one or ()) for one in found] != list(op.result.type.shape):
        return None
    return tuple(one or (Variable(1),) for one in found)


def loops_of_sums(
    op: Operation, demand: Demand, space: Sequence[Variable], turned: bool
) -> tuple[Variable, ...] | None:
    """Returns the variables of `space` in the order of a contraction's dimensions (unless it is turned, the outputs may
    be transposes of the sums) if every sum is demanded once; otherwise None."""
    variables = None if isinstance(demand, Opaque) else plain_variables(demand)
    if isinstance(demand, Opaque) or variables is None:
        return None
    extents = [extent for extent in op.results[0].type.shape if extent != 1]
    if [v.extent for v in variables] != extents or set(variables) != extended(space):
        return None
    if turned and variables != [v for v in space if v.extent != 1]:
        return None
    return tuple(index.variable or Variable(1) for index in demand)


def _result_index(loops: Loops, names: Sequence[str], registers: dict[str, Register]) -> Index:
    """Returns the index along one dimension of the result, which may be split into an outer and an inner loop."""
    index = variable(registers[names[0]])
    for name in names[1:]:
        index = index * loops.loops[name].extent + variable(registers[name])
    return index
