"""Special functions in float64, for `evaluate` of CHLO's ops. If Python's `math` has a function, it is used; the others
are series with all terms that matter in float64. A&S is Abramowitz and Stegun, the source of the formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

EVEN_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
EVEN_BERNOULLI += (854513 / 138, -236364091 / 2730)


def _vectorized(function: Callable[..., float]) -> Callable[..., np.ndarray]:
    """Turns a function of Python floats into one of arrays. With NumPy's floats, errors would only be warnings."""
    return np.vectorize(lambda *arguments: function(*map(float, arguments)), otypes=[np.float64])


erf = _vectorized(math.erf)
erfc = _vectorized(math.erfc)


@_vectorized
def erf_inv(x: float) -> float:
    """The inverse of `erf`: a rough start (Winitzki's formula), then Halley's iteration; on `erfc` where `erf` is
    flat."""
    magnitude = abs(x)
    if not magnitude < 1:
        return math.copysign(math.inf, x) if magnitude == 1 else math.nan
    if magnitude < 1e-8:
        return x * math.sqrt(math.pi) / 2
    logarithm = math.log1p(-magnitude * magnitude)
    middle = 2 / (math.pi * 0.147) + logarithm / 2
    guess = math.sqrt(math.sqrt(middle * middle - logarithm / 0.147) - middle)
    for _ in range(4):
        excess = math.erf(guess) - magnitude if magnitude < 0.5 else (1 - magnitude) - math.erfc(guess)
        step = excess * math.sqrt(math.pi) / 2 * math.exp(guess * guess)
        guess -= step / (1 + guess * step)
    return math.copysign(guess, x)


def _digamma(x: float) -> float:
    """The logarithmic derivative of the gamma function; NaN at its poles, as in XLA.

    Reflection (A&S 6.3.7) for negative numbers, recurrence (6.3.5) up to 10, the asymptotic series (6.3.18) above.
    """
    if math.isnan(x) or x == math.inf:
        return x
    if x == -math.inf or (x <= 0 and x % 1 == 0):
        return math.nan
    if x < 0:
        # The remainder, which is exact, has the same tangent.
        return _digamma(1 - x) - math.pi / math.tan(math.pi * math.remainder(x, 1))
    if x < 10:
        # Near its zero, these formulas subtract large numbers; a Taylor series around the zero does not.
        if abs(x - DIGAMMA_ZERO) < 0.25:
            return _digamma_near_zero(x)
        shifts = math.fsum(1 / (x + k) for k in range(10 - math.floor(x)))
        return _digamma(x + 10 - math.floor(x)) - shifts
    inverse = 1 / (x * x)
    series = sum(b / (2 * k) * inverse**k for k, b in enumerate(EVEN_BERNOULLI, 1))
    return math.log(x) - 0.5 / x - series


EULER = 0.5772156649015329
DIGAMMA_ZERO = 1.4616321449683623
DIGAMMA_ZERO_REST = 9.549995429965697e-17
"""The part of the zero that `DIGAMMA_ZERO` lacks."""


def _digamma_near_zero(x: float) -> float:
    """The Taylor series around the only positive zero; its coefficients are values of the Hurwitz zeta function."""
    offset = (x - DIGAMMA_ZERO) - DIGAMMA_ZERO_REST
    return sum(-((-offset) ** order) * value for order, value in enumerate(zetas(DIGAMMA_ZERO), 1))


digamma = _vectorized(_digamma)


def _zeta(x: float, q: float) -> float:
    """The Hurwitz zeta function: the sum of (q + n)^-x over n = 0, 1, 2, ..."""
    if math.isnan(x) or math.isnan(q) or x < 1:
        return math.nan
    if x == 1:
        return math.inf
    if math.isinf(q):
        return 0.0
    if q <= 0:
        if q % 1 == 0:
            return math.inf if x % 2 == 0 else math.nan
        if x % 1:
            return math.nan
    if math.isinf(x):
        return 0.0 if q > 1 else 1.0 if q == 1 else math.inf
    try:
        return _zeta_series(x, q) if q > -10 else _reflected_zeta(x, q)
    except OverflowError:
        return math.inf


zeta = _vectorized(_zeta)


def _zeta_series(x: float, q: float) -> float:
    """Twelve terms, and the Euler-Maclaurin formula (A&S 23.1.30) for the rest."""
    # For negative q the sum continues until q + n is positive.
    count = 12 + max(0, math.ceil(-q))
    terms = [(q + n) ** -x for n in range(count)]
    rest = q + count
    if rest**-x == 0:
        return math.fsum(terms)
    terms += [rest ** (1 - x) / (x - 1), 0.5 * rest**-x]
    factor = x * rest ** (-x - 1)
    for k, bernoulli in enumerate(EVEN_BERNOULLI, 1):
        terms.append(bernoulli / math.factorial(2 * k) * factor)
        factor *= (x + 2 * k - 1) * (x + 2 * k) / (rest * rest)
    return math.fsum(terms)


def _reflected_zeta(x: float, q: float) -> float:
    """For negative q and integer x: the sum of (q + n)^-x over all integers n, minus the terms with negative n."""
    above = q % 1
    both = _zeta_series(x, 1 - above) - _zeta_series(x, 1 - q)
    return _zeta_series(x, above) + (both if x % 2 == 0 else -both)


@cache
def zetas(q: float) -> tuple[float, ...]:
    """Returns zeta(2, q), zeta(3, q), ..., the numbers in Taylor series of the gamma function's logarithm around
    `q`."""
    return tuple(_zeta_series(float(order), q) for order in range(2, 42))


@_vectorized
def lgamma(x: float) -> float:
    """The logarithm of the absolute value of the gamma function; infinite at its poles. Around its zeros, 1 and 2,
    where `math.lgamma` loses precision, the Taylor series (A&S 6.1.33) is used."""
    for zero, slope in ((1.0, -EULER), (2.0, 1 - EULER)):
        offset = x - zero
        if abs(offset) < 0.25:
            terms = enumerate(zetas(zero), 2)
            return slope * offset + sum((-offset) ** order * value / order for order, value in terms)
    if x <= 0 and x % 1 == 0:
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


@_vectorized
def polygamma(n: float, x: float) -> float:
    """The n-th derivative of `digamma` (A&S 6.4.10); NaN if n is not a natural number."""
    if not (n >= 0 and n % 1 == 0):
        return math.nan
    if n == 0:
        return _digamma(x)
    sign = 1 if n % 2 else -1
    tail = _zeta(n + 1, x)
    if tail == 0 or not math.isfinite(tail):
        return sign * tail
    try:
        return sign * math.copysign(math.exp(math.lgamma(n + 1) + math.log(abs(tail))), tail)
    except OverflowError:
        return sign * math.copysign(math.inf, tail)


@_vectorized
def bessel_i1e(x: float) -> float:
    """The modified Bessel function of order 1, times exp(-|x|): its power series (A&S 9.6.10), whose terms are all
    positive, and for large arguments the asymptotic series (9.7.1)."""
    magnitude = abs(x)
    if math.isnan(x) or magnitude in (0, math.inf):
        return x if magnitude != math.inf else math.copysign(0.0, x)
    total = term = 1.0
    if magnitude < 30:
        for k in range(1, 200):
            term *= (magnitude / 2) ** 2 / (k * (k + 1))
            total += term
        return math.copysign(magnitude / 2 * total * math.exp(-magnitude), x)
    for k in range(1, 30):
        term *= -(4 - (2 * k - 1) ** 2) / (k * 8 * magnitude)
        total += term
    return math.copysign(total / math.sqrt(2 * math.pi) / math.sqrt(magnitude), x)
