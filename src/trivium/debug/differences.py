"""When two arrays count as different: integers must be equal; floats may differ by the rounding errors of a few
thousand operations, relative to the largest number of the array."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

ROUNDINGS = 2000
"""The number of roundings that a result may have accumulated; fewer in narrow types, which are computed in wider
ones."""

WIDEST = 1e-2
"""The largest tolerance that these roundings may amount to, unless a few roundings of the type are more."""


@dataclass(frozen=True)
class Difference:
    """The position where two arrays differ most: the index, both elements, and how many elements differ."""

    at: tuple[int, ...]
    ours: str
    expected: str
    count: int
    size: int

    def __str__(self) -> str:
        return f"{self.ours} at {list(self.at)}, expected {self.expected}; {self.count} of {self.size} elements differ"


def tolerance_of(dtype: np.dtype) -> float:
    """Returns the tolerance for elements of a type, relative to the largest one; 0 for integers."""
    if dtype.kind in "biu" or dtype.name.startswith(("int", "uint")):
        return 0.0
    real = {"c8": np.dtype(np.float32), "c16": np.dtype(np.float64)}.get(f"{dtype.kind}{dtype.itemsize}", dtype)
    epsilon = float(ml_dtypes.finfo(real).eps)
    return max(4 * epsilon, min(ROUNDINGS * epsilon, WIDEST))


def difference(ours: np.ndarray, expected: np.ndarray, tolerance: float | None = None) -> Difference | None:
    """Returns where `ours` differs most from `expected`, which has its shape; `None` if it does not."""
    tolerance = tolerance_of(expected.dtype) if tolerance is None else tolerance
    with np.errstate(all="ignore"):
        distance, both_nan = _distance(ours, expected)
        magnitudes = np.abs(_wide(expected))
        greatest = float(np.max(magnitudes, where=np.isfinite(magnitudes), initial=0.0))
        wrong = ~(distance <= tolerance * greatest) & ~both_nan
    if not wrong.any():
        return None
    severity = np.where(wrong, np.nan_to_num(distance, nan=np.inf, posinf=np.inf), -1.0)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(severity)), expected.shape))
    return Difference(at, str(ours[at]), str(expected[at]), int(wrong.sum()), expected.size)


def _distance(ours: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distance between corresponding elements; 0 for equal infinities, and if both are NaN."""
    a, b = _wide(ours), _wide(expected)
    return np.where(ours == expected, 0.0, np.abs(a - b)), (a != a) & (b != b)


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
