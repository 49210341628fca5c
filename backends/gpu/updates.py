"""Decides how threads share loops whose iterations update elements of a buffer in place, such as a scatter. Iterations
that never update the same element are distributed over the grid. For all others, each update is an atomic operation if
the order does not matter. Otherwise each of several threads, the owners, runs all iterations in order, and does the
updates of the elements that it owns, so that every element is updated in order."""

from __future__ import annotations

import math

from trivium.backends.gpu.target import GpuTarget
from trivium.compiler.kernel.affine import apart, follows, inner_values
from trivium.compiler.kernel.dtypes import FLOATS
from trivium.compiler.kernel.index import Index, constant
from trivium.compiler.kernel.structure import Apply, Constant, Load, Loop, Position, Store, Target, Update, walk
from trivium.compiler.schedule import LoopSchedule, Mapping, Unit

EXTREMES = frozenset(("maximum", "minimum"))
"""The operations on floats whose result does not depend on their order."""


def choose(loop: Loop, target: GpuTarget) -> dict[Loop, LoopSchedule]:
    """Returns the schedules of a loop that has updates, and of the loop inside it, if that is spread as well."""
    loops = nest(loop)
    atomic = is_atomic(loop, target.deterministic)
    spread = {one: _static(one) if atomic else apart(one, loop) & _static(one) for one in loops}
    plans = {one: LoopSchedule(one.extents, (Mapping(Unit.GRID, tuple(sorted(spread[one])), 1),)) for one in loops}
    work = math.prod(count(plan) for plan in plans.values())
    owners = 1 if atomic else _owners(loop, work, target)
    threads = min(target.block, max(1, -(-work * owners // target.warp)) * target.warp)
    every = tuple(range(len(loop.extents)))
    rest = tuple(d for d in every if d not in spread[loop])
    more = [Mapping(Unit.BLOCK, every, threads)]
    if atomic and not all(apart(one, loop) >= spread[one] for one in loops):
        more.append(Mapping(Unit.ATOMIC, every, 1))
    if owners > 1:
        more.append(Mapping(Unit.OWNERS, rest, owners))
    plans[loop] = LoopSchedule(loop.extents, (*plans[loop].mappings, *more))
    return plans


def nest(loop: Loop) -> list[Loop]:
    """Returns the loop, and the parallel loop inside it, if every thread can compute for itself what is beside that."""
    inner = [instruction for instruction in loop.body.instructions if isinstance(instruction, Loop)]
    beside = [instruction for instruction in loop.body.instructions if not isinstance(instruction, Loop)]
    pure = all(isinstance(instruction, Constant | Apply | Position | Load) for instruction in beside)
    return [loop, *inner] if pure and [one.kind for one in inner] == ["parallel"] else [loop]


def count(plan: LoopSchedule) -> int:
    """Returns the number of iterations of a loop that are spread over the grid; those that a thread runs at a time
    count as one."""
    spread, extents = plan.mapping(Unit.GRID), plan.in_vectors
    return math.prod(extents[d] for d in spread.dimensions) if spread else 1  # type: ignore[misc]


def is_atomic(loop: Loop, deterministic: bool) -> bool:
    """Whether all updates may be atomic operations: on one element, with a named operation whose order does not
    matter, or need not."""
    return all(
        isinstance(update.combiner, str)
        and (not deterministic or update.combiner in EXTREMES or not FLOATS & {t.buffer.dtype for t in update.targets})
        for update in _updates(loop)
    )


def own_index(target: Target, loop: Loop, spread: list[Loop]) -> Index | None:
    """Returns the number by which elements belong to owners: their place along the dimensions whose index does not
    follow one that is spread, so that an owner's share of each thread's elements is as large as another's. None if
    there is no such dimension."""
    own = inner_values(loop)
    variables = [one.indices[d] for one in spread for d in apart(one, loop)]
    found: Index | None = None
    for index, extent in zip(target.indices, target.buffer.shape, strict=True):
        if not any(follows(index, variable, own) for variable in variables):
            found = (found if found is not None else constant(0)) * extent + index
    return found


def _static(loop: Loop) -> frozenset[int]:
    return frozenset(d for d, extent in enumerate(loop.extents) if isinstance(extent, int))


def _updates(loop: Loop) -> list[Update]:
    return [instruction for instruction in walk(loop.body) if isinstance(instruction, Update)]


def _owners(loop: Loop, work: int, target: GpuTarget) -> int:
    """Returns the number of threads that share the elements of each of `work` threads: a power of two, so that the
    device is busy. One if there is anything else to write, which each of them would do, or what is updated is read."""
    targets = [target for update in _updates(loop) for target in update.targets]
    buffers = {target.buffer for target in targets}
    reads = {i.buffer for i in walk(loop.body) if isinstance(i, Load)}
    if any(isinstance(i, Store) for i in walk(loop.body)) or reads & buffers:
        return 1
    if any(own_index(target, loop, nest(loop)) is None for target in targets):
        return 1
    elements = min(buffer.size for buffer in buffers)
    limit = min(target.busy // max(1, work), elements // max(1, work))
    return 1 << max(0, limit.bit_length() - 1)
