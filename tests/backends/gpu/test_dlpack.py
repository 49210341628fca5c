"""Arrays in a GPU's memory that another library has, on the simulated device: they are not copied, and are given back
when our work with them is done."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.backends.gpu import simulator
from trivium.backends.gpu import dlpack
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.cuda_memory import CudaMemory
from trivium.ir.errors import ExecutionError

pytestmark = pytest.mark.skipif(simulator.compiler() is None, reason="no compiler of C++ builds the simulator")

TWICE = """func.func @main(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = stablehlo.add %x, %x : tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}"""


@dataclass
class Other:
    """An array of another library, which is given the streams that take it."""

    memory: CudaMemory
    dtype: np.dtype
    shape: tuple[int, ...]
    device: int = 0
    streams: list[int] = field(default_factory=list)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.device

    def __dlpack__(self, stream: int) -> object:
        self.streams.append(stream)
        return dlpack.lend(self.memory, self.dtype, self.shape, self.__dlpack_device__())


def placed(device: Cuda, array: np.ndarray, offset: int = 0) -> Other:
    memory = device.allocate(array.nbytes + offset).part(offset, array.nbytes)
    device.upload(memory, array)
    return Other(memory, array.dtype, array.shape)


VALUES = np.arange(15, dtype=np.float32).reshape(3, 5)


def test_an_argument_is_not_copied(simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    executable, other = GpuClient(simulated_device, 0).compile(trivium.parse(TWICE)), placed(simulated_device, VALUES)
    copies = []
    for name in ("upload", "copy"):
        monkeypatch.setattr(simulated_device, name, lambda *_, name=name: copies.append(name))
    np.testing.assert_array_equal(executable.execute(other)[0], 2 * VALUES)
    assert not copies
    assert len(other.streams) == 1


def test_arrays_are_released(simulated_device: Cuda) -> None:
    before, other = len(dlpack._lent), placed(simulated_device, VALUES)
    found = simulated_device.borrowed(other)
    assert found is not None
    assert (found[0].address, found[1:]) == (other.memory.address, (VALUES.dtype, (3, 5)))
    assert len(dlpack._lent) == before + 1
    del found
    gc.collect()
    assert len(dlpack._lent) == before


def test_an_unused_capsule(simulated_device: Cuda) -> None:
    before, other = len(dlpack._lent), placed(simulated_device, VALUES)
    capsule = other.__dlpack__(0)
    assert len(dlpack._lent) == before + 1
    del capsule
    assert len(dlpack._lent) == before


def test_memory_at_an_odd_place_is_copied(simulated_device: Cuda) -> None:
    executable = GpuClient(simulated_device, 0).compile(trivium.parse(TWICE))
    np.testing.assert_array_equal(executable.execute(placed(simulated_device, VALUES, 4))[0], 2 * VALUES)


KINDS = [np.int8, np.uint16, np.float16, np.float64, np.complex64, np.bool_, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", KINDS)
def test_types(simulated_device: Cuda, dtype: type) -> None:
    found = simulated_device.borrowed(placed(simulated_device, np.ones((2, 3), dtype)))
    assert found is not None
    assert found[1:] == (np.dtype(dtype), (2, 3))


def test_arrays_elsewhere_are_not_ours(simulated_device: Cuda) -> None:
    other = placed(simulated_device, VALUES)
    other.device = 1
    assert simulated_device.borrowed(other) is None
    assert simulated_device.borrowed(VALUES) is None


def test_wrong_shapes_are_refused(simulated_device: Cuda) -> None:
    executable = GpuClient(simulated_device, 0).compile(trivium.parse(TWICE))
    with pytest.raises(ExecutionError, match=r"argument 0 of main has float32 \(5, 3\), expected float32 \(3, 5\)"):
        executable.execute(placed(simulated_device, VALUES.reshape(5, 3)))
