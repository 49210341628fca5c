"""Copies of operands that the device cannot copy to shared memory by itself, because their rows do not begin at
multiples of 16 bytes, or run across the depth of a product whose matrix instructions cannot transpose them. A launch
before the product writes such a copy to the workspace: for large products, that takes much less time than copies of
pieces by threads."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.gpu.dialect import GLOBAL_POINTER, Dialect
from trivium.backends.gpu.tensor_maps import View
from trivium.backends.llvm.code import I8, I16, I32, I64, Code

THREADS, EACH = 256, 8
"""The threads of a block, and the elements of each: all of them are loaded before one is stored."""

SIDE, LINES = 32, 8
"""The rows and columns of a square of elements that a block transposes, and the number of its lines that its threads
copy at a time."""


class OperandCopy:
    """Emits the copy of an operand, for one thread. `source` and `target` are where the operand's buffer and the copy
    begin."""

    def __init__(self, view: View, code: Code, dialect: Dialect, source: ll.Value, target: ll.Value) -> None:
        self.view, self.code, self.builder, self.dialect = view, code, code.builder, dialect
        self.source, self.target = source, target
        self.kind = {1: I8, 2: I16, 4: I32}[view.size]
        self.thread = dialect.thread(code)

    def emit(self, block: ll.Value) -> None:
        if self.view.is_turned:
            self._turn(block)
        else:
            self._copy(block)

    def _copy(self, block: ll.Value) -> None:
        """Copies elements in the order of the copy, of which neighbouring threads have neighbours."""
        builder, pending = self.builder, []
        for number in range(EACH):
            place = builder.add(builder.mul(block, I32(THREADS * EACH)), I32(number * THREADS))
            place = builder.add(place, self.thread)
            inner, *outer = self.view.dimensions
            width = I32(outer[0].step)
            column, line = builder.urem(place, width), builder.udiv(place, width)
            exists = builder.icmp_unsigned("<", column, I32(inner.extent))
            if self.view.elements % (THREADS * EACH):
                exists = builder.and_(exists, builder.icmp_unsigned("<", place, I32(self.view.elements)))
            pending.append((exists, self._loaded(exists, column, line), place))
        for exists, value, place in pending:
            with builder.if_then(exists):
                builder.store(value, self._element(self.target, builder.zext(place, I64)))

    def _turn(self, block: ll.Value) -> None:
        """Transposes a square through shared memory, so that neighbouring threads both load and store neighbours."""
        builder, (inner, lines, *_) = self.builder, self.view.dimensions
        memory = self.dialect.shared(self.code, SIDE * (SIDE + 1) * self.view.size)
        across, along = (-(-one.extent // SIDE) for one in (inner, lines))
        column, rest = self._divided(block, across)
        line, batch = self._divided(rest, along)
        low, high = self._divided(self.thread, SIDE)
        first_column, first_line = (builder.mul(number, I32(SIDE)) for number in (column, line))
        before = builder.mul(batch, I32(lines.extent))

        def shared(row: ll.Value, own: ll.Value) -> ll.Value:
            place = builder.gep(memory, [builder.add(builder.mul(row, I32(SIDE + 1)), own)], source_etype=self.kind)
            place.type = memory.type
            return place

        pending = []
        for number in range(0, SIDE, LINES):
            row = builder.add(high, I32(number))
            here, own = builder.add(first_column, row), builder.add(first_line, low)
            exists = self._both(here, inner.extent, own, lines.extent)
            pending.append((row, self._loaded(exists, here, builder.add(before, own))))
        for row, value in pending:
            builder.store(value, shared(row, low))
        self.dialect.barrier(self.code)
        for number in range(0, SIDE, LINES):
            row = builder.add(high, I32(number))
            here, own = builder.add(first_column, low), builder.add(first_line, row)
            with builder.if_then(self._both(here, inner.extent, own, lines.extent)):
                place = builder.mul(builder.zext(builder.add(before, own), I64), I64(lines.step))
                place = builder.add(place, builder.zext(here, I64))
                builder.store(builder.load(shared(low, row), typ=self.kind), self._element(self.target, place))

    def _loaded(self, exists: ll.Value, column: ll.Value, line: ll.Value) -> ll.Value:
        """Returns an element of the operand, the first one if it does not exist: lines are numbered through all outer
        dimensions."""
        builder, (_, *outer) = self.builder, self.view.dimensions
        at = builder.mul(builder.zext(column, I64), I64(self.view.source[0]))
        for number, (one, step) in enumerate(zip(outer, self.view.source[1:], strict=True)):
            own = line
            if number < len(outer) - 1:
                own, line = self._divided(line, one.extent)
            at = builder.add(at, builder.mul(builder.zext(own, I64), I64(step)))
        at = builder.add(builder.select(exists, at, I64(0)), I64(self.view.begin))
        return builder.load(self._element(self.source, at), typ=self.kind)

    def _both(self, column: ll.Value, columns: int, line: ll.Value, lines: int) -> ll.Value:
        pairs = (column, columns), (line, lines)
        return self.builder.and_(*(self.builder.icmp_unsigned("<", one, I32(count)) for one, count in pairs))

    def _divided(self, number: ll.Value, divisor: int) -> tuple[ll.Value, ll.Value]:
        """Returns the remainder and the quotient."""
        return self.builder.urem(number, I32(divisor)), self.builder.udiv(number, I32(divisor))

    def _element(self, pointer: ll.Value, at: ll.Value) -> ll.Value:
        place = self.builder.gep(pointer, [at], source_etype=self.kind)
        place.type = GLOBAL_POINTER
        return place


def blocks(view: View) -> int:
    """Returns the number of blocks that copy an operand."""
    if not view.is_turned:
        return -(-view.elements // (THREADS * EACH))
    inner, lines, *_ = view.dimensions
    return -(-inner.extent // SIDE) * -(-lines.extent // SIDE) * (view.elements // (lines.step * lines.extent))
