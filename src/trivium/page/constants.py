"""A summary of a constant for people: shape, statistics and a histogram, never its elements. Of a large constant,
elements at equal distances are sampled, and the page says how many."""

from __future__ import annotations

import math

import numpy as np

from trivium.page.data import Histogram

SAMPLE = 1 << 14
"""The largest number of elements that are sampled."""

BINS = 24


def histogram(array: np.ndarray, dtype: str) -> Histogram | None:
    """Returns the summary of an array; `None` if its elements are not numbers, or if it is empty. Complex numbers are
    represented by their magnitude."""
    if array.size == 0 or array.dtype.kind not in "biufcV":
        return None
    try:
        sample = np.abs(taken := _sample(array)) if array.dtype.kind == "c" else (taken := _sample(array))
        wide = sample.astype(np.float64)
    except (TypeError, ValueError):
        return None
    finite = wide[np.isfinite(wide)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    bounds = (low, high) if math.isfinite(high - low) and high > low else (low - 0.5, low + 0.5)
    with np.errstate(all="ignore"):
        return Histogram(
            shape=list(array.shape),
            dtype=dtype,
            sampled=int(taken.size),
            low=low,
            high=high,
            mean=_finite(finite.mean() if finite.size else 0.0),
            deviation=_finite(finite.std() if finite.size else 0.0),
            zeros=int((wide == 0).sum()),
            nonfinite=int(wide.size - finite.size),
            counts=_counts(finite, bounds),
        )


def _counts(finite: np.ndarray, bounds: tuple[float, float]) -> list[int]:
    try:
        return np.histogram(finite, BINS, bounds)[0].tolist()
    except ValueError:  # the bounds are too close together for that number of bins
        return [int(finite.size)]


def _sample(array: np.ndarray) -> np.ndarray:
    """Returns elements at equal distances, without reading the others."""
    if array.size <= SAMPLE:
        return array.ravel()
    step = array.size // SAMPLE | 1  # odd, so that the sample is not always from the same column of a power of two
    numbers = np.arange(0, array.size, step)[:SAMPLE]
    return array[np.unravel_index(numbers, array.shape)]


def _finite(value: float) -> float:
    return float(value) if math.isfinite(value) else 0.0
