"""Topologies by name, and the options with which programs were compiled, through our own table."""

import ctypes

import numpy as np
import pytest

import trivium
from tests.backends.plugin.test_transfers import client
from trivium.backends.artifact import to_bytes
from trivium.backends.table.client import ONE_DEVICE
from trivium.backends.table.executable import PluginExecutable
from trivium.backends.table.plugin import Refusal, address_of
from trivium.ir.bytecode import serialize
from trivium.pjrt.executions import request_of
from trivium.pjrt.kit import ADD, Kit, X
from trivium.pjrt.topologies import described, owned


def call(function, **fields):
    return client().plugin.call(function, **fields)


def created(name, **options):
    """The devices of a new topology, and the version of its platform."""
    kind, texts = client().plugin.record, [key.encode() for key in options]
    values = (type(kind("NamedValue")) * len(options))()
    for value, text, option in zip(values, texts, options.values(), strict=True):
        value.struct_size, value.name, value.name_size = ctypes.sizeof(value), address_of(text), len(text)
        value.type, value.int64_value = 1, option
    fields = {"topology_name": address_of(name), "topology_name_size": len(name)}
    listed = {"create_options": ctypes.addressof(values), "num_options": len(values)}
    topology = call("TopologyDescription_Create", **fields, **listed).topology
    platform, version, devices = described(client().plugin, topology)
    call("TopologyDescription_Destroy", topology=topology)
    assert platform == "trivium"
    return version, devices


def test_names_of_topologies(monkeypatch):
    version, devices = created(b"cpu:3")
    assert version.startswith("PJRT 0.")
    assert devices == [(0, "cpu"), (1, "cpu"), (2, "cpu")]
    monkeypatch.delenv("TRIVIUM_NUM_DEVICES", raising=False)
    assert created(b"cpu")[1] == created(b"")[1] == devices[:1]
    assert created(b"", num_devices=2)[1] == devices[:2]
    monkeypatch.setenv("TRIVIUM_NUM_DEVICES", "2")
    assert created(b"cpu")[1] == devices[:2]


@pytest.mark.parametrize("name", [b"gpu", b"cpu:", b"cpu:0", b"cpu:many", b"cpu:-1", b"cpu:99999999999999999999"])
def test_wrong_names_are_refused(name):
    with pytest.raises(Refusal, match=r"unknown topology 'gpu'|not a number from 1 to"):
        created(name)


def test_unknown_options_are_refused():
    with pytest.raises(Refusal, match="unknown option 'color'"):
        created(b"", color=1)


@pytest.mark.parametrize("data", [b"", b"trivium topology 1\n", b"trivium topology 1\nx\n", b"other\n1\n"])
def test_bytes_that_are_no_topology_are_refused(data):
    with pytest.raises(Refusal, match=r"not a topology|not a number"):
        call(
            "TopologyDescription_Deserialize", serialized_topology=address_of(data), serialized_topology_size=len(data)
        )


def test_the_topology_of_a_client_is_not_destroyed():
    topology = call("Client_TopologyDescription", client=client().handle).topology
    with pytest.raises(Refusal, match="belongs to its client"):
        call("TopologyDescription_Destroy", topology=topology)
    assert described(client().plugin, topology)[0] == "trivium"


OPTIONS = ONE_DEVICE + bytes((0x2A, 2, 0x08, 0x01))
"""The options of one device, with a field that we do not read."""


def options_of(loaded):
    made = call("LoadedExecutable_GetExecutable", loaded_executable=loaded).executable
    found = owned(call("Executable_GetCompileOptions", executable=made), "compile_options")
    data = owned(call("Executable_Serialize", executable=made), "executable")
    call("Executable_Destroy", executable=made)
    return found, data


def loaded_from(data, options=b""):
    return call(
        "Executable_DeserializeAndLoad",
        client=client().handle,
        serialized_executable=address_of(data),
        serialized_executable_size=len(data),
        overridden_serialized_compile_options=address_of(options),
        overridden_serialized_compile_options_size=len(options),
    ).loaded_executable


def test_options_outlive_serialization():
    kit = Kit(client().plugin)
    kit.__dict__["client"] = client()
    compiled = call("Client_Compile", **request_of(kit, serialize(trivium.parse(ADD)), options=OPTIONS)).executable
    found, data = options_of(compiled)
    assert found == OPTIONS
    again = loaded_from(data)
    assert options_of(again) == (OPTIONS, data)
    other = loaded_from(data, ONE_DEVICE)
    assert options_of(other)[0] == ONE_DEVICE
    for handle in (compiled, again, other):
        executable = PluginExecutable(client(), trivium.parse(ADD).main, handle)
        np.testing.assert_array_equal(executable.execute(X)[0], 2 * X)


def test_options_of_an_artifact_that_has_none():
    artifact = to_bytes(trivium.compile(trivium.parse(ADD)).loaded.whole())
    assert options_of(loaded_from(artifact)) == (ONE_DEVICE, artifact)
