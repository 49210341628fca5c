"""Attention in tiles: a block of threads processes a tile of queries, and loops over tiles of keys. It computes a tile
of scores like any product, and weights from them in shared memory, relative to the largest score of each row so far.
Then each thread adds the weighted values to its small square of sums, which it rescales first if the largest score has
increased. At the end it divides them by the sums of the weights, as the program says."""

from __future__ import annotations

import math

import llvmlite.ir as ll

from trivium.backends.gpu.contracted import Contracted, Depth, Indices, MakeEmitter
from trivium.backends.gpu.contraction import Operand, TiledContraction
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.tiles import DEPTH, SIDE
from trivium.backends.llvm.code import F32, I1, I32, Code
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import i64
from trivium.compiler.kernel.attention import Attention
from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.structure import Block

THREADS = SIDE * SIDE
NOTHING = F32(-math.inf)


def weight_block() -> Block:
    """Returns the computation of a weight from a score and what is subtracted from it."""
    b = KernelBuilder("weight")
    with b.block("f32", "f32") as block:
        block.yields = [b.apply("exponential", b.subtract(*block.parameters))]
    return block


def maximum_block() -> Block:
    """Returns the computation of the greater of two scores, as programs define it."""
    b = KernelBuilder("maximum")
    with b.block("f32", "f32") as block:
        block.yields = [b.apply("maximum", *block.parameters)]
    return block


def store_row(
    scores: Contracted,
    rows: Block | None,
    tile: int,
    is_own: ll.Value,
    found: list[ll.Value],
    first: ll.Value,
    own: ll.Value,
    batch: Indices,
) -> None:
    """Runs the program's own computation for a row of a tile that begins at `first`, if that exists: from the greatest
    score and the sum of weights `found`, in the thread where `is_own` holds."""
    if rows is None:
        return
    row = scores.plus(first, own)
    guards = [is_own, scores.inside("m", row, tile)]
    with scores.builder.if_then(scores.condition([*filter(None, guards)]) or is_own):
        loops = {**batch, **scores.indices("m", row)}
        scores.run(rows, [*found, *(loops[loop] for loop in scores.mark.loops if loop.role in ("batch", "m"))])


class FusedAttention:
    """Emits one block's tile of queries, for one thread."""

    def __init__(self, mark: Attention, code: Code, dialect: Dialect, tile: int, emitter: MakeEmitter) -> None:
        self._code, self._builder, self._dialect, self._tile = code, code.builder, dialect, tile
        self._thread, self._rows_block = dialect.thread(code), mark.rows
        columns = -(-math.prod(mark.values.extents("n")) // SIDE) * SIDE
        self._scores = TiledContraction(mark.scores, code, dialect, self._thread, tile, emitter)
        self._values = TiledContraction(mark.values, code, dialect, self._thread, columns, emitter)
        self._keys, self._share = self._scores.extent("n"), THREADS // tile
        self._weights = dialect.shared(code, 4 * tile * (tile + 1))
        self._parts, self._factors = dialect.shared(code, 4 * THREADS), dialect.shared(code, 4 * tile)
        self._y, self._x = code.builder.udiv(self._thread, I32(SIDE)), code.builder.urem(self._thread, I32(SIDE))
        # The threads that share a row of scores.
        share = I32(self._share)
        self._row, self._lane = code.builder.udiv(self._thread, share), code.builder.urem(self._thread, share)

    def emit(self, block: ll.Value) -> None:
        """Emits the tile that has the number `block`."""
        scores, values = self._scores, self._values
        tiles = I32(-(-scores.extent("m") // self._tile))
        row = self._builder.mul(self._builder.urem(block, tiles), I32(self._tile))
        batch = scores.indices("batch", self._builder.udiv(block, tiles))
        lhs = scores.operand(scores.mark.lhs, scores.mark.lhs_prologue, "m", row)
        added = values.operand(values.mark.rhs, values.mark.rhs_prologue, "n", I32(0))
        whole = Depth(I32(0), I32(scores.extent("k")))
        zeros = [F32(0.0)] * (scores.each * values.each)
        with counted(self._code, 0, self._keys, self._tile, [NOTHING, F32(0.0), *zeros]) as piece:
            greatest, total, *sums = piece.carried
            first = self._builder.trunc(i64(piece.index), I32)
            rhs = scores.operand(scores.mark.rhs, scores.mark.rhs_prologue, "n", first)
            self._store_scores(scores.sums(lhs, rhs, batch, whole), row, first, batch)
            self._dialect.barrier(self._code)
            greatest, total = self._weigh(greatest, total)
            self._dialect.barrier(self._code)
            piece.next = [greatest, total, *self._add(added, first, batch, self._scaled(sums))]
        greatest, total, *sums = piece.carried
        self._finish(greatest, sums, total, row, batch)

    # Scores

    def _store_scores(self, sums: list[ll.Value], row: ll.Value, first: ll.Value, batch: Indices) -> None:
        """Stores this thread's scores; -inf beyond the last key."""
        scores = self._scores
        for number, total in enumerate(sums):
            own_row = scores.own_row(self._y, number // scores.each)
            own_column = scores.own_column(self._x, number % scores.each)
            key = scores.plus(first, own_column)
            loops = {**batch, **scores.indices("m", scores.plus(row, own_row)), **scores.indices("n", key)}
            outer = [loops[loop] for loop in scores.mark.loops if loop.role != "k"]
            (score,) = scores.run(scores.mark.epilogue, [total, *outer])
            inside = scores.inside("n", key, self._tile)
            if inside is not None:
                score = self._builder.select(inside, score, NOTHING)
            self._builder.store(score, self._weight_at(own_row, own_column))

    def _weight_at(self, row: ll.Value, column: ll.Value) -> ll.Value:
        # Lines have an odd length, so that threads do not wait for a bank.
        at = self._builder.add(self._builder.mul(row, I32(self._tile + 1)), column)
        return self._builder.gep(self._weights, [at], source_etype=F32)

    def _place(self, memory: ll.Value, number: ll.Value) -> ll.Value:
        return self._builder.gep(memory, [number], source_etype=F32)

    # Weights

    def _weigh(self, greatest: ll.Value, total: ll.Value) -> tuple[ll.Value, ll.Value]:
        """Turns scores into weights. Returns the greatest score of this thread's row, and the sum of the weights that
        are its own, both so far."""
        builder, code = self._builder, self._code
        with counted(code, 0, self._tile, self._share, [NOTHING]) as each:
            score = builder.load(self._own_place(i64(each.index)), typ=F32)
            each.next = [self._greater(score, each.carried[0])]
        builder.store(each.carried[0], self._place(self._parts, self._thread))
        self._dialect.barrier(code)
        found = greatest
        for part in self._of_row(self._row):
            found = self._greater(part, found)
        # A row of nothing but -inf has no weights.
        shift = builder.select(builder.fcmp_ordered("==", found, NOTHING), F32(0.0), found)
        (factor,) = self._scores.run(weight_block(), [greatest, shift])
        with builder.if_then(builder.icmp_unsigned("==", self._lane, I32(0))):
            builder.store(factor, self._place(self._factors, self._row))
        with counted(code, 0, self._tile, self._share, [F32(0.0)]) as each:
            at = self._own_place(i64(each.index))
            (weight,) = self._scores.run(weight_block(), [builder.load(at, typ=F32), shift])
            builder.store(weight, at)
            each.next = [builder.fadd(each.carried[0], weight)]
        return found, builder.fadd(builder.fmul(total, factor), each.carried[0])

    def _own_place(self, begin: ll.Value) -> ll.Value:
        return self._weight_at(self._row, self._builder.add(self._builder.trunc(begin, I32), self._lane))

    def _greater(self, one: ll.Value, other: ll.Value) -> ll.Value:
        if self._rows_block is not None:
            return self._scores.run(maximum_block(), [one, other])[0]
        return self._builder.select(self._builder.fcmp_ordered(">", one, other), one, other)

    def _of_row(self, row: ll.Value) -> list[ll.Value]:
        """Returns what the threads that share a row have left."""
        first = self._builder.mul(row, I32(self._share))
        places = [self._place(self._parts, self._builder.add(first, I32(n))) for n in range(self._share)]
        return [self._builder.load(place, typ=F32) for place in places]

    def _whole(self, row: ll.Value) -> ll.Value:
        """Returns the sum of the weights of a row, from the parts of its threads."""
        whole, *rest = self._of_row(row)
        for part in rest:
            whole = self._builder.fadd(whole, part)
        return whole

    # Sums

    def _own_rows(self) -> list[ll.Value]:
        return [self._scores.own_row(self._y, number) for number in range(self._scores.each)]

    def _scaled(self, sums: list[ll.Value]) -> list[ll.Value]:
        """Returns the sums relative to the new greatest scores."""
        factors = [self._builder.load(self._place(self._factors, row), typ=F32) for row in self._own_rows()]
        each = self._values.each
        return [self._builder.fmul(total, factors[number // each]) for number, total in enumerate(sums)]

    def _add(self, values: Operand, first: ll.Value, batch: Indices, sums: list[ll.Value]) -> list[ll.Value]:
        """Adds the weighted values of a tile of keys."""
        code, builder, across = self._code, self._builder, range(self._values.each)
        with counted(code, 0, self._tile, DEPTH, sums) as piece:
            begin = builder.trunc(i64(piece.index), I32)
            self._values.read(values, builder.add(first, begin), batch)
            self._dialect.barrier(code)
            sums = piece.carried
            for depth in range(DEPTH):
                key = builder.add(begin, I32(depth))
                rows = [builder.load(self._weight_at(row, key), typ=F32) for row in self._own_rows()]
                line = I32(depth * self._values.pitch)
                places = [self._values.plus(line, self._values.own_column(self._x, number)) for number in across]
                pairs = [(row, column) for row in rows for column in [self._values.stored(values, p) for p in places]]
                sums = [code.fused(*pair, total) for pair, total in zip(pairs, sums, strict=True)]
            # The next piece takes the place of this one.
            self._dialect.barrier(code)
            piece.next = sums
        return piece.carried

    # Results

    def _finish(
        self, greatest: ll.Value, sums: list[ll.Value], total: ll.Value, first: ll.Value, batch: Indices
    ) -> None:
        """Runs the program's own computation for each sum whose row and column exist."""
        builder, scores, values = self._builder, self._scores, self._values
        builder.store(total, self._place(self._parts, self._thread))
        self._dialect.barrier(self._code)
        totals = [self._whole(row) for row in self._own_rows()]
        is_first = builder.icmp_unsigned("==", self._lane, I32(0))
        store_row(
            scores, self._rows_block, self._tile, is_first, [greatest, self._whole(self._row)], first, self._row, batch
        )
        for number, found in enumerate(sums):
            row = scores.plus(first, scores.own_row(self._y, number // values.each))
            column = values.own_column(self._x, number % values.each)
            guards = [scores.inside("m", row, self._tile), values.inside("n", column, values.tile)]
            with builder.if_then(values.condition([*filter(None, guards)]) or I1(1)):
                loops = {**batch, **scores.indices("m", row), **values.indices("n", column)}
                outer = [loops[loop] for loop in values.mark.loops if loop.role != "k"]
                values.run(values.mark.epilogue, [found, totals[number // values.each], *outer])
