"""Where allocations are stored: in the memory of results that are not computed yet, and in the arena. Both are one
range of addresses here, with walls between the results, so that an allocation is placed by one search for a gap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from trivium.compiler.kernel import storage_bytes
from trivium.compiler.program import Arena, Array, Output

FOREVER = 1 << 62


@dataclass(eq=False)
class Allocation:
    """Values that share their bytes. `points` are the times at which any of them is alive."""

    values: list[Array]
    points: int
    nbytes: int
    output: Output | None = None

    @property
    def start(self) -> int:
        return (self.points & -self.points).bit_length() - 1

    @property
    def end(self) -> int:
        return self.points.bit_length() - 1


def place(allocations: Iterable[Allocation], alignment: int, least: int) -> int:
    """Gives every value of the allocations its storage: the largest first, each in the smallest gap that fits. From
    `least` bytes on, values may be in the memory of results, which are as large or larger. Returns the size of the
    arena."""
    distinct = list(dict.fromkeys(allocations))
    results = [a for a in distinct if a.output is not None]
    others = [a for a in distinct if a.output is None]
    for allocation in results:
        _store(allocation, allocation.output)
    addresses = _Addresses([result for result in results if result.nbytes >= least], len(others), alignment)
    for allocation in sorted(others, key=lambda a: (-a.nbytes, a.start)):
        _store(allocation, addresses.add(allocation, in_results=allocation.nbytes >= least))
    return addresses.arena_size


def _store(allocation: Allocation, storage: Output | Arena | None) -> None:
    assert storage is not None
    for value in allocation.values:
        value.storage = storage


class _Addresses:
    """The memory of results, one after another, and then the arena, which has no end. Each range of bytes that is taken
    is a column of `_taken`: where it begins and ends, and the first and last time at which it is taken. The caller
    aligns results to their own elements only: those with the largest elements come first, and a value may be in the
    memory of results whose elements are as large as its own."""

    def __init__(self, results: Sequence[Allocation], others: int, alignment: int) -> None:
        self._alignment = alignment
        self._taken = np.empty((4, 2 * len(results) + others), np.int64)
        self._count = 0
        self._results = sorted(results, key=lambda result: -_element_bytes(result))
        self._bases = [0]
        for result in self._results:
            wall = self._bases[-1] + result.nbytes
            self._bases.append(-(-wall // alignment) * alignment + alignment)
            self._take(self._bases[-2], result.nbytes, result.start, result.end)
            self._take(wall, self._bases[-1] - wall, 0, FOREVER)
        self.arena_size = 0

    def add(self, allocation: Allocation, in_results: bool) -> Output | Arena:
        """Stores an allocation."""
        smaller = -_element_bytes(allocation)
        count = bisect_right(self._results, smaller, key=lambda r: -_element_bytes(r)) if in_results else 0
        address = self._gap(allocation, count)
        self._take(address, allocation.nbytes, allocation.start, allocation.end)
        number = bisect_right(self._bases, address) - 1
        offset = address - self._bases[number]
        if number < len(self._results):
            output = self._results[number].output
            assert output is not None
            return Output(output.index, offset)
        self.arena_size = max(self.arena_size, offset + allocation.nbytes)
        return Arena(offset)

    def _gap(self, allocation: Allocation, results: int) -> int:
        """Returns where the smallest gap begins that fits, in the first few results or in the arena."""
        begins, ends, since, until = self._taken[:, : self._count]
        meets = (since <= allocation.end) & (until >= allocation.start)
        begins, ends = np.append(begins[meets], self._bases[results]), np.append(ends[meets], self._bases[-1])
        order = np.argsort(begins)
        begins, ends = begins[order], np.maximum.accumulate(ends[order])
        starts = np.concatenate([[0], -(-ends // self._alignment) * self._alignment])
        sizes = np.append(begins, FOREVER) - starts
        return int(starts[np.where(sizes >= allocation.nbytes, sizes, FOREVER + 1).argmin()])

    def _take(self, address: int, nbytes: int, since: int, until: int) -> None:
        self._taken[:, self._count] = address, address + nbytes, since, until
        self._count += 1


def _element_bytes(allocation: Allocation) -> int:
    return max(storage_bytes(value.dtype) for value in allocation.values)
