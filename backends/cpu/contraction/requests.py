"""Requests for what the epilogue of a tile reads and writes in large arrays. A tile's rows there are short and far
apart, so that the processor cannot foresee them. While products are added up, memory rests: every few steps of the
reduction request one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import llvmlite.ir as ll

from trivium.backends.llvm import memory
from trivium.backends.llvm.code import I8
from trivium.backends.llvm.numbers import Number, i64
from trivium.backends.llvm.target import LlvmTarget
from trivium.backends.llvm.vectors import Vectors
from trivium.compiler.contraction.marked import Marked
from trivium.compiler.contraction.problem import AxisGroup
from trivium.compiler.kernel.index import Index
from trivium.compiler.kernel.structure import Buffer, Load, Register, Store

if TYPE_CHECKING:
    from trivium.backends.cpu.contraction.template import Element

SHORTEST_GAP, LONGEST_TO_WRITE = 2, 24
"""The least number of steps between two requests; and the largest if a tile only writes: writes that are rarer do not
hold up the products."""


@dataclass(frozen=True)
class Rows:
    """Rows of `buffer`, `step` elements apart. `place` is that of an element, as a function of the epilogue's
    indices."""

    buffer: Buffer
    place: Index
    step: int


@dataclass(frozen=True)
class Piece:
    """What a tile uses of some rows: the address of the first element, and the distance between rows in bytes.
    `writes`: it is to be written."""

    first: ll.Value
    stride: int
    writes: bool

    def request(self, e: Vectors, row: Number, offset: Number) -> None:
        """Requests the line `offset` bytes from the beginning of a row."""
        line = e.builder.gep(self.first, [i64(row * self.stride + offset)], source_etype=I8)
        memory.prefetch(e, line, writes=self.writes)


Pieces = Callable[[Vectors, "Element"], Sequence[Piece]]
"""Returns what a tile that begins with an element uses."""


@dataclass(frozen=True)
class Requests:
    """The pieces of a tile: `rows` rows, each of which is `lines` lines, a power of two, of `line` bytes."""

    pieces: Sequence[Piece]
    rows: int
    lines: int
    line: int

    @classmethod
    def of(cls, pieces: Sequence[Piece], rows: int, vectors: int, target: LlvmTarget) -> Requests:
        """Returns those for rows of some vectors."""
        lines = -(-vectors * target.vector_bytes // target.alignment)
        return cls(pieces, rows, 1 << (lines - 1).bit_length(), target.alignment)

    @property
    def count(self) -> int:
        """How many lines each piece has."""
        return self.rows * self.lines

    def gap(self, steps: Number) -> int:
        """Returns the number of steps between two requests of the same piece; 0 if nothing is requested."""
        gap = steps // self.count if isinstance(steps, int) else 0
        reads = any(not piece.writes for piece in self.pieces)
        return gap if gap >= SHORTEST_GAP and (reads or gap <= LONGEST_TO_WRITE) else 0

    def emit(self, e: Vectors, number: Number) -> None:
        """Requests a line of each piece."""
        row, line = divmod(number, self.lines)
        for piece in self.pieces:
            piece.request(e, row, line * self.line)


def rows_of_epilogue(marked: Marked, rows: AxisGroup, lane: Register, least: int) -> list[Rows]:
    """Returns the rows that an epilogue always uses of arrays of more than `least` bytes: with neighbours along the
    index `lane`, and evenly spaced along the flat index of `rows`."""
    found: dict[tuple[Buffer, Index], Rows] = {}
    for access in marked.epilogue.instructions:
        if isinstance(access, Load | Store) and access.buffer.nbytes > least:
            place = marked.analysis.address(access.buffer, access.indices)
            step = _step(place, [(axis.extent, marked.parameters[axis]) for axis in rows.axes if axis.extent != 1])
            if step and place.terms.get(lane) == 1 and set(marked.epilogue.parameters).issuperset(place.terms):
                found[access.buffer, place] = Rows(access.buffer, place, step)
    return list(found.values())


def _step(place: Index, axes: Sequence[tuple[int, Register]]) -> int:
    """Returns how far a place moves from one row to the next; 0 if that is not the same for all rows."""
    step = run = place.terms.get(axes[-1][1], 0) if axes else 0
    for extent, index in reversed(axes):
        if place.terms.get(index, 0) != run:
            return 0
        run *= extent
    return step
