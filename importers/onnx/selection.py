"""Elements that are chosen by their values: how many there are is known when the program runs, unless what chooses them
is a constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trivium.importers.extents import Extent, Size, numbers_of, smaller
from trivium.importers.onnx.context import Context, axis_of, require_rank, rule
from trivium.importers.onnx.indexing import scattered
from trivium.importers.selection import coordinates, selected
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.known import evaluate_known
from trivium.ir.types import I1, I64, TensorType, is_boolean, is_float


def places_of(ctx: Context, kept: Value) -> Value:
    """Returns the positions in a list of booleans that are true, in their order."""
    known = evaluate_known(kept)
    if known is not None:
        return ctx.elements(np.flatnonzero(known).astype(np.int64))
    return selected(ctx, kept, ctx.iota_like(kept, 0))[0]


@rule("NonZero")
def non_zero(ctx: Context, x: Value) -> Value:
    """NonZero(X): the index of each element that is not zero, in a column"""
    x = ctx.reshape(x, (1,)) if not x.type.rank else x
    shape = ctx.extents(x)
    kept = x if is_boolean(x.type.element_type) else ctx.compare("NE", x, ctx.full_like(x, 0))
    places = places_of(ctx, ctx.reshape(kept, [math.prod(shape)]))
    return ctx.concatenate([ctx.unsqueeze(row, [0]) for row in coordinates(ctx, places, shape)], 0)


@rule("Compress")
def compress(ctx: Context, x: Value, condition: Value, axis: int | None = None) -> Value:
    """Compress(input, condition, axis): the slices, or the elements, whose condition is true"""
    if axis is None:
        x, axis = ctx.reshape(x, [math.prod(ctx.extents(x))]), 0
    axis = axis_of(axis, x.type.rank)
    require_rank(condition, "condition", 1)
    given, extent = ctx.extent(condition, 0), ctx.extent(x, axis)
    if (known := numbers_of([given, extent])) is not None and known[0] > known[1]:
        ctx.unsupported("condition", f"{known[0]} elements", f"at most {known[1]}")
    # A condition that turns out to be longer tells nothing of what is not there.
    return ctx.take(x, places_of(ctx, ctx.slice(condition, 0, 0, smaller(ctx, given, extent))), axis)


class Groups(NamedTuple):
    """Equal elements: the position of the first one like each element, and the number of its group."""

    firsts: Value
    groups: Value


@rule("Unique")
def unique(ctx: Context, x: Value, axis: int | None = None, sorted: int = 1) -> Sequence[Value]:
    """Unique(X, axis, sorted): elements or slices, where each is first, which one each of X is, how often it occurs"""
    if axis is None:
        x, axis = ctx.reshape(x, [math.prod(ctx.extents(x))]), 0
        found = _groups_of_elements(ctx, x, bool(sorted))
    else:
        axis = axis_of(axis, x.type.rank)
        order = [axis, *(d for d in range(x.type.rank) if d != axis)]
        rows = ctx.transpose(x, order)
        extents = ctx.extents(rows)
        rows = ctx.reshape(rows, (extents[0], math.prod(extents[1:])))
        found = _groups_of_rows(ctx, rows, bool(sorted))
    room = ctx.full_like(found.groups, 0)
    numbers = ops.ScatterDimensionNumbers(
        inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1
    )
    at = ctx.unsqueeze(found.groups, [1])
    count = _count_of(ctx, found)
    indices = ctx.slice(scattered(ctx, room, at, found.firsts, numbers), 0, 0, count)
    counts = ctx.slice(scattered(ctx, room, at, ctx.full_like(room, 1), numbers, "add"), 0, 0, count)
    return ctx.take(x, indices, axis), indices, found.groups, counts


def _count_of(ctx: Context, found: Groups) -> Extent:
    """Returns the number of groups."""
    if found.firsts.type.shape == (0,):
        return 0
    is_first = _is_first(ctx, found.firsts)
    known = evaluate_known(is_first)
    if known is not None:
        return int(known.sum())
    return Size(ctx, ctx.reduce(ops.Add, ctx.convert(is_first, I64), [0]), is_extent=True)


def _is_first(ctx: Context, firsts: Value) -> Value:
    return ctx.compare("EQ", firsts, ctx.iota_like(firsts, 0))


def _groups_of_elements(ctx: Context, x: Value, in_order: bool) -> Groups:
    """Groups the elements of a list; the groups are numbered in the order of elements, or by their first ones."""
    key = ctx.sorted_as(x) if is_float(x.type.element_type) else x
    values, places = ctx.sort([key, ctx.iota_like(x, 0)], 0)
    begins = ctx.compare("EQ", ctx.iota_like(places, 0), ctx.scalar(0, I64))
    before = _moved(ctx, values)
    begins = ctx.binary(ops.Or, begins, _differ(ctx, values, before))
    start = ctx.cumulative(ops.Maximum, ctx.select(begins, ctx.iota_like(places, 0), ctx.scalar(0, I64)), 0)
    firsts = _unsorted(ctx, places, ctx.take(places, start, 0))
    if in_order:
        numbers = ctx.cumulative(ops.Add, ctx.convert(begins, I64), 0)
        return Groups(firsts, _unsorted(ctx, places, ctx.minus(numbers, ctx.full_like(numbers, 1))))
    numbers = ctx.cumulative(ops.Add, ctx.convert(_is_first(ctx, firsts), I64), 0)
    return Groups(firsts, ctx.take(ctx.minus(numbers, ctx.full_like(numbers, 1)), firsts, 0))


def _moved(ctx: Context, x: Value) -> Value:
    """Returns the element before each one of a list; the first one stays."""
    place = ctx.iota_like(x, 0)
    one = ctx.full_like(place, 1)
    return ctx.take(x, ctx.binary(ops.Maximum, ctx.minus(place, one), ctx.full_like(place, 0)), 0)


def _differ(ctx: Context, a: Value, b: Value) -> Value:
    """Whether elements differ; a NaN is equal to every other one."""
    differ = ctx.compare("NE", a, b)
    if not is_float(a.type.element_type):
        return differ
    both = ctx.binary(ops.And, ctx.compare("NE", a, a), ctx.compare("NE", b, b))
    return ctx.binary(ops.And, differ, ctx.add(ops.Not(both)))


def _unsorted(ctx: Context, places: Value, x: Value) -> Value:
    """Returns entries at the places that they had before they were sorted."""
    return ctx.sort([places, x], 0)[1]


def _groups_of_rows(ctx: Context, x: Value, in_order: bool) -> Groups:
    """Groups the rows of a matrix by comparing each with each; they are ordered by the first elements that differ."""
    count, width = ctx.extents(x)
    shape = (count, count, width)
    mine, others = (ctx.broadcast_in_dim(x, shape, (d, 2)) for d in range(2))
    differ = _differ(ctx, mine, others)
    place = ctx.iota([count, count], 1)
    equal = ctx.add(ops.Not(ctx.reduce(ops.Or, differ, [2])))
    firsts = ctx.reduce(ops.Minimum, ctx.select(equal, place, ctx.full_like(place, np.iinfo(np.int64).max)), [1])
    earlier = ctx.compare("LT", place, ctx.unsqueeze(firsts, [1]))
    before = _is_below(ctx, others, mine, differ) if in_order else earlier
    counted = ctx.binary(ops.And, before, ctx.unsqueeze(_is_first(ctx, firsts), [0]))
    return Groups(firsts, ctx.reduce(ops.Add, ctx.convert(counted, I64), [1]))


def _is_below(ctx: Context, a: Value, b: Value, differ: Value) -> Value:
    """Whether `a` is less than `b` in the first element of the last dimension in which they differ; a NaN is the
    largest."""
    below = ctx.compare("LT", a, b)
    if is_float(a.type.element_type):
        below = ctx.binary(ops.Or, below, ctx.binary(ops.And, differ, ctx.compare("NE", b, b)))
    kind = TensorType((), I1)

    def first(
        emit: Context, differs: Value, less: Value, later_differs: Value, later_less: Value
    ) -> tuple[Value, Value]:
        return emit.binary(ops.Or, differs, later_differs), emit.select(differs, less, later_less)

    no = ctx.scalar(False, I1)
    both = ops.Reduce([differ, below], [no, no], dimensions=(2,), body=ctx.region([kind] * 4, first))
    return ctx.add(both)[1]
