"""Checks of buffers: data that is written can be read back, and wrong use is refused."""

from __future__ import annotations

import ctypes

import numpy as np

from trivium.backends.table.abi import TYPES, abi
from trivium.backends.table.buffer import PluginBuffer, PluginEvent
from trivium.backends.table.plugin import Refusal, address_of, pointers
from trivium.pjrt.kit import Kit, NotImplementedByPlugin, X, check, expect

COMMON = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32")
"""Element types that every plugin has; others it may refuse."""


def _same(kit: Kit, buffer: PluginBuffer, expected: np.ndarray, what: str) -> None:
    found = buffer.to_numpy()
    expect(found.shape == expected.shape, f"{what}: has shape {found.shape}, expected {expected.shape}")
    expect(found.tobytes() == expected.tobytes(), f"{what}: has other elements")


@check("buffer")
def element_types(kit: Kit) -> None:
    import ml_dtypes

    for name in TYPES:
        if name == "token":
            continue
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        array = np.arange(12).reshape(3, 4).astype(np.float32).astype(dtype)
        try:
            buffer = kit.buffer(array)
        except Refusal as refusal:
            expect(name not in COMMON and refusal.code == "UNIMPLEMENTED", f"{name}: {refusal}")
            continue
        number = kit.plugin.call("Buffer_ElementType", buffer=buffer.handle).type
        expect(number == TYPES[name], f"{name} has element type {number}, expected {TYPES[name]}")
        _same(kit, buffer, array, name)


@check("buffer")
def shapes(kit: Kit) -> None:
    for shape in ((), (1,), (0,), (3, 0, 2), (2, 1, 3), (1,) * 8):
        array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
        buffer = kit.buffer(array)
        expect(buffer.shape == shape, f"a buffer has shape {buffer.shape}, expected {shape}")
        _same(kit, buffer, array, f"shape {shape}")


@check("buffer")
def strides_of_the_host(kit: Kit) -> None:
    for array in (X.T, X[::2, 1::2], X[::-1], np.broadcast_to(X[0], (3, 6))):
        made = kit.plugin.call("Client_BufferFromHostBuffer", **kit.from_host(array))
        PluginEvent(kit.plugin, made.done_with_host_buffer).wait()
        buffer = PluginBuffer(kit.client.devices[0].default_memory, made.buffer)
        _same(kit, buffer, np.ascontiguousarray(array), f"strides {array.strides}")


@check("buffer")
def promises_of_the_host(kit: Kit) -> None:
    """What the plugin may assume about the host's memory, and for how long."""
    for name in ("OnlyDuringCall", "UntilTransferCompletes", "ZeroCopy"):
        semantics = abi().constants[f"HostBufferSemantics_kImmutable{name}"]
        array = X.copy()
        made = kit.plugin.call("Client_BufferFromHostBuffer", **kit.from_host(array, host_buffer_semantics=semantics))
        done = PluginEvent(kit.plugin, made.done_with_host_buffer)
        if name == "UntilTransferCompletes":
            done.wait()
        if name != "ZeroCopy":
            array[:] = -1
        buffer = PluginBuffer(kit.client.devices[0].default_memory, made.buffer)
        _same(kit, buffer, X, name)
        kit.plugin.call("Buffer_Delete", buffer=buffer.handle)
        done.wait()


@check("buffer")
def wrong_arrays_are_refused(kit: Kit) -> None:
    function = "Client_BufferFromHostBuffer"
    kit.refused("no element type", function, **kit.from_host(X, type=0))
    kit.refused("an unknown element type", function, **kit.from_host(X, type=10_000))
    kit.refused("no memory", function, **kit.from_host(X, data=None))
    negative = (ctypes.c_int64 * 2)(4, -6)
    kit.refused("a negative extent", function, **kit.from_host(X, dims=ctypes.addressof(negative)))
    kit.refused("strides of another rank", function, **kit.from_host(X, num_byte_strides=1))


@check("buffer")
def deleted_buffers(kit: Kit) -> None:
    buffer = kit.buffer()
    expect(not kit.plugin.call("Buffer_IsDeleted", buffer=buffer.handle).is_deleted, "a new buffer is deleted")
    buffer.delete()
    buffer.delete()
    expect(kit.plugin.call("Buffer_IsDeleted", buffer=buffer.handle).is_deleted, "a deleted buffer is not deleted")
    host = np.empty_like(X)
    fields = {"dst": host.ctypes.data, "dst_size": host.nbytes}
    kit.refused("reading a deleted buffer", "Buffer_ToHostBuffer", src=buffer.handle, **fields)


@check("buffer")
def reading_into_too_little_memory(kit: Kit) -> None:
    buffer, host = kit.buffer(), np.empty_like(X)
    fields = {"dst": host.ctypes.data, "dst_size": host.nbytes - 1}
    kit.refused("too little memory", "Buffer_ToHostBuffer", src=buffer.handle, **fields)


@check("buffer")
def ranges_of_bytes(kit: Kit) -> None:
    buffer, host = kit.buffer(), np.empty(5, np.float32)
    fields = {"buffer": buffer.handle, "dst": host.ctypes.data, "transfer_size": host.nbytes}
    PluginEvent(kit.plugin, kit.call("Buffer_CopyRawToHost", offset=8, **fields).event).wait()
    expect(host.tobytes() == X.tobytes()[8:28], "a range has other bytes")
    kit.refused("a range behind the end", "Buffer_CopyRawToHost", offset=X.nbytes - 4, **fields)
    kit.refused("a range before the start", "Buffer_CopyRawToHost", offset=-4, **fields)


@check("buffer")
def copies_to_devices_and_memories(kit: Kit) -> None:
    buffer = kit.buffer()
    for device in kit.client.devices:
        if device is not kit.client.devices[0]:
            made = kit.plugin.call("Buffer_CopyToDevice", buffer=buffer.handle, dst_device=device.handle).dst_buffer
            copy = PluginBuffer(device.default_memory, made)
            expect(kit.plugin.call("Buffer_Device", buffer=made).device == device.handle, "a copy is elsewhere")
            _same(kit, copy, X, f"a copy on device {device.id}")
        found = kit.plugin.call("Device_AddressableMemories", device=device.handle)
        for memory in pointers(found.memories, found.num_memories):
            made = kit.call("Buffer_CopyToMemory", buffer=buffer.handle, dst_memory=memory).dst_buffer
            expect(kit.plugin.call("Buffer_Memory", buffer=made).memory == memory, "a copy is in another memory")
            _same(kit, PluginBuffer(device.default_memory, made), X, "a copy in another memory")
    source = kit.buffer(X + 1)
    target = kit.call("Buffer_CopyToMemory", buffer=source.handle, dst_memory=source.memory.handle).dst_buffer
    source.delete()
    _same(kit, PluginBuffer(kit.client.devices[0].default_memory, target), X + 1, "a copy of what was deleted")
    kit.refused("no memory", "Buffer_CopyToMemory", buffer=buffer.handle, dst_memory=None)
    kit.refused("no device", "Buffer_CopyToDevice", buffer=buffer.handle, dst_device=None)


@check("buffer")
def external_references_keep_the_memory(kit: Kit) -> None:
    buffer = kit.buffer()
    kit.call("Buffer_IncreaseExternalReferenceCount", buffer=buffer.handle)
    address = kit.call("Buffer_OpaqueDeviceMemoryDataPointer", buffer=buffer.handle).device_memory_ptr
    expect(address, "the memory has no address")
    if kit.plugin.call("Buffer_IsOnCpu", buffer=buffer.handle).is_on_cpu:
        expect(ctypes.string_at(address, X.nbytes) == X.tobytes(), "the memory has other elements")
    kit.plugin.call("Buffer_DecreaseExternalReferenceCount", buffer=buffer.handle)
    kit.refused("a reference too few", "Buffer_DecreaseExternalReferenceCount", buffer=buffer.handle)


@check("buffer")
def buffers_with_an_error(kit: Kit) -> None:
    text = b"no elements"
    dims = (ctypes.c_int64 * 2)(4, 6)
    fields = {
        "client": kit.client.handle,
        "error_code": abi().constants["Error_Code_DATA_LOSS"],
        "error_message": address_of(text),
        "error_message_size": len(text),
        "shape_dims": ctypes.addressof(dims),
        "shape_num_dims": 2,
        "shape_element_type": TYPES["float32"],
        "memory": kit.client.devices[0].default_memory.handle,
    }
    buffer = PluginBuffer(kit.client.devices[0].default_memory, kit.call("Client_CreateErrorBuffer", **fields).buffer)
    for use in (buffer.to_numpy, lambda: kit.executable.execute_buffers([buffer])[0].to_numpy()):
        try:
            use()
        except Refusal as refusal:
            expect(refusal.code == "DATA_LOSS" and "no elements" in str(refusal), f"{refusal.code}: {refusal}")
        else:
            expect(False, "using a buffer that has an error returned no error")


@check("buffer")
def memory_beyond_the_device(kit: Kit) -> None:
    dims = (ctypes.c_int64 * 2)(2**20, 2**40)
    try:
        kit.call(
            "Client_CreateUninitializedBuffer",
            client=kit.client.handle,
            shape_dims=ctypes.addressof(dims),
            shape_num_dims=2,
            shape_element_type=TYPES["float32"],
            device=kit.client.devices[0].handle,
        )
    except (Refusal, NotImplementedByPlugin):
        return
    expect(False, "4 exabytes were found")


@check("buffer")
def layouts_of_the_device(kit: Kit) -> None:
    """A plugin may refuse a layout, but must not mistake its elements."""
    order = (ctypes.c_int64 * 2)(0, 1)
    tiled = kit.plugin.record(
        "Buffer_MemoryLayout_Tiled", minor_to_major=ctypes.addressof(order), minor_to_major_size=2
    )
    layout = kit.plugin.record("Buffer_MemoryLayout", tiled=tiled)
    try:
        fields = kit.from_host(X, device_layout=ctypes.addressof(layout))
        made = kit.call("Client_BufferFromHostBuffer", **fields)
    except Refusal:
        return
    PluginEvent(kit.plugin, made.done_with_host_buffer).wait()
    _same(kit, PluginBuffer(kit.client.devices[0].default_memory, made.buffer), X, "a column-major array")
