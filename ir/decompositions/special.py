"""The error and gamma functions with their relatives, and a Bessel function: in f64, by formulas without loops. A&S is
Abramowitz and Stegun, the source of every formula for which no other is named."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from trivium.ir.decompositions.coefficients import (
    ERF_INV,
    ERF_SMALL,
    ERFC_FAR,
    ERFC_MIDDLE,
    I1E_FAR,
    I1E_NEAR,
)
from trivium.ir.decompositions.table import decomposition
from trivium.ir.decompositions.tensors import (
    Tensor,
    cos,
    exp,
    floor,
    log,
    log1p,
    maximum,
    polynomial,
    sign,
    sin,
    sqrt,
    where,
)
from trivium.ir.ops import BesselI1e, Digamma, Erf, Erfc, ErfInv, Lgamma, Polygamma, Zeta
from trivium.ir.ops.special import DIGAMMA_ZERO, DIGAMMA_ZERO_REST, EULER, EVEN_BERNOULLI, zetas
from trivium.ir.types import F32, F64, TensorType

# The error function


@decomposition(Erf, precision=F64)
def erf(operand):
    x = operand
    tail = 1 - _erfc_tail(maximum(abs(x), 1))
    return where(abs(x) < 1, _erf_small(x), where(x < 0, -tail, tail))


@decomposition(Erfc, precision=F64)
def erfc(operand):
    x = operand
    tail = _erfc_tail(maximum(abs(x), 1))
    return where(abs(x) < 1, 1 - _erf_small(x), where(x < 0, 2 - tail, tail))


def _erf_small(x: Tensor) -> Tensor:
    """The error function for |x| up to 1."""
    numerator, denominator = ERF_SMALL
    square = x * x
    return x * polynomial(square, numerator) / polynomial(square, denominator)


def _erfc_tail(x: Tensor) -> Tensor:
    """The complementary error function for x from 1 on."""
    (middle, below_middle), (far, below_far) = ERFC_MIDDLE, ERFC_FAR
    ratio = where(
        x < 8,
        polynomial(x, middle) / polynomial(x, below_middle),
        polynomial(x, far) / polynomial(x, below_far),
    )
    # The square is split to keep its low bits: a number of 24 bits has an exact square, and the rest is added.
    coarse = x.to(F32).to(F64)
    found = exp(-coarse * coarse) * exp((coarse - x) * (coarse + x)) * ratio
    return where(x > 28, x.like(0), found)


@decomposition(ErfInv, precision=F64)
def erf_inv(operand):
    """Giles, "Approximating the erfinv function", 2010: three polynomials of the logarithm of 1 - x^2."""
    x = operand
    # Far from zero, the square would lose the digits of 1 - x^2.
    magnitude = abs(x)
    logarithm = -where(magnitude < 0.5, log1p(-x * x), log1p(-magnitude) + log1p(magnitude))
    root = sqrt(logarithm)
    near, middle, far = ERF_INV
    found = where(logarithm < 16, polynomial(root - 3.25, middle), polynomial(root - 5, far))
    found = where(logarithm < 6.25, polynomial(logarithm - 3.125, near), found) * x
    return where(magnitude.equals(1), x * math.inf, found)


# The gamma function

_SHIFT = 10
"""The asymptotic series have full precision from here on; smaller arguments are shifted by this."""


@decomposition(Lgamma, precision=F64)
def lgamma(operand):
    return _lgamma(operand)


def _lgamma(x: Tensor) -> Tensor:
    """Reflection (A&S 6.1.17) for arguments below 1/2, the Taylor series (6.1.33) for small ones, else the asymptotic
    series (6.1.41), with the recurrence (6.1.15) up to 10."""
    reflected = x < 0.5
    positive = where(reflected, 1 - x, x)
    found = _lgamma_positive(positive)
    distance = abs(x - floor(x + 0.5))
    found = where(reflected, math.log(math.pi) - log(sin(distance * math.pi)) - found, found)
    # Where the sine would be subnormal, the reciprocal of x is the whole result.
    found = where(abs(x) < 1e-20, -log(abs(x)), found)
    found = where((x <= 0) & floor(x).equals(x), x.like(math.inf), found)
    return where(abs(x).equals(math.inf), x.like(math.inf), found)


def _lgamma_positive(x: Tensor) -> Tensor:
    shifted = x < _SHIFT
    product = x
    for step in range(1, _SHIFT):
        product = product * (x + step)
    far = where(shifted, x + _SHIFT, x)
    inverse = 1 / far
    terms = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(EVEN_BERNOULLI, 1)]
    series = polynomial(inverse * inverse, terms[::-1]) * inverse
    found = (far - 0.5) * (log(far) - 1) + (0.5 * math.log(2 * math.pi) - 0.5) + series
    found = where(shifted, found - log(product), found)
    return where(x < 3.75, _lgamma_near_two(x), found)


def _lgamma_near_two(x: Tensor) -> Tensor:
    """The Taylor series around 2, and the recurrence for the intervals next to it: this way the zeros at 1 and 2 do not
    result from cancellation."""
    below, above = x < 1.25, x >= 2.75
    offset = where(below, x - 1, where(above, x - 3, x - 2))
    terms = [(-1) ** order * value / order for order, value in enumerate(zetas(2.0), 2)]
    series = polynomial(offset, [*terms[::-1], 1 - EULER]) * offset
    return where(below, series - log(x), where(above, series + log(x - 1), series))


@decomposition(Digamma, precision=F64)
def digamma(operand):
    return _digamma(operand)


def _digamma(x: Tensor) -> Tensor:
    """Reflection (A&S 6.3.7) for negative arguments, recurrence (6.3.5) for small ones, else the asymptotic series
    (6.3.18); around the positive zero the Taylor series."""
    reflected = x < 0
    found = _digamma_positive(where(reflected, 1 - x, x))
    angle = (x - floor(x + 0.5)) * math.pi
    found = where(reflected, found - math.pi * cos(angle) / sin(angle), found)
    pole = (x <= 0) & floor(x).equals(x)
    found = where(pole, x.like(math.nan), found)
    return where(x.equals(math.inf), x, found)


def _digamma_positive(x: Tensor) -> Tensor:
    shifted = x < _SHIFT
    shifts = 1 / x
    for step in range(1, _SHIFT):
        shifts = shifts + 1 / (x + step)
    far = where(shifted, x + _SHIFT, x)
    inverse = 1 / (far * far)
    terms = [b / (2 * k) for k, b in enumerate(EVEN_BERNOULLI, 1)]
    found = log(far) - 0.5 / far - polynomial(inverse, terms[::-1]) * inverse
    found = where(shifted, found - shifts, found)
    offset = (x - DIGAMMA_ZERO) - DIGAMMA_ZERO_REST
    terms = [-((-1) ** order) * value for order, value in enumerate(zetas(DIGAMMA_ZERO), 1)]
    return where(abs(offset) < 0.25, polynomial(offset, terms[::-1]) * offset, found)


@decomposition(Zeta, precision=F64)
def zeta(x, q, result):
    return _zeta(x, q, _is_short(result))


def _is_short(result: TensorType) -> bool:
    """Whether a result is rounded to f32 or less, for which shorter series are precise."""
    return result.element_type.width < F64.width


def _zeta(x: Tensor, q: Tensor, short: bool) -> Tensor:
    """For negative q and integer x: the sum of (q + n)^-x over all integers n, minus the terms with negative n."""
    above = q - floor(q)
    finite = x < math.inf
    whole, even = floor(x).equals(x) & finite, floor(x * 0.5).equals(x * 0.5) & finite
    found = _zeta_series(x, where(q < 0, above, q), short)
    both = _zeta_series(x, 1 - above, short) - _zeta_series(x, 1 - q, short)
    reflected = found + where(even, both, -both)
    found = where(q < 0, where(whole, reflected, x.like(math.nan)), found)
    pole = (q <= 0) & floor(q).equals(q)
    found = where(pole, where(even, x.like(math.inf), x.like(math.nan)), found)
    found = where(x.equals(math.inf) & (q > 0), where(q > 1, x.like(0), where(q < 1, x, x.like(1))), found)
    found = where(abs(q).equals(math.inf), x.like(0), found)
    found = where(x.equals(1), x.like(math.inf), found)
    return where((x < 1) | x.differs(x) | q.differs(q), x.like(math.nan), found)


def _zeta_series(x: Tensor, q: Tensor, short: bool) -> Tensor:
    """Eight terms, and the Euler-Maclaurin formula (A&S 23.1.30) for the rest: at most 2e-18 of the result is missing,
    or 4e-10 of a short one. The smallest terms are added first."""
    count, corrections = (4, 5) if short else (8, 10)
    opposite = -x

    def power(base: Tensor) -> Tensor:
        return exp(opposite * log(base)) if short else base**opposite

    rest = q + count
    factor = x / rest
    series = factor.like(0)
    tail = power(rest)
    for k, bernoulli in enumerate(EVEN_BERNOULLI[:corrections], 1):
        series = series + factor * (bernoulli / math.factorial(2 * k))
        factor = factor * ((x + (2 * k - 1)) / rest) * ((x + 2 * k) / rest)
    total = where(tail.equals(0), tail, tail * (series + (rest / (x - 1) + 0.5)))
    for n in reversed(range(count)):
        total = total + power(q + n)
    return total


@decomposition(Polygamma, precision=F64)
def polygamma(n, x, result):
    """(-1)^(n+1) n! zeta(n + 1, x) (A&S 6.4.10)"""
    tail = _zeta(n + 1, x, _is_short(result))
    size = exp(_lgamma(n + 1) + log(abs(tail))) * sign(tail)
    size = where(tail.equals(0) | abs(tail).equals(math.inf), tail, size)
    found = where(floor(n * 0.5).equals(n * 0.5), -size, size)
    found = where(n.equals(0), _digamma(x), found)
    return where((n >= 0) & (n < math.inf) & floor(n).equals(n), found, n.like(math.nan))


# The Bessel function


@decomposition(BesselI1e, precision=F64)
def bessel_i1e(operand, result):
    """Two series of Chebyshev polynomials, up to 8 and above."""
    x, magnitude, series = operand, abs(operand), _short_chebyshev if _is_short(result) else _chebyshev
    near = series(magnitude * 0.5 - 2, I1E_NEAR) * magnitude
    far = series(32 / magnitude - 2, I1E_FAR) / sqrt(magnitude)
    return where(magnitude <= 8, near, far) * sign(x)


def _short_chebyshev(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """The polynomial that remains of a series without its smallest coefficients."""
    *kept, last = itertools.dropwhile(lambda coefficient: abs(coefficient) < 1e-10, coefficients)
    powers = np.polynomial.chebyshev.cheb2poly([last / 2, *reversed(kept)])
    return polynomial(x * 0.5, powers[::-1].tolist())


def _chebyshev(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Clenshaw's sum, for a variable from -2 to 2; the last coefficient is halved."""
    one = other = before = x.like(0)
    for coefficient in coefficients:
        one, other, before = x * one - other + coefficient, one, other
    return (one - before) * 0.5
