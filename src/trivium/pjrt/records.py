"""Checks of the table itself: its slots, its versions, and records of callers that are older or newer."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from trivium.backends.table.abi import abi
from trivium.backends.table.plugin import Refusal
from trivium.pjrt.kit import Kit, check, expect

GETTERS = {
    "client": ("Client_PlatformName", "Client_PlatformVersion", "Client_ProcessIndex", "Client_Devices",
               "Client_AddressableDevices", "Client_AddressableMemories", "Client_TopologyDescription"),
    "device": ("Device_GetDescription", "Device_IsAddressable", "Device_LocalHardwareId", "Device_AddressableMemories",
               "Device_DefaultMemory", "Device_MemoryStats"),
    "device_description": ("DeviceDescription_Id", "DeviceDescription_ProcessIndex", "DeviceDescription_Kind",
                           "DeviceDescription_Attributes", "DeviceDescription_DebugString",
                           "DeviceDescription_ToString"),
    "memory": ("Memory_Id", "Memory_Kind", "Memory_Kind_Id", "Memory_DebugString", "Memory_ToString",
               "Memory_AddressableByDevices"),
    "topology": ("TopologyDescription_PlatformName", "TopologyDescription_PlatformVersion",
                 "TopologyDescription_GetDeviceDescriptions", "TopologyDescription_Attributes"),
    "executable": ("Executable_Name", "Executable_NumReplicas", "Executable_NumPartitions", "Executable_NumOutputs",
                   "Executable_SizeOfGeneratedCodeInBytes", "Executable_Fingerprint", "Executable_GetCostAnalysis",
                   "Executable_GetCompiledMemoryStats", "Executable_OutputElementTypes", "Executable_OutputDimensions",
                   "Executable_OutputMemoryKinds"),
    "buffer": ("Buffer_ElementType", "Buffer_Dimensions", "Buffer_UnpaddedDimensions",
               "Buffer_DynamicDimensionIndices", "Buffer_GetMemoryLayout", "Buffer_OnDeviceSizeInBytes",
               "Buffer_Device", "Buffer_Memory", "Buffer_IsDeleted", "Buffer_IsOnCpu"),
    "event": ("Event_IsReady", "Event_Error"),
}  # fmt: skip
"""Functions that only read an object, by the field that holds it."""

TAIL = 64
"""Bytes by which a newer caller's records are longer than ours."""


def _getters(kit: Kit) -> Iterator[tuple[str, str, int]]:
    for field, functions in GETTERS.items():
        for function in functions:
            yield function, field, kit.objects[field]


@check("table")
def the_table_has_all_slots_of_its_version(kit: Kit) -> None:
    declared = abi()
    expect(kit.plugin.size >= declared.slot("Error_GetCode"), f"the table has {kit.plugin.size} bytes")
    known = [name for name in declared.functions if declared.slot(name) + 8 <= kit.plugin.size]
    empty = []
    for name in known:
        try:
            kit.plugin.slot(name)
        except Refusal:
            empty.append(name)
    expect(not empty, f"empty slots, which end callers' processes: {', '.join(empty)}")
    if kit.plugin.version >= declared.version:
        missing = declared.functions[len(known) :]
        expect(not missing, f"version {kit.plugin.version} has {', '.join(missing)}, the table has not")


@check("table")
def the_plugin_is_initialized_twice(kit: Kit) -> None:
    kit.plugin.call("Plugin_Initialize")
    kit.plugin.call("Plugin_Initialize")


@check("table")
def attributes_are_versions_of_stablehlo(kit: Kit) -> None:
    for name in ("stablehlo_current_version", "stablehlo_minimum_version"):
        version = kit.plugin.attributes.get(name)
        expect(isinstance(version, tuple) and len(version) == 3, f"{name} has {version}, expected three numbers")


@check("table")
def getters_answer_twice_alike(kit: Kit) -> None:
    for function, field, handle in _getters(kit):
        try:
            first, second = (bytes(kit.plugin.call(function, **{field: handle})) for _ in range(2))
        except Refusal as refusal:
            expect(refusal.code == "UNIMPLEMENTED", str(refusal))
        else:
            expect(first == second, f"PJRT_{function} answers differently each time")


@check("table")
def records_of_newer_callers(kit: Kit) -> None:
    """Longer records are accepted; fields that the plugin does not know are not changed."""
    for function, field, handle in _getters(kit):
        kind = abi().structures[f"{function}_Args"]
        size = ctypes.sizeof(kind)
        memory = ctypes.create_string_buffer(b"\0" * size + b"\x5a" * TAIL, size + TAIL)
        record = kind.from_buffer(memory)
        record.struct_size = size + TAIL
        setattr(record, field, handle)
        try:
            kit.plugin.call_with(function, record)
        except Refusal as refusal:
            expect(refusal.code == "UNIMPLEMENTED", f"a longer record: {refusal}")
        expect(memory.raw[size:] == b"\x5a" * TAIL, f"PJRT_{function} writes behind its record")


@check("table")
def records_of_older_callers(kit: Kit) -> None:
    """Records without their last field are served or refused; memory after their end is not written."""
    for function, field, handle in _getters(kit):
        kind = abi().structures[f"{function}_Args"]
        last = kind._fields_[-1][0]  # type: ignore[misc]
        size: int = getattr(kind, last).offset
        if last == field:
            continue
        whole = ctypes.sizeof(kind)
        memory = ctypes.create_string_buffer(b"\0" * size + b"\x5a" * (whole - size), whole)
        record = kind.from_buffer(memory)
        record.struct_size = size
        setattr(record, field, handle)
        try:
            kit.plugin.call_with(function, record)
        except Refusal as refusal:
            allowed = ("INVALID_ARGUMENT", "UNIMPLEMENTED")
            expect(refusal.code in allowed, f"a shorter record: {refusal.code}, expected one of {allowed}: {refusal}")
        expect(memory.raw[size:] == b"\x5a" * (whole - size), f"PJRT_{function} writes behind a shorter record")


@check("table")
def null_objects_are_refused(kit: Kit) -> None:
    for function, field, _ in _getters(kit):
        try:
            kit.plugin.call(function, **{field: None})
        except Refusal:
            continue
        expect(False, f"PJRT_{function} of a null {field} returned no error")
