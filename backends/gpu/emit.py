"""Compiles kernels to functions of a GPU: the walk that all devices share, in which the parallel loop of a kernel is
spread over threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ll

from trivium.backends.gpu.contraction import TiledContraction
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.schedule import Grid, grid
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.gpu.team import Team
from trivium.backends.llvm import kernel_loops
from trivium.backends.llvm.code import I32, I64, Code
from trivium.backends.llvm.emitter import Emitter
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.numbers import Int, i64
from trivium.backends.llvm.workspace import Workspace, WorkspaceSize
from trivium.compiler.kernel.affine import Analysis, accesses
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Block, Buffer, Instruction, Loop, Register, Scratch, Store
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
) -> Grid:
    """Defines `void name(ptr, ..., ptr)`: one pointer for each parameter of `kernel`, and the workspace, of which the
    launch needs `size`. Returns the threads of a launch."""
    threads = grid(kernel, schedule)
    function = dialect.define(module, name, len(kernel.params) + 1, threads.threads)
    builder = ll.IRBuilder(function.append_basic_block("entry"))
    code = Code(builder, target, fast)
    buffers = dict(zip(kernel.params, function.args, strict=False))
    place = _Place(code, dialect, threads, size, buffers, function.args[-1])
    if threads.tile:
        _tile(kernel, place)
    else:
        place.emitter(analysis, schedule).block(kernel.body)
    builder.ret_void()
    return threads


@dataclass
class _Place:
    """Where code is emitted, and what it refers to."""

    code: Code
    dialect: Dialect
    grid: Grid
    size: WorkspaceSize
    buffers: dict[Buffer, ll.Value]
    pointer: ll.Value

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
        return RowEmitter(*operands, dialect.block(code), grid, team=team, dialect=dialect)


def _tile(kernel: Kernel, place: _Place) -> None:
    """Emits a tile of a contraction."""
    code, dialect, workspace = place.code, place.dialect, place.workspace()

    def emitter(analysis: Analysis, schedule: Schedule) -> Emitter:
        return Emitter(code, analysis, schedule, place.buffers, workspace)

    tiled = TiledContraction(kernel, code, dialect, dialect.thread(code), place.grid.tile, emitter)
    tiled.emit(dialect.block(code))


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

    def loop(self, loop: Loop) -> None:
        """Emits a loop, or, if its iterations are spread over the grid, those of this thread."""
        if self.schedule.loops[loop].mapping(Unit.GRID) is None:
            super().loop(loop)
            return
        builder = self.builder
        if self.grid.shared or self.grid.work == self.grid.blocks * self.grid.threads:
            self._iteration(loop)
            return
        with builder.if_then(builder.icmp_unsigned("<", self.thread, self.code.like(self.thread, self.grid.work))):
            self._iteration(loop)

    def _iteration(self, loop: Loop) -> None:
        """Emits the iteration of the spread dimensions that belongs to this thread, and all of the others."""
        schedule = self.schedule.loops[loop]
        spread = schedule.mapping(Unit.GRID)
        assert spread is not None, "the loop is spread over the grid"
        with self.scope():
            self.bind([(loop.indices[d], schedule.extents[d]) for d in spread.dimensions], self.thread)
            pairs = enumerate(zip(loop.indices, schedule.extents, strict=True))
            inner = [pair for dimension, pair in pairs if dimension not in spread.dimensions]
            kernel_loops.nest(self, inner, [], lambda _: self.block(loop.body))

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
            totals = self.team.folded(carried, lambda a, b: kernel_loops.fold(self, loop, a, b))
            results = kernel_loops.fold(self, loop, [self.value(init) for init in loop.inits], totals)
            self.values.update(zip(loop.carried, results, strict=True))

    def _shared(self, loop: Loop) -> list[ll.Value]:
        """Emits this thread's iterations, each a block's size after the one before, and returns what they fold to."""
        extents, code = self.schedule.loops[loop].extents, self.code
        total = math.prod(extent for extent in extents if isinstance(extent, int))
        inits = kernel_loops.starts(self, loop) if loop.kind == "reduction" else []
        own = Int(code, _wide(code, self.team.thread))
        with counted(code, own, total, self.team.size, inits) as each, self.scope():
            number = i64(each.index)
            if total <= LARGEST:
                number = self.builder.trunc(number, I32)
            self.bind(list(zip(loop.indices, extents, strict=True)), number)
            terms = self.block(loop.body)
            each.next = kernel_loops.fold(self, loop, each.carried, terms) if loop.kind == "reduction" else []
        return each.carried


def _wide(code: Code, number: ll.Value) -> ll.Value:
    """Returns a number as an i64, in which indices are computed."""
    return number if number.type == I64 else code.builder.zext(number, I64)
