"""Loops over rows of few elements, such as the three colors of a pixel: too short for a vector, so that vectors hold
several rows, and as many vectors as a row has elements hold as many whole rows as there are lanes. In each of these
vectors, the places of the lanes in their rows are constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import llvmlite.ir as ll

from trivium.backends.llvm import memory
from trivium.backends.llvm.code import I64
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import Number, i64
from trivium.compiler.kernel.lanes import in_rows
from trivium.compiler.kernel.structure import Loop
from trivium.compiler.schedule import LoopSchedule

if TYPE_CHECKING:
    from trivium.backends.llvm.emitter import Emitter


def emit_rows(emitter: Emitter, loop: Loop, schedule: LoopSchedule, begin: Number, end: Number) -> None:
    """Emits the body of a parallel loop for the rows [begin, end) of its vector dimension, which begin at a multiple of
    the lanes."""
    rows = _Rows(emitter, loop, schedule)
    lanes, extent = rows.lanes, rows.extent
    left = divmod(end - begin, lanes)[1]
    middle = end - left
    if not isinstance(begin, int) or not isinstance(middle, int) or begin < middle:
        with counted(emitter.code, begin, middle, lanes) as whole:
            for number in range(extent):
                rows.emit(whole.index, number, None)
    if isinstance(left, int):
        for number in range(-(-left * extent // lanes)):
            count = min(lanes, left * extent - number * lanes)
            rows.emit(middle, number, memory.leading_mask(lanes, count) if count < lanes else None)
        return
    builder = emitter.builder
    with builder.if_then(builder.icmp_signed(">", i64(left), I64(0))):
        elements = emitter.code.splat(i64(left * extent), lanes)
        for number in range(extent):
            each = memory.lane_literal(tuple(range(number * lanes, (number + 1) * lanes)))
            rows.emit(middle, number, builder.icmp_signed("<", each, elements))


class _Rows:
    def __init__(self, emitter: Emitter, loop: Loop, schedule: LoopSchedule):
        assert schedule.vector is not None, "the rows are counted by the vector dimension"
        assert schedule.row is not None, "some dimension is a row"
        extent = schedule.extents[schedule.row]
        assert isinstance(extent, int), "rows have a known length"
        self.emitter, self.loop, self.lanes, self.extent = emitter, loop, schedule.lanes, extent
        self.outer, self.inner = loop.indices[schedule.vector], loop.indices[schedule.row]

    def emit(self, first: Number, number: int, mask: ll.Value | None) -> None:
        """Emits a vector, given its number among those of `lanes` rows, and the first of the rows."""
        emitter = self.emitter
        places = in_rows(self.outer, self.inner, self.extent, self.lanes, number)
        with emitter.scope(), emitter.in_lanes(self.outer, self.lanes, mask, places=places):
            emitter.values[self.outer] = i64(first + places[self.outer].numbers[0])
            emitter.values[self.inner] = I64(places[self.inner].numbers[0])
            emitter.beside(self.loop)
            emitter.block(self.loop.body)
