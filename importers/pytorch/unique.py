"""Elements, rows and slices that differ: how many there are is known when the program runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.importers import loops
from trivium.importers.pytorch.context import Context, dim, rule
from trivium.importers.pytorch.indexing import scatter_into
from trivium.importers.selection import selected
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64


@rule("aten._unique2.default")
def unique(
    ctx: Context, x: Value, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Value, ...]:
    """_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False)
    -> (Tensor, Tensor, Tensor)"""
    flat = ctx.reshape(x, [math.prod(ctx.extents(x))])
    values, places = ctx.sort([flat, ctx.iota_like(flat, 0)], 0)
    groups, counts, _, kept = _groups(ctx, ctx.unsqueeze(values, [1]), values)
    if return_inverse:
        groups = ctx.reshape(_unsorted(ctx, places, groups), ctx.extents(x))
    return kept, *_wanted(ctx, (groups, return_inverse), (counts, return_counts))


@rule("aten._unique.default")
def unique_with_inverse(ctx: Context, x: Value, sorted: bool = True, return_inverse: bool = False) -> tuple[Value, ...]:
    """_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)"""
    return unique(ctx, x, sorted, return_inverse)[:2]


@rule("aten.unique_dim.default")
def unique_dim(
    ctx: Context,
    x: Value,
    dim_: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Value, ...]:
    """unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False)
    -> (Tensor, Tensor, Tensor)"""
    d = dim(dim_, x.type.rank)
    rows = _rows(ctx, x, d)
    places = _order(ctx, rows)
    groups, counts, _, kept = _groups(ctx, ctx.take(rows, places), places)
    return ctx.take(x, kept, d), _unsorted(ctx, places, groups), counts


@rule("aten.unique_consecutive.default")
def unique_consecutive(
    ctx: Context, x: Value, return_inverse: bool = False, return_counts: bool = False, dim_: int | None = None
) -> tuple[Value, ...]:
    """unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None)
    -> (Tensor, Tensor, Tensor)"""
    if dim_ is not None:
        d = dim(dim_, x.type.rank)
        groups, counts, kept = _groups(ctx, _rows(ctx, x, d))
        return ctx.take(x, kept, d), groups, counts
    flat = ctx.reshape(x, [math.prod(ctx.extents(x))])
    groups, counts, _, kept = _groups(ctx, ctx.unsqueeze(flat, [1]), flat)
    groups = ctx.reshape(groups, ctx.extents(x)) if return_inverse else groups
    return kept, *_wanted(ctx, (groups, return_inverse), (counts, return_counts))


def _wanted(ctx: Context, *results: tuple[Value, bool]) -> list[Value]:
    """Returns the results that are asked for, and an empty list for each of the others."""
    return [value if wanted else ctx.full((0,), 0, I64) for value, wanted in results]


def _rows(ctx: Context, x: Value, d: int) -> Value:
    """Returns the slices of `x` along a dimension as rows of a matrix."""
    if not x.type.rank:
        return ctx.reshape(x, (1, 1))
    moved = ctx.transpose(x, [d, *(each for each in range(x.type.rank) if each != d)])
    count, *rest = ctx.extents(moved)
    return ctx.reshape(moved, [count, math.prod(rest)])


def _order(ctx: Context, rows: Value) -> Value:
    """Returns the rows' numbers in the order of the rows: sorted by one column after another, stably, the first column
    last."""

    def step(emit: Context, state: Sequence[Value], column: Sequence[Value]) -> list[Value]:
        return [emit.sort([emit.take(column[0], state[0]), state[0]], 0)[1]]

    width = rows.type.shape[1]
    if width is None:
        ctx.unsupported("dim", "slices of dynamic size", "slices whose size is known")
    columns = ctx.transpose(rows, [1, 0])
    return loops.scan(ctx, step, [ctx.iota([ctx.extent(rows, 0)], 0)], [columns], [], width, reverse=True)[0]


def _groups(ctx: Context, rows: Value, *lists: Value) -> list[Value]:
    """Groups rows that are equal to the one before. Returns the group of each row; how many rows each group has, the
    number of its first one, and what each list has for that. NaN equals nothing."""
    if rows.type.shape[0] == 0:
        return [ctx.full((0,), 0, I64)] * 3 + list(lists)
    before = ctx.pad(rows, [1, 0], [-1, 0])
    number = ctx.iota([ctx.extent(rows, 0)], 0)
    begins = ctx.compare("EQ", number, ctx.full_like(number, 0))
    begins = ctx.binary(ops.Or, begins, ctx.reduce(ops.Or, ctx.compare("NE", rows, before), [1]))
    firsts, *chosen = selected(ctx, begins, number, *lists)
    (lasts,) = selected(ctx, ctx.pad(begins, [-1], [1], True), number)
    one = ctx.scalar(1, I64)
    groups = ctx.minus(ctx.cumulative(ops.Add, ctx.convert(begins, I64), 0), one)
    return [groups, ctx.plus(ctx.minus(lasts, firsts), one), firsts, *chosen]


def _unsorted(ctx: Context, places: Value, x: Value) -> Value:
    """Returns `x`, whose elements were moved from `places`, in the first order."""
    return scatter_into(ctx, None, ctx.full_like(x, 0), 0, places, x)
