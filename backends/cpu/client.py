"""The CPU as a PJRT client. Its memory is the host's, so buffers are NumPy arrays, and execution has finished when a
call returns."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from trivium.backends import native
from trivium.backends.artifacts import find_or_make
from trivium.backends.cpu.executable import CpuExecutable, whole
from trivium.backends.cpu.packed import constants_of
from trivium.backends.cpu.target import CpuTarget, host, level, machine_of
from trivium.backends.parts import PartedExecutable
from trivium.backends.pjrt import Buffer, Device, LoadedExecutable, Memory
from trivium.backends.specializing import SpecializingExecutable
from trivium.backends.staged import StagedExecutable, stage_text
from trivium.backends.timeline import Timeline
from trivium.compiler import driver
from trivium.compiler.artifact import Artifact, lacking, require_machine
from trivium.compiler.driver import CompileOptions, DynamicModule
from trivium.compiler.stages import DEFAULT, Stages
from trivium.ir.arrays import as_array
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.func import Module

if TYPE_CHECKING:
    from trivium.compiler.program import Program


class Done:
    """The event of an operation that has already finished."""

    def is_ready(self) -> bool:
        return True

    def wait(self) -> None:
        return None


@dataclass(frozen=True)
class CpuMemory:
    """The host's memory."""

    device: CpuDevice
    kind: str = "unpinned_host"


@dataclass(frozen=True)
class CpuDevice:
    """All processors of this machine, as one device."""

    client: CpuClient
    id: int = 0

    @property
    def kind(self) -> str:
        target = host()
        return f"{target.cpu}, {native.num_threads()} threads, {target.vector_bytes * 8}-bit vectors"

    @property
    def default_memory(self) -> CpuMemory:
        return CpuMemory(self)


class CpuBuffer:
    """An array in the host's memory."""

    def __init__(self, array: np.ndarray, memory: Memory):
        self._array: np.ndarray | None = array
        self.memory = memory
        self.ready = Done()

    @property
    def dtype(self) -> np.dtype:
        return self.to_numpy().dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.to_numpy().shape

    def to_numpy(self) -> np.ndarray:
        if self._array is None:
            raise ExecutionError("the buffer has been deleted")
        return self._array

    def delete(self) -> None:
        self._array = None


class CpuClient:
    """This process's processors."""

    platform_name = "cpu"

    def __init__(self) -> None:
        self.devices: Sequence[CpuDevice] = (CpuDevice(self),)

    @property
    def platform_version(self) -> str:
        return f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, llvm.llvm_version_info))}"

    def compile(self, module: Module, options: CompileOptions = DEFAULT) -> LoadedExecutable:
        """Compiles a module's `main` to machine code."""
        return driver.compile(module, self, options)

    def target(self, options: CompileOptions) -> CpuTarget:
        """Returns this processor, with as many threads as requested, but no more than the runtime has; or the one that
        is requested by name, which may have more."""
        available = native.num_threads()
        if options.target:
            return _requested(options).with_threads(min(options.threads or available, native.MAX_THREADS))
        return host().with_threads(available if options.threads is None else max(1, min(options.threads, available)))

    def artifact(self, stages: Stages) -> Artifact:
        """Returns machine code for a module, as data, which an earlier process may have made."""
        return find_or_make(stages, self._assemble)

    def _assemble(self, stages: Stages) -> Artifact:
        from trivium.backends.cpu.assembly import assemble

        return assemble(stages, _target(stages))

    def load(self, artifact: Artifact, stages: Stages | None = None) -> LoadedExecutable:
        """Returns an artifact ready to run. An artifact that is not whole takes constants from the module that it was
        made from; without that module, no stage of the compilation can be printed."""
        here = machine_of(host())
        if stages is not None and stages.options.target and lacking(artifact.machine, here):
            return StoredExecutable(artifact, stages, self.devices[0])
        require_machine(artifact, here)
        runtime, own = artifact.runtime, native.VERSION
        if runtime != own:
            raise Error(f"{artifact.name} was compiled for version {runtime} of the native runtime, and this is {own}")
        if stages is None and not artifact.is_whole:
            raise Error(f"{artifact.name} needs the module that it was compiled from: it does not embed its constants")
        return CpuLoadedExecutable(artifact, stages, self.devices[0])

    def stage(self, stages: Stages, name: str) -> str:
        """Returns one of `STAGES` as text, without machine code to run."""
        return stage_text(stages, name, _llvm, _assembly)

    def load_program(self, program: Program, options: CompileOptions = DEFAULT) -> CpuLoadedExecutable:
        """Returns an executable of a program that was made without a module."""
        from trivium.backends.cpu.assembly import assemble_program

        target = self.target(options)
        artifact = assemble_program(program, target, options)
        return CpuLoadedExecutable(artifact, Stages.of_program(program, target, options), self.devices[0])

    def load_dynamic(self, dynamic: DynamicModule[LoadedExecutable]) -> LoadedExecutable:
        """Returns an executable that compiles for the shapes of each call."""
        return SpecializingExecutable(dynamic, self.devices[0])

    def load_parts(
        self, module: Module, first: LoadedExecutable, rest: LoadedExecutable, passed: Sequence[int]
    ) -> LoadedExecutable:
        """Returns an executable that runs two others."""
        return PartedExecutable(module, first, rest, passed)

    def buffer_from_host(self, array: object, device: Device | None = None) -> CpuBuffer:
        """Returns a buffer that holds a copy of `array`, as PJRT promises."""
        return CpuBuffer(np.array(as_array(array)), (device or self.devices[0]).default_memory)


@functools.cache
def cpu_client() -> CpuClient:
    """Returns the client of this process."""
    return CpuClient()


class _Shown(StagedExecutable):
    """A program for a processor, which can be shown."""

    def stage(self, name: str) -> str:
        """Returns the program as text at one of `STAGES`."""
        return stage_text(self.stages, name, _llvm, _assembly)


class StoredExecutable(_Shown):
    """A program for a processor that this machine does not have, to be saved and shown. To run it is an error."""

    def __init__(self, artifact: Artifact, stages: Stages, device: CpuDevice):
        super().__init__(artifact, stages)
        self.device = device

    def whole(self) -> Artifact:
        """Returns the artifact with all constants embedded, as the program reads them."""
        return whole(self.artifact, constants_of(self.artifact, self.module_constants()))

    def execute(self, *arguments: object) -> list[np.ndarray]:
        """Raises an Error that names both machines."""
        require_machine(self.artifact, machine_of(host()))
        raise AssertionError("a machine that can run it has it loaded")

    def execute_buffers(self, arguments: Sequence[Buffer]) -> list[CpuBuffer]:
        """Raises an Error that names both machines."""
        raise AssertionError(self.execute())

    def execute_at(self, pointers: Sequence[int]) -> None:
        """Raises an Error that names both machines."""
        self.execute()

    def timeline(self, arguments: Sequence[object], runs: int) -> Timeline:
        """Raises an Error that names both machines."""
        raise AssertionError(self.execute())


class CpuLoadedExecutable(_Shown, CpuExecutable):
    """A compiled program on the CPU device, with the stages of its compilation if its module is known."""

    def __init__(self, artifact: Artifact, stages: Stages | None, device: CpuDevice):
        _Shown.__init__(self, artifact, stages)
        CpuExecutable.__init__(self, artifact, self.module_constants())
        self.device = device

    def timeline(self, arguments: Sequence[object], runs: int) -> Timeline:
        """Compiles the program once more, with a clock, and runs it `runs` times."""
        from trivium.backends.cpu.profiling import timeline

        return timeline(self.stages, _target(self.stages), self.module_constants(), arguments, runs)

    def execute_buffers(self, arguments: Sequence[Buffer]) -> list[CpuBuffer]:
        """Runs the program on buffers."""
        results = self.execute(*(argument.to_numpy() for argument in arguments))
        return [CpuBuffer(result, self.device.default_memory) for result in results]


_texts: WeakKeyDictionary[Stages, str] = WeakKeyDictionary()


def _llvm(stages: Stages) -> str:
    """Returns LLVM's assembly for the whole program; kept as long as its stages, because assembly is made from it."""
    from trivium.backends.cpu.program import emit_program

    if stages not in _texts:
        _texts[stages] = str(emit_program(stages.program, _target(stages), stages.options, lines=stages.lines).module)
    return _texts[stages]


def _assembly(stages: Stages) -> str:
    from trivium.backends.cpu.jit import parsed

    return _target(stages).machine().emit_assembly(parsed(_llvm(stages)))


def _requested(options: CompileOptions) -> CpuTarget:
    """Returns the processor that is requested by name."""
    requested = level(options.target)
    reasons = lacking(machine_of(requested), machine_of(host()))
    if options.autotune and reasons:
        raise Error(f"autotune measures on this machine, which cannot run code for {options.target}: {reasons[0]}")
    return requested


def _target(stages: Stages) -> CpuTarget:
    """Returns the target with what was measured for the program's kernels, if it is to be tuned."""
    assert isinstance(stages.target, CpuTarget), "a CPU's client compiles for CPUs"
    if not stages.options.autotune:
        return stages.target
    from trivium.backends.cpu.tuning import tuned

    return tuned(stages.program, stages.target)
