"""Several GPUs of one machine are several devices, with their own memory, streams and code: on a library that stands
for NVIDIA's driver, which refuses what belongs to another device than the thread's context."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import trivium
from tests.backends.dense_layer import TEXT, WEIGHTS, X
from tests.backends.gpu import simulator
from tests.backends.gpu.simulator import needs_simulator
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.pjrt import LoadedExecutable
from trivium.ir.errors import ExecutionError

pytestmark = needs_simulator

EXPECTED = np.tanh(X @ WEIGHTS)

HALVINGS = """func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %1:2 = stablehlo.while(%a = %x, %n = %zero) : tensor<f32>, tensor<i32> cond {
      %limit = stablehlo.constant dense<1.0> : tensor<f32>
      %2 = stablehlo.compare GT, %a, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %half = stablehlo.constant dense<0.5> : tensor<f32>
      %2 = stablehlo.multiply %a, %half : tensor<f32>
      %3 = stablehlo.add %n, %one : tensor<i32>
      stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
    }
  return %1#0, %1#1 : tensor<f32>, tensor<i32>
}"""


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[GpuClient]]:
    """Two simulated GPUs, of which nothing is left at the end."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    simulator.fake().fake_reset(0, 0)
    with simulator.opened(0) as first, simulator.opened(1) as second:
        yield [GpuClient(first, 0), GpuClient(second, 1)]
        gc.collect()
    assert simulator.fake().fake_live() == 0


def calls(name: str) -> int:
    return simulator.fake().fake_log().decode().split().count(name)


def compiled(clients: list[GpuClient]) -> list[LoadedExecutable]:
    return [client.compile(trivium.parse(TEXT)) for client in clients]


def expect_equal(result: np.ndarray) -> None:
    np.testing.assert_allclose(result, EXPECTED, rtol=1e-5, atol=1e-6)


def test_each_runs_programs(clients: list[GpuClient]) -> None:
    """From the second run on as a graph, which belongs to its device, too."""
    assert [client.devices[0].id for client in clients] == [0, 1]
    for _ in range(3):
        for executable in compiled(clients):
            for _ in range(3):
                expect_equal(executable.execute(X)[0])


def test_each_waits_for_its_own_numbers(clients: list[GpuClient]) -> None:
    for client in clients:
        value, count = client.compile(trivium.parse(HALVINGS)).execute(np.float32(40))
        assert (value, count) == (0.625, 6)


def test_an_argument_in_memory_of_the_other_is_copied(clients: list[GpuClient]) -> None:
    first, second = clients
    executables = compiled(clients)
    argument = first.buffer_from_host(X)
    (here,), (there,) = (executable.execute_buffers([argument]) for executable in executables)
    assert here.memory.device is first.devices[0]
    assert there.memory.device is second.devices[0]
    expect_equal(here.to_numpy())
    expect_equal(there.to_numpy())
    # What the first has copied to the host: the argument of the second, and its own result.
    simulator.fake().fake_reset(0, 0)
    executables[1].execute_buffers([argument])
    assert (calls("cuMemcpyDtoHAsync_v2"), calls("cuMemcpyHtoDAsync_v2")) == (1, 1)
    executables[1].execute_buffers([second.buffer_from_host(X)])
    assert (calls("cuMemcpyDtoHAsync_v2"), calls("cuMemcpyHtoDAsync_v2")) == (1, 2)


def test_threads_use_both_at_once(clients: list[GpuClient]) -> None:
    executables, wrong = compiled(clients), []

    def work(number: int) -> None:
        for turn in range(6):
            result = executables[(number + turn // 3) % 2].execute(X)[0]
            if not np.allclose(result, EXPECTED, rtol=1e-5, atol=1e-6):
                wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_one_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    simulator.fake().fake_reset(0, 0)
    with simulator.opened(1) as second:
        with simulator.opened(0) as first:
            executable = GpuClient(first, 0).compile(trivium.parse(TEXT))
            other = GpuClient(second, 1).compile(trivium.parse(TEXT))
            expect_equal(executable.execute(X)[0])
            del executable
        expect_equal(other.execute(X)[0])
        del other
        gc.collect()
    assert simulator.fake().fake_live() == 0


def test_the_library_refuses_what_belongs_to_the_other(clients: list[GpuClient]) -> None:
    """Otherwise, these tests would show little."""
    first, second = (client.driver for client in clients)
    assert isinstance(first, Cuda)
    assert isinstance(second, Cuda)
    ours, theirs = first.allocate(64), second.allocate(64)
    with pytest.raises(ExecutionError, match="cuMemcpyDtoDAsync_v2 returned CUDA_ERROR_INVALID_VALUE"):
        first.copy(ours, theirs, 64)
    with second.current(), pytest.raises(ExecutionError, match="cuStreamSynchronize returned CUDA_ERROR_INVALID_HAND"):
        first._cuda.cuStreamSynchronize(first._stream.handle)
    with second.current(), pytest.raises(ExecutionError, match="cuMemcpyDtoDAsync_v2 returned CUDA_ERROR_INVALID_HAN"):
        first._cuda.cuMemcpyDtoDAsync_v2(theirs.address, theirs.address, 64, first._stream.handle)
