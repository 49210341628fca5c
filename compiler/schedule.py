"""How a kernel's loops are run on a processor: which dimensions are merged into one, which one runs in vector lanes,
what is split over threads. A schedule is data beside the kernel, chosen by a simple cost count, and can be printed;
it never changes what a kernel means."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from trivium.compiler.kernel.affine import Analysis, accesses, holds
from trivium.compiler.kernel.dtypes import FLOATS, bit_width
from trivium.compiler.kernel.structure import (
    Apply,
    Block,
    Instruction,
    Kernel,
    Load,
    Loop,
    Scratch,
    Store,
    Value,
    While,
    walk,
)

SMALL = 60_000.0
"""Work (in cost units, some 0.3 ns each) below which waking threads costs more than it gains."""

UNKNOWN_EXTENT = 16
COSTS = {
    "divide": 4.0, "remainder": 8.0, "sqrt": 4.0, "rsqrt": 5.0, "exponential": 10.0, "exponential_minus_one": 12.0,
    "log": 12.0, "log_plus_one": 16.0, "logistic": 15.0, "tanh": 16.0, "sine": 20.0, "cosine": 20.0, "tan": 30.0,
    "power": 60.0, "erf": 16.0, "erf_inv": 20.0, "cbrt": 20.0,
}  # fmt: skip
PER_LANE = {"erfc", "lgamma", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "sinh", "digamma"}
"""Operations that cost some 20 units for every lane."""


@dataclass(frozen=True)
class LoopSchedule:
    """One loop's schedule. `extents` are the loop's after merging: a dimension that was merged into a later one has
    extent 1 there. `vector` is the dimension that runs in `lanes` lanes, innermost. `grain` > 0 splits the other
    dimensions (or, where there are none, the vector dimension) over threads, in pieces of at least `grain`
    iterations."""

    extents: tuple[int | Value, ...]
    vector: int | None = None
    lanes: int = 1
    grain: int = 0

    @property
    def static_extents(self) -> tuple[int, ...] | None:
        """The extents where all are numbers, else None."""
        static = tuple(extent for extent in self.extents if isinstance(extent, int))
        return static if len(static) == len(self.extents) else None

    def __str__(self) -> str:
        extents = "x".join("?" if isinstance(e, Value) else str(e) for e in self.extents)
        vector = f" vector={self.vector} lanes={self.lanes}" if self.vector is not None else ""
        return f"{extents}{vector}{f' threads grain={self.grain}' if self.grain else ''}"


@dataclass(frozen=True, eq=False)
class Schedule:
    """The schedules of a kernel's loops, in the order in which they appear."""

    loops: dict[Loop, LoopSchedule] = field(default_factory=dict)
    cost: float = 0.0

    def __str__(self) -> str:
        lines = (f"  {loop.kind} {schedule}" for loop, schedule in self.loops.items())
        return "\n".join([f"schedule (cost {self.cost:.0f}) {{", *lines, "}"])


def choose(kernel: Kernel, vector_bytes: int, threads: int = 1, analysis: Analysis | None = None) -> Schedule:
    """The schedule for a processor with vectors of `vector_bytes` and so many threads."""
    return choose_block(kernel.body, vector_bytes, threads, analysis or Analysis(kernel))


def choose_block(block: Block, vector_bytes: int, threads: int, analysis: Analysis) -> Schedule:
    """As `choose`, for a block."""
    planner = _Planner(analysis, vector_bytes)
    cost, loops = planner.block(block)
    if threads > 1:
        for loop in block.instructions:
            if isinstance(loop, Loop) and loop.kind == "parallel" and loop in loops:
                loops[loop] = _threaded(loops[loop], planner.costs[loop], threads)
    order = [i for i in walk(block) if isinstance(i, Loop)]
    return Schedule({loop: loops[loop] for loop in order}, cost)


def choose_in_lanes(block: Block, analysis: Analysis) -> Schedule:
    """For a block that is emitted in vector lanes already (`fits_lanes`): none of its loops has lanes of its own."""
    loops = [i for i in walk(block) if isinstance(i, Loop)]
    return Schedule({loop: LoopSchedule(_merged(loop, analysis)) for loop in loops})


def fits_lanes(block: Block, indices: Iterable[Value], analysis: Analysis) -> bool:
    """Whether `block` can run for several values of `indices` at once: whiles would end at different times, scratch is
    shared, extents must agree."""
    if holds(block, While, Scratch):
        return False
    own = set(indices)
    extents = [e for i in walk(block) if isinstance(i, Loop) for e in i.extents if isinstance(e, Value)]
    return not any(own & analysis.depends(extent) for extent in extents)


def _threaded(schedule: LoopSchedule, cost: float, threads: int) -> LoopSchedule:
    """The schedule split over threads where the work is worth it."""
    extents = schedule.static_extents
    if cost < SMALL or extents is None:
        return schedule
    total, unit = math.prod(e for d, e in enumerate(extents) if d != schedule.vector), 1
    if total == 1 and schedule.vector is not None:
        total, unit = extents[schedule.vector], schedule.lanes
    pieces = min(cost / (SMALL / 3), threads * 8)
    grain = max(unit, math.ceil(total / pieces / unit) * unit)
    if grain >= total:
        return schedule
    return LoopSchedule(schedule.extents, schedule.vector, schedule.lanes, grain)


Loops = dict[Loop, LoopSchedule]


class _Planner:
    """Counts costs: of a block run once, given which loop index (if any) is spread over vector lanes."""

    def __init__(self, analysis: Analysis, vector_bytes: int):
        self._analysis = analysis
        self._vector_bits = 8 * vector_bytes
        self.costs: dict[Loop, float] = {}

    def block(self, block: Block) -> tuple[float, Loops]:
        """Outside of any vector loop: cost, and schedules of all loops within."""
        total, loops = 0.0, Loops()
        for instruction in block.instructions:
            if isinstance(instruction, Loop):
                cost, inner = self.loop(instruction)
                self.costs[instruction] = cost
                loops.update(inner)
            else:
                cost = self._cost(instruction, None, 1)
                for nested in instruction.blocks:
                    nested_cost, inner = self.block(nested)
                    cost += nested_cost
                    loops.update(inner)
            total += cost
        return total, loops

    def loop(self, loop: Loop) -> tuple[float, Loops]:
        """The cheapest of: no vector dimension here (but perhaps inside), or one of this loop's dimensions."""
        extents = _merged(loop, self._analysis)
        trips = math.prod(_count(e) for e in extents)
        cost, loops = self.block(loop.body)
        best = cost * trips, {loop: LoopSchedule(extents), **loops}
        if loop.kind == "sequential" or not fits_lanes(loop.body, loop.indices, self._analysis):
            return best
        for dimension in range(len(extents)):
            if extents[dimension] == 1:
                continue
            option = self._vectorized(loop, extents, dimension)
            best = min(best, option, key=lambda found: found[0])
        return best

    def _vectorized(self, loop: Loop, extents: tuple[int | Value, ...], dimension: int) -> tuple[float, Loops]:
        extent, index = extents[dimension], loop.indices[dimension]
        lanes = self._lanes(loop, _count(extent), holds(loop.body, Loop) or loop.kind == "reduction")
        chunks = math.ceil(_count(extent) / lanes) * math.prod(
            _count(e) for d, e in enumerate(extents) if d != dimension
        )
        # Wide vectors are several registers.
        registers = max(1.0, lanes * self._bits(loop) / self._vector_bits)
        cost = chunks * sum(self._cost(i, index, lanes) for i in loop.body.instructions) * registers
        if loop.kind == "reduction":
            cost += 2 * math.log2(lanes) + 4
        nested = (i for i in walk(loop.body) if isinstance(i, Loop))
        inner = {other: LoopSchedule(_merged(other, self._analysis)) for other in nested}
        return cost, {loop: LoopSchedule(extents, dimension, lanes), **inner}

    def _lanes(self, loop: Loop, extent: int, accumulates: bool) -> int:
        """One vector register of the widest type, several where sums would wait for each other, fewer for short
        loops."""
        lanes = max(2, self._vector_bits // self._bits(loop))
        if accumulates:
            while lanes * 2 <= min(extent, 4 * self._vector_bits // self._bits(loop)):
                lanes *= 2
        return min(lanes, 1 << (extent - 1).bit_length()) if extent > 1 else 1

    def _bits(self, loop: Loop) -> int:
        """Width of the widest number computed with, index arithmetic aside."""
        values = [i.result for i in walk(loop.body) if isinstance(i, Load | Apply) and not self._analysis.is_affine(i)]
        values += [i.value for i in walk(loop.body) if isinstance(i, Store)]
        widths = [max(32, bit_width(v.dtype)) if v.dtype in FLOATS else bit_width(v.dtype) for v in values]
        return max([8, *widths])

    def _cost(self, instruction: Instruction, index: Value | None, lanes: int) -> float:
        """Cost of one execution, `lanes` iterations of `index` at a time."""
        match instruction:
            case Apply(op, arguments) if not self._analysis.is_affine(instruction):
                integer_division = op in ("divide", "remainder") and arguments[0].dtype not in FLOATS
                if op in PER_LANE or integer_division:
                    return 20.0 * lanes
                return COSTS.get(op, 1.0)
            case Load(buffer, indices) | Store(buffer, _, indices):
                step = self._analysis.step(self._analysis.address(buffer, indices), index) if index else 1
                if step in (0, 1):
                    return 1.0
                if isinstance(instruction, Load):
                    return 2.0 if step in (-1, 2) else 1.0 * lanes
                # A scattered store touches, and owns, a line for every lane.
                return 2.0 * lanes
            case Loop():
                trips = math.prod(_count(e) for e in instruction.extents)
                return trips * sum(self._cost(i, index, lanes) for i in instruction.body.instructions)
            case While():
                return 50.0
        return sum(self._cost(i, index, lanes) for block in instruction.blocks for i in block.instructions)


def _count(extent: int | Value) -> int:
    return extent if isinstance(extent, int) else UNKNOWN_EXTENT


def _merged(loop: Loop, analysis: Analysis) -> tuple[int | Value, ...]:
    """Extents where neighbouring dimensions became one: both static, used in addresses only, and one step of the
    outer equal to a whole run of the inner in every access."""
    extents = list(loop.extents)
    addresses = [analysis.address(access.buffer, access.indices) for access in accesses(loop.body)]
    inner = len(extents) - 1
    for outer in range(len(extents) - 2, -1, -1):
        runs, length = extents[outer], extents[inner]
        if length == 1:
            inner = outer
            continue
        a, b = loop.indices[outer], loop.indices[inner]
        if (
            isinstance(runs, int)
            and isinstance(length, int)
            and runs != 1
            and not {a, b} & analysis.escaping
            and all(t.terms.get(a, 0) == t.terms.get(b, 0) * length for t in addresses)
        ):
            extents[inner], extents[outer] = runs * length, 1
        elif runs != 1:
            inner = outer
    return tuple(extents)
