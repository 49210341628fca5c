"""Sorting of rows of few elements, such as the nine of a filter's window or the scores of a few experts: neighbours are
exchanged, all of it written out, so that lanes sort a row each. Equal elements are never exchanged, and stay in
order."""

from __future__ import annotations

from dataclasses import dataclass

from trivium.compiler.kernel import Register
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.elementwise import each
from trivium.compiler.lowering.index import Indices, Variable, constant, indices_of
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.lowering.scalars import Scalar
from trivium.compiler.lowering.sorted_rows import Sorting

LONGEST = 16
"""The length of the longest rows."""
FEWEST_ROWS = 16
"""The number of rows from which vectors are filled with them."""
LARGEST = 512
"""The number of instructions up to which exchanges are written out."""


@dataclass(frozen=True)
class _Element:
    """What belongs to a place of a row: its key if there are keys, the elements of all operands, and its first place
    if that is needed."""

    key: Register | None
    values: list[Scalar]
    place: Register


def is_possible(sorting: Sorting) -> bool:
    """Whether rows are short, and there are enough of them."""
    extent, rows = sorting.extent, sorting.operands[0].type.size // max(1, sorting.extent)
    if not (2 <= extent <= LONGEST and rows >= FEWEST_ROWS and (sorting.key is not None or sorting.is_order)):
        return False
    exchanges = sum(extent - 1 - first for first in range(sorting.count))
    return exchanges * (1 + 2 * (len(sorting.operands) + 1)) <= LARGEST


def sort(launches: Launches, sorting: Sorting) -> None:
    variables, outer = sorting.variables()
    with launches.kernel() as ctx, ctx.nest(outer):
        row = [_element(ctx, sorting, variables, place) for place in range(sorting.extent)]
        for first in range(min(sorting.count, sorting.extent - 1)):
            # The least one of those that are left moves to the front.
            for place in range(sorting.extent - 1, first, -1):
                row[place - 1 : place + 1] = _in_order(ctx, sorting, row[place - 1], row[place])
        for place, element in enumerate(row[: sorting.count]):
            sorting.finish(ctx, _at(sorting, variables, place), element.values, element.place)


def _at(sorting: Sorting, variables: list[Variable], place: int) -> Indices:
    return tuple(constant(place) if d == sorting.dimension else i for d, i in enumerate(indices_of(variables)))


def _element(ctx: LoweringContext, sorting: Sorting, variables: list[Variable], place: int) -> _Element:
    at = _at(sorting, variables, place)
    values = [ctx.element(operand, at) for operand in sorting.operands]
    key = sorting.key(ctx, values) if sorting.key is not None else None
    return _Element(key, values, ctx.b.constant(place, "i32"))


def _in_order(ctx: LoweringContext, sorting: Sorting, one: _Element, other: _Element) -> list[_Element]:
    """Returns two neighbours, exchanged if the second one comes before the first."""
    if one.key is not None and other.key is not None:
        before = ctx.b.compare("LT", other.key, one.key)
    else:
        before = sorting.less(ctx, other.values, one.values)
    pairs = [(one, other), (other, one)]
    return [
        _Element(
            None if a.key is None else ctx.b.select(before, b.key, a.key),  # type: ignore[arg-type]
            [each(lambda x, y: ctx.b.select(before, y, x), *both) for both in zip(a.values, b.values, strict=True)],
            ctx.b.select(before, b.place, a.place) if sorting.places else a.place,
        )
        for a, b in pairs
    ]
