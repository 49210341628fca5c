"""Compiles kernels to CPU functions: the emitter that all devices share, with loops that can also be split over
threads."""

from __future__ import annotations

import functools

import llvmlite.ir as ll

from trivium.backends.cpu import prefetching, row_requests, shared_sort, threads
from trivium.backends.cpu.schedule import sort_cost
from trivium.backends.cpu.target import CpuTarget
from trivium.backends.llvm.code import POINTER, Code
from trivium.backends.llvm.emitter import Emitter
from trivium.backends.llvm.workspace import Workspace, WorkspaceSize
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.contraction_nest import sums_of
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Loop
from trivium.compiler.schedule import LoopSchedule, Schedule, Unit


def emit_kernel(
    module: ll.Module,
    name: str,
    kernel: Kernel,
    schedule: Schedule,
    target: CpuTarget,
    analysis: Analysis,
    size: WorkspaceSize,
    fast: bool = False,
) -> ll.Function:
    """Defines `void name(ptr, ..., ptr)`: one pointer for each parameter of `kernel`, and the workspace, of which it
    needs `size`."""
    function = ll.Function(module, ll.FunctionType(ll.VoidType(), [POINTER] * (len(kernel.params) + 1)), name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    builder = ll.IRBuilder(function.append_basic_block("entry"))
    buffers = dict(zip(kernel.params, function.args, strict=False))
    workspace = Workspace(function.args[-1], size)
    emitter = CpuEmitter(Code(builder, target, fast), analysis, schedule, buffers, workspace)
    emitter.sums_of_products = sums_of(kernel)
    emitter.block(kernel.body)
    builder.ret_void()
    return function


class CpuEmitter(Emitter):
    """Emits blocks for one of several threads."""

    @functools.cached_property
    def requests(self) -> dict[Loop, list[row_requests.Request]]:
        return {}

    def loop(self, loop: Loop) -> None:
        """Emits a loop, or, if the schedule splits it over threads, the call of the runtime that does."""
        if self.schedule.loops[loop].mapping(Unit.THREADS):
            threads.emit_split(self, loop)
        else:
            super().loop(loop)

    def before(self, loop: Loop, schedule: LoopSchedule) -> None:
        """Requests memory that a later iteration needs, or decides which of the loops inside does so."""
        prefetching.emit(self, loop, schedule)
        self.requests |= row_requests.find(self, loop, schedule)

    def beside(self, loop: Loop) -> None:
        """Requests memory that later loops need."""
        row_requests.emit(self, self.requests.get(loop, []))

    def is_awaited(self, loop: Loop) -> bool:
        """Whether memory takes in time what a loop writes."""
        return row_requests.are_written_in_time(self, loop, self.requests)

    def sort_keys(self, bits: int, keys: ll.Value, spare: ll.Value, count: int) -> None:
        """Emits a sort, which threads share if there is enough to do."""
        if self.code.target.threads > 1 and sort_cost(count) >= self.code.target.wake_cost:
            shared_sort.emit(self.code, bits, keys, spare, count)
        else:
            super().sort_keys(bits, keys, spare, count)
