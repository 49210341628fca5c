"""When a contraction is computed in tiles, one for each block of threads, and of which size: larger tiles read less
memory, but there must be enough of them to keep a device busy."""

from __future__ import annotations

import math

from trivium.compiler.kernel.contraction import Contraction
from trivium.compiler.kernel.dtypes import FLOATS
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Loop
from trivium.compiler.schedule import LoopSchedule, Mapping, Unit

SIDE = 16
"""The threads of a block along rows and along columns."""

DEPTH = 16
"""The length of the piece of rows and columns that is in shared memory at a time."""

TILES = (64, 128), (32, 32)
"""The sizes of tiles, each with the number of them from which on it is used."""


def choose(kernel: Kernel, loop: Loop) -> LoopSchedule | None:
    """Returns the schedule of a contraction's parallel loop; None if tiles do not fit it."""
    mark = kernel.contraction
    if mark is None or not _fits(mark, loop):
        return None
    rows, columns = (math.prod(mark.extents(role)) for role in ("m", "n"))
    if min(rows, columns) < SIDE or math.prod(mark.extents("k")) < DEPTH:
        return None
    for size, least in TILES:
        plan = _plan(mark, loop, size)
        if launch(plan)[1] >= least:
            return plan
    return None


def _fits(mark: Contraction, loop: Loop) -> bool:
    """Whether sums and factors are f32, and the loop is that over the results."""
    kinds = (None if mark.lhs_prologue else mark.lhs), (None if mark.rhs_prologue else mark.rhs)
    floats = all(access is None or access.buffer.dtype in FLOATS - {"f64"} for access in kinds)
    outer = tuple(one.extent for one in mark.loops if one.role != "k")
    return mark.accumulate == "f32" and floats and loop.extents == outer


def _plan(mark: Contraction, loop: Loop, size: int) -> LoopSchedule:
    batch, rows, columns = (mark.positions(role) for role in ("batch", "m", "n"))
    spread = Mapping(Unit.GRID, batch, 1), Mapping(Unit.GRID, rows, size), Mapping(Unit.GRID, columns, size)
    return LoopSchedule(loop.extents, (*spread, Mapping(Unit.BLOCK, (*rows, *columns), SIDE * SIDE)))


def tile(plan: LoopSchedule) -> int:
    """Returns the size of a schedule's tiles; 0 if it has none."""
    spread = [mapping for mapping in plan.mappings if mapping.unit is Unit.GRID]
    return spread[-1].size if len(spread) > 1 else 0


def launch(plan: LoopSchedule) -> tuple[int, int, int]:
    """Returns the results of all tiles, the number of tiles, and the threads of each."""
    extents = plan.static_extents
    assert extents is not None, "a contraction's extents are numbers"
    spread = [mapping for mapping in plan.mappings if mapping.unit is Unit.GRID]
    blocks = math.prod(-(-math.prod(extents[d] for d in one.dimensions) // one.size) for one in spread)
    return math.prod(extents), blocks, SIDE * SIDE
