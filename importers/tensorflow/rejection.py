"""Draws that are repeated until one is accepted: each sample has a stream of its own, so that all of them are drawn
side by side, however many draws each of them takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trivium.importers.extents import Extent
from trivium.importers.tensorflow.context import Context
from trivium.importers.tensorflow.random import fractions, words_at
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, UI64, ElementType


@dataclass(frozen=True)
class Streams:
    """Uniform numbers for many samples: those of each begin at a counter, `starts` after the given one."""

    starts: Value
    key: Value
    counter: Value
    kind: ElementType

    def draw(self, ctx: Context, turn: Value) -> list[Value]:
        """Returns the numbers of each stream's counter with a number: four, or two in 64 bits."""
        count = ctx.extent(self.starts, 0)
        words = words_at(ctx, ctx.plus(self.starts, turn), self.key, self.counter)
        numbers = fractions(ctx, ctx.reshape(words, (4 * count,)), self.kind)
        each = 2 if self.kind is F64 else 4
        rows = ctx.reshape(numbers, (count, each))
        return [ctx.squeeze(ctx.slice(rows, 1, i, i + 1), [1]) for i in range(each)]


def by_column(ctx: Context, rows: Extent, columns: Extent, reserved: int) -> Value:
    """Returns where the streams of samples begin whose result has some rows and columns: those of one column follow
    one another, with `reserved` counters each."""
    row, column = (ctx.iota((rows, columns), d, UI64) for d in range(2))
    number = ctx.plus(row, ctx.times(column, ctx.number_as(rows, UI64)))
    return ctx.times(ctx.reshape(number, (rows * columns,)), ctx.scalar(reserved, UI64))


class Trials:
    """The samples that are accepted so far, while the numbers of one turn are tried in order."""

    def __init__(self, ctx: Context, is_done: Value, sample: Value):
        self.ctx, self.is_done, self.sample = ctx, is_done, sample

    def accept(self, fits: Value, sample: Value) -> None:
        """Takes samples where they fit, and where none was taken before."""
        self.sample = self.ctx.select(self.is_done, self.sample, self.ctx.select(fits, sample, self.sample))
        self.is_done = self.ctx.add(ops.Or(self.is_done, fits))


def until_accepted(
    ctx: Context,
    streams: Streams,
    is_known: Value,
    sample: Value,
    carried: Sequence[Value],
    step: Callable[..., Sequence[Value]],
) -> Value:
    """Returns a sample for each stream. `step` gets the trials, the numbers of a turn and what is carried from turn to
    turn, and returns the latter. Where the sample is known already, nothing is tried."""
    start = [is_known, sample, ctx.scalar(0, UI64), *carried]
    types = [x.type for x in start]

    def goes_on(emit: Context, is_done: Value, *rest: Value) -> Value:
        return emit.add(ops.Not(emit.reduce(ops.And, is_done, [0])))

    def turn(emit: Context, is_done: Value, sample: Value, number: Value, *carried: Value) -> list[Value]:
        trials = Trials(emit, is_done, sample)
        held = step(trials, streams.draw(emit, number), *carried)
        return [trials.is_done, trials.sample, emit.plus(number, emit.scalar(1, UI64)), *held]

    loop = ops.While(start, cond=ctx.region(types, goes_on), body=ctx.region(types, turn))
    return ctx.add(loop)[1]
