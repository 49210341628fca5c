"""The words that running a program on a GPU needs: memory, kernels, launches, copies. Every driver has its own file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.target import GpuTarget


class Memory(Protocol):
    """Bytes on the device. They are released when nothing refers to them or to a part of them."""

    nbytes: int

    def part(self, offset: int, nbytes: int) -> Memory:
        """Returns some of these bytes; `offset` is a multiple of the device's alignment."""
        ...


class Event(Protocol):
    """Everything that the driver had been told before."""

    def is_ready(self) -> bool: ...
    def wait(self) -> None: ...


M = TypeVar("M", bound=Memory)
"""The driver's memory."""

K = TypeVar("K")
"""The driver's functions of the device."""


class Driver(Protocol[M, K]):
    """One device, and a queue of work for it. What is told is done in order; `download` waits until it is done, and
    everything else may return before. Raises `ExecutionError`."""

    platform: ClassVar[str]
    """The name of the platform, as in `trivium.compile(device=...)`."""

    kind: str
    """The device's model, for people to read."""

    version: str
    """The versions of the driver and of what leads to it, for people to read."""

    dialect: Dialect
    target: GpuTarget

    def allocate(self, nbytes: int) -> M: ...

    def load(self, binary: bytes) -> Mapping[str, K]:
        """Returns the kernels of a binary, by name."""
        ...

    def launch(self, kernel: K, blocks: int, threads: int, arguments: Sequence[M | None]) -> None:
        """Runs a kernel. No other thread launches the same kernel object at the same time."""
        ...

    def upload(self, target: M, source: np.ndarray) -> None:
        """Copies an array to the device. Afterwards, the array may change."""
        ...

    def download(self, target: np.ndarray, source: M) -> None:
        """Copies to an array, and waits until it is there."""
        ...

    def copy(self, target: M, source: M, nbytes: int) -> None: ...

    def event(self) -> Event:
        """Returns the event that everything told so far is done."""
        ...


AnyDriver = Driver[Any, Any]
"""A driver whose memory and kernels are only passed on."""
