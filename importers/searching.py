"""Where numbers belong in rows that are in order."""

from __future__ import annotations

import math
from collections.abc import Callable

from trivium.importers.emit import Emitter
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I32, I64, ElementType

LONGEST_COUNTED = 64
"""The longest row all elements of which are compared with each number: vectors do so in little time."""

Before = Callable[[Value, Value], Value]
"""Whether elements of rows come before numbers, elementwise or by broadcasting."""


def places_in(ctx: Emitter, rows: Value, x: Value, before: Before, kind: ElementType) -> Value:
    """Returns how many elements of its row come before each number, as integers of `kind`. `rows` is one row for all
    numbers, of shape [n], or has the shape [*batch, n] for numbers of shape [*batch, m]."""
    is_known = rows.type.is_static and (rows.type.rank == 1 or x.type.is_static)
    if is_known and rows.type.shape[-1] > LONGEST_COUNTED:
        return ctx.convert(_bisected(ctx, rows, x, before), kind)
    rows = ctx.unsqueeze(rows, [rows.type.rank - 1]) if rows.type.rank > 1 else rows
    counted = ctx.convert(before(rows, ctx.unsqueeze(x, [x.type.rank])), kind)
    return ctx.reduce(ops.Add, counted, (x.type.rank,))


def _bisected(ctx: Emitter, rows: Value, x: Value, before: Before) -> Value:
    """Halves the range in which each number's place is until nothing is left of it, as the frameworks do: so that even
    in rows that are not in order the same places are found."""
    *batch, extent = rows.type.static_shape
    index = I32 if rows.type.size < 1 << 31 else I64
    row = _first_places(ctx, batch, extent, x, index)
    flat, start = ctx.reshape(rows, [rows.type.size]), ctx.convert(ctx.full_like(x, 0), index)
    end, one = (ctx.full_like(start, number) for number in (extent, 1))
    for _ in range(extent.bit_length()):
        middle = ctx.plus(start, ctx.add(ops.ShiftRightLogical(ctx.minus(end, start), one)))
        at = middle if row is None else ctx.plus(row, middle)
        goes_on = ctx.compare("LT", start, end)
        is_after = ctx.binary(ops.And, goes_on, before(ctx.take(flat, at), x))
        start, end = ctx.select(is_after, ctx.plus(middle, one), start), ctx.select(is_after, end, middle)
    return start


def _first_places(ctx: Emitter, batch: list[int], extent: int, x: Value, index: ElementType) -> Value | None:
    """Returns the place of the first element of each number's row among those of all rows; None if there is one."""
    if not batch:
        return None
    number = ctx.reshape(ctx.ramp(0, extent, math.prod(batch), index), [*batch, 1])
    return ctx.broadcast(number, x.type.static_shape)
