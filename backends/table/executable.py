"""A program that a plugin has compiled."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from trivium.backends.pjrt import Buffer, MemoryStats
from trivium.backends.table.buffer import PluginBuffer, PluginEvent, from_host
from trivium.backends.table.plugin import pointers
from trivium.ir.arrays import read_argument
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.func import Function, Module

if TYPE_CHECKING:
    from trivium.backends.table.client import PluginClient
    from trivium.compiler.artifact import Artifact
    from trivium.compiler.program import Program


class PluginExecutable:
    """A plugin's executable, which this object owns."""

    def __init__(self, client: PluginClient, signature: Function, handle: int):
        self.signature, self.handle = signature, handle
        self._plugin = client.plugin
        self._inputs, self._outputs = signature.function_type.inputs, signature.function_type.results
        self.name: str = signature.sym_name
        weakref.finalize(self, self._plugin.call, "LoadedExecutable_Destroy", executable=handle).atexit = False
        found = self._plugin.call("LoadedExecutable_AddressableDevices", executable=handle)
        (device,) = pointers(found.addressable_devices, found.num_addressable_devices)
        self.device = next(each for each in client.devices if each.handle == device)

    def execute(self, *arguments: object) -> list[np.ndarray]:
        """Runs on host arrays, which are copied to the device, and returns copies of the results."""
        if len(arguments) != len(self._inputs):
            raise ExecutionError(f"{self.name} was given {len(arguments)} arguments, expected {len(self._inputs)}")
        pairs = enumerate(zip(arguments, self._inputs, strict=True))
        read = [read_argument(argument, kind, f"argument {at} of {self.name}") for at, (argument, kind) in pairs]
        buffers = [from_host(array, self.device) for array in read]
        return [result.to_numpy() for result in self.execute_buffers(buffers)]

    def execute_buffers(self, arguments: Sequence[Buffer], **options: int | None) -> list[PluginBuffer]:
        """Runs on the plugin's own buffers, and waits until the results are computed. For `options` see `launch`."""
        results, done = self.launch(arguments, **options)
        done.wait()
        return results

    def launch(self, arguments: Sequence[Buffer], **options: int | None) -> tuple[list[PluginBuffer], PluginEvent]:
        """Starts a run on the plugin's own buffers, which need not be ready. Returns its results, which are not ready
        before it ends, and the event of its end. `options` are fields of PJRT's record of that name, such as the
        `context` with data for foreign functions, and callbacks for channels."""
        handles = [argument.handle for argument in arguments if isinstance(argument, PluginBuffer)]
        if len(handles) != len(self._inputs):
            given = f"{len(arguments)} buffers, {len(handles)} of them {self._plugin.name}'s"
            raise ExecutionError(f"{self.name} was given {given}, expected {len(self._inputs)}")
        inputs = (ctypes.c_void_p * len(handles))(*handles)
        outputs = (ctypes.c_void_p * len(self._outputs))()
        lists, results = ((ctypes.c_void_p * 1)(ctypes.addressof(each)) for each in (inputs, outputs))
        done = (ctypes.c_void_p * 1)()
        record = self._plugin.record("ExecuteOptions", **options)
        self._plugin.call(
            "LoadedExecutable_Execute",
            executable=self.handle,
            options=ctypes.addressof(record),
            argument_lists=ctypes.addressof(lists),
            num_devices=1,
            num_args=len(handles),
            output_lists=ctypes.addressof(results),
            device_complete_events=ctypes.addressof(done),
        )
        made = [PluginBuffer(self.device.default_memory, handle) for handle in outputs]
        return made, PluginEvent(self._plugin, done[0])

    def execute_at(self, pointers: Sequence[int]) -> None:
        raise Error(f"{self._plugin.name} runs on its own buffers only, not on memory of the host")

    def specialize(self, *arguments: object) -> PluginExecutable:
        return self

    @property
    def graph(self) -> Module:
        raise self._opaque()

    @property
    def program(self) -> Program:
        raise self._opaque()

    def stage(self, name: str) -> str:
        raise self._opaque()

    def whole(self) -> Artifact:
        raise self._opaque()

    def _opaque(self) -> Error:
        return Error(f"{self.name} was compiled by {self._plugin.name}, which does not show its stages")

    def cost_analysis(self) -> dict[str, float]:
        """The costs that the plugin states, under its own names."""
        with _Described(self) as executable:
            found = self._plugin.call("Executable_GetCostAnalysis", executable=executable)
            return self._plugin.named_values(found.properties, found.num_properties)

    def memory_analysis(self) -> MemoryStats:
        """The sizes that the plugin states. Constants are the rest of its total."""
        with _Described(self) as executable:
            found = self._plugin.call("Executable_GetCompiledMemoryStats", executable=executable)
        sizes = {
            name: getattr(found, name) for name in MemoryStats.__dataclass_fields__ if name != "constant_size_in_bytes"
        }
        known = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
        return MemoryStats(constant_size_in_bytes=max(0, found.total_size_in_bytes - known), **sizes)


class _Described:
    """The object on which a plugin answers questions about an executable."""

    def __init__(self, loaded: PluginExecutable):
        self._loaded = loaded

    def __enter__(self) -> int:
        plugin, handle = self._loaded._plugin, self._loaded.handle
        self._handle = plugin.call("LoadedExecutable_GetExecutable", loaded_executable=handle).executable
        return self._handle

    def __exit__(self, *error: object) -> None:
        self._loaded._plugin.call("Executable_Destroy", executable=self._handle)
