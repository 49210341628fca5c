"""Loops that read an array across its rows: neighbouring lanes are far apart in memory, but neighbouring iterations of
another dimension are neighbours. Squares of elements are read along memory and transposed in registers, so that no
vector is gathered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import llvmlite.ir as ll

from trivium.backends.llvm import memory
from trivium.backends.llvm.code import Code, Literal
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.narrow import from_memory, memory_type
from trivium.backends.llvm.numbers import Int, Number, i64, minimum
from trivium.compiler.kernel.structure import Load, Loop, Register
from trivium.compiler.schedule import LoopSchedule, turned_loads

if TYPE_CHECKING:
    from trivium.backends.llvm.emitter import Emitter

NARROW = 8
"""The side up to which two squares are read side by side, where rows of a power of two bytes share few sets of the
caches: what a processor prefetches beside one square is evicted before the loop returns to it."""


def transposed(code: Code, rows: Sequence[ll.Value]) -> list[ll.Value]:
    """Returns the transpose of a square of vectors: in each round, pairs of rows exchange every other block of
    lanes."""
    lanes, size, result = len(rows), 1, list(rows)
    while size < lanes:
        low, high = exchange(lanes, size)
        before = list(result)
        for i in range(lanes):
            if not i & size:
                pair = before[i], before[i + size]
                result[i], result[i + size] = (code.shuffle(pair[0], order, pair[1]) for order in (low, high))
        size *= 2
    return result


def exchange(lanes: int, size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the orders in which two vectors exchange every other block of `size` lanes."""
    low = tuple(lane if not lane & size else lane - size + lanes for lane in range(lanes))
    return low, tuple(lane + size if not lane & size else lane + lanes for lane in range(lanes))


def emit_in_squares(emitter: Emitter, loop: Loop, schedule: LoopSchedule, begin: Number, end: Number) -> None:
    """Emits the body of a parallel loop for [begin, end) of its vector dimension and all of the turned one."""
    assert schedule.vector is not None, "lanes are one side of the squares"
    assert schedule.turned is not None, "the turned dimension is the other side"
    lanes, extent = schedule.lanes, schedule.extents[schedule.turned]
    assert isinstance(extent, int), "squares have known sizes"
    square = _Squares(emitter, loop, loop.indices[schedule.vector], loop.indices[schedule.turned], lanes)
    middle = begin + (end - begin) // lanes * lanes
    rest = end - middle
    parts = [(begin, middle, lanes), *([] if isinstance(rest, int) and rest < 2 else [(middle, end, rest)])]

    def row(starts: Sequence[Number], vectors: int) -> None:
        """Emits squares along the rows that are written: neighbouring squares write neighbouring cache lines."""
        for first, last, count in parts:
            if not isinstance(first, int) or first != last:
                with counted(emitter.code, first, last, lanes) as across:
                    for start in starts:
                        square.emit(across.index, count, start, vectors)

    whole = extent - extent % lanes
    paired = whole - whole % (2 * lanes) if lanes <= NARROW else 0
    for first, last, beside in ((0, paired, 2), (paired, whole, 1)):
        if first < last:
            with counted(emitter.code, first, last, beside * lanes) as along:
                row([along.index + number * lanes for number in range(beside)], lanes)
    if whole < extent:
        row((whole,), extent - whole)
    if isinstance(rest, int) and rest == 1:
        square.emit_line(middle, extent)


class _Squares:
    """`index` runs over lanes, `other` over the vectors of a square."""

    def __init__(self, emitter: Emitter, loop: Loop, index: Register, other: Register, lanes: int):
        self.emitter, self.loop, self.index, self.other, self.lanes = emitter, loop, index, other, lanes
        self.loads = turned_loads(loop, index, other, emitter.analysis)

    def emit(self, first: Number, count: Number, start: Number, vectors: int) -> None:
        """Emits `count` lanes from `first` on, of each of `vectors` iterations of the other index from `start` on. For
        a single one, there is no square."""
        emitter, lanes = self.emitter, self.lanes
        with emitter.scope():
            emitter.values |= {self.index: i64(first), self.other: i64(start)}
            squares = {load: self._read(load, count, vectors) for load in self.loads if vectors > 1}
            mask = self._mask(count)
            for number in range(vectors):
                with emitter.scope(), emitter.in_lanes(self.index, lanes, mask):
                    emitter.values[self.other] = i64(start + number)
                    emitter.values |= {load.result: square[number] for load, square in squares.items()}
                    emitter.block(self.loop.body)

    def emit_line(self, place: Number, extent: int) -> None:
        """Emits one iteration of the index, of all iterations of the other one."""
        emitter = self.emitter
        with counted(emitter.code, 0, extent) as along, emitter.scope():
            emitter.values |= {self.index: i64(place), self.other: i64(along.index)}
            emitter.block(self.loop.body)

    def _mask(self, count: Number) -> ll.Value | None:
        """Returns the mask of the first lanes; None for all."""
        if isinstance(count, int):
            return memory.leading_mask(self.lanes, count) if count < self.lanes else None
        below = self.emitter.code.splat(i64(count), self.lanes)
        return self.emitter.builder.icmp_signed("<", memory.lane_numbers(self.lanes), below)

    def _read(self, load: Load, count: Number, vectors: int) -> list[ll.Value]:
        """Returns the elements that a load reads in a square. Rows beyond the last one are zeros or, if their number is
        only known at run time, repeat it."""
        emitter, code = self.emitter, self.emitter.code
        steps = emitter.analysis.address(load.buffer, load.indices).terms
        step, backwards = steps[self.index], steps[self.other] < 0
        address, type_ = emitter.address(load.buffer, load.indices), memory_type(load.buffer.dtype)
        mask = None if vectors == self.lanes else memory.leading_mask(self.lanes, vectors)
        vector, rows = ll.VectorType(type_, self.lanes), list[ll.Value]()
        for lane in range(self.lanes):
            if isinstance(count, int) and lane >= count:
                rows.append(Literal(vector, "zeroinitializer"))
                continue
            place = Int(code, address.base) + minimum(lane, count - 1) * step - (vectors - 1) * backwards
            pointer = emitter.builder.gep(address.pointer, [i64(place)], source_etype=type_)
            rows.append(memory.load_vector(code, pointer, vector, mask))
        found = [from_memory(code, vector, load.buffer.dtype) for vector in transposed(code, rows)[:vectors]]
        return found[::-1] if backwards else found
