"""Slices the existing rows out of a program's results, where their number depends on data and results have space for
more. Lists inside a program have space for more elements as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trivium.importers.tensorflow.module import Output
from trivium.ir.errors import Error


@dataclass(frozen=True)
class Rows:
    """What belongs to each result of a function, in those of its program; nothing if they are the same. `lists` says
    for how many elements those lists have room whose length depends on data."""

    name: str
    outputs: Sequence[Output]
    lists: Sequence[int] = ()

    def needed(self, results: Sequence[np.ndarray]) -> int:
        """Returns for how many rows and elements the program needs room, 0 if it has enough."""
        counted = self._counted(results)
        for output, _, count in counted:
            if count < 0:
                raise Error(f"{output.op} in {self.name} has arguments out of range, expected {output.expected}")
        exceeding = [count for x, _, count in counted if count > results[x.result].shape[x.dimension]]
        lengths = results[-1][len(counted) :, 1].tolist() if self.lists else []
        exceeding += [length for length, room in zip(lengths, self.lists, strict=True) if length > room]
        return 1 << (max(exceeding) - 1).bit_length() if exceeding else 0

    def cut(self, results: list[np.ndarray]) -> list[np.ndarray]:
        """Returns the results of the function."""
        if not self.outputs:
            return results
        found = [results[x.result] for x in self.outputs]
        places = [index for index, x in enumerate(self.outputs) if x.op]
        for index, (output, start, count) in zip(places, self._counted(results), strict=True):
            found[index] = _slices(found[index], output.dimension, start, count)
        return found

    def _counted(self, results: Sequence[np.ndarray]) -> list[tuple[Output, int, int]]:
        """Returns of each output that has been counted where its rows start, and how many there are."""
        if not self.outputs:
            return []
        counted = [x for x in self.outputs if x.op]
        pairs = results[-1][: len(counted)]
        return [(x, int(start), int(count)) for x, (start, count) in zip(counted, pairs, strict=True)]


def _slices(x: np.ndarray, dimension: int, start: int, count: int) -> np.ndarray:
    """Returns slices of an array, which keep its memory only if they are most of it."""
    found = x[(slice(None),) * dimension + (slice(start, start + count),)]
    return found if 2 * found.size >= x.size else found.copy()
