"""The CPU as a PJRT client. Memory is the host's, so buffers are NumPy arrays, and running is done when the call
returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from trivium.backends import native
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import CpuTarget, host
from trivium.backends.pjrt import STAGES, Buffer, Device, LoadedExecutable, Memory, MemoryStats
from trivium.backends.specializing import SpecializingExecutable
from trivium.compiler import driver
from trivium.compiler.analysis import program_cost
from trivium.compiler.driver import CompileOptions, DynamicModule
from trivium.compiler.program import Program
from trivium.ir.arrays import as_array
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.func import Module

DEFAULT = CompileOptions()


class Done:
    """The event of something that is done already."""

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
    """All processors of this machine as one device."""

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
        """Machine code for a module's `main`."""
        return driver.compile(module, self, options)

    def target(self, options: CompileOptions) -> CpuTarget:
        """This processor, with as many threads as asked for, but never more than the runtime has."""
        available = native.num_threads()
        return host().with_threads(available if options.threads is None else max(1, min(options.threads, available)))

    def load(self, program: Program, options: CompileOptions = DEFAULT) -> LoadedExecutable:
        """Machine code for a program."""
        return CpuLoadedExecutable(program, self.target(options), options.fast_math, self.devices[0])

    def load_dynamic(self, dynamic: DynamicModule[LoadedExecutable]) -> LoadedExecutable:
        """An executable that compiles for the shapes of each call."""
        return SpecializingExecutable(dynamic, self.devices[0])

    def buffer_from_host(self, array: object, device: Device | None = None) -> CpuBuffer:
        """A buffer that holds a copy of `array`, as PJRT promises."""
        return CpuBuffer(np.array(as_array(array)), (device or self.devices[0]).default_memory)


class CpuLoadedExecutable(CpuExecutable):
    """A compiled program on the CPU device."""

    def __init__(self, program: Program, target: CpuTarget, fast_math: bool, device: CpuDevice):
        super().__init__(program, target, fast_math)
        self.device = device

    @property
    def graph(self) -> Module:
        """The optimized module; a program that was made without one, as tests make them, raises."""
        if self.program.graph is None:
            raise Error(f"program {self.name} was made of kernels, and has no graph")
        return self.program.graph

    def specialize(self, *arguments: object) -> CpuLoadedExecutable:
        """Itself, since its shapes are static."""
        return self

    def stage(self, name: str) -> str:
        """The program as text at one of `STAGES`."""
        match name:
            case "graph":
                return str(self.graph)
            case "kernels":
                return "\n\n".join([str(self.program), *map(str, self.program.kernels())])
            case "llvm":
                return self.llvm
            case "asm":
                return self.assembly()
        raise Error(f"there is no stage {name!r}, expected one of {', '.join(STAGES)}")

    def cost_analysis(self) -> dict[str, float]:
        """What one run does, under PJRT's names."""
        cost = program_cost(self.program)
        return {"flops": cost.flops, "transcendentals": cost.transcendentals, "bytes accessed": cost.nbytes}

    def memory_analysis(self) -> MemoryStats:
        """What the executable and one run of it take."""
        return MemoryStats(
            generated_code_size_in_bytes=self.code_size,
            argument_size_in_bytes=sum(value.nbytes for value in self.program.inputs),
            output_size_in_bytes=sum(value.nbytes for value in self.program.outputs),
            temp_size_in_bytes=self.arena_size,
            constant_size_in_bytes=self.constant_size,
        )

    def execute_buffers(self, arguments: Sequence[Buffer]) -> list[CpuBuffer]:
        """Runs on buffers."""
        results = self.execute(*(argument.to_numpy() for argument in arguments))
        return [CpuBuffer(result, self.device.default_memory) for result in results]
