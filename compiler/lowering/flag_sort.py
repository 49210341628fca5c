"""Stable sorting by one bit, as where the places of a mask's elements are looked for: a first pass counts the elements
that come first; a second one writes these in order from the front, and the others in order after them. Long rows are in
blocks, which threads take independently of one another."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.compiler.kernel import Register
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, RunTimeIndex, Variable, constant, indices_of, variable
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.lowering.row import Row
from trivium.compiler.lowering.scalars import Scalar
from trivium.compiler.lowering.sorted_rows import Sorting, readable, temporary
from trivium.compiler.target import Target
from trivium.ir.types import I64


def is_possible(sorting: Sorting, target: Target) -> bool:
    """Whether rows are sorted by flags, on a device whose threads each run loops of their own."""
    return sorting.key is not None and sorting.key.is_flag and not target.shared_memory_bytes


def sort(launches: Launches, sorting: Sorting) -> None:
    """Sorts each row in one launch or, in blocks, in three."""
    variables, outer = sorting.variables()
    block = launches.target.fusion.serial_row
    work = _FlagSort(sorting, readable(launches, sorting, outer), variables, block)
    if sorting.extent <= block:
        with launches.kernel() as ctx, ctx.nest(outer):
            zero, extent = ctx.b.index(0), ctx.b.index(sorting.extent)
            work.place(ctx, zero, extent, zero, work.count(ctx, zero, extent))
        return
    blocks = -(-sorting.extent // block)
    each, one = Variable(blocks), Variable(blocks)
    (number,) = indices_of([each])
    counts, begins = (temporary(sorting, outer, I64, extent) for extent in (blocks, blocks + 1))
    with launches.kernel("_count") as ctx, ctx.nest([*outer, each]):
        counts.store(ctx, number, work.count(ctx, *work.piece(ctx, number)))
    with launches.kernel("_begin") as ctx, ctx.nest(outer):
        with ctx.inside(ctx.b.sequential(blocks, inits=[ctx.b.index(0)]), [one]) as frame:
            (at,), (total,) = indices_of([one]), frame.carried
            begins.store(ctx, at, total)
            frame.yield_(ctx.b.add(total, counts.load(ctx, at)))  # type: ignore[arg-type]
        begins.store(ctx, constant(blocks), frame.results[0])
    with launches.kernel("_place") as ctx, ctx.nest([*outer, each]):
        start, length = work.piece(ctx, number)
        first, all_first = (begins.load(ctx, at) for at in (number, constant(blocks)))
        assert isinstance(first, Register)
        assert isinstance(all_first, Register)
        work.place(ctx, start, length, first, ctx.b.add(all_first, ctx.b.subtract(start, first)))


class _FlagSort:
    """The passes over the rows of a sorting problem, in blocks of `block` elements. The loops over all dimensions have
    these variables."""

    def __init__(self, sorting: Sorting, rows: Sequence[Row], variables: Sequence[Variable], block: int) -> None:
        self.sorting, self.rows, self.variables, self.block = sorting, rows, variables, block

    def piece(self, ctx: LoweringContext, number: Index) -> tuple[Register, Register]:
        """Returns where a block begins, and how many elements it has."""
        b, start = ctx.b, ctx.position(number * self.block)
        return start, b.apply("minimum", b.subtract(b.index(self.sorting.extent), start), self.block)

    def count(self, ctx: LoweringContext, start: Register, length: Register) -> Register:
        """Returns how many of the elements from `start` on are among the first ones."""
        b = ctx.b
        with b.reduction(length, inits=[b.index(0)], combiner="add") as frame, ctx.scope():
            is_first = self._is_first(ctx, self._elements(ctx, self._index(start, frame.index)))
            frame.yield_(b.convert(is_first, "i64"))
        return frame.results[0]

    def place(self, ctx: LoweringContext, start: Register, length: Register, first: Register, other: Register) -> None:
        """Writes the elements from `start` on: those that come first to places from `first` on, others from `other`."""
        b, sorting = ctx.b, self.sorting
        with b.sequential(length, inits=[first, other]) as frame, ctx.scope():
            index = self._index(start, frame.index)
            elements = self._elements(ctx, index)
            is_first = self._is_first(ctx, elements)
            place, step = b.select(is_first, *frame.carried), b.convert(is_first, "i64")
            if sorting.count == sorting.extent:
                self._write(ctx, place, elements, index)
            else:
                with ctx.block(b.if_(b.compare("LT", place, sorting.count))):
                    self._write(ctx, place, elements, index)
            frame.yield_(b.add(frame.carried[0], step), b.add(frame.carried[1], b.subtract(b.index(1), step)))

    def _write(self, ctx: LoweringContext, place: Register, elements: list[Scalar], index: Index) -> None:
        at = self.sorting.at_place(self.variables, variable(RunTimeIndex(place, self.sorting.count - 1)))
        self.sorting.finish(ctx, at, elements, ctx.position(index))

    def _index(self, start: Register, number: Register) -> Index:
        last = self.sorting.extent - 1
        return variable(RunTimeIndex(start, last)) + variable(RunTimeIndex(number, last))

    def _elements(self, ctx: LoweringContext, index: Index) -> list[Scalar]:
        return [row.load(ctx, index) for row in self.rows]

    def _is_first(self, ctx: LoweringContext, elements: list[Scalar]) -> Register:
        """Whether an element is among the first ones."""
        key = self.sorting.key
        assert key is not None
        return ctx.b.compare("EQ", key.number(ctx, elements), int(key.descending))
