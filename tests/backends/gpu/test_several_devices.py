"""Several GPUs of one machine are several devices, with their own memory, streams and code: on a library that stands
for NVIDIA's driver, which refuses what belongs to another device than the thread's context."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence

import numpy as np
import pytest

import trivium
from tests.backends.dense_layer import TEXT, WEIGHTS, X
from tests.backends.gpu import simulator
from tests.backends.gpu.simulator import needs_simulator
from trivium.backends.gpu.client import GpuClient, GpuLoadedExecutable
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.executable import run_together
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
    # Not through the host.
    simulator.fake().fake_reset(0, 0)
    executables[1].execute_buffers([argument])
    assert (calls("cuMemcpyPeerAsync"), calls("cuMemcpyDtoHAsync_v2"), calls("cuMemcpyHtoDAsync_v2")) == (1, 0, 0)
    executables[1].execute_buffers([second.buffer_from_host(X)])
    assert (calls("cuMemcpyPeerAsync"), calls("cuMemcpyDtoHAsync_v2"), calls("cuMemcpyHtoDAsync_v2")) == (1, 0, 1)


def cuda(client: GpuClient) -> Cuda:
    assert isinstance(client.driver, Cuda)
    return client.driver


def sent(clients: list[GpuClient], first_works: bool) -> np.ndarray:
    """Returns what arrives at the second device of bytes that the first one has only been told to write. `first_works`:
    it then writes others to the same memory, before the second one is asked."""
    first, second = map(cuda, clients)
    source, target = first.allocate(4096), second.allocate(4096)
    first.upload(source, np.full(4096, 7, np.uint8))
    assert second.receive(target, source, first)
    if first_works:
        address = source.address
        del source
        again = first.allocate(4096)
        assert again.address == address
        first.upload(again, np.full(4096, 9, np.uint8))
        first.event().wait()
    result = np.empty(4096, np.uint8)
    second.download(result, target)
    return result


def test_copies_between_devices_are_in_the_order_of_both(clients: list[GpuClient]) -> None:
    for first_works in (True, False):
        assert (sent(clients, first_works) == 7).all()
    assert calls("cuMemcpyPeerAsync") == 2
    assert calls("cuMemPoolSetAccess") == 1


@pytest.mark.parametrize("left_out", [0, 1])
def test_each_device_waits_for_the_other(
    left_out: int, clients: list[GpuClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, turns = Cuda._follow_device, iter(range(2))

    def follow(self: Cuda, leader: Cuda) -> None:
        if next(turns) != left_out:
            kept(self, leader)

    monkeypatch.setattr(Cuda, "_follow_device", follow)
    assert (sent(clients, left_out == 1) != 7).all()


@pytest.mark.parametrize(
    "name", ["cuDeviceCanAccessPeer", "cuMemPoolSetAccess", "cuMemcpyPeerAsync", "cuEventRecord", "cuStreamWaitEvent"]
)
def test_a_copy_between_devices_that_fails(name: str, clients: list[GpuClient]) -> None:
    first, second = map(cuda, clients)
    source, target = first.allocate(64), second.allocate(64)
    simulator.fake().fake_fail(name.encode(), 1)
    with pytest.raises(ExecutionError, match=f"CUDA failed, copying 64 bytes from cuda:0: {name} returned"):
        second.receive(target, source, first)
    simulator.fake().fake_reset(0, 0)
    assert second.receive(target, source, first)


def test_memory_of_another_platform_is_copied_through_the_host(clients: list[GpuClient], device: GpuClient) -> None:
    argument = device.buffer_from_host(X)
    expect_equal(clients[1].compile(trivium.parse(TEXT)).execute_buffers([argument])[0].to_numpy())
    assert calls("cuMemcpyPeerAsync") == 0


EXCHANGES = """func.func @main(%x: tensor<2x3xf32>, %n: tensor<i32>)
    -> (tensor<4x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = stablehlo.negate %x : tensor<2x3xf32>
  %all = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<2x3xf32>) -> tensor<4x3xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %1:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<2x3xf32> cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %2 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
        ^body(%p: tensor<f32>, %q: tensor<f32>):
          %3 = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %3 : tensor<f32>
        }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %4 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %4, %2 : tensor<i32>, tensor<2x3xf32>
    }
  %swapped = "stablehlo.collective_permute"(%0)
      <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %all, %1#1, %swapped : tensor<4x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}"""


def exchanging(clients: list[GpuClient], turns: Sequence[int]) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
    """Runs a program on both, in whose loop they exchange values as many times as each of them says."""
    executables: list[GpuLoadedExecutable] = []
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3) + 10 * number for number in range(2)]
    arguments, results = [], []
    for client, array, count in zip(clients, arrays, turns, strict=True):
        executable = client.compile(trivium.parse(EXCHANGES))
        assert isinstance(executable, GpuLoadedExecutable)
        executables.append(executable)
        arguments.append([executable.uploaded(given) for given in (array, np.asarray(count, np.int32))])
        results.append([executable.device.client.driver.allocate(slot.nbytes) for slot in executable.outputs])
    run_together(executables, arguments, results)
    found = []
    for executable, row in zip(executables, results, strict=True):
        found.append([np.empty(slot.shape, slot.dtype) for slot in executable.outputs])
        for array, memory in zip(found[-1], row, strict=True):
            executable.device.client.driver.download(array, memory)
    return arrays, found


def test_devices_exchange_values(clients: list[GpuClient]) -> None:
    (one, other), found = exchanging(clients, (2, 2))
    for everything, total, swapped in found:
        np.testing.assert_array_equal(everything, -np.concatenate([one, other]))
        np.testing.assert_array_equal(total, 2 * (one + other))
        np.testing.assert_array_equal(swapped, -(other if swapped is found[0][2] else one))


def test_devices_that_wait_for_each_other(clients: list[GpuClient]) -> None:
    with pytest.raises(ExecutionError, match="main: device 0 waits in all_reduce for others of its group"):
        exchanging(clients, (3, 2))


def test_a_device_that_exchanges_values_does_not_run_alone(clients: list[GpuClient]) -> None:
    executable = clients[0].compile(trivium.parse(EXCHANGES))
    with pytest.raises(
        ExecutionError, match="main: all_gather exchanges values with other devices, but one runs alone"
    ):
        executable.execute(np.zeros((2, 3), np.float32), np.int32(0))


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
