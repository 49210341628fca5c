"""Bessel functions as fitted series, with what is known of their singularities and of infinity divided out."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from trivium.importers.fitting import Fit

LIMIT = 8.0
"""Where the series in `x` end, and those in `1 / x` begin."""

# Modified functions of the first kind, without their exponential: of x, and times sqrt(x), of 1 / x

I0 = Fit(special.i0e, 0, LIMIT), Fit(lambda t: special.i0e(1 / t) / np.sqrt(t), 1e-6, 1 / LIMIT)
I1 = Fit(lambda x: special.i1e(x) / x, 0, LIMIT), Fit(lambda t: special.i1e(1 / t) / np.sqrt(t), 1e-6, 1 / LIMIT)

# Those of the second kind: up to 2 without their logarithm, of x**2; beyond it without the exponential, of 1 / x

K0 = (
    Fit(lambda s: special.k0(np.sqrt(s)) + np.log(np.sqrt(s) / 2) * special.i0(np.sqrt(s)), 1e-12, 4),
    Fit(lambda t: special.k0e(1 / t) / np.sqrt(t), 1e-6, 0.5),
)
K1 = (
    Fit(lambda s: np.sqrt(s) * (special.k1(np.sqrt(s)) - np.log(np.sqrt(s) / 2) * special.i1(np.sqrt(s))), 1e-12, 4),
    Fit(lambda t: special.k1e(1 / t) / np.sqrt(t), 1e-6, 0.5),
)

# Functions of both kinds, of x**2: those of order 1 divided by x, those of the second kind without their logarithm

J0 = Fit(lambda s: special.j0(np.sqrt(s)), 0, LIMIT**2)
J1 = Fit(lambda s: special.j1(np.sqrt(s)) / np.sqrt(s), 1e-12, LIMIT**2)
Y0 = Fit(lambda s: special.y0(np.sqrt(s)) - np.log(s / 4) / math.pi * special.j0(np.sqrt(s)), 1e-12, LIMIT**2)
Y1 = Fit(
    lambda s: np.sqrt(s) * (special.y1(np.sqrt(s)) - np.log(s / 4) / math.pi * special.j1(np.sqrt(s))),
    *(1e-12, LIMIT**2),
)


class Waves:
    """The functions of one order beyond the limit: waves with two amplitudes, which are fitted as functions of
    (LIMIT / x)**2."""

    def __init__(self, order: int):
        self.phase = (2 * order + 1) * math.pi / 4
        self.first, self.second = ((special.j0, special.y0), (special.j1, special.y1))[order]
        self.even = Fit(lambda z: self._amplitudes(LIMIT / np.sqrt(z))[0], 1e-5, 1)
        self.odd = Fit(lambda z: self._amplitudes(LIMIT / np.sqrt(z))[1], 1e-5, 1)

    def _amplitudes(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        j, y, turn = self.first(x), self.second(x), x - self.phase
        scale = np.sqrt(math.pi * x / 2)
        return scale * (j * np.cos(turn) + y * np.sin(turn)), x * scale * (y * np.cos(turn) - j * np.sin(turn))


WAVES = Waves(0), Waves(1)
