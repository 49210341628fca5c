"""Functions as series of Chebyshev polynomials, whose coefficients are computed from SciPy's functions when an op first
needs them. Infinity and singularities are left to the caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev

Curve = Callable[[np.ndarray], np.ndarray]
"""From an array of doubles to another one."""

DEGREE = 60

NOISE = float(np.finfo(np.float64).eps)
"""Relative to the largest coefficient."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The series of a curve on an interval."""

    curve: Curve
    low: float
    high: float


@cache
def coefficients_of(fit: Fit, eps: float = NOISE) -> tuple[float, ...]:
    """Returns the coefficients that make a difference to numbers whose relative error is `eps`."""
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
    small = max(eps / 16, NOISE) * np.abs(found).max()
    needed = int(np.flatnonzero(np.abs(found) > small).max()) + 1
    return tuple(map(float, found[:needed]))
