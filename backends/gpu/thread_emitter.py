"""Emits kernels whose parallel loop is spread over the threads of a grid, each of which runs one iteration, or vectors
of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import llvmlite.ir as ll

from trivium.backends.gpu import atomics, updates
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.schedule import Grid, spread_loops
from trivium.backends.gpu.updates import nest, own_index
from trivium.backends.gpu.vectors import aligned_elements
from trivium.backends.llvm import folds, kernel_loops
from trivium.backends.llvm.code import I32, I64, Code
from trivium.backends.llvm.emitter import Emitter
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.memory import Address
from trivium.backends.llvm.numbers import Int, i64
from trivium.backends.llvm.workspace import Workspace
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.dtypes import storage_bytes
from trivium.compiler.kernel.index import Atom, Indices
from trivium.compiler.kernel.structure import Buffer, Load, Loop, Register, Update
from trivium.compiler.schedule import Schedule, Unit

LARGEST = (1 << 31) - 1

Values = dict[Register | Atom, ll.Value]


def number_of(code: Code, dialect: Dialect, threads: Grid) -> ll.Value:
    """Returns the thread's number in the grid: an i32 if that holds all of them, since division of i64 is slow."""
    if threads.blocks * threads.threads == 1:
        return I32(0)
    block, thread = dialect.block(code), dialect.thread(code)
    if threads.blocks * threads.threads > LARGEST:
        block, thread = (code.builder.zext(number, I64) for number in (block, thread))
    return code.iadd(code.builder.mul(block, code.like(block, threads.threads)), thread)


class GpuEmitter(Emitter):
    """Emits blocks for one thread, which has the number `thread` in `grid`."""

    def __init__(
        self,
        code: Code,
        analysis: Analysis,
        schedule: Schedule,
        buffers: dict[Buffer, ll.Value],
        workspace: Workspace,
        thread: ll.Value,
        grid: Grid,
    ):
        super().__init__(code, analysis, schedule, buffers, workspace)
        self.thread, self.grid = thread, grid
        self._outermost: Loop | None = None

    def loop(self, loop: Loop) -> None:
        """Emits a loop, or, if its iterations are spread over the grid, those of this thread."""
        if self.schedule.loops[loop].mapping(Unit.GRID) is None:
            super().loop(loop)
            return
        builder = self.builder
        if self.grid.shared or self._outermost or self.grid.work == self.grid.blocks * self.grid.threads:
            self._iteration(loop)
            return
        with builder.if_then(builder.icmp_unsigned("<", self.thread, self.code.like(self.thread, self.grid.work))):
            self._iteration(loop)

    def _iteration(self, loop: Loop) -> None:
        """Emits the iteration of the spread dimensions that belongs to this thread, and all of the others."""
        schedule = self.schedule.loops[loop]
        spread = schedule.mapping(Unit.GRID)
        assert spread is not None, "the loop is spread over the grid"
        self._outermost = self._outermost or loop
        if (dimension := schedule.vector) is not None:
            (self._tail if schedule.extents[dimension] % schedule.lanes else self._vectors)(loop)  # type: ignore[operator]
            return
        with self.scope():
            number = self.thread if self.grid.shared else self._share(loop)
            self.bind([(loop.indices[d], schedule.extents[d]) for d in spread.dimensions], number)
            pairs = enumerate(zip(loop.indices, schedule.extents, strict=True))
            inner = [pair for dimension, pair in pairs if dimension not in spread.dimensions]
            kernel_loops.nest(self, inner, [], lambda _: self.block(loop.body))

    def _vectors(self, loop: Loop) -> None:
        """Emits the vectors of iterations of this thread, as far apart as there are threads. All loads come first."""
        builder, plan = self.builder, self.schedule.loops[loop]
        spread, count = plan.mapping(Unit.GRID), updates.count(plan)
        assert spread is not None, "the loop is spread over the grid"
        each: list[tuple[Values, ll.Value | None]] = []
        for number in range(spread.size):
            place, valid = self._later(number * self.grid.work), None
            if (number + 1) * self.grid.work > count:
                valid = self.code.icompare("<", place, count, signed=False)
                place = builder.select(valid, place, self.code.like(place, count - 1))
            each.append((self.bound(loop, place, None), valid))
        for values, valid in each:
            self.run(loop, values, valid, [])

    def _later(self, threads: int) -> ll.Value:
        """Returns this thread's number, plus that of as many threads; it may be too large for an i32."""
        number = self.thread if self.grid.work + threads <= LARGEST else wide(self.code, self.thread)
        return self.code.iadd(number, threads) if threads else number

    def _tail(self, loop: Loop) -> None:
        """Emits a vector of iterations; if some are beyond the end, those before it, one by one."""
        plan, builder = self.schedule.loops[loop], self.builder
        index, extent = self.vector_index(loop), math.prod(e for e in plan.extents if isinstance(e, int))
        assert index is not None, "iterations run in vectors"
        begin = builder.mul(wide(self.code, self.thread), I64(plan.lanes))
        with builder.if_else(builder.icmp_signed("<=", begin, I64(extent - plan.lanes))) as (then, otherwise):
            with then:
                self.run(loop, self.bound(loop, self.thread, None), None, [])
            with otherwise, self.scope(), counted(self.code, Int(self.code, begin), extent) as each:
                self.values.update((one, I64(0)) for one in loop.indices)
                self.values[index] = i64(each.index)
                self.block(loop.body)

    def bound(self, loop: Loop, number: ll.Value, kept: int | None) -> Values:
        """Binds the indices of an iteration, or vector, and emits the loads that need nothing else. Returns the
        values."""
        plan = self.schedule.loops[loop]
        if number.type == I64 and math.prod(e for e in plan.in_vectors if isinstance(e, int)) <= LARGEST:
            number = self.builder.trunc(number, I32)
        with self.scope():
            self.bind(list(zip(loop.indices, plan.in_vectors, strict=True)), number)
            index = self.vector_index(loop)
            if index is not None:
                self.values[index] = self.builder.mul(self.values[index], I64(plan.lanes))
            with self.in_lanes(index, plan.lanes, None):
                for load in loop.body.instructions:
                    if isinstance(load, Load) and load.buffer.mode == "in" and kernel_loops.available(self, load):
                        self._load(loop, load, kept)
            return self.values

    def _load(self, loop: Loop, load: Load, kept: int | None) -> None:
        """Emits a load of a loop's body."""
        self.instruction(load)

    def if_valid(self, condition: ll.Value | None) -> ll.Value | None:
        """Whether this thread may write what it computes under a condition; None: surely."""
        return condition

    def run(self, loop: Loop, values: Values, valid: ll.Value | None, carried: list[ll.Value]) -> list[ll.Value]:
        """Emits the body of an iteration, or a vector of them, whose indices are bound in `values`, and returns what is
        carried after it; what it was, unless it is `valid`."""
        lanes = self.schedule.loops[loop].lanes
        with self.scope(), self.in_lanes(self.vector_index(loop), lanes, None):
            self.values.update(values)
            if loop.kind != "reduction":
                valid = self.if_valid(valid)
                if valid is None:
                    self.block(loop.body)
                    return []
                with self.builder.if_then(valid):
                    self.block(loop.body)
                return []
            terms = [self.code.splat(term, lanes) for term in self.block(loop.body)]
            folded = [self.code.splat(one, lanes) for one in folds.fold(self, loop, carried, terms)]
        if valid is None:
            return folded
        return [self.builder.select(valid, new, old) for new, old in zip(folded, carried, strict=True)]

    def vector_index(self, loop: Loop) -> Register | None:
        dimension = self.schedule.loops[loop].vector
        return None if dimension is None else loop.indices[dimension]

    def address(self, buffer: Buffer, indices: Indices) -> Address:
        found = super().address(buffer, indices)
        if self.vector is None or not found.is_run:
            return found
        place, size = self.analysis.address(buffer, indices), storage_bytes(buffer.dtype)
        zeros = [one for one in place.symbols if _is_zero(self.values.get(one))]  # type: ignore[call-overload]
        most = min(self.lanes, max(1, self.code.target.vector_bytes // size))
        return replace(found, alignment=size * aligned_elements(place, most, {self.vector, *zeros}))

    def _share(self, loop: Loop) -> ll.Value:
        """Returns the number of this thread's iteration of a loop: neighbouring threads have neighbouring iterations of
        the innermost loop that is spread."""
        counts = spread_loops(self.schedule)
        loops, number = list(counts), self.thread
        inside = math.prod(counts[other] for other in loops[loops.index(loop) + 1 :])
        if inside > 1:
            number = self.builder.udiv(number, self.code.like(number, inside))
        whole = loops[0] is loop and self.grid.owners == 1
        return number if whole else self.builder.urem(number, self.code.like(number, counts[loop]))

    def _update(self, update: Update) -> None:
        """Emits an update: an atomic operation, or one that is done by the owner of the element."""
        if self.grid.atomic:
            self._update_atomically(update)
            return
        mine = self._owns(update) if self.grid.owners > 1 else None
        if mine is None:
            super()._update(update)
            return
        with self.builder.if_then(mine):
            super()._update(update)

    def _owns(self, update: Update) -> ll.Value:
        """Whether the element at which an update meets others belongs to this thread."""
        assert self._outermost is not None, "updates are inside the parallel loop"
        builder, owners = self.builder, self.grid.owners
        index = own_index(update.targets[0], self._outermost, nest(self._outermost))
        assert index is not None, "elements have owners"
        place, threads = self.number(index), self.grid.work // owners
        own = builder.udiv(self.thread, self.code.like(self.thread, threads))
        return builder.icmp_unsigned("==", builder.and_(place, I64(owners - 1)), wide(self.code, own))

    def _update_atomically(self, update: Update) -> None:
        assert isinstance(update.combiner, str), "atomic operations have a name"
        for target, term in zip(update.targets, update.values, strict=True):
            place = self.address(target.buffer, target.indices)
            atomics.update(self.code, update.combiner, place, self.value(term))

    def bind(self, dimensions: Sequence[tuple[Register, int | Register]], number: ll.Value) -> None:
        """Binds indices to those of the iteration `number`, in row-major order."""
        builder, rest = self.builder, number
        for position in reversed(range(len(dimensions))):
            index, extent = dimensions[position]
            assert isinstance(extent, int), "extents are numbers where iterations are spread"
            if extent == 1:
                self.values[index] = I64(0)
                continue
            outermost = all(outer == 1 for _, outer in dimensions[:position])
            own = rest if outermost else builder.urem(rest, self.code.like(rest, extent))
            self.values[index] = wide(self.code, own)
            if not outermost:
                rest = builder.udiv(rest, self.code.like(rest, extent))


def wide(code: Code, number: ll.Value) -> ll.Value:
    """Returns a number as an i64, in which indices are computed."""
    return number if number.type == I64 else code.builder.zext(number, I64)


def _is_zero(value: ll.Value | None) -> bool:
    return isinstance(value, ll.Constant) and str(value.constant) == "0"  # type: ignore[union-attr]
