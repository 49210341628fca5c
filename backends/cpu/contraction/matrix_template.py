"""The loop nest for instructions that multiply tiles (`matrix_tiling.py`), in registers of their own: AMX's. A tile of
rows is up to two of accumulators high; sums pass through memory to the sink, which vector instructions compute while
those for tiles multiply the next tile."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.cpu.contraction import matrix_packing, underflow
from trivium.backends.cpu.contraction.matrix_tiling import MOST_ACCUMULATORS, together
from trivium.backends.cpu.contraction.packing import Source
from trivium.backends.cpu.contraction.split_loops import first_of, parts
from trivium.backends.cpu.contraction.template import Block, Panel, Template, Tile, Unit
from trivium.backends.cpu.contraction.tiling import Rhs
from trivium.backends.llvm import memory
from trivium.backends.llvm.code import I8, I64, POINTER, stack_slot
from trivium.backends.llvm.displacement import displacement, unflatten
from trivium.backends.llvm.numbers import Int, Number, i64, minimum
from trivium.backends.llvm.workspace import Workspace
from trivium.compiler.contraction.problem import AxisGroup

ROW_BYTES = 64
"""The size of a row of a tile."""
REGISTERS = 8
TILE_ROWS = 16
PALETTE = 1
BYTES = {(True, True): "ss", (True, False): "su", (False, True): "us", (False, False): "uu"}
"""How LLVM names products of bytes, lhs and rhs, with and without sign."""


@dataclass(frozen=True)
class Waiting:
    """Where the code remembers which sums wait for the sink: how many rows, the first of them, and their address."""

    count: ll.Value
    row: ll.Value
    sums: ll.Value


class MatrixTemplate(Template):
    """Emits the parts of one contraction. The operands are read as raw elements, in vectors of the depth of a tile."""

    def emit(self, workspace: Workspace, units: tuple[Number, Number]) -> None:
        super().emit(workspace, units)
        self._call("tilerelease")

    def reserve(self, workspace: Workspace) -> None:
        """Memory for packed data and for sums."""
        tiling, raw = self.tiling, self.lhs.e
        assert tiling.matrix is not None
        self.matrix, self.raw, self.inline = tiling.matrix, raw, False
        steps = matrix_packing.whole(raw, (0, self.reduction.most_steps))
        assert isinstance(steps, int)

        def room(count: int) -> ll.Value:
            """Allocates memory for `count` elements of an operand."""
            return workspace.room(self.e.builder, count * self._size)

        rows, width = tiling.chunks.size * tiling.tiles.size, tiling.panels.size * tiling.lanes
        self.lhs_pitch = steps + raw.lanes
        if tiling.pack_lhs:
            self.lhs_room = room((rows + matrix_packing.LANES) * self.lhs_pitch)
        if tiling.rhs is Rhs.PACKED:
            self.rhs_room, self.before_room = room(steps * width), room((steps + matrix_packing.LANES) * width)
        self.pitch = tiling.groups.size * width if self.in_blocks else width
        lines = rows if self.in_blocks else 2 * tiling.tiles.size
        self.sums = workspace.room(self.e.builder, lines * self.pitch * 4)
        self.guard = underflow.Guard(self.e, self.in_blocks) if self._is_float else None
        if not self.in_blocks:
            self.waiting = Waiting(*(stack_slot(self.e.builder, kind) for kind in (I64, I64, POINTER)))

    def _pack_lhs(self, unit: Unit, block: Block) -> None:
        problem = self.problem
        lines, across = problem.rows, problem.reduction
        source = Source(self.raw, problem.lhs, self.lhs.base, unit.lhs, lines, across, aligned=True)
        matrix_packing.emit_rows(source, unit.rows, (block.begin, block.end), self.lhs_room, self.lhs_pitch)

    def _panel_data(self, unit: Unit, block: Block, width: int, column: Number, pitch: int) -> ll.Value | None:
        if self.tiling.rhs is Rhs.CONSTANT:
            return super()._panel_data(unit, block, width, column, pitch)
        steps, columns = (block.begin, block.end), (column, self.problem.columns.extent)
        source = self._rhs_source(unit)
        rooms = self.rhs_room, self.before_room
        least = matrix_packing.emit_columns(source, steps, columns, width, *rooms, search=self._is_float)
        if self.guard is not None:
            count = matrix_packing.whole(self.raw, steps) * pitch
            self.guard.rhs = underflow.exponent_of_packed(self.raw, least, self.rhs_room, count)
        return self.rhs_room

    def _columns(self, unit: Unit, block: Block) -> None:
        if self.guard is not None:
            self.guard.lhs = underflow.least_exponent(self.raw, *self._read_of_lhs(unit, block))
        for panel in self._panels(unit, block):
            for tile in self._tiles_of(unit, panel):
                self._tile(unit, block, panel, tile)

    def _tiles_of(self, unit: Unit, panel: Panel) -> Iterator[Tile]:
        """Emits the tiles of a panel, and passes the sums of the last one to the sink."""

        def before(count: int) -> None:
            self._configure(count)
            if not self.in_blocks:
                self.e.builder.store(I64(0), self.waiting.count)
                self.e.builder.store(self.sums, self.waiting.sums)

        def after() -> None:
            if not self.in_blocks:
                count, first, sums = self._waiting()
                self._sink_rows(unit, panel, first, (0, count), sums)

        for count, tile in parts(self.e, self.tiling.tiles, unit.tiles, before, after):
            yield Tile(count, first_of(self.tiling.tiles, tile), tile)

    def _tile(self, unit: Unit, block: Block, panel: Panel, tile: Tile) -> None:
        if self.in_blocks:
            room = self._room_of_sums(unit, panel, tile)
            self._multiply(unit, block, panel, tile, room)
            self._sink_last(unit, block, panel, tile, room)
            return
        builder, other = self.e.builder, self.e.at(self.sums, self.tiling.tiles.size * self.pitch)
        first_waits = builder.icmp_unsigned("==", self._waiting()[2], self.sums)
        room = builder.select(first_waits, other, self.sums)
        self._multiply(unit, block, panel, tile, room)
        for value, slot in ((I64(tile.count), self.waiting.count), (i64(tile.row), self.waiting.row)):
            builder.store(value, slot)
        builder.store(room, self.waiting.sums)

    def _waiting(self) -> tuple[Int, Int, ll.Value]:
        """Returns the number of rows whose sums wait for the sink, the first of them, and the address of the sums."""
        builder, slots = self.e.builder, self.waiting
        count, row = (Int(self.e, builder.load(slot, typ=I64)) for slot in (slots.count, slots.row))
        return count, row, builder.load(slots.sums, typ=POINTER)

    # Tile registers: accumulators, row by row, from 0 on; then those of lhs; then those of rhs

    def _multiply(self, unit: Unit, block: Block, panel: Panel, tile: Tile, sums: ll.Value) -> None:
        """Adds the products of a block to the sums in memory, or replaces them if it is the only one."""
        if self.guard is None:
            self._multiply_tiles(unit, block, panel, tile, sums)
            return
        with self.e.builder.if_else(self.guard.is_slow(), likely=False) as (rare, usual):
            with rare:
                assert panel.data is not None, "rhs is packed"
                if not self.in_blocks:
                    waiting, before, waiting_sums = self._waiting()
                    self._sink_rows(unit, panel, before, (0, waiting), waiting_sums)
                lhs = self._lhs(unit, tile.row), self._lhs_pitch(), lambda step: self._step(block, step)
                size = tile.count, panel.width, matrix_packing.whole(self.raw, (block.begin, block.end))
                places = lhs, (panel.data, panel.pitch), (sums, self.pitch)
                underflow.multiply(self.e, self.raw, *places, size, self.in_blocks)
            with usual:
                self._multiply_tiles(unit, block, panel, tile, sums)

    def _multiply_tiles(self, unit: Unit, block: Block, panel: Panel, tile: Tile, sums: ll.Value) -> None:
        """Does so in tile registers."""
        e, raw, data = self.e, self.raw, panel.data
        assert data is not None, "rhs is packed"
        heights, lhs = self._heights(tile.count), self._lhs(unit, tile.row)
        places = [(r, v) for r in range(len(heights)) for v in range(panel.width)]
        per_row = MOST_ACCUMULATORS // len(heights)
        strides = I64(self.pitch * 4), I64(self._lhs_pitch() * self._size), I64(panel.pitch * 4)

        def place(r: int, v: int) -> ll.Value:
            return e.at(sums, sum(heights[:r]) * self.pitch + v * e.lanes)

        for r, v in places:
            if self.in_blocks:
                self._call("tileloadd64", I8(r * per_row + v), place(r, v), strides[0])
            else:
                self._call("tilezero", I8(r * per_row + v))
        first, sunk = MOST_ACCUMULATORS + len(heights), self._sinks_between(unit, block, panel, tile)
        with e.loop(0, block.end - block.begin, step=raw.lanes, nonempty=True) as loop:
            left = raw.at(lhs, self._step(block, loop.index))
            for r in range(len(heights)):
                here = raw.at(left, sum(heights[:r]) * self._lhs_pitch())
                self._call("tileloadd64", I8(MOST_ACCUMULATORS + r), here, strides[1])
            rows = raw.at(data, loop.index * panel.pitch)
            self._prefetch(unit, block, panel, tile, loop.index)
            for v in range(panel.width):
                rhs = I8(first + v % (REGISTERS - first))
                here = raw.at(rows, v * e.lanes * together(self.matrix))
                self._call("tileloadd64", rhs, here, strides[2])
                for r in range(len(heights)):
                    self._call(self._product(), I8(r * per_row + v), I8(MOST_ACCUMULATORS + r), rhs)
            sunk(loop.index)
        for r, v in places:
            self._call("tilestored64", I8(r * per_row + v), place(r, v), strides[0])

    def _sinks_between(self, unit: Unit, block: Block, panel: Panel, tile: Tile) -> Callable[[Number], None]:
        """Returns what passes as many rows of the tile before to the sink, at a step, as are necessary to pass all of
        them in the steps of a tile."""
        if self.in_blocks:
            return lambda _: None
        count, first, sums = self._waiting()
        rows = -(-tile.count * self.raw.lanes // self.reduction.most_steps)

        def at(step: Number) -> None:
            row = step * rows // self.raw.lanes
            self._sink_rows(unit, panel, first, (row, minimum(row + rows, count)), sums)

        return at

    def _prefetch(self, unit: Unit, block: Block, panel: Panel, tile: Tile, step: Number) -> None:
        """Prefetches a tile's share of what the next panel reads in memory at a step: a line of it for each column, as
        it is packed or, if rhs lies along the reduction, as it is stored."""
        if not self.tiling.prefetch:
            return
        problem, share = self.problem, -(-panel.width * self.e.lanes // self.tiling.chunks.size)
        first = (tile.number - unit.tiles[0]) * share
        if self.tiling.rhs is Rhs.CONSTANT:
            place = self.raw.at(panel.data, (problem.reduction.extent + step) * panel.pitch)
            apart = self.raw.lanes
        else:
            apart = problem.rhs.stride(problem.columns.axes[0])
            column = panel.column + panel.width * self.e.lanes
            place = self.raw.at(self.rhs.base, unit.rhs.offset + column * apart + (block.begin + step))
        for number in range(share):
            memory.prefetch(self.e, self.raw.at(place, (first + number) * apart), nearest=2)

    def _product(self) -> str:
        """Returns the instruction's name."""
        return "tdpbf16ps" if self._is_float else f"tdpb{BYTES[self.signs]}d"

    @property
    def _size(self) -> int:
        """The bytes of an element of an operand."""
        return ROW_BYTES // self.raw.lanes

    def _lhs_pitch(self) -> int:
        """Returns the number of elements from one row of a tile of lhs to the next."""
        return self.lhs_pitch if self.tiling.pack_lhs else self.problem.lhs.stride(self.problem.rows.axes[-1])

    def _lhs(self, unit: Unit, row: Number) -> ll.Value:
        """Returns the address of a row of lhs."""
        if self.tiling.pack_lhs:
            return self.raw.at(self.lhs_room, (row - unit.rows[0]) * self.lhs_pitch)
        return self.raw.at(self.lhs.base, (unit.lhs + self.lhs.row(row)).offset)

    def _step(self, block: Block, step: Number) -> Number:
        """Returns the number of elements from the beginning of a row of lhs to a step of a block."""
        if self.tiling.pack_lhs:
            return step
        return displacement(self.problem.lhs, unflatten(self.problem.reduction, block.begin + step)).offset

    def _read_of_lhs(self, unit: Unit, block: Block) -> tuple[ll.Value, Number, Number, Number]:
        """Returns what a unit reads of lhs: an address, the distance between rows, their number and their length. Rows
        of windows overlap: they are one row, from the first line of positions to the last one, of all steps."""
        (first, last), rows, steps = unit.rows, self.problem.rows.axes, self.problem.reduction.axes
        if self.tiling.pack_lhs or len(rows) == 1 == len(steps):
            start = self.raw.at(self._lhs(unit, first), self._step(block, 0))
            return start, self._lhs_pitch(), last - first, matrix_packing.whole(self.raw, (block.begin, block.end))
        access, inner = self.problem.lhs, AxisGroup(rows[1:]).extent
        spread = sum((axis.extent - 1) * access.stride(axis) for axis in (*rows[1:], *steps)) + 1
        begin, end = (row // inner * access.stride(rows[0]) for row in (first, last - 1))
        return self.raw.at(self.lhs.base, unit.lhs.offset + begin), 0, 1, end - begin + spread

    @property
    def _is_float(self) -> bool:
        return self.matrix.operands == "bf16"

    def _heights(self, count: int) -> list[int]:
        """Returns the rows of each tile of accumulators."""
        return [min(count - first, self.matrix.rows) for first in range(0, count, self.matrix.rows)]

    def _configure(self, count: int) -> None:
        """Sets the sizes of the tile registers for `count` rows of lhs."""
        name, module = f"contraction.tiles.{count}", self.e.builder.module
        if name not in module.globals:
            text = bytearray(configuration(self._heights(count)))
            kind = ll.ArrayType(I8, len(text))
            config = ll.GlobalVariable(module, kind, name)
            config.initializer, config.global_constant, config.linkage = ll.Constant(kind, text), True, "internal"
        self._call("ldtilecfg", module.globals[name].gep([ll.Constant(I64, 0), ll.Constant(I64, 0)]))

    def _call(self, name: str, *operands: ll.Value) -> None:
        self.e.call(f"llvm.x86.{name}", ll.VoidType(), *operands)


def configuration(heights: list[int]) -> bytes:
    """Returns what `ldtilecfg` reads: 16 bytes with the palette, then the bytes of a row and the number of rows of each
    register."""
    rows = [TILE_ROWS] * REGISTERS
    for r, height in enumerate(heights):
        rows[MOST_ACCUMULATORS + r] = height
    per_row = MOST_ACCUMULATORS // len(heights)
    rows[: per_row * len(heights)] = [height for height in heights for _ in range(per_row)]
    return struct.pack("<B15x16H16B", PALETTE, *_filled([ROW_BYTES] * REGISTERS), *_filled(rows))


def _filled(numbers: list[int]) -> list[int]:
    return [*numbers, *[0] * (16 - len(numbers))]
