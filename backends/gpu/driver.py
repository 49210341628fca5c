"""The interface of a GPU driver: memory, kernels, launches, copies. Each driver is implemented in a separate file."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.plan import TensorMap
from trivium.backends.gpu.target import GpuTarget


class Memory(Protocol):
    """Bytes on the device. They are released when nothing refers to them or to a part of them."""

    nbytes: int

    def part(self, offset: int, nbytes: int) -> Memory:
        """Returns some of these bytes; `offset` is a multiple of the device's alignment."""
        ...


class Event(Protocol):
    """Marks the point when everything queued on the driver so far is done."""

    def is_ready(self) -> bool: ...
    def wait(self) -> None: ...


M = TypeVar("M", bound=Memory)
K = TypeVar("K")
"""The driver's memory, and its functions of the device."""

T = TypeVar("T", bound=Memory, contravariant=True)
F = TypeVar("F", contravariant=True)
"""The same, for classes that only take them."""

Recordings = dict[Hashable, Any]
"""The work of one program that a driver has recorded to repeat it."""


class Queue(Protocol[T, F]):
    """Takes work for a device, and may return before it is done."""

    def launch(self, kernel: F, blocks: int, threads: int, arguments: Sequence[T | None]) -> None:
        """Runs a kernel. No other thread launches the same kernel object at the same time."""
        ...

    def copy(self, target: T, source: T, nbytes: int) -> None: ...

    def upload(self, target: T, source: np.ndarray) -> None:
        """Copies an array to the device. Afterwards, the array may change."""
        ...

    def download(self, target: np.ndarray, source: T) -> None:
        """Copies to an array, and waits until it is there."""
        ...


class Repeating(Queue[T, F], Protocol[T, F]):
    """A queue that may be faster when the same work is enqueued again."""

    def repeat(self, kept: Recordings, memories: Sequence[T], enqueue: Callable[[Queue[T, F]], None]) -> None:
        """Calls `enqueue`, which enqueues launches and copies that depend on nothing but `memories`. `kept`
        is what the queue keeps from one time to the next."""
        ...


class Guest(Queue[M, F], Protocol[M, F]):
    """A queue of another library on the same device, and its memory."""

    def repeat(self, kept: Recordings, addresses: tuple[int, ...], enqueue: Callable[[Queue[M, F]], None]) -> None:
        """Does the same as `Repeating.repeat`, with the addresses of all memory that the work depends on."""
        ...

    def memory(self, address: int, nbytes: int) -> M:
        """Returns memory that belongs to the other library."""
        ...

    def launch_at(self, kernel: F, blocks: int, threads: int, addresses: Sequence[int]) -> None:
        """Does the same as `launch` with the addresses of arguments."""
        ...


class Driver(Repeating[M, K], Protocol[M, K]):
    """One device, and a queue of work for it. Work is done in the order in which it is queued; `download` waits until
    it is done, and all other methods may return before. Raises `ExecutionError`."""

    platform: ClassVar[str]
    """The name of the platform, as in `trivium.compile(device=...)`."""

    kind: str
    """The device's model, for people to read."""

    version: str
    """The versions of the driver and of what leads to it, for people to read."""

    dialect: Dialect
    target: GpuTarget

    def allocate(self, nbytes: int) -> M: ...

    def load(
        self, binary: bytes, granted: Mapping[str, int], maps: Mapping[str, Sequence[TensorMap]]
    ) -> Mapping[str, K]:
        """Returns the kernels of a binary that have these names, each with the bytes of dynamic shared memory of its
        launches, and with the array descriptors that it takes."""
        ...

    def borrowed(self, array: object) -> tuple[M, np.dtype, tuple[int, ...]] | None:
        """Returns the memory, type and shape of another library's array that is on this device; None for all other
        objects."""
        ...

    def guest(self, stream: int, after_ours: bool) -> AbstractContextManager[Guest[M, K]]:
        """Returns a queue of another library, by its handle, for as long as the context lasts. On request, it starts
        after all work that this driver has enqueued before; work that this driver enqueues later waits for it."""
        ...

    def event(self) -> Event:
        """Returns the event that everything queued so far is done."""
        ...

    def native_event(self) -> Mapping[str, int]:
        """Returns the same for native code, which destroys it: the fields of an `AcceleratorEvent`. A driver without
        functions for native code waits, and returns nothing."""
        ...

    def receive(self, target: M, source: Memory, sender: AnyDriver) -> bool:
        """Copies all bytes of another device's memory, in the order of the work of both; the devices do it by
        themselves. Returns False, and has done nothing, if they cannot."""
        ...

    def address(self, memory: M) -> int:
        """Returns the address of memory on the device, for other libraries."""
        ...

    def at_address(self, address: int, nbytes: int) -> M:
        """Returns memory that belongs to another library."""
        ...


AnyDriver = Driver[Any, Any]
"""A driver whose memory and kernels are only passed on."""


def copy_between(target: Memory, receiver: AnyDriver, source: Memory, sender: AnyDriver) -> None:
    """Copies all bytes of memory to that of the same or another device: through the host, if there is no other way."""
    if sender is receiver:
        receiver.copy(target, source, source.nbytes)
    elif not receiver.receive(target, source, sender):
        array = np.empty(source.nbytes, np.uint8)
        sender.download(array, source)
        receiver.upload(target, array)
