"""Results whose extents depend on data: elements that are chosen, elements that differ, rows that are divided and put
together, and ranges. If what determines the extents is known during import, so are the results' shapes; otherwise,
the results are `Counted`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trivium.importers import loops
from trivium.importers.emit import MAX_RAMP
from trivium.importers.selection import coordinates, ranged, true_places
from trivium.importers.tensorflow.context import Context, Known, Operand, Tensor, rule, shape_of
from trivium.importers.tensorflow.counted import Counted
from trivium.importers.tensorflow.indexing import scattered
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, I1, I16, I64, is_float

# Elements that are chosen


@rule("Where")
def where(ctx: Context, condition: Tensor) -> Operand:
    """Where(condition) -> index"""
    if (known := ctx.known_if_possible(condition)) is not None:
        return np.argwhere(known).astype(np.int64)
    if ctx.room is None:
        columns = true_places(ctx, ctx.convert(ctx.value(condition), I1))
        return ctx.concatenate([ctx.unsqueeze(x, [1]) for x in columns], 1)
    shape = shape_of(condition)
    kept = ctx.reshape(ctx.convert(ctx.value(condition), I1), (math.prod(shape),))
    if not kept.type.size or not shape:
        return Counted(ctx.op, ctx.full((kept.type.size, len(shape)), 0, I64), number_of(ctx, kept))
    (places,) = chosen(ctx, kept, ctx.iota_like(kept, 0))
    columns = [ctx.unsqueeze(x, [1]) for x in coordinates(ctx, places, shape)]
    return Counted(ctx.op, ctx.concatenate(columns, 1), number_of(ctx, kept))


@rule("ListDiff")
def list_diff(ctx: Context, x: Tensor, y: Tensor) -> Sequence[Operand]:
    """ListDiff(x, y) -> out, idx"""
    kind = ctx.result_types[1].element_type
    known, others = ctx.known_unless_counted(x, "x"), ctx.known_unless_counted(y, "y")
    if known is not None and others is not None:
        places = np.flatnonzero(~np.isin(known, others))
        return known[places], places.astype(kind.dtype)
    x, y = ctx.value(x), ctx.value(y)
    is_other = _none_equals(ctx, x, y)
    found = chosen(ctx, is_other, x, ctx.iota(x.type.static_shape, 0, kind))
    return [Counted(ctx.op, each, number_of(ctx, is_other)) for each in found]


def _none_equals(ctx: Context, x: Value, y: Value) -> Value:
    """Whether each element of a list is none of another one's: equal ones are side by side in the sorted whole."""
    if not x.type.size or not y.type.size:
        return ctx.full(x.type.static_shape, True, I1)
    both = ctx.concatenate([y, x], 0)
    is_of_y = ctx.compare("LT", ctx.iota_like(both, 0), ctx.scalar(y.type.size, I64))
    groups = groups_of(ctx, ctx.unsqueeze(both, [1]))
    # A group begins with its first element, which is one of `y` if any is.
    among = ctx.take(is_of_y, groups.firsts)
    return ctx.add(ops.Not(ctx.slice(among, 0, y.type.size, both.type.size)))


def number_of(ctx: Context, kept: Value) -> Value:
    return ctx.reduce(ops.Add, ctx.convert(kept, I64), [0])


def chosen(ctx: Context, kept: Value, *lists: Value) -> list[Value]:
    """Returns the elements of lists for which an entry is true, in their order, and then the others."""
    return list(ctx.sort([ctx.add(ops.Not(kept)), *lists], 0)[1:])


# Elements that differ


class Groups(NamedTuple):
    """Equal rows: the first one that equals each, and how many there are, which is right for first ones."""

    firsts: Value
    sizes: Value


@rule("Unique", "UniqueV2")
def unique(ctx: Context, x: Tensor, *axis: Tensor) -> list[Operand]:
    """Unique(x) -> y, idx"""
    return unique_with_counts(ctx, x, *axis)[:2]


@rule("UniqueWithCounts", "UniqueWithCountsV2")
def unique_with_counts(ctx: Context, x: Tensor, *axis: Tensor) -> list[Operand]:
    """UniqueWithCounts(x) -> y, idx, count: in the order of first occurrence. NaN equals nothing."""
    d = _axis_of(ctx, len(shape_of(x)), axis)
    kind = ctx.result_types[1].element_type
    if (known := ctx.known_unless_counted(x, "x")) is not None:
        return _known_unique(known, d, kind.dtype)
    x = ctx.value(x)
    rows = ctx.transpose(x, [d, *(each for each in range(x.type.rank) if each != d)])
    count, *rest = rows.type.static_shape
    rows = ctx.reshape(rows, (count, math.prod(rest)))
    if not count:
        return [x, *[ctx.full((0,), 0, kind)] * 2]
    groups = groups_of(ctx, rows)
    place = ctx.iota((count,), 0)
    is_first = ctx.compare("EQ", groups.firsts, place)
    ranks = ctx.minus(ctx.cumulative(ops.Add, ctx.convert(is_first, I64), 0), ctx.scalar(1, I64))
    firsts, sizes = chosen(ctx, is_first, place, ctx.convert(groups.sizes, kind))
    indices, number = ctx.convert(ctx.take(ranks, groups.firsts), kind), number_of(ctx, is_first)
    return [Counted(ctx.op, ctx.take(x, firsts, d), number, dimension=d), indices, Counted(ctx.op, sizes, number)]


def _known_unique(x: Known, d: int, dtype: np.dtype) -> list[Operand]:
    rows = np.moveaxis(x, d, 0).reshape(x.shape[d], -1)
    keys = rows if rows.dtype.itemsize == 2 or rows.dtype.kind == "b" else rows + rows.dtype.type(0)  # as in `_differ`
    ranks: dict[bytes | int, int] = {}
    is_nan = np.any(rows != rows, axis=1)
    found = [(i if is_nan[i] else key.tobytes()) for i, key in enumerate(keys)]
    places = np.array([ranks.setdefault(key, len(ranks)) for key in found], np.int64)
    _, firsts, counts = np.unique(places, return_index=True, return_counts=True)
    return [np.take(x, firsts, d), places.astype(dtype), counts.astype(dtype)]


def _axis_of(ctx: Context, rank: int, axis: Sequence[Tensor]) -> int:
    given = [int(each) for x in axis for each in np.ravel(ctx.known(x, "axis"))]
    if len(given) > 1 or (not given and rank != 1):
        ctx.unsupported("axis", given, "one dimension")
    return ctx.axis(given[0], rank) if given else 0


def groups_of(ctx: Context, rows: Value) -> Groups:
    count = rows.type.static_shape[0]
    number = ctx.iota((count,), 0)
    places = _order(ctx, rows)
    ordered = ctx.take(rows, places)
    begins = ctx.reduce(ops.Or, _differ(ctx, ordered, ctx.pad(ordered, [1, 0], [-1, 0])), [1])
    begins = ctx.binary(ops.Or, begins, ctx.compare("EQ", number, ctx.full_like(number, 0)))
    start = ctx.cumulative(ops.Maximum, ctx.select(begins, number, ctx.full_like(number, 0)), 0)
    after = ctx.pad(ctx.select(begins, number, ctx.full_like(number, count)), [-1], [1], count)
    size = ctx.minus(ctx.cumulative(ops.Minimum, after, 0, reverse=True), start)
    _, firsts, sizes = ctx.sort([places, ctx.take(places, start), size], 0)
    return Groups(firsts, sizes)


def _differ(ctx: Context, x: Value, y: Value) -> Value:
    """Whether elements differ. TensorFlow takes zeros of both signs for the same number, but not in narrow floats."""
    differ = ctx.compare("NE", x, y)
    if not _is_narrow(x):
        return differ
    signs = (ctx.compare("LT", _bits(ctx, each), ctx.scalar(0, I16)) for each in (x, y))
    return ctx.binary(ops.Or, differ, ctx.compare("NE", *signs))


def _is_narrow(x: Value) -> bool:
    return is_float(x.type.element_type) and x.type.element_type.width == 16


def _bits(ctx: Context, x: Value) -> Value:
    return ctx.add(ops.BitcastConvert(x, result=x.type.with_element(I16)))


def _order(ctx: Context, rows: Value) -> Value:
    """Returns the rows' numbers in the order of the rows: sorted by one column after another, stably, the first column
    last."""
    count, width = rows.type.static_shape
    number = ctx.iota((count,), 0)
    rows = _bits(ctx, rows) if _is_narrow(rows) else rows
    if width == 1:
        return ctx.sort([ctx.reshape(rows, (count,)), number], 0)[1]

    def step(emit: Context, state: Sequence[Value], column: Sequence[Value]) -> list[Value]:
        return [emit.sort([emit.take(column[0], state[0]), state[0]], 0)[1]]

    columns = ctx.transpose(rows, [1, 0])
    return loops.scan(ctx, step, [number], [columns], [], width, reverse=True)[0]


# Rows that are divided and put together


@rule("DynamicPartition")
def dynamic_partition(ctx: Context, data: Value, partitions: Tensor, *, num_partitions: int) -> list[Operand]:
    """DynamicPartition(data, partitions; num_partitions) -> outputs..."""
    count, rank = math.prod(shape_of(partitions)), len(shape_of(partitions))
    rows = ctx.reshape(data, (count, *data.type.static_shape[rank:]))
    if (known := ctx.known_unless_counted(partitions, "partitions")) is not None:
        places = [np.flatnonzero(known.ravel() == number) for number in range(num_partitions)]
        return [ctx.take(rows, ctx.elements(at.astype(np.int32))) for at in places]
    which = ctx.reshape(ctx.value(partitions), (count,))
    _, order = ctx.sort([which, ctx.iota_like(which, 0)], 0)
    rows = ctx.take(rows, order)
    limits = [number_of(ctx, ctx.compare("LT", which, ctx.constant_like(which, n))) for n in range(num_partitions + 1)]
    # The first one is how many are negative.
    fits = ctx.compare("EQ", ctx.minus(limits[-1], limits[0]), ctx.scalar(count, I64))
    expected = f"partitions from 0 to {num_partitions - 1}"
    found = []
    for start, end in itertools.pairwise(limits):
        number = ctx.select(fits, ctx.minus(end, start), ctx.scalar(-1, I64))
        found.append(Counted(ctx.op, rows, number, start, expected=expected))
    return found


@rule("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(ctx: Context, indices: list[Tensor], data: list[Value]) -> Operand:
    """DynamicStitch(N * indices, N * data) -> merged"""
    known = [ctx.known_unless_counted(x, "indices") for x in indices]
    sizes = [math.prod(shape_of(x)) for x in indices]
    inner = data[0].type.shape[len(shape_of(indices[0])) :]
    rows = [ctx.reshape(x, (size, *inner)) for x, size in zip(data, sizes, strict=True)]
    whole = ctx.concatenate(rows, 0)
    places = [x for x in known if x is not None]
    if len(places) == len(known) or not whole.type.shape[0]:
        sources = _sources(places)
        rows = ctx.take(whole, ctx.elements(np.maximum(sources, 0)))
        return rows if (sources >= 0).all() else _zero_where_missing(ctx, rows, ctx.elements(sources))
    listed = [ctx.reshape(ctx.convert(ctx.value(x), I64), (size,)) for x, size in zip(indices, sizes, strict=True)]
    return _stitched(ctx, ctx.concatenate(listed, 0), whole)


def _sources(places: Sequence[np.ndarray]) -> np.ndarray:
    """Returns which row of the whole each row of the result is, or -1; the last one that names it counts."""
    at = np.concatenate([np.zeros(0, np.int32), *(x.ravel() for x in places)])
    sources = np.full(int(at.max(initial=-1)) + 1, -1, np.int32)
    sources[at] = np.arange(len(at))
    return sources


def _stitched(ctx: Context, at: Value, whole: Value) -> Counted:
    room = max(at.type.size, ctx.room or 0)
    last = ctx.reduce(ops.Maximum, at, [0], init=-1)
    least = ctx.reduce(ops.Minimum, at, [0], init=0)
    empty = ctx.full((room,), -1, I64)
    sources = scattered(ctx, ops.Maximum, empty, ctx.unsqueeze(at, [1]), ctx.iota_like(at, 0))
    number = ctx.select(
        ctx.compare("LT", least, ctx.scalar(0, I64)), ctx.scalar(-1, I64), ctx.plus(last, ctx.scalar(1, I64))
    )
    rows = ctx.take(whole, ctx.binary(ops.Maximum, sources, ctx.full_like(sources, 0)))
    return Counted(ctx.op, _zero_where_missing(ctx, rows, sources), number, expected="indices from 0 on")


def _zero_where_missing(ctx: Context, rows: Value, sources: Value) -> Value:
    """Replaces the rows that no index names, which TensorFlow leaves as they are in its memory."""
    named = ctx.compare("GE", sources, ctx.full_like(sources, 0))
    named = ctx.broadcast_in_dim(named, rows.type.static_shape, [0])
    return ctx.select(named, rows, ctx.full_like(rows, 0))


# Ranges

LEAST_ROOM = 1024
"""The number of elements of a range up to which one program is enough."""


@rule("Range")
def range_(ctx: Context, start: Tensor, limit: Tensor, delta: Tensor) -> Operand:
    """Range(start, limit, delta) -> output"""
    given = (start, limit, delta)
    numbers = [number for x in given if (number := ctx.known_if_possible(x)) is not None]
    if len(numbers) == len(given):
        return _known_range(ctx, *numbers)
    values = map(ctx.value, given)
    return ranged(ctx, *values) if ctx.room is None else _counted_range(ctx, *values)


def _known_range(ctx: Context, start: Known, limit: Known, delta: Known) -> Value | np.ndarray:
    first, last, step = start.item(), limit.item(), delta.item()
    if not step or (last - first) * step < 0:
        ctx.unsupported("delta", step, f"a number that leads from {first} to {last}")
    # Floats might not hold the quotient of integers; TensorFlow counts in the range's own type.
    count = -((first - last) // step) if isinstance(step, int) else math.ceil((limit - start) / delta)
    if count <= MAX_RAMP:
        return (start + np.arange(count) * delta).astype(start.dtype)
    return ctx.ramp(first, step, count, ctx.element_type)


def _counted_range(ctx: Context, start: Value, limit: Value, delta: Value) -> Counted:
    kind, wide = ctx.element_type, F64 if is_float(ctx.element_type) else I64
    zero = ctx.constant_like(delta, 0)
    if is_float(kind):  # TensorFlow counts in the range's own type
        steps = ctx.over(ctx.minus(limit, start), delta)
        count = ctx.convert(ctx.add(ops.Ceil(steps)), I64)
    else:
        start, limit, delta = (ctx.convert(x, I64) for x in (start, limit, delta))
        zero = ctx.scalar(0, I64)
        by = ctx.select(ctx.compare("EQ", delta, zero), ctx.scalar(1, I64), delta)
        steps = ctx.over(ctx.minus(limit, start), by)
        rest = ctx.compare("NE", ctx.times(steps, by), ctx.minus(limit, start))
        count = ctx.plus(steps, ctx.convert(rest, I64))
    backwards = ctx.binary(ops.Xor, ctx.compare("LT", delta, zero), ctx.compare("LT", limit, start))
    fits = ctx.binary(ops.Or, ctx.compare("EQ", start, limit), ctx.add(ops.Not(backwards)))
    fits = ctx.binary(ops.And, fits, ctx.compare("NE", delta, zero))
    start, delta = ctx.convert(start, wide), ctx.convert(delta, wide)
    room = max(ctx.room or 0, LEAST_ROOM)
    numbers = ctx.plus(start, ctx.times(ctx.iota((room,), 0, wide), delta))
    number = ctx.select(fits, count, ctx.scalar(-1, I64))
    expected = "a delta that leads from start to limit"
    return Counted(ctx.op, ctx.convert(numbers, kind), number, expected=expected, from_numbers=True)
