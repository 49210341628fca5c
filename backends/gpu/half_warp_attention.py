"""Attention in f32 on devices whose threads exchange words and copy to shared memory while they compute: each half of a
warp processes one or several queries, of which every thread has the scores of its own keys, and the sums of its own
features. Scores never leave their registers; weights go through shared memory, from a thread to those of its half of a
warp. Values are copied while scores are computed, and vice versa."""

from __future__ import annotations

import math
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.gpu.attention import NOTHING, THREADS, store_row
from trivium.backends.gpu.contracted import Contracted, Indices, MakeEmitter
from trivium.backends.gpu.contraction import TiledContraction
from trivium.backends.gpu.dialect import GLOBAL_POINTER, Dialect
from trivium.backends.gpu.tensor_attention import paired
from trivium.backends.gpu.tiles import CHUNK, FUSED_KEYS, SIDE, half_warp_sizes, pitch
from trivium.backends.llvm.code import F32, I1, I32, Code
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.narrow import widened
from trivium.backends.llvm.numbers import i64
from trivium.compiler.kernel.attention import Attention
from trivium.compiler.kernel.contraction import Access
from trivium.compiler.kernel.structure import Block

FOUR = ll.VectorType(F32, 4)
"""What a thread reads of shared memory at once."""

LANES = 1, 2, 4, 8
"""The differences between the numbers of the threads of half a warp."""


@dataclass
class Piece:
    """Some lines of an operand, in shared memory: `width` elements of each, `pitch` from one to the next. `across`:
    lines run along the operand's own dimension, not along the depth."""

    product: Contracted
    access: Access
    prologue: Block | None
    role: str
    across: bool
    lines: int
    width: int
    memory: ll.Value

    @property
    def pitch(self) -> int:
        return pitch(self.width)

    def copy(self, own: ll.Value, depth: ll.Value, batch: Indices) -> None:
        """Begins to copy this thread's share, from an iteration of the operand's own loops and of the depth on."""
        product, builder = self.product, self.product.builder
        each = self.width // 4
        whole = self.prologue is None and self.access.buffer.dtype == "f32"
        whole = whole and product.is_whole(self.access, product.loops(self.role if self.across else "k"), 4)
        last = self.lines * each - 1
        for first in range(0, last + 1, THREADS):
            number = product.plus(product.thread, first)
            if first + THREADS > last + 1:
                # The rest of the threads copy what another one copies, too.
                number = builder.select(builder.icmp_unsigned("<", number, I32(last)), number, I32(last))
            line, chunk = builder.udiv(number, I32(each)), builder.urem(number, I32(each))
            place = builder.mul(chunk, I32(4))
            if whole:
                self._copy_whole(own, depth, line, place, batch)
                continue
            with counted(product.code, 0, 4) as element:
                index = builder.trunc(i64(element.index), I32)
                self._copy_element(own, depth, line, product.plus(place, index), batch)

    def at(self, line: ll.Value, place: ll.Value) -> ll.Value:
        at = self.product.plus(self.product.builder.mul(line, I32(self.pitch)), place)
        pointer = self.product.builder.gep(self.memory, [at], source_etype=F32)
        pointer.type = self.memory.type
        return pointer

    def read(self, line: ll.Value, place: ll.Value) -> list[ll.Value]:
        """Returns four elements of a line."""
        found = self.product.builder.load(self.at(line, place), typ=FOUR, align=CHUNK)
        return [self.product.builder.extract_element(found, I32(number)) for number in range(4)]

    def _loops(
        self, own: ll.Value, depth: ll.Value, line: ll.Value, place: ll.Value, batch: Indices
    ) -> tuple[Indices, list[ll.Value]]:
        product = self.product
        own = product.plus(own, place if self.across else line)
        depth = product.plus(depth, line if self.across else place)
        steps = (self.width, self.lines) if self.across else (self.lines, self.width)
        guards = [product.inside(self.role, own, steps[0]), product.inside("k", depth, steps[1])]
        return {**batch, **product.indices(self.role, own), **product.indices("k", depth)}, [*filter(None, guards)]

    def _copy_whole(self, own: ll.Value, depth: ll.Value, line: ll.Value, place: ll.Value, batch: Indices) -> None:
        product, access, code = self.product, self.access, self.product.code
        loops, guards = self._loops(own, depth, line, place, batch)
        positions = product.positions(access, loops)
        exists = product.condition([*guards, *product.paddings(access, positions)])
        at, nbytes = product.offset(access, positions), I32(CHUNK)
        if exists is not None:
            at, nbytes = code.select(exists, at, 0), code.select(exists, nbytes, 0)
        source = product.builder.gep(product.plain.buffers[access.buffer], [at], source_etype=F32)
        source.type = GLOBAL_POINTER
        product.dialect.copy_async(code, self.at(line, place), source, nbytes)

    def _copy_element(self, own: ll.Value, depth: ll.Value, line: ll.Value, place: ll.Value, batch: Indices) -> None:
        loops, guards = self._loops(own, depth, line, place, batch)
        value = self.product.element(self.access, self.prologue, loops, guards)
        if self.prologue is None:
            value = widened(self.product.code, value, self.access.buffer.dtype)
        self.product.builder.store(value, self.at(line, place))


class HalfWarpAttention:
    """Emits one block's tile of queries, for one thread."""

    def __init__(self, mark: Attention, code: Code, dialect: Dialect, tile: int, emitter: MakeEmitter) -> None:
        self._code, self._builder, self._dialect, self._tile = code, code.builder, dialect, tile
        self._thread, self._rows_block = dialect.thread(code), mark.rows
        self._scores = TiledContraction(mark.scores, code, dialect, self._thread, tile, emitter)
        self._values = TiledContraction(mark.values, code, dialect, self._thread, tile, emitter)
        self._x = code.builder.urem(self._thread, I32(SIDE))
        sizes = half_warp_sizes(mark, tile)
        self._depth, self._rows, self._parts = sizes[0][1], tile // SIDE, sizes[2][1] // (4 * SIDE)
        own = code.builder.mul(code.builder.udiv(self._thread, I32(SIDE)), I32(self._rows))
        self._lines = [self._scores.plus(own, number) for number in range(self._rows)]
        # The memory that a launch grants is in one piece.
        memory, first = dialect.shared(code, sum(4 * lines * pitch(width) for lines, width in sizes)), 0
        places = []
        for lines, width in sizes:
            places.append(code.builder.gep(memory, [I32(first)], source_etype=F32))
            places[-1].type = memory.type
            first += lines * pitch(width)
        scores, values = mark.scores, mark.values
        lhs = scores.lhs, scores.lhs_prologue, "m", False, *sizes[0]
        rhs = scores.rhs, scores.rhs_prologue, "n", False, *sizes[1]
        added = values.rhs, values.rhs_prologue, "n", True, *sizes[2]
        self._queries, self._keys = Piece(self._scores, *lhs, places[0]), Piece(self._scores, *rhs, places[1])
        self._added = Piece(self._values, *added, places[2])
        # Only where they are stored and read matters.
        self._weights = Piece(self._values, *added[:4], *sizes[3], places[3])

    def emit(self, block: ll.Value) -> None:
        """Emits the tile that has the number `block`."""
        scores, dialect, code, zero = self._scores, self._dialect, self._code, I32(0)
        tiles = I32(-(-scores.extent("m") // self._tile))
        row = self._builder.mul(self._builder.urem(block, tiles), I32(self._tile))
        batch = scores.indices("batch", self._builder.udiv(block, tiles))
        self._queries.copy(row, zero, batch)
        self._keys.copy(zero, zero, batch)
        dialect.commit(code)
        sums = [F32(0.0)] * (self._rows * self._parts * 4)
        state = [*[NOTHING] * self._rows, *[F32(0.0)] * self._rows, *sums]
        with counted(code, 0, scores.extent("n"), FUSED_KEYS, state) as piece:
            first = self._builder.trunc(i64(piece.index), I32)
            self._arrive()
            self._added.copy(zero, first, batch)
            dialect.commit(code)
            found = self._found(row, first, batch)
            self._arrive()
            following = scores.plus(first, FUSED_KEYS)
            with self._builder.if_then(self._builder.icmp_unsigned("<", following, I32(scores.extent("n")))):
                self._keys.copy(following, zero, batch)
            dialect.commit(code)
            piece.next = self._following(found, piece.carried)
        self._finish(piece.carried, row, batch)

    def _arrive(self) -> None:
        """Waits for the copies of all threads."""
        self._dialect.wait(self._code, 0)
        self._dialect.barrier(self._code)

    # Scores

    def _found(self, row: ll.Value, first: ll.Value, batch: Indices) -> list[list[ll.Value]]:
        """Returns this thread's scores, for each of its rows: -inf beyond the last key."""
        scores, code, across = self._scores, self._code, FUSED_KEYS // SIDE
        columns = [scores.plus(self._x, SIDE * number) for number in range(across)]
        step = SIDE if self._depth % SIDE == 0 else 4
        with counted(code, 0, self._depth, step, [F32(0.0)] * (self._rows * across)) as piece:
            begin = self._builder.trunc(i64(piece.index), I32)
            sums = piece.carried
            for place in (scores.plus(begin, number) for number in range(0, step, 4)):
                keys = [self._keys.read(column, place) for column in columns]
                queries = [self._queries.read(line, place) for line in self._lines]
                pairs = [(query, key) for query in queries for key in keys]
                for number in range(4):
                    sums = [code.fused(q[number], k[number], s) for (q, k), s in zip(pairs, sums, strict=True)]
            piece.next = sums
        found = []
        for number, line in enumerate(self._lines):
            own = piece.carried[across * number : across * (number + 1)]
            loops = {**batch, **scores.indices("m", scores.plus(row, line))}
            found.append([self._score(*pair, loops, first) for pair in zip(own, columns, strict=True)])
        return found

    def _score(self, total: ll.Value, column: ll.Value, loops: Indices, first: ll.Value) -> ll.Value:
        scores = self._scores
        key = scores.plus(first, column)
        loops = {**loops, **scores.indices("n", key)}
        (score,) = scores.run(
            scores.mark.epilogue, [total, *(loops[one] for one in scores.mark.loops if one.role != "k")]
        )
        inside = scores.inside("n", key, FUSED_KEYS)
        return score if inside is None else self._builder.select(inside, score, NOTHING)

    # Weights

    def _following(self, scores: list[list[ll.Value]], state: list[ll.Value]) -> list[ll.Value]:
        """Returns the state after a tile: the greatest score of each row, this thread's share of the sum of weights,
        and its sums of weighted values."""
        builder, rows, each = self._builder, self._rows, 4 * self._parts
        greatest, totals, sums = state[:rows], state[rows : 2 * rows], state[2 * rows :]
        for number, own in enumerate(scores):
            found = paired(self._greater, own)
            for lanes in LANES:
                found = self._greater(self._exchanged(found, lanes), found)
            found = self._greater(found, greatest[number])
            # A row of nothing but -inf has no weights.
            shift = builder.select(builder.fcmp_ordered("==", found, NOTHING), F32(0.0), found)
            factor, greatest[number] = self._weight(greatest[number], shift), found
            weights = [self._weight(score, shift) for score in own]
            totals[number] = self._code.fused(totals[number], factor, paired(builder.fadd, weights))
            for place, weight in enumerate(weights):
                column = self._scores.plus(self._x, SIDE * place)
                builder.store(weight, self._weights.at(self._lines[number], column))
            own_sums = slice(each * number, each * (number + 1))
            sums[own_sums] = [builder.fmul(total, factor) for total in sums[own_sums]]
        self._dialect.warp_barrier(self._code)
        return [*greatest, *totals, *self._weighted(sums)]

    def _weighted(self, sums: list[ll.Value]) -> list[ll.Value]:
        """Returns the sums after a tile of weighted values."""
        code, plus = self._code, self._values.plus
        own = [plus(self._builder.mul(self._x, I32(4)), 4 * SIDE * part) for part in range(self._parts)]
        with counted(code, 0, FUSED_KEYS, SIDE, sums) as piece:
            begin = self._builder.trunc(i64(piece.index), I32)
            sums = piece.carried
            for first in (plus(begin, number) for number in range(0, SIDE, 4)):
                weights = [self._weights.read(line, first) for line in self._lines]
                for number in range(4):
                    found = [self._added.read(plus(first, number), place) for place in own]
                    values = [value for four in found for value in four]
                    pairs = [(weight[number], value) for weight in weights for value in values]
                    sums = [code.fused(*pair, total) for pair, total in zip(pairs, sums, strict=True)]
            piece.next = sums
        return piece.carried

    def _weight(self, score: ll.Value, shift: ll.Value) -> ll.Value:
        difference = self._builder.fsub(score, shift)
        return self._dialect.power_of_two(self._code, self._builder.fmul(difference, F32(math.log2(math.e))))

    def _greater(self, one: ll.Value, other: ll.Value) -> ll.Value:
        """Returns the greater of two numbers. If one is NaN, all weights are, in any case; a result is, too."""
        return self._code.intrinsic("llvm.maxnum" if self._rows_block is None else "llvm.maximum", one, other)

    def _exchanged(self, value: ll.Value, lanes: int) -> ll.Value:
        builder = self._builder
        return builder.bitcast(self._dialect.exchanged(self._code, builder.bitcast(value, I32), lanes), F32)

    # Results

    def _finish(self, state: list[ll.Value], first: ll.Value, batch: Indices) -> None:
        """Runs the program's own computation for each sum whose row and column exist."""
        builder, values, rows, each = self._builder, self._values, self._rows, 4 * self._parts
        greatest, totals, sums = state[:rows], state[rows : 2 * rows], state[2 * rows :]
        for lanes in LANES:
            totals = [builder.fadd(total, self._exchanged(total, lanes)) for total in totals]
        is_first = builder.icmp_unsigned("==", self._x, I32(0))
        for found in zip(greatest, totals, self._lines, strict=True):
            store_row(self._scores, self._rows_block, self._tile, is_first, [*found[:2]], first, found[2], batch)
        for number, total in enumerate(sums):
            line, place = divmod(number, each)
            part, further = divmod(place, 4)
            row = values.plus(first, self._lines[line])
            column = values.plus(builder.mul(self._x, I32(4)), 4 * SIDE * part + further)
            guards = [values.inside("m", row, self._tile), values.inside("n", column, 4 * SIDE * self._parts)]
            with builder.if_then(values.condition([*filter(None, guards)]) or I1(1)):
                loops = {**batch, **values.indices("m", row), **values.indices("n", column)}
                outer = [loops[loop] for loop in values.mark.loops if loop.role != "k"]
                values.run(values.mark.epilogue, [total, totals[line], *outer])
