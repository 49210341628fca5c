"""Sorting of the indices of a row's elements, stably; the elements themselves are not moved meanwhile. Rows whose
comparator compares keys are sorted by these, by vectors (`place_sort`) or by digits (`radix`), others by a bottom-up
merge sort, with any comparator. Rows that fit in scratch memory are sorted in one launch, each separately; long rows in
one launch per pass, in which the merges of all rows are independent. Many rows of few elements are sorted by
`exchanges`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from trivium.compiler.kernel import Register
from trivium.compiler.lowering import candidates, exchanges, flag_sort, key_sort, merging, place_sort, selection
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Indices, RunTimeIndex, Variable, indices_of, variable
from trivium.compiler.lowering.launches import Launches, Temporary
from trivium.compiler.lowering.orders import is_order
from trivium.compiler.lowering.radix import COUNTS, Key, Order, distribute, key_of, key_of_number, passes
from trivium.compiler.lowering.row import Row
from trivium.compiler.lowering.rules import kernel
from trivium.compiler.lowering.scalars import Scalar, dtype_of
from trivium.compiler.lowering.sorted_rows import Sorting, copied_row, readable, temporary, where, widths
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.types import I32, I64, Type

SHARE = 8
"""The fewest times as many elements as are needed: of shorter rows, all are sorted."""


class WayToSelect(Protocol):
    """A way to find the largest keys of a row, if only a few are needed: of a type, `count` among `extent`."""

    def scratch_bytes(self, key: Type, count: int) -> int:
        """Returns the scratch memory that it takes, beside the keys of the row."""
        ...

    def select(self, ctx: LoweringContext, keys: Row, kind: Type, extent: int, count: int) -> Row:
        """Returns the places of these keys, in order."""
        ...


@kernel(ops.Sort)
def sort(launches: Launches, op: ops.Sort) -> None:
    dimension = op.dimension % op.inputs[0].type.rank

    def less(ctx: LoweringContext, one: list[Scalar], other: list[Scalar]) -> Register:
        pairs = [scalar for pair in zip(one, other, strict=True) for scalar in pair]
        return ctx.region(op.comparator, pairs)[0]  # type: ignore[return-value]

    def finish(ctx: LoweringContext, at: Indices, elements: list[Scalar], _: Register) -> None:
        for result, element in zip(op.results, elements, strict=True):
            ctx.store(result, at, element)

    count, key = _needed(op, dimension), key_of(op.comparator)
    _sort(launches, Sorting(op, op.inputs, dimension, count, less, finish, key, is_order(op.comparator)))


def _needed(op: ops.Sort, dimension: int) -> int:
    """Returns how many of the first elements of the sorted rows anything reads: no more than slices of them take."""
    users = [user for result in op.results for user in result.users]
    taken = [user.limit_indices[dimension] if isinstance(user, ops.Slice) else None for user in users]
    limits = [limit for limit in taken if limit is not None]
    known, extent = bool(limits) and len(limits) == len(taken), op.inputs[0].type.shape[dimension]
    return min(max(1, *limits), extent) if known else extent


@kernel(ops.TopK)
def top_k(launches: Launches, op: ops.TopK) -> None:
    """The first `k` elements of a stable sort in descending order; NaN is greater than all numbers."""

    def greater(ctx: LoweringContext, one: list[Scalar], other: list[Scalar]) -> Register:
        return _is_greater(ctx, one[0], other[0])  # type: ignore[arg-type]

    def finish(ctx: LoweringContext, at: Indices, elements: list[Scalar], place: Register) -> None:
        ctx.store(op.values, at, elements[0])
        ctx.store(op.indices, at, ctx.b.convert(place, "i32"))

    key = key_of_number(op.operand.type.element_type, descending=True)
    _sort(launches, Sorting(op, [op.operand], op.operand.type.rank - 1, op.k, greater, finish, key, places=True))


def _is_greater(ctx: LoweringContext, one: Register, other: Register) -> Register:
    total = one.dtype.startswith(("f", "bf"))
    return ctx.b.compare("GT", one, other, total_order=total)


def _sort(launches: Launches, sorting: Sorting) -> None:
    if exchanges.is_possible(sorting):
        exchanges.sort(launches, sorting)
        return
    if launches.target.shared_memory_bytes and sorting.is_order and sorting.extent >= merging.SHORTEST:
        merging.sort(launches, sorting)
        return
    if flag_sort.is_possible(sorting, launches.target):
        flag_sort.sort(launches, sorting)
        return
    limits, (_, outer) = launches.target.fusion, sorting.variables()
    rows = math.prod(v.extent for v in outer)
    by_vectors = key_sort.is_possible(sorting, launches.target) and not _way_to_select(sorting, launches.target)
    by_places = place_sort.is_possible(sorting, launches.target)
    if limits.scratch_bytes < COUNTS and not (by_vectors or by_places):
        sorting = replace(sorting, key=None)
    way = _way_to_select(sorting, launches.target)
    one_launch = rows > 1 or sorting.extent <= limits.serial_row or way is not None
    in_scratch = sorting.scratch_bytes <= limits.scratch_bytes and one_launch
    if by_vectors:
        if in_scratch:
            key_sort.sort_in_scratch(launches, sorting, place_sort.sort_in_scratch if by_places else _distributed)
        else:
            in_order = place_sort.sort_in_passes if by_places else _distribute_in_passes
            key_sort.sort_in_passes(launches, sorting, in_order)
    elif in_scratch:
        _sort_in_scratch(launches, sorting)
    elif way and way.scratch_bytes(_largest_first(sorting).type, sorting.count) <= limits.scratch_bytes:
        _select_in_memory(launches, sorting, way)
    else:
        _sort_in_passes(launches, sorting)


def _sort_in_scratch(launches: Launches, sorting: Sorting) -> None:
    variables, outer = sorting.variables()
    with launches.kernel() as ctx, ctx.nest(outer):
        rows = [copied_row(ctx, sorting, operand, variables) for operand in sorting.operands]
        order = _way(sorting, launches.target)(ctx, sorting, rows, variables[sorting.dimension])
        first = Variable(sorting.count)
        with ctx.parallel([first]):
            sorting.end(ctx, rows, order, sorting.at(variables, first))


def _way_to_select(sorting: Sorting, target: Target) -> WayToSelect | None:
    """Returns the way to find the first elements of a row, if only a few are needed."""
    if sorting.key is None or not sorting.has_digits:
        return None
    way = candidates if candidates.is_possible(target, sorting.key.type, sorting.extent) else selection
    return way if sorting.count <= min(way.MOST, sorting.extent // SHARE) else None


def _way(sorting: Sorting, target: Target) -> key_sort.Distribute:
    """Returns the way to sort a row in scratch."""
    if way := _way_to_select(sorting, target):
        return partial(_selected, way=way)
    if place_sort.is_possible(sorting, target):
        return place_sort.sort_in_scratch
    return _distributed if sorting.has_digits else _merged


def _merged(ctx: LoweringContext, sorting: Sorting, rows: Sequence[Row], along: Variable) -> Row:
    """Sorts a row by merges in scratch, and returns the order."""
    source, target = (Row(ctx.scratch(I64, [sorting.extent])) for _ in range(2))
    with ctx.parallel([along]):
        _begin(ctx, source, along, I64)
    for width in widths(sorting.extent):
        runs = Variable(-(-sorting.extent // (2 * width)))
        with ctx.parallel([runs]):
            _merge(ctx, sorting, rows, (source, target), runs, width)
        source, target = target, source
    return source


def _distributed(ctx: LoweringContext, sorting: Sorting, rows: Sequence[Row], along: Variable) -> Row:
    """Sorts a row by digits in scratch, and returns the order."""
    key, extent = sorting.key, sorting.extent
    assert key is not None
    source, target = (Order(Row(ctx.scratch(key.type, [extent])), Row(ctx.scratch(I32, [extent]))) for _ in range(2))
    with ctx.parallel([along]):
        _store_keys(ctx, key, rows, source.keys, along)  # the first pass knows their places
    for step in passes(key.bits, extent):
        distribute(ctx, step, source, target, extent)
        source, target = target, source
    return source.places


def _selected(ctx: LoweringContext, sorting: Sorting, rows: Sequence[Row], along: Variable, *, way: WayToSelect) -> Row:
    """Finds the first elements of a row, and returns their order."""
    key = _largest_first(sorting)
    keys = Row(ctx.scratch(key.type, [sorting.extent]))
    with ctx.parallel([along]):
        _store_keys(ctx, key, rows, keys, along)
    return way.select(ctx, keys, key.type, sorting.extent, sorting.count)


def _largest_first(sorting: Sorting) -> Key:
    """Returns a key that is the larger the earlier an element comes."""
    assert sorting.key is not None
    return replace(sorting.key, descending=not sorting.key.descending)


def _select_in_memory(launches: Launches, sorting: Sorting, way: WayToSelect) -> None:
    """Finds the first elements of rows whose keys do not fit in scratch."""
    variables, outer = sorting.variables()
    rows, along, first = (
        readable(launches, sorting, outer),
        variables[sorting.dimension],
        Variable(sorting.count),
    )
    key = _largest_first(sorting)
    keys = temporary(sorting, outer, key.type)
    with launches.kernel("_begin") as ctx, ctx.nest([*outer, along]):
        _store_keys(ctx, key, rows, keys, along)
    with launches.kernel("_select") as ctx, ctx.nest(outer):
        order = way.select(ctx, keys, key.type, sorting.extent, sorting.count)
        with ctx.parallel([first]):
            sorting.end(ctx, rows, order, sorting.at(variables, first))


def _store_keys(ctx: LoweringContext, key: Key, rows: Sequence[Row], keys: Row, along: Variable) -> None:
    """Stores the keys of a row's elements."""
    (index,) = indices_of([along])
    keys.store(ctx, index, key(ctx, [row.load(ctx, index) for row in rows]))


def _sort_in_passes(launches: Launches, sorting: Sorting) -> None:
    variables, outer = sorting.variables()
    rows, along = readable(launches, sorting, outer), variables[sorting.dimension]
    if place_sort.is_possible(sorting, launches.target):
        order = place_sort.sort_in_passes(launches, sorting, rows, outer, along)
    else:
        order = (_distribute_in_passes if sorting.has_digits else _merge_in_passes)(
            launches, sorting, rows, outer, along
        )
    first = Variable(sorting.count)
    with launches.kernel("_end") as ctx, ctx.nest([first if v is along else v for v in variables]):
        sorting.end(ctx, rows, order, sorting.at(variables, first))


def _merge_in_passes(
    launches: Launches, sorting: Sorting, rows: Sequence[Row], outer: Sequence[Variable], along: Variable
) -> Row:
    # Passes over less memory are faster.
    place = I32 if sorting.extent < 1 << 31 else I64
    source, target = (temporary(sorting, outer, place) for _ in range(2))
    with launches.kernel("_begin") as ctx, ctx.nest([*outer, along]):
        _begin(ctx, source, along, place)
    for width in widths(sorting.extent):
        runs = Variable(-(-sorting.extent // (2 * width)))
        with launches.kernel(f"_merge{width}") as ctx, ctx.nest([*outer, runs]):
            _merge(ctx, sorting, rows, (source, target), runs, width)
        source, target = target, source
    return source


def _distribute_in_passes(
    launches: Launches,
    sorting: Sorting,
    rows: Sequence[Row],
    outer: Sequence[Variable],
    along: Variable,
    only: Temporary | None = None,
) -> Row:
    """Sorts rows by digits, `only` those for which a flag is set, and returns the order."""
    key = sorting.key
    assert key is not None
    source, target = (Order(temporary(sorting, outer, key.type), temporary(sorting, outer, I32)) for _ in range(2))
    with launches.kernel("_begin") as ctx, ctx.nest([*outer, along]), where(ctx, only, outer):
        _store_keys(ctx, key, rows, source.keys, along)
    for step in passes(key.bits, sorting.extent):
        with launches.kernel(f"_digit{step.shift}") as ctx, ctx.nest(outer), where(ctx, only, outer):
            distribute(ctx, step, source, target, sorting.extent)
        source, target = target, source
    return source.places


def _begin(ctx: LoweringContext, order: Row, along: Variable, kind: Type) -> None:
    """Stores the initial order: every element at its original place."""
    (index,) = indices_of([along])
    order.store(ctx, index, ctx.b.convert(ctx.position(index), dtype_of(kind)))


def _merge(
    ctx: LoweringContext, sorting: Sorting, rows: Sequence[Row], order: tuple[Row, Row], runs: Variable, width: int
) -> None:
    """Merges a run of `width` elements with the next run, from the first of `order` to the second. Of equal elements,
    the left one goes first."""
    b, extent, (source, target) = ctx.b, sorting.extent, order
    start = ctx.position(indices_of([runs])[0] * (2 * width))
    middle = b.apply("minimum", b.add(start, width), extent)
    end = b.apply("minimum", b.add(start, 2 * width), extent)
    frame = b.sequential(b.subtract(end, start), inits=[start, middle])
    with frame, ctx.scope():
        left, right = frame.carried
        one, other = (source.load(ctx, sorting.known(b.apply("minimum", side, extent - 1))) for side in frame.carried)
        elements = [
            [row.load(ctx, sorting.known(b.convert(place, "i64"))) for row in rows]  # type: ignore[arg-type]
            for place in (other, one)
        ]
        more_left, more_right = b.compare("LT", left, middle), b.compare("LT", right, end)
        other_first = sorting.less(ctx, *elements)
        takes_right = b.apply("and", more_right, b.apply("or", b.apply("not", more_left), other_first))
        index = variable(RunTimeIndex(start, extent - 1)) + variable(RunTimeIndex(frame.index, extent - 1))
        target.store(ctx, index, b.select(takes_right, other, one))  # type: ignore[arg-type]
        step = b.convert(takes_right, "i64")
        frame.yield_(b.add(left, b.subtract(b.index(1), step)), b.add(right, step))
