"""A GPU as a PJRT client, for any driver: its memory is separate from the host's, and calls return before their work is
done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trivium.backends.artifacts import find_or_make
from trivium.backends.gpu.driver import AnyDriver, Event, copy_between
from trivium.backends.gpu.driver import Memory as DeviceBytes
from trivium.backends.gpu.executable import GpuExecutable
from trivium.backends.gpu.target import GpuTarget, machine_of
from trivium.backends.parts import PartedExecutable
from trivium.backends.pjrt import Buffer, Device, LoadedExecutable
from trivium.backends.specializing import SpecializingExecutable
from trivium.backends.staged import StagedExecutable, stage_text
from trivium.compiler import driver as flow
from trivium.compiler.artifact import Artifact, require_machine
from trivium.compiler.driver import CompileOptions, DynamicModule
from trivium.compiler.stages import DEFAULT, Stages
from trivium.ir.arrays import as_array
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.func import Module

if TYPE_CHECKING:
    from trivium.compiler.program import Program


@dataclass(frozen=True)
class GpuMemory:
    """The device's own memory."""

    device: GpuDevice
    kind: str = "device"


@dataclass(frozen=True)
class GpuDevice:
    """One device of a platform."""

    client: GpuClient
    id: int

    @property
    def kind(self) -> str:
        return self.client.driver.kind

    @property
    def default_memory(self) -> GpuMemory:
        return GpuMemory(self)


class GpuBuffer:
    """An array in a device's memory, which is complete when `ready` is."""

    def __init__(self, bytes_: DeviceBytes, dtype: np.dtype, shape: tuple[int, ...], memory: GpuMemory, ready: Event):
        self._bytes: DeviceBytes | None = bytes_
        self.dtype, self.shape = dtype, shape
        self.memory, self.ready = memory, ready

    @property
    def bytes(self) -> DeviceBytes:
        """The memory of the elements."""
        if self._bytes is None:
            raise ExecutionError("the buffer has been deleted")
        return self._bytes

    def to_numpy(self) -> np.ndarray:
        """Returns a copy on the host."""
        array = np.empty(self.shape, self.dtype)
        self.memory.device.client.driver.download(array, self.bytes)
        return array

    def delete(self) -> None:
        self._bytes = None


class GpuClient:
    """Device `number` of a platform, used through `driver`."""

    def __init__(self, driver: AnyDriver, number: int) -> None:
        self.driver = driver
        self.devices: Sequence[GpuDevice] = (GpuDevice(self, number),)

    @property
    def platform_name(self) -> str:
        return self.driver.platform

    @property
    def platform_version(self) -> str:
        return self.driver.version

    def compile(self, module: Module, options: CompileOptions = DEFAULT) -> LoadedExecutable:
        """Compiles a module's `main` for the device."""
        return flow.compile(module, self, options)

    def target(self, options: CompileOptions) -> GpuTarget:
        """Returns the device's properties, and what the caller allows."""
        if options.target:
            raise Error(f"the target has {options.target!r}, expected none with a GPU: code is for the device")
        return replace(self.driver.target, deterministic=options.deterministic, tf32=options.tf32)

    def artifact(self, stages: Stages) -> Artifact:
        """Returns the device's code for a module, as data, which an earlier process may have made."""
        return find_or_make(stages, self._assemble)

    def _assemble(self, stages: Stages) -> Artifact:
        from trivium.backends.gpu.assembly import assemble

        return assemble(stages, self.driver.dialect)

    def load(self, artifact: Artifact, stages: Stages | None = None) -> LoadedExecutable:
        """Returns an artifact ready to run. An artifact that is not whole takes constants from the module that it was
        made from; without that module, no stage of the compilation can be printed."""
        require_machine(artifact, machine_of(self.driver.target))
        if stages is None and not artifact.is_whole:
            raise Error(f"{artifact.name} needs the module that it was compiled from: it does not embed its constants")
        return GpuLoadedExecutable(artifact, stages, self.devices[0])

    def stage(self, stages: Stages, name: str) -> str:
        """Returns one of `STAGES` as text, without code to run."""
        return stage_text(stages, name, self._llvm, self._assembly)

    def _llvm(self, stages: Stages) -> str:
        from trivium.backends.gpu.assembly import emit_program

        fast_math, target = stages.options.fast_math, stages.target
        assert isinstance(target, GpuTarget), "a GPU's client compiles for GPUs"
        return emit_program(stages.program, self.driver.dialect, target, fast_math).text

    def _assembly(self, stages: Stages) -> str:
        from trivium.backends.gpu.assembly import assembly

        return assembly(self._llvm(stages), self.driver.dialect, self.driver.target)

    def load_program(self, program: Program, options: CompileOptions = DEFAULT) -> GpuLoadedExecutable:
        """Returns an executable of a program that was made without a module."""
        from trivium.backends.gpu.assembly import assemble_program

        target = self.target(options)
        artifact = assemble_program(program, self.driver.dialect, target, options.fast_math)
        return GpuLoadedExecutable(artifact, Stages.of_program(program, target, options), self.devices[0])

    def load_dynamic(self, dynamic: DynamicModule[LoadedExecutable]) -> LoadedExecutable:
        """Returns an executable that compiles for the shapes of each call."""
        return SpecializingExecutable(dynamic, self.devices[0])

    def load_parts(
        self, module: Module, first: LoadedExecutable, rest: LoadedExecutable, passed: Sequence[int]
    ) -> LoadedExecutable:
        """Returns an executable that runs two others."""
        return PartedExecutable(module, first, rest, passed)

    def buffer_from_host(self, array: object, device: Device | None = None) -> GpuBuffer:
        """Returns a buffer that holds a copy of `array`."""
        source = np.ascontiguousarray(as_array(array))
        memory = self.driver.allocate(source.nbytes)
        self.driver.upload(memory, source)
        return GpuBuffer(memory, source.dtype, source.shape, self.devices[0].default_memory, self.driver.event())


class GpuLoadedExecutable(StagedExecutable, GpuExecutable):
    """A compiled program on a device, with the stages of its compilation if its module is known."""

    def __init__(self, artifact: Artifact, stages: Stages | None, device: GpuDevice):
        StagedExecutable.__init__(self, artifact, stages)
        GpuExecutable.__init__(self, artifact, device.client.driver, self.module_constants())
        self.device = device

    def stage(self, name: str) -> str:
        """Returns the program as text at one of `STAGES`."""
        return self.device.client.stage(self.stages, name)

    def execute_buffers(self, arguments: Sequence[Buffer]) -> list[GpuBuffer]:
        """Runs the program on buffers; those of other memories are copied to the device first."""
        if len(arguments) != len(self.inputs):
            raise ExecutionError(f"{self.name} was given {len(arguments)} buffers, expected {len(self.inputs)}")
        given = [self._bytes(argument, position) for position, argument in enumerate(arguments)]
        results = self.run(given)
        memory, ready = self.device.default_memory, self.device.client.driver.event()
        pairs = zip(results, self.outputs, strict=True)
        return [GpuBuffer(result, slot.dtype, slot.shape, memory, ready) for result, slot in pairs]

    def _bytes(self, argument: Buffer, position: int) -> DeviceBytes:
        slot = self.inputs[position]
        if (argument.dtype, argument.shape) != (slot.dtype, slot.shape):
            has, expected = (f"{kind.dtype} {kind.shape}" for kind in (argument, slot))
            raise ExecutionError(f"argument {position} of {self.name} has {has}, expected {expected}")
        if not isinstance(argument, GpuBuffer):
            return self.uploaded(argument.to_numpy())
        if argument.memory.device is self.device:
            return argument.bytes
        driver = self.device.client.driver
        memory = driver.allocate(argument.bytes.nbytes)
        copy_between(memory, driver, argument.bytes, argument.memory.device.client.driver)
        return memory
