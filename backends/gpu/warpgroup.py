"""Products and convolutions with Hopper's matrix instructions (`wgmma`), each of which four warps execute together:
both operands are in shared memory, in squares of 8 lines of 128 bytes, and the sums in registers. A block's threads
copy pieces as for other matrix instructions, and then make them visible to the tensor cores with a fence, because these
access memory through the asynchronous proxy. While they multiply two pieces, the threads start to copy others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ll

from trivium.backends.gpu.contracted import Depth, Indices
from trivium.backends.gpu.dialect import WARP, WARPGROUP
from trivium.backends.gpu.tensor import BYTES, PAD, TensorContraction, TensorOperand
from trivium.backends.gpu.tensor_maps import WIDE_LINE
from trivium.backends.gpu.tiles import CHUNK, WARPGROUP_ROWS
from trivium.backends.llvm.code import I8, I32, I64
from trivium.compiler.kernel.index import variable

SQUARE = 8
"""The lines of a square, and the number of 16 bytes in each of them."""


class WarpgroupContraction(TensorContraction):
    """Emits one block's tile, for one thread. Each four warps compute 64 rows and all columns."""

    line = WIDE_LINE
    alignment = SQUARE * WIDE_LINE

    def __init__(self, *operands: Any, columns: int | None = None, **facts: Any) -> None:
        self._columns = columns
        super().__init__(*operands, **facts)

    def side(self, role: str) -> int:
        return self._columns or self.tile if role == "n" else self.tile

    def multiplied(self, lhs: TensorOperand, rhs: TensorOperand, batch: Indices, depth: Depth) -> list[ll.Value]:
        # While one block waits for its products, another one multiplies. Threads that copy element by element need
        # the registers of both.
        if lhs.whole and rhs.whole:
            self.dialect.resident(self.code, 2)
        return super().multiplied(lhs, rhs, batch, depth)

    def part(self) -> tuple[int, int, int]:
        columns = self.side("n")
        fits = 4 * self.side("m") * (columns + PAD) <= self.stages * self.stage
        return WARPGROUP_ROWS * WARP // WARPGROUP, columns, self.side("m") if fits else WARPGROUP_ROWS

    # Shared memory

    def copy(self, operand: TensorOperand, piece: ll.Value, stage: ll.Value, batch: Indices) -> None:
        """Copies this thread's share of a piece. Lines that are at equal distances in memory are found from the first
        one, so that only this one takes registers."""
        distance, builder = self._distance(operand), self.builder
        if distance is None:
            super().copy(operand, piece, stage, batch)
            return
        shares = list(self.share(operand))
        step = self.lines(operand) // len(shares)
        target = self._shared(self._at(operand, stage, *shares[0]))
        first: ll.Value | None = None
        for number, (line, chunk) in enumerate(shares):
            along = builder.mul(chunk, I32(self.chunk))
            loops, guards = self._loops_and_guards(operand, self._numbers(operand, piece, line, along), batch)
            if first is None:
                first = self.offset(operand.access, self.positions(operand.access, loops))
            source = builder.add(first, I64(number * step * distance))
            own = builder.gep(target, [I32(number * step * WIDE_LINE)], source_etype=I8)
            self.copy_chunk(operand, own, source, guards)

    def _distance(self, operand: TensorOperand) -> int | None:
        """Returns the elements between two lines in memory; None if they are not always as many."""
        loops = self.loops("k" if operand.across else operand.role)
        access = operand.access
        if not operand.whole or len(loops) != 1:
            return None
        places = [n for n, one in enumerate(access.subscripts) if one.position == variable(loops[0])]
        others = [n for n, one in enumerate(access.subscripts) if loops[0] in one.position.terms and n not in places]
        if len(places) != 1 or others or any(access.padded(n) for n in range(len(access.subscripts))):
            return None
        return access.buffer.layout[places[0]]

    def _at(self, operand: TensorOperand, stage: ll.Value, line: ll.Value, chunk: ll.Value) -> ll.Value:
        """Returns where 16 bytes of a line are. A longer line continues in other squares, behind those of all lines."""
        code, builder = self.code, self.builder
        own = builder.xor(code.both(chunk, SQUARE - 1), code.both(line, SQUARE - 1))
        within = self.plus(builder.mul(line, I32(WIDE_LINE)), code.shl(own, 4))
        if operand.across:
            further = builder.mul(code.lshr(chunk, 3), I32(self.depth * WIDE_LINE))
            within = self.plus(within, further)
        return self.plus(within, self.plus(builder.mul(stage, I32(self.stage)), operand.base))

    def settle(self, operands: Sequence[TensorOperand], stage: ll.Value) -> None:
        if self.instruction.operands == "tf32":
            for operand in operands:
                self._round(operand, stage)
        self.dialect.publish(self.code)

    def _round(self, operand: TensorOperand, stage: ll.Value) -> None:
        """Rounds this thread's share of a piece: the instruction would leave out the last bits."""
        builder, kind = self.builder, ll.VectorType(I32, 4)
        for line, chunk in self.share(operand):
            pointer = self._shared(self._at(operand, stage, line, chunk))
            words = builder.load(pointer, typ=kind, align=CHUNK)
            for place in range(kind.count):
                rounded = self.dialect.rounded_to_tf32(self.code, builder.extract_element(words, I32(place)))
                words = builder.insert_element(words, rounded, I32(place))
            builder.store(words, pointer, align=CHUNK)

    # Products

    def begin(self, lhs: TensorOperand, rhs: TensorOperand, stage: ll.Value, sums: list[ll.Value]) -> list[ll.Value]:
        code, dialect, group = self.code, self.dialect, self.builder.udiv(self.thread, I32(WARPGROUP))
        sums = dialect.begin_products(code, sums)
        for step in range(WIDE_LINE // BYTES):
            matrices = self.matrix(lhs, stage, group, step), self.matrix(rhs, stage, I32(0), step)
            across = lhs.across, rhs.across
            sums = dialect.multiply_shared(code, self.instruction, *matrices, across, sums)
        dialect.commit_products(code)
        return sums

    def end(self, lhs: TensorOperand, rhs: TensorOperand, stage: ll.Value, sums: list[ll.Value]) -> list[ll.Value]:
        return self.dialect.end_products(self.code, sums)

    def matrix(self, operand: TensorOperand, stage: ll.Value, group: ll.Value, step: int) -> ll.Value:
        """Returns the description of 32 bytes of the depth, and of the rows from 64 times `group` on."""
        lines = self.depth if operand.across else WARPGROUP_ROWS
        along = step * (BYTES // self.size * WIDE_LINE if operand.across else BYTES)
        first = self.plus(self.builder.mul(group, I32(lines * WIDE_LINE)), along + operand.base)
        at = self.plus(first, self.builder.mul(stage, I32(self.stage)))
        # Along the depth, the rest of a line is in the same square.
        lead = lines * WIDE_LINE if operand.across else CHUNK
        return self.dialect.matrix(self.code, self._shared(at), lead, self.alignment)
