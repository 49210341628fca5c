"""Products and convolutions of f32 on devices that copy to shared memory without registers. Threads copy pieces of the
rows and columns of a block's tile while they multiply earlier ones. In shared memory, the elements of one iteration of
the depth are neighbours, whatever the operand's order in memory: what runs along the depth is copied element by
element, to where it is in the transposed piece. Each thread reads its rows and columns of an iteration as vectors,
while it multiplies those of the one before, also across the border between two pieces: there is one barrier for each
piece."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ll

from trivium.backends.gpu.contracted import Contracted, Depth, Epilogue, Indices, Place
from trivium.backends.gpu.dialect import GLOBAL_POINTER, WARP
from trivium.backends.gpu.shapes import Shape
from trivium.backends.llvm.code import F32, I8, I32, I64
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import i64
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.contraction import Access
from trivium.compiler.schedule import serial

VECTOR = 4
"""The elements that a thread reads at once from shared memory, or copies at once."""

SIZE = 4
"""The bytes of an element."""

TOGETHER = 16
"""The results of a thread of which all are computed before one is stored."""

MANY = 32
"""The most results of a thread for which the epilogue is repeated rather than emitted in a loop."""

ACROSS = 8
"""The threads of a warp along the columns of a tile."""


@dataclass(frozen=True)
class Copy:
    """One of a thread's copies of each piece. `depth`: the iteration of the depth, relative to the piece, where it goes
    in a stage (`target`), the indices of the operand's own loops and the batch, the element at the first iteration of
    the depth with its positions, and whether the row or column exists. It is `later` iterations and `beyond` elements
    after what these say."""

    depth: ll.Value
    target: ll.Value
    loops: Indices
    first: ll.Value
    positions: list[ll.Value]
    exists: ll.Value | None
    later: int
    beyond: int


@dataclass(frozen=True)
class Operand:
    """One side of the product: `role` is that of its own loops, `base` where its pieces are in a stage, and `pitch` the
    elements from one iteration of the depth to the next. Each copy has `width` elements. `shares`: whether this thread
    copies; None if all do."""

    access: Access
    role: str
    base: int
    pitch: int
    width: int
    copies: list[Copy]
    shares: ll.Value | None


class PipelinedContraction(Contracted):
    """Emits one block's tile, for one thread."""

    vector = VECTOR
    waiting = 64

    def __init__(self, *operands: Any, shape: Shape) -> None:
        super().__init__(*operands)
        self.shape, (self.rows, self.columns) = shape, shape.sums
        self._pitches = {role: self._pitch(access, role) for role, access in self._sides()}
        self.stage = SIZE * shape.depth * sum(self._pitches.values())
        leaves = shape.slices > 1 or shape.count > MANY
        sums = SIZE * shape.count * shape.threads if leaves else 0
        self.memory = self.dialect.shared(self.code, max(shape.stages * self.stage, sums))
        self.own = self.builder.urem(self.thread, I32(shape.group))
        self.slice = self.builder.udiv(self.thread, I32(shape.group))
        self.dialect.resident(self.code, shape.resident)
        self.y, self.x = self._own_part()
        self._analysis = Analysis(self.mark.epilogue)
        self._schedule = serial(self.mark.epilogue, self._analysis)

    def _sides(self) -> tuple[tuple[str, Access], tuple[str, Access]]:
        return ("m", self.mark.lhs), ("n", self.mark.rhs)

    def _pitch(self, access: Access, role: str) -> int:
        """Returns the elements from one iteration of the depth to the next in shared memory. What is transposed on the
        way is stored by threads of which each eight have neighbours along the depth: these use different banks."""
        return self.side(role) + (VECTOR if self.runs_along_depth(access, role) else 0)

    def _own_part(self) -> tuple[ll.Value, ll.Value]:
        """Returns the numbers of this thread along rows and columns. Those of a warp are 4 x 8, in an order in which
        the vectors that neighbouring threads read are the same, or neighbours."""
        code, builder = self.code, self.builder
        lane, warp = code.both(self.own, WARP - 1), code.lshr(self.own, 5)
        x = code.both(code.lshr(lane, 1), ACROSS - 1)
        y = builder.or_(code.both(lane, 1), code.shl(code.lshr(lane, 4), 1))
        across = I32(self.shape.columns // self.columns // ACROSS)
        down, along = builder.udiv(warp, across), builder.urem(warp, across)
        return self.plus(code.shl(down, 2), y), self.plus(code.shl(along, 3), x)

    def side(self, role: str) -> int:
        return self.shape.rows if role == "m" else self.shape.columns

    def zeros(self) -> list[ll.Value]:
        return [F32(0.0)] * (self.rows * self.columns // self.shape.slices)

    # Sums

    def tile_sums(self, place: Place, depth: Depth) -> list[ll.Value]:
        code, builder, shape = self.code, self.builder, self.shape
        lhs = self.operand(self.mark.lhs, "m", place.row, place.batch, 0)
        rhs = self.operand(self.mark.rhs, "n", place.column, place.batch, SIZE * shape.depth * self._pitches["m"])
        ahead = shape.stages - 1
        for number in range(ahead):
            self.fetch((lhs, rhs), self.plus(depth.begin, number * shape.depth), depth, I32(number * self.stage))
        self._arrive()
        starts = [I32(0), *self._fragments(lhs, rhs, I32(0), 0), *[F32(0.0)] * (self.rows * self.columns)]
        with counted(code, *self.range(depth), shape.depth, starts) as piece:
            stage, found = piece.carried[0], piece.carried[1:]
            factors, sums = found[: self.rows + self.columns], found[self.rows + self.columns :]
            first = builder.trunc(i64(piece.index), I32)
            self.fetch((lhs, rhs), self.plus(first, ahead * shape.depth), depth, self._turned(stage, -1))
            following = self._turned(stage, 1)
            for step in range(shape.depth // shape.slices):
                if step == shape.depth // shape.slices - 1:
                    self._arrive()
                    following_factors = self._fragments(lhs, rhs, following, 0)
                else:
                    following_factors = self._fragments(lhs, rhs, stage, step + 1)
                sums = self._products(factors, sums)
                factors = following_factors
            piece.next = [following, *factors, *sums]
        return self._together(piece.carried[1 + self.rows + self.columns :])

    def _together(self, sums: list[ll.Value]) -> list[ll.Value]:
        """Returns this thread's share of the sums of all slices: each thread of a slice has some of the rows that it
        has summed, and adds what the others have summed of them."""
        builder, shape = self.builder, self.shape
        if shape.slices == 1:
            return sums
        kind, count = ll.VectorType(F32, VECTOR), len(sums) // VECTOR
        self._leave(sums)
        self.dialect.barrier(self.code)
        each, totals = count // shape.slices, list[ll.Value]()
        for number in range(each):
            own = self.plus(builder.mul(self.slice, I32(each)), number)
            total: ll.Value | None = None
            for other in range(shape.slices):
                term = builder.load(self._left_at(I32(other), own, count), typ=kind, align=SIZE * VECTOR)
                total = term if total is None else builder.fadd(total, term)
            totals.append(total)
        return self.unpacked(totals)

    def _leave(self, sums: list[ll.Value]) -> None:
        """Stores this thread's sums in place of the pieces: at the last barrier, all threads had read what they needed
        of these."""
        for number in range(len(sums) // VECTOR):
            vector = self.packed(sums[VECTOR * number : VECTOR * (number + 1)])
            place = self._left_at(self.slice, I32(number), len(sums) // VECTOR)
            self.builder.store(vector, place, align=SIZE * VECTOR)

    def _left_at(self, part: ll.Value, number: ll.Value, count: int) -> ll.Value:
        """Returns where a vector of a thread's sums is, of which it has `count`."""
        builder = self.builder
        row = self.plus(builder.mul(part, I32(count)), number)
        at = self.plus(builder.mul(row, I32(self.shape.group)), self.own)
        pointer = builder.gep(self.memory, [builder.mul(at, I32(SIZE * VECTOR))], source_etype=I8)
        pointer.type = self.memory.type
        return pointer

    def _turned(self, stage: ll.Value, step: int) -> ll.Value:
        """Returns where the stage before or after another one is."""
        code, last = self.code, (self.shape.stages - 1) * self.stage
        if step > 0:
            return code.select(code.icompare("==", stage, last), I32(0), code.iadd(stage, self.stage))
        return code.select(code.icompare("==", stage, 0), I32(last), code.isub(stage, self.stage))

    def _arrive(self) -> None:
        """Waits until the oldest piece is there, and all threads are done with the one before."""
        self.dialect.wait(self.code, self.shape.stages - 2)
        self.dialect.barrier(self.code)

    def _fragments(self, lhs: Operand, rhs: Operand, stage: ll.Value, step: int) -> list[ll.Value]:
        """Returns this thread's rows, and then its columns, of an iteration of a piece."""
        return [
            *self._vectors(lhs, stage, step, self.y, self.rows),
            *self._vectors(rhs, stage, step, self.x, self.columns),
        ]

    def _vectors(self, operand: Operand, stage: ll.Value, step: int, own: ll.Value, count: int) -> list[ll.Value]:
        builder, kind, shape = self.builder, ll.VectorType(F32, VECTOR), self.shape
        begin = builder.mul(self.slice, I32(SIZE * shape.depth // shape.slices * operand.pitch))
        own = self.plus(begin, self.code.shl(own, 4))
        own = builder.gep(self.memory, [self.plus(stage, own)], source_etype=I8)
        found = []
        for number in range(count // VECTOR):
            at = operand.base + SIZE * (step * operand.pitch + number * self._apart(operand.role, count))
            own.type = self.memory.type
            pointer = builder.gep(own, [I32(at)], source_etype=I8)
            pointer.type = self.memory.type
            found.append(builder.load(pointer, typ=kind, align=SIZE * VECTOR))
        return self.unpacked(found)

    def _apart(self, role: str, count: int) -> int:
        """Returns the distance of a thread's vectors of rows or columns, of which it has `count`."""
        return self.side(role) * VECTOR // count

    def _products(self, factors: list[ll.Value], sums: list[ll.Value]) -> list[ll.Value]:
        """Returns the sums after an iteration. Each product has a factor in common with the one before, so that a
        register that was just read is read again."""
        found = list(sums)
        for row in range(self.rows):
            for column in range(self.columns)[:: -1 if row % 2 else 1]:
                number = row * self.columns + column
                found[number] = self.code.fused(factors[row], factors[self.rows + column], sums[number])
        return found

    # Copies

    def operand(self, access: Access, role: str, first: ll.Value, batch: Indices, base: int) -> Operand:
        """Returns one side of the product, whose own loops begin at the iteration `first`."""
        along = self.runs_along_depth(access, role)
        width = VECTOR if not along and self.is_whole(access, self.loops(role), VECTOR) else 1
        count, pitch = self.shape.depth * self.side(role) // width, self._pitches[role]
        copies = []
        for number in range(-(-count // self.shape.threads)):
            own, more, depth, later = self._spot(number, along, self.side(role) // width)
            own, more = self.builder.mul(own, I32(width)), more * width
            at = self.plus(self.builder.mul(depth, I32(pitch)), own)
            target = self.plus(self.builder.mul(at, I32(SIZE)), base + SIZE * (pitch * later + more))
            exists = self.inside(role, self.plus(first, self.plus(own, more)), self.side(role))
            after, beyond = 0, 0
            if self._is_even(access, role):
                after = later
                beyond = more * self._step(access, self.loops(role)[-1]) + later * self._step(
                    access, self.loops("k")[-1]
                )
            else:
                own, depth = self.plus(own, more), self.plus(depth, later)
            loops = {**batch, **self.indices(role, self.plus(first, own), self._is_run(access, role))}
            origin = {**loops, **{loop: I64(0) for loop in self.mark.loops if loop.role == "k"}}
            positions = self.positions(access, origin)
            start = self._narrow(access, self.offset(access, positions))
            positions = [self._narrow(access, position) for position in positions]
            copies.append(Copy(depth, target, loops, start, positions, exists, after, beyond))
        few = count < self.shape.threads
        shares = self.builder.icmp_unsigned("<", self.thread, I32(count)) if few else None
        return Operand(access, role, base, pitch, width, copies, shares)

    def _is_even(self, access: Access, role: str) -> bool:
        """Whether all copies of a piece are at constant distances in memory."""
        padded = any(access.padded(number) for number in range(len(access.subscripts)))
        whole = self.loops("k")[-1].extent % self.shape.depth == 0 or self._is_run(access, "k")
        return not padded and self._is_run(access, role) and whole

    def _is_run(self, access: Access, role: str) -> bool:
        """Whether neighbouring iterations of the loops of a role are at a constant distance in memory."""
        pairs = itertools.pairwise(self.loops(role))
        return all(self._step(access, outer) == inner.extent * self._step(access, inner) for outer, inner in pairs)

    def _narrow(self, access: Access, number: ll.Value) -> ll.Value:
        """Returns the number or a position of an element with as many bits as any of them needs."""
        spans = [subscript.position.range for subscript in access.subscripts]
        reach = sum(max(-low, high) * abs(step) for (low, high), step in zip(spans, access.buffer.layout, strict=True))
        few = access.buffer.offset + reach < 1 << 31
        return self.builder.trunc(number, I32) if few and not _is_dilated(access) else number

    def _spot(self, number: int, along: bool, size: int) -> tuple[ll.Value, int, ll.Value, int]:
        """Returns the place along the operand's own dimension and along the depth of a thread's copy, of `size` along
        the former: each as a number and what is added to it."""
        if not along:
            return self._spread(number, size, self.thread, self.shape.threads)
        # Eight threads copy 32 bytes that are neighbours in memory.
        low, rest = self.code.both(self.thread, ACROSS - 1), self.code.lshr(self.thread, 3)
        own, more, high, later = self._spread(number, size, rest, self.shape.threads // ACROSS)
        return own, more, self.plus(low, self.code.shl(high, 3)), ACROSS * later

    def _spread(self, number: int, size: int, thread: ll.Value, threads: int) -> tuple[ll.Value, int, ll.Value, int]:
        """Returns the remainder and the quotient of thread + number * threads by `size`; both are powers of two."""
        if size >= threads:
            turns = size // threads
            return thread, number % turns * threads, I32(0), number // turns
        shift = size.bit_length() - 1
        return self.code.both(thread, size - 1), 0, self.code.lshr(thread, shift), number * (threads // size)

    def fetch(self, operands: tuple[Operand, Operand], piece: ll.Value, depth: Depth, stage: ll.Value) -> None:
        """Begins to copy the pieces of both operands that begin at iteration `piece`, if they exist."""
        with self.builder.if_then(self.builder.icmp_unsigned("<", piece, depth.end)):
            for operand in operands:
                if operand.shares is None:
                    self._copy(operand, piece, stage)
                else:
                    with self.builder.if_then(operand.shares):
                        self._copy(operand, piece, stage)
        self.dialect.commit(self.code)

    def _copy(self, operand: Operand, piece: ll.Value, stage: ll.Value) -> None:
        code, builder, access = self.code, self.builder, operand.access
        for copy in operand.copies:
            loops, guard = self._depth_loops(piece, copy)
            at, positions = self._moved(access, copy, loops)
            exists = self.condition([*filter(None, (copy.exists, guard)), *self.paddings(access, positions)])
            nbytes: ll.Value = I32(SIZE * operand.width)
            if exists is not None:
                nbytes = code.select(exists, nbytes, 0)
            source = builder.gep(self.plain.buffers[access.buffer], [at], source_etype=F32)
            source.type = GLOBAL_POINTER
            source = builder.gep(source, [I64(copy.beyond)], source_etype=F32)
            source.type = GLOBAL_POINTER
            target = builder.gep(self.memory, [self.plus(stage, copy.target)], source_etype=I8)
            target.type = self.memory.type
            self.dialect.copy_async(code, target, source, nbytes, SIZE * operand.width)

    def _depth_loops(self, piece: ll.Value, copy: Copy) -> tuple[Indices, ll.Value | None]:
        """Returns the indices of the depth's loops, and whether the iteration exists, if that is not certain. A piece
        that is within a run of the innermost loop has the same outer indices for all threads."""
        loops = self.loops("k")
        if loops[-1].extent % self.shape.depth:
            number = self.plus(piece, copy.depth)
            exists = self.inside("k", self.plus(number, copy.later), self.shape.depth)
            return self.indices("k", number, True), exists
        found = self.indices("k", piece, True)
        found[loops[-1]] = self.builder.add(found[loops[-1]], self.builder.zext(copy.depth, I64))
        return found, None

    def _moved(self, access: Access, copy: Copy, depth: Indices) -> tuple[ll.Value, list[ll.Value]]:
        """Returns the element at an iteration of the depth, and its positions."""
        if _is_dilated(access):
            positions = self.positions(access, {**copy.loops, **depth})
            return self.offset(access, positions), positions
        builder, at, positions = self.builder, copy.first, list[ll.Value]()
        for subscript, position, stride in zip(access.subscripts, copy.positions, access.buffer.layout, strict=True):
            moved: ll.Value = position.type(0)
            for loop, index in depth.items():
                if factor := subscript.position.terms.get(loop, 0):
                    index = builder.trunc(index, I32) if position.type == I32 else index
                    moved = builder.add(moved, builder.mul(index, position.type(factor)))
            positions.append(builder.add(position, moved))
            at = builder.add(at, builder.mul(moved, position.type(stride)))
        return at, positions

    # Results

    def results(self, sums: list[ll.Value], place: Place) -> None:
        """Runs the epilogue for a few rows of this thread's sums after the other, in a loop if there are many."""
        count = self.rows // self.shape.slices
        height = min(count, max(1, TOGETHER // self.columns))
        if len(sums) <= MANY:
            first = self.builder.mul(self.slice, I32(count))
            for number in range(0, count, height):
                own = sums[number * self.columns : (number + height) * self.columns]
                self._rows_from(self.plus(first, number), own, place)
            return
        self._leave(sums)
        with counted(self.code, 0, count, height) as each:
            row, kind = self.builder.trunc(i64(each.index), I32), ll.VectorType(F32, VECTOR)
            begin = self.builder.mul(row, I32(self.columns // VECTOR))
            numbers = [self.plus(begin, number) for number in range(height * self.columns // VECTOR)]
            places = [self._left_at(self.slice, number, len(sums) // VECTOR) for number in numbers]
            vectors = [self.builder.load(place, typ=kind, align=SIZE * VECTOR) for place in places]
            self._rows_from(row, self.unpacked(vectors), place)

    def _rows_from(self, first: ll.Value, sums: list[ll.Value], place: Place) -> None:
        """Runs the epilogue for the sums of this thread's rows from the one of that number on. Everything is loaded and
        computed before anything is stored, so that loads do not wait for one another; what does not exist is computed
        from what does, and not stored."""
        columns = [self._own_column(place.column, number) for number in range(self.columns)]
        lines = []
        for number in range(len(sums) // self.columns):
            row, exists = self._own_row(place.row, self.plus(first, number))
            pairs = zip(sums[number * self.columns :], columns, strict=False)
            lines.append((exists, [self._computed(total, {**place.batch, **row, **one}) for total, (one, _) in pairs]))
        for exists, line in lines:
            with self._where(exists):
                self._store(line, [there for _, there in columns])

    def _store(self, epilogues: list[Epilogue], exist: list[ll.Value | None]) -> None:
        """Does the rest for the columns that exist: of those that a thread reads as a vector all or none, if their
        number is a multiple of theirs."""
        step = 1 if self.extent("n") % VECTOR else VECTOR
        for begin in range(0, len(epilogues), step):
            with self._where(exist[begin]):
                for epilogue in epilogues[begin : begin + step]:
                    epilogue.finish()

    @contextmanager
    def _where(self, condition: ll.Value | None) -> Iterator[None]:
        if condition is None:
            yield
            return
        with self.builder.if_then(condition):
            yield

    def _computed(self, total: ll.Value, loops: Indices) -> Epilogue:
        """Emits what comes before the epilogue's first store."""
        outer = [loops[loop] for loop in self.mark.loops if loop.role != "k"]
        emitter = self._emitter(self._analysis, self._schedule)
        return Epilogue(emitter, self.mark.epilogue, [total, *outer])

    def _own_row(self, first: ll.Value, number: ll.Value) -> tuple[Indices, ll.Value | None]:
        """Returns the indices of one of this thread's rows, and whether it exists, if that is not certain."""
        code = self.code
        apart = self.builder.mul(code.lshr(number, 2), I32(self._apart("m", self.rows)))
        place = self.plus(first, self.plus(code.shl(self.y, 2), self.plus(apart, code.both(number, VECTOR - 1))))
        exists = self.inside("m", place, self.shape.rows)
        return self.indices("m", place, exists is None), exists

    def _own_column(self, first: ll.Value, number: int) -> tuple[Indices, ll.Value | None]:
        """Does the same for one of its columns."""
        vector, lane = divmod(number, VECTOR)
        place = self.plus(first, self.plus(self.code.shl(self.x, 2), vector * self._apart("n", self.columns)))
        exists, inner = self.inside("n", self.plus(place, lane), self.shape.columns), self.loops("n")[-1]
        if inner.extent % VECTOR:
            return self.indices("n", self.plus(place, lane), exists is None), exists
        safe = place if exists is None else self.builder.select(exists, place, I32(0))
        loops = self.indices("n", safe, True)
        return {**loops, inner: self.builder.add(loops[inner], I64(lane))}, exists


def _is_dilated(access: Access) -> bool:
    return any(subscript.dilation != 1 for subscript in access.subscripts)
