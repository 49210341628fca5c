"""Shared by the checks of the conformance kit: the plugin under test, objects of every class, and refusals."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import trivium
from trivium.backends.table.abi import TYPES, abi
from trivium.backends.table.buffer import PluginBuffer
from trivium.backends.table.client import PluginClient
from trivium.backends.table.executable import PluginExecutable
from trivium.backends.table.plugin import Plugin, Refusal
from trivium.compiler.driver import CompileOptions

ADD = """func.func @main(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<6x4xf32>) {
  %0 = stablehlo.add %x, %x : tensor<4x6xf32>
  %1 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %0, %1 : tensor<4x6xf32>, tensor<6x4xf32>
}"""
X = np.arange(24, dtype=np.float32).reshape(4, 6)
DONATING = ADD.replace("%x: tensor<4x6xf32>)", "%x: tensor<4x6xf32> {tf.aliasing_output = 0 : i32})")


class Failure(Exception):
    """The plugin did not behave as the interface requires."""


class NotImplementedByPlugin(Exception):
    """The plugin lacks a function that it may lack."""


def expect(condition: object, message: str) -> None:
    """Fails unless `condition` holds."""
    if not condition:
        raise Failure(message)


class Kit:
    """The plugin under test, with its client."""

    def __init__(self, plugin: Plugin):
        self.plugin = plugin
        self.alive: list[object] = []
        """The objects that records point to."""

    @functools.cached_property
    def client(self) -> PluginClient:
        return PluginClient(self.plugin)

    @functools.cached_property
    def executable(self) -> PluginExecutable:
        return self.compile(ADD)

    def compile(self, text: str) -> PluginExecutable:
        found = self.client.compile(trivium.parse(text), CompileOptions())
        assert isinstance(found, PluginExecutable), "a plugin's client makes a plugin's executables"
        return found

    def buffer(self, array: np.ndarray = X) -> PluginBuffer:
        return self.client.buffer_from_host(array)

    @functools.cached_property
    def objects(self) -> dict[str, int]:
        """One object of each class, by the name of the field that holds it."""
        device = self.client.devices[0]
        call = self.plugin.call
        self._kept = self.buffer()
        return {
            "client": self.client.handle,
            "device": device.handle,
            "memory": device.default_memory.handle,
            "device_description": call("Device_GetDescription", device=device.handle).device_description,
            "topology": call("Client_TopologyDescription", client=self.client.handle).topology,
            "buffer": self._kept.handle,
            "loaded_executable": self.executable.handle,
            "executable": call("LoadedExecutable_GetExecutable", loaded_executable=self.executable.handle).executable,
            "event": call("Buffer_ReadyEvent", buffer=self._kept.handle).event,
        }

    def call(self, function: str, **fields: Any) -> Any:
        """Calls a function that the plugin may lack."""
        try:
            return self.plugin.call(function, **fields)
        except Refusal as refusal:
            if refusal.code == "UNIMPLEMENTED":
                raise NotImplementedByPlugin(function) from None
            raise

    def refused(self, what: str, function: str, **fields: Any) -> Refusal:
        """Expects that a call fails with a code and a text. Returns the error."""
        try:
            self.plugin.call(function, **fields)
        except Refusal as refusal:
            expect(refusal.code != "OK", f"{what}: the error has the code OK")
            expect(not str(refusal).endswith(": "), f"{what}: the error has no text")
            return refusal
        raise Failure(f"{what}: PJRT_{function} returned no error")

    def from_host(self, array: np.ndarray, **fields: Any) -> Any:
        """Returns the arguments of PJRT_Client_BufferFromHostBuffer for an array, which stays alive with them."""
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        strides = (ctypes.c_int64 * array.ndim)(*array.strides)
        arguments = {
            "client": self.client.handle,
            "data": array.ctypes.data,
            "type": TYPES[array.dtype.name],
            "dims": ctypes.addressof(dims),
            "num_dims": array.ndim,
            "byte_strides": ctypes.addressof(strides),
            "num_byte_strides": array.ndim,
            "host_buffer_semantics": abi().constants["HostBufferSemantics_kImmutableUntilTransferCompletes"],
            "device": self.client.devices[0].handle,
        }
        self.alive += array, dims, strides
        return {**arguments, **fields}


@dataclass(frozen=True)
class Check:
    """One check: it raises unless the plugin passes."""

    subject: str
    run: Callable[[Kit], None]

    @property
    def name(self) -> str:
        return self.run.__name__.replace("_", " ")


CHECKS: list[Check] = []


def check(subject: str) -> Callable[[Callable[[Kit], None]], Callable[[Kit], None]]:
    """Registers a check."""

    def register(function: Callable[[Kit], None]) -> Callable[[Kit], None]:
        CHECKS.append(Check(subject, function))
        return function

    return register
