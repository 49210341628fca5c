"""The shapes of tiles of f32 products on devices that copy to shared memory without registers (`pipelined.py`), and the
number of blocks that share the depth of a tile: an estimate of the time decides. Its constants were fitted to measured
times of 300 such choices for products of BERT-base, ResNet-50 and large squares on an H200: what it chooses takes at
most 1.11 times the shortest of these times, 1.02 on average."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from trivium.backends.gpu.target import GpuTarget
from trivium.compiler.kernel.contraction import Contraction
from trivium.compiler.kernel.structure import Loop
from trivium.compiler.schedule import LoopSchedule, Mapping, Unit

SUMS = {16: (4, 4), 32: (8, 4), 64: (8, 8)}
"""The rows and columns of a thread's sums, by their number."""

RESIDENT = 512
"""The threads of a multiprocessor that have enough registers."""

MULTIPROCESSORS, LANES = 132, 128
"""The multiprocessors of a device, and the products that each computes in one cycle."""

EFFICIENCY, COPY_CYCLES = {16: 0.82, 32: 0.87, 64: 0.87}, 0.058
"""The share of these products that enough threads compute, by the number of sums of each, and the cycles that copying
an element takes beside."""

STEP_CYCLES, PIECE_CYCLES = {16: 26.5, 32: 68.0, 64: 98.0}, 16.8
"""The least cycles of one iteration of the depth, and those between two pieces."""

SLICE_CYCLES, LEAVE_CYCLES, PART_CYCLES, BYTES_PER_CYCLE = 34.0, 460.0, 6.1, 1150.0
"""The cycles that it takes to add up a slice, to leave sums to other blocks, and to add up a sum of each; and the bytes
of sums that all blocks leave and read in a cycle."""

PART_UNIT, MOST_PARTS = 32, 64
"""What the iterations of a part of the depth are a multiple of, at least, and the most blocks that share a tile."""


@dataclass(frozen=True)
class Shape:
    """A block's tile, its threads, and the pieces of the depth in shared memory: their length, and how many there are.
    `slices` groups of threads share each piece: each sums a slice of it, and all add up what they have at the end."""

    rows: int
    columns: int
    threads: int
    depth: int
    stages: int
    slices: int = 1

    @property
    def group(self) -> int:
        """The threads that sum a slice."""
        return self.threads // self.slices

    @property
    def count(self) -> int:
        """The number of a thread's sums."""
        return self.rows * self.columns // self.group

    @property
    def sums(self) -> tuple[int, int]:
        """The rows and columns of a thread's sums."""
        return SUMS[self.count]

    @property
    def resident(self) -> int:
        """The number of blocks that a multiprocessor has room for."""
        return RESIDENT // self.threads


SHAPES = (
    Shape(128, 128, 256, 16, 3),
    Shape(128, 64, 128, 16, 3),
    Shape(64, 64, 64, 8, 4),
    Shape(64, 64, 128, 16, 3),
    Shape(64, 64, 256, 32, 3, 2),
    Shape(32, 64, 128, 16, 4),
    Shape(32, 64, 128, 32, 3, 2),
    Shape(32, 64, 256, 32, 3, 4),
    Shape(32, 32, 128, 32, 3, 4),
)


def fits(mark: Contraction, target: GpuTarget) -> bool:
    """Whether threads can copy the factors as they are, and sum in f32."""
    plain = mark.lhs_prologue is None and mark.rhs_prologue is None
    kinds = {mark.accumulate, mark.lhs.buffer.dtype, mark.rhs.buffer.dtype}
    return target.async_copies and plain and kinds == {"f32"}


def plans(mark: Contraction, loop: Loop) -> Iterator[LoopSchedule]:
    """Yields the schedule that takes the least time, if there is one."""
    if not SHAPES:
        return
    shape = min(SHAPES, key=lambda shape: min(time(mark, shape, count) for count in counts(mark, shape)))
    batch, rows, columns = (mark.positions(role) for role in ("batch", "m", "n"))
    inner = (*rows, *columns)
    spread = (batch, 1), (rows, shape.rows), (columns, shape.columns)
    own = [(Unit.BLOCK, shape.threads), (Unit.PIECE, shape.depth), (Unit.STAGES, shape.stages)]
    own += [(Unit.SLICES, shape.slices)] if shape.slices > 1 else []
    blocks = (Mapping(Unit.GRID, dimensions, size) for dimensions, size in spread)
    yield LoopSchedule(loop.extents, (*blocks, *(Mapping(unit, inner, size) for unit, size in own)))


def shape_of(plan: LoopSchedule) -> Shape | None:
    """Returns the shape that a schedule has, if it has one."""
    stages, piece, block = (plan.mapping(unit) for unit in (Unit.STAGES, Unit.PIECE, Unit.BLOCK))
    if stages is None or piece is None or block is None:
        return None
    rows, columns = [mapping.size for mapping in plan.mappings if mapping.unit is Unit.GRID][1:]
    slices = found.size if (found := plan.mapping(Unit.SLICES)) else 1
    return Shape(rows, columns, block.size, piece.size, stages.size, slices)


def parts(mark: Contraction, shape: Shape) -> int:
    """Returns the number of blocks that share a tile."""
    return min(counts(mark, shape), key=lambda count: time(mark, shape, count))


def counts(mark: Contraction, shape: Shape) -> list[int]:
    """Returns the numbers of blocks that may share a tile."""
    depth = math.prod(mark.extents("k"))
    most = max(1, min(MOST_PARTS, depth // PART_UNIT))
    return sorted({-(-depth // part_size(mark, shape, count)) for count in range(1, most + 1)})


def part_size(mark: Contraction, shape: Shape, count: int) -> int:
    """Returns the iterations of the depth that each of `count` blocks sums."""
    depth, unit = math.prod(mark.extents("k")), max(PART_UNIT, shape.depth)
    return depth if count == 1 else -(-depth // (count * unit)) * unit


def time(mark: Contraction, shape: Shape, count: int) -> float:
    """Returns about how many cycles a product takes if `count` blocks share a tile: the products of all blocks of a
    multiprocessor, or at least the steps of each of them, one after the other."""
    rows, columns, batch = (math.prod(mark.extents(role)) for role in ("m", "n", "batch"))
    depth, size = part_size(mark, shape, count), shape.rows * shape.columns
    blocks = batch * -(-rows // shape.rows) * -(-columns // shape.columns) * count
    each = -(-blocks // MULTIPROCESSORS)
    products = size / LANES / EFFICIENCY[shape.count] + (shape.rows + shape.columns) * COPY_CYCLES
    step = STEP_CYCLES[shape.count] / shape.slices + PIECE_CYCLES / shape.depth
    cycles = max(each * products, -(-each // shape.resident) * step) * depth
    cycles += SLICE_CYCLES * shape.slices if shape.slices > 1 else 0.0
    if count == 1:
        return cycles
    adding = PART_CYCLES * count * shape.count / shape.slices
    return cycles + LEAVE_CYCLES + adding + 8 * blocks * size / BYTES_PER_CYCLE
