"""Checks of what a host promises: buffers whose elements come later, memory that it names later, and errors instead."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trivium.backends.table.abi import TYPES, abi
from trivium.backends.table.buffer import PluginBuffer, PluginEvent
from trivium.backends.table.plugin import Refusal, address_of
from trivium.pjrt.kit import Kit, X, check, expect

MANAGER = "AsyncHostToDeviceTransferManager"
STOPPED = ("ABORTED", b"the host gave up")
"""The error that these checks pass on."""


class Manager:
    """A transfer manager of arrays of some shapes and types, in the default memory of the first device."""

    def __init__(self, kit: Kit, arrays: Sequence[np.ndarray]):
        self._kit, self._memory = kit, kit.client.devices[0].default_memory
        kind = abi().structures["ShapeSpec"]
        dims = [(ctypes.c_int64 * array.ndim)(*array.shape) for array in arrays]
        specs = [
            kind(ctypes.sizeof(kind), None, ctypes.addressof(each), array.ndim, TYPES[array.dtype.name])
            for each, array in zip(dims, arrays, strict=True)
        ]
        listed = (kind * len(specs))(*specs)
        self.handle = kit.call(
            "Client_CreateBuffersForAsyncHostToDevice",
            client=kit.client.handle,
            shape_specs=ctypes.addressof(listed),
            num_shape_specs=len(specs),
            memory=self._memory.handle,
        ).transfer_manager

    def call(self, function: str, **fields: Any) -> Any:
        return self._kit.call(f"{MANAGER}_{function}", transfer_manager=self.handle, **fields)

    def retrieve(self, index: int) -> PluginBuffer:
        return PluginBuffer(self._memory, self.call("RetrieveBuffer", buffer_index=index).buffer_out)

    def transfer(self, index: int, data: bytes, offset: int, *, is_last: bool) -> None:
        """Transfers, and waits until the plugin has read the bytes."""
        place = {"buffer_index": index, "offset": offset, "transfer_size": len(data), "is_last_transfer": is_last}
        event = self.call("TransferData", data=address_of(data), **place).done_with_h2d_transfer
        PluginEvent(self._kit.plugin, event).wait()

    def fail(self, index: int) -> None:
        self.call("SetBufferError", buffer_index=index, **_stopped())

    def destroy(self) -> None:
        self.call("Destroy")


def _stopped(field: str = "error_code") -> dict[str, Any]:
    code, text = STOPPED
    return {
        field: abi().constants[f"Error_Code_{code}"],
        "error_message": address_of(text),
        "error_message_size": len(text),
    }


def _is_ready(buffer: PluginBuffer) -> bool:
    return buffer.ready.is_ready()


def _expect_refusal(use: Callable[[], object], code: str | None = STOPPED[0]) -> None:
    """Expects that something fails; with a certain error, if it is named."""
    try:
        use()
    except Refusal as refusal:
        expect(code is None or refusal.code == code, f"the error is {refusal.code}, expected {code}: {refusal}")
    else:
        expect(False, "something that was not there was used without an error")


def _expect_elements(buffer: PluginBuffer, expected: np.ndarray) -> None:
    found = buffer.to_numpy()
    expect(found.dtype == expected.dtype and np.array_equal(found, expected), "a buffer has other elements")


@check("transfer manager")
def descriptions_of_its_buffers(kit: Kit) -> None:
    manager = Manager(kit, [X, X[:2].astype(np.int8)])
    expect(manager.call("BufferCount").buffer_count == 2, "it has 2 buffers")
    expect(manager.call("Device").device_out == kit.client.devices[0].handle, "it is of another device")
    expect(manager.call("BufferSize", buffer_index=0).buffer_size >= X.nbytes, "a buffer is smaller than its array")
    second = manager.retrieve(1)
    expect((second.shape, second.dtype) == ((2, 6), np.int8), f"a buffer is {second.dtype}{second.shape}")
    manager.destroy()
    kit.plugin.call(f"{MANAGER}_Destroy")


@check("transfer manager")
def pieces_in_any_order(kit: Kit) -> None:
    """A program that was run before has the elements that come later."""
    other = np.arange(12, dtype=np.int32).reshape(3, 4)
    manager = Manager(kit, [X, other])
    buffer = manager.retrieve(0)
    results, _ = kit.executable.launch([buffer])
    data = X.tobytes()
    manager.transfer(0, data[60:], 60, is_last=False)
    manager.transfer(0, data[:4], 0, is_last=False)
    expect(not _is_ready(buffer), "a buffer is ready that lacks bytes")
    manager.transfer(1, other.tobytes(), 0, is_last=True)
    _expect_elements(manager.retrieve(1), other)
    manager.transfer(0, data[4:60], 4, is_last=True)
    _expect_elements(buffer, X)
    _expect_elements(results[0], X + X)
    _expect_elements(results[1], X.T)
    manager.destroy()
    _expect_elements(buffer, X)


@check("transfer manager")
def literals_in_a_layout_of_the_host(kit: Kit) -> None:
    manager = Manager(kit, [X])
    buffer = manager.retrieve(0)
    columns, order = X.T.copy(), (ctypes.c_int64 * 2)(0, 1)
    tiled = kit.plugin.record(
        "Buffer_MemoryLayout_Tiled", minor_to_major=ctypes.addressof(order), minor_to_major_size=2
    )
    layout = kit.plugin.record("Buffer_MemoryLayout", tiled=tiled)
    dims = (ctypes.c_int64 * 2)(*X.shape)
    made = manager.call(
        "TransferLiteral",
        buffer_index=0,
        data=columns.ctypes.data,
        shape_dims=ctypes.addressof(dims),
        shape_num_dims=2,
        shape_element_type=TYPES["float32"],
        shape_layout=ctypes.addressof(layout),
    )
    PluginEvent(kit.plugin, made.done_with_h2d_transfer).wait()
    _expect_elements(buffer, X)
    manager.destroy()


@check("transfer manager")
def errors_of_the_host_reach_users(kit: Kit) -> None:
    manager = Manager(kit, [X])
    buffer = manager.retrieve(0)
    results, _ = kit.executable.launch([buffer])
    manager.fail(0)
    for use in (buffer.ready.wait, buffer.to_numpy, results[0].to_numpy, results[1].ready.wait):
        _expect_refusal(use)
    manager.destroy()


@check("transfer manager")
def buffers_that_are_left_behind(kit: Kit) -> None:
    manager = Manager(kit, [X])
    buffer = manager.retrieve(0)
    manager.transfer(0, X.tobytes()[:8], 0, is_last=False)
    manager.destroy()
    _expect_refusal(buffer.to_numpy, None)


@check("transfer manager")
def wrong_transfers_are_refused(kit: Kit) -> None:
    manager, data = Manager(kit, [X]), X.tobytes()
    _expect_refusal(lambda: manager.transfer(0, data, 4, is_last=False), None)
    _expect_refusal(lambda: manager.transfer(0, data, -4, is_last=False), None)
    manager.destroy()


@check("transfer manager")
def metadata(kit: Kit) -> None:
    manager = Manager(kit, [X])
    name, value = b"request", b"17"
    entry = kit.plugin.record(
        "NamedValue",
        name_size=len(name),
        type=abi().constants["NamedValue_kString"],
        string_value=address_of(value),
        value_size=len(value),
    )
    entry.name = address_of(name)
    manager.call("AddMetadata", transfer_metadata=ctypes.addressof(entry), num_metadata=1)
    manager.transfer(0, X.tobytes(), 0, is_last=True)
    _expect_elements(manager.retrieve(0), X)
    manager.destroy()


def _alias(kit: Kit) -> tuple[PluginBuffer, int]:
    """Returns an alias of a buffer like `X`, and what fulfills it."""
    memory, dims = kit.client.devices[0].default_memory, (ctypes.c_int64 * 2)(*X.shape)
    made = kit.call(
        "Client_CreateAliasBuffer",
        client=kit.client.handle,
        memory=memory.handle,
        shape_dims=ctypes.addressof(dims),
        shape_num_dims=2,
        shape_element_type=TYPES["float32"],
    )
    return PluginBuffer(memory, made.alias_buffer), made.fulfill_alias_buffer_cb


def _fulfill(kit: Kit, callback: int, **fields: Any) -> None:
    fields = {"client": kit.client.handle, "fulfill_alias_buffer_cb": callback, **fields}
    kit.plugin.call("Client_FulfillAliasBuffer", **fields)


@check("alias")
def aliases_have_the_elements_of_their_buffers(kit: Kit) -> None:
    alias, callback = _alias(kit)
    results, _ = kit.executable.launch([alias])
    expect(not _is_ready(alias), "an alias is ready before it is fulfilled")
    source = kit.executable.execute_buffers([kit.buffer()])[0]
    _fulfill(kit, callback, buffer=source.handle)
    source.delete()
    _expect_elements(alias, 2 * X)
    _expect_elements(results[0], 4 * X)


@check("alias")
def aliases_that_fail(kit: Kit) -> None:
    alias, callback = _alias(kit)
    results, _ = kit.executable.launch([alias])
    _fulfill(kit, callback, **_stopped("status_code"))
    for use in (alias.to_numpy, results[0].to_numpy):
        _expect_refusal(use)


_COPY = "Buffer_CopyRawToHostFuture"
_DONATE = "Buffer_DonateWithControlDependency"


def _answer(kit: Kit, function: str, address: int, data: int, **fields: Any) -> None:
    """Calls what a function gave its host to call."""
    record = abi().structures[f"{function}_Callback_Args"](callback_data=data, **fields)
    record.struct_size = ctypes.sizeof(record)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.addressof(record))


@check("buffer")
def copies_to_memory_that_the_host_names_later(kit: Kit) -> None:
    buffer, host = kit.buffer(), np.zeros(5, np.float32)
    asked = {"buffer": buffer.handle, "offset": 8, "transfer_size": host.nbytes}
    made, failing = kit.call(_COPY, **asked), kit.call(_COPY, **asked)
    buffer.delete()
    done = PluginEvent(kit.plugin, made.event)
    expect(not done.is_ready(), "a copy is done that has no target yet")
    _answer(kit, _COPY, made.future_ready_callback, made.callback_data, dst=host.ctypes.data)
    done.wait()
    expect(host.tobytes() == X.tobytes()[8:28], "a range has other bytes")
    _answer(kit, _COPY, failing.future_ready_callback, failing.callback_data, **_stopped())
    _expect_refusal(PluginEvent(kit.plugin, failing.event).wait)
    asked["buffer"] = kit.objects["buffer"]
    kit.refused("a range behind the end", _COPY, **{**asked, "offset": X.nbytes - 4})


@check("buffer")
def donations_that_depend_on_the_host(kit: Kit) -> None:
    memory = kit.client.devices[0].default_memory
    for fields in ({}, _stopped()):
        buffer = kit.buffer()
        made = kit.call(_DONATE, buffer=buffer.handle)
        given = PluginBuffer(memory, made.out_buffer)
        results, _ = kit.executable.launch([given])
        expect(kit.plugin.call("Buffer_IsDeleted", buffer=buffer.handle).is_deleted, "a donated buffer is there")
        expect(not _is_ready(given), "a buffer is ready before what it depends on")
        _answer(kit, _DONATE, made.dependency_ready_callback, made.callback_data, **fields)
        if fields:
            _expect_refusal(results[0].to_numpy)
            _expect_refusal(given.to_numpy)
        else:
            _expect_elements(results[0], 2 * X)
            _expect_elements(given, X)


@check("device")
def tracking_events(kit: Kit) -> None:
    text = b"a copy elsewhere"
    made = kit.call(
        "Device_CreateAsyncTrackingEvent",
        device=kit.objects["device"],
        description=address_of(text),
        description_size=len(text),
    )
    kit.plugin.call("AsyncTrackingEvent_Destroy", event=made.event)
    kit.refused("an event of no device", "Device_CreateAsyncTrackingEvent")


@check("device")
def poisoned_executions(kit: Kit) -> None:
    """The results of a run that has not finished become errors, and only those of the run with that number."""
    device = kit.objects["device"]
    nothing = kit.call("Device_PoisonExecution", device=device, launch_id=41, **_stopped())
    expect(not nothing.poisoned, "a run was poisoned that there is not")
    alias, callback = _alias(kit)
    one, other = (kit.executable.launch([alias], launch_id=number)[0] for number in (41, 42))
    now = kit.call("Device_PoisonExecution", device=device, launch_id=41, **_stopped())
    expect(now.poisoned, "a run was not poisoned")
    _expect_refusal(one[0].to_numpy)
    source = kit.buffer()
    _fulfill(kit, callback, buffer=source.handle)
    _expect_elements(other[0], 2 * X)
    late = kit.call("Device_PoisonExecution", device=device, launch_id=42, **_stopped())
    expect(not late.poisoned, "a run was poisoned after its end")


@check("client")
def the_processes_of_a_distributed_program(kit: Kit) -> None:
    kind = abi().structures["ProcessInfo"]
    state = abi().constants["ProcessState_kConnected"]
    process = kind(struct_size=ctypes.sizeof(kind), task_id=0, incarnation_id=1, state=state)
    fields = {"client": kit.client.handle, "process_infos": ctypes.addressof(process), "num_process_infos": 1}
    kit.call("Client_UpdateGlobalProcessInfo", **fields)
