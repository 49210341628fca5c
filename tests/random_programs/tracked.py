"""Values with error bounds, and the exception for values without a useful bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tests.random_programs.arrays import greatest, is_inexact, wide

MOST_ERROR = 2e-3
"""The largest error, relative to the largest element: a larger one would hide wrong results."""


class Unstable(Exception):
    """A value without a useful error bound."""


@dataclass(frozen=True)
class Tracked:
    """A value, and the error that each of its elements may have."""

    array: np.ndarray
    error: float = 0.0

    @property
    def greatest(self) -> float:
        return greatest(self.array)


def bounded(array: np.ndarray, error: float) -> Tracked:
    """Returns a value, unless its error is too large to tell right from wrong."""
    if error == 0 or not array.size or not is_inexact(array.dtype):
        return Tracked(array)
    most = greatest(array)
    if not math.isfinite(error + most) or error > MOST_ERROR * max(most, 1e-3):
        raise Unstable(f"an error of {error} for numbers up to {most}")
    return Tracked(array, error)


def difference(result: np.ndarray, expected: Tracked) -> str:
    """Returns what is wrong with a result; empty if it is right."""
    wanted = expected.array
    if expected.error == 0:
        wrong = _bits(result) != _bits(wanted)
        with np.errstate(invalid="ignore"):
            wrong &= ~((result != result) & (wanted != wanted))  # all NaN are equal
    else:
        distance = np.abs(wide(result) - wide(wanted))
        wrong = ~(distance <= expected.error)
    if not wrong.any():
        return ""
    place = tuple(int(i) for i in np.argwhere(wrong.reshape(wanted.shape))[0])
    bound = f", within {expected.error:.3g}" if expected.error else ""
    pair = f"{result[place]!s} at {list(place)}, expected {wanted[place]!s}{bound}"
    return f"{pair}; {int(wrong.sum())} of {wanted.size} elements differ"


def _bits(array: np.ndarray) -> np.ndarray:
    """Returns the elements as integers, which are equal if and only if the bits are."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "c":
        pairs = array.view(np.float32 if array.itemsize == 8 else np.float64).reshape(*array.shape, 2)
        mixed = _bits(pairs).astype(np.uint64)
        return mixed[..., 0] * np.uint64(0x9E3779B97F4A7C15) + mixed[..., 1]
    return array.view(f"u{array.itemsize}").reshape(array.shape)
