"""The client of a plugin: its devices, buffers and compilations, with the interface of `trivium.backends.pjrt`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from trivium.backends.pjrt import Device, LoadedExecutable
from trivium.backends.table.buffer import PluginBuffer, PluginDevice, from_host
from trivium.backends.table.executable import PluginExecutable
from trivium.backends.table.plugin import Plugin, address_of, pointers, string
from trivium.compiler.artifact import Artifact
from trivium.compiler.driver import CompileOptions
from trivium.ir.bytecode import serialize
from trivium.ir.errors import CompileError, Error, ExecutionError
from trivium.ir.func import Module
from trivium.ir.types import TensorType

ONE_DEVICE = bytes((0x1A, 4, 0x20, 1, 0x28, 1))
"""A `CompileOptionsProto`: one replica, one partition."""


class PluginClient:
    """The platform of a plugin in this process. It lives until the process ends: so do its devices and memories."""

    def __init__(self, plugin: Plugin):
        self.plugin = plugin
        self.handle: int = plugin.call("Client_Create").client
        found = plugin.call("Client_AddressableDevices", client=self.handle)
        handles = pointers(found.addressable_devices, found.num_addressable_devices)
        self.devices: Sequence[PluginDevice] = tuple(PluginDevice(self, handle) for handle in handles)
        if not self.devices:
            raise Error(f"{plugin.name} has no device in this process")

    @property
    def platform_name(self) -> str:
        return self._text("Client_PlatformName", "platform_name")

    @property
    def platform_version(self) -> str:
        return self._text("Client_PlatformVersion", "platform_version")

    def _text(self, function: str, field: str) -> str:
        found = self.plugin.call(function, client=self.handle)
        return string(getattr(found, field), getattr(found, f"{field}_size"))

    def compile(self, module: Module, options: CompileOptions) -> LoadedExecutable:
        """Compiles a module for the plugin's first device."""
        if options != CompileOptions():
            raise CompileError(
                f"{self.plugin.name} does not support options (threads, fast_math, autotune), expected the defaults"
            )
        module.verify()
        signature = module.main
        kinds = (*signature.function_type.inputs, *signature.function_type.results)
        if not all(isinstance(kind, TensorType) and kind.is_static for kind in kinds):
            raise CompileError(f"{self.plugin.name} compiles static shapes only, {signature.sym_name} has dynamic ones")
        return PluginExecutable(self, signature, self._compiled(serialize(module, self._version())))

    def _compiled(self, code: bytes) -> int:
        program = self.plugin.record("Program")
        program.code, program.code_size = address_of(code), len(code)
        program.format, program.format_size = address_of(b"mlir"), 4
        return self.plugin.call(
            "Client_Compile",
            client=self.handle,
            program=ctypes.addressof(program),
            compile_options=address_of(ONE_DEVICE),
            compile_options_size=len(ONE_DEVICE),
        ).executable

    def _version(self) -> str | None:
        """Returns the version of StableHLO to write for, or None for the lowest that can express the program."""
        from trivium.ir.bytecode.versions import CURRENT, Version

        announced = self.plugin.attributes.get("stablehlo_current_version")
        return None if announced is None or Version(*announced) >= CURRENT else ".".join(map(str, announced))

    def load(self, artifact: Artifact) -> LoadedExecutable:
        raise Error(f"{artifact.name} was compiled for {artifact.machine}, not by {self.plugin.name}")

    def buffer_from_host(self, array: object, device: Device | None = None) -> PluginBuffer:
        """Returns a buffer that holds a copy of `array`."""
        target = device or self.devices[0]
        if not isinstance(target, PluginDevice) or target.client is not self:
            raise ExecutionError(f"device {target.id} is of another client than {self.plugin.name}")
        return from_host(array, target)
