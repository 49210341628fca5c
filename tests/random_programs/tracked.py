"""A value with a bound of its error; and when no bound is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tests.random_programs.arrays import greatest, is_inexact

MOST_ERROR = 2e-3
"""The greatest error, relative to the greatest element: more would hide wrong answers."""


class Unstable(Exception):
    """A value of which no useful bound is known."""


@dataclass(frozen=True)
class Tracked:
    """A value, and by how much each of its elements may differ."""

    array: np.ndarray
    error: float = 0.0

    @property
    def greatest(self) -> float:
        return greatest(self.array)


def bounded(array: np.ndarray, error: float) -> Tracked:
    """A value, unless its error is too great to tell right from wrong."""
    if error == 0 or not array.size or not is_inexact(array.dtype):
        return Tracked(array)
    most = greatest(array)
    if not math.isfinite(error + most) or error > MOST_ERROR * max(most, 1e-3):
        raise Unstable(f"an error of {error} for numbers up to {most}")
    return Tracked(array, error)
