"""Memory of a simulated NVIDIA GPU: copies in pieces, the pool, and its end."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.backends.gpu import simulator
from trivium.backends.gpu import cuda_memory
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.cuda_library import library
from trivium.ir.errors import ExecutionError

pytestmark = pytest.mark.skipif(simulator.compiler() is None, reason="no compiler of C++ builds the simulator")


@pytest.mark.parametrize("nbytes", [0, 1, 1000, 2500])
def test_copies_in_pieces(nbytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_memory, "STAGED", 512)
    with simulator.opened() as device:
        a = np.random.default_rng(0).integers(0, 256, nbytes, dtype=np.uint8)
        source, target = device.allocate(nbytes), device.allocate(nbytes + 100)
        given = a.copy()
        device.upload(source, given)
        given[:] = 0  # the array may change
        device.copy(target.part(100, nbytes), source, nbytes)
        result = np.empty_like(a)
        device.download(result, target.part(100, nbytes))
        np.testing.assert_array_equal(result, a)
        del source, target


def test_a_copy_to_the_host_leaves_what_another_stream_has_yet_to_copy_from_it(simulated_device: Cuda) -> None:
    """Streams share the pinned blocks."""
    source, target = simulated_device.allocate(64), simulated_device.allocate(64)
    simulated_device.upload(source, np.zeros(64, np.uint8))
    simulated_device._finished()
    with simulated_device.current():
        handle = library().value("cuStreamCreate", ctypes.c_void_p, 0)
    try:
        simulated_device.upload(target, np.ones(64, np.uint8))
        found = np.empty(64, np.uint8)
        with simulated_device.guest(handle, False) as stream:
            stream.download(found, source)
        simulated_device.download(found, target)
        assert set(found.tolist()) == {1}
    finally:
        with simulated_device.current():
            library().cuStreamDestroy_v2(handle)


def test_memory_returns_to_the_pool_in_the_order_of_the_stream(simulated_device: Cuda) -> None:
    first = simulated_device.allocate(4096)
    part = first.part(512, 16)
    address = first.address
    del first
    assert simulated_device.memory() == cuda_memory.PoolStatistics(4096, 4096, 4096)  # a part keeps the whole
    simulated_device.upload(part, np.ones(16, np.uint8))
    del part
    again = simulated_device.allocate(4096)
    assert again.address == address
    simulated_device.upload(again, np.full(4096, 3, np.uint8))
    result = np.empty(4096, np.uint8)
    simulated_device.download(result, again)
    assert set(result.tolist()) == {3}
    assert simulated_device.memory() == cuda_memory.PoolStatistics(4096, 4096, 4096)


def test_small_blocks_are_used_again_without_the_driver_and_the_oldest_first(
    simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_memory, "MOST_SPARE", 1 << 20)
    blocks = [simulated_device.allocate(1000) for _ in range(3)]
    addresses = [block.address for block in blocks]
    simulator.fake().fake_reset(0, 0)
    del blocks[1], blocks[0]
    blocks += [simulated_device.allocate(nbytes) for nbytes in (900, 513)]  # of 1024 bytes, too
    assert [block.address for block in blocks] == [addresses[2], *addresses[:2]]
    assert not simulator.fake().fake_log()
    assert simulated_device.memory().used == 3 * 1024


def test_few_blocks_and_small_ones_are_spare(simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_memory, "MOST_SPARE", 2048)
    kept = [simulated_device.allocate(1024) for _ in range(3)]
    large = simulated_device.allocate(cuda_memory.MOST_SPARE_BLOCK + 1)
    simulator.fake().fake_reset(0, 0)
    del kept[0], kept[0]
    assert not simulator.fake().fake_log()
    del kept[0], large
    assert simulator.fake().fake_log().decode().split().count("cuMemFreeAsync") == 2
    assert simulated_device.memory().used == 0


def test_out_of_memory_reports_the_memory(simulated_device: Cuda) -> None:
    kept = simulated_device.allocate(1 << 20)
    text = (
        r"CUDA failed, allocating 2147483648 bytes: cuMemAllocFromPoolAsync returned CUDA_ERROR_OUT_OF_MEMORY, .*; "
        r"536870912 of the device's 1073741824 bytes are free, and Trivium uses 1048576 of the 1048576 that it holds"
    )
    with pytest.raises(ExecutionError, match=text):
        simulated_device.allocate(1 << 31)
    assert kept.nbytes == 1 << 20


@pytest.mark.parametrize("spare", [0, 1 << 20])
def test_the_pool_releases_cached_memory_when_memory_is_short(
    simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch, spare: int
) -> None:
    """Two blocks that are no longer used are each too small for a third; the device may still work on them."""
    monkeypatch.setattr(cuda_memory, "MOST_SPARE", spare)
    simulator.fake().fake_total(1 << 16)
    small = [simulated_device.allocate(24 << 10) for _ in range(2)]
    for block in small:
        simulated_device.upload(block, np.ones(24 << 10, np.uint8))
    del small, block
    large = simulated_device.allocate(40 << 10)
    assert simulated_device.memory() == cuda_memory.PoolStatistics(40 << 10, 48 << 10, 40 << 10)
    with pytest.raises(ExecutionError, match="Trivium uses 40960 of the 40960 that it holds"):
        simulated_device.allocate(40 << 10)
    assert large.nbytes == 40 << 10
