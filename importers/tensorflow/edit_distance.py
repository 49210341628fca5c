"""Distances of Levenshtein between the rows of two sparse tensors, for all rows at once: each turn of a loop takes the
next element of every hypothesis, and computes the next row of every table of distances, which lie in one list."""

from __future__ import annotations

import math
from typing import NamedTuple

from trivium.importers.extents import Extent, larger
from trivium.importers.tensorflow.context import Context, Tensor, rule
from trivium.importers.tensorflow.indexing import scattered
from trivium.importers.tensorflow.sparse_order import columns
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I1, I64


class _Rows(NamedTuple):
    """The elements of rows, side by side: the row of each element, where rows begin, and how long they are."""

    rows: Value
    values: Value
    starts: Value
    lengths: Value


@rule("EditDistance")
def edit_distance(
    ctx: Context,
    hypothesis_indices: Value,
    hypothesis_values: Value,
    hypothesis_shape: Tensor,
    truth_indices: Value,
    truth_values: Value,
    truth_shape: Tensor,
    *,
    normalize: bool,
) -> Value:
    """EditDistance(hypothesis_indices, hypothesis_values, hypothesis_shape, truth_indices, truth_values, truth_shape;
    normalize=true) -> output. NaN where rows are not in order, or not in the shape of the result."""
    shapes = [ctx.given_shape(hypothesis_shape, "hypothesis_shape"), ctx.given_shape(truth_shape, "truth_shape")]
    rank = len(shapes[0])
    _require_rows(ctx, "hypothesis_indices", hypothesis_indices, hypothesis_values, rank)
    _require_rows(ctx, "truth_indices", truth_indices, truth_values, rank)
    extents = [larger(ctx, a, b) for a, b in zip(*(shape[:-1] for shape in shapes), strict=True)]
    if 0 in extents:
        ctx.unsupported("hypothesis_shape", "no rows, as truth_shape", "at least one")
    count = math.prod(extents)
    hypothesis = _rows_of(ctx, hypothesis_indices, hypothesis_values, extents, count)
    truth = _rows_of(ctx, truth_indices, truth_values, extents, count)
    distance, length = ctx.convert(_distances(ctx, hypothesis, truth), F32), ctx.convert(truth.lengths, F32)
    if normalize:
        zero = ctx.full_like(length, 0)
        share = ctx.over(distance, length)
        distance = ctx.select(ctx.compare("EQ", distance, zero), zero, share)
    is_valid = ctx.binary(ops.And, *(_are_in_order(ctx, x.rows, count) for x in (hypothesis, truth)))
    return ctx.reshape(ctx.select(is_valid, distance, ctx.full_like(distance, math.nan)), extents)


def _require_rows(ctx: Context, argument: str, indices: Value, values: Value, rank: int) -> None:
    (count, width), (size,) = indices.type.shape, values.type.shape
    if width != rank or (count != size and None not in (count, size)):
        ctx.unsupported(argument, indices.type, f"a row of {rank} numbers for each of {values.type}")


def _rows_of(ctx: Context, indices: Value, values: Value, extents: list[Extent], count: Extent) -> _Rows:
    row = ctx.full(ctx.extents(indices)[:1], 0, I64)
    for extent, column in zip(extents, columns(ctx, indices)[:-1], strict=True):
        row = ctx.plus(ctx.times(row, ctx.number_as(extent, I64)), column)
    lengths = scattered(ctx, ops.Add, ctx.full([count], 0, I64), ctx.unsqueeze(row, [1]), ctx.full_like(row, 1))
    return _Rows(row, values, ctx.cumulative(ops.Add, lengths, 0, exclusive=True), lengths)


def _are_in_order(ctx: Context, rows: Value, count: Extent) -> Value:
    """Whether no element is in a row before that of the last element, nor in one that does not exist."""
    is_later = ctx.compare("GE", rows, ctx.pad(rows, [1], [-1]))
    exists = ctx.compare("LT", rows, ctx.number_as(count, I64))
    return ctx.reduce(ops.And, ctx.binary(ops.And, is_later, exists), [0])


def _distances(ctx: Context, hypothesis: _Rows, truth: _Rows) -> Value:
    """Returns the distance of each row. Its table has an entry for no element of the truth, and one for each."""
    cells = _cells(ctx, truth)
    # One more element, so that there is one to take.
    values = ctx.pad(hypothesis.values, [0], [1])
    start, length = (ctx.take(x, cells.row) for x in (hypothesis.starts, hypothesis.lengths))
    # Larger for each row than for the one after it, by more than entries of a row can differ.
    most = ctx.extent(hypothesis.rows, 0) + 2 * ctx.extent(truth.rows, 0) + 3
    offset = ctx.plus(cells.place, ctx.times(cells.row, ctx.number_as(most, I64)))
    one = ctx.scalar(1, I64)

    def condition(emit: Context, turn: Value, _: Value) -> Value:
        return emit.compare("LT", turn, emit.reduce(ops.Maximum, length, [0]))

    def body(emit: Context, turn: Value, before: Value) -> list[Value]:
        value = emit.take(values, emit.plus(start, turn))
        cost = emit.convert(emit.compare("NE", value, cells.value), I64)
        both = emit.binary(ops.Minimum, emit.plus(before, one), emit.plus(emit.pad(before, [1], [-1]), cost))
        both = emit.select(cells.is_head, emit.broadcast(emit.plus(turn, one), emit.extents(both)), both)
        # An entry is at most one more than the entry to its left.
        least = emit.cumulative(ops.Minimum, emit.minus(both, offset), 0)
        after = emit.plus(least, offset)
        return [emit.plus(turn, one), emit.select(emit.compare("LT", turn, length), after, before)]

    carried = [ctx.scalar(0, I64), cells.place]
    types = [x.type for x in carried]
    found = ctx.add(ops.While(carried, ctx.region(types, condition), ctx.region(types, body)))[1]
    heads = ctx.plus(truth.starts, ctx.iota_like(truth.starts, 0))
    return ctx.take(found, ctx.plus(heads, truth.lengths))


class _Cells(NamedTuple):
    """The entries of all tables: the row, the element of the truth, and its place in it; whether there is none."""

    row: Value
    value: Value
    place: Value
    is_head: Value


def _cells(ctx: Context, truth: _Rows) -> _Cells:
    number = ctx.iota_like(truth.lengths, 0)
    row = ctx.concatenate([number, truth.rows], 0)
    head = ctx.full(ctx.extents(number), 0, truth.values.type.element_type)
    is_head = ctx.concatenate([ctx.full(ctx.extents(x), x is number, I1) for x in (number, truth.rows)], 0)
    row, value, is_head = ctx.sort([row, ctx.concatenate([head, truth.values], 0), is_head], 0)
    place = ctx.iota_like(row, 0)
    start = ctx.cumulative(ops.Maximum, ctx.select(is_head, place, ctx.full_like(place, 0)), 0)
    return _Cells(row, value, ctx.minus(place, start), is_head)
