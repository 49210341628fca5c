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
    unroll: int = 1,
) -> Sequence[Value]:
    """Runs `step` for each of `length` rows, from the last one on if `reverse`. `step` takes the state and a row of
    each of `rows`, and returns the next state and then a row of each result. Returns the last state, and the results
    as wholes, whose types are `collected`. `unroll`: the number of steps in each iteration of the loop; if these are
    all, there is no loop."""
    count, together = len(state), min(unroll, length)

    def one(emit: Emit, turn: Value, state: Sequence[Value]) -> tuple[Value, Sequence[Value], Sequence[Value]]:
        """Returns which row a step takes, the next state, and a row of each result."""
        at = emit.minus(emit.scalar(length - 1, I32), turn) if reverse else turn
        results = step(emit, state, [row(emit, x, at) for x in rows])
        return at, results[:count], results[count:]

    def without_loop() -> Sequence[Value]:
        last, made = state, []
        for number in range(length):
            _, last, results = one(ctx, ctx.scalar(number, I32), last)
            made.append([ctx.unsqueeze(value, [0]) for value in results])
        columns = zip(*(made[::-1] if reverse else made), strict=True)
        return [*last, *(ctx.concatenate(column, 0) for column in columns)]

    def steps(emit: Emit, first: Value, number: int, carried: Sequence[Value]) -> Sequence[Value]:
        for later in range(number):
            turn = emit.plus(first, emit.scalar(later, I32)) if later else first
            at, following, results = one(emit, turn, carried[:count])
            updated = zip(carried[count:], results, strict=True)
            carried = [*following, *(with_row(emit, whole, row, at) for whole, row in updated)]
        return carried

    def condition(emit: Emit, turn: Value, *carried: Value) -> Value:
        return emit.compare("LT", turn, emit.scalar(looped, I32))

    def body(emit: Emit, turn: Value, *carried: Value) -> list[Value]:
        return [emit.plus(turn, emit.scalar(together, I32)), *steps(emit, turn, together, carried)]

    if together == length and length:
        return without_loop()
    wholes = [ctx.full(kind.static_shape, 0, kind.element_type) for kind in collected]
    if not length:
        return [*state, *wholes]
    looped = length - length % together
    carried = [ctx.scalar(0, I32), *state, *wholes]
    types = [value.type for value in carried]
    results = ctx.add(ops.While(carried, ctx.region(types, condition), ctx.region(types, body)))[1:]
    return steps(ctx, ctx.scalar(looped, I32), length - looped, results)


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
