"""Requests for rows over which several loops pass, such as those of a softmax. While a loop computes with a row that
is in the first-level cache, memory would rest; and then the next loops would wait for it, because the processor sees
that a row is read only when that begins, and looks ahead over few writes. So the loop that computes most requests the
lines of the row that is written afterwards, and those of the row that is read next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trivium.backends.cpu.prefetching import request
from trivium.backends.cpu.target import CpuTarget
from trivium.backends.llvm.emitter import Emitter
from trivium.compiler.kernel.affine import accesses
from trivium.compiler.kernel.dtypes import storage_bytes
from trivium.compiler.kernel.index import Index
from trivium.compiler.kernel.ops import cost
from trivium.compiler.kernel.structure import Apply, Buffer, Load, Loop, Register, Store
from trivium.compiler.schedule import LoopSchedule

BUSY = 10.0
"""The least cost of a loop's body: that of an exponential. During less work, memory hardly rests."""
SHORTEST = 1024
"""The least bytes of a row: in shorter ones, the processor reaches the next row soon enough."""


@dataclass(frozen=True)
class Request:
    """An element of `buffer`, whose row moves with the index of the loop that requests it."""

    buffer: Buffer
    place: Index


def find(emitter: Emitter, loop: Loop, schedule: LoopSchedule) -> dict[Loop, list[Request]]:
    """Returns what one of the loops in a parallel loop over rows requests, of arrays that are not in the caches."""
    outer = [d for d, extent in enumerate(schedule.extents) if extent != 1]
    passes = [inner for inner in loop.body.instructions if isinstance(inner, Loop)]
    if schedule.vector is not None or not outer or len(passes) < 2 or not all(_is_row(emitter, p) for p in passes):
        return {}
    rows = _Rows(emitter, loop.indices[outer[-1]], passes)
    busiest = max(passes, key=_work)
    if _work(busiest) < BUSY:
        return {}
    requests = list(dict.fromkeys(rows.requests(passes.index(busiest))))
    return {busiest: requests} if requests else {}


def emit(emitter: Emitter, requests: list[Request]) -> None:
    """Requests what is as far in each row as the vector that is computed now."""
    for each in requests:
        nbytes = emitter.lanes * storage_bytes(each.buffer.dtype)
        request(emitter, each.buffer, emitter.split(each.place)[0], nbytes)


def are_written_in_time(emitter: Emitter, loop: Loop, requests: dict[Loop, list[Request]]) -> bool:
    """Whether all that a loop writes is in the caches, or was requested: bursts of other writes take longer than those
    that are spread over time."""
    requested = {request.buffer for each in requests.values() for request in each}
    written = {access.buffer for access in accesses(loop.body) if isinstance(access, Store)} - requested
    return all(buffer.mode == "scratch" or buffer.nbytes <= _cached_bytes(emitter) for buffer in written)


def _cached_bytes(emitter: Emitter) -> int:
    target = emitter.code.target
    assert isinstance(target, CpuTarget), "a processor"
    return target.prefetch_bytes


def _is_row(emitter: Emitter, inner: Loop) -> bool:
    """Whether a loop runs over one dimension, in lanes."""
    extents = emitter.schedule.loops[inner].extents
    return len(extents) == 1 and isinstance(extents[0], int) and emitter.schedule.loops[inner].vector is not None


def _work(inner: Loop) -> float:
    return sum(cost(i.op, i.arguments[0].dtype) for i in inner.body.instructions if isinstance(i, Apply))


class _Rows:
    """The rows of the loops `passes`, which are at places that depend on `index`."""

    def __init__(self, emitter: Emitter, index: Register, passes: list[Loop]) -> None:
        self.analysis, self.index, self.passes, self.least = emitter.analysis, index, passes, _cached_bytes(emitter)
        self.extent = emitter.schedule.loops[passes[0]].extents[0]
        self.schedules, self.known = emitter.schedule.loops, set(emitter.values)

    def requests(self, busiest: int) -> Iterator[Request]:
        """Yields what a pass requests: the next rows of those that were read before it, and the rows that are written
        after it. Nothing if it uses other rows itself: then memory does not rest."""
        alongside = self.passes[busiest].indices[0]
        read = dict.fromkeys(self._places(self.passes[:busiest], alongside, reads=True))
        used = self._places(self.passes[busiest : busiest + 1], alongside)
        if not read or not set(used).issubset(read):
            return
        for buffer, place in read:
            yield Request(buffer, place + place.terms[self.index])
        for buffer, place in self._places(self.passes[busiest + 1 :], alongside):
            if (buffer, place) not in read:
                yield Request(buffer, place)

    def _places(self, passes: list[Loop], alongside: Register, reads: bool = False) -> Iterator[tuple[Buffer, Index]]:
        """Yields the rows that loops use, or only those that they read: each as the place of the element where another
        loop's index is."""
        for inner in passes:
            (own,) = inner.indices
            for access in accesses(inner.body):
                if (isinstance(access, Load) or not reads) and self._is_long(access.buffer, inner):
                    address = self.analysis.address(access.buffer, access.indices)
                    known = all(atom is own or atom in self.known for atom in address.terms)
                    if known and address.terms.get(own) == 1 and self.index in address.terms:
                        terms = {alongside if atom is own else atom: factor for atom, factor in address.terms.items()}
                        yield access.buffer, Index(terms, address.offset)

    def _is_long(self, buffer: Buffer, inner: Loop) -> bool:
        """Whether a loop uses long rows of a large array."""
        extent = self.schedules[inner].extents[0]
        large = buffer.mode != "scratch" and buffer.nbytes > self.least
        long = isinstance(extent, int) and extent * storage_bytes(buffer.dtype) >= SHORTEST
        return large and long and extent == self.extent
