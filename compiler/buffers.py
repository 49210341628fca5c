"""The buffer plan: where every temporary of a program is stored. Copies are dropped where source and destination can
share a buffer, so that loops and updates work in place and results are computed directly in the caller's buffers.
Kernels overwrite operands that are no longer needed, where their accesses allow it, and arguments that the caller gives
away (`donation.py`). The remaining values get places by best fit (`placement.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trivium.compiler.donation import Together, Wishes, share_arguments
from trivium.compiler.kernel import may_share
from trivium.compiler.liveness import Liveness, during
from trivium.compiler.placement import Allocation, place
from trivium.compiler.program import Arena, Array, Copy, Launch, Output, Program, Step, nested, replace_values, walk
from trivium.compiler.target import Target


def assign_buffers(
    program: Program,
    target: Target,
    together: Sequence[Together] = (),
    donated: Wishes | None = None,
) -> None:
    """Assigns every array of the program its place, and drops the copies that thereby become unnecessary.
    `together`: steps that may run at the same time, whose values therefore share no bytes. `donated`: the arguments
    that the caller gives away."""
    allocations = _planned(program, target, together, donated or {})
    _drop_needless_copies(program, allocations)
    program.arena_size = place(allocations.values(), target.alignment, target.shared_result_bytes)


def arena_size(program: Program, target: Target, donated: Wishes) -> int:
    """Returns the size that the arena will have, and leaves the program as it is."""
    storages = {value: value.storage for value in program.values()}
    allocations = _planned(program, target, (), donated)
    size = place(allocations.values(), target.alignment, target.shared_result_bytes)
    for value, storage in storages.items():
        value.storage = storage
    return size


def _planned(
    program: Program, target: Target, together: Sequence[Together], donated: Wishes
) -> dict[Array, Allocation]:
    """Returns an allocation for each value that the program itself must place, which values share where they can."""
    points = Liveness(program).points
    allocations = _allocations(points)
    for first, last, values in together:
        for value in values & allocations.keys():
            allocations[value].points |= during(first, last)
    _coalesce_copies(program, allocations)
    share_arguments(program, points, allocations, donated, together, target.loops_in_order)
    _reuse_operands(program, allocations, target.loops_in_order)
    return allocations


def _allocations(alive: Mapping[Array, int]) -> dict[Array, Allocation]:
    """Returns an allocation for each value that the program itself must place."""
    allocations = {}
    for value, points in alive.items():
        if isinstance(value.storage, Arena | Output):
            output = value.storage if isinstance(value.storage, Output) else None
            allocations[value] = Allocation([value], points, value.nbytes, output)
    return allocations


def _coalesce_copies(program: Program, allocations: dict[Array, Allocation]) -> None:
    for step in walk(program.steps):
        if isinstance(step, Copy):
            source, destination = allocations.get(step.source), allocations.get(step.destination)
            if source and destination and source is not destination and not source.points & destination.points:
                _merge(source, destination, allocations)


def _reuse_operands(program: Program, allocations: dict[Array, Allocation], loops_in_order: bool) -> None:
    """Lets a kernel's result share the bytes of an operand if both are alive only while that kernel runs."""
    for position, step in enumerate(walk(program.steps)):
        if not isinstance(step, Launch):
            continue
        pairs = list(zip(step.kernel.params, step.arguments, strict=True))
        for param, value in pairs:
            if param.mode != "out":
                continue
            for source_param, source in pairs:
                mine, theirs = allocations.get(source), allocations.get(value)
                if source_param.mode != "in" or mine is None or theirs is None or mine is theirs:
                    continue
                overlap = mine.points & theirs.points
                alone = sum(argument in mine.values for argument in step.arguments) == 1
                if overlap != 1 << (2 * position) or not alone:
                    continue
                if may_share(step.kernel, source_param, param, loops_in_order=loops_in_order):
                    _merge(mine, theirs, allocations)
                    break


def _merge(one: Allocation, other: Allocation, allocations: dict[Array, Allocation]) -> None:
    """Merges two allocations if their sizes are equal and not both are outputs."""
    if one.nbytes != other.nbytes or (one.output and other.output):
        return
    one.values += other.values
    one.points |= other.points
    one.output = one.output or other.output
    for value in other.values:
        allocations[value] = one


def _drop_needless_copies(program: Program, allocations: dict[Array, Allocation]) -> None:
    """Removes copies within one allocation, and copies of empty values. Source and destination of such a copy become
    one value, so that the steps still show when its contents are written and needed."""
    same: dict[Array, Array] = {}
    program.steps = _without_needless_copies(program.steps, allocations, same)
    replace_values(program.steps, {value: _root(value, same) for value in same})


def _without_needless_copies(
    steps: list[Step], allocations: dict[Array, Allocation], same: dict[Array, Array]
) -> list[Step]:
    """Returns the steps without unnecessary copies; for each dropped copy, `same` maps the value that goes to the one
    that stays."""
    kept = []
    for step in steps:
        if isinstance(step, Copy):
            source, destination = _root(step.source, same), _root(step.destination, same)
            if not step.source.nbytes:
                continue
            if source in allocations and allocations[source] is allocations.get(destination):
                if source is not destination:
                    stays, goes = (destination, source) if _is_output(destination) else (source, destination)
                    same[goes] = stays
                continue
        for inner in nested(step):
            inner[:] = _without_needless_copies(inner, allocations, same)
        kept.append(step)
    return kept


def _root(value: Array, same: dict[Array, Array]) -> Array:
    while value in same:
        value = same[value]
    return value


def _is_output(value: Array) -> bool:
    return isinstance(value.storage, Output)
