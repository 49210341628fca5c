"""Concatenations and pads as several launches, or several loops, each of which writes a part of the result: no branches
inside."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivium.compiler.costs import interleaves, is_marked_contraction, takes_loop
from trivium.compiler.fusion.demands import Demand, Opaque
from trivium.compiler.fusion.forms.contraction import Contraction, loops_of_sums
from trivium.compiler.fusion.forms.form import Form
from trivium.compiler.fusion.turning import turned
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Indices, Variable, constant, fresh, indices_of
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Operation, Value

if TYPE_CHECKING:
    from trivium.compiler.fusion.group import Group

SHARED = 4
"""The rows for each of several threads from which on these share rows, rather than the elements of each operand."""


@dataclass(frozen=True, eq=False)
class Pieces(Form):
    """A concatenation, of other ones too: loops for each operand, which run over its elements, so that none of them
    computes all elements of any other value. They are in one launch, row by row: memory is written in order, and a line
    that has parts of several operands is in a cache while all of it is written. Operands that are read across rows, or
    computed by loops, have launches of their own, which are scheduled as a whole; so have those of a few rows."""

    op: ops.Concatenate

    @property
    def writes_parts(self) -> bool:
        return True

    def taking(self, op: Operation, demand: Demand, others_read: int, target: Target) -> Form | None:
        if isinstance(op, ops.Concatenate) and not interleaves(op.inputs, op.dimension):
            is_operand = [isinstance(user, ops.Concatenate) for user in op.result.users] == [True]
            return self if is_operand and isinstance(demand, Opaque) and demand.once else None
        return super().taking(op, demand, others_read, target)

    def is_home(self, op: Operation, demand: Indices, target: Target) -> bool:
        return False

    def build(self, launches: Launches, group: Group) -> None:
        op = self.op
        target, rows = launches.target, fresh(op.result.type.shape[: _outermost(op, group.members)])
        is_shared = target.threads == 1 or math.prod(row.extent for row in rows) >= SHARED * target.threads
        if target.loops_in_order and is_shared and _are_along_rows(group.members):
            with launches.kernel() as ctx, ctx.nest(rows):
                _write_rows(ctx, op, op, group.members, (0,) * op.result.type.rank, rows)
            return
        for number, (operand, first) in enumerate(_pieces(op, (0,) * op.result.type.rank, group.members)):
            if operand.type.size:
                variables = fresh(operand.type.shape)
                with launches.kernel(f"_piece{number}") as ctx, ctx.nest(variables):
                    at = indices_of(variables)
                    target = tuple(index + start for index, start in zip(at, first, strict=True))
                    ctx.store(op.result, target, ctx.element(operand, at))


def _pieces(
    op: ops.Concatenate, first: tuple[int, ...], members: Container[Operation]
) -> Iterator[tuple[Value, tuple[int, ...]]]:
    """Yields the operands of a concatenation, and of those among them that are members themselves, with the place where
    each begins."""
    for operand, at in _operands(op, first):
        inner = _member(operand, members)
        if inner is None:
            yield operand, at
        else:
            yield from _pieces(inner, at, members)


def _operands(op: ops.Concatenate, first: tuple[int, ...]) -> Iterator[tuple[Value, tuple[int, ...]]]:
    """Yields the operands of a concatenation that begins at `first`, with the place where each begins."""
    start = first[op.dimension]
    for operand in op.inputs:
        yield operand, (*first[: op.dimension], start, *first[op.dimension + 1 :])
        start += operand.type.static_shape[op.dimension]


def _member(value: Value, members: Container[Operation]) -> ops.Concatenate | None:
    """Returns the concatenation that computes a value, if it is a member."""
    made = value.defining_op
    return made if isinstance(made, ops.Concatenate) and made in members else None


def _outermost(op: ops.Concatenate, members: Container[Operation]) -> int:
    """Returns the first dimension along which a concatenation, or a member that it joins, has several operands."""
    inner = (_member(operand, members) for operand in op.inputs)
    return min([op.dimension, *(_outermost(found, members) for found in inner if found is not None)])


def _write_rows(
    ctx: LoweringContext,
    result: ops.Concatenate,
    op: ops.Concatenate,
    members: Container[Operation],
    first: tuple[int, ...],
    around: Sequence[Variable],
) -> None:
    """Emits the loops that write the operands of a concatenation, which begins at `first` in the result, inside those
    over `around`, the first dimensions; a concatenation among them has loops around all of its own operands."""
    target = ctx.buffer(result.result, result.result.type.static_shape, "out")
    for operand, start in _operands(op, first):
        inner, shape = _member(operand, members), operand.type.static_shape
        if 0 in shape:
            continue
        variables = fresh(shape[len(around) : None if inner is None else _outermost(inner, members)])
        with ctx.parallel(variables):
            if inner is not None:
                _write_rows(ctx, result, inner, members, start, (*around, *variables))
                continue
            at = indices_of((*around, *variables))
            place = tuple(index + first for index, first in zip(at, start, strict=True))
            with ctx.b.computing(result):
                ctx.write(target, place, ctx.element(operand, at))


def _are_along_rows(members: Iterable[Operation]) -> bool:
    """Whether ops compute an element from elements at its own place, or along the rows of other arrays."""
    return not any(isinstance(op, ops.Transpose) or takes_loop(op) for op in members)


@dataclass(frozen=True, eq=False)
class Interleaved(Form):
    """A concatenation of rows of few elements: the loops run over the rows, and write the elements of all operands
    together."""

    op: ops.Concatenate

    def reads(self, op: Operation, demand: Demand) -> Iterator[tuple[Value, Demand]]:
        if op is not self.op:
            yield from super().reads(op, demand)
            return
        for operand in dict.fromkeys(self.op.inputs):
            for at in self._places(operand):
                yield operand, at

    def is_home(self, op: Operation, demand: Indices, target: Target) -> bool:
        return False

    def build(self, launches: Launches, group: Group) -> None:
        with launches.kernel() as ctx, ctx.nest(self.space):
            elements = ((operand, at) for operand in self.op.inputs for at in self._places(operand))
            for number, (operand, at) in enumerate(elements):
                target = (*indices_of(self.space)[:-1], constant(number))
                ctx.store(self.op.result, target, ctx.element(operand, at))

    def _places(self, operand: Value) -> Iterator[Indices]:
        """Yields the places of the elements of an operand's row."""
        for number in range(operand.type.static_shape[-1]):
            yield (*indices_of(self.space)[:-1], constant(number))


@dataclass(frozen=True, eq=False)
class Padded(Form):
    """A pad that cuts nothing off: launches for the padding, then one for the operand, over whose elements the loops
    run. Becomes a contraction when it accepts one that is demanded once."""

    op: ops.Pad

    @property
    def writes_parts(self) -> bool:
        return not self._pads_everywhere

    @property
    def _pads_everywhere(self) -> bool:
        """Whether the padding is written to all elements first, because there is much of it."""
        shape, inner = self.op.result.type.shape, self.op.operand.type.shape
        return math.prod(shape) >= 2 * math.prod(inner) or any(self.op.interior_padding)

    def around(self, op: Operation, demand: Demand, target: Target) -> Form | None:
        if not is_marked_contraction(op):
            return None
        apart = turned(op, target)
        loops = loops_of_sums(op, demand, self.space, apart.image)
        return None if loops is None else PaddedContraction(loops, op, apart, self)

    def first_demand(self) -> Indices:
        """Returns where the operand's elements are in the result."""
        steps = zip(indices_of(self.space), self.op.interior_padding, self.op.edge_padding_low, strict=True)
        return tuple(index * (interior + 1) + low for index, interior, low in steps)

    def reads(self, op: Operation, demand: Demand) -> Iterator[tuple[Value, Demand]]:
        if op is not self.op:
            yield from super().reads(op, demand)
            return
        yield self.op.operand, indices_of(self.space)
        yield self.op.padding_value, ()

    def build(self, launches: Launches, group: Group) -> None:
        self.padding(launches)
        if self.op.operand.type.size:
            with launches.kernel("_operand") as ctx, ctx.nest(self.space):
                self.store(ctx, group)

    def store(self, ctx: LoweringContext, group: Group) -> None:
        """Emits what is stored for one element of the operand."""
        ctx.know(self.op.result, self.first_demand(), ctx.element(self.op.operand, indices_of(self.space)))
        for value, indices in group.outputs.items():
            ctx.store(value, indices, ctx.element(value, indices))

    def padding(self, launches: Launches) -> None:
        """Emits what writes the padding: at both ends of each dimension, or everywhere."""
        shape, inner = self.op.result.type.shape, self.op.operand.type.shape
        if self._pads_everywhere:
            self._fill(launches, "_padding", [(0, extent) for extent in shape])
            return
        inside = list(zip(self.op.edge_padding_low, inner, strict=True))
        for d, (low, extent) in enumerate(inside):
            for name, place in (("low", (0, low)), ("high", (low + extent, shape[d] - low - extent))):
                box = [*inside[:d], place, *((0, extent) for extent in shape[d + 1 :])]
                if place[1]:
                    self._fill(launches, f"_{name}{d}", box)

    def _fill(self, launches: Launches, suffix: str, box: Sequence[tuple[int, int]]) -> None:
        """Emits what writes padding to a box: its first place and its extent, along each dimension."""
        variables = fresh([extent for _, extent in box])
        with launches.kernel(suffix) as ctx, ctx.nest(variables):
            at = tuple(index + first for index, (first, _) in zip(indices_of(variables), box, strict=True))
            ctx.store(self.op.result, at, ctx.element(self.op.padding_value))


@dataclass(frozen=True, eq=False)
class PaddedContraction(Contraction):
    """A contraction whose epilogue computes the operand of a pad."""

    pad: Padded

    @property
    def writes_parts(self) -> bool:
        return self.pad.writes_parts

    def build(self, launches: Launches, group: Group) -> None:
        self.pad.padding(launches)
        super().build(launches, group)

    def store(self, ctx: LoweringContext, group: Group) -> None:
        self.pad.store(ctx, group)


def cuts_nothing_off(op: ops.Pad) -> bool:
    """Whether every element of the operand is in the result."""
    return min((*op.edge_padding_low, *op.edge_padding_high, 0)) == 0
