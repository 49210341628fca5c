"""Attention in bf16 and f16, and in f32 that may be rounded to tf32, with matrix instructions. Each warp of a block
processes 16 queries, whose scores, weights and sums of weighted values stay in the registers of its threads. Keys and
values go through shared memory, in tiles: values are copied while scores are computed, and vice versa. After neighbours
are packed into words, a warp's scores are already in the registers where the second product expects its factor. A word
of tf32 is a single element; there, the second product takes the 8 keys of an instruction in a different order, in both
factors.

Weights are f32, and so are their products with the values in the program. Therefore a weight is represented as a sum of
numbers of the values' type (`TERMS`), each of which is multiplied: with two of them, the relative error is at most
2^-16. With tf32, it is rounded like any factor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.gpu.attention import NOTHING, store_row
from trivium.backends.gpu.contracted import Indices, MakeEmitter
from trivium.backends.gpu.dialect import WARP, Dialect
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.gpu.tensor import TensorContraction, TensorOperand
from trivium.backends.gpu.tiles import (
    TENSOR_KEYS,
    attention_instruction,
    scale_of,
    width,
)
from trivium.backends.llvm.code import F32, I1, I8, I32, Code
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import i64
from trivium.compiler.kernel.attention import Attention
from trivium.compiler.kernel.chained import Chained
from trivium.compiler.kernel.contraction import Contraction
from trivium.compiler.kernel.structure import Load, Store, walk
from trivium.compiler.target import MatrixInstruction

TERMS = {"f16": 2, "bf16": 3, "tf32": 1}
"""How many numbers of a type add up to a weight. Results that are stored as bf16 have no use for the third one."""

KEPT, MORE = 0xFFFF0000, 1 + 2.0**-23
"""The bits of an f32 that bf16 can hold; and a factor so close to 1 that it only makes sure that a positive weight has
a rest, with which an infinite value is infinite, too. A weight of less than 2^-88 may have none."""


Part = tuple[Contraction, int, int]
"""What has pieces in shared memory: a product, the rows or columns of a tile, and the number of pieces."""


@dataclass(frozen=True)
class Pair:
    """Both sides of a product of rows and keys; pieces of the right one begin at `stage`. `depth`: its instructions."""

    left: TensorContraction
    right: TensorContraction
    lhs: TensorOperand
    rhs: TensorOperand
    depth: int
    stage: ll.Value


class TensorAttention:
    """Emits one block's tile of queries, for one thread."""

    _kind: type[TensorContraction] = TensorContraction
    _steps = 2
    """The instructions that multiply a line of shared memory."""

    def __init__(
        self, mark: Attention | Chained, code: Code, dialect: Dialect, tile: int, emitter: MakeEmitter
    ) -> None:
        self._rows_block = mark.rows if isinstance(mark, Attention) else None
        self._mark, self._code, self._builder, self._dialect = mark, code, code.builder, dialect
        self._tile, self._emitter, self._thread = tile, emitter, dialect.thread(code)
        self._tile_keys = self._keys_of_tile()
        self._instruction = self._found_instruction()
        self._dtype = self._instruction.operands
        self._lane = code.builder.urem(self._thread, I32(WARP))
        self._first_row = code.builder.mul(code.builder.udiv(self._thread, I32(WARP)), I32(16))
        self._depth = -(-math.prod(mark.scores.extents("k")) // self._instruction.depth)
        self._features = -(-math.prod(mark.values.extents("n")) // 16) * 16
        self._queries, self._scores, self._values = self._products()
        self._values.span = self._tile_keys
        scales = (scale_of(prologue) for prologue in (mark.scores.lhs_prologue, mark.scores.rhs_prologue))
        self._scale, self._unit = math.prod(scale for scale in scales if scale is not None), math.log2(math.e)
        epilogue, self._factor = mark.scores.epilogue, 1.0
        if epilogue.yields == [epilogue.parameters[0]] and 2.0**-32 < self._scale < 2.0**32:
            # Nothing else is done with scores.
            self._factor, self._scale, self._unit = self._scale, 1.0, self._unit * self._scale
        stored = {one.buffer.dtype for one in mark.values.epilogue.instructions if isinstance(one, Store)}
        self._terms = 1 if code.flags else 2 if stored == {"bf16"} else TERMS[self._dtype]

    def _keys_of_tile(self) -> int:
        return TENSOR_KEYS

    def _found_instruction(self) -> MatrixInstruction:
        assert isinstance(self._code.target, GpuTarget), "code for a GPU"
        found = attention_instruction(self._mark, self._code.target)
        assert found is not None, "the schedule has found an instruction"
        return found

    def _products(self) -> Sequence[TensorContraction]:
        """Returns what has the block's queries, a tile of keys, and one of values, in shared memory."""
        mark, deep = self._mark, -(-self._depth // self._steps)
        parts = (mark.scores, self._tile, deep), (mark.scores, self._tile_keys, deep)
        return self._made([*parts, (mark.values, self._width(), self._long())])

    def _long(self) -> int:
        """Returns the number of pieces of a tile of values."""
        return -(-self._tile_keys // (self._steps * self._instruction.depth))

    def _width(self) -> int:
        """Returns the features of a tile of values."""
        return width(self._features)

    def _made(self, parts: Sequence[Part]) -> list[TensorContraction]:
        """Returns what has parts in shared memory, which is in one piece if a launch grants it."""
        line = self._kind.line
        nbytes = sum(size * stages * line for _, size, stages in parts)
        memory, first = self._dialect.shared(self._code, nbytes, self._kind.alignment), 0
        found = []
        for mark, size, stages in parts:
            pointer = self._builder.gep(memory, [I32(first)], source_etype=I8)
            pointer.type = memory.type
            found.append(self._product(mark, size, stages, pointer))
            first += size * stages * line
        return found

    def _product(self, mark: Contraction, size: int, stages: int, memory: ll.Value) -> TensorContraction:
        operands = mark, self._code, self._dialect, self._thread, size, self._emitter
        facts = {"instruction": self._instruction, "threads": 2 * self._tile, "stages": stages, "sides": 1}
        return self._kind(*operands, **facts, memory=memory)

    def emit(self, block: ll.Value) -> None:
        """Emits the tile that has the number `block`."""
        scores, values, dialect, code, keys = self._scores, self._values, self._dialect, self._code, self._tile_keys
        # Otherwise NVIDIA's assembler makes room for more blocks, and spills, or for fewer than fit.
        dialect.resident(code, self._blocks())
        tiles = I32(-(-scores.extent("m") // self._tile))
        row = self._builder.mul(self._builder.urem(block, tiles), I32(self._tile))
        batch = scores.indices("batch", self._builder.udiv(block, tiles))
        queries = self._queries.operand(scores.mark.lhs, None, "m", row, 0)
        across = True if self._dtype == "tf32" else None
        added = values.operand(values.mark.rhs, None, "n", I32(0), 0, across)
        self._copy(self._queries, queries, batch, I32(0))
        self._copy(scores, self._keys(I32(0)), batch, I32(0))
        dialect.commit(code)
        zeros = [F32(0.0)] * (self._features // 2)
        state = [NOTHING, NOTHING, F32(0.0), F32(0.0), *zeros]
        with counted(code, 0, scores.extent("n"), keys, state) as piece:
            first = self._builder.trunc(i64(piece.index), I32)
            self._arrive()
            self._copy(values, added, batch, first)
            dialect.commit(code)
            (sums,) = self._scored([Pair(self._queries, scores, queries, self._keys(first), self._depth, I32(0))])
            found = [self._score(total, number, row, first, batch) for number, total in enumerate(sums)]
            self._arrive()
            following = scores.plus(first, keys)
            with self._builder.if_then(self._builder.icmp_unsigned("<", following, I32(scores.extent("n")))):
                self._copy(scores, self._keys(following), batch, I32(0))
            dialect.commit(code)
            piece.next = self._added(added, found, piece.carried)
        self._finish(piece.carried, row, batch)

    def _keys(self, first: ll.Value) -> TensorOperand:
        return self._scores.operand(self._mark.scores.rhs, None, "n", first, 0)

    def _copy(self, to: TensorContraction, operand: TensorOperand, batch: Indices, begin: ll.Value) -> None:
        """Begins to copy all pieces of an operand, from iteration `begin` of the depth on."""
        for stage in range(to.stages):
            to.copy(operand, to.plus(begin, stage * to.depth), I32(stage), batch)

    def _arrive(self) -> None:
        """Waits for the copies of all threads."""
        self._dialect.wait(self._code, 0)
        self._dialect.barrier(self._code)

    # Scores

    def _scored(self, pairs: Sequence[Pair]) -> list[list[ll.Value]]:
        """Returns this thread's sums of each of several products, for a tile of keys: for each 8 of them, two of one
        row and two of another."""
        found = []
        for pair in pairs:
            sums: list[ll.Value] = [F32(0.0)] * (self._tile_keys // 2)
            for number in range(pair.depth):
                stage, step = divmod(number, self._steps)
                words = pair.left.fragment(pair.lhs, I32(stage), self._first_row, step)
                sums = self._multiplied(pair.right, pair.rhs, self._later(pair.stage, stage), step, [words], sums)
            found.append(sums)
        return found

    def _later(self, stage: ll.Value, number: int) -> ll.Value:
        return self._code.iadd(stage, number) if number else stage

    def _multiplied(
        self,
        product: TensorContraction,
        operand: TensorOperand,
        stage: ll.Value,
        step: int,
        terms: list[list[ll.Value]],
        sums: list[ll.Value],
    ) -> list[ll.Value]:
        """Returns sums after products of the left factors `terms` with all columns of a right one."""
        found: list[ll.Value] = []
        for column in range(0, 2 * len(sums), 16):
            if operand.across and self._dtype == "tf32":
                words = self._pairs(operand, stage, step, column)
            else:
                words = product.fragment(operand, stage, I32(column), step)
            for half in (words[:2], words[2:]):
                own = sums[len(found) : len(found) + 4]
                for term in terms:
                    own = self._dialect.multiply_add(self._code, self._instruction, term, half, own)
                found += own
        return found

    def _pairs(self, values: TensorOperand, stage: ll.Value, step: int, column: int) -> list[ll.Value]:
        """Returns this thread's words of 16 columns of tf32, and the keys of an instruction: of a column the two keys
        whose weights it has, and the same of the eighth column after it."""
        product, code, lane = self._values, self._code, self._lane
        key = product.plus(code.shl(code.both(lane, 3), 1), self._instruction.depth * step)
        own = product.plus(code.lshr(lane, 2), column)
        places = [(product.plus(key, number), product.plus(own, further)) for further in (0, 8) for number in (0, 1)]
        words = [product.word(values, stage, *place) for place in places]
        return [self._dialect.rounded_to_tf32(code, word) for word in words]

    def _row(self, number: int) -> ll.Value:
        """Returns the row of a sum of that number, in the block's tile."""
        own = self._code.iadd(self._first_row, self._code.lshr(self._lane, 2))
        return self._scores.plus(own, 8 * (number // 2 % 2))

    def _column(self, number: int) -> ll.Value:
        pair = self._code.shl(self._code.both(self._lane, 3), 1)
        return self._scores.plus(pair, 8 * (number // 4) + number % 2)

    def _score(self, total: ll.Value, number: int, row: ll.Value, first: ll.Value, batch: Indices) -> ll.Value:
        """Returns the program's score for a sum: -inf beyond the last key."""
        scores, builder = self._scores, self._builder
        key = scores.plus(first, self._column(number))
        loops = {**batch, **scores.indices("m", scores.plus(row, self._row(number))), **scores.indices("n", key)}
        outer = [loops[loop] for loop in scores.mark.loops if loop.role != "k"]
        scaled = total if self._scale == 1.0 else builder.fmul(total, F32(self._scale))
        (score,) = scores.run(scores.mark.epilogue, [scaled, *outer])
        inside = scores.inside("n", key, self._tile_keys)
        return score if inside is None else builder.select(inside, score, NOTHING)

    # Weights

    def _added(self, values: TensorOperand, scores: list[ll.Value], state: list[ll.Value]) -> list[ll.Value]:
        """Returns the state after a tile: for both rows the greatest score, and this thread's share of the sum of
        weights; then its sums of weighted values."""
        builder = self._builder
        greatest, totals, sums = state[:2], state[2:4], state[4:]
        weights = list(scores)
        for part in range(2):
            own = [number for number in range(len(scores)) if number // 2 % 2 == part]
            found = paired(self._greater, [scores[number] for number in own])
            for lanes in (1, 2):
                found = self._greater(self._exchanged(found, lanes), found)
            found = self._greater(found, greatest[part])
            # A row of nothing but -inf has no weights.
            shift = builder.select(builder.fcmp_ordered("==", found, NOTHING), F32(0.0), found)
            factor, greatest[part] = self._weight(greatest[part], shift), found
            for number in own:
                weights[number] = self._weight(scores[number], shift)
            more = paired(builder.fadd, [weights[number] for number in own])
            totals[part] = self._code.fused(totals[part], factor, more)
            sums = [builder.fmul(x, factor) if n // 2 % 2 == part else x for n, x in enumerate(sums)]
        each = self._instruction.depth // 2
        parts = [weights[first : first + each] for first in range(0, len(weights), each)]
        return [*greatest, *totals, *self._multiplied_weights(values, parts, sums, I32(0))]

    def _multiplied_weights(
        self, values: TensorOperand, parts: list[list[ll.Value]], sums: list[ll.Value], first: ll.Value
    ) -> list[ll.Value]:
        """Returns sums after the products of weights, in parts for one instruction each, with a tile of values, whose
        pieces begin at the stage `first`."""
        for number, weights in enumerate(parts):
            stage, step = divmod(number, self._steps)
            words = self._words(weights)
            sums = self._multiplied(self._values, values, self._later(first, stage), step, words, sums)
        return sums

    def _blocks(self) -> int:
        """Returns how many blocks have enough registers on one multiprocessor."""
        is_small = max(self._depth * self._instruction.depth, self._features) <= 64
        reads = any(isinstance(one, Load) for one in walk(self._scores.mark.epilogue))
        return 3 if is_small and not reads else 2

    def _weight(self, score: ll.Value, shift: ll.Value) -> ll.Value:
        """Returns the weight of a score relative to that of `shift`. Differences come before the factors, since the
        least numbers of f32, which stand for masked scores, have no multiples."""
        difference = self._builder.fsub(score, shift)
        return self._dialect.power_of_two(self._code, self._builder.fmul(difference, F32(self._unit)))

    def _greater(self, one: ll.Value, other: ll.Value) -> ll.Value:
        """Returns the greater of two numbers. If one is NaN, all weights are, in any case; a result is, too."""
        return self._code.intrinsic("llvm.maxnum" if self._rows_block is None else "llvm.maximum", one, other)

    def _exchanged(self, value: ll.Value, lanes: int) -> ll.Value:
        builder = self._builder
        return builder.bitcast(self._dialect.exchanged(self._code, builder.bitcast(value, I32), lanes), F32)

    def _words(self, weights: list[ll.Value]) -> list[list[ll.Value]]:
        """Returns the left factor of an instruction for the weights of its keys, in terms."""
        if self._dtype == "tf32":
            words = [self._builder.bitcast(weight, I32) for weight in weights]
            return [[self._dialect.rounded_to_tf32(self._code, words[place]) for place in (0, 2, 1, 3)]]
        terms: list[list[ll.Value]] = []
        for _ in range(self._terms - 1):
            pairs = [self._term(*weights[place : place + 2]) for place in range(0, 8, 2)]
            terms.append([word for word, _ in pairs])
            weights = [rest for _, rests in pairs for rest in rests]
        last = [self._dialect.packed(self._code, self._dtype, *weights[n : n + 2]) for n in range(0, 8, 2)]
        return [*terms, last]

    def _term(self, *weights: ll.Value) -> tuple[ll.Value, list[ll.Value]]:
        """Returns the word of a term of two neighbours, and what is left of both."""
        builder, code = self._builder, self._code
        if self._dtype == "f16":
            word = self._dialect.packed(code, "f16", *weights)
            pair = builder.bitcast(word, ll.VectorType(ll.HalfType(), 2))
            halves = [builder.fpext(builder.extract_element(pair, I32(place)), F32) for place in range(2)]
            return word, [builder.fsub(weight, half) for weight, half in zip(weights, halves, strict=True)]
        bits = [builder.bitcast(weight, I32) for weight in weights]
        kept = [builder.and_(one, I32(KEPT)) for one in bits]
        halves = [builder.bitcast(one, F32) for one in kept]
        rests = [
            code.fused(weight, F32(MORE), builder.fneg(half)) for weight, half in zip(weights, halves, strict=True)
        ]
        return builder.or_(code.lshr(bits[0], 16), kept[1]), rests

    # Results

    def _finish(self, state: list[ll.Value], first: ll.Value, batch: Indices) -> None:
        """Runs the program's own computation for each sum whose row and column exist."""
        builder, scores = self._builder, self._scores
        greatest, totals, sums = state[:2], state[2:4], state[4:]
        for lanes in (1, 2):
            totals = [builder.fadd(total, self._exchanged(total, lanes)) for total in totals]
        is_first = builder.icmp_unsigned("==", self._code.both(self._lane, 3), I32(0))
        for part, found in enumerate(zip(greatest, totals, strict=True)):
            scaled = builder.fmul(found[0], F32(self._factor)), found[1]
            store_row(scores, self._rows_block, self._tile, is_first, [*scaled], first, self._row(2 * part), batch)
        self._store_sums([[found, totals[number // 2 % 2]] for number, found in enumerate(sums)], first, batch)

    def _store_sums(self, sums: Sequence[Sequence[ll.Value]], first: ll.Value, batch: Indices) -> None:
        """Runs the epilogue on each sum, and what it takes beside that, whose row and column exist."""
        builder, scores, values = self._builder, self._scores, self._values
        for number, found in enumerate(sums):
            row, column = scores.plus(first, self._row(number)), self._column(number)
            guards = [scores.inside("m", row, self._tile), values.inside("n", column, 16)]
            with builder.if_then(values.condition([*filter(None, guards)]) or I1(1)):
                loops = {**batch, **scores.indices("m", row), **values.indices("n", column)}
                outer = [loops[loop] for loop in values.mark.loops if loop.role != "k"]
                values.run(values.mark.epilogue, [*found, *outer])


def paired(combine: Callable[[ll.Value, ll.Value], ll.Value], terms: Sequence[ll.Value]) -> ll.Value:
    """Returns the fold of terms, of which there is an even number or one, by a short chain of operations."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return combine(paired(combine, terms[:middle]), paired(combine, terms[middle:]))
