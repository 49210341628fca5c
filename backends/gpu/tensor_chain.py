"""The gradients of attention with matrix instructions: weights are computed from the sums of one or two products, in
the registers of the threads that have these, and multiplied from there, like those of attention itself. Two tiles of
keys are in shared memory: one is copied while the other is multiplied.

Exponentials are powers of two by the GPU's own instruction, as those of attention are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import llvmlite.ir as ll

from trivium.backends.gpu.aligned import AlignedEmitter
from trivium.backends.gpu.contracted import Indices, MakeEmitter, serial
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.tensor import TensorContraction, TensorOperand
from trivium.backends.gpu.tensor_attention import Pair, TensorAttention
from trivium.backends.gpu.tiles import scale_of
from trivium.backends.gpu.vectors import is_alone, is_plain
from trivium.backends.gpu.warpgroup_attention import WarpgroupAttention
from trivium.backends.llvm.code import F32, I32, Code
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import i64
from trivium.compiler.kernel.affine import Analysis, accesses
from trivium.compiler.kernel.chained import Chained
from trivium.compiler.kernel.contraction import Contraction, ContractionLoop
from trivium.compiler.kernel.index import Index, variable
from trivium.compiler.kernel.structure import Apply, Block, walk


class TensorChain(TensorAttention):
    """Emits one block's tile of rows, for one thread."""

    _chain: Chained
    _sides: list[tuple[TensorContraction, TensorContraction]]

    def __init__(self, mark: Chained, code: Code, dialect: Dialect, tile: int, emitter: MakeEmitter) -> None:
        self._chain = mark
        super().__init__(mark, code, dialect, tile, emitter)
        scales = [[scale_of(one.lhs_prologue), scale_of(one.rhs_prologue)] for one in mark.products]
        self._scales = [math.prod(scale for scale in pair if scale is not None) for pair in scales]
        if rounded(mark.weight) == self._dtype:
            self._terms = 1

    def _products(self) -> Sequence[TensorContraction]:
        """Returns, in shared memory, for each product what has the block's rows, and two tiles of keys; and the last
        product, with two tiles of values."""
        parts = []
        for product, depth in zip(self._chain.products, self._depths(), strict=True):
            deep = -(-depth // self._steps)
            parts += [(product, self._tile, deep), (product, self._tile_keys, 2 * deep)]
        last, shared = (self._chain.values, self._width(), 2 * self._long()), self._shared()
        if shared is None:
            *found, values = self._made([*parts, last])
        else:
            found = self._made(parts)
            values = self._product(*last, found[2 * shared + 1].memory)
        self._sides = list(zip(found[::2], found[1::2], strict=True))
        self._apart = shared is None
        return found[0], found[1], values

    def _shared(self) -> int | None:
        """Returns the product whose keys are the values, and are in shared memory as these are, if there is one."""
        return None

    def _depths(self) -> list[int]:
        """Returns the number of instructions that each product takes."""
        return [-(-math.prod(one.extents("k")) // self._instruction.depth) for one in self._chain.products]

    def emit(self, block: ll.Value) -> None:
        """Emits the tile that has the number `block`."""
        scores, builder, dialect, code, keys = self._scores, self._builder, self._dialect, self._code, self._tile_keys
        dialect.resident(code, self._blocks())
        tiles = I32(-(-scores.extent("m") // self._tile))
        row = builder.mul(builder.urem(block, tiles), I32(self._tile))
        batch = scores.indices("batch", builder.udiv(block, tiles))
        rows = [left.operand(left.mark.lhs, None, "m", row, 0) for left, _ in self._sides]
        for (left, _), operand in zip(self._sides, rows, strict=True):
            self._copy(left, operand, batch, I32(0))
        self._fetch(I32(0), I32(0), batch)
        zeros = [F32(0.0)] * (self._features // 2)
        with counted(code, 0, scores.extent("n"), keys, [I32(0), *zeros]) as piece:
            buffer, *sums = piece.carried
            first = builder.trunc(i64(piece.index), I32)
            self._arrive()
            following, other = scores.plus(first, keys), builder.xor(buffer, I32(1))
            with builder.if_then(builder.icmp_unsigned("<", following, I32(scores.extent("n")))):
                self._fetch(following, other, batch)
            pairs = [
                Pair(
                    left,
                    right,
                    lhs,
                    right.operand(right.mark.rhs, None, "n", first, 0),
                    depth,
                    self._tiled(right, buffer),
                )
                for (left, right), lhs, depth in zip(self._sides, rows, self._depths(), strict=True)
            ]
            totals, weights = list(zip(*self._scored(pairs), strict=True)), list[ll.Value]()
            lanes = self._lanes()
            for number in range(0, len(totals), lanes):
                weights += self._weights(totals[number : number + lanes], number, row, first, batch)
            each = self._instruction.depth // 2
            parts = [weights[place : place + each] for place in range(0, len(weights), each)]
            stage = self._tiled(self._values, buffer)
            piece.next = [other, *self._multiplied_weights(self._value_operand(), parts, sums, stage)]
        self._store(piece.carried[1:], row, batch)

    def _value_operand(self) -> TensorOperand:
        across = True if self._dtype == "tf32" else None
        return self._values.operand(self._chain.values.rhs, None, "n", I32(0), 0, across)

    def _tiled(self, product: TensorContraction, buffer: ll.Value) -> ll.Value:
        """Returns the first stage of one of two tiles."""
        return self._builder.mul(buffer, I32(product.stages // 2))

    def _fetch(self, first: ll.Value, buffer: ll.Value, batch: Indices) -> None:
        """Begins to copy a tile of keys and values."""
        for _, right in self._sides:
            keys = right.operand(right.mark.rhs, None, "n", first, 0)
            for number in range(right.stages // 2):
                right.copy(keys, I32(number * right.depth), self._later(self._tiled(right, buffer), number), batch)
        values, operand = self._values, self._value_operand()
        for number in range(values.stages // 2 if self._apart else 0):
            begin = values.plus(first, number * values.depth)
            values.copy(operand, begin, self._later(self._tiled(values, buffer), number), batch)
        self._dialect.commit(self._code)

    def _blocks(self) -> int:
        widest = max(*(depth * self._instruction.depth for depth in self._depths()), self._features)
        # With an added mask, too, which makes them spill, three are faster: on an H200, 406 us instead of 488.
        return 3 if widest <= 64 and self._terms == 1 else 2

    # Weights

    def _lanes(self) -> int:
        """Returns the number of weights that are computed at once: two neighbours, if so is what they read."""
        block, extent = self._chain.weight, self._scores.extent("n")
        analysis, along = Analysis(block), block.parameters[-1]
        steps = {analysis.step(analysis.address(one.buffer, one.indices), along) for one in accesses(block)}
        plain = is_plain(block) and not any(map(is_alone, block.instructions))
        return (
            2 if plain and steps <= {0, 1} and extent % 2 == 0 and self._scores.loops("n")[-1].extent == extent else 1
        )

    def _weights(
        self, totals: Sequence[Sequence[ll.Value]], number: int, row: ll.Value, first: ll.Value, batch: Indices
    ) -> list[ll.Value]:
        """Returns the program's weights of neighbours, from the sums of each product for each of them, the first of
        which has a number: zero beyond the last key."""
        scores, builder = self._scores, self._builder
        key = scores.plus(first, self._column(number))
        loops = {**batch, **scores.indices("m", scores.plus(row, self._row(number))), **scores.indices("n", key)}
        outer = [loops[loop] for loop in scores.mark.loops if loop.role != "k"]
        scaled = [
            scores.packed([x if scale == 1.0 else builder.fmul(x, F32(scale)) for x in sums])
            for sums, scale in zip(zip(*totals, strict=True), self._scales, strict=True)
        ]
        found = scores.unpacked([self._run_weight([*scaled, *outer], len(totals))])
        # All neighbours exist, or none.
        inside = scores.inside("n", key, self._tile_keys)
        return found if inside is None else [builder.select(inside, weight, F32(0.0)) for weight in found]

    def _run_weight(self, arguments: list[ll.Value], lanes: int) -> ll.Value:
        block = self._chain.weight
        analysis = Analysis(block)
        emitter = self._emitter(analysis, serial(block, analysis))
        assert isinstance(emitter, AlignedEmitter), "the emitter of tiles"
        emitter.exponential = self._exponential
        emitter.values.update(zip(block.parameters, arguments, strict=True))
        with emitter.in_lanes(block.parameters[-1], lanes, None):
            (weight,) = emitter.block(block)
        return weight

    def _exponential(self, x: ll.Value) -> ll.Value:
        exponents = [self._builder.fmul(one, F32(math.log2(math.e))) for one in self._scores.unpacked([x])]
        return self._scores.packed([self._dialect.power_of_two(self._code, one) for one in exponents])

    # Results

    def _store(self, sums: list[ll.Value], first: ll.Value, batch: Indices) -> None:
        """Runs the program's own computation for each sum whose row and column exist."""
        self._store_sums([[found] for found in sums], first, batch)


class WarpgroupChain(TensorChain, WarpgroupAttention):
    """The same with the instructions that four warps share."""

    def _blocks(self) -> int:
        return TensorChain._blocks(self)

    def _shared(self) -> int | None:
        products = enumerate(self._chain.products)
        return next((number for number, product in products if self._has_values(product)), None)

    def _has_values(self, product: Contraction) -> bool:
        """Whether the keys of a product are the values, of which neighbours in memory are neighbours in a line."""
        values, loops = self._chain.values, dict[object, ContractionLoop]()
        for role, other in (("n", "k"), ("k", "n")):
            pair = [
                [loop for loop in one.loops if loop.role == kind] for one, kind in ((product, role), (values, other))
            ]
            if [loop.extent for loop in pair[0]] != [loop.extent for loop in pair[1]]:
                return False
            loops.update(zip(*pair, strict=True))

        def renamed(loop: object) -> Index | None:
            return variable(loops[loop]) if loop in loops else None

        places = [subscript.position.replace(renamed) for subscript in product.rhs.subscripts]
        same = places == [subscript.position for subscript in values.rhs.subscripts]
        inner = values.rhs.subscripts[-1].position.variable
        along = isinstance(inner, ContractionLoop) and inner.role == "n" and values.rhs.buffer.layout[-1] == 1
        return product.rhs.buffer is values.rhs.buffer and same and along and self._tile_keys == 64


def rounded(weight: Block) -> str | None:
    """Returns the type to which the program itself rounds weights, if it does."""
    made = {one.result: one for one in walk(weight) if isinstance(one, Apply)}
    wide = made.get(weight.yields[0])
    narrow = made.get(wide.arguments[0]) if wide is not None and wide.op == "convert" else None
    return str(narrow.result.dtype) if narrow is not None and narrow.op == "convert" else None
