"""Checks of topologies, of compiling for them, and of the options with which a program was compiled."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from trivium.backends.table.client import ONE_DEVICE
from trivium.backends.table.executable import PluginExecutable
from trivium.backends.table.plugin import Plugin, Refusal, address_of, pointers, string
from trivium.ir.bytecode import serialize
from trivium.ir.text import parse
from trivium.pjrt.executions import request_of
from trivium.pjrt.kit import ADD, Kit, X, check, expect


def owned(found: Any, name: str) -> bytes:
    """Returns the bytes that a function made for its caller, which frees them."""
    data = ctypes.string_at(found.serialized_bytes, found.serialized_bytes_size)
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(getattr(found, f"serialized_{name}_deleter"))
    deleter(getattr(found, f"serialized_{name}"))
    return data


def described(plugin: Plugin, topology: int) -> tuple[str, str, list[tuple[int, str]]]:
    """Returns what a topology says of itself: its platform, the version of that, and numbers and kinds of devices."""
    call = plugin.call
    name = call("TopologyDescription_PlatformName", topology=topology)
    version = call("TopologyDescription_PlatformVersion", topology=topology)
    found = call("TopologyDescription_GetDeviceDescriptions", topology=topology)
    devices = []
    for device in pointers(found.descriptions, found.num_descriptions):
        kind = call("DeviceDescription_Kind", device_description=device)
        number = call("DeviceDescription_Id", device_description=device).id
        devices.append((number, string(kind.device_kind, kind.device_kind_size)))
    return (
        string(name.platform_name, name.platform_name_size),
        string(version.platform_version, version.platform_version_size),
        devices,
    )


@check("topology")
def serialized_topologies(kit: Kit) -> None:
    own = kit.objects["topology"]
    data = owned(kit.call("TopologyDescription_Serialize", topology=own), "topology")
    fields = {"serialized_topology": address_of(data), "serialized_topology_size": len(data)}
    copy = kit.call("TopologyDescription_Deserialize", **fields).topology
    expect(
        described(kit.plugin, copy) == described(kit.plugin, own), "a topology is another one after it was serialized"
    )
    again = owned(kit.call("TopologyDescription_Serialize", topology=copy), "topology")
    expect(again == data, "a topology is serialized differently each time")
    kit.plugin.call("TopologyDescription_Destroy", topology=copy)
    kit.plugin.call("TopologyDescription_Destroy")
    kit.refused("half of it", "TopologyDescription_Deserialize", **{**fields, "serialized_topology_size": 4})


def _compiled(kit: Kit, topology: int, options: bytes = ONE_DEVICE) -> int:
    request = request_of(kit, serialize(parse(ADD)), options=options)
    return kit.call("Compile", topology=topology, **{**request, "client": None}).executable


@check("topology")
def programs_compiled_for_a_topology(kit: Kit) -> None:
    """They run after they were serialized, and loaded by a client."""
    executable = _compiled(kit, kit.objects["topology"])
    expect(kit.plugin.call("Executable_NumOutputs", executable=executable).num_outputs == 2, "it has 2 results")
    data = owned(kit.call("Executable_Serialize", executable=executable), "executable")
    kit.plugin.call("Executable_Destroy", executable=executable)
    fields = {"client": kit.client.handle, "serialized_executable": address_of(data)}
    loaded = kit.call("Executable_DeserializeAndLoad", serialized_executable_size=len(data), **fields)
    results = PluginExecutable(kit.client, parse(ADD).main, loaded.loaded_executable).execute(X)
    expect(all(map(np.array_equal, results, (X + X, X.T))), "a program has wrong results")


@check("topology")
def wrong_programs_for_a_topology_are_refused(kit: Kit) -> None:
    topology = kit.objects["topology"]
    _compiled(kit, topology)
    request = {**request_of(kit, b"no program"), "client": None}
    kit.refused("no program", "Compile", topology=topology, **request)
    kit.refused("no topology", "Compile", **{**request, "topology": None})
    try:
        _compiled(kit, topology, bytes((0x1A, 5, 0x20, 0x80, 0x20, 0x28, 1)))
    except Refusal:
        return
    expect(False, "a program was compiled for 4096 replicas")


@check("executable")
def the_options_with_which_it_was_compiled(kit: Kit) -> None:
    found = owned(kit.call("Executable_GetCompileOptions", executable=kit.objects["executable"]), "compile_options")
    expect(found, "it has no options")
    request = request_of(kit, serialize(parse(ADD)), options=found)
    loaded = kit.plugin.call("Client_Compile", **request).executable
    results = PluginExecutable(kit.client, parse(ADD).main, loaded).execute(X)
    expect(np.array_equal(results[0], X + X), "a program has wrong results with the options of another")
