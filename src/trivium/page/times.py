"""A profile as part of a page: the times of the steps, and what the arena holds at which of them."""

from __future__ import annotations

from collections.abc import Iterable

from trivium.compiler.liveness import Liveness
from trivium.compiler.program import Arena, Array, Program, Step, operands, walk
from trivium.page.data import Held, StepTime, Times
from trivium.profile import Profile


def times_of(profile: Profile, program: Program) -> Times:
    """Returns the times of the program that was profiled."""
    steps = list(walk(program.steps))
    lines = [
        StepTime(line.number, line.seconds, line.calls, line.flops, line.nbytes, line.limit, line.bound)
        for line in profile.lines
    ]
    limits, runs = profile.timeline.limits, len(profile.timeline.runs)
    held = _held(program, steps)
    used = _used(held, len(steps))
    return Times(profile.seconds, runs, limits.flops, limits.nbytes, lines, program.arena_size, used, held)


def _held(program: Program, steps: list[Step]) -> list[Held]:
    users: dict[Array, list[int]] = {}
    for number, step in enumerate(steps):
        for value in dict.fromkeys(operands(step)):
            users.setdefault(value, []).append(number)
    found = []
    for value, points in Liveness(program).points.items():
        if isinstance(value.storage, Arena) and points:
            kind = "x".join(map(str, (*value.shape, value.dtype)))
            offset, spans = value.storage.offset or 0, _spans(points)
            found.append(Held(value.name, kind, offset, value.nbytes, spans, users[value]))
    return found


def _used(held: list[Held], steps: int) -> list[int]:
    """Returns how many bytes are in use at each step. Bytes that arrays share, as results may with arguments, count
    once."""
    at: list[list[Held]] = [[] for _ in range(steps)]
    for array in sorted(held, key=lambda array: array.offset):
        for first, last in array.spans:
            for step in range(first, last + 1):
                at[step].append(array)
    return [_union((array.offset, array.offset + array.nbytes) for array in arrays) for arrays in at]


def _union(ranges: Iterable[tuple[int, int]]) -> int:
    """Returns the number of bytes in ranges that are sorted."""
    total = end = 0
    for begin, after in ranges:
        total += max(0, after - max(begin, end))
        end = max(end, after)
    return total


def _spans(points: int) -> list[tuple[int, int]]:
    """Returns the first and last step of each time for which a value is held; `points`: see `Liveness`. A step has two
    points: a value is held at a step if it is alive at one of them."""
    found: list[tuple[int, int]] = []
    bit = 0
    while points:
        free = (points & -points).bit_length() - 1
        points >>= free
        length = (~points & (points + 1)).bit_length() - 1
        first, last = (bit + free) // 2, (bit + free + length - 1) // 2
        if found and found[-1][1] + 1 == first:
            first, _ = found.pop()
        found.append((first, last))
        points >>= length
        bit += free + length
    return found
