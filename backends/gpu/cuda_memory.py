"""Memory for an NVIDIA GPU: a pool of device memory, which is allocated and freed in the order of a stream; and pinned
host memory, through which arrays are copied."""

from __future__ import annotations

import ctypes
import heapq
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trivium.backends.gpu.cuda_library import OUT_OF_MEMORY, CudaError, Library, during

UNTIMED = 2
"""CU_EVENT_DISABLE_TIMING."""

STAGED = 4 << 20
"""The number of bytes of each of the two pinned blocks: large enough that copying one takes longer than its launch."""

UNIT = 512
"""The number of bytes of which a block is a multiple, so that blocks of similar sizes can take each other's place."""

MOST_SPARE_BLOCK, MOST_SPARE = 1 << 20, 64 << 20
"""The number of bytes of a block that is kept for the next one of its size, and of all such blocks, at most."""

_RELEASE_THRESHOLD, _RESERVED, _USED, _MOST_USED = 4, 5, 7, 8
"""Attributes of a pool."""

Current = Callable[[], AbstractContextManager[None]]
"""Makes the device's context the current one of the thread."""


class PoolProperties(ctypes.Structure):
    """CUmemPoolProps."""

    _fields_ = (
        ("allocation_type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location_type", ctypes.c_int),
        ("location_id", ctypes.c_int),
        ("security_attributes", ctypes.c_void_p),
        ("max_size", ctypes.c_size_t),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 54),
    )


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location_type", ctypes.c_int), ("location_id", ctypes.c_int), ("flags", ctypes.c_int))


class CudaMemory:
    """Bytes on a device, from a pool, or a part of such bytes, which keeps the whole."""

    def __init__(self, address: int, nbytes: int, whole: CudaMemory | None = None):
        self.address, self.nbytes = address, nbytes
        self._whole = whole

    def part(self, offset: int, nbytes: int) -> CudaMemory:
        return CudaMemory(self.address + offset, nbytes, self)


class Small(NamedTuple):
    """A small block; `number` counts such blocks from the oldest one on."""

    number: int
    address: int
    size: int


@dataclass(frozen=True)
class PoolStatistics:
    """Bytes of a pool: in use, in use at most so far, and taken from the device."""

    used: int
    most_used: int
    reserved: int


class Pool:
    """A device's memory, for one stream. A block without references returns to the pool when the device is
    done with all that was enqueued before; the pool keeps it for later blocks. `owns` says how a block is given back
    when nothing refers to it and it is not spare, and `free` gives one back.

    Small blocks are spare then: the driver takes longer for a block than for a launch. Their next use is enqueued on
    the same stream, after the last one. The oldest of them is used first, so that a program's runs have the same
    addresses again."""

    def __init__(
        self,
        cuda: Library,
        device: int,
        stream: int,
        current: Current,
        owns: Callable[..., None],
        free: Callable[[int], None],
    ):
        self._cuda, self._stream, self._current, self._owns, self._free = cuda, stream, current, owns, free
        self._small: dict[int, Small] = {}
        self._spare: dict[int, list[Small]] = {}
        self._spare_bytes = 0
        self._numbers = itertools.count()
        self._lock = threading.RLock()  # a finalizer may run while its thread holds it
        pinned, on_device = 1, 1
        properties = PoolProperties(allocation_type=pinned, location_type=on_device, location_id=device)
        self.handle = self._cuda.value("cuMemPoolCreate", ctypes.c_void_p, ctypes.byref(properties))

    def keep(self) -> None:
        """Keeps all memory that is released, even when the device is idle."""
        keep_all = ctypes.c_uint64((1 << 64) - 1)
        self._cuda.cuMemPoolSetAttribute(self.handle, _RELEASE_THRESHOLD, ctypes.byref(keep_all))

    def open_to(self, device: int) -> None:
        """Lets another device access the memory."""
        on_device, read_and_write = 1, 3
        access = Access(on_device, device, read_and_write)
        with self._current():
            self._cuda.cuMemPoolSetAccess(self.handle, ctypes.byref(access), 1)

    def allocate(self, nbytes: int) -> CudaMemory:
        size = max(1, -(-nbytes // UNIT)) * UNIT
        address = self._taken(size)
        if address is None:
            address = self._allocated(size, nbytes)
        memory = CudaMemory(address, nbytes)
        self._owns(memory, "cuMemFreeAsync", address, self._stream)
        return memory

    def _taken(self, size: int) -> int | None:
        """Returns the address of a spare block."""
        with self._lock:
            if not (blocks := self._spare.get(size)):
                return None
            self._spare_bytes -= size
            return heapq.heappop(blocks).address

    def keeps(self, address: int) -> bool:
        """Whether a block that nothing refers to is spare from now on."""
        with self._lock:
            block = self._small.get(address)
            if block is None or self._spare_bytes + block.size > MOST_SPARE:
                return False
            self._spare_bytes += block.size
            heapq.heappush(self._spare.setdefault(block.size, []), block)
            return True

    def _free_spare(self) -> None:
        with self._lock:
            spare, self._spare, self._spare_bytes = self._spare, {}, 0
        for block in itertools.chain(*spare.values()):
            self._free(block.address)

    def _allocated(self, size: int, nbytes: int) -> int:
        with self._current(), during(f"allocating {nbytes} bytes"):
            try:
                address = self._block(size)
            except CudaError as error:
                if error.code != OUT_OF_MEMORY:
                    raise
                address = self._block_of_the_rest(size)
        if size <= MOST_SPARE_BLOCK:
            self._small[address] = Small(next(self._numbers), address, size)
        else:
            self._small.pop(address, None)
        return address

    def _block(self, size: int) -> int:
        return self._cuda.value("cuMemAllocFromPoolAsync", ctypes.c_uint64, size, self.handle, self._stream)

    def _block_of_the_rest(self, size: int) -> int:
        """Allocates after returning unused blocks to the device: blocks that the pool keeps may be too small,
        or still in use by earlier work."""
        self._free_spare()
        self._cuda.cuStreamSynchronize(self._stream)
        self._cuda.cuMemPoolTrimTo(self.handle, 0)
        try:
            return self._block(size)
        except CudaError as error:
            if error.code != OUT_OF_MEMORY:
                raise
            raise CudaError(f"{error.reason}; {self._rest()}", error.code, api=error.api) from error

    def statistics(self) -> PoolStatistics:
        """Returns how much memory the pool holds."""
        with self._current(), during("asking for the statistics of memory"):
            used, most_used, reserved = map(self._attribute, (_USED, _MOST_USED, _RESERVED))
            return PoolStatistics(used - self._spare_bytes, most_used, reserved)

    def _attribute(self, kind: int) -> int:
        value = ctypes.c_uint64()
        self._cuda.cuMemPoolGetAttribute(self.handle, kind, ctypes.byref(value))
        return value.value

    def _rest(self) -> str:
        """Says how much memory there is."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        pool = self.statistics()
        return (
            f"{free.value} of the device's {total.value} bytes are free, and Trivium uses {pool.used} of the "
            f"{pool.reserved} that it holds"
        )


class Staging:
    """Two pinned blocks of the host: while the device copies to or from one, the processor copies the other. Threads
    take turns. `opened` gives them back."""

    def __init__(self, cuda: Library, opened: ExitStack):
        self._cuda = cuda
        self._lock = threading.Lock()
        self._blocks: list[tuple[int, np.ndarray, int]] = []
        for _ in range(2):
            address = self._cuda.value("cuMemHostAlloc", ctypes.c_void_p, STAGED, 0)
            opened.callback(self._cuda.cuMemFreeHost, address)
            event = self._cuda.value("cuEventCreate", ctypes.c_void_p, UNTIMED)
            opened.callback(self._cuda.cuEventDestroy_v2, event)
            memory = (ctypes.c_uint8 * STAGED).from_address(address)
            self._blocks.append((address, np.ctypeslib.as_array(memory), event))

    def upload(self, target: int, source: np.ndarray, stream: int) -> None:
        """Copies bytes of the host to the device. Returns when they have been read."""
        with self._lock:
            for number, (begin, end) in enumerate(_pieces(source.nbytes)):
                address, block, event = self._blocks[number % 2]
                self._cuda.cuEventSynchronize(event)  # an earlier copy from this block
                block[: end - begin] = source[begin:end]
                self._cuda.cuMemcpyHtoDAsync_v2(target + begin, address, end - begin, stream)
                self._cuda.cuEventRecord(event, stream)

    def download(self, target: np.ndarray, source: int, stream: int) -> None:
        """Copies bytes of the device to the host, and waits until they are there."""
        with self._lock:
            waiting: list[tuple[int, int]] = []
            for number, (begin, end) in enumerate(_pieces(target.nbytes)):
                address, _, event = self._blocks[number % 2]
                self._cuda.cuEventSynchronize(event)  # another stream may still copy from this block
                self._cuda.cuMemcpyDtoHAsync_v2(address, source + begin, end - begin, stream)
                self._cuda.cuEventRecord(event, stream)
                if waiting:
                    self._fetch(target, number - 1, *waiting.pop())
                waiting.append((begin, end))
            for begin, end in waiting:
                self._fetch(target, begin // STAGED, begin, end)

    def _fetch(self, target: np.ndarray, number: int, begin: int, end: int) -> None:
        _, block, event = self._blocks[number % 2]
        self._cuda.cuEventSynchronize(event)
        target[begin:end] = block[: end - begin]


def _pieces(nbytes: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, nbytes, STAGED):
        yield begin, min(begin + STAGED, nbytes)
