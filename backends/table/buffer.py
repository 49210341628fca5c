"""The devices, memories, buffers and events of a plugin."""

from __future__ import annotations

import ctypes
import functools
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from trivium.backends.pjrt import Memory
from trivium.backends.table.abi import TYPES, abi
from trivium.backends.table.plugin import Plugin, string
from trivium.ir.arrays import as_array
from trivium.ir.errors import ExecutionError

if TYPE_CHECKING:
    from trivium.backends.table.client import PluginClient


@dataclass(frozen=True)
class PluginDevice:
    """A device of a plugin."""

    client: PluginClient
    handle: int

    @functools.cached_property
    def _description(self) -> int:
        return self.client.plugin.call("Device_GetDescription", device=self.handle).device_description

    @property
    def id(self) -> int:
        return self.client.plugin.call("DeviceDescription_Id", device_description=self._description).id

    @property
    def kind(self) -> str:
        found = self.client.plugin.call("DeviceDescription_Kind", device_description=self._description)
        return string(found.device_kind, found.device_kind_size)

    @property
    def default_memory(self) -> PluginMemory:
        return PluginMemory(self, self.client.plugin.call("Device_DefaultMemory", device=self.handle).memory)


@dataclass(frozen=True)
class PluginMemory:
    """A memory of a plugin's device."""

    device: PluginDevice
    handle: int

    @property
    def kind(self) -> str:
        found = self.device.client.plugin.call("Memory_Kind", memory=self.handle)
        return string(found.kind, found.kind_size)


class PluginEvent:
    """An event of a plugin, which this object owns."""

    def __init__(self, plugin: Plugin, handle: int | None):
        self._plugin, self._handle = plugin, handle
        if handle:
            weakref.finalize(self, plugin.call, "Event_Destroy", event=handle).atexit = False

    def is_ready(self) -> bool:
        return not self._handle or self._plugin.call("Event_IsReady", event=self._handle).is_ready

    def wait(self) -> None:
        if self._handle:
            self._plugin.call("Event_Await", event=self._handle)


class PluginBuffer:
    """An array in a plugin's memory, which this object owns."""

    def __init__(self, memory: Memory, handle: int):
        self.memory: PluginMemory = memory  # type: ignore[assignment]
        self.handle = handle
        self._plugin = self.memory.device.client.plugin
        weakref.finalize(self, self._plugin.call, "Buffer_Destroy", buffer=handle).atexit = False

    @property
    def dtype(self) -> np.dtype:
        number = self._plugin.call("Buffer_ElementType", buffer=self.handle).type
        return _dtype(next(name for name, each in TYPES.items() if each == number))

    @property
    def shape(self) -> tuple[int, ...]:
        found = self._plugin.call("Buffer_Dimensions", buffer=self.handle)
        return tuple((ctypes.c_int64 * found.num_dims).from_address(found.dims)) if found.num_dims else ()

    @property
    def ready(self) -> PluginEvent:
        return PluginEvent(self._plugin, self._plugin.call("Buffer_ReadyEvent", buffer=self.handle).event)

    def to_numpy(self) -> np.ndarray:
        """Returns a copy of the elements."""
        array = np.empty(self.shape, self.dtype)
        # The plugin's memory may be in another order.
        order = (ctypes.c_int64 * array.ndim)(*reversed(range(array.ndim)))
        tiled = self._plugin.record(
            "Buffer_MemoryLayout_Tiled", minor_to_major=ctypes.addressof(order), minor_to_major_size=array.ndim
        )
        layout = self._plugin.record("Buffer_MemoryLayout", tiled=tiled)
        fields = {"src": self.handle, "host_layout": ctypes.addressof(layout)}
        sized = self._plugin.call("Buffer_ToHostBuffer", **fields)
        if sized.dst_size != array.nbytes:
            raise ExecutionError(
                f"{array.dtype}{list(array.shape)} has {sized.dst_size} bytes, expected {array.nbytes}"
            )
        copied = self._plugin.call("Buffer_ToHostBuffer", **fields, dst=array.ctypes.data, dst_size=array.nbytes)
        PluginEvent(self._plugin, copied.event).wait()
        return array

    def delete(self) -> None:
        self._plugin.call("Buffer_Delete", buffer=self.handle)


def _dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def from_host(array: object, device: PluginDevice) -> PluginBuffer:
    """Returns a buffer on a device that holds a copy of `array`."""
    given = as_array(array)
    host = np.ascontiguousarray(given).reshape(given.shape)
    if host.dtype.name not in TYPES:
        raise ExecutionError(f"PJRT has no element type for {host.dtype.name}")
    dims = (ctypes.c_int64 * host.ndim)(*host.shape)
    plugin = device.client.plugin
    made = plugin.call(
        "Client_BufferFromHostBuffer",
        client=device.client.handle,
        data=host.ctypes.data,
        type=TYPES[host.dtype.name],
        dims=ctypes.addressof(dims),
        num_dims=host.ndim,
        host_buffer_semantics=abi().constants["HostBufferSemantics_kImmutableOnlyDuringCall"],
        device=device.handle,
    )
    PluginEvent(plugin, made.done_with_host_buffer).wait()
    return PluginBuffer(device.default_memory, made.buffer)
