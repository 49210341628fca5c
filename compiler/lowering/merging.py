"""Sorts for devices whose threads share scratch memory in groups: every pass merges pairs of runs, and each thread
finds one element of the result by bisection, so that all of them work at once. A group sorts a row, or a tile of a long
one, in scratch; the tiles of long rows are merged in one launch per pass. It is stable. Only comparators that order all
elements (`orders`) are for it: with others, threads would not agree on what comes next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trivium.compiler.kernel import Register
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, RunTimeIndex, Variable, indices_of, variable
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.lowering.row import Row
from trivium.compiler.lowering.scalars import Scalar, dtype_of
from trivium.compiler.lowering.sorted_rows import Sorting, copied_row, stored, temporary, widths
from trivium.ir.types import I32, I64, Type

SHORTEST = 64
"""Rows of fewer elements are one thread's work."""

LONGEST_TILE = 2048
"""The most elements that a group of threads sorts."""


@dataclass(frozen=True)
class Run:
    """Elements in the order so far: their places in the row and, if they are sorted by keys, these."""

    places: Row
    keys: Row | None

    def load(self, ctx: LoweringContext, index: Index) -> list[Scalar]:
        return [row.load(ctx, index) for row in self._rows]

    def store(self, ctx: LoweringContext, index: Index, moved: Sequence[Scalar]) -> None:
        for row, scalar in zip(self._rows, moved, strict=True):
            row.store(ctx, index, scalar)

    @property
    def _rows(self) -> list[Row]:
        return [self.places] if self.keys is None else [self.places, self.keys]


Before = Callable[[LoweringContext, list[Scalar], list[Scalar]], Register]
"""Whether one element of a run comes before another."""


def sort(launches: Launches, sorting: Sorting) -> None:
    """Sorts rows in scratch, each in one launch, or in tiles."""
    if sorting.extent <= _tile(launches, sorting):
        _sort_rows(launches, sorting)
    else:
        _sort_tiles(launches, sorting)


def _tile(launches: Launches, sorting: Sorting) -> int:
    """Returns the number of elements of which a group of threads has everything in scratch: a power of two."""
    elements = sum(operand.type.dtype.itemsize for operand in sorting.operands)
    key = sorting.key.bits // 8 if sorting.key else 0
    each = elements + 2 * (_place_type(sorting).dtype.itemsize + key)  # type: ignore[attr-defined]
    return min(LONGEST_TILE, 1 << (launches.target.group_scratch_bytes // each).bit_length() - 1)


def _place_type(sorting: Sorting) -> Type:
    return I32 if sorting.extent < 1 << 31 else I64


def _before(sorting: Sorting, rows: Sequence[Row], extent: int) -> Before:
    """Returns how elements of a run are compared; their places are in [0, extent) of `rows`."""

    def by_keys(ctx: LoweringContext, one: list[Scalar], other: list[Scalar]) -> Register:
        return ctx.b.compare("LT", one[1], other[1])  # type: ignore[arg-type]

    def by_elements(ctx: LoweringContext, one: list[Scalar], other: list[Scalar]) -> Register:
        known = [variable(RunTimeIndex(ctx.b.convert(p, "i64"), extent - 1)) for p in (one[0], other[0])]  # type: ignore[arg-type]
        with ctx.scope():
            return sorting.less(ctx, *([row.load(ctx, place) for row in rows] for place in known))

    return by_keys if sorting.key else by_elements


def _sort_rows(launches: Launches, sorting: Sorting) -> None:
    variables, outer = sorting.variables()
    along, first = variables[sorting.dimension], Variable(sorting.count)
    with launches.kernel() as ctx, ctx.nest(outer):
        rows = [copied_row(ctx, sorting, operand, variables) for operand in sorting.operands]
        run = _sorted_in_scratch(ctx, sorting, rows, along.extent, along.extent)
        with ctx.parallel([first]):
            sorting.end(ctx, rows, run.places, sorting.at(variables, first))


def _sorted_in_scratch(
    ctx: LoweringContext, sorting: Sorting, rows: Sequence[Row], extent: int, end: Register | int
) -> Run:
    """Returns the order of the first `end` of `extent` elements."""
    kind, key = _place_type(sorting), sorting.key

    def run() -> Run:
        return Run(Row(ctx.scratch(kind, [extent])), Row(ctx.scratch(key.type, [extent])) if key else None)

    source, target, each = run(), run(), Variable(extent)
    with ctx.parallel([each]):
        (index,) = indices_of([each])
        place = ctx.b.convert(ctx.position(index), dtype_of(kind))
        source.store(ctx, index, [place, *([key(ctx, [row.load(ctx, index) for row in rows])] if key else [])])
    before = _before(sorting, rows, extent)
    for width in widths(extent):
        each = Variable(extent)
        with ctx.parallel([each]):
            _merge(ctx, before, source, target, each, width, end)
        source, target = target, source
    return source


def _merge(
    ctx: LoweringContext, before: Before, source: Run, target: Run, each: Variable, width: int, end: Register | int
) -> None:
    """Stores the element at `each` after merging runs of `width` elements with their neighbours, if it is before `end`:
    from there on, nothing is defined."""
    if isinstance(end, int):
        _merge_at(ctx, before, source, target, each, width, end)
        return
    with ctx.block(ctx.b.if_(ctx.b.compare("LT", ctx.position(indices_of([each])[0]), end))):
        _merge_at(ctx, before, source, target, each, width, end)


def _merge_at(
    ctx: LoweringContext, before: Before, source: Run, target: Run, each: Variable, width: int, end: Register | int
) -> None:
    """Finds how many of the elements before this one are from the left run, which goes first where elements are equal;
    then the next element of one of the runs is the one that belongs here."""
    b, extent = ctx.b, each.extent
    (index,) = indices_of([each])
    place, start = ctx.position(index), ctx.position(index // (2 * width) * (2 * width))
    middle, stop = (b.apply("minimum", b.add(start, count), end) for count in (width, 2 * width))
    taken, right = b.subtract(place, start), b.subtract(stop, middle)

    def at(position: Register) -> list[Scalar]:
        last = end - 1 if isinstance(end, int) else b.subtract(end, 1)
        return source.load(ctx, variable(RunTimeIndex(b.clamp(0, position, last), extent - 1)))

    low = b.apply("maximum", b.subtract(taken, right), 0)
    high = b.apply("minimum", taken, b.subtract(middle, start))
    frame = b.sequential(width.bit_length(), inits=[low, high])
    with frame, ctx.scope():
        low, high = frame.carried
        half = b.divide(b.add(low, high), 2)
        is_open = b.compare("LT", low, high)
        # The last of the right run's `taken - half` elements, and the left run's next one.
        one, other = at(b.subtract(b.add(middle, b.subtract(taken, half)), 1)), at(b.add(start, half))
        more = b.apply("not", before(ctx, one, other))
        up, down = b.apply("and", is_open, more), b.apply("and", is_open, b.apply("not", more))
        frame.yield_(b.select(up, b.add(half, 1), low), b.select(down, half, high))
    left = frame.results[0]
    ends = b.compare("GE", b.add(start, left), middle)
    more_right = b.compare("LT", b.subtract(taken, left), right)
    one, other = b.add(middle, b.subtract(taken, left)), b.add(start, left)
    right_first = before(ctx, at(one), at(other))
    takes_right = b.apply("or", ends, b.apply("and", more_right, right_first))
    target.store(ctx, index, at(b.select(takes_right, one, other)))


def _sort_tiles(launches: Launches, sorting: Sorting) -> None:
    """Sorts tiles in scratch, and merges them in passes."""
    variables, outer = sorting.variables()
    around = indices_of(outer)
    before, after = around[: sorting.dimension], around[sorting.dimension :]
    rows = [Row(stored(launches, sorting, n), before, after) for n in range(len(sorting.operands))]
    along, tile, key = variables[sorting.dimension], _tile(launches, sorting), sorting.key
    source, target = (
        Run(temporary(sorting, outer, _place_type(sorting)), temporary(sorting, outer, key.type) if key else None)
        for _ in range(2)
    )
    with launches.kernel("_tiles") as ctx:
        tiles = Variable(-(-sorting.extent // tile))
        with ctx.nest([*outer, tiles]):
            _sort_tile(ctx, sorting, rows, source, tiles, tile)
    for width in widths(sorting.extent):
        if width >= tile:
            with launches.kernel(f"_merge{width}") as ctx, ctx.nest([*outer, along]):
                _merge(ctx, _before(sorting, rows, along.extent), source, target, along, width, along.extent)
            source, target = target, source
    first = Variable(sorting.count)
    with launches.kernel("_end") as ctx, ctx.nest([first if v is along else v for v in variables]):
        sorting.end(ctx, rows, source.places, sorting.at(variables, first))


def _sort_tile(
    ctx: LoweringContext, sorting: Sorting, rows: Sequence[Row], target: Run, tiles: Variable, tile: int
) -> None:
    """Sorts the elements of one tile; the last one may be shorter."""
    (number,), extent, b = indices_of([tiles]), sorting.extent, ctx.b
    first, whole = ctx.position(number * tile), extent % tile == 0
    end = tile if whole else b.apply("minimum", b.subtract(extent, first), tile)
    own = [Row(ctx.scratch(operand.type.element_type, [tile])) for operand in sorting.operands]
    each = Variable(tile)
    with ctx.parallel([each]):
        (index,) = indices_of([each])
        # Elements beyond the end of the row are never looked at.
        at = b.apply("minimum", ctx.position(number * tile + index), extent - 1)
        for row, copy in zip(rows, own, strict=True):
            copy.store(ctx, index, row.load(ctx, variable(RunTimeIndex(at, extent - 1))))
    run = _sorted_in_scratch(ctx, sorting, own, tile, end)
    each = Variable(tile)
    with ctx.parallel([each]):
        (index,) = indices_of([each])
        place, *moved = run.load(ctx, index)
        place = b.add(place, b.convert(first, place.dtype))  # type: ignore[union-attr,arg-type]

        def store() -> None:
            to = variable(RunTimeIndex(ctx.position(number * tile + index), extent - 1))
            target.store(ctx, to, [place, *moved])

        if whole:
            store()
        else:
            with ctx.block(b.if_(b.compare("LT", ctx.position(index), end))):
                store()
