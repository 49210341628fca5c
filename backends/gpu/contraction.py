"""Products of matrices and convolutions in tiles: a block of threads computes a square tile of the result. It reads the
tile's rows and columns piece by piece into memory that it shares, each element once, with what is computed from it on
the way in; each thread keeps a small square of sums, with which it runs the kernel's own epilogue."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.tiles import DEPTH, SIDE
from trivium.backends.llvm import memory
from trivium.backends.llvm.code import F32, I1, I32, Code
from trivium.backends.llvm.emitter import Emitter
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import i64
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.contraction import Access, Contraction, ContractionLoop
from trivium.compiler.kernel.index import Atom
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Block, Register
from trivium.compiler.schedule import Schedule, serial

Indices = dict[Register | Atom, ll.Value]
"""The indices of loops of the contraction, at one of their iterations."""

MakeEmitter = Callable[[Analysis, Schedule], Emitter]


@dataclass
class _Operand:
    """One side of the product. `role` is that of its own loops; `places` are the elements that this thread reads of
    each piece, as indices of these loops, `within` whether those exist, and `local` their places in the tile."""

    access: Access
    prologue: Block | None
    role: str
    memory: ll.Value
    places: list[Indices]
    within: list[ll.Value | None]
    local: list[tuple[ll.Value, ll.Value]]


class TiledContraction:
    """Emits one block's tile of `tile` rows and columns, for one thread. `emitter` makes what emits blocks of the
    kernel."""

    def __init__(
        self, kernel: Kernel, code: Code, dialect: Dialect, thread: ll.Value, tile: int, emitter: MakeEmitter
    ) -> None:
        assert kernel.contraction is not None, "a contraction is marked"
        self.mark: Contraction = kernel.contraction
        self.code, self.builder, self.dialect = code, code.builder, dialect
        self.thread, self.tile, self._emitter = thread, tile, emitter
        self.each = tile // SIDE
        self.plain = emitter(Analysis(Block()), Schedule())

    def emit(self, block: ll.Value) -> None:
        """Emits the tile that has the number `block`."""
        rows, columns = (-(-self.extent(role) // self.tile) for role in "mn")
        first_column = self.builder.mul(self.builder.urem(block, I32(columns)), I32(self.tile))
        rest = self.builder.udiv(block, I32(columns))
        first_row = self.builder.mul(self.builder.urem(rest, I32(rows)), I32(self.tile))
        batch = self._indices("batch", self.builder.udiv(rest, I32(rows)))
        lhs = self._operand(self.mark.lhs, self.mark.lhs_prologue, "m", first_row)
        rhs = self._operand(self.mark.rhs, self.mark.rhs_prologue, "n", first_column)
        sums = self._sums(lhs, rhs, batch)
        y, x = self.builder.udiv(self.thread, I32(SIDE)), self.builder.urem(self.thread, I32(SIDE))
        for number, total in enumerate(sums):
            row = self._plus(first_row, self._own_row(y, number // self.each))
            column = self._plus(first_column, self._own_column(x, number % self.each))
            self._finish(total, row, column, batch)

    def extent(self, role: str) -> int:
        """Returns the number of iterations of all loops of a role."""
        return math.prod(loop.extent for loop in self._loops(role))

    def _loops(self, role: str) -> list[ContractionLoop]:
        return [loop for loop in self.mark.loops if loop.role == role]

    def _plus(self, a: ll.Value, b: ll.Value) -> ll.Value:
        return self.builder.add(a, b)

    def _own_row(self, y: ll.Value, number: int) -> ll.Value:
        return self._plus(self.builder.mul(y, I32(self.each)), I32(number))

    def _own_column(self, x: ll.Value, number: int) -> ll.Value:
        return self._plus(x, I32(SIDE * number))

    def _indices(self, role: str, number: ll.Value) -> Indices:
        """Returns the indices of all loops of a role at one of their iterations, in row-major order."""
        found: Indices = {}
        for loop in reversed(self._loops(role)):
            own = self.builder.urem(number, I32(loop.extent))
            found[loop] = self.builder.zext(own, ll.IntType(64))
            number = self.builder.udiv(number, I32(loop.extent))
        return found

    def _inside(self, role: str, number: ll.Value, step: int) -> ll.Value | None:
        """Whether an iteration exists, if that is not certain of pieces of `step`."""
        extent = self.extent(role)
        return None if extent % step == 0 else self.builder.icmp_unsigned("<", number, I32(extent))

    # Operands

    def _operand(self, access: Access, prologue: Block | None, role: str, first: ll.Value) -> _Operand:
        """Returns an operand, of which threads with neighbouring numbers read neighbours in memory."""
        along = self._runs_along_depth(access, role)
        memory_ = self.dialect.shared(self.code, 4 * DEPTH * self._pitch)
        operand = _Operand(access, prologue, role, memory_, [], [], [])
        for number in range(self.each):
            element = self._plus(self.thread, I32(SIDE * SIDE * number))
            inner, outer = (
                op(element, I32(DEPTH if along else self.tile)) for op in (self.builder.urem, self.builder.udiv)
            )
            own, depth = (outer, inner) if along else (inner, outer)
            place = self._plus(first, own)
            operand.places.append(self._indices(role, place))
            operand.within.append(self._inside(role, place, self.tile))
            operand.local.append((depth, own))
        return operand

    @property
    def _pitch(self) -> int:
        """The distance between two lines of a piece in shared memory: odd, so that threads do not wait for a bank."""
        return self.tile + 1

    def _runs_along_depth(self, access: Access, role: str) -> bool:
        """Whether neighbours in memory are neighbours along the depth."""
        steps = [self._step(access, loops[-1]) if (loops := self._loops(kind)) else 0 for kind in ("k", role)]
        return steps[0] == 1 or (steps[1] != 1 and 0 < steps[0] < steps[1])

    def _step(self, access: Access, loop: ContractionLoop) -> int:
        pairs = zip(access.subscripts, access.buffer.layout, strict=True)
        return sum(subscript.position.terms.get(loop, 0) * stride for subscript, stride in pairs)

    def _read(self, operand: _Operand, piece: ll.Value, batch: Indices) -> None:
        """Reads this thread's share of a piece, which begins at iteration `piece` of the depth."""
        for place, within, (depth, own) in zip(operand.places, operand.within, operand.local, strict=True):
            number = self._plus(piece, depth)
            loops = {**batch, **place, **self._indices("k", number)}
            element = self._element(operand, loops, [within, self._inside("k", number, DEPTH)])
            at = self._plus(self.builder.mul(depth, I32(self._pitch)), own)
            self.builder.store(element, self._shared(operand, at))

    def _shared(self, operand: _Operand, at: ll.Value) -> ll.Value:
        return self.builder.gep(operand.memory, [at], source_etype=F32)

    def _element(self, operand: _Operand, loops: Indices, guards: Sequence[ll.Value | None]) -> ll.Value:
        """Returns an element after its prologue; zero if one of the guards is false, or it is padding."""
        self.plain.values.update(loops)
        access = operand.access
        positions = [self.plain.number(subscript.position) for subscript in access.subscripts]
        conditions = [*filter(None, guards), *self._paddings(access, positions)]
        if not conditions:
            return self._loaded(operand, positions, loops)
        condition = conditions[0]
        for other in conditions[1:]:
            condition = self.builder.and_(condition, other)
        before = self.builder.block
        with self.builder.if_then(condition):
            value = self._loaded(operand, positions, loops)
            end = self.builder.block
        return self.code.phi([(F32(0.0), before), (value, end)])

    def _paddings(self, access: Access, positions: Sequence[ll.Value]) -> Iterator[ll.Value]:
        """Yields whether each position is one of an element, where that is not certain."""
        builder = self.builder
        for dimension, (subscript, position) in enumerate(zip(access.subscripts, positions, strict=True)):
            if access.padded(dimension):
                size = access.buffer.shape[dimension] * subscript.dilation
                yield builder.icmp_unsigned("<", position, self.code.like(position, size))
                if subscript.dilation != 1:
                    rest = builder.srem(position, self.code.like(position, subscript.dilation))
                    yield builder.icmp_signed("==", rest, self.code.like(rest, 0))

    def _loaded(self, operand: _Operand, positions: Sequence[ll.Value], loops: Indices) -> ll.Value:
        access, builder = operand.access, self.builder
        at: ll.Value = ll.IntType(64)(access.buffer.offset)
        for subscript, position, stride in zip(access.subscripts, positions, access.buffer.layout, strict=True):
            if subscript.dilation != 1:
                position = builder.sdiv(position, self.code.like(position, subscript.dilation))
            at = builder.add(at, builder.mul(position, self.code.like(position, stride)))
        address = memory.Address(self.plain.buffers[access.buffer], access.buffer.dtype, at, 0)
        element = memory.load(self.code, address, 1, None)
        if operand.prologue is None:
            return element
        (value,) = self._run(operand.prologue, [element, *(loops.get(loop, at) for loop in self.mark.loops)])
        return value

    def _run(self, block: Block, arguments: Sequence[ll.Value]) -> list[ll.Value]:
        """Emits a block of the mark."""
        analysis = Analysis(block)
        emitter = self._emitter(analysis, serial(block, analysis))
        emitter.values.update(zip(block.parameters, arguments, strict=False))
        return emitter.block(block)

    # Sums

    def _sums(self, lhs: _Operand, rhs: _Operand, batch: Indices) -> list[ll.Value]:
        """Returns this thread's sums, row by row."""
        zeros = [F32(0.0)] * self.each**2
        with counted(self.code, 0, self.extent("k"), DEPTH, zeros) as piece:
            begin = self.builder.trunc(i64(piece.index), I32)
            self._read(lhs, begin, batch)
            self._read(rhs, begin, batch)
            self.dialect.barrier(self.code)
            sums = piece.carried
            for depth in range(DEPTH):
                sums = self._products(lhs, rhs, depth, sums)
            # The next piece takes the place of this one.
            self.dialect.barrier(self.code)
            piece.next = sums
        return piece.carried

    def _products(self, lhs: _Operand, rhs: _Operand, depth: int, sums: list[ll.Value]) -> list[ll.Value]:
        y, x = self.builder.udiv(self.thread, I32(SIDE)), self.builder.urem(self.thread, I32(SIDE))
        line = I32(depth * self._pitch)
        rows = [self._stored(lhs, self._plus(line, self._own_row(y, number))) for number in range(self.each)]
        columns = [self._stored(rhs, self._plus(line, self._own_column(x, number))) for number in range(self.each)]
        pairs = [(row, column) for row in rows for column in columns]
        return [self.code.fused(*pair, total) for pair, total in zip(pairs, sums, strict=True)]

    def _stored(self, operand: _Operand, at: ll.Value) -> ll.Value:
        return self.builder.load(self._shared(operand, at), typ=F32)

    def _finish(self, total: ll.Value, row: ll.Value, column: ll.Value, batch: Indices) -> None:
        """Runs the epilogue for one sum, if its row and column exist."""
        guards = [self._inside("m", row, self.tile), self._inside("n", column, self.tile)]
        condition: ll.Value = I1(1)
        for guard in filter(None, guards):
            condition = self.builder.and_(condition, guard)
        with self.builder.if_then(condition):
            loops = {**batch, **self._indices("m", row), **self._indices("n", column)}
            outer = [loops[loop] for loop in self.mark.loops if loop.role != "k"]
            self._run(self.mark.epilogue, [total, *outer])
