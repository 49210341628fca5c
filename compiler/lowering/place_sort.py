"""Stable sorting of the places of a row's elements by vectors: each becomes one integer, of its key and, in the bits
below, its place. No two of these are equal, and elements of equal keys stay in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trivium.compiler.kernel import Register
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, Variable, constant, indices_of
from trivium.compiler.lowering.key_sort import SHORTEST, ordered
from trivium.compiler.lowering.launches import Launches, Temporary
from trivium.compiler.lowering.row import Row
from trivium.compiler.lowering.scalars import Scalar, dtype_of
from trivium.compiler.lowering.sorted_rows import Sorting, temporary, where
from trivium.compiler.target import Target
from trivium.ir.types import I32, I64, Type


@dataclass(frozen=True)
class Places(Row):
    """The places in a row of such integers; they take the lowest `bits`."""

    bits: int = 0

    def load(self, ctx: LoweringContext, index: Index) -> Scalar:
        return ctx.b.apply("and", super().load(ctx, index), (1 << self.bits) - 1)  # type: ignore[arg-type]


def is_possible(sorting: Sorting, target: Target) -> bool:
    """Whether keys and places fit into integers that the device sorts."""
    key, extent = sorting.key, sorting.extent
    return target.sorts_keys and key is not None and extent >= SHORTEST and key.bits + bits_of_places(extent) <= 64


def bits_of_places(extent: int) -> int:
    """Returns how many bits the places in a row take."""
    return (extent - 1).bit_length()


def _type(sorting: Sorting) -> Type:
    assert sorting.key is not None
    return I32 if sorting.key.bits + bits_of_places(sorting.extent) <= 32 else I64


def sort_in_scratch(ctx: LoweringContext, sorting: Sorting, rows: Sequence[Row], along: Variable) -> Row:
    """Sorts the elements of rows in scratch, and returns the order."""
    buffer = ctx.scratch(_type(sorting), [sorting.extent])
    with ctx.parallel([along]):
        (index,) = indices_of([along])
        Row(buffer).store(ctx, index, _integer(ctx, sorting, rows, index))
    ctx.sort_keys(buffer, (constant(0),), sorting.extent)
    return Places(buffer, bits=bits_of_places(sorting.extent))


def sort_in_passes(
    launches: Launches,
    sorting: Sorting,
    rows: Sequence[Row],
    outer: Sequence[Variable],
    along: Variable,
    only: Temporary | None = None,
) -> Row:
    """Sorts long rows in memory, `only` those for which a flag is set, and returns the order: one launch computes the
    integers, and one sorts them."""
    made, around = temporary(sorting, outer, _type(sorting)), indices_of(outer)
    with launches.kernel("_begin") as ctx, ctx.nest([*outer, along]), where(ctx, only, outer):
        (index,) = indices_of([along])
        made.store(ctx, index, _integer(ctx, sorting, rows, index))
    with launches.kernel("_places") as ctx, ctx.nest(outer), where(ctx, only, outer):
        ctx.sort_keys(made.memory, (*around, constant(0)), sorting.extent)
    return Places(made.memory, made.before, made.after, bits_of_places(sorting.extent))


def _integer(ctx: LoweringContext, sorting: Sorting, rows: Sequence[Row], index: Index) -> Register:
    """Returns the integer of the element at a place."""
    b, key, dtype = ctx.b, sorting.key, dtype_of(_type(sorting))
    assert key is not None
    number = key.number(ctx, [row.load(ctx, index) for row in rows])
    above = b.apply("shift_left", b.convert(ordered(ctx, key, number), dtype), bits_of_places(sorting.extent))
    return b.apply("or", above, b.convert(ctx.position(index), dtype))
