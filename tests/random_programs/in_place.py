"""Checks by recording that kernels may run in place: each launch of a program whose result is in the memory of an
operand runs in the interpreter, which notes what each iteration reads and writes. No rule of the compiler is used."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from trivium.compiler.kernel import Buffer, Kernel, numpy_dtype
from trivium.compiler.kernel.interpreter import Interpreter
from trivium.compiler.program import Launch, Program, walk
from trivium.compiler.verifier import overlap, region


@dataclass(frozen=True)
class Access:
    """What the iterations of the open `loops` access at once; `addresses` has an axis for each of them, and -1 for
    iterations that are not active."""

    loops: tuple[object, ...]
    addresses: np.ndarray


class Recorder(Interpreter):
    """Notes all accesses to two parameters, in order."""

    def __init__(self, kernel: Kernel, source: Buffer, destination: Buffer) -> None:
        rng = np.random.default_rng(0)
        memory = {p: rng.integers(0, 2, p.offset + _reach(p)).astype(numpy_dtype(p.dtype)) for p in kernel.params}
        super().__init__(memory)
        self.source, self.destination = source, destination
        self.open: list[object] = []
        self.wrong = False
        self.stores: list[Access] = []
        self.loads: list[Access] = []

    @contextmanager
    def inside(self, count: int, mask: np.ndarray) -> Iterator[None]:
        self.open.append(object())
        with super().inside(count, mask):
            yield
        self.open.pop()

    def load(self, buffer: Buffer, indices: Sequence[np.ndarray]) -> np.ndarray:
        if buffer is self.source and self.mask.any():
            access = self._access(buffer, indices)
            self.wrong |= any(_meet(access, earlier, apart=False) for earlier in self.stores)
            self.loads.append(access)
        return super().load(buffer, indices)

    def store(self, buffer: Buffer, value: np.ndarray, indices: Sequence[np.ndarray]) -> None:
        if buffer is self.destination:
            access = self._access(buffer, indices)
            self.wrong |= any(_meet(earlier, access, apart=True) for earlier in self.loads)
            self.stores.append(access)
        super().store(buffer, value, indices)

    def _access(self, buffer: Buffer, indices: Sequence[np.ndarray]) -> Access:
        found = np.broadcast_to(self.addresses(buffer, indices), self.shape)
        return Access(tuple(self.open), np.where(self.mask, found, -1))


def _meet(load: Access, store: Access, apart: bool) -> bool:
    """Whether any element is in both accesses; if `apart`, in different iterations of loops that are around both."""
    common = sum(one is other for one, other in zip(load.loops, store.loops, strict=False))
    writers = np.full(1 + max(load.addresses.max(initial=0), store.addresses.max(initial=0)), -1)
    read, written = (
        np.stack([_iterations(access, common), access.addresses.reshape(-1)])[:, access.addresses.reshape(-1) >= 0]
        for access in (load, store)
    )
    writers[written[1]] = written[0]
    found = writers[read[1]]
    return bool(((found >= 0) & (found != read[0]) if apart else found >= 0).any())


def _iterations(access: Access, common: int) -> np.ndarray:
    """Returns the number of the iteration of the `common` outer loops to which each element belongs."""
    outer, inner = access.addresses.shape[:common], access.addresses.shape[common:]
    return np.repeat(np.arange(math.prod(outer)), math.prod(inner))


def _reach(buffer: Buffer) -> int:
    return 1 + sum(max(0, extent - 1) * step for extent, step in zip(buffer.shape, buffer.layout, strict=True))


def runs_in_place(kernel: Kernel, source: Buffer, destination: Buffer) -> bool:
    """Whether no iteration of a kernel reads an element that it has overwritten, or that another one overwrites."""
    recorder = Recorder(kernel, source, destination)
    with np.errstate(all="ignore"):
        recorder.block(kernel.body)
    return not recorder.wrong


def unsound(program: Program) -> Iterator[str]:
    """Yields a line for each operand in whose memory a launch may not compute."""
    for launch in (step for step in walk(program.steps) if isinstance(step, Launch)):
        pairs = list(zip(launch.kernel.params, launch.arguments, strict=True))
        for (source, read), (destination, written) in itertools.permutations(pairs, 2):
            in_place = (source.mode, destination.mode) == ("in", "out") and overlap(region(read), region(written))
            if in_place and not runs_in_place(launch.kernel, source, destination):
                yield f"{launch.kernel.name} overwrites {source.name} by {destination.name}"
