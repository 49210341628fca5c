"""The loop nest around the micro-kernel: units of work (batch, chunk of rows, group of panels), blocks of the
reduction, panels, tiles. Operands are packed where the tiling requires it, and the sums are passed to a sink, vector by
vector, as soon as a tile is finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import llvmlite.ir as ll

from trivium.backends.cpu.contraction import folded, microkernel, underflow
from trivium.backends.cpu.contraction.ahead import ahead_of
from trivium.backends.cpu.contraction.first_tile import Origin, packs_as_it_reads
from trivium.backends.cpu.contraction.lhs import Lhs
from trivium.backends.cpu.contraction.microkernel import Stream
from trivium.backends.cpu.contraction.needed import EVERYTHING, Needed
from trivium.backends.cpu.contraction.packing import Source, emit_pack, vector_reader, walk
from trivium.backends.cpu.contraction.plan import Plan
from trivium.backends.cpu.contraction.requests import Pieces, Requests
from trivium.backends.cpu.contraction.split_loops import bounds, first_of, parts
from trivium.backends.cpu.contraction.tile_packing import emit_tiles
from trivium.backends.cpu.contraction.tiling import Rhs, rhs_step
from trivium.backends.llvm.displacement import Displacement, Indices, displacement, origin, unflatten
from trivium.backends.llvm.memory import leading_mask
from trivium.backends.llvm.numbers import Number, i64, minimum
from trivium.backends.llvm.vectors import Vectors
from trivium.backends.llvm.workspace import Workspace


@dataclass(frozen=True)
class Element:
    """The position of a vector of sums: flat indices over the oriented problem's groups, where `column` is that of lane
    0; `mask` is present if not all lanes exist."""

    batch: Number
    row: Number
    column: Number
    mask: ll.Value | None


Sink = Callable[[Vectors, ll.Value, Element], None]

Factors = Callable[[Number, Indices], list[ll.Value]]
"""Returns the elements of lhs in the rows of a tile at a step of the reduction, given its number and its indices."""


@dataclass(frozen=True)
class Operand:
    """An operand in memory, at `base`; `e` reads it. `signed`: if it has integers, they have a sign."""

    base: ll.Value
    e: Vectors
    signed: bool = True


@dataclass(frozen=True)
class Unit:
    """One unit of work: how its batch locates the operands, and the range that it covers."""

    batch: Number
    lhs: Displacement
    rhs: Displacement
    tiles: tuple[Number, Number]
    panels: tuple[Number, Number]
    rows: tuple[Number, Number]
    first_column: Number


@dataclass(frozen=True)
class Block:
    """A block of the reduction: taps [first, last), the run's steps [start, start + steps), flat indices [begin,
    end)."""

    number: Number
    taps: tuple[Number, Number]
    start: Number
    steps: Number
    begin: Number
    end: Number


@dataclass(frozen=True)
class Panel:
    """`width` vectors of columns, the first of which is the `first`-th and begins with `column`; `data` are the block's
    rows of rhs, `pitch` elements apart, or None if rhs is read element by element."""

    width: int
    first: Number
    column: Number
    pitch: int
    data: ll.Value | None


@dataclass(frozen=True)
class Tile:
    """`count` rows from `row` on, as the `number`-th tile."""

    count: int
    row: Number
    number: Number


class Template:
    """Emits the parts of one contraction. `e` multiplies and adds within a block; `sums`, which is `e` unless it has
    integers, adds the blocks. The operands are the oriented problem's, a constant rhs packed. `inline` unrolls the sink
    over the tile's registers; otherwise it is emitted once, in a loop over the tile in memory."""

    guard: underflow.Guard | None = None
    """For instructions that treat subnormal numbers as zero."""

    pieces: Pieces | None = None
    """What finds the memory that a tile requests while it adds up products."""
    needed: Needed = EVERYTHING
    """Tiles of which nothing has any use are skipped."""

    def __init__(
        self, e: Vectors, sums: Vectors, plan: Plan, operands: tuple[Operand, Operand], sink: Sink, inline: bool
    ) -> None:
        self.e, self.of_sums, self.plan, self.sink = e, sums, plan, sink
        self.problem, self.tiling, self.reduction = plan.problem, plan.tiling, plan.tiling.reduction
        self.lhs, self.rhs = Lhs(operands[0].e, plan.problem, plan.tiling, operands[0].base), operands[1]
        self.lhs_by_steps = self._lies_by_steps()
        self.signs = operands[0].signed, operands[1].signed
        self.in_blocks = self.reduction.blocks > 1
        self.inline = inline and not self.in_blocks

    def emit(self, workspace: Workspace, units: tuple[Number, Number]) -> None:
        """Emits a range of the plan's units at the builder's position."""
        self.reserve(workspace)
        with self.e.loop(*units) as loop:
            self.unit(loop.index)

    def reserve(self, workspace: Workspace) -> None:
        """Memory for packed data, with one spare vector's worth of lines, and for partial sums."""

        def room(count: int) -> ll.Value:
            """Allocates memory for `count` elements."""
            return workspace.room(self.e.builder, count * (8 if isinstance(self.e.element, ll.DoubleType) else 4))

        tiling, lanes, steps = self.tiling, self.tiling.lanes, self.reduction.most_steps
        rows, width = tiling.chunks.size * tiling.tiles.size, tiling.panels.size * lanes
        lines, across = (steps, rows) if self.lhs_by_steps else (rows, steps)
        self.lhs_pitch = steps + lanes if tiling.lhs_in_tiles else -(-across // lanes) * lanes + lanes
        if tiling.pack_lhs:
            self.lhs_room = room(rows * self.lhs_pitch if tiling.lhs_in_tiles else (lines + lanes) * self.lhs_pitch)
        if tiling.rhs is Rhs.FOLDED:
            self.folded_room = room((tiling.tiles.size + 1) * lanes)
        if self._reads_room():
            self.rhs_room = room((steps + lanes) * width)
        self.pitch = tiling.groups.size * width if self.in_blocks else width
        if not self.inline:
            self.sums = room((rows if self.in_blocks else tiling.tiles.size) * self.pitch)

    # Units and blocks

    def unit(self, number: Number) -> None:
        """Emits the whole of one unit."""
        if self.guard is not None:
            self.guard.begin()
        unit = self._unit(number)
        with self.needed.any(self.e, batch=(unit.batch, unit.batch + 1), rows=unit.rows):
            self._blocks(unit)

    def _blocks(self, unit: Unit) -> None:
        if self.in_blocks:
            self._clear(unit)
        with self.e.loop(0, self.reduction.blocks) as loop:
            block = self._block(loop.index if self.in_blocks else 0)
            if self.tiling.pack_lhs:
                self._pack_lhs(unit, block)
            if self.tiling.by_rows:
                self._rows(unit, block)
            else:
                self._columns(unit, block)

    def _unit(self, number: Number) -> Unit:
        tiling, problem = self.tiling, self.problem
        rest, chunk = divmod(number, tiling.chunks.count)
        batch, group = divmod(rest, tiling.groups.count)
        tiles, panels = bounds(tiling.chunks, chunk), bounds(tiling.groups, group)
        indices = unflatten(problem.batch, batch)
        rhs = self.plan.packed_access() if tiling.rhs is Rhs.CONSTANT else problem.rhs
        return Unit(
            batch=batch,
            lhs=origin(problem.lhs) + displacement(problem.lhs, indices),
            rhs=origin(rhs) + displacement(rhs, indices),
            tiles=tiles,
            panels=panels,
            rows=(first_of(tiling.tiles, tiles[0]), first_of(tiling.tiles, tiles[1])),
            first_column=first_of(tiling.panels, panels[0]) * tiling.lanes,
        )

    def _clear(self, unit: Unit) -> None:
        e, (first, last) = self.e, unit.rows
        with e.loop(0, (last - first) * self.pitch, step=e.lanes) as loop:
            e.store(e.zero, e.at(self.sums, loop.index))

    def _block(self, number: Number) -> Block:
        reduction = self.reduction
        group, piece = divmod(number, reduction.run_blocks)
        first = group * reduction.block_taps
        last = minimum(first + reduction.block_taps, reduction.taps)
        start = piece * reduction.block_run
        steps = minimum(reduction.run - start, reduction.block_run)
        begin = first * reduction.run + start
        end = (last - 1) * reduction.run + start + steps
        return Block(number, (first, last), start, steps, begin, end)

    def _lies_by_steps(self) -> bool:
        """Whether packed lhs holds the rows of each step rather than the steps of each row: whichever is contiguous
        now."""
        rows, access = self.problem.rows.axes, self.problem.lhs
        return bool(rows) and access.stride(rows[-1]) == 1

    def _pack_lhs(self, unit: Unit, block: Block) -> None:
        e, problem = self.e, self.problem
        if self.tiling.lhs_in_tiles:
            stride, steps = self.lhs.stride, block.end - block.begin
            start = self.lhs.e.at(self.lhs.base, unit.lhs.offset + unit.rows[0] + block.begin * stride)
            target = self.lhs_room, self.lhs_pitch
            emit_tiles(self.lhs.e, e, self.tiling.tiles, unit.tiles, steps, (start, stride), target)
            return
        sides = [(problem.rows, unit.rows), (problem.reduction, (block.begin, block.end))]
        (lines, line), (across, lane) = sides[::-1] if self.lhs_by_steps else sides
        aligned = not self.lhs_by_steps and self.reduction.begins_at_multiples(e.lanes)
        source = Source(self.lhs.e, problem.lhs, self.lhs.base, unit.lhs, lines, across, aligned)
        vectors = (lane[1] - lane[0] + (e.lanes - 1)) // e.lanes
        emit_pack(e, source, line, lane, vectors, self.lhs_room, self.lhs_pitch)

    # Panels and tiles

    def _rows(self, unit: Unit, block: Block) -> None:
        """Emits all panels of a tile, then those of the next one."""
        for tile in self._tiles(unit):
            for panel in self._panels(unit, block):
                self._tile(unit, block, panel, tile)

    def _columns(self, unit: Unit, block: Block) -> None:
        """Emits all tiles of a panel, then those of the next one."""
        for panel in self._panels(unit, block):
            for tile in self._tiles(unit):
                self._tile(unit, block, panel, tile)

    def _panels(self, unit: Unit, block: Block) -> Iterator[Panel]:
        e = self.e
        for width, number in parts(self.e, self.tiling.panels, unit.panels):
            first = first_of(self.tiling.panels, number)
            column, last = self._column(first), self._column(first + (width - 1))
            pitch = rhs_step(self.problem) if self.tiling.rhs is Rhs.IN_PLACE else width * e.lanes
            with self.needed.any(e, columns=(column, last + e.lanes)):
                yield Panel(width, first, column, pitch, self._panel_data(unit, block, width, column, pitch))

    def _tiles(self, unit: Unit) -> Iterator[Tile]:
        for count, tile in parts(self.e, self.tiling.tiles, unit.tiles):
            row = first_of(self.tiling.tiles, tile)
            with self.needed.any(self.e, rows=(row, row + count)):
                yield Tile(count, row, tile)

    def _panel_data(self, unit: Unit, block: Block, width: int, column: Number, pitch: int) -> ll.Value | None:
        """Returns the block's rhs in the panel, which is packed here if necessary."""
        e, problem = self.e, self.problem
        match self.tiling.rhs:
            case Rhs.DIRECT | Rhs.FOLDED:
                return None
            case Rhs.IN_PLACE:
                return self.rhs.e.at(self.rhs.base, unit.rhs.offset + column + block.begin * pitch)
            case Rhs.PACKED:
                steps, lanes = (block.begin, block.end), (column, problem.columns.extent)
                if not packs_as_it_reads(problem, self.tiling, self.needed):
                    emit_pack(e, self._rhs_source(unit), steps, lanes, width, self.rhs_room, pitch)
                return self.rhs_room
        start = column * problem.reduction.extent + block.begin * pitch
        panel = self.rhs.e.at(self.rhs.base, unit.rhs.offset + start)
        return self._converted(panel, (block.end - block.begin) * pitch) if self.tiling.converts_panels else panel

    def _origin(self, unit: Unit, block: Block, panel: Panel) -> Origin:
        pitch = rhs_step(self.problem)
        place = self.rhs.e.at(self.rhs.base, unit.rhs.offset + panel.column + block.begin * pitch)
        return Origin(self.rhs.e, place, pitch, self._mask(panel, panel.width - 1), unit.tiles[0])

    def _reads_room(self) -> bool:
        """Whether panels are in memory of the template's, in the type that is multiplied."""
        return self.tiling.rhs is Rhs.PACKED or self.tiling.converts_panels

    def _converted(self, panel: ll.Value, count: Number) -> ll.Value:
        """Converts `count` elements of a panel, which are whole vectors."""
        e = self.e
        with e.loop(0, count, step=e.lanes, nonempty=True) as loop:
            e.store(self.rhs.e.load(self.rhs.e.at(panel, loop.index)), e.at(self.rhs_room, loop.index))
        return self.rhs_room

    def _rhs_source(self, unit: Unit) -> Source:
        problem, rhs = self.problem, self.rhs
        return Source(rhs.e, problem.rhs, rhs.base, unit.rhs, problem.reduction, problem.columns, aligned=True)

    def _tile(self, unit: Unit, block: Block, panel: Panel, tile: Tile) -> None:
        e = self.e
        if not self.in_blocks:
            sums = self._accumulate(unit, block, panel, tile, microkernel.zeros(e, tile.count, panel.width))
            self._finish(unit, panel, tile, self._as_sums(sums))
            return
        room = self._room_of_sums(unit, panel, tile)
        before = microkernel.load_tile(self.of_sums, room, self.pitch, tile.count, panel.width)
        if self.of_sums is e:
            sums = self._accumulate(unit, block, panel, tile, before)
        else:
            sums = self._accumulate(unit, block, panel, tile, microkernel.zeros(e, tile.count, panel.width))
            pairs = (zip(*lines, strict=True) for lines in zip(before, self._as_sums(sums), strict=True))
            sums = [[e.builder.add(one, other) for one, other in line] for line in pairs]
        microkernel.store_tile(self.of_sums, sums, room, self.pitch)
        self._sink_last(unit, block, panel, tile, room)

    def _room_of_sums(self, unit: Unit, panel: Panel, tile: Tile) -> ll.Value:
        """Returns the address of the sums of a tile, which are kept from one block to the next."""
        row, column = tile.row - unit.rows[0], panel.column - unit.first_column
        return self.e.at(self.sums, row * self.pitch + column)

    def _sink_last(self, unit: Unit, block: Block, panel: Panel, tile: Tile, sums: ll.Value) -> None:
        """Passes the sums to the sink after the last block."""
        builder = self.e.builder
        last = builder.icmp_signed("==", i64(block.number), i64(self.reduction.blocks - 1))
        with builder.if_then(last):
            self._sink_memory(unit, panel, tile, sums)

    def _as_sums(self, tile: microkernel.Tile) -> microkernel.Tile:
        """Returns the sums of a block, which are exact if they are integers, in the type of the whole sum."""
        if self.of_sums is self.e:
            return tile
        return [[self.e.builder.fptosi(vector, self.of_sums.vector) for vector in line] for line in tile]

    def _accumulate(
        self, unit: Unit, block: Block, panel: Panel, tile: Tile, sums: microkernel.Tile
    ) -> microkernel.Tile:
        if self.tiling.rhs is Rhs.FOLDED:
            return self._fold(unit, panel, tile)
        if panel.data is None:
            return self._accumulate_direct(unit, panel, tile, sums)
        stream = self._stream(unit, block, panel, panel.data, tile)
        if self.pieces is not None and not self.in_blocks and self.reduction.taps == 1:
            pieces = self.pieces(self.e, Element(unit.batch, tile.row, panel.column, None))
            stream = replace(stream, requests=Requests.of(pieces, tile.count, panel.width, self.e.target))
        if packs_as_it_reads(self.problem, self.tiling, self.needed):
            return self._origin(unit, block, panel).accumulate(self.e, sums, stream, tile.number)
        return microkernel.accumulate(self.e, sums, stream)

    def _stream(self, unit: Unit, block: Block, panel: Panel, data: ll.Value, tile: Tile) -> Stream:
        e, pitch, steps = self.e, panel.pitch, block.end - block.begin
        rhs = e if self._reads_room() else self.rhs.e
        ahead = ahead_of(self.tiling, self.rhs.e, panel, data, tile, steps, self.problem.reduction.extent)
        if self.tiling.pack_lhs:
            rows, step = self._packed_rows(unit, tile)
            return Stream(e, rhs, lambda _: rows, (0, 1), steps, step, data, pitch, ahead)
        lanewise = self.problem.elementwise
        start = block.start * self.lhs.stride + (panel.column if lanewise else 0)
        place = self.lhs.shifted(unit.lhs, start), tile.row, tile.count
        pointers = self.lhs.pointers(*place)
        needed = self.lhs.reached(*place) if self.tiling.skips_padding else None
        taps = (0, 1) if self.reduction.taps == 1 else block.taps
        in_place = self.tiling.rhs is Rhs.IN_PLACE
        mask = self._mask(panel, panel.width - 1) if lanewise or in_place else None
        masks = mask if lanewise else None, mask if in_place else None
        step = self.lhs.stride
        return Stream(self.lhs.e, rhs, pointers, taps, block.steps, step, data, pitch, ahead, lanewise, *masks, needed)

    def _packed_rows(self, unit: Unit, tile: Tile) -> tuple[list[ll.Value], int]:
        """Returns the addresses of the rows of a tile in packed lhs, and the distance between steps."""
        row = tile.row - unit.rows[0]
        if self.tiling.lhs_in_tiles:
            first = self.e.at(self.lhs_room, row * self.lhs_pitch)
            return [self.e.at(first, r) for r in range(tile.count)], tile.count
        row_step, step = (1, self.lhs_pitch) if self.lhs_by_steps else (self.lhs_pitch, 1)
        first = self.e.at(self.lhs_room, row * row_step)
        return [self.e.at(first, r * row_step) for r in range(tile.count)], step

    def _fold(self, unit: Unit, panel: Panel, tile: Tile) -> microkernel.Tile:
        """Reads both operands in place, along the reduction."""
        problem, lhs = self.problem, self.lhs.e
        if self.tiling.pack_lhs:
            lhs, (rows, _) = self.e, self._packed_rows(unit, tile)
        else:
            rows = self.lhs.pointers(unit.lhs, tile.row, tile.count)(0)

        def column(number: Number) -> ll.Value:
            last = problem.columns.extent - 1
            place = unflatten(problem.columns, minimum(panel.column + number, last))
            return self.rhs.e.at(self.rhs.base, (unit.rhs + displacement(problem.rhs, place)).offset)

        operands = (lhs, self.rhs.e), rows, column, problem.reduction.extent
        return folded.sums(self.e, *operands, self.folded_room, self.tiling.prefetch)

    def _accumulate_direct(self, unit: Unit, panel: Panel, tile: Tile, sums: microkernel.Tile) -> microkernel.Tile:
        """Reads rhs in place, and lhs, too, unless it is packed, one step of the reduction after the other."""
        e, problem = self.e, self.problem
        firsts = [panel.column + v * e.lanes for v in range(panel.width)]
        source = self._rhs_source(unit)
        readers = [vector_reader(source, first, problem.columns.extent - first) for first in firsts]
        factors = self._packed_factors(unit, tile) if self.tiling.pack_lhs else self._factors(unit, tile)
        flat = [vector for line in sums for vector in line]
        with walk(e, problem.reduction, 0, problem.reduction.extent, flat) as (loop, indices):
            rhs = [read(indices) for read in readers]
            lines = microkernel.shaped(sums, loop.carried)
            for lhs, totals in zip(factors(loop.index, indices), lines, strict=True):
                loop.next += [e.fused(lhs, vector, total) for vector, total in zip(rhs, totals, strict=True)]
        return microkernel.shaped(sums, loop.carried)

    def _packed_factors(self, unit: Unit, tile: Tile) -> Factors:
        e, (rows, step) = self.e, self._packed_rows(unit, tile)
        return lambda number, _: [e.broadcast(e.at(row, number * step)) for row in rows]

    def _factors(self, unit: Unit, tile: Tile) -> Factors:
        rows = [unit.lhs + self.lhs.row(tile.row + r) for r in range(tile.count)]

        def factors(_: Number, indices: Indices) -> list[ll.Value]:
            step = displacement(self.problem.lhs, indices)
            return [self.lhs.e.broadcast(self.lhs.pointer(row + step)) for row in rows]

        return factors

    # Results

    def _finish(self, unit: Unit, panel: Panel, tile: Tile, sums: microkernel.Tile) -> None:
        """Passes the sums to the sink, from registers or through memory."""
        if not self.inline:
            microkernel.store_tile(self.of_sums, sums, self.sums, self.pitch)
            self._sink_memory(unit, panel, tile, self.sums)
            return
        for r, vectors in enumerate(sums):
            for v, vector in enumerate(vectors):
                self._sink(unit, panel, tile.row + r, v, vector)

    def _sink_memory(self, unit: Unit, panel: Panel, tile: Tile, sums: ll.Value) -> None:
        self._sink_rows(unit, panel, tile.row, (0, tile.count), sums)

    def _sink_rows(self, unit: Unit, panel: Panel, first: Number, rows: tuple[Number, Number], sums: ll.Value) -> None:
        """Passes rows of a tile that begins with row `first` to the sink."""
        e = self.e
        with e.loop(*rows) as loop:
            line = e.at(sums, loop.index * self.pitch)
            for v in range(panel.width):
                self._sink(unit, panel, first + loop.index, v, self.of_sums.load(e.at(line, v * e.lanes)))

    def _sink(self, unit: Unit, panel: Panel, row: Number, vector: int, value: ll.Value) -> None:
        e, left = self.e, self._left(panel, vector)

        def sink(mask: ll.Value | None) -> None:
            self.sink(e, value, Element(unit.batch, row, self._column(panel.first + vector), mask))

        if left is None:
            sink(None)
        elif e.target.masks_apart:
            sink(e.lanes_below(left))
        else:
            with e.builder.if_else(e.icompare(">=", i64(left), e.lanes), likely=True) as (whole, partly):
                with whole:
                    sink(None)
                with partly:
                    sink(leading_mask(e.lanes, self._line % e.lanes))

    def _column(self, vector: Number) -> Number:
        """Returns the column in lane 0 of a vector."""
        return vector * self.e.lanes

    def _mask(self, panel: Panel, vector: int) -> ll.Value | None:
        """Returns the mask of the lanes that exist in a vector of the panel, or None for all."""
        left = self._left(panel, vector)
        return None if left is None else self.e.lanes_below(left)

    @property
    def _line(self) -> int:
        """The number of columns that begin with a vector and may end within one."""
        return self.problem.columns.extent

    def _left(self, panel: Panel, vector: int) -> Number | None:
        """Returns the number of columns from lane 0 of a vector of the panel on, or None if all lanes have one. Only
        the last vector can extend past the last column."""
        e, columns = self.e, self._line
        if columns % e.lanes == 0 or vector < panel.width - 1:
            return None
        return columns - panel.column - vector * e.lanes
