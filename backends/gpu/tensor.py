"""Products and convolutions with a device's matrix instructions. A block of threads copies pieces of its rows and
columns to shared memory while it multiplies earlier ones, in a pipeline of `STAGES` pieces. A line of a piece is 64
bytes along an operand's depth. For 16-bit operands that are contiguous along their own dimension, and for others on
demand, it is one element of depth instead. Lines are permuted in units of 16 bytes (swizzled), so that threads that
read a column have no bank conflicts. At the end, the sums go through shared memory, so that neighbouring threads run
the epilogue for neighbouring results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ll

from trivium.backends.gpu.contracted import Contracted, Depth, Indices, Place
from trivium.backends.gpu.dialect import GLOBAL_POINTER, SHARED_ALIGNMENT, WARP
from trivium.backends.gpu.tiles import CHUNK, LINE, STAGES, WARP_COLUMNS, warp_rows
from trivium.backends.llvm.code import F32, I8, I32
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.narrow import memory_type, to_memory
from trivium.backends.llvm.numbers import i64
from trivium.compiler.kernel.contraction import Access
from trivium.compiler.kernel.structure import Block
from trivium.compiler.target import MatrixInstruction

BYTES = 32
"""Bytes of depth that one instruction multiplies."""

PAD = 8
"""Sums between two lines of results in shared memory: threads that store pairs of them have no bank conflicts."""


Numbers = tuple[ll.Value, ll.Value]
"""An iteration of an operand's own loops, and one of the depth."""


@dataclass(frozen=True)
class TensorOperand:
    """One side of the product: `role` is that of its own loops, `first` its first row or column, `base` where its
    pieces are in a stage. `across`: the lines of a piece run along its own dimension, not along the depth; `whole`:
    16 bytes of a line are 16 bytes of memory, or all of them are beyond the end or padding."""

    access: Access
    prologue: Block | None
    role: str
    first: ll.Value
    base: int
    across: bool
    whole: bool


class TensorContraction(Contracted):
    """Emits one block's tile, for one thread of one of its warps, each of which has its own part of the tile."""

    line: int = LINE
    """The bytes of depth of a piece."""

    alignment: int = SHARED_ALIGNMENT
    """That of pieces in shared memory."""

    def __init__(
        self,
        *operands: Any,
        instruction: MatrixInstruction,
        threads: int,
        stages: int = STAGES,
        sides: int = 2,
        memory: ll.Value | None = None,
    ) -> None:
        super().__init__(*operands)
        self.instruction, self.threads = instruction, threads
        self.size = BYTES // instruction.depth
        self.depth, self.chunk = self.line // self.size, CHUNK // self.size
        self.span = self.depth
        self.stages = stages
        self.stage = self.line * sum(map(self.side, "mn"[:sides]))
        nbytes = stages * self.stage + self.extra
        self.memory = memory or self.dialect.shared(self.code, nbytes, self.alignment)
        self.sum = F32 if instruction.accumulate == "f32" else I32
        warp = self.builder.udiv(self.thread, I32(WARP))
        self.lane = self.builder.urem(self.thread, I32(WARP))
        self.rows, self.columns, self.band = self.part()
        across = I32(self.side("n") // self.columns)
        self.part_row, self.part_column = self.builder.udiv(warp, across), self.builder.urem(warp, across)

    @property
    def extra(self) -> int:
        """The bytes of shared memory beside the pieces."""
        return 0

    def part(self) -> tuple[int, int, int]:
        """Returns the rows and columns of the part of a tile that is one warp's, and the rows of a band of parts, for
        whose sums there is room in shared memory."""
        return warp_rows(self.tile), WARP_COLUMNS, warp_rows(self.tile)

    def zeros(self) -> list[ll.Value]:
        zero = F32(0.0) if self.sum == F32 else I32(0)
        return [zero] * (self.rows * self.columns // WARP)

    def spare(self) -> ll.Value:
        # With pieces, a block may have all memory that it gets.
        return self.memory

    def tile_sums(self, place: Place, depth: Depth) -> list[ll.Value]:
        return self.multiplied(*self.factors(place), place.batch, depth)

    def factors(self, place: Place) -> tuple[TensorOperand, TensorOperand]:
        """Returns both sides of the product."""
        lhs = self.operand(self.mark.lhs, self.mark.lhs_prologue, "m", place.row, 0)
        return lhs, self.operand(self.mark.rhs, self.mark.rhs_prologue, "n", place.column, self.side("m") * self.line)

    # Operands

    def operand(
        self,
        access: Access,
        prologue: Block | None,
        role: str,
        first: ll.Value,
        base: int,
        across: bool | None = None,
    ) -> TensorOperand:
        """Returns one side of the product. `across`: by default, as its memory runs, if matrices can be transposed."""
        if across is None:
            across = self.size == 2 and not self.runs_along_depth(access, role)
        whole = prologue is None and self.is_whole(access, self.loops(role if across else "k"), self.chunk)
        return TensorOperand(access, prologue, role, first, base, across, whole)

    def copy(self, operand: TensorOperand, piece: ll.Value, stage: ll.Value, batch: Indices) -> None:
        """Copies this thread's share of a piece, which begins at iteration `piece` of the depth, to a stage."""
        for line, chunk in self.share(operand):
            target = self._shared(self._at(operand, stage, line, chunk))
            first = self.builder.mul(chunk, I32(self.chunk))
            if operand.whole:
                self._copy_whole(operand, target, self._numbers(operand, piece, line, first), batch)
                continue
            with counted(self.code, 0, self.chunk) as each_element:
                index = self.builder.trunc(i64(each_element.index), I32)
                numbers = self._numbers(operand, piece, line, self.plus(first, index))
                at = self.builder.gep(target, [self._bytes(index)], source_etype=I8)
                self._copy_element(operand, at, numbers, batch)

    def lines(self, operand: TensorOperand) -> int:
        """Returns the number of lines of a piece."""
        return self.depth if operand.across else self.side(operand.role)

    def piece(self, operand: TensorOperand) -> int:
        """Returns the bytes of a piece."""
        return self.side(operand.role) * self.line

    def share(self, operand: TensorOperand) -> Iterator[tuple[ll.Value, ll.Value]]:
        """Yields the lines, and the numbers in these, of the 16 bytes that are this thread's share of a piece."""
        lines = self.lines(operand)
        each = self.piece(operand) // lines // CHUNK
        for number in range(self.piece(operand) // CHUNK // self.threads):
            element = self.plus(self.thread, self.threads * number)
            line, chunk = self.builder.udiv(element, I32(each)), self.builder.urem(element, I32(each))
            if not operand.whole and not operand.across and not self.runs_along_depth(operand.access, operand.role):
                line, chunk = self.builder.urem(element, I32(lines)), self.builder.udiv(element, I32(lines))
            yield line, chunk

    def _numbers(self, operand: TensorOperand, piece: ll.Value, line: ll.Value, along: ll.Value) -> Numbers:
        """Returns the iteration of the operand's own loops, and that of the depth, at a place of a piece."""
        own, depth = (along, line) if operand.across else (line, along)
        return self.plus(operand.first, own), self.plus(piece, depth)

    def _loops_and_guards(
        self, operand: TensorOperand, numbers: Numbers, batch: Indices
    ) -> tuple[Indices, list[ll.Value]]:
        own, depth = numbers
        guards = [self.inside(operand.role, own, self.side(operand.role)), self.inside("k", depth, self.span)]
        return {**batch, **self.indices(operand.role, own), **self.indices("k", depth)}, [*filter(None, guards)]

    def _copy_whole(self, operand: TensorOperand, target: ll.Value, numbers: Numbers, batch: Indices) -> None:
        """Begins to copy 16 bytes, or zeros in their place."""
        access, (loops, guards) = operand.access, self._loops_and_guards(operand, numbers, batch)
        positions = self.positions(access, loops)
        self.copy_chunk(operand, target, self.offset(access, positions), [*guards, *self.paddings(access, positions)])

    def copy_chunk(self, operand: TensorOperand, target: ll.Value, at: ll.Value, guards: Sequence[ll.Value]) -> None:
        """Begins to copy 16 bytes from the element `at` on, or zeros if a guard is false."""
        exists, nbytes = self.condition(guards), I32(CHUNK)
        if exists is not None:
            at, nbytes = self.code.select(exists, at, 0), self.code.select(exists, nbytes, 0)
        buffer = operand.access.buffer
        source = self.builder.gep(self.plain.buffers[buffer], [at], source_etype=memory_type(buffer.dtype))
        source.type = GLOBAL_POINTER
        self.dialect.copy_async(self.code, target, source, nbytes)

    def _copy_element(self, operand: TensorOperand, target: ll.Value, numbers: Numbers, batch: Indices) -> None:
        loops, guards = self._loops_and_guards(operand, numbers, batch)
        value = self.element(operand.access, operand.prologue, loops, guards)
        stored = "f32" if operand.prologue is not None else operand.access.buffer.dtype
        self.builder.store(to_memory(self.code, value, stored), target)

    # Shared memory

    def _bytes(self, elements: ll.Value) -> ll.Value:
        return self.builder.mul(elements, I32(self.size))

    def _at(self, operand: TensorOperand, stage: ll.Value, line: ll.Value, chunk: ll.Value) -> ll.Value:
        """Returns where 16 bytes of a line are."""
        width = self.side(operand.role) * self.size if operand.across else LINE
        # Two lines of 64 bytes are as long as all banks together.
        turn = self.code.both(line if operand.across else self.code.lshr(line, 1), min(8, width // CHUNK) - 1)
        within = self.plus(self.builder.mul(line, I32(width)), self.code.shl(self.builder.xor(chunk, turn), 4))
        return self.plus(within, self.plus(self.builder.mul(stage, I32(self.stage)), operand.base))

    def _shared(self, at: ll.Value, kind: ll.Type = I8) -> ll.Value:
        pointer = self.builder.gep(self.memory, [at], source_etype=kind)
        pointer.type = self.memory.type
        return pointer

    # Sums

    def multiplied(self, lhs: TensorOperand, rhs: TensorOperand, batch: Indices, depth: Depth) -> list[ll.Value]:
        """Returns this thread's sums: four for each of its warp's tiles of 16 rows and 8 columns."""
        code, builder, both = self.code, self.builder, (lhs, rhs)
        for number in range(self.stages - 1):
            first = self.plus(depth.begin, number * self.depth)
            self.fetch(both, builder.icmp_unsigned("<", first, depth.end), first, I32(number), batch)
        with counted(code, *self.range(depth), self.depth, [I32(0), *self.zeros()]) as piece:
            stage, *sums = piece.carried
            first = builder.trunc(i64(piece.index), I32)
            self.arrive(both, builder.sub(first, depth.begin), stage)
            self.settle(both, stage)
            self.dialect.barrier(code)
            sums = self.begin(lhs, rhs, stage, sums)
            following = self.plus(first, (self.stages - 1) * self.depth)
            exists = builder.icmp_unsigned("<", following, depth.end)
            self.fetch(both, exists, following, self.preceding(stage), batch)
            sums = self.end(lhs, rhs, stage, sums)
            piece.next = [self.following(stage), *sums]
        return piece.carried[1:]

    def following(self, stage: ll.Value) -> ll.Value:
        """Returns the stage after another one."""
        return self.code.select(self.code.icompare("==", stage, self.stages - 1), I32(0), self.code.iadd(stage, 1))

    def preceding(self, stage: ll.Value) -> ll.Value:
        return self.code.select(self.code.icompare("==", stage, 0), I32(self.stages - 1), self.code.isub(stage, 1))

    def fetch(
        self, operands: Sequence[TensorOperand], exists: ll.Value, piece: ll.Value, stage: ll.Value, batch: Indices
    ) -> None:
        """Begins to copy the pieces of operands that begin at iteration `piece` of the depth, if they exist."""
        with self.builder.if_then(exists):
            for operand in operands:
                self.copy(operand, piece, stage, batch)
        self.dialect.commit(self.code)

    def arrive(self, operands: Sequence[TensorOperand], done: ll.Value, stage: ll.Value) -> None:
        """Waits for this thread's share of the oldest pieces, before which `done` iterations of the depth are."""
        self.dialect.wait(self.code, self.stages - 2)

    def settle(self, operands: Sequence[TensorOperand], stage: ll.Value) -> None:
        """Does what is left to be done with this thread's own share of the pieces, which has arrived."""

    def begin(self, lhs: TensorOperand, rhs: TensorOperand, stage: ll.Value, sums: list[ll.Value]) -> list[ll.Value]:
        """Begins to multiply two pieces, before others are copied, and returns the sums."""
        return sums

    def end(self, lhs: TensorOperand, rhs: TensorOperand, stage: ll.Value, sums: list[ll.Value]) -> list[ll.Value]:
        """Returns the sums after the products of two pieces."""
        for step in range(self.line // BYTES):
            sums = self._products(lhs, rhs, stage, step, sums)
        return sums

    def _products(
        self, lhs: TensorOperand, rhs: TensorOperand, stage: ll.Value, step: int, sums: list[ll.Value]
    ) -> list[ll.Value]:
        """Returns the sums after 32 bytes of the depth."""
        first_row = self.builder.mul(self.part_row, I32(self.rows))
        first_column = self.builder.mul(self.part_column, I32(WARP_COLUMNS))
        rows = [self.fragment(lhs, stage, self.plus(first_row, n), step) for n in range(0, self.rows, 16)]
        pairs = [self.fragment(rhs, stage, self.plus(first_column, n), step) for n in range(0, WARP_COLUMNS, 16)]
        columns = [half for pair in pairs for half in (pair[:2], pair[2:])]
        found: list[ll.Value] = []
        for row in rows:
            for column in columns:
                own = sums[len(found) : len(found) + 4]
                found += self.dialect.multiply_add(self.code, self.instruction, row, column, own)
        return found

    def fragment(self, operand: TensorOperand, stage: ll.Value, first: ll.Value, step: int) -> list[ll.Value]:
        """Returns this thread's words of 16 rows or columns and 32 bytes of depth: those of four matrices of 8 lines
        and 16 bytes, whose order is that of the instruction's operands."""
        code, lane = self.code, self.lane
        by_lines = operand.across == (operand.role == "n")
        low, high = code.both(lane, 7), code.lshr(lane, 4)
        middle = code.both(code.lshr(lane, 3), 1)
        line, chunk = (middle, high) if by_lines else (high, middle)
        line = code.iadd(low, code.shl(line, 3))
        if operand.across:
            line, chunk = self.plus(line, 16 * step), self.plus(chunk, code.lshr(first, 3))
        else:
            line, chunk = self.plus(first, line), self.plus(chunk, 2 * step)
        pointer = self._shared(self._at(operand, stage, line, chunk))
        words = self.dialect.load_matrix(code, pointer, operand.across)
        if self.instruction.operands == "tf32":
            return [self.dialect.rounded_to_tf32(code, word) for word in words]
        return words

    def word(self, operand: TensorOperand, stage: ll.Value, line: ll.Value, element: ll.Value) -> ll.Value:
        """Returns an element of 32 bits of a line."""
        chunk, within = self.code.lshr(element, 2), self.code.shl(self.code.both(element, 3), 2)
        return self.builder.load(self._shared(self.plus(self._at(operand, stage, line, chunk), within)), typ=I32)

    # Results

    def results(self, sums: list[ll.Value], place: Place) -> None:
        """Runs the epilogue for one band of rows after the other."""
        builder, code, width = self.builder, self.code, self.side("n")
        pitch, lanes = width + PAD, self.lanes()
        kind = ll.VectorType(self.sum, lanes) if lanes > 1 else self.sum
        first_row = builder.mul(self.part_row, I32(self.rows))
        own, within = builder.udiv(first_row, I32(self.band)), builder.urem(first_row, I32(self.band))
        with counted(code, 0, self.side("m") // self.band) as part:
            number = builder.trunc(i64(part.index), I32)
            # All have read what was there before.
            self.meet()
            with builder.if_then(builder.icmp_unsigned("==", number, own)):
                self._store(sums, within, pitch)
            self.meet()
            first = self.plus(place.row, builder.mul(number, I32(self.band)))
            with counted(code, 0, self.band * width // self.threads // lanes) as each:
                turn = builder.mul(builder.trunc(i64(each.index), I32), I32(self.threads))
                element = builder.mul(self.plus(turn, self.thread), I32(lanes))
                row, column = builder.udiv(element, I32(width)), builder.urem(element, I32(width))
                at = self.plus(builder.mul(row, I32(pitch)), column)
                total = builder.load(self._shared(at, self.sum), typ=kind, align=min(CHUNK, 4 * lanes))
                self.finish(total, self.plus(first, row), self.plus(place.column, column), place.batch)

    def store_pair(self, sums: Sequence[ll.Value], pointer: ll.Value) -> None:
        pair = ll.Constant(ll.VectorType(self.sum, 2), ll.Undefined)
        for place, total in enumerate(sums):
            pair = self.builder.insert_element(pair, total, I32(place))
        self.builder.store(pair, pointer, align=8)

    def _store(self, sums: list[ll.Value], first: ll.Value, pitch: int) -> None:
        """Stores a warp's sums in shared memory, from the row `first` of a band on."""
        row = self.plus(first, self.code.lshr(self.lane, 2))
        pair = self.code.shl(self.code.both(self.lane, 3), 1)
        column = self.plus(self.builder.mul(self.part_column, I32(self.columns)), pair)
        across = self.columns // 8
        for number in range(0, len(sums), 2):
            tile, part = divmod(number, 4)
            down = 16 * (tile // across) + 8 * (part // 2)
            line = self.builder.mul(self.plus(row, down), I32(pitch))
            at = self.plus(line, self.plus(column, 8 * (tile % across)))
            self.store_pair(sums[number : number + 2], self._shared(at, self.sum))
