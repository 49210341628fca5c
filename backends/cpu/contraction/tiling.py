"""The schedule of a contraction: register tile, panels, blocks of the reduction, chunks of work, and which operands are
packed. Plain data, chosen from the shape and the target's vectors, registers and caches; printed with the kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from trivium.backends.cpu.contraction.problem import Access, Group, Problem, lies_across
from trivium.backends.cpu.target import Target

MOST_ROWS = 12
SOON_DONE = 256
"""With so few rows a panel is used up before the processor has fetched the next one by itself."""
LONGEST_STEP = 1024
"""Bytes between rows of rhs up to which they are read in place: longer ones fall on few sets of the caches."""
SHORTEST_RUN = 16
LHS_BYTES = 384 * 1024
MOST_SUMS = 64 * 1024
"""Sums that wait for the next block of the reduction: elements, in the second-level cache."""
UNIT_FLOPS = 1_000_000
"""The smallest piece of work that is worth a thread of its own."""
PANEL_BYTES = 256 * 1024
"""Room for a packed block of one panel in the second-level cache."""


@dataclass(frozen=True)
class Split:
    """`extent` things in `count` parts as even as can be: the first `larger` parts hold `size`, the others one
    fewer."""

    extent: int
    count: int

    @property
    def size(self) -> int:
        return -(-self.extent // self.count)

    @property
    def larger(self) -> int:
        return self.extent - (self.size - 1) * self.count

    def start(self, part: int) -> int:
        """Where a part begins."""
        return part * (self.size - 1) + min(part, self.larger)

    @property
    def sizes(self) -> list[int]:
        return [self.size] * self.larger + [self.size - 1] * (self.count - self.larger)


def split(extent: int, most: int) -> Split:
    return Split(extent, max(1, -(-extent // most)))


class Rhs(Enum):
    """Where the micro-kernel finds rhs: packed when the code was loaded; packed on the way; in place, where its rows
    are short and lie evenly; or read element by element, where each is used once."""

    CONSTANT = "constant"
    PACKED = "packed"
    IN_PLACE = "in place"
    DIRECT = "direct"


@dataclass(frozen=True)
class Reduction:
    """The reduction as `taps` runs, along each of which lhs advances by one constant stride; blocks hold `block_taps`
    whole runs or, of long runs, `block_run` steps."""

    taps: int
    run: int
    block_taps: int
    block_run: int

    @property
    def run_blocks(self) -> int:
        return -(-self.run // self.block_run)

    @property
    def blocks(self) -> int:
        return -(-self.taps // self.block_taps) * self.run_blocks

    @property
    def most_steps(self) -> int:
        """Of one block."""
        return self.block_taps * self.block_run


@dataclass(frozen=True)
class Tiling:
    lanes: int
    panels: Split
    """The columns, counted in vectors."""
    tiles: Split
    """The rows."""
    reduction: Reduction
    chunks: Split
    """The row tiles, in units of work."""
    groups: Split
    """The panels, in units of work."""
    pack_lhs: bool
    rhs: Rhs
    prefetch: bool
    """Whether tiles ask for the next block of a packed constant while they work on this one."""


def vector_registers(target: Target) -> int:
    """AVX-512 and the RISC architectures have 32, older x86 has 16."""
    return 16 if target.triple.startswith("x86") and target.vector_bytes < 64 else 32


def rows_that_fit(vectors: int, registers: int) -> int:
    """Rows of accumulators beside one row of rhs vectors and one broadcast of lhs."""
    return min(MOST_ROWS, (registers - 2 - vectors) // vectors)


def widest_panel(rows: int, registers: int) -> int:
    """Vectors in a panel: four (two where registers are few), more where there are too few rows to keep the multipliers
    busy."""
    usual = 4 if registers >= 32 else 2
    return max(usual, min(8, (registers - 2) // (rows + 1)))


def choose(problem: Problem, element_bytes: int, target: Target, constant_rhs: bool, threads: int = 1) -> Tiling:
    lanes = target.vector_bytes // element_bytes
    registers = vector_registers(target)
    rows = problem.rows.extent
    vectors = math.ceil(problem.columns.extent / lanes)
    if problem.elementwise:
        panels = split(vectors, 6 if registers >= 32 else 3)
        tiles = split(rows, 3 if panels.size > 4 else 4)
    else:
        panels = split(vectors, widest_panel(rows, registers))
        tiles = split(rows, rows_that_fit(panels.size, registers))
    once = (
        tiles.count == 1
        and not problem.elementwise
        and not lies_across(problem.rhs, problem.reduction, problem.columns)
    )
    if constant_rhs:
        rhs = Rhs.CONSTANT
    elif rhs_step(problem) * element_bytes in range(1, LONGEST_STEP + 1) and problem.columns.extent % lanes == 0:
        rhs = Rhs.IN_PLACE
    else:
        rhs = Rhs.DIRECT if once else Rhs.PACKED
    run, total = _run(problem.reduction, problem.lhs), problem.reduction.extent
    pack_lhs = rhs is not Rhs.DIRECT and not problem.elementwise and run < min(SHORTEST_RUN, total)
    if pack_lhs or rhs is Rhs.DIRECT:
        run = total
    most_steps = PANEL_BYTES // (element_bytes * panels.size * lanes) if rhs is not Rhs.DIRECT else total
    reduction = _blocks(problem.reduction, total // run, run, most_steps)
    most_rows, most_panels = _unit(reduction, panels.size * lanes, rows, pack_lhs)
    chunks, groups = split(tiles.count, max(1, most_rows // tiles.size)), split(panels.count, most_panels)
    if threads > 1:
        chunks, groups = _shared_out(chunks, groups, problem, 4 * threads)
    return Tiling(
        lanes=lanes, panels=panels, tiles=tiles, reduction=reduction,
        chunks=chunks, groups=groups, pack_lhs=pack_lhs, rhs=rhs, prefetch=rhs is Rhs.CONSTANT and rows <= SOON_DONE,
    )  # fmt: skip


def _unit(reduction: Reduction, width: int, rows: int, pack_lhs: bool) -> tuple[int, int]:
    """Most rows and panels of one unit of work. All rows with one panel, so that what is packed of rhs serves them all;
    but a packed lhs must fit beside it, and where the reduction is in blocks, so must the sums, with as many panels as
    they leave room for, so that a block of lhs serves them all."""
    most_rows = LHS_BYTES // 4 // reduction.most_steps if pack_lhs else rows
    if reduction.blocks > 1:
        most_rows = min(most_rows, MOST_SUMS // width)
        return max(1, most_rows), max(1, MOST_SUMS // (min(rows, most_rows) * width))
    return max(1, most_rows), 8 if pack_lhs else 1


def _shared_out(chunks: Split, groups: Split, problem: Problem, wanted: int) -> tuple[Split, Split]:
    """More units, so that every thread has some, while each stays worth a thread: panels apart first, then rows."""
    wanted = min(wanted, problem.flops // UNIT_FLOPS)
    while problem.batch.extent * chunks.count * groups.count < wanted:
        if groups.count < groups.extent:
            groups = Split(groups.extent, min(groups.extent, 2 * groups.count))
        elif chunks.count < chunks.extent:
            chunks = Split(chunks.extent, min(chunks.extent, 2 * chunks.count))
        else:
            break
    return chunks, groups


def rhs_step(problem: Problem) -> int:
    """Elements from one row of rhs to the next, where rows are contiguous and lie evenly through the whole
    reduction; else 0."""
    reduction, columns, rhs = problem.reduction.axes, problem.columns.axes, problem.rhs
    if rhs.windows or len(columns) != 1 or rhs.stride(columns[0]) != 1 or not reduction:
        return 0
    step = run = rhs.stride(reduction[-1])
    for axis in reversed(reduction):
        if rhs.stride(axis) != run:
            return 0
        run *= axis.extent
    return step


def _blocks(group: Group, taps: int, run: int, most_steps: int) -> Reduction:
    if run <= most_steps:
        return Reduction(taps, run, split(taps, max(1, most_steps // run)).size, run)
    steps = split(run, most_steps).size
    period = _period(group, steps)
    return Reduction(taps, run, 1, min(run, -(-steps // period) * period))


def _run(reduction: Group, lhs: Access) -> int:
    """Steps of the reduction along which lhs advances evenly, apart from its windows."""
    if not reduction.axes:
        return 1
    run, step = 1, lhs.stride(reduction.axes[-1])
    for axis in reversed(reduction.axes):
        if lhs.windowed(axis) or lhs.stride(axis) != step * run:
            break
        run *= axis.extent
    return run


def _period(reduction: Group, most: int) -> int:
    """Steps after which the faster axes of the reduction start again, so that blocks begin where they do."""
    period = 1
    for axis in reversed(reduction.axes[1:]):
        if period * axis.extent > most:
            break
        period *= axis.extent
    return period
