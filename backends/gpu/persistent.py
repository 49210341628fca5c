"""Products in large tiles, of which each block computes several, one after the other (persistent blocks): while the
consumers store the results of one tile, the producer already copies pieces of the next one. There is one block on each
multiprocessor. Its registers are distributed again when it begins, since warps that only copy need few. Results take
no memory of pieces: each consumer's warp exchanges its sums in some memory of its own, so that neighbouring threads
run the epilogue for neighbouring results, and no warp waits for another one."""

from __future__ import annotations

import math

import llvmlite.ir as ll

from trivium.backends.gpu.contracted import Place
from trivium.backends.gpu.dialect import WARP
from trivium.backends.gpu.producers import ProducerContraction
from trivium.backends.gpu.tiles import CHUNK
from trivium.backends.llvm.code import I32
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import i64

COPYING, MULTIPLYING = 40, 232
"""The registers of threads that only copy, and of the others. A block of 384 threads begins with 168 each; those of a
tile's sums alone take 128."""

SPARE = 16
"""The bytes of a number that all threads know."""

ROWS, COLUMNS, PAD = 16, 64, 4
"""The rows of a tile that are one warp's, the columns of these that it exchanges at once, and the sums between two
lines in its memory."""

TOGETHER = 32
"""The results that a thread computes before it stores them."""


class PersistentContraction(ProducerContraction):
    """Emits the tiles of one block, for one thread."""

    swapped: bool = False
    """Whether the transposed tile is computed."""

    @property
    def extra(self) -> int:
        return super().extra + SPARE + 4 * self._own_sums * self.threads // WARP

    @property
    def _own_sums(self) -> int:
        """The number of sums for which a warp has memory of its own."""
        return ROWS * (COLUMNS + PAD)

    def spare(self) -> ll.Value:
        return self._shared(I32(self.stages * self.stage + super().extra))

    def exchange_registers(self, producing: bool) -> None:
        if producing:
            self.dialect.leave_registers(self.code, COPYING)
        else:
            self.dialect.take_registers(self.code, MULTIPLYING)

    # Results

    def results(self, sums: list[ll.Value], place: Place) -> None:
        """Runs the epilogue for some columns after the other."""
        builder, code, lanes = self.builder, self.code, self.lanes()
        kind = ll.VectorType(self.sum, lanes) if lanes > 1 else self.sum
        # Neighbours are columns of the result, which are rows of a transposed tile.
        columns = COLUMNS // 2 if self.swapped else COLUMNS
        count, width = ROWS * columns // WARP, ROWS if self.swapped else columns
        pitch, pair = width + PAD, code.shl(code.both(self.lane, 3), 1)

        def own(line: ll.Value, column: ll.Value) -> ll.Value:
            pair = (column, line) if self.swapped else (line, column)
            return self._own(self.plus(builder.mul(pair[0], I32(pitch)), pair[1]))

        for begin in range(0, self.columns, columns):
            # Between two tiles, the threads of a warp meet at matrix instructions.
            if begin:
                self.dialect.warp_barrier(code)
            for number in range(0, count, 2):
                line, column = self.own_line(number // 2 % 2), self.plus(pair, number // 4 * 8)
                both = sums[begin // columns * count + number :][:2]
                if self.swapped:
                    for step, total in enumerate(both):
                        builder.store(total, own(line, self.plus(column, step)))
                else:
                    self.store_pair(both, own(line, column))
            self.dialect.warp_barrier(code)
            together = math.gcd(count // lanes, max(1, TOGETHER // lanes))
            with counted(code, 0, count // lanes, together) as each:
                results = []
                for number in range(together):
                    turn = builder.mul(self.plus(builder.trunc(i64(each.index), I32), number), I32(WARP))
                    element = builder.mul(self.plus(turn, self.lane), I32(lanes))
                    line, column = builder.udiv(element, I32(width)), builder.urem(element, I32(width))
                    line, column = (column, line) if self.swapped else (line, column)
                    total = builder.load(own(line, column), typ=kind, align=min(CHUNK, 4 * lanes))
                    row = self.plus(place.row, self.tile_row(line))
                    results.append((total, row, self.plus(place.column, self.plus(column, begin))))
                self.finish_together(results, place.batch)

    def own_line(self, number: int) -> ll.Value:
        """Returns which of its warp's rows the first, or the second one, of this thread is."""
        return self.plus(self.code.lshr(self.lane, 2), 8 * number)

    def tile_row(self, line: ll.Value) -> ll.Value:
        """Returns which row of the tile one of its warp's rows is."""
        return self.plus(self.builder.mul(self.part_row, I32(ROWS)), line)

    def _own(self, at: ll.Value) -> ll.Value:
        """Returns a place in this warp's own memory, which is behind the words that count."""
        begin = (self.stages * self.stage + super().extra + SPARE) // 4
        warp = self.builder.udiv(self.thread, I32(WARP))
        first = self.plus(self.builder.mul(warp, I32(self._own_sums)), begin)
        return self._shared(self.plus(first, at), self.sum)
