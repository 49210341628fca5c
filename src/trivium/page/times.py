"""A profile as part of a page: the times of the steps, and what the arena holds at which of them."""

from __future__ import annotations

import numpy as np

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
    changes: list[list[tuple[int, bool]]] = [[] for _ in range(steps + 1)]
    arrays = sorted(held, key=lambda array: array.offset)
    for number, array in enumerate(arrays):
        for first, last in array.spans:
            changes[first].append((number, True))
            changes[last + 1].append((number, False))
    begins = np.array([array.offset for array in arrays], np.int64)
    ends = np.array([array.offset + array.nbytes for array in arrays], np.int64)
    alive = np.zeros(len(arrays), bool)
    used = []
    for step in range(steps):
        for number, begin in changes[step]:
            alive[number] = begin
        used.append(_union(begins[alive], ends[alive]))
    return used


def _union(begins: np.ndarray, ends: np.ndarray) -> int:
    """Returns the number of bytes in ranges, which are sorted by where they begin."""
    covered = np.maximum.accumulate(np.concatenate([[0], ends]))[:-1]
    return int(np.maximum(ends - np.maximum(begins, covered), 0).sum())


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
