"""A sorting problem: rows of several operands, of which each is put in order by a comparator, or by keys. And what any
way to sort it needs: rows in scratch memory, and in memory of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from trivium.compiler.kernel import Register
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, Indices, RunTimeIndex, Variable, fresh, indices_of, variable
from trivium.compiler.lowering.launches import Argument, Launches, Temporary
from trivium.compiler.lowering.radix import SHORTEST, Key
from trivium.compiler.lowering.row import Row
from trivium.compiler.lowering.scalars import Scalar
from trivium.ir.core import Operation, Value
from trivium.ir.ops import Iota
from trivium.ir.types import I32, I64, Type, tensor

Less = Callable[[LoweringContext, list[Scalar], list[Scalar]], Register]
"""Whether the elements at one place of the rows come before those at another."""

Finish = Callable[[LoweringContext, Indices, list[Scalar], Register], None]
"""Stores the elements that belong at some indices of the result, given their original place in the rows."""


@dataclass(frozen=True)
class Sorting:
    """A sorting problem: the rows of `operands` along `dimension`, of which the first `count` elements are needed."""

    op: Operation
    operands: Sequence[Value]
    dimension: int
    count: int
    less: Less
    finish: Finish
    key: Key | None = None
    is_order: bool = True
    """Whether `less` orders all elements, so that it does not matter which of them are compared."""
    places: bool = False
    """Whether `finish` stores the original places."""

    @property
    def extent(self) -> int:
        return self.operands[0].type.shape[self.dimension]

    @property
    def scratch_bytes(self) -> int:
        """The most scratch memory of one row: its elements, and twice their places and keys, if it has any."""
        elements = sum(operand.type.dtype.itemsize for operand in self.operands)
        digits = self.key.bits // 8 + I32.dtype.itemsize if self.key and self.has_digits else I64.dtype.itemsize
        return self.extent * (elements + 2 * digits)

    @property
    def has_digits(self) -> bool:
        """Whether the rows are sorted by the digits of keys."""
        return self.key is not None and SHORTEST <= self.extent < 1 << 31

    def variables(self) -> tuple[list[Variable], list[Variable]]:
        """Returns new loop variables for all dimensions, and those of the dimensions that are not sorted along."""
        variables = fresh(self.operands[0].type.shape)
        return variables, [v for d, v in enumerate(variables) if d != self.dimension]

    def at(self, variables: Sequence[Variable], along: Variable) -> Indices:
        """Returns the indices with `along` in place of the sorted dimension's variable."""
        return self.at_place(variables, *indices_of([along]))

    def at_place(self, variables: Sequence[Variable], place: Index) -> Indices:
        """Returns the indices with this one in the sorted dimension."""
        indices = indices_of(variables)
        return (*indices[: self.dimension], place, *indices[self.dimension + 1 :])

    def known(self, place: Scalar) -> Index:
        """Returns a place in the row as an index."""
        assert isinstance(place, Register)
        return variable(RunTimeIndex(place, self.extent - 1))

    def end(self, ctx: LoweringContext, rows: Sequence[Row], order: Row, at: Indices) -> None:
        """Stores the elements that belong at the indices `at` of the result."""
        place = order.load(ctx, at[self.dimension])
        source = ctx.b.convert(place, "i64")  # type: ignore[arg-type]
        self.finish(ctx, at, [row.load(ctx, self.known(source)) for row in rows], place)  # type: ignore[arg-type]


def copied_row(ctx: LoweringContext, sorting: Sorting, operand: Value, variables: Sequence[Variable]) -> Row:
    """Copies a row to scratch: its elements may be computed, and then are computed only once, or be far apart in
    memory."""
    along = variables[sorting.dimension]
    row = Row(ctx.scratch(operand.type.element_type, [along.extent]))
    with ctx.parallel([along]):
        row.store(ctx, indices_of([along])[0], ctx.element(operand, indices_of(variables)))
    return row


def temporary(sorting: Sorting, outer: Sequence[Variable], kind: Type, extent: int | None = None) -> Row:
    """A row of memory of the program, for each row that is sorted, and as long unless it has another `extent`."""
    shape = (*(v.extent for v in outer), sorting.extent if extent is None else extent)
    return Row(Temporary(tensor(*shape, of=kind), sorting.op), indices_of(outer))


def stored(launches: Launches, sorting: Sorting, number: int) -> Argument:
    """Returns an operand that is in memory; if it is computed in these launches, that is a temporary."""
    operand = sorting.operands[number]
    if operand.defining_op not in launches.members:
        return operand
    stored, variables = Temporary(operand.type, sorting.op), fresh(operand.type.shape)
    with launches.kernel(f"_operand{number}") as ctx, ctx.nest(variables):
        ctx.store(stored, indices_of(variables), ctx.element(operand, indices_of(variables)))
    return stored


@dataclass(frozen=True)
class Computed(Row):
    """The elements of a value, which are computed when they are read."""

    def load(self, ctx: LoweringContext, index: Index) -> Scalar:
        assert isinstance(self.memory, Value)
        return ctx.element(self.memory, (*self.before, index, *self.after))


def readable(launches: Launches, sorting: Sorting, outer: Sequence[Variable]) -> list[Row]:
    """Returns the rows of the operands as any launch can read them: in memory, or computed where that is as fast."""
    around = indices_of(outer)
    at = around[: sorting.dimension], around[sorting.dimension :]
    return [
        Computed(operand, *at) if isinstance(operand.defining_op, Iota) else Row(stored(launches, sorting, n), *at)
        for n, operand in enumerate(sorting.operands)
    ]


def where(ctx: LoweringContext, flags: Temporary | None, outer: Sequence[Variable]) -> AbstractContextManager[object]:
    """Opens the branch that is taken for rows whose flag is set."""
    return ctx.block(ctx.b.if_(ctx.load(flags, indices_of(outer)))) if flags else nullcontext()  # type: ignore[arg-type]


def widths(extent: int) -> list[int]:
    """Returns the widths of the runs that the passes merge."""
    return [1 << n for n in range((extent - 1).bit_length())]
