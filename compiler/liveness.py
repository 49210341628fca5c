"""When the values of a program are alive. Each step has two points: while it runs, and after it. The times at which a
value is needed are a set of points; two values may share bytes exactly if their sets are disjoint."""

from __future__ import annotations

from collections.abc import Iterable

from trivium.compiler.program import Array, Copy, Program, Step, Switch, While, reads, walk, writes


def during(first: int, last: int) -> int:
    """Returns the points from the beginning of one step to the end of another."""
    return (1 << (2 * last + 1)) - (1 << (2 * first))


class Liveness:
    """`points`: when each value is alive, as the bits of a number. Step `p` in the order of `walk` has the point 2 * p
    while it runs and 2 * p + 1 after it. The destination of a copy does not count as alive while the copy runs: if the
    copy is the last use of its source, both may share a buffer. `entry`: the values that are alive when the program
    begins.

    Computed backwards over the steps, with sets of live values as the bits of a number."""

    def __init__(self, program: Program):
        self._values = program.values()
        self._bits = {value: 1 << number for number, value in enumerate(self._values)}
        self._positions = {step: position for position, step in enumerate(walk(program.steps))}
        self._alive: dict[int, int] = {}
        before = self._steps(program.steps, self._set(program.outputs))
        self.entry = [value for value in self._values if before & self._bits[value]]
        self.points = dict(zip(self._values, self._spans(), strict=True))

    def _spans(self) -> list[int]:
        """Turns sets of values per point into sets of points per value. Only looks at the changes from one point to the
        next."""
        points, begins = [0] * len(self._values), [0] * len(self._values)
        before = 0
        for point in range(2 * len(self._positions) + 1):
            alive = self._alive.get(point, 0)
            changed = alive ^ before
            while changed:
                lowest = changed & -changed
                number = lowest.bit_length() - 1
                if alive & lowest:
                    begins[number] = point
                else:
                    points[number] |= (1 << point) - (1 << begins[number])
                changed ^= lowest
            before = alive
        return points

    def _set(self, values: Iterable[Array]) -> int:
        bits = 0
        for value in values:
            bits |= self._bits[value]
        return bits

    def _steps(self, steps: list[Step], after: int) -> int:
        """Returns the values that are alive before `steps`, given those that are alive `after` them."""
        for step in reversed(steps):
            after = self._step(step, after)
        return after

    def _step(self, step: Step, after: int) -> int:
        if isinstance(step, While):
            return self._while(step, after)
        if isinstance(step, Switch):
            before = self._set(reads(step))
            for branch in step.branches:
                before |= self._steps(branch, after)
            self._note(step, before, after)
            return before
        read, written = self._set(reads(step)), self._set(writes(step))
        before = (after & ~written) | read
        self._note(step, before if isinstance(step, Copy) else after | read | written, after | written)
        return before

    def _while(self, step: While, after: int) -> int:
        """The condition is followed by the body, or by the steps after the loop; the body is followed by the
        condition."""
        around = 0
        while True:
            after_condition = after | around | self._set(reads(step))
            before = self._steps(step.condition, after_condition)
            body = self._steps(step.body, before)
            if body | around == around:
                break
            around |= body
        self._note(step, before, after)
        return before

    def _note(self, step: Step, during: int, after: int) -> None:
        position = 2 * self._positions[step]
        self._alive[position] = self._alive.get(position, 0) | during
        self._alive[position + 1] = self._alive.get(position + 1, 0) | after
