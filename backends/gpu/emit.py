"""Compiles kernels to GPU functions: the emitter that all devices share, with the parallel loop of a kernel distributed
over threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import llvmlite.ir as ll

from trivium.backends.gpu import operand_copies
from trivium.backends.gpu.aligned import AlignedEmitter
from trivium.backends.gpu.attention import FusedAttention
from trivium.backends.gpu.bulk import BulkContraction
from trivium.backends.gpu.contracted import Split
from trivium.backends.gpu.contraction import TiledContraction
from trivium.backends.gpu.dialect import GLOBAL_POINTER, WARP, WARPGROUP, Dialect
from trivium.backends.gpu.half_warp_attention import HalfWarpAttention
from trivium.backends.gpu.persistent import PersistentContraction
from trivium.backends.gpu.pipelined import PipelinedContraction
from trivium.backends.gpu.plan import Launched
from trivium.backends.gpu.producers import ProducerContraction
from trivium.backends.gpu.row_emitter import RowEmitter
from trivium.backends.gpu.schedule import Grid, grid, parallel_loop
from trivium.backends.gpu.shared_launch import Bodies
from trivium.backends.gpu.split_rows import PARTIAL_BYTES, PartEmitter, Partial, WholeEmitter
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.gpu.team import Team
from trivium.backends.gpu.tensor import TensorContraction
from trivium.backends.gpu.tensor_attention import TensorAttention
from trivium.backends.gpu.tensor_chain import TensorChain, WarpgroupChain
from trivium.backends.gpu.tensor_maps import Boxed, View, tensor_maps, views
from trivium.backends.gpu.thread_emitter import GpuEmitter, number_of, wide
from trivium.backends.gpu.tiles import in_half_warps, instruction, pipeline, warpgroup_instruction
from trivium.backends.gpu.turned import TurnedContraction
from trivium.backends.gpu.warpgroup import WarpgroupContraction
from trivium.backends.gpu.warpgroup_attention import WarpgroupAttention
from trivium.backends.llvm.code import I8, I32, I64, Code
from trivium.backends.llvm.emitter import Emitter
from trivium.backends.llvm.workspace import Workspace, WorkspaceSize
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.chained import Chained
from trivium.compiler.kernel.contraction_nest import sum_of
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Buffer
from trivium.compiler.schedule import Schedule, Unit


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
    found = _views(kernel, schedule)
    launches = _copies(
        module,
        name,
        kernel,
        dialect,
        target,
        size,
        [one for one in found.values() if isinstance(one, View) and one.source],
    )
    for suffix, threads, partial in _launches(kernel, schedule, size, grid(kernel, schedule)):
        function = dialect.define(module, name + suffix, len(kernel.params) + 2, threads.threads, len(found))
        code = Code(ll.IRBuilder(function.append_basic_block("entry")), target, fast)
        _fill(code, kernel, schedule, dialect, analysis, size, threads, partial)
        maps = tensor_maps(kernel, tuple(found.values()), threads.sides)
        launches.append(Launched(function.name, threads.blocks, threads.threads, function.granted, maps))
    return tuple(launches)


def _copies(
    module: ll.Module,
    name: str,
    kernel: Kernel,
    dialect: Dialect,
    target: GpuTarget,
    size: WorkspaceSize,
    found: Sequence[View],
) -> list[Launched]:
    """Defines the kernels that copy operands to the workspace, and returns their launches."""
    launches = []
    for number, view in enumerate(found):
        function = dialect.define(module, f"{name}_copy{number}", len(kernel.params) + 2, operand_copies.THREADS)
        code = Code(ll.IRBuilder(function.append_basic_block("entry")), target)
        pointers = function.args[kernel.params.index(view.access.buffer)], function.args[len(kernel.params)]
        copy = code.builder.gep(pointers[1], [I64(view.offset * view.size)], source_etype=I8)
        copy.type = GLOBAL_POINTER
        operand_copies.OperandCopy(view, code, dialect, pointers[0], copy).emit(dialect.block(code))
        code.builder.ret_void()
        blocks = operand_copies.blocks(view)
        launches.append(Launched(function.name, blocks, operand_copies.THREADS, function.granted))
        size.nbytes = max(size.nbytes, (view.offset + view.elements) * view.size)
    return launches


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
    maps = tensor_maps(kernel, tuple(arrays.values()), whole.sides)
    return Bodies(tuple(launches), size.nbytes, whole.counters, maps)


def _views(kernel: Kernel, schedule: Schedule) -> dict[str, Boxed]:
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
    each = threads.tile * threads.width if threads.tile else sum(len(loop.inits) for loop in schedule.loops)
    offset = -(-size.nbytes // PARTIAL_ALIGNMENT) * PARTIAL_ALIGNMENT
    size.nbytes = offset + (threads.shares or threads.blocks) * threads.beside * PARTIAL_BYTES * each
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


PARTIAL_ALIGNMENT = 16
"""The bytes of partial results that are read at once."""


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
        number = wide(self.code, number_of(self.code, self.dialect, grid))
        return Workspace(self.pointer, self.size, participants, number)

    def emitter(self, analysis: Analysis, schedule: Schedule) -> GpuEmitter:
        """Returns what emits the kernel's body."""
        code, dialect, grid = self.code, self.dialect, self.grid
        operands = code, analysis, schedule, self.buffers, self.workspace()
        if not grid.shared:
            return GpuEmitter(*operands, number_of(code, dialect, grid), grid)
        own = dialect.block(code)
        if self.partial is not None:
            own = code.builder.udiv(own, I32(grid.blocks // -(-grid.work // grid.beside)))
        team, own, valid = self._team(own)
        facts: dict[str, Any] = {"dialect": dialect, "team": team, "valid": valid}
        if self.partial is None:
            return RowEmitter(*operands, own, grid, **facts)
        kind = WholeEmitter if self.partial.whole else PartEmitter
        return kind(*operands, own, grid, **facts, partial=self.partial, pointer=self.pointer)

    def _team(self, group: ll.Value) -> tuple[Team, ll.Value, ll.Value | None]:
        """Returns this thread's team, the number of its iteration, in a group of those of one block, and whether there
        is one, unless there surely is."""
        grid, builder, thread = self.grid, self.code.builder, self.dialect.thread(self.code)
        beside, size = grid.beside, grid.threads // grid.beside
        if beside == 1:
            return Team(self.code, self.dialect, size, thread), group, None
        run = I32(beside if grid.columns else size)
        number, place = builder.urem(thread, run), builder.udiv(thread, run)
        if grid.columns:
            number, place = place, number
        own, valid = builder.add(builder.mul(group, I32(beside)), place), None
        if grid.work % beside:
            valid = builder.icmp_unsigned("<", own, I32(grid.work))
            own = builder.select(valid, own, I32(grid.work - 1))
        return Team(self.code, self.dialect, size, number, beside, place, grid.columns), own, valid


def _tile(kernel: Kernel, schedule: Schedule, place: _Place) -> None:
    """Emits a tile of a contraction, or of attention."""
    code, dialect, workspace = place.code, place.dialect, place.workspace()

    def emitter(analysis: Analysis, schedule: Schedule) -> Emitter:
        return AlignedEmitter(code, analysis, schedule, place.buffers, workspace)

    if kernel.attention is not None:
        assert isinstance(code.target, GpuTarget), "code for a GPU"
        plain = HalfWarpAttention if in_half_warps(kernel.attention, code.target) else FusedAttention
        kinds: dict[int, Any] = {0: plain, WARP: TensorAttention, WARPGROUP: WarpgroupAttention}
        if isinstance(kernel.attention, Chained):
            kinds = {WARP: TensorChain, WARPGROUP: WarpgroupChain}
        kind = kinds[place.grid.matrix]
        kind(kernel.attention, code, dialect, place.grid.tile, emitter).emit(dialect.block(code))
        return
    assert kernel.contraction is not None, "a contraction is marked"
    operands = kernel.contraction, code, dialect, dialect.thread(code), place.grid.tile, emitter
    split, block = _split(kernel, schedule, place), dialect.block(code)
    threads = place.grid.threads - place.grid.producers
    if not place.grid.matrix:
        if place.grid.shape is None:
            TiledContraction(*operands).emit(block, threads, split)
        else:
            PipelinedContraction(*operands, shape=place.grid.shape).emit(block, threads, split)
        return
    assert isinstance(code.target, GpuTarget), "code for a GPU"
    by_four = place.grid.matrix == WARPGROUP
    choose, kind = (warpgroup_instruction, WarpgroupContraction) if by_four else (instruction, TensorContraction)
    found = choose(kernel.contraction, code.target)
    assert found is not None, "the schedule has found an instruction"
    facts: dict[str, Any] = {"instruction": found, "threads": threads}
    work = pipeline(place.grid.tile, place.grid.width)
    if by_four:
        facts |= {"columns": place.grid.width, "stages": work.stages}
    if copied := _views(kernel, schedule):
        maps = code.builder.function.args[len(kernel.params) + 2 :]
        pairs = zip(copied.values(), maps, strict=False)
        facts["views"] = dict(zip(copied, pairs, strict=True))
        kind = BulkContraction
        if place.grid.producers:
            facts |= {"blocks": place.grid.blocks, "resident": work.resident}
            kind = PersistentContraction if work.persistent else ProducerContraction
            kind = kind if all(one.fits for one in copied.values()) else TurnedContraction
    kind(*operands, **facts).emit(block, threads, split)


def _split(kernel: Kernel, schedule: Schedule, place: _Place) -> Split | None:
    """Returns how blocks share a tile, if they do."""
    total = sum_of(kernel)
    mapping = schedule.loops[total].mapping(Unit.GRID) if total is not None else None
    if place.partial is None or mapping is None:
        return None
    pointer = place.code.builder.gep(place.pointer, [I64(place.partial.offset)], source_etype=I8)
    return Split(place.partial.parts, mapping.size, pointer, place.counters)
