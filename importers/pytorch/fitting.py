"""Functions as series of Chebyshev polynomials, whose coefficients are computed from SciPy's functions when an op first
needs them. Infinity and singularities are left to the caller."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from numpy.polynomial import chebyshev
from torch import Tensor

Curve = Callable[[np.ndarray], np.ndarray]
"""From an array of doubles to another one."""

DEGREE = 60

NOISE = float(np.finfo(np.float64).eps)
"""Relative to the largest coefficient."""


class Fit:
    """The series of a curve on an interval."""

    def __init__(self, curve: Curve, low: float, high: float):
        self.curve, self.low, self.high = curve, low, high

    def __call__(self, x: Tensor) -> Tensor:
        """Evaluates the series at points of the interval."""
        twice = (4 * x - 2 * (self.low + self.high)) / (self.high - self.low)
        first, *coefficients = coefficients_of(self, x.dtype)
        one, two = torch.zeros_like(x), torch.zeros_like(x)
        for coefficient in reversed(coefficients):
            one, two = twice * one - two + coefficient, one
        return twice * 0.5 * one - two + first


@cache
def coefficients_of(fit: Fit, dtype: torch.dtype) -> tuple[float, ...]:
    """Returns the coefficients that make a difference to numbers of this dtype."""

    nodes = chebyshev.chebpts1(DEGREE)
    with np.errstate(all="ignore"):
        values = fit.curve((fit.high - fit.low) / 2 * nodes + (fit.high + fit.low) / 2)
    # Polynomials are orthogonal over these nodes, the cosines of these angles in reverse. Sums of doubles would add
    # noise to each coefficient, and so would polynomials at rounded nodes: their slopes are steep near the ends.
    turns = np.outer(np.arange(DEGREE), np.arange(2 * DEGREE - 1, 0, -2)) % (4 * DEGREE)
    angles = turns * (np.arccos(np.longdouble(0)) / DEGREE)
    found = (np.cos(angles) @ values.astype(np.longdouble)).astype(np.float64) * 2 / DEGREE
    found[0] /= 2
    # The curve's values are doubles: coefficients below their rounding errors are noise, too.
    small = max(torch.finfo(dtype).eps / 16, NOISE) * np.abs(found).max()
    needed = int(np.flatnonzero(np.abs(found) > small).max()) + 1
    return tuple(map(float, found[:needed]))
