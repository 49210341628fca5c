"""The rows that exist of a program's results, where their number follows from data: cut out of results with room for
more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trivium.importers.tensorflow.module import Output
from trivium.ir.errors import Error


@dataclass(frozen=True)
class Rows:
    """What belongs to each result of a function, in those of its program; nothing if they are the same."""

    name: str
    outputs: Sequence[Output]

    def needed(self, results: Sequence[np.ndarray]) -> int:
        """Returns how many rows the program needs room for, 0 if it has enough."""
        counted = self._counted(results)
        for output, _, count in counted:
            if count < 0:
                raise Error(f"{output.op} in {self.name} has arguments out of range, expected {output.expected}")
        exceeding = [count for x, _, count in counted if count > results[x.result].shape[x.dimension]]
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
        return [(x, int(start), int(count)) for x, (start, count) in zip(counted, results[-1], strict=True)]


def _slices(x: np.ndarray, dimension: int, start: int, count: int) -> np.ndarray:
    """Returns slices of an array, which keep its memory only if they are most of it."""
    found = x[(slice(None),) * dimension + (slice(start, start + count),)]
    return found if 2 * found.size >= x.size else found.copy()
