"""Shared by all methods that compute a contraction in tiles: the position of a block's tile, the loop indices of an
iteration, elements of the operands with their prologues and padding, and the kernel's epilogue for a sum."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.tiles import CHUNK
from trivium.backends.gpu.vectors import is_alone, is_plain
from trivium.backends.llvm import memory
from trivium.backends.llvm.code import F32, I1, I32, I64, Code
from trivium.backends.llvm.emitter import Emitter
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import Int, Number, i64
from trivium.compiler.kernel import storage_bytes
from trivium.compiler.kernel.affine import Analysis, accesses
from trivium.compiler.kernel.contraction import Access, Contraction, ContractionLoop
from trivium.compiler.kernel.index import Atom, variable
from trivium.compiler.kernel.structure import Block, Register, Store
from trivium.compiler.schedule import Schedule, serial

Indices = dict[Register | Atom, ll.Value]
"""The indices of loops of the contraction, at one of their iterations."""

BAND = 16
"""The rows of tiles of which blocks compute one column after the other."""

WIDEST = 8
"""The most neighbours for which an epilogue runs at once."""

MakeEmitter = Callable[[Analysis, Schedule], Emitter]


@dataclass(frozen=True)
class Place:
    """Where a tile is: its first row and column, and the indices of the batch."""

    row: ll.Value
    column: ll.Value
    batch: Indices


@dataclass(frozen=True)
class Depth:
    """The iterations of the depth that a block sums: from `begin` on, before `end`. A part begins at a multiple of the
    pieces of any contraction."""

    begin: ll.Value
    end: ll.Value


@dataclass(frozen=True)
class Split:
    """How `parts` blocks share a tile: each sums `size` iterations of the depth, and leaves its sums at `pointer`. The
    last one adds these up, in order, and does the rest. `counters`: for each tile, how many are done; all zero before
    and after the launch."""

    parts: int
    size: int
    pointer: ll.Value
    counters: ll.Value


class Contracted(ABC):
    """A contraction of which a block of threads computes a tile of `tile` rows and columns; `thread` is the number of
    this one. `emitter` makes what emits blocks of the kernel."""

    vector: int = 1
    """The sums that a thread leaves to another block at once."""

    waiting: int = 0
    """The least sums of other blocks that a thread reads before it adds them."""

    def __init__(
        self, mark: Contraction, code: Code, dialect: Dialect, thread: ll.Value, tile: int, emitter: MakeEmitter
    ) -> None:
        self.mark = mark
        self.code, self.builder, self.dialect = code, code.builder, dialect
        self.thread, self.tile, self._emitter = thread, tile, emitter
        self.plain = emitter(Analysis(Block()), Schedule())

    # Tiles

    @abstractmethod
    def tile_sums(self, place: Place, depth: Depth) -> list[ll.Value]:
        """Returns this thread's sums of a tile."""

    @abstractmethod
    def zeros(self) -> list[ll.Value]:
        """Returns this thread's sums of nothing."""

    @abstractmethod
    def results(self, sums: list[ll.Value], place: Place) -> None:
        """Runs the epilogue for sums of a tile, of which each thread has its own."""

    def emit(self, block: ll.Value, threads: int, split: Split | None = None) -> None:
        """Emits the block that has the number `block`, of `threads` threads: a tile, or its share of one."""
        tile, depth = self.share_of(block, split)
        place = self.place(tile)
        sums = self.tile_sums(place, depth)
        if split is None:
            self.results(sums, place)
            return
        for number in range(len(sums) // self.vector):
            own = sums[number * self.vector : (number + 1) * self.vector]
            self.builder.store(self.packed(own), self._left(split, block, threads, number), align=4 * self.vector)
        with self.builder.if_then(self._is_last(tile, split)):
            self.results(self._added(tile, threads, split), self.place(tile))

    def share_of(self, block: ll.Value, split: Split | None) -> tuple[ll.Value, Depth]:
        """Returns the number of a block's tile, and the iterations of the depth that it sums."""
        builder, depth = self.builder, self.extent("k")
        if split is None:
            return block, Depth(I32(0), I32(depth))
        parts = I32(split.parts)
        tile, part = builder.udiv(block, parts), builder.urem(block, parts)
        begin = builder.mul(part, I32(split.size))
        end = self.plus(begin, split.size)
        return tile, Depth(begin, builder.select(builder.icmp_unsigned("<", end, I32(depth)), end, I32(depth)))

    def meet(self) -> None:
        """Emits a barrier of all threads that compute the tile."""
        self.dialect.barrier(self.code)

    def _is_last(self, tile: ll.Value, split: Split) -> ll.Value:
        """Counts the block, and returns whether all others that share its tile are done. The last one resets the
        counter for the next launch. What they have left is written before they are counted, and read after that."""
        builder, dialect = self.builder, self.dialect
        counter = builder.gep(split.counters, [tile], source_etype=I32)
        place = self.spare()
        self.meet()
        with builder.if_then(builder.icmp_unsigned("==", self.thread, I32(0))):
            dialect.fence(self.code)
            done = builder.atomic_rmw("add", counter, I32(1), "monotonic")
            dialect.fence(self.code)
            builder.store(done, place)
            with builder.if_then(builder.icmp_unsigned("==", done, I32(split.parts - 1))):
                builder.store(I32(0), counter)
        self.meet()
        done = builder.load(place, typ=I32)
        return builder.icmp_unsigned("==", done, I32(split.parts - 1))

    def spare(self) -> ll.Value:
        """Returns memory of the block for a number, which holds nothing between the sums of a tile and its results."""
        return self.dialect.shared(self.code, 4)

    def _left(self, split: Split, block: ll.Value, threads: int, number: int) -> ll.Value:
        """Returns where a block leaves this thread's vector of sums of that number."""
        zeros = self.zeros()
        first = self.builder.mul(self.builder.zext(block, I64), I64(len(zeros) // self.vector * threads))
        within = self.builder.zext(self.plus(self.thread, number * threads), I64)
        kind = self.packed(zeros[: self.vector]).type
        return self.builder.gep(split.pointer, [self.builder.add(first, within)], source_etype=kind)

    def _added(self, tile: ll.Value, threads: int, split: Split) -> list[ll.Value]:
        """Returns the sums of all parts of a tile."""
        builder, sums = self.builder, self.zeros()
        first, turns = builder.mul(tile, I32(split.parts)), max(1, self.waiting // len(sums))
        whole = split.parts // turns * turns
        if whole:
            with counted(self.code, 0, whole, turns, sums) as part:
                block = builder.add(first, builder.trunc(i64(part.index), I32))
                part.next = self._with_parts(part.carried, block, turns, threads, split)
            sums = part.carried
        return self._with_parts(sums, self.plus(first, whole), split.parts - whole, threads, split)

    def _with_parts(
        self, sums: list[ll.Value], block: ll.Value, count: int, threads: int, split: Split
    ) -> list[ll.Value]:
        """Returns sums with those that `count` blocks have left added, the first of which has the number `block`."""
        builder, kind = self.builder, self.packed(sums[: self.vector]).type
        add = builder.fadd if sums[0].type == F32 else builder.add
        for number in range(count):
            places = [self._left(split, self.plus(block, number), threads, n) for n in range(len(sums) // self.vector)]
            terms = [builder.load(place, typ=kind, align=4 * self.vector) for place in places]
            sums = [add(total, term) for total, term in zip(sums, self.unpacked(terms), strict=True)]
        return sums

    def packed(self, values: Sequence[ll.Value]) -> ll.Value:
        """Returns values as a vector, or the only one as it is."""
        if len(values) == 1:
            return values[0]
        vector: ll.Value = ll.Constant(ll.VectorType(values[0].type, len(values)), ll.Undefined)
        for lane, value in enumerate(values):
            vector = self.builder.insert_element(vector, value, I32(lane))
        return vector

    def unpacked(self, vectors: Sequence[ll.Value]) -> list[ll.Value]:
        """Returns the elements of vectors."""
        found: list[ll.Value] = []
        for vector in vectors:
            lanes = range(vector.type.count) if isinstance(vector.type, ll.VectorType) else ()
            found += [self.builder.extract_element(vector, I32(lane)) for lane in lanes] or [vector]
        return found

    def place(self, block: ll.Value) -> Place:
        """Returns the place of the tile that has the number `block`."""
        builder = self.builder
        rows, columns = (-(-self.extent(role) // self.side(role)) for role in "mn")
        batch, rest = self._divided(block, I32(rows * columns))
        # Blocks that run at the same time share rows and columns, which stay in the cache.
        band, rest = self._divided(rest, I32(BAND * columns))
        first = builder.mul(band, I32(BAND))
        height = I32(BAND)
        if rows % BAND:
            left = builder.sub(I32(rows), first)
            height = builder.select(builder.icmp_unsigned("<", left, height), left, height)
        column, row = self._divided(rest, height)
        row = builder.mul(builder.add(first, row), I32(self.side("m")))
        return Place(row, builder.mul(column, I32(self.side("n"))), self.indices("batch", batch))

    def _divided(self, number: ll.Value, divisor: ll.Value) -> tuple[ll.Value, ll.Value]:
        """Returns the quotient and the remainder."""
        return self.builder.udiv(number, divisor), self.builder.urem(number, divisor)

    def side(self, role: str) -> int:
        """Returns the rows of a tile ("m"), or its columns ("n")."""
        return self.tile

    def range(self, depth: Depth) -> tuple[Number, Number]:
        """Returns the first iteration of the depth, and the one after the last, as bounds of a loop."""
        if isinstance(depth.begin, ll.Constant):
            return 0, self.extent("k")
        begin, end = (Int(self.code, self.builder.zext(number, I64)) for number in (depth.begin, depth.end))
        return begin, end

    def extent(self, role: str) -> int:
        """Returns the number of iterations of all loops of a role."""
        return math.prod(loop.extent for loop in self.loops(role))

    def own_role(self, role: str) -> str:
        """Returns the role that loops of the tile have in the program."""
        return role

    def loops(self, role: str) -> list[ContractionLoop]:
        """Returns the loops of a role that have several iterations, or else the last one."""
        found = [loop for loop in self.mark.loops if loop.role == self.own_role(role)]
        return [loop for loop in found if loop.extent > 1] or found[-1:]

    def indices(self, role: str, number: ll.Value, exists: bool = False) -> Indices:
        """Returns the indices of all loops of a role at one of their iterations, in row-major order. Of a number beyond
        them, too, each index is one of its loop's, unless the iteration certainly exists."""
        builder, loops = self.builder, self.loops(role)
        found: Indices = {loop: I64(0) for loop in self.mark.loops if loop.role == self.own_role(role)}
        for loop in reversed(loops):
            extent = I32(loop.extent)
            if loop is loops[0] and exists:
                own = number
            elif loop is loops[0] and loop.extent & (loop.extent - 1):
                # A number beyond them may have any index, and a minimum is faster than such a remainder.
                own = builder.select(builder.icmp_unsigned("<", number, extent), number, I32(loop.extent - 1))
            else:
                own, number = builder.urem(number, extent), builder.udiv(number, extent)
            found[loop] = builder.zext(own, I64)
        return found

    def inside(self, role: str, number: ll.Value, step: int) -> ll.Value | None:
        """Whether an iteration exists, if that is not certain of pieces of `step`."""
        extent = self.extent(role)
        return None if extent % step == 0 else self.builder.icmp_unsigned("<", number, I32(extent))

    def plus(self, a: ll.Value, b: ll.Value | int) -> ll.Value:
        return self.builder.add(a, b if isinstance(b, ll.Value) else I32(b))

    # Operands

    def runs_along_depth(self, access: Access, role: str) -> bool:
        """Whether neighbours in memory are neighbours along the depth."""
        steps = [self._step(access, loops[-1]) if (loops := self.loops(kind)) else 0 for kind in ("k", role)]
        return steps[0] == 1 or (steps[1] != 1 and 0 < steps[0] < steps[1])

    def _step(self, access: Access, loop: ContractionLoop) -> int:
        pairs = zip(access.subscripts, access.buffer.layout, strict=True)
        return sum(subscript.position.terms.get(loop, 0) * stride for subscript, stride in pairs)

    def is_whole(self, access: Access, loops: list[ContractionLoop], elements: int) -> bool:
        """Whether each run of `elements` elements along the last one of `loops` is contiguous in memory, begins at a
        multiple of that number, and exists as a whole or not at all."""
        if not loops or loops[-1].extent % elements or access.buffer.offset % elements:
            return False
        inner, found = loops[-1], False
        for number, subscript in enumerate(access.subscripts):
            stride = access.buffer.layout[number]
            if subscript.position == variable(inner) and stride == 1 and not access.padded(number):
                found = True
            elif inner in subscript.position.terms or stride % elements:
                return False
        return found

    def element(
        self, access: Access, prologue: Block | None, loops: Indices, guards: Sequence[ll.Value | None]
    ) -> ll.Value:
        """Returns an element after its prologue; zero if one of the guards is false, or it is padding."""
        positions = self.positions(access, loops)
        condition = self.condition([*filter(None, guards), *self.paddings(access, positions)])
        if condition is None:
            return self.loaded(access, prologue, positions, loops)
        before = self.builder.block
        with self.builder.if_then(condition):
            value = self.loaded(access, prologue, positions, loops)
            end = self.builder.block
        zero = F32(0.0) if value.type == F32 else value.type(0)
        return self.code.phi([(zero, before), (value, end)])

    def condition(self, conditions: Sequence[ll.Value]) -> ll.Value | None:
        """Whether all conditions hold; None if there are none."""
        found: ll.Value | None = None
        for one in conditions:
            found = one if found is None else self.builder.and_(found, one)
        return found

    def positions(self, access: Access, loops: Indices) -> list[ll.Value]:
        """Returns an element's position along each dimension, before division by the dilation."""
        self.plain.values.update(loops)
        return [self.plain.number(subscript.position) for subscript in access.subscripts]

    def paddings(self, access: Access, positions: Sequence[ll.Value]) -> Iterator[ll.Value]:
        """Yields whether each position is one of an element, where that is not certain."""
        builder = self.builder
        for dimension, (subscript, position) in enumerate(zip(access.subscripts, positions, strict=True)):
            if access.padded(dimension):
                size = access.buffer.shape[dimension] * subscript.dilation
                yield builder.icmp_unsigned("<", position, self.code.like(position, size))
                if subscript.dilation != 1:
                    rest = builder.srem(position, self.code.like(position, subscript.dilation))
                    yield builder.icmp_signed("==", rest, self.code.like(rest, 0))

    def offset(self, access: Access, positions: Sequence[ll.Value]) -> ll.Value:
        """Returns the number of the element at these positions in memory."""
        builder = self.builder
        at: ll.Value = I64(access.buffer.offset)
        for subscript, position, stride in zip(access.subscripts, positions, access.buffer.layout, strict=True):
            if subscript.dilation != 1:
                position = builder.sdiv(position, self.code.like(position, subscript.dilation))
            at = builder.add(at, builder.mul(position, self.code.like(position, stride)))
        return at

    def loaded(self, access: Access, prologue: Block | None, positions: Sequence[ll.Value], loops: Indices) -> ll.Value:
        """Returns the element at these positions, after its prologue."""
        at = self.offset(access, positions)
        address = memory.Address(self.plain.buffers[access.buffer], access.buffer.dtype, at)
        element = memory.load(self.code, address, 1, None)
        if prologue is None:
            return element
        (value,) = self.run(prologue, [element, *(loops.get(loop, at) for loop in self.mark.loops)])
        return value

    # Results

    def run(self, block: Block, arguments: Sequence[ll.Value], lanes: int = 1) -> list[ll.Value]:
        """Emits a block of the mark, for `lanes` neighbours along its last parameter."""
        analysis = Analysis(block)
        emitter = self._emitter(analysis, serial(block, analysis))
        emitter.values.update(zip(block.parameters, arguments, strict=False))
        with emitter.in_lanes(block.parameters[-1], lanes, None):
            return emitter.block(block)

    def lanes(self) -> int:
        """Returns the number of neighbours in a row for which the epilogue can run at once: what it stores of them is
        at most 16 bytes."""
        block = self.mark.epilogue
        analysis, along = Analysis(block), block.parameters[-1]
        loop = [one for one in self.mark.loops if one.role != "k"][-1]
        stores = [i for i in block.instructions if isinstance(i, Store)]
        if loop.role != "n" or not stores or not is_plain(block) or any(map(is_alone, block.instructions)):
            return 1
        lanes = min(WIDEST, CHUNK // min(storage_bytes(i.buffer.dtype) for i in stores))
        for access in accesses(block):
            step = analysis.step(analysis.address(access.buffer, access.indices), along)
            if step != 1 and (step != 0 or isinstance(access, Store)):
                return 1
        return lanes if loop.extent % lanes == 0 else 1

    def finish(self, total: ll.Value, row: ll.Value, column: ll.Value, batch: Indices) -> None:
        """Runs the epilogue for a sum, or a vector of neighbours in a row, if its row and column exist."""
        lanes = total.type.count if isinstance(total.type, ll.VectorType) else 1
        guards = [self.inside("m", row, self.side("m")), self.inside("n", column, self.side("n"))]
        with self.builder.if_then(self.condition([*filter(None, guards)]) or I1(1)):
            loops = {**batch, **self.indices("m", row), **self.indices("n", column)}
            outer = [loops[loop] for loop in self.mark.loops if loop.role != "k"]
            self.run(self.mark.epilogue, [total, *outer], lanes)

    def finish_together(self, results: Sequence[tuple[ll.Value, ll.Value, ll.Value]], batch: Indices) -> None:
        """Does the same for several sums, each with its row and column. Everything is loaded and computed before
        anything is stored, so that loads do not wait for one another. What does not exist is computed from what does,
        and not stored."""
        block, pending = self.mark.epilogue, list[tuple[ll.Value | None, Epilogue]]()
        analysis = Analysis(block)
        schedule = serial(block, analysis)
        for total, row, column in results:
            lanes = total.type.count if isinstance(total.type, ll.VectorType) else 1
            guards = [self.inside("m", row, self.side("m")), self.inside("n", column, self.side("n"))]
            exists = self.condition([*filter(None, guards)])
            if exists is not None:
                row, column = (self.builder.select(exists, number, I32(0)) for number in (row, column))
            loops = {**batch, **self.indices("m", row, True), **self.indices("n", column, True)}
            outer = [loops[loop] for loop in self.mark.loops if loop.role != "k"]
            pending.append((exists, Epilogue(self._emitter(analysis, schedule), block, [total, *outer], lanes)))
        for exists, epilogue in pending:
            if exists is None:
                epilogue.finish()
                continue
            with self.builder.if_then(exists):
                epilogue.finish()


class Epilogue:
    """An epilogue, for `lanes` neighbours along its last parameter, whose instructions before the first store are
    emitted; `finish` emits the others."""

    def __init__(self, emitter: Emitter, block: Block, arguments: Sequence[ll.Value], lanes: int = 1) -> None:
        stores = [number for number, one in enumerate(block.instructions) if isinstance(one, Store) or one.blocks]
        cut = stores[0] if stores else len(block.instructions)
        self._emitter, self._rest = emitter, Block(instructions=block.instructions[cut:])
        self._lanes = block.parameters[-1], lanes, None
        emitter.values.update(zip(block.parameters, arguments, strict=True))
        with emitter.in_lanes(*self._lanes):
            emitter.inline(Block(instructions=block.instructions[:cut]))

    def finish(self) -> None:
        with self._emitter.in_lanes(*self._lanes):
            self._emitter.inline(self._rest)
