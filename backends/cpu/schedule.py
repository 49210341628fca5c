"""The CPU's choice of schedules: which loop dimension runs in vector lanes and which are split over threads, by
estimated cost."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator

from trivium.backends.cpu.jamming import tiles
from trivium.backends.cpu.target import CpuTarget
from trivium.backends.llvm.integers import fit_floats
from trivium.backends.llvm.memory import vectors_near
from trivium.compiler.kernel.affine import Analysis, apart, atom_offsets, holds
from trivium.compiler.kernel.dtypes import FLOATS, INDEX, INTEGERS, bit_width, storage_bytes
from trivium.compiler.kernel.index import Atom, Indices
from trivium.compiler.kernel.interleaving import interleaved, shuffles
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.lanes import Places, in_rows, lanes_of, neighbours
from trivium.compiler.kernel.ops import cost as operation_cost
from trivium.compiler.kernel.running import running_fold
from trivium.compiler.kernel.structure import (
    Apply,
    Block,
    Buffer,
    Constant,
    If,
    Instruction,
    Load,
    Loop,
    Position,
    Register,
    SortKeys,
    Store,
    Update,
    While,
    walk,
)
from trivium.compiler.schedule import LoopSchedule, Mapping, Schedule, Unit, fits_lanes, merged_extents, turned_loads

UNKNOWN_EXTENT = 16
MOVED = 2.0
"""The cost of a load of elements that are near one another, but not in the order of the lanes."""
SCATTERED = 2.0
"""The cost of a store to a cache line of its own, for each lane."""
CROWDED = 10.0
"""The same if more than two of these lines are in each set of the first-level cache that they can be in, which then
does not keep them until the next elements are stored. Measured for sums of three turned arrays of 128 columns of f32,
per element: 2.9, 4.2, 5.7 and 5.9 ns for rows of 1, 2, 4 and 8 KiB, and 0.4 ns for rows of 1000, 1040 or 1056
elements."""
WAY = 4096
"""The bytes after which addresses are in the same set of the first-level cache, of nearly all processors."""
SORTED_KEY = 0.3
"""The cost of sorting keys, for each of them and each bit of their number."""

PIECES = 8
"""Pieces per thread: these even out uneven pieces, and threads that start late."""
SUMS = 4
"""The number of vectors of sums that wait for one another less than for memory."""
WASTED = 1 / 16
"""The share of the lanes that may be idle at the end of a loop for the sake of more vectors at once."""
LONG_ROW = 1024
"""The bytes of rows of which as much as possible is read at once, rather than a little of each one after the other."""
LONG_CHAIN = 10
"""The cost of a body from which on a processor does not look far enough ahead to fill its units: an exponential."""
LARGEST_SIDE = 16
"""The side of the largest square of elements that is transposed in registers."""
MOST_SQUARES = 2
"""The number of squares in registers and on the stack at once."""
LARGEST_IN_SQUARES = 12
"""The number of instructions up to which a body is repeated for each vector of a square."""
LARGEST_IN_ROWS = 256
"""The number of instructions up to which a body is repeated for each vector of short rows."""
TEMPORARIES = 3
"""Registers that a mathematical function takes beside its argument; its constants can also be read from memory."""
PAIRED = 20
"""Two vectors may hold this many values even where there are fewer registers: a few on the stack cost less time than
waiting for one chain."""
Loops = dict[Loop, LoopSchedule]


def choose(kernel: Kernel, target: CpuTarget, analysis: Analysis | None = None) -> Schedule:
    """Returns the schedule of a kernel."""
    planner = _Planner(analysis or Analysis(kernel), target)
    cost, loops = planner.block(kernel.body)
    if target.threads > 1:
        for loop in _outermost(kernel.body):
            if all(extent == 1 or d in apart(loop) for d, extent in enumerate(loop.extents)):
                loops[loop] = _threaded(loops[loop], planner.costs[loop], target)
    order = [i for i in walk(kernel.body) if isinstance(i, Loop)]
    return Schedule({loop: loops[loop] for loop in order}, cost)


def sort_cost(count: int) -> float:
    """Returns the cost of sorting keys."""
    return SORTED_KEY * count * count.bit_length()


def _outermost(block: Block) -> Iterator[Loop]:
    """Yields the parallel loops that run one after the other; a loop with one iteration does not count."""
    for loop in block.instructions:
        if isinstance(loop, Loop) and loop.kind == "parallel":
            yield from _outermost(loop.body) if all(extent == 1 for extent in loop.extents) else (loop,)


def _threaded(schedule: LoopSchedule, cost: float, target: CpuTarget) -> LoopSchedule:
    """Returns the schedule split over threads if the work is worth it: the dimensions that are not in lanes, or, if
    there are none, the one that is."""
    bodies = schedule.static_bodies
    if cost < target.split_cost or bodies is None:
        return schedule
    dimensions = schedule.counted
    total, unit = math.prod(bodies[d] for d in dimensions), 1
    if total == 1 and schedule.vector is not None:
        dimensions, total, unit = (schedule.vector,), bodies[schedule.vector], schedule.lanes
    pieces = min(cost / target.piece_cost, target.threads * PIECES)
    grain = max(unit, math.ceil(total / pieces / unit) * unit)
    if grain >= total:
        return schedule
    mappings = Mapping(Unit.THREADS, dimensions, grain), *schedule.mappings
    return LoopSchedule(schedule.extents, mappings, brief=cost < target.wake_cost)


class _Planner:
    """Estimates costs: those of a block that runs once, given the loop indices (if any) that differ from lane to
    lane."""

    def __init__(self, analysis: Analysis, target: CpuTarget):
        self._analysis = analysis
        self._target = target
        self._vector_bits = 8 * target.vector_bytes
        self.costs: dict[Loop, float] = {}

    def block(self, block: Block) -> tuple[float, Loops]:
        """Returns the cost outside any vector loop, and the schedules of all loops within."""
        total, loops = self._division_cost(block, {}), Loops()
        for instruction in block.instructions:
            if isinstance(instruction, Loop):
                cost, inner = self.loop(instruction)
                self.costs[instruction] = cost
                loops.update(inner)
            else:
                # The loops in a branch have the costs of their schedules.
                has_loops = isinstance(instruction, If) and any(holds(nested, Loop) for nested in instruction.blocks)
                cost = 0.0 if has_loops else self._cost(instruction, {})
                for nested in instruction.blocks:
                    nested_cost, inner = self.block(nested)
                    cost += nested_cost
                    loops.update(inner)
            total += cost
        return total, loops

    def loop(self, loop: Loop) -> tuple[float, Loops]:
        """Returns the cheapest of: no vector dimension here (but possibly inside), or one of this loop's dimensions."""
        extents = merged_extents(loop, self._analysis)
        trips = math.prod(_count(e) for e in extents)
        cost, loops = self.block(loop.body)
        cost += self._combining_cost(loop, {})
        best = cost * trips, {loop: LoopSchedule(extents), **loops}
        if loop.kind == "sequential":
            running = self._running(loop, extents) if self._fits_lanes(loop, *loop.indices) else ()
            return min([best, *running], key=lambda found: found[0])
        possible = frozenset(d for d in self._apart(loop) if self._fits_lanes(loop, loop.indices[d]))
        dimensions = [d for d, extent in enumerate(extents) if extent != 1 and d in possible]
        plain = {dimension: self._vectorized(loop, extents, dimension) for dimension in dimensions}
        options = [best]
        for dimension in dimensions:
            options += [plain[dimension], *self._turned(loop, extents, dimension)]
            options += self._in_rows(loop, extents, dimension, possible)
        if plain:
            cheapest = min(plain, key=lambda dimension: plain[dimension][0])
            options += self._jammed(loop, plain[cheapest], cheapest, possible)
        return min(options, key=lambda found: found[0])

    def _fits_lanes(self, loop: Loop, *indices: Register) -> bool:
        return fits_lanes(loop.body, indices, self._analysis)

    def _apart(self, loop: Loop) -> frozenset[int]:
        """Returns the dimensions of which several iterations may run at once, because they update different elements:
        all of a merged loop's, or none of them."""
        possible = apart(loop)
        whole = all(extent == 1 or d in possible for d, extent in enumerate(loop.extents))
        return possible if whole else frozenset()

    def _vectorized(self, loop: Loop, extents: tuple[int | Register, ...], dimension: int) -> tuple[float, Loops]:
        extent, index = extents[dimension], loop.indices[dimension]
        lanes = self._lanes(loop, dimension, _count(extent))
        chunks = math.ceil(_count(extent) / lanes) * math.prod(
            _count(e) for d, e in enumerate(extents) if d != dimension
        )
        # A wide vector takes several registers.
        registers = max(1.0, lanes * self._bits(loop, index) / self._vector_bits)
        combining, body = self._combining_cost(loop, {}), self._body_cost(loop.body, neighbours(index, lanes, lanes))
        cost = chunks * (body + combining) * registers
        if loop.kind == "reduction":
            cost += (2 + combining) * math.log2(lanes) + 4
        lanes *= self._at_once(loop, extent, lanes)
        return cost, {loop: LoopSchedule(extents, (Mapping(Unit.LANES, (dimension,), lanes),)), **self._nested(loop)}

    def _running(self, loop: Loop, extents: tuple[int | Register, ...]) -> Iterator[tuple[float, Loops]]:
        """Yields the way to run a running fold in lanes: in each vector, in steps that double in width."""
        if running_fold(loop) is None or not isinstance(extent := extents[0], int):
            return
        (index,) = loop.indices
        lanes = self._vector_bits // self._bits(loop, index)
        if 2 <= lanes <= extent:
            each = self._body_cost(loop.body, neighbours(index, lanes, lanes)) + 2 * math.log2(lanes) + 2
            schedule = LoopSchedule(extents, (Mapping(Unit.LANES, (0,), lanes),))
            yield math.ceil(extent / lanes) * each, {loop: schedule, **self._nested(loop)}

    def _nested(self, loop: Loop) -> Loops:
        """Returns the schedules of the loops in one whose body runs in lanes."""
        nested = (i for i in walk(loop.body) if isinstance(i, Loop))
        return {other: LoopSchedule(merged_extents(other, self._analysis)) for other in nested}

    def _jammed(
        self, loop: Loop, plain: tuple[float, Loops], dimension: int, possible: Container[int]
    ) -> Iterator[tuple[float, Loops]]:
        """Yields the ways to run, with a dimension in lanes, neighbouring iterations of another one in one body."""
        cost, loops = plain
        bits = self._data_bits(loop) or self._bits(loop, loop.indices[dimension])
        lanes, sums = max(2, self._vector_bits // bits), self._target.vector_registers // (2 * _held(loop))
        for loaded, schedule in tiles(loop, loops, lanes, sums, possible, self._analysis):
            yield cost * loaded, {**loops, loop: schedule}

    def _in_rows(
        self, loop: Loop, extents: tuple[int | Register, ...], dimension: int, possible: Container[int]
    ) -> Iterator[tuple[float, Loops]]:
        """Yields the way to have several of a loop's rows in the lanes, if they are short, `dimension`, which does not
        end at run time, counts them, and all iterations may run at once."""
        longer = [d for d, extent in enumerate(extents) if extent != 1]
        size = sum(not isinstance(i, Constant | Position) for i in walk(loop.body))
        ends = any(end.dimension == dimension for end in loop.ends)
        if loop.kind != "parallel" or ends or longer[-2:-1] != [dimension] or longer[-1] not in possible:
            return
        row, rows = extents[longer[-1]], extents[dimension]
        if not isinstance(row, int) or row * size > LARGEST_IN_ROWS:
            return
        outer, inner = loop.indices[dimension], loop.indices[longer[-1]]
        lanes = self._lanes(loop, longer[-1], _count(rows) * row)
        if row % lanes == 0:
            # Each vector is within one row, so nothing is gained; and LLVM takes seconds to compile so many bodies if
            # they contain loops that it unrolls.
            return
        each = [self._body_cost(loop.body, in_rows(outer, inner, row, lanes, number)) for number in range(row)]
        registers = max(1.0, lanes * self._bits(loop, inner) / self._vector_bits)
        others = math.prod(_count(e) for d, e in enumerate(extents) if d not in (dimension, longer[-1]))
        mappings = Mapping(Unit.ROWS, (longer[-1],), row), Mapping(Unit.LANES, (dimension,), lanes)
        cost = sum(each) * registers * others * max(1.0, _count(rows) / lanes)
        yield cost, {loop: LoopSchedule(extents, mappings), **self._nested(loop)}

    def _turned(self, loop: Loop, extents: tuple[int | Register, ...], dimension: int) -> Iterator[tuple[float, Loops]]:
        """Yields the ways to read, with one dimension in lanes, along another one, and to transpose squares."""
        block, index = loop.body, loop.indices[dimension]
        straight = all(isinstance(i, Load | Apply | Store | Constant | Position) for i in block.instructions)
        size = sum(not isinstance(i, Constant) for i in block.instructions)
        if loop.kind != "parallel" or not straight or size > LARGEST_IN_SQUARES:
            return
        lanes = min(self._lanes(loop, dimension, _count(extents[dimension])), LARGEST_SIDE)
        for other, extent in enumerate(extents):
            loads = turned_loads(loop, index, loop.indices[other], self._analysis) if other != dimension else []
            if not isinstance(extent, int) or not 0 < len(loads) <= MOST_SQUARES or not 2 <= lanes <= LARGEST_SIDE:
                continue
            whole = _count(extents[dimension]), *(e for d, e in enumerate(extents) if d not in (dimension, other))
            squares = math.ceil(extent / lanes) * math.prod(map(_count, whole)) / lanes
            places = neighbours(index, lanes, lanes)
            each = self._body_cost(block, places) - sum(self._cost(load, places) for load in loads)
            read = len(loads) * lanes * (1 + math.log2(lanes))
            mappings = Mapping(Unit.SQUARES, (other,), lanes), Mapping(Unit.LANES, (dimension,), lanes)
            chunks = math.ceil(_count(extents[dimension]) / lanes) * lanes / _count(extents[dimension])
            cost = chunks * squares * (read + min(extent, lanes) * each)
            yield cost, {loop: LoopSchedule(extents, mappings)}

    def _lanes(self, loop: Loop, dimension: int, extent: int) -> int:
        """Returns the number of lanes along a dimension: one vector register of the floats and of the stored values, so
        that wide integers that only decide something take several; several registers if sums would wait for each other
        and, where each lane has its own sum, hardly any lane is wasted: then more of them, of which each read of a
        row is longer, as long as every thread has some; fewer lanes for short loops."""
        index = loop.indices[dimension]
        lanes = max(2, self._vector_bits // (self._data_bits(loop) or self._bits(loop, index)))
        if holds(loop.body, Loop) or loop.kind == "reduction":
            one = self._vector_bits // self._bits(loop, index)
            sums = self._target.vector_registers // (2 * _held(loop))
            most = min(extent, min(SUMS, sums) * one)
            if loop.kind == "parallel" and self._reads_columns(loop.body):
                most = max(most, min(extent // (2 * self._target.threads), sums * one))
            while lanes * 2 <= most and (loop.kind == "reduction" or -extent % (lanes * 2) <= WASTED * extent):
                lanes *= 2
        return min(lanes, 1 << (extent - 1).bit_length()) if extent > 1 else 1

    def _reads_columns(self, block: Block) -> bool:
        """Whether the loops in a block read arrays across long rows, without any conditions."""
        inner = [i for i in walk(block) if isinstance(i, Loop)]
        loads = {load: one.indices[-1] for one in inner for load in one.body.instructions if isinstance(load, Load)}
        steps = [
            storage_bytes(load.buffer.dtype)
            * (self._analysis.step(self._analysis.address(load.buffer, load.indices), index) or 0)
            for load, index in loads.items()
        ]
        return not holds(block, If) and any(step >= LONG_ROW for step in steps)

    def _at_once(self, loop: Loop, extent: int | Register, lanes: int) -> int:
        """Returns the number of vectors that a loop computes side by side: several if each is a long chain of
        operations that wait for one another, as many as registers allow and as fill the loop."""
        block = loop.body
        chain = sum(self._cost(i, {}) for i in block.instructions if isinstance(i, Apply))
        if loop.kind != "parallel" or chain < LONG_CHAIN or any(i.blocks for i in block.instructions):
            return 1
        if not self._target.masks_apart and _joins_masks(block):
            # The masks of several vectors are packed to bytes for this, and spread again.
            return 1
        each, vectors = _alive(block) + TEMPORARIES, math.ceil(_count(extent) / lanes)
        for count in (4, 2):
            most = max(self._target.vector_registers, PAIRED if count == 2 else 0)
            if count * each <= most and -vectors % count <= WASTED * vectors:
                return count
        return 1

    def _bits(self, loop: Loop, index: Register) -> int:
        """Returns the width of the widest number that is computed in each lane if `index` is in lanes, except for index
        arithmetic."""
        values = (*_computed(loop.body), *_stored(loop.body))
        widths = [_held_bits(value) for value in values if index in self._analysis.depends(value)]
        return max([8, *widths, *([bit_width(INDEX)] if self._divides(loop.body, index) else [])])

    def _data_bits(self, loop: Loop) -> int:
        """Returns the width of the widest float that is computed with, or that of the stored values if it is larger; 0
        without floats."""
        floats = [_held_bits(value) for value in _computed(loop.body) if value.dtype in FLOATS]
        return max(floats + [_held_bits(value) for value in _stored(loop.body)]) if floats else 0

    def _divides(self, block: Block, index: Register) -> bool:
        """Whether index expressions in a block contain quotients or remainders that are computed in lanes."""
        nested = (inner for i in walk(block) for inner in i.blocks)
        every = (atom for inner in (block, *nested) for atom in self._analysis.divisions[inner])
        places = neighbours(index, self._target.vector_bytes, self._target.vector_bytes)
        return any(self._is_irregular(atom, places) for atom in every)

    def _is_irregular(self, atom: Atom, places: Places) -> bool:
        """Whether a quotient or remainder must be computed in each lane."""
        own = any(index in self._analysis.depends(atom) for index in places)
        return own and atom_offsets(atom, places) is None

    def _cost(self, instruction: Instruction, places: Places) -> float:
        """Returns the cost of one execution, with iterations at `places` at a time."""
        match instruction:
            case Apply(op, arguments):
                cost = operation_cost(op, arguments[0].dtype)
                return cost * lanes_of(places) if self._is_scalar(op, arguments[0].dtype) else cost
            case Load(buffer, indices):
                return self._load_cost(buffer, indices, places)
            case Store(buffer, _, indices):
                return self._store_cost(buffer, indices, places)
            case Update(targets):
                each = [(target.buffer, target.indices, places) for target in targets]
                moved = sum(self._load_cost(*place) + self._store_cost(*place) for place in each)
                return moved + sum(self._body_cost(block, places) for block in instruction.blocks)
            case Loop():
                trips = math.prod(_count(e) for e in instruction.extents)
                return trips * (self._body_cost(instruction.body, places) + self._combining_cost(instruction, places))
            case SortKeys(_, _, count):
                return sort_cost(count)
            case While():
                return 50.0
        return sum(self._body_cost(block, places) for block in instruction.blocks)

    def _offsets(self, buffer: Buffer, indices: Indices, places: Places) -> tuple[int, ...] | None:
        """Returns by how many elements each lane is after the first one."""
        return self._analysis.lane_offsets(self._analysis.address(buffer, indices), places)

    def _load_cost(self, buffer: Buffer, indices: Indices, places: Places) -> float:
        lanes, offsets = lanes_of(places), self._offsets(buffer, indices, places)
        if offsets is None:
            return 1.0 * lanes
        if offsets == tuple(range(lanes)) or not any(offsets):
            return 1.0
        vectors = vectors_near(offsets)
        return MOVED * max(1, vectors / 2) if vectors <= self._target.near else 1.0 * lanes

    def _store_cost(self, buffer: Buffer, indices: Indices, places: Places) -> float:
        # A scattered store touches, and owns, one cache line per lane.
        lanes, offsets = lanes_of(places), self._offsets(buffer, indices, places)
        if offsets is None:
            return SCATTERED * lanes
        if offsets in (tuple(range(lanes)), (0,) * lanes):
            return 1.0
        step = storage_bytes(buffer.dtype) * (offsets[1] - offsets[0])
        return (CROWDED if lanes * math.gcd(step, WAY) > 2 * WAY else SCATTERED) * lanes

    def _body_cost(self, block: Block, places: Places) -> float:
        """Returns the cost of all instructions of a block, and of the divisions in their index expressions."""
        groups = interleaved(block, next(iter(places)), self._analysis) if len(places) == 1 else {}
        together = sum(len(group) + shuffles(len(group)) for group in groups.values() if group)
        apart = sum(self._cost(i, places) for i in block.instructions if i not in groups)
        return together + apart + self._division_cost(block, places)

    def _combining_cost(self, loop: Loop, places: Places) -> float:
        """Returns the cost of folding one term with a combiner that is a block; named ones cost as little as loading
        the next term does."""
        return self._body_cost(loop.combiner, places) if isinstance(loop.combiner, Block) else 0.0

    def _division_cost(self, block: Block, places: Places) -> float:
        each = operation_cost("divide", INDEX)
        in_lanes = each * lanes_of(places) if self._is_scalar("divide", INDEX) else each
        every = self._analysis.divisions[block]
        irregular = sum(self._is_irregular(atom, places) for atom in every)
        return irregular * in_lanes + (len(every) - irregular) * each

    def _is_scalar(self, op: str, dtype: str) -> bool:
        """Whether an operation has no vector form and is computed lane by lane."""
        if op not in ("divide", "remainder") or dtype in FLOATS or self._target.divides_integers_in_lanes:
            return False
        return not fit_floats(self._target, bit_width(dtype))


def _count(extent: int | Register) -> int:
    return extent if isinstance(extent, int) else UNKNOWN_EXTENT


def _held(loop: Loop) -> int:
    """Returns the largest number of registers that a loop, or one in it, keeps its sums in: two for what a named
    combiner folds that adds or multiplies nothing, three if these are floats, of which the extremes are kept."""

    def of(init: Register, combiner: str | Block | None) -> int:
        if not isinstance(combiner, str) or combiner in ("add", "multiply"):
            return 1
        return 3 if init.dtype in FLOATS else 2

    loops = [loop, *(i for i in walk(loop.body) if isinstance(i, Loop))]
    return max(1, *(sum(of(init, i.combiner) for init in i.inits) for i in loops))


def _joins_masks(block: Block) -> bool:
    """Whether truth values are more than what operations select by, or numbers are divided, which tests for zeros."""
    applied = [i for i in block.instructions if isinstance(i, Apply)]
    joined = (register for i in applied for register in i.arguments[i.op == "select" :])
    divided = (i.op in ("divide", "remainder") and i.result.dtype in INTEGERS for i in applied)
    return any(register.dtype == "i1" for register in joined) or any(divided)


def _alive(block: Block) -> int:
    """Returns the largest number of values that are waiting, computed, to be used."""
    alive, most = set[Register](), 0
    made = {i.result for i in walk(block) if isinstance(i, Load | Apply)}
    for instruction in reversed(block.instructions):
        alive.difference_update(instruction.results)
        alive.update(made.intersection(instruction.operands))
        most = max(most, len(alive))
    return most


def _computed(block: Block) -> Iterator[Register]:
    return (i.result for i in walk(block) if isinstance(i, Load | Apply))


def _stored(block: Block) -> Iterator[Register]:
    for instruction in walk(block):
        if isinstance(instruction, Store):
            yield instruction.value
        elif isinstance(instruction, Update):
            yield from instruction.values


def _held_bits(value: Register) -> int:
    """Returns the width of a value while it is computed with."""
    bits = bit_width(value.dtype)
    return max(32, bits) if value.dtype in FLOATS else bits
