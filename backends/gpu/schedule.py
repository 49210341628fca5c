"""Chooses schedules for a GPU: which dimensions of a kernel's parallel loop are distributed over the threads of a grid,
or over its blocks, whose threads then share the inner loops (`rows.py`). All other loops run inside a thread."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trivium.backends.gpu import rows, tiles, updates, vectors
from trivium.backends.gpu.shapes import Shape, shape_of
from trivium.backends.gpu.target import GpuTarget
from trivium.compiler.kernel.affine import Analysis, holds
from trivium.compiler.kernel.contraction_nest import sum_of
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Loop, Register, Update
from trivium.compiler.schedule import LoopSchedule, Mapping, Schedule, Unit, merged_extents, serial


@dataclass(frozen=True)
class Grid:
    """The threads of a launch: `blocks` of `threads` each, of which the first `work` have something to do, unless the
    threads of a block share one iteration each."""

    work: int
    blocks: int
    threads: int
    shared: bool = False
    parts: int = 1
    """The number of blocks that share one iteration, or a tile."""

    beside: int = 1
    """The number of iterations that a block runs, where its threads share each."""

    columns: bool = False
    """Whether neighbouring threads have different ones of these."""

    tile: int = 0
    """The rows of a contraction's tile, which is a block's; else 0."""

    width: int = 0
    """Its columns."""

    shape: Shape | None = None
    """That of an f32 product's tile whose pieces are copied while others are multiplied."""

    matrix: int = 0
    """The number of threads that share each of the matrix instructions which compute the tile; 0 without any."""

    maps: int = 0
    """The number of arrays of which the device itself copies pieces of the tile."""

    copies: int = 0
    """The number of operands that a launch before this one copies."""

    producers: int = 0
    """The number of a block's threads that only start these copies."""

    owners: int = 1
    """The number of threads that run the same iterations, each for the elements that it owns."""

    atomic: bool = False
    """Whether updates are atomic operations."""

    shares: int = 0
    """The number of tiles, each times the number of blocks that share it."""

    @property
    def sides(self) -> dict[str, int]:
        """The rows and the columns of a tile, by the roles of their loops."""
        return {"m": self.tile, "n": self.width}

    @property
    def counters(self) -> int:
        """The number of tiles that several blocks share: each has a counter of the blocks that are done."""
        return self.shares // self.parts if self.parts > 1 else 0


def choose(kernel: Kernel, target: GpuTarget, analysis: Analysis) -> Schedule:
    """Returns the schedule of a kernel: a block for each iteration of its parallel loop, where that has rows to share,
    else one thread."""
    schedule = serial(kernel.body, analysis)
    loop = parallel_loop(kernel)
    if loop is None:
        return schedule
    tiled = tiles.choose(kernel, loop, target)
    if tiled is not None:
        return Schedule({**schedule.loops, loop: tiled, **tiles.split(kernel, tiled)})
    if holds(loop.body, Update):
        return Schedule({**schedule.loops, **updates.choose(loop, target)})
    extents = merged_extents(loop, analysis)
    dimensions = tuple(d for d, extent in enumerate(extents) if isinstance(extent, int))
    shared = rows.team(loop, extents, analysis, target) if len(dimensions) == len(extents) else None
    if shared is not None:
        return Schedule({**schedule.loops, **shared})
    return Schedule({**schedule.loops, loop: _elements(loop, extents, analysis, target)})


def _elements(loop: Loop, extents: tuple[int | Register, ...], analysis: Analysis, target: GpuTarget) -> LoopSchedule:
    """Returns the schedule of a loop of which every thread has iterations: one of them, or a vector if there are
    many."""
    dimensions = tuple(d for d, extent in enumerate(extents) if isinstance(extent, int))
    work, each, more = math.prod(extent for extent in extents if isinstance(extent, int)), 1, list[Mapping]()
    vector = vectors.vector(loop, extents, analysis, target) if len(dimensions) == len(extents) else None
    if vector is not None and work >= vector.size * vectors.FEWEST:
        each = vectors.EACH if work % vector.size == 0 and work >= vectors.EACH * vectors.MANY else 1
        work, more = work // vector.size, [vector]
    threads = min(target.block, max(1, -(-work // target.warp)) * target.warp)
    mappings = Mapping(Unit.GRID, dimensions, each), Mapping(Unit.BLOCK, dimensions, threads)
    return LoopSchedule(extents, (*mappings, *more))


def parallel_loop(kernel: Kernel) -> Loop | None:
    """Returns the loop around everything that a kernel writes; None if it runs once."""
    return next((i for i in kernel.body.instructions if isinstance(i, Loop) and i.kind == "parallel"), None)


def _parts(plan: LoopSchedule) -> int:
    """Returns the number of blocks that share a loop."""
    spread, extents = plan.mapping(Unit.GRID), plan.static_extents
    return -(-math.prod(extents) // spread.size) if spread and extents else 1


def grid(kernel: Kernel, schedule: Schedule) -> Grid:
    """Returns the threads that a launch of a kernel has."""
    loop = parallel_loop(kernel)
    if loop is None:
        return Grid(1, 1, 1)
    plan = schedule.loops[loop]
    tile = tiles.tile(plan)
    if tile:
        work, blocks, threads = tiles.launch(plan)
        total = sum_of(kernel)
        parts = _parts(schedule.loops[total]) if total is not None else 1
        matrix = found.size if (found := plan.mapping(Unit.MATRIX)) else 0
        maps = sum(mapping.unit is Unit.BULK for mapping in plan.mappings)
        producers = found.size if (found := plan.mapping(Unit.PRODUCER)) else 0
        width, shape = tiles.columns(plan), shape_of(plan)
        persistent = producers > 0 and tiles.pipeline(tile, width).persistent
        shares = blocks * parts
        blocks = min(shares, tiles.PROCESSORS) if persistent else shares
        copies = sum(mapping.unit is Unit.COPIED for mapping in plan.mappings)
        facts = {"shape": shape, "matrix": matrix, "maps": maps, "copies": copies, "producers": producers}
        return Grid(work, blocks, threads, parts=parts, tile=tile, width=width, shares=shares, **facts)
    spread, block = plan.mapping(Unit.GRID), plan.mapping(Unit.BLOCK)
    assert spread is not None, "the parallel loop of a kernel is spread over a grid"
    work = updates.count(plan)
    if block is None:
        inner = [other for other in schedule.loops.values() if other.mapping(Unit.BLOCK)]
        parts = max(map(_parts, inner))
        (size,) = {found.size for other in inner if (found := other.mapping(Unit.BLOCK))}
        columns, beside = plan.mapping(Unit.BESIDE) is not None, spread.size
        return Grid(work, -(-work // beside) * parts, size * beside, True, parts, beside, columns)
    owners = found.size if (found := plan.mapping(Unit.OWNERS)) else 1
    work = -(-math.prod(spread_loops(schedule).values()) // spread.size) * owners
    atomic = plan.mapping(Unit.ATOMIC) is not None
    return Grid(work, -(-work // block.size), block.size, owners=owners, atomic=atomic)


def spread_loops(schedule: Schedule) -> dict[Loop, int]:
    """Returns the loops of which each thread of a grid has one iteration, the outermost first, and the numbers of these
    iterations."""
    return {loop: updates.count(plan) for loop, plan in schedule.loops.items() if plan.mapping(Unit.GRID)}
