"""Checks of clients, devices, memories and events."""

from __future__ import annotations

import ctypes
import threading

from trivium.backends.table.abi import abi
from trivium.backends.table.plugin import Refusal, address_of, pointers, string
from trivium.pjrt.kit import Kit, check, expect

_OnReady = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


@check("client")
def names_and_versions(kit: Kit) -> None:
    expect(kit.client.platform_name, "the platform has no name")
    expect(kit.client.platform_version, "the platform has no version")


@check("client")
def devices_are_found_by_their_numbers(kit: Kit) -> None:
    client = kit.client.handle
    for device in kit.client.devices:
        found = kit.plugin.call("Client_LookupDevice", client=client, id=device.id).device
        expect(found == device.handle, f"device {device.id} is found as another one")
        number = kit.plugin.call("Device_LocalHardwareId", device=device.handle).local_hardware_id
        found = kit.call("Client_LookupAddressableDevice", client=client, local_hardware_id=number).addressable_device
        expect(found == device.handle, f"device {number} of this machine is found as another one")
    ids = [device.id for device in kit.client.devices]
    expect(len(set(ids)) == len(ids), f"devices share numbers: {ids}")
    kit.refused("a device that there is not", "Client_LookupDevice", client=client, id=2**30)


@check("client")
def the_default_assignment_has_known_devices(kit: Kit) -> None:
    numbers = (ctypes.c_int * 1)(-1)
    fields = {"client": kit.client.handle, "num_replicas": 1, "num_partitions": 1}
    kit.call(
        "Client_DefaultDeviceAssignment",
        default_assignment_size=1,
        default_assignment=ctypes.addressof(numbers),
        **fields,
    )
    expect(numbers[0] in [device.id for device in kit.client.devices], f"device {numbers[0]} is assigned")
    kit.refused("a list that is too short", "Client_DefaultDeviceAssignment", default_assignment_size=0, **fields)


@check("client")
def a_second_client_lives_beside_the_first(kit: Kit) -> None:
    second = kit.plugin.call("Client_Create").client
    expect(second != kit.client.handle, "both clients are the same object")
    kit.plugin.call("Client_Destroy", client=second)
    expect(kit.client.platform_name, "the first client ended with the second")


@check("device")
def descriptions(kit: Kit) -> None:
    for device in kit.client.devices:
        expect(device.kind, f"device {device.id} has no kind")
        expect(kit.plugin.call("Device_IsAddressable", device=device.handle).is_addressable, "it is not addressable")


@check("device")
def memories_belong_to_their_devices(kit: Kit) -> None:
    for device in kit.client.devices:
        found = kit.plugin.call("Device_AddressableMemories", device=device.handle)
        memories = pointers(found.memories, found.num_memories)
        expect(device.default_memory.handle in memories, "the default memory is not among a device's memories")
        for memory in memories:
            users = kit.plugin.call("Memory_AddressableByDevices", memory=memory)
            expect(device.handle in pointers(users.devices, users.num_devices), "a memory does not know its device")
            kind = kit.plugin.call("Memory_Kind", memory=memory)
            expect(string(kind.kind, kind.kind_size), "a memory has no kind")


@check("device")
def memory_statistics_follow_buffers(kit: Kit) -> None:
    device = kit.client.devices[0].handle
    before = kit.call("Device_MemoryStats", device=device).bytes_in_use
    buffer = kit.buffer()
    during = kit.call("Device_MemoryStats", device=device).bytes_in_use
    kit.plugin.call("Buffer_Delete", buffer=buffer.handle)
    after = kit.call("Device_MemoryStats", device=device).bytes_in_use
    expect(during >= before + 96, f"{during - before} bytes more are in use with a buffer of 96")
    expect(after == before, f"{after - before} bytes are still in use after it was deleted")


@check("event")
def events_of_buffers(kit: Kit) -> None:
    buffer = kit.buffer()
    event = kit.plugin.call("Buffer_ReadyEvent", buffer=buffer.handle).event
    kit.plugin.call("Event_Await", event=event)
    expect(kit.plugin.call("Event_IsReady", event=event).is_ready, "an awaited event is not ready")
    kit.plugin.call("Event_Error", event=event)
    called = threading.Event()
    errors: list[int | None] = []

    def on_ready(error: int | None, _: int | None) -> None:
        errors.append(error)
        called.set()

    callback = _OnReady(on_ready)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    kit.plugin.call("Event_OnReady", event=event, callback=address)
    expect(called.wait(10), "the callback of a ready event was not called")
    expect(errors == [None], f"the callback was called with {errors}")
    kit.plugin.call("Event_Destroy", event=event)


@check("event")
def events_that_the_caller_sets(kit: Kit) -> None:
    event = kit.call("Event_Create").event
    expect(not kit.plugin.call("Event_IsReady", event=event).is_ready, "a new event is ready")
    kit.refused("the error of an event that is not ready", "Event_Error", event=event)
    text = b"stop"
    code = abi().constants["Error_Code_ABORTED"]
    address = address_of(text)
    fields = {"event": event, "error_code": code, "error_message": address, "error_message_size": len(text)}
    kit.plugin.call("Event_Set", **fields)
    found = kit.refused("awaiting an event that failed", "Event_Await", event=event)
    expect(found.code == "ABORTED" and "stop" in str(found), f"it failed with {found.code}: {found}")
    kit.refused("setting an event twice", "Event_Set", **fields)
    kit.plugin.call("Event_Destroy", event=event)


@check("client")
def unknown_functions_say_their_names(kit: Kit) -> None:
    """Functions that are not implemented report that, and do not crash."""
    try:
        kit.plugin.call("Client_CreateAliasBuffer", client=kit.client.handle)
    except Refusal as refusal:
        expect(refusal.code in ("UNIMPLEMENTED", "INVALID_ARGUMENT"), f"{refusal.code}: {refusal}")
