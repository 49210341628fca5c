"""What native code asks of an accelerator: memory, copies, runs and errors, as it calls the functions."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from trivium.backends import plugin as own
from trivium.backends.gpu.client import GpuClient
from trivium.backends.plugin import accelerators
from trivium.backends.plugin.accelerator_structures import AcceleratorEvent
from trivium.backends.table.abi import TYPES, abi
from trivium.backends.table.plugin import Plugin, Refusal, address_of, pointers
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.text import parse

pytest_plugins = ["tests.backends.gpu.conftest"]

DEVICE = b"opencl:0"

TEXT = """func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = stablehlo.add %x, %x : tensor<6xf32>
  return %0 : tensor<6xf32>
}"""

X = np.arange(6, dtype=np.float32)


def allocated(sizes: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
    memories = (ctypes.c_uint64 * len(sizes))()
    accelerators.allocate(DEVICE, (ctypes.c_size_t * len(sizes))(*sizes), len(sizes), memories)
    return memories


def test_memory_and_runs(device: GpuClient) -> None:
    executable = device.compile(parse(TEXT))
    accelerators.programs[77] = executable  # type: ignore[assignment]
    memories = allocated([X.nbytes, X.nbytes])
    accelerators.upload(memories[0], X.ctypes.data, X.nbytes)
    accelerators.run(77, memories, 2)
    event = AcceleratorEvent()
    accelerators.mark(DEVICE, ctypes.pointer(event))
    assert not event.wait, "OpenCL has been waited for"
    result = np.empty_like(X)
    accelerators.download(memories[1], result.ctypes.data, result.nbytes)
    np.testing.assert_array_equal(result, X + X)
    accelerators.release(memories, 2)
    with pytest.raises(KeyError):
        accelerators.download(memories[1], result.ctypes.data, result.nbytes)


def test_no_bytes(device: GpuClient) -> None:
    memories = allocated([0])
    accelerators.upload(memories[0], None, 0)
    accelerators.download(memories[0], None, 0)
    accelerators.release(memories, 1)


def test_memory_without_an_address(device: GpuClient) -> None:
    memories, found = allocated([8]), (ctypes.c_uint64 * 1)()
    with pytest.raises(ExecutionError, match="has no address"):
        accelerators.address(memories[0], found)
    with pytest.raises(ExecutionError, match="memory of another library was given to OpenCL"):
        accelerators.borrow(DEVICE, 64, 8, found)
    with pytest.raises(ExecutionError, match="memory of another library begins at 0x48, expected a multiple of 16"):
        accelerators.borrow(DEVICE, 72, 8, found)
    accelerators.release(memories, 1)


def test_other_devices() -> None:
    with pytest.raises(ExecutionError, match="the device is 'cpu:0', expected an accelerator"):
        accelerators.client_of("cpu:0")
    with pytest.raises(Error, match="there is no platform 'abacus'"):
        accelerators.open(b"abacus", 0)


@pytest.fixture
def memory(device: GpuClient) -> Iterator[tuple[Plugin, dict[str, int]]]:
    """A client of PJRT's table whose memory is an accelerator's: the arguments that functions on that memory take."""
    plugin = Plugin(own.api(), "trivium")
    name, value = b"platform", b"opencl"
    option = plugin.record("NamedValue", type=abi().constants["NamedValue_kString"])
    option.name, option.name_size = address_of(name), len(name)
    option.string_value, option.value_size = address_of(value), len(value)
    client = plugin.call("Client_Create", create_options=ctypes.addressof(option), num_options=1).client
    found = plugin.call("Client_AddressableDevices", client=client)
    first, *_ = pointers(found.addressable_devices, found.num_addressable_devices)
    yield plugin, {"client": client, "memory": plugin.call("Device_DefaultMemory", device=first).memory}
    plugin.call("Client_Destroy", client=client)


def test_what_a_thread_without_python_would_finish_is_refused(memory: tuple[Plugin, dict[str, int]]) -> None:
    plugin, place = memory
    dims = (ctypes.c_int64 * 1)(6)
    shape = {
        "shape_dims": ctypes.addressof(dims),
        "shape_num_dims": 1,
        "shape_element_type": TYPES["float32"],
    }
    buffer = plugin.call("Client_CreateUninitializedBuffer", **place, **shape).buffer
    for what, function, arguments in (
        ("an alias", "Client_CreateAliasBuffer", place | shape),
        ("a transfer in parts", "Client_CreateBuffersForAsyncHostToDevice", place),
        ("a copy to where the host will say", "Buffer_CopyRawToHostFuture", {"buffer": buffer}),
        ("a buffer that the host makes ready", "Buffer_DonateWithControlDependency", {"buffer": buffer}),
    ):
        with pytest.raises(Refusal, match=f"{what} is for the host's memory only, but was requested for "):
            plugin.call(function, **arguments)
    plugin.call("Buffer_Destroy", buffer=buffer)
