"""What native code asks of an accelerator: memory, copies, runs and errors, as it calls the functions."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import pytest

from trivium.backends.gpu.client import GpuClient
from trivium.backends.plugin import accelerators
from trivium.backends.plugin.accelerator_structures import AcceleratorEvent
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
    with pytest.raises(ExecutionError, match="which has none"):
        accelerators.address(memories[0], found)
    with pytest.raises(ExecutionError, match="memory of another library was given to OpenCL"):
        accelerators.borrow(DEVICE, 64, 8, found)
    accelerators.release(memories, 1)


def test_other_devices() -> None:
    with pytest.raises(ExecutionError, match="the device is 'cpu:0', expected an accelerator"):
        accelerators.client_of("cpu:0")
    with pytest.raises(Error, match="there is no platform 'abacus'"):
        accelerators.open(b"abacus", 0)
