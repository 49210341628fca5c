"""Packing for instructions that multiply tiles: lhs in rows, rhs with some neighbours of the reduction together for
each column, and both with zeros up to the end of the last tile of the reduction."""

from __future__ import annotations

import functools
from dataclasses import replace

import llvmlite.ir as ll

from trivium.backends.cpu.contraction import underflow
from trivium.backends.cpu.contraction.packing import Source, emit_pack
from trivium.backends.llvm.code import I32
from trivium.backends.llvm.memory import interleaved
from trivium.backends.llvm.numbers import Number, i64, minimum
from trivium.backends.llvm.squares import transposed
from trivium.backends.llvm.vectors import Vectors
from trivium.compiler.contraction.problem import lies_across

Bounds = tuple[Number, Number]

LANES = 16
"""The columns of a tile, and the side of the squares that are transposed."""


def emit_rows(
    source: Source, rows: Bounds, steps: Bounds, target: ll.Value, pitch: int, writer: Vectors | None = None
) -> None:
    """Writes rows, `pitch` elements apart, of whole tiles of steps. `source` has rows as lines, and reads as many steps
    at once as a tile has; `writer`, if there is one, stores them. Up to `LANES` further rows may be written to."""
    writer = writer or source.e
    if lies_across(source.access, source.lines, source.across):
        _transpose_rows(source, rows, steps, target, pitch, writer)
    else:
        emit_pack(writer, source, rows, steps, whole(source.e, steps) // source.e.lanes, target, pitch)


def whole(e: Vectors, steps: Bounds) -> Number:
    """Returns the number of steps, filled up to whole tiles."""
    return (steps[1] - steps[0] + (e.lanes - 1)) // e.lanes * e.lanes


def _transpose_rows(source: Source, rows: Bounds, steps: Bounds, target: ll.Value, pitch: int, writer: Vectors) -> None:
    """Writes rows that lie across memory. Neither steps nor rows that do not exist are read."""
    e, stride = source.e.with_lanes(LANES), source.access.stride(source.across.axes[0])
    base = e.at(source.base, source.outer.offset)
    with (
        e.loop(0, whole(source.e, steps), step=LANES, nonempty=True) as along,
        e.loop(*rows, step=LANES, nonempty=True) as loop,
    ):
        left, mask = i64(steps[1] - steps[0] - along.index), e.lanes_below(rows[1] - loop.index)
        start = e.at(base, (steps[0] + along.index) * stride + loop.index)
        masks = [e.conjunction(mask, e.builder.icmp_signed(">", left, i64(j))) for j in range(LANES)]
        square = transposed(e, [e.load(e.at(start, j * stride), one) for j, one in enumerate(masks)])
        corner = writer.at(target, (loop.index - rows[0]) * pitch + along.index)
        for i, vector in enumerate(square):
            writer.store(vector, writer.at(corner, i * pitch))


def emit_columns(
    source: Source, steps: Bounds, columns: Bounds, vectors: int, target: ll.Value, room: ll.Value, search: bool = False
) -> ll.Value | None:
    """Writes a panel of `vectors` times `LANES` columns. `source` has steps as lines, and reads as many elements at
    once as a tile has steps. `room` is memory for the panel, with a spare vector of lines. With `search`, returns the
    least magnitudes of numbers of bf16 (`underflow.least`), unless that would take a loop of its own."""
    if lies_across(source.access, source.lines, source.across):
        found = _transpose_columns(source, steps, columns, vectors, target, search)
        return found[0] if search else None
    e, pitch = source.e.with_lanes(LANES), vectors * LANES
    emit_pack(e, replace(source, e=e), steps, columns, vectors, room, pitch)
    count = steps[1] - steps[0]
    with e.loop(count * pitch, whole(source.e, steps) * pitch, step=LANES) as loop:
        e.store(e.zero, e.at(room, loop.index))
    together = source.e.lanes // LANES
    with e.loop(0, whole(source.e, steps), step=together, nonempty=True) as loop:
        for v in range(vectors):
            lines = [e.load(e.at(room, (loop.index + j) * pitch + v * LANES)) for j in range(together)]
            place = e.at(target, loop.index * pitch + v * LANES * together)
            for number, vector in enumerate(interleaved(e, lines, LANES)):
                e.store(vector, e.at(place, number * LANES))
    return None


def _transpose_columns(
    source: Source, steps: Bounds, columns: Bounds, vectors: int, target: ll.Value, search: bool
) -> list[ll.Value]:
    """Writes columns that lie along memory, where neighbours are together already: squares of these are transposed.
    Columns beyond the last one repeat it. Returns what a search found, if there is one."""
    e, stride = source.e, source.access.stride(source.across.axes[0])
    together, pitch = e.lanes // LANES, vectors * LANES
    groups = Vectors(e.builder, e.target, I32, LANES)
    base = e.at(source.base, source.outer.offset)
    with e.loop(0, vectors, [underflow.nothing(e)] * search, nonempty=True) as across:
        numbers = [minimum(columns[0] + across.index * LANES + j, columns[1] - 1) for j in range(LANES)]
        lines = [e.at(base, number * stride) for number in numbers]
        with e.loop(*steps, across.carried, step=e.lanes, nonempty=True) as loop:
            mask = None if _fits(steps, e.lanes) else e.lanes_below(steps[1] - loop.index)
            rows = [e.load(e.at(line, loop.index), mask) for line in lines]
            loop.next = [functools.reduce(functools.partial(underflow.least, e), rows, one) for one in loop.carried]
            square = transposed(groups, [e.builder.bitcast(row, groups.vector) for row in rows])
            place = e.at(target, (loop.index - steps[0]) * pitch + across.index * LANES * together)
            for i, vector in enumerate(square):
                groups.store(vector, groups.at(place, i * pitch))
        across.next = loop.carried
    return across.carried


def _fits(steps: Bounds, lanes: int) -> bool:
    """Whether it is known that steps are whole tiles."""
    count = steps[1] - steps[0]
    return isinstance(count, int) and count % lanes == 0
