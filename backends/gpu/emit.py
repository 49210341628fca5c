"""Compiles kernels to GPU functions: the emitter that all devices share, with the parallel loop of a kernel distributed
over threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import llvmlite.ir as ll

from trivium.backends.gpu import atomics
from trivium.backends.gpu.attention import FusedAttention
from trivium.backends.gpu.bulk import BulkContraction
from trivium.backends.gpu.contracted import Split
from trivium.backends.gpu.contraction import TiledContraction
from trivium.backends.gpu.dialect import WARP, WARPGROUP, Dialect
from trivium.backends.gpu.plan import Launched
from trivium.backends.gpu.producers import ProducerContraction
from trivium.backends.gpu.schedule import Grid, grid, parallel_loop, spread_loops
from trivium.backends.gpu.shared_launch import Bodies
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.gpu.team import Team
from trivium.backends.gpu.tensor import TensorContraction
from trivium.backends.gpu.tensor_attention import TensorAttention
from trivium.backends.gpu.tensor_maps import View, tensor_maps, views
from trivium.backends.gpu.tiles import instruction, warpgroup_instruction
from trivium.backends.gpu.updates import nest, own_index
from trivium.backends.gpu.warpgroup import WarpgroupContraction
from trivium.backends.gpu.warpgroup_attention import WarpgroupAttention
from trivium.backends.llvm import kernel_loops
from trivium.backends.llvm.code import I1, I8, I32, I64, Code
from trivium.backends.llvm.emitter import Emitter
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import Int, Number, i64
from trivium.backends.llvm.workspace import Workspace, WorkspaceSize
from trivium.compiler.kernel.affine import Analysis, accesses
from trivium.compiler.kernel.contraction_nest import sum_of
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Block, Buffer, Instruction, Loop, Register, Scratch, Store, Update
from trivium.compiler.schedule import Schedule, Unit

LARGEST = (1 << 31) - 1


def emit_kernel(
    module: ll.Module,
    name: str,
    kernel: Kernel,
    schedule: Schedule,
    dialect: Dialect,
    target: GpuTarget,
    analysis: Analysis,
    size: WorkspaceSize,
    fast: bool = False,
) -> tuple[Launched, ...]:
    """Defines `void name(ptr, ..., ptr)`: one pointer for each parameter of `kernel`, the workspace, of which the
    launch needs `size`, and the counters; then descriptions of arrays. Returns the launches: two if several blocks
    share a row, where the second one folds what the first one has left."""
    launches, found = [], _views(kernel, schedule)
    for suffix, threads, partial in _launches(kernel, schedule, size, grid(kernel, schedule)):
        function = dialect.define(module, name + suffix, len(kernel.params) + 2, threads.threads, len(found))
        code = Code(ll.IRBuilder(function.append_basic_block("entry")), target, fast)
        _fill(code, kernel, schedule, dialect, analysis, size, threads, partial)
        maps = tensor_maps(kernel, tuple(found.values()), threads.tile)
        launches.append(Launched(function.name, threads.blocks, threads.threads, function.granted, maps))
    return tuple(launches)


def emit_bodies(
    module: ll.Module,
    name: str,
    kernel: Kernel,
    schedule: Schedule,
    dialect: Dialect,
    target: GpuTarget,
    analysis: Analysis,
    threads: int,
    fast: bool = False,
) -> Bodies:
    """Defines the functions that do the work of a block of `threads` threads, for a launch that other kernels share."""
    size, launches, arrays = WorkspaceSize(target.stack_bytes), [], _views(kernel, schedule)
    for suffix, found, partial in _launches(kernel, schedule, size, _with_blocks_of(threads, grid(kernel, schedule))):
        body = dialect.body(module, name + suffix, len(kernel.params) + 2, len(arrays))
        code = Code(ll.IRBuilder(body.append_basic_block("entry")), target, fast)
        _fill(code, kernel, schedule, dialect, analysis, size, found, partial)
        launches.append((body, found.blocks))
    whole = grid(kernel, schedule)
    maps = tensor_maps(kernel, tuple(arrays.values()), whole.tile)
    return Bodies(tuple(launches), size.nbytes, whole.counters, maps)


def _views(kernel: Kernel, schedule: Schedule) -> dict[str, View]:
    """Returns the operands of which the device itself copies pieces, by the roles of their loops."""
    loop = parallel_loop(kernel)
    if kernel.contraction is None or loop is None:
        return {}
    return views(kernel.contraction, schedule.loops[loop])


def _with_blocks_of(threads: int, found: Grid) -> Grid:
    if found.tile:
        assert found.threads == threads, "blocks that compute a tile keep their size"
        return found
    if found.shared:
        return replace(found, threads=threads)
    return replace(found, blocks=-(-found.work // threads), threads=threads)


def _launches(
    kernel: Kernel, schedule: Schedule, size: WorkspaceSize, threads: Grid
) -> list[tuple[str, Grid, Partial | None]]:
    """Returns the launches of a kernel: the ends of their names, their threads, and what they leave one another."""
    if threads.parts == 1:
        return [("", threads, None)]
    offset, each = size.nbytes, threads.tile**2 if threads.tile else sum(len(loop.inits) for loop in schedule.loops)
    size.nbytes += threads.blocks * PARTIAL_BYTES * each
    if threads.tile:
        return [("", threads, Partial(offset, threads.parts, False))]
    rest = replace(threads, blocks=threads.blocks // threads.parts)
    parts, whole = (Partial(offset, threads.parts, last) for last in (False, True))
    return [("_parts", threads, parts), ("_whole", rest, whole)]


def _fill(
    code: Code,
    kernel: Kernel,
    schedule: Schedule,
    dialect: Dialect,
    analysis: Analysis,
    size: WorkspaceSize,
    threads: Grid,
    partial: Partial | None,
) -> None:
    """Emits the work of one launch into its function."""
    builder = code.builder
    workspace, counters = builder.function.args[len(kernel.params) :][:2]
    buffers = dict(zip(kernel.params, builder.function.args, strict=False))
    place = _Place(code, dialect, threads, size, buffers, workspace, counters, partial)
    if threads.tile:
        _tile(kernel, schedule, place)
    elif threads.threads > 1 and parallel_loop(kernel) is None:
        with builder.if_then(builder.icmp_unsigned("==", dialect.thread(code), I32(0))):
            place.emitter(analysis, schedule).block(kernel.body)
    else:
        place.emitter(analysis, schedule).block(kernel.body)
    builder.ret_void()


PARTIAL_BYTES = 8
"""The bytes of one value in the workspace: of any type."""


@dataclass(frozen=True)
class Partial:
    """The results of the `parts` blocks that share a row or a tile: from `offset` on in the workspace. `whole`: the
    launch is the one that folds those of a row."""

    offset: int
    parts: int
    whole: bool


@dataclass
class _Place:
    """Where code is emitted, and what it refers to."""

    code: Code
    dialect: Dialect
    grid: Grid
    size: WorkspaceSize
    buffers: dict[Buffer, ll.Value]
    pointer: ll.Value
    counters: ll.Value
    partial: Partial | None

    def workspace(self) -> Workspace:
        """Returns scratch memory of each thread's own."""
        grid = self.grid
        participants = grid.blocks * grid.threads if grid.shared or grid.tile else grid.work
        number = _wide(self.code, _thread(self.code, self.dialect, grid))
        return Workspace(self.pointer, self.size, participants, number)

    def emitter(self, analysis: Analysis, schedule: Schedule) -> GpuEmitter:
        """Returns what emits the kernel's body."""
        code, dialect, grid = self.code, self.dialect, self.grid
        operands = code, analysis, schedule, self.buffers, self.workspace()
        if not grid.shared:
            return GpuEmitter(*operands, _thread(code, dialect, grid), grid)
        team = Team(code, dialect, grid.threads, dialect.thread(code))
        if self.partial is None:
            return RowEmitter(*operands, dialect.block(code), grid, team=team, dialect=dialect)
        kind = WholeEmitter if self.partial.whole else PartEmitter
        own = code.builder.udiv(dialect.block(code), I32(grid.blocks // grid.work))
        return kind(*operands, own, grid, team=team, dialect=dialect, partial=self.partial, pointer=self.pointer)


def _tile(kernel: Kernel, schedule: Schedule, place: _Place) -> None:
    """Emits a tile of a contraction, or of attention."""
    code, dialect, workspace = place.code, place.dialect, place.workspace()

    def emitter(analysis: Analysis, schedule: Schedule) -> Emitter:
        return Emitter(code, analysis, schedule, place.buffers, workspace)

    if kernel.attention is not None:
        kinds = {0: FusedAttention, WARP: TensorAttention, WARPGROUP: WarpgroupAttention}
        kind = kinds[place.grid.matrix]
        kind(kernel.attention, code, dialect, place.grid.tile, emitter).emit(dialect.block(code))
        return
    assert kernel.contraction is not None, "a contraction is marked"
    operands = kernel.contraction, code, dialect, dialect.thread(code), place.grid.tile, emitter
    split, block = _split(kernel, schedule, place), dialect.block(code)
    threads = place.grid.threads - place.grid.producers
    if not place.grid.matrix:
        TiledContraction(*operands).emit(block, threads, split)
        return
    assert isinstance(code.target, GpuTarget), "code for a GPU"
    by_four = place.grid.matrix == WARPGROUP
    choose, kind = (warpgroup_instruction, WarpgroupContraction) if by_four else (instruction, TensorContraction)
    found = choose(kernel.contraction, code.target)
    assert found is not None, "the schedule has found an instruction"
    facts: dict[str, Any] = {"instruction": found, "threads": threads}
    if copied := _views(kernel, schedule):
        maps = code.builder.function.args[len(kernel.params) + 2 :]
        pairs = zip(copied.values(), maps, strict=False)
        kind = ProducerContraction if place.grid.producers else BulkContraction
        facts["views"] = dict(zip(copied, pairs, strict=True))
    kind(*operands, **facts).emit(block, threads, split)


def _split(kernel: Kernel, schedule: Schedule, place: _Place) -> Split | None:
    """Returns how blocks share a tile, if they do."""
    total = sum_of(kernel)
    mapping = schedule.loops[total].mapping(Unit.GRID) if total is not None else None
    if place.partial is None or mapping is None:
        return None
    pointer = place.code.builder.gep(place.pointer, [I64(place.partial.offset)], source_etype=I8)
    return Split(place.partial.parts, mapping.size, pointer, place.counters)


def _thread(code: Code, dialect: Dialect, threads: Grid) -> ll.Value:
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
        with self.scope():
            number = self.thread if self.grid.shared else self._share(loop)
            self.bind([(loop.indices[d], schedule.extents[d]) for d in spread.dimensions], number)
            pairs = enumerate(zip(loop.indices, schedule.extents, strict=True))
            inner = [pair for dimension, pair in pairs if dimension not in spread.dimensions]
            kernel_loops.nest(self, inner, [], lambda _: self.block(loop.body))

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
        return builder.icmp_unsigned("==", builder.and_(place, I64(owners - 1)), _wide(self.code, own))

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
            self.values[index] = _wide(self.code, own)
            if not outermost:
                rest = builder.udiv(rest, self.code.like(rest, extent))


class RowEmitter(GpuEmitter):
    """Emits blocks for the threads of `team`, which share the iteration that has the number `thread`."""

    def __init__(self, *operands: Any, team: Team, dialect: Dialect):
        super().__init__(*operands)
        self.team, self.dialect = team, dialect
        self._alone = False
        """Whether what is emitted now is one thread's own."""

    def instruction(self, instruction: Instruction) -> None:
        if self._alone or isinstance(instruction, Loop):
            super().instruction(instruction)
            return
        if isinstance(instruction, Scratch):
            self.buffers[instruction.buffer] = self.dialect.shared(self.code, max(1, instruction.buffer.nbytes))
            return
        if isinstance(instruction, Store):
            self.team.uses(instruction)
            with self.builder.if_then(self.builder.icmp_unsigned("==", self.team.thread, I32(0))):
                super().instruction(instruction)
            return
        self.team.uses(*accesses(Block(instructions=[instruction])))
        super().instruction(instruction)

    def loop(self, loop: Loop) -> None:
        """Emits a loop, or, if the threads of the block share it, this thread's iterations."""
        if self.schedule.loops[loop].mapping(Unit.BLOCK) is None:
            super().loop(loop)
            return
        self.team.uses(*accesses(loop.body))
        self._alone = True
        carried = self._shared(loop)
        self._alone = False
        if loop.kind == "reduction":
            self.fold(loop, self.team.folded(carried, lambda a, b: kernel_loops.fold(self, loop, a, b)))

    def fold(self, loop: Loop, totals: list[ll.Value]) -> None:
        """Makes a reduction's results known, of which all threads have the fold of the terms."""
        results = kernel_loops.fold(self, loop, [self.value(init) for init in loop.inits], totals)
        self.values.update(zip(loop.carried, results, strict=True))

    def _shared(self, loop: Loop) -> list[ll.Value]:
        """Emits this thread's iterations, each a block's size after the one before, and returns what they fold to."""
        extents, code = self.schedule.loops[loop].extents, self.code
        total = math.prod(extent for extent in extents if isinstance(extent, int))
        inits = kernel_loops.starts(self, loop) if loop.kind == "reduction" else []
        begin, end = self.range(loop, total)
        own = Int(code, code.iadd(_wide(code, self.team.thread), i64(begin)))
        with counted(code, own, end, self.team.size, inits) as each, self.scope():
            number = i64(each.index)
            if total <= LARGEST:
                number = self.builder.trunc(number, I32)
            self.bind(list(zip(loop.indices, extents, strict=True)), number)
            terms = self.block(loop.body)
            each.next = kernel_loops.fold(self, loop, each.carried, terms) if loop.kind == "reduction" else []
        return each.carried

    def range(self, loop: Loop, total: int) -> tuple[Number, Number]:
        """Returns the iterations that are the block's, of `total`."""
        return 0, total


class _SplitEmitter(RowEmitter):
    """Emits one of the two launches in which several blocks share a row."""

    def __init__(self, *operands: Any, partial: Partial, pointer: ll.Value, **words: Any):
        super().__init__(*operands, **words)
        self.partial, self.pointer = partial, pointer

    def place(self, position: int, part: ll.Value) -> ll.Value:
        """Returns where a part's value number `position` is."""
        builder, parts = self.builder, self.partial.parts
        first = builder.mul(self.thread, I32(parts))
        at = _wide(self.code, builder.add(builder.add(first, part), I32(position * self.grid.work * parts)))
        offset = builder.add(builder.mul(at, I64(PARTIAL_BYTES)), I64(self.partial.offset))
        return builder.gep(self.pointer, [offset], source_etype=I8)


class PartEmitter(_SplitEmitter):
    """Emits the first launch: each block stores what its share of the row folds to."""

    _done: bool = False

    def instruction(self, instruction: Instruction) -> None:
        if self._alone or not self._done:
            super().instruction(instruction)

    def range(self, loop: Loop, total: int) -> tuple[Number, Number]:
        spread = self.schedule.loops[loop].mapping(Unit.GRID)
        assert spread is not None, "blocks share the row"
        begin = self.builder.mul(_wide(self.code, self._part()), I64(spread.size))
        end = self.builder.add(begin, I64(spread.size))
        beyond = self.builder.icmp_signed(">", end, I64(total))
        return Int(self.code, begin), Int(self.code, self.builder.select(beyond, I64(total), end))

    def fold(self, loop: Loop, totals: list[ll.Value]) -> None:
        with self.builder.if_then(self.builder.icmp_unsigned("==", self.team.thread, I32(0))):
            for position, total in enumerate(totals):
                stored = self.builder.zext(total, I8) if total.type == I1 else total
                self.builder.store(stored, self.place(position, self._part()))
        self._done = True

    def _part(self) -> ll.Value:
        return self.builder.urem(self.dialect.block(self.code), I32(self.partial.parts))


class WholeEmitter(_SplitEmitter):
    """Emits the second launch: one block for each row folds what the blocks have stored, and does the rest."""

    def _shared(self, loop: Loop) -> list[ll.Value]:
        code, starts = self.code, kernel_loops.starts(self, loop)
        own = Int(code, _wide(code, self.team.thread))
        with counted(code, own, self.partial.parts, self.team.size, starts) as each, self.scope():
            part = self.builder.trunc(i64(each.index), I32)
            terms = [self._loaded(position, part, start.type) for position, start in enumerate(starts)]
            each.next = kernel_loops.fold(self, loop, each.carried, terms)
        return each.carried

    def _loaded(self, position: int, part: ll.Value, kind: ll.Type) -> ll.Value:
        value = self.builder.load(self.place(position, part), typ=I8 if kind == I1 else kind)
        return self.builder.trunc(value, I1) if kind == I1 else value


def _wide(code: Code, number: ll.Value) -> ll.Value:
    """Returns a number as an i64, in which indices are computed."""
    return number if number.type == I64 else code.builder.zext(number, I64)
