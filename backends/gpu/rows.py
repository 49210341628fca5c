"""Decides when a block of threads computes one iteration of a kernel's parallel loop together: for reductions and loops
over rows. The inner loops are distributed over the threads of the block; all threads compute everything in between."""

from __future__ import annotations

import math

from trivium.backends.gpu import vectors
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.llvm.folds import identity
from trivium.compiler.kernel.affine import Analysis, accesses, holds
from trivium.compiler.kernel.running import running_fold
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

ELEMENTS, FEWER = 16, 8
"""The number of elements of a row that each thread of a block has, if all rows have `MANY` elements, or fewer."""

MANY = 1 << 21

SCANNED = 4
"""The same for running folds, if there are fewer."""

WARPS = 8
"""The rows of a block, if each is one warp's."""

SPLIT = 1 << 14
"""The number of elements of a row that are at least one block's, where several blocks share a row."""

PARTS = 256
"""The most blocks that share a row."""

BESIDE = 32
"""The rows that a block computes beside one another, where neighbours in memory are in different rows: those of a
column."""

COLUMN = 1 << 8
"""The number of elements of a column that are at least one block's."""

LARGE = 1 << 19
"""The number of elements from which on reading all columns' cache lines for each of them takes too long."""

BLOCKS = 1 << 12
"""The blocks that keep a device busy which compute rows beside one another."""

WHOLE = 16
"""A multiple of the elements that a thread loads at a time, of whatever type."""

KEPT = 32
"""The most elements of a row that a thread keeps in registers, from one loop over the row to the next."""

AT_ONCE = 32
"""The number of elements that a thread begins to load before it waits for the first one, in loops over longer rows, of
whatever type: in at least `ROUNDS` loads."""

ROUNDS = 4

WRITTEN_OUT = 512
"""The most instructions of a loop that is written out."""


def team(
    loop: Loop, extents: tuple[int | Register, ...], analysis: Analysis, target: GpuTarget
) -> dict[Loop, LoopSchedule] | None:
    """Returns the schedules of the loops inside `loop` that a block's threads share; None where one thread for each
    iteration is better, or the body does not allow it."""
    inner = [instruction for instruction in loop.body.instructions if isinstance(instruction, Loop)]
    merged = [merged_extents(one, analysis) for one in inner]
    sizes = [_size(found) for found in (extents, *merged)]
    if not inner or None in sizes or not all(_may_stand_between(i, target.scans) for i in loop.body.instructions):
        return None
    scratch = sum(i.buffer.nbytes for i in loop.body.instructions if isinstance(i, Scratch))
    rows, longest = sizes[0] or 0, max(size or 0 for size in sizes[1:])
    if scratch > target.group_scratch_bytes or longest < SHORTEST:
        return None
    along, across = _in_order(loop, inner, analysis)
    beside, share, columns = 1, longest, False
    if any(one.kind == "sequential" for one in inner):
        threads = _threads(rows, longest, target, ELEMENTS if rows * longest >= MANY else SCANNED)
    elif along > across and not scratch and _are_columns(rows, longest, inner):
        beside, threads, columns = BESIDE, target.block // BESIDE, True
        share = _share(-(-rows // BESIDE), longest, inner, BLOCKS, COLUMN)
    elif rows < FEW or along < across or (along == across and rows < PLENTY):
        threads = _threads(rows, longest, target, ELEMENTS if rows * longest >= MANY else FEWER)
        if rows < PARTS // 8:
            share = _share(rows, longest, inner, PARTS, SPLIT)
    else:
        return None
    if threads == target.warp and rows >= FEW and not scratch:
        beside = WARPS
    spread = [vectors.vector(one, found, analysis, target, True) for one, found in zip(inner, merged, strict=True)]
    every = tuple(range(len(extents)))
    neighbours = [Mapping(Unit.BESIDE, every, beside)] if columns else []
    schedules = {loop: LoopSchedule(extents, (Mapping(Unit.GRID, every, beside), *neighbours))}
    for one, found, own in zip(inner, merged, spread, strict=True):
        # Loops over the same elements have the same vectors: each thread then needs what it has loaded before.
        lanes = min(_lanes(other) for other, extents in zip(spread, merged, strict=True) if extents == found)
        dimensions = tuple(range(len(found)))
        parts = [Mapping(Unit.GRID, dimensions, share)] if share < longest else []
        vector = [Mapping(Unit.LANES, own.dimensions, lanes)] if own is not None and lanes > 1 else []
        schedules[one] = LoopSchedule(found, (*parts, Mapping(Unit.BLOCK, dimensions, threads), *vector))
    return schedules


def _are_columns(rows: int, longest: int, inner: list[Loop]) -> bool:
    """Whether a block computes neighbouring rows beside one another. If there are not many elements, or rows of which
    blocks cannot share each, there are more blocks if each has one row, and caches have what they read of others."""
    if not BESIDE <= rows < PLENTY:
        return False
    return rows >= FEW or (_can_be_shared(inner) and rows * longest >= LARGE)


def _can_be_shared(inner: list[Loop]) -> bool:
    """Whether several blocks can share a row: if there is nothing but one reduction."""
    return len(inner) == 1 and inner[0].kind == "reduction"


def _lanes(mapping: Mapping | None) -> int:
    return mapping.size if mapping else 1


def _share(rows: int, longest: int, inner: list[Loop], blocks: int, least: int) -> int:
    """Returns the elements of a row that are one block's, at least `least`. Several blocks, of `blocks` in all, share a
    row if they can: their results are folded in a second launch."""
    if not _can_be_shared(inner) or rows >= blocks:
        return longest
    return -(-max(least, -(-longest * rows // blocks)) // WHOLE) * WHOLE


def _size(extents: tuple[int | Register, ...]) -> int | None:
    known = [extent for extent in extents if isinstance(extent, int)]
    return math.prod(known) if len(known) == len(extents) else None


def _may_stand_between(instruction: Instruction, scans: bool) -> bool:
    """Whether all threads may execute an instruction alike, or share it if it is a loop."""
    match instruction:
        case Loop(kind):
            if kind == "sequential" and not (scans and _is_scan(instruction)):
                return False
            return not holds(instruction.body, Update)
        case If(_, then, otherwise):
            return not holds(then, Loop, Store, Update, Scratch, While) and not holds(
                otherwise, Loop, Store, Update, Scratch, While
            )
    return isinstance(instruction, Constant | Apply | Position | Load | Store | Scratch)


def _is_scan(loop: Loop) -> bool:
    """Whether threads can share a loop that runs in order."""
    return running_fold(loop) is not None and identity(str(loop.combiner), loop.inits[0].dtype) is not None


def _in_order(loop: Loop, inner: list[Loop], analysis: Analysis) -> tuple[int, int]:
    """Returns the number of accesses inside the inner loops to memory that all blocks see which touch neighbours, or
    one element, from one row to the next, and from one element of a row to the next."""
    pairs = ((access, one.indices[-1]) for one in inner for access in accesses(one.body))
    inside = [(access, index) for access, index in pairs if access.buffer.mode != "scratch"]
    along = sum(_together(access, loop.indices[-1], analysis) for access, _ in inside)
    return along, sum(_together(access, index, analysis) for access, index in inside)


def _together(access: MemoryAccess, index: Register, analysis: Analysis) -> bool:
    """Whether neighbouring values of an index touch one element, or neighbours."""
    return analysis.step(analysis.address(access.buffer, access.indices), index) in (0, 1, -1)


def _threads(rows: int, longest: int, target: GpuTarget, elements: int) -> int:
    """Returns the size of the blocks, a power of two, of which each thread has about `elements` of a row."""
    limit = target.largest_block if rows < target.block or longest > KEPT * target.block else target.block
    return max(target.warp, min(limit, 1 << (-(-longest // elements) - 1).bit_length()))


def is_kept(loop: Loop, rounds: int, lanes: int) -> bool:
    """Whether what a loop loads in this number of rounds stays in registers."""
    size = len(loop.body.instructions)
    return vectors.is_plain(loop.body) and rounds * lanes <= KEPT and rounds * size <= WRITTEN_OUT


def at_once(loop: Loop, lanes: int) -> int:
    """Returns the number of rounds whose loads are issued together; each loads vectors of `lanes` elements."""
    rounds = max(ROUNDS, AT_ONCE // lanes) if vectors.is_plain(loop.body) else 1
    while rounds > 1 and rounds * len(loop.body.instructions) > WRITTEN_OUT:
        rounds //= 2
    return rounds
