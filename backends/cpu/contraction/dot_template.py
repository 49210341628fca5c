"""The loop nest for an instruction that adds, in each lane, four products of bytes with and without sign (VNNI). Groups
of four bytes take the place of elements: the micro-kernel (`microkernel.py`) repeats one group of lhs in every lane. If
both operands have a sign, or neither has one, the sign bits of lhs are flipped when it is packed, and the products of a
row of sign bits are subtracted. All of this is exact, because sums wrap."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.cpu.contraction import matrix_packing, microkernel
from trivium.backends.cpu.contraction.dot_tiling import has_registers_for_row
from trivium.backends.cpu.contraction.matrix_tiling import together
from trivium.backends.cpu.contraction.microkernel import Stream
from trivium.backends.cpu.contraction.packing import Source
from trivium.backends.cpu.contraction.plan import Plan
from trivium.backends.cpu.contraction.template import Block, Operand, Panel, Sink, Template, Tile, Unit
from trivium.backends.cpu.contraction.tiling import Rhs
from trivium.backends.llvm.code import I8, I32
from trivium.backends.llvm.numbers import Number
from trivium.backends.llvm.vectors import Vectors
from trivium.backends.llvm.workspace import Workspace

SIGN, SIGNS = 0x80, -0x7F7F7F80
"""The sign bit of a byte, and those of four."""


class Dots(Vectors):
    """Vectors of groups of four bytes, as numbers of i32. `unsigned_lhs`: the bytes of lhs are the ones without
    sign."""

    def __init__(self, like: Vectors, unsigned_lhs: bool) -> None:
        super().__init__(like.builder, like.target, I32, like.lanes)
        self.unsigned_lhs = unsigned_lhs

    def fused(self, a: ll.Value, b: ll.Value, c: ll.Value) -> ll.Value:
        """Returns `c` and the products of the bytes of `a`, of lhs, and `b`, of rhs."""
        factors = (a, b) if self.unsigned_lhs else (b, a)
        return self.call("llvm.x86.avx512.vpdpbusd.512", self.vector, c, *factors)

    def broadcast(self, pointer: ll.Value) -> ll.Value:
        group = self.builder.load(pointer, typ=I32)
        group.align = 1
        return self.splat(group, self.lanes)


class Flipped(Vectors):
    """Vectors of bytes that are written with the other sign bit."""

    def store(self, value: ll.Value, pointer: ll.Value, mask: ll.Value | None = None) -> None:
        super().store(self.builder.xor(value, self.like(value, SIGN)), pointer, mask)


class DotTemplate(Template):
    """Emits the parts of one contraction. The operands are read as raw bytes, in vectors."""

    def __init__(
        self, e: Vectors, sums: Vectors, plan: Plan, operands: tuple[Operand, Operand], sink: Sink, inline: bool
    ) -> None:
        self.flips = operands[0].signed == operands[1].signed
        dots = Dots(sums, unsigned_lhs=operands[1].signed)
        super().__init__(dots, dots, plan, operands, sink, inline)
        self.raw = self.lhs.e
        assert self.tiling.matrix is not None
        self.depth = together(self.tiling.matrix)
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
        self.lhs_by_steps, self.lhs_pitch = False, (steps + self.raw.lanes) // self.depth
        if tiling.pack_lhs:
            self.lhs_room = workspace.room(builder, (rows + matrix_packing.LANES + 1) * self.lhs_pitch * self.depth)
        if tiling.rhs is Rhs.PACKED:
            self.rhs_room = workspace.room(builder, steps * width)
            self.before_room = workspace.room(builder, (steps + matrix_packing.LANES) * width)
        if self.flips and not self.adds_row:
            self.excess = workspace.room(builder, width * 4)
        self.pitch = tiling.groups.size * width if self.in_blocks else width
        if not self.inline:
            self.sums = workspace.room(builder, (rows if self.in_blocks else tiling.tiles.size) * self.pitch * 4)

    def _pack_lhs(self, unit: Unit, block: Block) -> None:
        problem, raw = self.problem, self.raw
        source = Source(raw, problem.lhs, self.lhs.base, unit.lhs, problem.rows, problem.reduction, aligned=True)
        writer = Flipped(raw.builder, raw.target, I8, raw.lanes) if self.flips else raw
        steps, pitch = (block.begin, block.end), self.lhs_pitch * self.depth
        matrix_packing.emit_rows(source, unit.rows, steps, self.lhs_room, pitch, writer)
        if self.adds_row:
            row = self._row_of_signs()
            with raw.loop(0, matrix_packing.whole(raw, steps), step=raw.lanes, nonempty=True) as loop:
                writer.store(raw.zero, raw.at(row, loop.index))

    def _row_of_signs(self) -> ll.Value:
        """Returns the address of a row beyond those that packing writes to."""
        return self.e.at(self.lhs_room, (self.tiling.tiles.size + matrix_packing.LANES) * self.lhs_pitch)

    def _panel_data(self, unit: Unit, block: Block, width: int, column: Number, pitch: int) -> ll.Value | None:
        if self.tiling.rhs is Rhs.CONSTANT:
            data = super()._panel_data(unit, block, width, column, pitch)
        else:
            data, steps, columns = self.rhs_room, (block.begin, block.end), (column, self.problem.columns.extent)
            source = self._rhs_source(unit)
            matrix_packing.emit_columns(source, steps, columns, width, data, self.before_room)
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
        if not self.flips:
            return super()._accumulate(unit, block, panel, tile, sums)
        if self.adds_row:
            *sums, excess = super()._accumulate(unit, block, panel, tile, [*sums, [self.e.zero] * panel.width])
            return self._less(sums, excess)
        (excess,) = microkernel.load_tile(self.e, self.excess, 0, 1, panel.width)
        return super()._accumulate(unit, block, panel, tile, self._less(sums, excess))

    def _less(self, sums: microkernel.Tile, excess: list[ll.Value]) -> microkernel.Tile:
        return [[self.e.isub(one, other) for one, other in zip(line, excess, strict=True)] for line in sums]

    def _stream(self, unit: Unit, block: Block, panel: Panel, data: ll.Value, tile: Tile) -> Stream:
        e, pitch, groups = self.e, panel.pitch, self._groups(block)
        ahead = self._requested(panel, data, tile, groups, -(-self.problem.reduction.extent // self.depth))
        if self.tiling.pack_lhs:
            rows, step = self._packed_rows(unit, tile)
            rows += [self._row_of_signs()] * self.adds_row
            return Stream(e, e, lambda _: rows, (0, 1), groups, step, data, pitch, ahead)
        start = self.lhs.shifted(unit.lhs, block.start)
        pointers = self.lhs.pointers(start, tile.row, tile.count)
        taps = (0, 1) if self.reduction.taps == 1 else block.taps
        return Stream(e, e, pointers, taps, block.steps // self.depth, 1, data, pitch, ahead)
