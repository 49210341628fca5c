"""Loops over the rows of arrays, which all frameworks have in some form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from trivium.importers.context import Context
from trivium.importers.emit import Emitter
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I32, TensorType

Emit = TypeVar("Emit", bound=Context)


def scan(
    ctx: Emit,
    step: Callable[[Emit, Sequence[Value], Sequence[Value]], Sequence[Value]],
    state: Sequence[Value],
    rows: Sequence[Value],
    collected: Sequence[TensorType],
    length: int,
    reverse: bool = False,
) -> Sequence[Value]:
    """Runs `step` for each of `length` rows, from the last one on if `reverse`. `step` takes the state and a row of
    each of `rows`, and returns the next state and then a row of each result. Returns the last state, and the results
    as wholes, whose types are `collected`."""
    count = len(state)
    wholes = [ctx.full(kind.static_shape, 0, kind.element_type) for kind in collected]
    if not length:
        return [*state, *wholes]
    carried = [ctx.scalar(0, I32), *state, *wholes]
    types = [value.type for value in carried]

    def condition(emit: Emit, turn: Value, *carried: Value) -> Value:
        return emit.compare("LT", turn, emit.scalar(length, I32))

    def body(emit: Emit, turn: Value, *carried: Value) -> list[Value]:
        at = emit.minus(emit.scalar(length - 1, I32), turn) if reverse else turn
        results = step(emit, carried[:count], [row(emit, x, at) for x in rows])
        updated = zip(carried[count:], results[count:], strict=True)
        written = [with_row(emit, whole, row, at) for whole, row in updated]
        return [emit.plus(turn, emit.scalar(1, I32)), *results[:count], *written]

    return ctx.add(ops.While(carried, ctx.region(types, condition), ctx.region(types, body)))[1:]


def row(emit: Emitter, x: Value, at: Value) -> Value:
    """`x[at]`"""
    if not x.type.is_static:
        return emit.take(x, at)
    shape = x.type.static_shape
    starts = [at, *(emit.scalar(0, at.type.element_type) for _ in shape[1:])]
    return emit.reshape(emit.add(ops.DynamicSlice(x, starts, slice_sizes=(1, *shape[1:]))), shape[1:])


def with_row(emit: Emitter, whole: Value, row: Value, at: Value) -> Value:
    """Returns `whole` with `whole[at] = row`."""
    starts = [at, *(emit.scalar(0, at.type.element_type) for _ in row.type.shape)]
    return emit.add(ops.DynamicUpdateSlice(whole, emit.unsqueeze(row, [0]), starts))
