"""Matrix products and convolutions in tiles: a block of threads computes a square tile of the result. It loads the
tile's rows and columns piece by piece into shared memory, each element once, and applies the prologue to it. Each
thread accumulates a small square of sums, and then runs the kernel's epilogue on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ll

from trivium.backends.gpu.contracted import Contracted, Depth, Indices, Place
from trivium.backends.gpu.tiles import DEPTH, SIDE
from trivium.backends.llvm.code import F32, I32
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.narrow import widened
from trivium.backends.llvm.numbers import i64
from trivium.compiler.kernel.contraction import Access
from trivium.compiler.kernel.structure import Block


@dataclass
class Operand:
    """One side of the product. `role` is that of its own loops; `places` are the elements that this thread reads of
    each piece, as indices of these loops, `within` whether those exist, and `local` their places in the tile."""

    access: Access
    prologue: Block | None
    role: str
    memory: ll.Value
    places: list[Indices]
    within: list[ll.Value | None]
    local: list[tuple[ll.Value, ll.Value]]


class TiledContraction(Contracted):
    """Emits one block's tile, for one thread."""

    def __init__(self, *operands: Any) -> None:
        super().__init__(*operands)
        self.each = self.tile // SIDE

    def zeros(self) -> list[ll.Value]:
        return [F32(0.0)] * self.each**2

    def tile_sums(self, place: Place, depth: Depth) -> list[ll.Value]:
        lhs = self.operand(self.mark.lhs, self.mark.lhs_prologue, "m", place.row)
        rhs = self.operand(self.mark.rhs, self.mark.rhs_prologue, "n", place.column)
        return self.sums(lhs, rhs, place.batch, depth)

    def results(self, sums: list[ll.Value], place: Place) -> None:
        y, x = self.builder.udiv(self.thread, I32(SIDE)), self.builder.urem(self.thread, I32(SIDE))
        for number, total in enumerate(sums):
            row = self.plus(place.row, self.own_row(y, number // self.each))
            column = self.plus(place.column, self.own_column(x, number % self.each))
            self.finish(total, row, column, place.batch)

    def own_row(self, y: ll.Value, number: int) -> ll.Value:
        return self.plus(self.builder.mul(y, I32(self.each)), number)

    def own_column(self, x: ll.Value, number: int) -> ll.Value:
        return self.plus(x, SIDE * number)

    # Operands

    def operand(self, access: Access, prologue: Block | None, role: str, first: ll.Value) -> Operand:
        """Returns an operand, of which threads with neighbouring numbers read neighbours in memory."""
        along = self.runs_along_depth(access, role)
        memory_ = self.dialect.shared(self.code, 4 * DEPTH * self.pitch)
        operand = Operand(access, prologue, role, memory_, [], [], [])
        for number in range(self.each):
            element = self.plus(self.thread, SIDE * SIDE * number)
            inner, outer = (
                op(element, I32(DEPTH if along else self.tile)) for op in (self.builder.urem, self.builder.udiv)
            )
            own, depth = (outer, inner) if along else (inner, outer)
            place = self.plus(first, own)
            operand.places.append(self.indices(role, place))
            operand.within.append(self.inside(role, place, self.tile))
            operand.local.append((depth, own))
        return operand

    @property
    def pitch(self) -> int:
        """The distance between two lines of a piece in shared memory: odd, so that threads do not wait for a bank."""
        return self.tile + 1

    def read(self, operand: Operand, piece: ll.Value, batch: Indices) -> None:
        """Reads this thread's share of a piece, which begins at iteration `piece` of the depth."""
        for place, within, (depth, own) in zip(operand.places, operand.within, operand.local, strict=True):
            number = self.plus(piece, depth)
            loops = {**batch, **place, **self.indices("k", number)}
            guards = [within, self.inside("k", number, DEPTH)]
            element = self.element(operand.access, operand.prologue, loops, guards)
            if operand.prologue is None:
                element = widened(self.code, element, operand.access.buffer.dtype)
            at = self.plus(self.builder.mul(depth, I32(self.pitch)), own)
            self.builder.store(element, self._shared(operand, at))

    def _shared(self, operand: Operand, at: ll.Value) -> ll.Value:
        return self.builder.gep(operand.memory, [at], source_etype=F32)

    # Sums

    def sums(self, lhs: Operand, rhs: Operand, batch: Indices, part: Depth) -> list[ll.Value]:
        """Returns this thread's sums, row by row."""
        with counted(self.code, *self.range(part), DEPTH, self.zeros()) as piece:
            begin = self.builder.trunc(i64(piece.index), I32)
            self.read(lhs, begin, batch)
            self.read(rhs, begin, batch)
            self.dialect.barrier(self.code)
            sums = piece.carried
            for depth in range(DEPTH):
                sums = self._products(lhs, rhs, depth, sums)
            # The next piece takes the place of this one.
            self.dialect.barrier(self.code)
            piece.next = sums
        return piece.carried

    def _products(self, lhs: Operand, rhs: Operand, depth: int, sums: list[ll.Value]) -> list[ll.Value]:
        y, x = self.builder.udiv(self.thread, I32(SIDE)), self.builder.urem(self.thread, I32(SIDE))
        line = I32(depth * self.pitch)
        rows = [self.stored(lhs, self.plus(line, self.own_row(y, number))) for number in range(self.each)]
        columns = [self.stored(rhs, self.plus(line, self.own_column(x, number))) for number in range(self.each)]
        pairs = [(row, column) for row in rows for column in columns]
        return [self.code.fused(*pair, total) for pair, total in zip(pairs, sums, strict=True)]

    def stored(self, operand: Operand, at: ll.Value) -> ll.Value:
        return self.builder.load(self._shared(operand, at), typ=F32)
