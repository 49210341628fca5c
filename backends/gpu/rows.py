"""Decides when a block of threads computes one iteration of a kernel's parallel loop together: for reductions and loops
over rows. The inner loops are distributed over the threads of the block; all threads compute everything in between."""

from __future__ import annotations

import math

from trivium.backends.gpu.target import GpuTarget
from trivium.compiler.kernel.affine import Analysis, accesses, holds
from trivium.compiler.kernel.structure import (
    Apply,
    Constant,
    If,
    Instruction,
    Load,
    Loop,
    MemoryAccess,
    Position,
    Register,
    Scratch,
    Store,
    Update,
    While,
)
from trivium.compiler.schedule import LoopSchedule, Mapping, Unit, merged_extents

SHORTEST = 64
"""Rows of fewer elements are one thread's work."""

PLENTY = 1 << 15
"""The number of iterations from which on one thread for each keeps a device busy."""

FEW = 1 << 11
"""The number of iterations below which one thread for each leaves most of a device idle."""

ELEMENTS = 8
"""The number of elements of a row that each thread of a block has, while there are many rows."""


SPLIT = 1 << 14
"""The number of elements of a row that are at least one block's, where several blocks share a row."""

PARTS = 256
"""The most blocks that share a row."""


def team(
    loop: Loop, extents: tuple[int | Register, ...], analysis: Analysis, target: GpuTarget
) -> dict[Loop, LoopSchedule] | None:
    """Returns the schedules of the loops inside `loop` that a block's threads share; None where one thread for each
    iteration is better, or the body does not allow it."""
    inner = [instruction for instruction in loop.body.instructions if isinstance(instruction, Loop)]
    merged = [merged_extents(one, analysis) for one in inner]
    sizes = [_size(found) for found in (extents, *merged)]
    if not inner or None in sizes or not all(map(_may_stand_between, loop.body.instructions)):
        return None
    scratch = sum(i.buffer.nbytes for i in loop.body.instructions if isinstance(i, Scratch))
    rows, longest = sizes[0] or 0, max(size or 0 for size in sizes[1:])
    if scratch > target.group_scratch_bytes or longest < SHORTEST or not _pays(rows, loop, inner, analysis):
        return None
    threads, share = _threads(rows, longest, target), _share(rows, longest, inner)
    schedules: dict[Loop, LoopSchedule] = {}
    for one, found in zip(inner, merged, strict=True):
        dimensions = tuple(range(len(found)))
        parts = (Mapping(Unit.GRID, dimensions, share),) if share < longest else ()
        schedules[one] = LoopSchedule(found, (*parts, Mapping(Unit.BLOCK, dimensions, threads)))
    return schedules


def _share(rows: int, longest: int, inner: list[Loop]) -> int:
    """Returns the elements of a row that are one block's. Several blocks share a row if there are few of them, and
    nothing but one reduction: their results are folded in a second launch."""
    if len(inner) > 1 or inner[0].kind != "reduction" or rows >= PARTS // 8:
        return longest
    return max(SPLIT, -(-longest * rows // PARTS))


def _size(extents: tuple[int | Register, ...]) -> int | None:
    known = [extent for extent in extents if isinstance(extent, int)]
    return math.prod(known) if len(known) == len(extents) else None


def _may_stand_between(instruction: Instruction) -> bool:
    """Whether all threads may execute an instruction alike, or share it if it is a loop."""
    match instruction:
        case Loop(kind):
            return kind != "sequential" and not holds(instruction.body, Update)
        case If(_, then, otherwise):
            return not holds(then, Loop, Store, Update, Scratch, While) and not holds(
                otherwise, Loop, Store, Update, Scratch, While
            )
    return isinstance(instruction, Constant | Apply | Position | Load | Store | Scratch)


def _pays(rows: int, loop: Loop, inner: list[Loop], analysis: Analysis) -> bool:
    """Whether a block for each row is better than a thread: because there are few rows, or because neighbouring
    threads then touch neighbouring elements of memory that all blocks see."""
    if rows < FEW:
        return True
    pairs = ((access, one.indices[-1]) for one in inner for access in accesses(one.body))
    inside = [(access, index) for access, index in pairs if access.buffer.mode != "scratch"]
    apart = sum(not _together(access, index, analysis) for access, index in inside)
    flat = sum(not _together(access, loop.indices[-1], analysis) for access, _ in inside)
    return apart < flat or (apart == flat and rows < PLENTY)


def _together(access: MemoryAccess, index: Register, analysis: Analysis) -> bool:
    """Whether neighbouring values of an index touch one element, or neighbours."""
    return analysis.step(analysis.address(access.buffer, access.indices), index) in (0, 1, -1)


def _threads(rows: int, longest: int, target: GpuTarget) -> int:
    """Returns the size of the blocks, a power of two."""
    limit = target.largest_block if rows < target.block else target.block
    return max(target.warp, min(limit, 1 << (-(-longest // ELEMENTS) - 1).bit_length()))
