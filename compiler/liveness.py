"""When values of a program are alive. A step has two points: while it runs, and after it; the moments at which a value
is needed are a set of points, so that two values may share bytes exactly where their sets are disjoint."""

from __future__ import annotations

from collections.abc import Iterable

from trivium.compiler.program import Copy, Program, Step, Switch, Value, While, reads, walk, writes


class Liveness:
    """`points`: when each value is alive, as bits of a number. Step `p` in the order of `walk` has the points 2 * p
    while it runs and 2 * p + 1 after it. While a copy runs its destination does not count as alive: where the source
    dies there, both may be one. `entry`: the values that are alive when the program begins.

    Computed backwards over the steps; what is alive is a set of values, as bits of a number."""

    def __init__(self, program: Program):
        self._values = program.values()
        self._bits = {value: 1 << number for number, value in enumerate(self._values)}
        self._positions = {step: position for position, step in enumerate(walk(program.steps))}
        self._alive: dict[int, int] = {}
        before = self._steps(program.steps, self._set(program.outputs))
        self.entry = [value for value in self._values if before & self._bits[value]]
        self.points = dict(zip(self._values, self._spans(), strict=True))

    def _spans(self) -> list[int]:
        """Turns sets of values by point into sets of points by value: only what changes from one point to the next is
        looked at."""
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

    def _set(self, values: Iterable[Value]) -> int:
        bits = 0
        for value in values:
            bits |= self._bits[value]
        return bits

    def _steps(self, steps: list[Step], after: int) -> int:
        """What is alive before `steps`, where `after` is alive behind them."""
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
        """The condition is followed by the body or by what comes after the loop; the body by the condition."""
        around = 0
        while True:
            behind_condition = after | around | self._set(reads(step))
            before = self._steps(step.condition, behind_condition)
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
