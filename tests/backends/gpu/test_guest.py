"""Programs in the order of another library's stream, on its memory: the fake driver does the work of a stream as late
as it may, so that whatever is not ordered happens too late, or on memory that was given back."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator

import numpy as np
import pytest

import trivium
from tests.backends.dense_layer import TEXT, WEIGHTS, X
from tests.backends.gpu import simulator
from tests.backends.gpu.simulator import needs_simulator
from tests.backends.gpu.test_cuda import calls, two_launches
from trivium.backends.gpu.client import GpuClient, GpuLoadedExecutable
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.cuda_library import library
from trivium.backends.gpu.opencl import OpenCl
from trivium.ir.errors import ExecutionError

pytestmark = needs_simulator

A = np.arange(300, dtype=np.float32)

COUNT = """func.func @main(%x: tensor<300xf32>) -> tensor<300xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<300xf32>
    cond {
      %most = stablehlo.constant dense<3> : tensor<i32>
      %c = stablehlo.compare LT, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %twice = stablehlo.add %a, %a : tensor<300xf32>
      stablehlo.return %next, %twice : tensor<i32>, tensor<300xf32>
    }
  return %0#1 : tensor<300xf32>
}"""


class Other:
    """Another library: its streams, of which the first is the device's own one, as PyTorch's is, and its memory, which
    is the host's here."""

    def __init__(self, device: Cuda):
        self.device = device
        with device.current():
            self.streams = [0, library().value("cuStreamCreate", ctypes.c_void_p, 0)]

    def run(self, executable: GpuLoadedExecutable, stream: int, given: np.ndarray, result: np.ndarray) -> None:
        addresses = [array.__array_interface__["data"][0] for array in (given, result)]
        executable.execute_in(self.streams[stream], addresses)

    def synchronize(self, stream: int) -> None:
        with self.device.current():
            library().cuStreamSynchronize(self.streams[stream])

    def close(self) -> None:
        with self.device.current():
            library().cuStreamSynchronize(0)
            library().cuStreamDestroy_v2(self.streams[1])


@pytest.fixture
def other(simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch) -> Iterator[Other]:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    simulator.fake().fake_elsewhere(True)
    found = Other(simulated_device)
    yield found
    found.close()
    simulator.fake().fake_elsewhere(False)


def empty(shape: tuple[int, ...] = A.shape) -> np.ndarray:
    return np.full(shape, -1, np.float32)


def test_work_is_done_in_the_order_of_the_stream(other: Other) -> None:
    executable, result = GpuClient(other.device, 0).load_program(two_launches()), empty()
    other.run(executable, 0, A, result)
    assert set(result.tolist()) == {-1}
    other.synchronize(0)
    np.testing.assert_array_equal(result, A)


def test_constants_are_there_before(other: Other) -> None:
    executable, result = GpuClient(other.device, 0).compile(trivium.parse(TEXT)), empty((X @ WEIGHTS).shape)
    assert isinstance(executable, GpuLoadedExecutable)
    other.run(executable, 0, X, result)
    other.synchronize(0)
    np.testing.assert_allclose(result, np.tanh(X @ WEIGHTS), rtol=1e-5, atol=1e-6)


def test_the_same_memory_again_is_a_graph_in_that_stream(other: Other) -> None:
    executable, result, given = GpuClient(other.device, 0).load_program(two_launches()), empty(), A.copy()
    for turn in range(4):
        other.run(executable, 0, given, result)
        other.synchronize(0)
        np.testing.assert_array_equal(result, A + turn)
        given += 1
    assert calls().count("cuGraphLaunch") == 3


def test_only_another_stream_waits_for_ours(other: Other) -> None:
    executable, results = GpuClient(other.device, 0).load_program(two_launches()), [empty() for _ in range(4)]
    waits = []
    for stream, result in zip((0, 0, 1, 0), results, strict=True):
        before = calls().count("cuStreamWaitEvent")
        other.run(executable, stream, A, result)
        waits.append(calls().count("cuStreamWaitEvent") - before)
    assert waits == [2, 1, 2, 2]  # ours always waits for the guest's
    other.synchronize(0)
    assert all((result == A).all() for result in results)


def test_a_run_of_ours_waits_for_a_guest(other: Other) -> None:
    """Both use the same temporaries."""
    executable, result = GpuClient(other.device, 0).load_program(two_launches()), empty()
    other.run(executable, 0, A, result)
    np.testing.assert_array_equal(executable.execute(A + 5)[0], A + 5)
    np.testing.assert_array_equal(result, A)


def test_temporaries_are_not_given_back_before(other: Other) -> None:
    executable, result = GpuClient(other.device, 0).load_program(two_launches()), empty()
    other.run(executable, 0, A, result)
    executable._kernels = {}  # modules wait for all work when they are unloaded
    del executable
    gc.collect()
    other.device._finished()
    other.synchronize(0)
    np.testing.assert_array_equal(result, A)


def test_a_loop_reads_in_the_order_of_the_stream(other: Other) -> None:
    executable, result = GpuClient(other.device, 0).compile(trivium.parse(COUNT)), empty()
    assert isinstance(executable, GpuLoadedExecutable)
    for turn in range(3):
        other.run(executable, turn % 2, A + turn, result)
        other.synchronize(turn % 2)
        np.testing.assert_array_equal(result, 8 * (A + turn))


def test_a_failed_launch_leaves_the_streams_in_order(other: Other) -> None:
    executable, result = GpuClient(other.device, 0).load_program(two_launches()), empty()
    simulator.fake().fake_fail(b"cuLaunchKernel", 1)
    with pytest.raises(ExecutionError, match="cuLaunchKernel returned CUDA_ERROR_INVALID_VALUE"):
        other.run(executable, 0, A, result)
    assert calls()[-2:] == ["cuStreamWaitEvent", "cuCtxPopCurrent_v2"]
    simulator.fake().fake_fail(b"", 0)
    other.run(executable, 0, A, result)
    other.synchronize(0)
    np.testing.assert_array_equal(result, A)


def test_opencl_takes_no_guests() -> None:
    with pytest.raises(ExecutionError, match="a queue of another library was given to OpenCL"):
        OpenCl.guest(None, 0, True)  # type: ignore[arg-type]
