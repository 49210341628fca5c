"""The loop nest around the micro-kernel: units of work (batch, chunk of rows, group of panels), blocks of the
reduction, panels, tiles; operands packed where the tiling says so; and the sums handed to a sink, vector by vector, as
soon as a tile is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import llvmlite.ir as ll
import numpy as np

from trivium.backends.cpu.contraction import microkernel
from trivium.backends.cpu.contraction.emission import I64, Emission, Number, index
from trivium.backends.cpu.contraction.microkernel import Stream
from trivium.backends.cpu.contraction.packing import Source, dense, emit_pack, pack_panels, vector_reader, walk
from trivium.backends.cpu.contraction.place import Place, join, origin, place, resolve, unflatten
from trivium.backends.cpu.contraction.problem import Access, Group, Problem, canonicalize, orient
from trivium.backends.cpu.contraction.tiling import Rhs, Split, Tiling, choose
from trivium.backends.cpu.target import Target


@dataclass(frozen=True)
class Plan:
    """A contraction ready to emit: as given but with the result's contiguous side as columns; in canonical form; its
    schedule."""

    oriented: Problem
    problem: Problem
    tiling: Tiling

    @property
    def units(self) -> int:
        """Independent pieces of work."""
        return self.problem.batch.extent * self.tiling.chunks.count * self.tiling.groups.count

    @property
    def packed_operand(self) -> str | None:
        """Which operand, as the problem was given, is to be passed packed by `pack`: "lhs", "rhs" or None."""
        if self.tiling.rhs is not Rhs.CONSTANT:
            return None
        return "lhs" if self.oriented.swapped else "rhs"

    def pack(self, array: np.ndarray) -> np.ndarray:
        """The constant rhs in panels, from its memory as a flat array."""
        batch = Group(self._packed_batch())
        matrix = dense(array.reshape(-1), self.problem.rhs, (batch, self.problem.columns, self.problem.reduction))
        return pack_panels(matrix, [size * self.tiling.lanes for size in self.tiling.panels.sizes])

    def packed_access(self) -> Access:
        """How the batch leads to a packed rhs."""
        step = self.problem.reduction.extent * self.tiling.panels.extent * self.tiling.lanes
        strides = {}
        for axis in reversed(self._packed_batch()):
            strides[axis] = step
            step *= axis.extent
        return Access(strides)

    def _packed_batch(self) -> tuple:
        return tuple(axis for axis in self.problem.batch.axes if self.problem.rhs.reach(axis))


def plan(
    problem: Problem, element_bytes: int, target: Target, constant: frozenset[str] = frozenset(), threads: int = 1
) -> Plan:
    """Chooses how to compute `problem`; `constant` names the operands ("lhs", "rhs") that are known when the code is
    loaded."""
    oriented = orient(problem)
    canonical = canonicalize(oriented)
    known = ("lhs" if oriented.swapped else "rhs") in constant
    return Plan(oriented, canonical, choose(canonical, element_bytes, target, known, threads))


@dataclass(frozen=True)
class Element:
    """Where a vector of sums belongs: flat indices over the oriented problem's groups, column being that of lane 0;
    `mask` where not all lanes exist."""

    batch: Number
    row: Number
    column: Number
    mask: ll.Value | None


Sink = Callable[[Emission, ll.Value, Element], None]


@dataclass
class Operands:
    lhs: ll.Value
    rhs: ll.Value


def emit(e: Emission, plan: Plan, operands: Operands, begin: Number, end: Number, sink: Sink, inline: bool) -> None:
    """Emits the units [begin, end) of `plan` where the builder stands. `operands` are pointers as the oriented problem
    has them, a constant rhs packed. `inline` unrolls the sink over the tile's registers; otherwise it is emitted once,
    in a loop over the tile in memory."""
    template = Template(e, plan, operands, sink, inline)
    with e.loop(begin, end) as loop:
        template.unit(loop.index)


@dataclass(frozen=True)
class Unit:
    """What one unit of work covers."""

    batch: Number
    lhs: Place
    rhs: Place
    tiles: tuple[Number, Number]
    panels: tuple[Number, Number]
    first_row: Number
    last_row: Number
    first_column: Number


@dataclass(frozen=True)
class Block:
    """A block of the reduction: taps [first, last), the run's steps [start, start + steps), flat indices [begin, end)."""

    number: Number
    taps: tuple[Number, Number]
    start: Number
    steps: Number
    begin: Number
    end: Number


class Template:
    def __init__(self, e: Emission, plan: Plan, operands: Operands, sink: Sink, inline: bool) -> None:
        self.e, self.plan, self.operands, self.sink = e, plan, operands, sink
        self.problem, self.tiling = plan.problem, plan.tiling
        tiling, lanes = plan.tiling, plan.tiling.lanes
        self.rows_per_unit = tiling.chunks.size * tiling.tiles.size
        self.columns_per_unit = tiling.groups.size * tiling.panels.size * lanes
        self.lhs_pitch = -(-tiling.reduction.most_steps // lanes) * lanes + lanes
        self.lhs_room = (
            e.reserve((self.rows_per_unit + lanes) * self.lhs_pitch, "packed_lhs") if tiling.pack_lhs else None
        )
        self.rhs_room = (
            e.reserve((tiling.reduction.most_steps + lanes) * tiling.panels.size * lanes, "packed_rhs")
            if tiling.rhs is Rhs.PACKED
            else None
        )
        self.inline = inline and tiling.reduction.blocks == 1
        if tiling.reduction.blocks > 1:
            self.sums, self.pitch = e.reserve(self.rows_per_unit * self.columns_per_unit, "sums"), self.columns_per_unit
        elif not self.inline:
            self.pitch = tiling.panels.size * lanes
            self.sums = e.reserve(tiling.tiles.size * self.pitch, "tile")

    # -- units

    def unit(self, number: ll.Value) -> None:
        unit = self._unit(number)
        if self.tiling.reduction.blocks > 1:
            self._clear(unit)
        with self.e.loop(0, self.tiling.reduction.blocks) as loop:
            block = self._block(0 if self.tiling.reduction.blocks == 1 else loop.index)
            if self.tiling.pack_lhs:
                self._pack_lhs(unit, block)
            for width, panel in self._parts(self.tiling.panels, unit.panels):
                self._panel(unit, block, width, panel)

    def _unit(self, number: ll.Value) -> Unit:
        e, tiling, problem = self.e, self.tiling, self.problem
        rest, chunk = e.divmod(number, tiling.chunks.count)
        batch, group = e.divmod(rest, tiling.groups.count)
        tiles = self._range(tiling.chunks, chunk)
        panels = self._range(tiling.groups, group)
        indices = unflatten(e, problem.batch, batch)
        rhs = problem.rhs if tiling.rhs is not Rhs.CONSTANT else self.plan.packed_access()
        return Unit(
            batch=batch, tiles=tiles, panels=panels,
            lhs=join(e, origin(problem.lhs), place(e, problem.lhs, indices)),
            rhs=join(e, origin(rhs), place(e, rhs, {axis: i for axis, i in indices.items() if rhs.reach(axis)})),
            first_row=self._start(tiling.tiles, tiles[0]), last_row=self._start(tiling.tiles, tiles[1]),
            first_column=e.mul(self._start(tiling.panels, panels[0]), tiling.lanes),
        )  # fmt: skip

    def _clear(self, unit: Unit) -> None:
        e = self.e
        with e.loop(0, e.mul(e.sub(unit.last_row, unit.first_row), self.pitch), step=e.lanes) as loop:
            e.store(e.zero, e.at(self.sums, loop.index))

    def _block(self, number: Number) -> Block:
        e, tiling = self.e, self.tiling
        group, piece = e.divmod(number, tiling.reduction.run_blocks)
        first = e.mul(group, tiling.reduction.block_taps)
        last = e.minimum(e.add(first, tiling.reduction.block_taps), tiling.reduction.taps)
        start = e.mul(piece, tiling.reduction.block_run)
        steps = e.minimum(e.sub(tiling.reduction.run, start), tiling.reduction.block_run)
        begin = e.add(e.mul(first, tiling.reduction.run), start)
        end = e.add(e.add(e.mul(e.sub(last, 1), tiling.reduction.run), start), steps)
        return Block(number, (first, last), start, steps, begin, end)

    def _pack_lhs(self, unit: Unit, block: Block) -> None:
        e, problem = self.e, self.problem
        source = Source(problem.lhs, self.operands.lhs, unit.lhs, problem.rows, problem.reduction)
        vectors, _ = e.divmod(e.add(e.sub(block.end, block.begin), e.lanes - 1), e.lanes)
        assert self.lhs_room is not None
        emit_pack(
            e, source, (unit.first_row, unit.last_row), (block.begin, block.end), vectors, self.lhs_room, self.lhs_pitch
        )

    # -- panels and tiles

    def _panel(self, unit: Unit, block: Block, width: int, number: ll.Value) -> None:
        e, problem = self.e, self.problem
        column = e.mul(self._start(self.tiling.panels, number), e.lanes)
        pitch = width * e.lanes
        panel = self.rhs_room
        if self.tiling.rhs is Rhs.PACKED:
            emit_pack(
                e,
                self._rhs_source(unit),
                (block.begin, block.end),
                (column, problem.columns.extent),
                width,
                panel,
                pitch,
            )
        elif self.tiling.rhs is Rhs.CONSTANT:
            offset = e.add(e.mul(column, problem.reduction.extent), e.mul(block.begin, pitch))
            panel = e.at(self.operands.rhs, e.add(unit.rhs.offset, offset))
        for rows, tile in self._parts(self.tiling.tiles, unit.tiles):
            self._tile(unit, block, rows, width, self._start(self.tiling.tiles, tile), column, panel)

    def _rhs_source(self, unit: Unit) -> Source:
        return Source(self.problem.rhs, self.operands.rhs, unit.rhs, self.problem.reduction, self.problem.columns)

    def _tile(
        self, unit: Unit, block: Block, rows: int, width: int, row: Number, column: Number, panel: ll.Value | None
    ) -> None:
        e, tiling = self.e, self.tiling
        if tiling.reduction.blocks > 1:
            place_in_unit = e.add(e.mul(e.sub(row, unit.first_row), self.pitch), e.sub(column, unit.first_column))
            sums = e.at(self.sums, place_in_unit)
            tile = microkernel.load_tile(e, sums, self.pitch, rows, width)
        else:
            tile = microkernel.zeros(e, rows, width)
        if panel is None:
            tile = self._accumulate_direct(unit, row, column, tile)
        else:
            tile = microkernel.accumulate(e, tile, self._stream(unit, block, rows, width, row, column, panel))
        if self.inline:
            self._sink_registers(unit, tile, row, column)
            return
        if tiling.reduction.blocks == 1:
            microkernel.store_tile(e, tile, self.sums, self.pitch)
            self._sink_memory(unit, self.sums, rows, width, row, column)
            return
        microkernel.store_tile(e, tile, sums, self.pitch)
        last = e.builder.icmp_signed("==", index(block.number), index(tiling.reduction.blocks - 1))
        with e.builder.if_then(last):
            self._sink_memory(unit, sums, rows, width, row, column)

    def _stream(
        self, unit: Unit, block: Block, rows: int, width: int, row: Number, column: Number, panel: ll.Value
    ) -> Stream:
        e, reduction, pitch = self.e, self.tiling.reduction, width * self.e.lanes
        if self.tiling.pack_lhs:
            first = e.at(self.lhs_room, e.mul(e.sub(row, unit.first_row), self.lhs_pitch))
            pointers = [e.at(first, r * self.lhs_pitch) for r in range(rows)]
            return Stream(lambda _: pointers, (0, 1), e.sub(block.end, block.begin), 1, panel, pitch)
        taps = (0, 1) if reduction.taps == 1 else block.taps
        pointers = self._row_pointers(unit, block, rows, row, column)
        mask = self._mask(column, width - 1, width)
        return Stream(pointers, taps, block.steps, self._run_stride(), panel, pitch, self.problem.elementwise, mask)

    def _accumulate_direct(self, unit: Unit, row: Number, column: Number, tile: microkernel.Tile) -> microkernel.Tile:
        """Both operands where they lie, one step of the reduction after the other."""
        e, problem, access = self.e, self.problem, self.problem.lhs
        firsts = [e.add(column, v * e.lanes) for v in range(len(tile[0]))]
        source = self._rhs_source(unit)
        readers = [vector_reader(e, source, first, e.sub(problem.columns.extent, first)) for first in firsts]
        places = [
            join(e, unit.lhs, place(e, access, unflatten(e, problem.rows, e.add(row, r)))) for r in range(len(tile))
        ]
        flat = [vector for line in tile for vector in line]
        with walk(e, problem.reduction, 0, problem.reduction.extent, flat) as (loop, indices):
            rhs = [read(indices) for read in readers]
            here = place(e, access, indices)
            for one in places:
                lhs = e.broadcast(self._lhs_pointer(join(e, one, here)))
                totals = loop.carried[len(loop.next) : len(loop.next) + len(rhs)]
                loop.next += [e.fma(lhs, vector, total) for vector, total in zip(rhs, totals, strict=True)]
        return microkernel.shaped(tile, loop.carried)

    def _lhs_pointer(self, here: Place) -> ll.Value:
        """The address of an element of lhs, or of zeros where that is padding."""
        e = self.e
        offset, valid = resolve(e, self.problem.lhs, here)
        pointer = e.at(self.operands.lhs, offset)
        return pointer if valid is None else e.builder.select(valid, pointer, self._zeros())

    def _run_stride(self) -> int:
        axes = self.problem.reduction.axes
        return self.problem.lhs.stride(axes[-1]) if axes else 0

    def _row_pointers(
        self, unit: Unit, block: Block, rows: int, row: Number, column: Number
    ) -> microkernel.RowPointers:
        """Addresses in lhs itself. Rows on one plain axis lie a constant apart; others are placed one by one. Padding
        is read from zeros."""
        e, problem = self.e, self.problem
        access, base = problem.lhs, self.operands.lhs
        advance = e.add(e.mul(block.start, self._run_stride()), column if problem.elementwise else 0)
        outer = join(e, unit.lhs, Place(advance, (0,) * len(access.windows)))
        plain = not access.windows and len(problem.rows.axes) <= 1
        if plain:
            step = access.stride(problem.rows.axes[0]) if problem.rows.axes else 0
            places = [join(e, outer, Place(e.mul(row, step), ()))]
        else:
            places = [join(e, outer, place(e, access, unflatten(e, problem.rows, e.add(row, r)))) for r in range(rows)]
        taps = self._tap_group()

        def pointers(tap: Number) -> list[ll.Value]:
            here = place(e, access, unflatten(e, taps, tap)) if taps.axes else Place(0, (0,) * len(access.windows))
            if plain:
                first = e.at(base, join(e, places[0], here).offset)
                return [e.at(first, r * step) for r in range(rows)]
            return [self._lhs_pointer(join(e, one, here)) for one in places]

        return pointers

    def _tap_group(self) -> Group:
        """The reduction's axes outside the run."""
        axes, run = list(self.problem.reduction.axes), self.tiling.reduction.run
        while run > 1:
            run //= axes.pop().extent
        return Group(tuple(axes))

    def _zeros(self) -> ll.Value:
        """Zeros as far as a run reaches."""
        e = self.e
        count = (self.tiling.reduction.run - 1) * abs(self._run_stride()) + 1
        if self.problem.elementwise:
            count += self.tiling.panels.size * e.lanes
        module = e.builder.module
        name = f"contraction.zeros.{count}.{e.bytes}"
        if name not in module.globals:
            kind = ll.ArrayType(e.element, count)
            zeros = ll.GlobalVariable(module, kind, name)
            zeros.initializer, zeros.global_constant, zeros.linkage = ll.Constant(kind, None), True, "internal"
        return module.globals[name].gep([ll.Constant(I64, 0), ll.Constant(I64, 0)])

    # -- results

    def _sink_registers(self, unit: Unit, tile: microkernel.Tile, row: Number, column: Number) -> None:
        for r, vectors in enumerate(tile):
            for v, vector in enumerate(vectors):
                self._sink(unit, vector, self.e.add(row, r), column, v, len(vectors))

    def _sink_memory(self, unit: Unit, sums: ll.Value, rows: int, width: int, row: Number, column: Number) -> None:
        e = self.e
        with e.loop(0, rows) as loop:
            line = e.at(sums, e.mul(loop.index, self.pitch))
            for v in range(width):
                self._sink(unit, e.load(e.at(line, v * e.lanes)), e.add(row, loop.index), column, v, width)

    def _sink(self, unit: Unit, value: ll.Value, row: Number, column: Number, vector: int, width: int) -> None:
        mask = self._mask(column, vector, width)
        self.sink(self.e, value, Element(unit.batch, row, self.e.add(column, vector * self.e.lanes), mask))

    def _mask(self, column: Number, vector: int, width: int) -> ll.Value | None:
        """Which lanes of a vector exist, in the panel of `width` vectors at `column`; None: all."""
        e, columns = self.e, self.problem.columns.extent
        if columns % e.lanes == 0 or vector < width - 1:
            return None
        return e.lanes_below(e.sub(e.sub(columns, column), vector * e.lanes))

    # -- splits as code

    def _start(self, split: Split, part: Number) -> Number:
        e = self.e
        if split.larger == split.count:
            return e.mul(part, split.size)
        return e.add(e.mul(part, split.size - 1), e.minimum(part, split.larger))

    def _range(self, split: Split, part: Number) -> tuple[Number, Number]:
        if split.count == 1:
            return 0, split.extent
        return self._start(split, part), self._start(split, self.e.add(part, 1))

    def _parts(self, split: Split, bounds: tuple[Number, Number]) -> Iterator[tuple[int, ll.Value]]:
        """Code for the parts in `bounds`, once for each of their one or two sizes: the size, and the part's number."""
        e, (begin, end) = self.e, bounds
        first_small = split.larger
        with e.loop(begin, e.minimum(end, first_small)) as loop:
            yield split.size, loop.index
        if first_small < split.count:
            lowest = e.maximum(begin, first_small)
            with e.loop(lowest, end) as loop:
                yield split.size - 1, loop.index
