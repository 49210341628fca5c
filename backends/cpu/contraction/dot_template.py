"""The loop nest for instructions that add, in each lane, four products of bytes with and without sign (VNNI), or two
products of bf16. Groups of 32 bits take the place of elements: the micro-kernel (`microkernel.py`) repeats one group of
lhs in every lane. Without such instructions, bytes are extended to 16 bits, of which two are multiplied in each lane.
If VNNI's operands both have a sign, or neither has one, the sign bits of bytes of lhs are flipped when they are packed,
and the products of a row of sign bits are subtracted. All of this is exact, because sums wrap. Where products of bf16
might underflow, vectors of f32 multiply the same groups (`underflow.py`)."""

from __future__ import annotations

from typing import ClassVar

import llvmlite.ir as ll

from trivium.backends.cpu.contraction import matrix_packing, microkernel, underflow
from trivium.backends.cpu.contraction.ahead import ahead_of
from trivium.backends.cpu.contraction.dot_tiling import has_registers_for_row
from trivium.backends.cpu.contraction.matrix_tiling import together
from trivium.backends.cpu.contraction.microkernel import Stream
from trivium.backends.cpu.contraction.packing import Source
from trivium.backends.cpu.contraction.plan import Plan
from trivium.backends.cpu.contraction.template import Block, Operand, Panel, Sink, Template, Tile, Unit
from trivium.backends.cpu.contraction.tiling import Rhs
from trivium.backends.llvm.code import F32, I8, I16, I32
from trivium.backends.llvm.memory import load_vector
from trivium.backends.llvm.numbers import Number
from trivium.backends.llvm.vectors import Vectors
from trivium.backends.llvm.workspace import Workspace

SIGN, SIGNS = 0x80, -0x7F7F7F80
"""The sign bit of a byte, and those of four."""


class Bfloat(ll.Type):
    """LLVM's type of bf16, which llvmlite does not have."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bfloat)

    def __hash__(self) -> int:
        return hash(Bfloat)


class Groups(Vectors):
    """Vectors of groups, as numbers of i32."""

    def __init__(self, like: Vectors) -> None:
        super().__init__(like.builder, like.target, I32, like.lanes)

    def broadcast(self, pointer: ll.Value) -> ll.Value:
        group = self.builder.load(pointer, typ=I32)
        group.align = 1
        return self.splat(group, self.lanes)


class Pairs(Vectors):
    """Vectors of f32, to which the products of two numbers of bf16 in each lane are added: by one instruction, which
    treats subnormal numbers as zero, or, if `exact`, by two that do not."""

    def __init__(self, like: Vectors, exact: bool) -> None:
        super().__init__(like.builder, like.target, F32, like.lanes)
        self.exact = exact

    def fused(self, a: ll.Value, b: ll.Value, c: ll.Value) -> ll.Value:
        """Returns `c` and the products of the pairs in the groups `a` and `b`."""
        if self.exact:
            for one, other in zip(underflow.halves(self, a), underflow.halves(self, b), strict=True):
                c = super().fused(one, other, c)
            return c
        pairs = ll.VectorType(Bfloat(), 2 * self.lanes)
        factors = [self.builder.bitcast(groups, pairs) for groups in (a, b)]
        return self.call("llvm.x86.avx512bf16.dpbf16ps.512", self.vector, c, *factors)


class Dots(Groups):
    """Groups of four bytes, whose products are added in i32. `unsigned_lhs`: the bytes of lhs are the ones without
    sign."""

    INSTRUCTIONS: ClassVar = {8: "llvm.x86.avx512.vpdpbusd.256", 16: "llvm.x86.avx512.vpdpbusd.512"}

    def __init__(self, like: Vectors, unsigned_lhs: bool) -> None:
        super().__init__(like)
        self.unsigned_lhs = unsigned_lhs

    def fused(self, a: ll.Value, b: ll.Value, c: ll.Value) -> ll.Value:
        """Returns `c` and the products of the bytes of `a`, of lhs, and `b`, of rhs."""
        factors = (a, b) if self.unsigned_lhs else (b, a)
        return self.call(self.INSTRUCTIONS[self.lanes], self.vector, c, *factors)


class Words(Groups):
    """Groups of two numbers of 16 bits, whose products are added in i32."""

    INSTRUCTIONS: ClassVar = {
        4: "llvm.x86.sse2.pmadd.wd",
        8: "llvm.x86.avx2.pmadd.wd",
        16: "llvm.x86.avx512.pmaddw.d.512",
    }

    def fused(self, a: ll.Value, b: ll.Value, c: ll.Value) -> ll.Value:
        """Returns `c` and the products of the numbers in the groups `a` and `b`."""
        numbers = ll.VectorType(I16, 2 * self.lanes)
        factors = [self.builder.bitcast(groups, numbers) for groups in (a, b)]
        return self.builder.add(c, self.call(self.INSTRUCTIONS[self.lanes], self.vector, *factors))


class Widened(Groups):
    """Vectors of groups of two bytes, which are extended to 16 bits when they are read."""

    def __init__(self, like: Vectors, signed: bool) -> None:
        super().__init__(like)
        self.stored, self.signed = I16, signed

    def load(self, pointer: ll.Value, mask: ll.Value | None = None, otherwise: ll.Value | None = None) -> ll.Value:
        found = load_vector(self, pointer, ll.VectorType(I8, 2 * self.lanes), mask, otherwise)
        return self.builder.bitcast(widened(self, found, self.signed), self.vector)


class Widening(Vectors):
    """Vectors of bytes that are written as 16 bits each."""

    def __init__(self, like: Vectors, signed: bool) -> None:
        super().__init__(like.builder, like.target, I16, like.lanes)
        self.signed = signed

    def store(self, value: ll.Value, pointer: ll.Value, mask: ll.Value | None = None) -> None:
        super().store(widened(self, value, self.signed), pointer, mask)


def widened(e: Vectors, value: ll.Value, signed: bool) -> ll.Value:
    """Returns bytes with or without sign as numbers of 16 bits."""
    return (e.builder.sext if signed else e.builder.zext)(value, ll.VectorType(I16, value.type.count))


class Flipped(Vectors):
    """Vectors of bytes that are written with the other sign bit."""

    def store(self, value: ll.Value, pointer: ll.Value, mask: ll.Value | None = None) -> None:
        super().store(self.builder.xor(value, self.like(value, SIGN)), pointer, mask)


class DotTemplate(Template):
    """Emits the parts of one contraction. The operands are read as raw elements, in vectors."""

    def __init__(
        self, e: Vectors, sums: Vectors, plan: Plan, operands: tuple[Operand, Operand], sink: Sink, inline: bool
    ) -> None:
        assert plan.tiling.matrix is not None
        is_float = plan.tiling.matrix.operands == "bf16"
        self.widens = plan.tiling.matrix.widens
        self.flips = not (is_float or self.widens) and operands[0].signed == operands[1].signed
        of_bytes = Words(sums) if self.widens else Dots(sums, unsigned_lhs=operands[1].signed)
        dots = Pairs(sums, exact=False) if is_float else of_bytes
        super().__init__(dots, dots, plan, operands, sink, inline)
        self.raw, self.groups = self.lhs.e, Groups(sums)
        self.groups_of_rhs = Widened(sums, operands[1].signed) if self.widens else self.groups
        self.depth = together(plan.tiling.matrix)
        self.element_bytes = 4 // self.depth
        self.guard = underflow.Guard(dots, self.in_blocks) if is_float else None
        rows, vectors = self.tiling.tiles.size, self.tiling.panels.size
        fits = has_registers_for_row(rows, vectors, dots.target.vector_registers)
        # The row of sign bits may be one more row of the only tile: then rhs is read once.
        self.adds_row = self.flips and self.tiling.tiles.count == 1 and fits

    def reserve(self, workspace: Workspace) -> None:
        """Memory for packed data, for the products of sign bits, and for sums."""
        tiling, builder = self.tiling, self.e.builder
        steps = matrix_packing.whole(self.raw, (0, self.reduction.most_steps))
        assert isinstance(steps, int)
        rows, width = tiling.chunks.size * tiling.tiles.size, tiling.panels.size * tiling.lanes
        row_bytes = width * self.element_bytes
        self.lhs_by_steps, self.lhs_pitch = False, (steps + self.raw.lanes) // self.depth
        if tiling.pack_lhs:
            self.lhs_room = workspace.room(builder, (rows + matrix_packing.LANES + 1) * self.lhs_pitch * 4)
        if tiling.rhs is Rhs.PACKED:
            self.rhs_room = workspace.room(builder, steps * row_bytes)
            self.before_room = workspace.room(builder, (steps + matrix_packing.LANES) * row_bytes)
        if self.flips and not self.adds_row:
            self.excess = workspace.room(builder, width * 4)
        self.pitch = tiling.groups.size * width if self.in_blocks else width
        if not self.inline:
            self.sums = workspace.room(builder, (rows if self.in_blocks else tiling.tiles.size) * self.pitch * 4)

    def _pack_lhs(self, unit: Unit, block: Block) -> None:
        problem, raw = self.problem, self.raw
        source = Source(raw, problem.lhs, self.lhs.base, unit.lhs, problem.rows, problem.reduction, aligned=True)
        writer = self._writer()
        steps, pitch = (block.begin, block.end), self.lhs_pitch * self.depth
        matrix_packing.emit_rows(source, unit.rows, steps, self.lhs_room, pitch, writer)
        if self.guard is not None:
            (first, last), length = unit.rows, matrix_packing.whole(raw, steps)
            self.guard.lhs = underflow.least_exponent(raw, self.lhs_room, pitch, last - first, length)
        if self.adds_row:
            row = self._row_of_signs()
            with raw.loop(0, matrix_packing.whole(raw, steps), step=raw.lanes, nonempty=True) as loop:
                writer.store(raw.zero, raw.at(row, loop.index))

    def _writer(self) -> Vectors:
        """Returns what writes packed rows of lhs."""
        if self.widens:
            return Widening(self.raw, self.signs[0])
        return Flipped(self.raw.builder, self.raw.target, I8, self.raw.lanes) if self.flips else self.raw

    def _row_of_signs(self) -> ll.Value:
        """Returns the address of a row beyond those that packing writes to."""
        return self.e.at(self.lhs_room, (self.tiling.tiles.size + matrix_packing.LANES) * self.lhs_pitch)

    def _panel_data(self, unit: Unit, block: Block, width: int, column: Number, pitch: int) -> ll.Value | None:
        if self.tiling.rhs is Rhs.CONSTANT:
            data = super()._panel_data(unit, block, width, column, pitch)
        else:
            data, steps, columns = self.rhs_room, (block.begin, block.end), (column, self.problem.columns.extent)
            source, search = self._rhs_source(unit), self.guard is not None
            least = matrix_packing.emit_columns(source, steps, columns, width, data, self.before_room, search)
            if self.guard is not None:
                count = matrix_packing.whole(self.raw, steps) * pitch
                self.guard.rhs = underflow.exponent_of_packed(self.raw, least, data, count)
        if self.flips and not self.adds_row:
            assert data is not None, "rhs is packed"
            self._multiply_signs(data, self._groups(block), width, pitch)
        return data

    def _multiply_signs(self, data: ll.Value, groups: Number, width: int, pitch: int) -> None:
        """Writes the products of a row of sign bits and a panel."""
        e = self.e
        signs = e.like(e.zero, SIGNS)
        with e.loop(0, groups, [e.zero] * width, nonempty=True) as loop:
            row = e.at(data, loop.index * pitch)
            rhs = [e.load(e.at(row, v * e.lanes)) for v in range(width)]
            loop.next = [e.fused(signs, one, total) for one, total in zip(rhs, loop.carried, strict=True)]
        microkernel.store_tile(e, [loop.carried], self.excess, 0)

    def _groups(self, block: Block) -> Number:
        """Returns the number of groups of a block, of which the last may be filled up with zeros of rhs."""
        return (block.end - block.begin + (self.depth - 1)) // self.depth

    def _accumulate(
        self, unit: Unit, block: Block, panel: Panel, tile: Tile, sums: microkernel.Tile
    ) -> microkernel.Tile:
        if self.guard is not None:
            return self._accumulate_pairs(unit, block, panel, tile, sums)
        if not self.flips:
            return super()._accumulate(unit, block, panel, tile, sums)
        if self.adds_row:
            *sums, excess = super()._accumulate(unit, block, panel, tile, [*sums, [self.e.zero] * panel.width])
            return self._less(sums, excess)
        (excess,) = microkernel.load_tile(self.e, self.excess, 0, 1, panel.width)
        return super()._accumulate(unit, block, panel, tile, self._less(sums, excess))

    def _accumulate_pairs(
        self, unit: Unit, block: Block, panel: Panel, tile: Tile, sums: microkernel.Tile
    ) -> microkernel.Tile:
        """Adds the products of bf16, by one of two instructions."""
        assert self.guard is not None
        assert panel.data is not None, "rhs is packed"
        data = panel.data

        def added(exact: bool) -> list[ll.Value]:
            stream = self._stream(unit, block, panel, data, tile)
            return [vector for line in microkernel.accumulate(Pairs(self.e, exact), sums, stream) for vector in line]

        slow = self.guard.is_slow()
        return microkernel.shaped(sums, self.e.cond(slow, lambda: added(True), lambda: added(False), likely=False))

    def _less(self, sums: microkernel.Tile, excess: list[ll.Value]) -> microkernel.Tile:
        return [[self.e.isub(one, other) for one, other in zip(line, excess, strict=True)] for line in sums]

    def _stream(self, unit: Unit, block: Block, panel: Panel, data: ll.Value, tile: Tile) -> Stream:
        pitch, groups = panel.pitch, self._groups(block)
        all_groups = -(-self.problem.reduction.extent // self.depth)
        ahead = ahead_of(self.tiling, self.rhs.e, panel, data, tile, groups, all_groups)
        if self.tiling.pack_lhs:
            rows, step = self._packed_rows(unit, tile)
            rows += [self._row_of_signs()] * self.adds_row
            return Stream(self.groups, self.groups_of_rhs, lambda _: rows, (0, 1), groups, step, data, pitch, ahead)
        start = self.lhs.shifted(unit.lhs, block.start)
        pointers = self.lhs.pointers(start, tile.row, tile.count)
        taps = (0, 1) if self.reduction.taps == 1 else block.taps
        return Stream(self.groups, self.groups, pointers, taps, block.steps // self.depth, 1, data, pitch, ahead)
