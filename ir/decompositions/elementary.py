"""Inverse, hyperbolic and other elementary functions, each by a formula without loss of precision anywhere; for complex
numbers, the real and imaginary parts have separate formulas."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from trivium.ir.decompositions.table import decomposition
from trivium.ir.decompositions.tensors import (
    Tensor,
    atan2,
    complex_of,
    cos,
    exp,
    expm1,
    imag,
    is_complex,
    log,
    log1p,
    maximum,
    minimum,
    real,
    sin,
    sqrt,
    tanh,
    where,
)
from trivium.ir.ops import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    ChloTan,
    Conj,
    Cosh,
    IsInf,
    IsNegInf,
    IsPosInf,
    Sinh,
    Square,
)
from trivium.ir.types import F32

LOG_2 = math.log(2)


def _largest(x: Tensor) -> float:
    return float(np.finfo(x.type.dtype).max)


def _copysign(magnitude: Tensor, x: Tensor) -> Tensor:
    """Returns the magnitude with the sign of x, including the sign of zero."""
    return where((x < 0) | (1 / x < 0), -magnitude, magnitude)


def _by_parts(of_reals: Callable[[Tensor], Tensor], of_parts: Callable) -> Callable[[Tensor], Tensor]:
    """Combines a function of real numbers with one of the two parts of complex numbers."""

    def function(operand: Tensor) -> Tensor:
        if is_complex(operand):
            return complex_of(*of_parts(real(operand), imag(operand)))
        return of_reals(operand)

    return function


# Inverse functions


def _acos(x: Tensor) -> Tensor:
    return atan2(sqrt((1 - x) * (1 + x)), x)


def _asin(x: Tensor) -> Tensor:
    return atan2(x, sqrt((1 - x) * (1 + x)))


def _acosh(x: Tensor) -> Tensor:
    above = x - 1
    found = where(x > math.sqrt(_largest(x)) / 2, log(x) + LOG_2, log1p(above + sqrt(above * (above + 2))))
    return where(x < 1, x.like(math.nan), found)


def _asinh(x: Tensor) -> Tensor:
    magnitude = abs(x)
    small = log1p(magnitude + magnitude * magnitude / (1 + sqrt(1 + magnitude * magnitude)))
    return _copysign(where(magnitude > math.sqrt(_largest(x)) / 2, log(magnitude) + LOG_2, small), x)


def _atanh(x: Tensor) -> Tensor:
    return (log1p(x) - log1p(-x)) * 0.5


def _inverse_parts(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns |x|, `root` and `height`, from which the inverse functions of complex numbers are built (Hull, Fairgrieve
    and Tang, "Implementing the complex arcsine and arccosine functions using exception handling", 1997): the real part
    of asin is `atan2(x, root)`, that of acos is `atan2(root, x)`, and the imaginary part of asin has magnitude
    `height`.
    """
    x, y = abs(x), abs(y)
    to_left, to_right = abs(complex_of(x + 1, y)), abs(complex_of(x - 1, y))
    mean = (to_left + to_right) * 0.5
    half = (mean + x) * 0.5
    left_rest, right_rest = to_left + (x + 1), to_right + abs(x - 1)
    inside = x <= 1
    root_inside = sqrt(half * (y * y / left_rest + right_rest))
    root_outside = y * sqrt(half / left_rest + half / right_rest)
    excess = where(inside, y * y / right_rest, right_rest)
    excess = where(x.equals(1) & y.equals(0), x.like(0), excess)
    excess = (y * y / left_rest + excess) * 0.5
    height = log1p(excess + sqrt(excess * (mean + 1)))
    large, small = maximum(x, y), minimum(x, y)
    # No quotient of two infinities: `height` is infinite then.
    ratio = minimum(small, x.like(_largest(x))) / large
    far = large > math.sqrt(_largest(x)) / 8
    height = where(far, log(large) + LOG_2 + log1p(ratio * ratio) * 0.5, height)
    # Near the real numbers between -1 and 1, the square of y may be too small to have an effect.
    height = where(inside & (y < np.finfo(x.type.dtype).eps * (1 - x)), y / sqrt((1 - x) * (1 + x)), height)
    root = where(far, y, where(inside, root_inside, root_outside))
    return x, root, height


def _complex_asin(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    magnitude, root, height = _inverse_parts(x, y)
    return _copysign(atan2(magnitude, root), x), _copysign(height, y)


def _complex_acos(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    _, root, height = _inverse_parts(x, y)
    return atan2(root, x), -_copysign(height, y)


def _complex_acosh(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    _, root, height = _inverse_parts(x, y)
    return height, _copysign(atan2(root, x), y)


def _complex_asinh(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """asinh(z) == -i asin(iz)"""
    re, im = _complex_asin(-y, x)
    return im, -re


def _complex_atanh(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    magnitude, distance = abs(x), abs(complex_of(x, y))
    away = (1 - magnitude) * (1 - magnitude) + y * y
    re = log1p(4 * magnitude / away) * 0.25
    im = atan2(2 * y, (1 - magnitude) * (1 + magnitude) - y * y) * 0.5
    far = distance > math.sqrt(_largest(x)) / 8
    # No quotient of two infinities: what is infinitely far gives zero.
    re = where(far, minimum(magnitude, x.like(_largest(x))) / distance / distance, re)
    return _copysign(re, x), where(far, _copysign(x.like(math.pi / 2), y), im)


def _complex_atan(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """atan(z) == -i atanh(iz)"""
    re, im = _complex_atanh(-y, x)
    return im, -re


# Hyperbolic functions, and the tangent


def _cosh(x: Tensor) -> Tensor:
    # The exponential of half the argument overflows only where the result does.
    half = exp(abs(x) * 0.5)
    return half * (half * 0.5) + 0.5 / half / half


def _sinh(x: Tensor) -> Tensor:
    magnitude = abs(x)
    half, minus_one = exp(magnitude * 0.5), expm1(magnitude)
    small = (minus_one + minus_one / (minus_one + 1)) * 0.5
    return _copysign(where(magnitude < 20, small, half * (half * 0.5)), x)


def _complex_cosh(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    # A real number stays one, even where its hyperbolic sine is infinite.
    return _cosh(x) * cos(y), where(y.equals(0), _copysign(abs(y), x) * _copysign(y.like(1), y), _sinh(x) * sin(y))


def _complex_sinh(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return _sinh(x) * cos(y), where(y.equals(0), y, _cosh(x) * sin(y))


def _complex_tan(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    slope, bound = sin(x) / cos(x), tanh(y)
    below = 1 + slope * slope * (bound * bound)
    secant = 1 / _cosh(y)
    return slope * (secant * secant) / below, bound * (1 + slope * slope) / below


for _op, _of_reals, _of_parts in (
    (Acos, _acos, _complex_acos),
    (Acosh, _acosh, _complex_acosh),
    (Asin, _asin, _complex_asin),
    (Asinh, _asinh, _complex_asinh),
    (Atan, lambda x: atan2(x, 1), _complex_atan),
    (Atanh, _atanh, _complex_atanh),
    (ChloTan, lambda x: sin(x) / cos(x), _complex_tan),
    (Cosh, _cosh, _complex_cosh),
    (Sinh, _sinh, _complex_sinh),
):
    decomposition(_op, precision=F32)(_by_parts(_of_reals, _of_parts))


# Arithmetic


@decomposition(Square, precision=F32)
def square(operand):
    if not is_complex(operand):
        return operand * operand
    x, y = real(operand), imag(operand)
    product = x * y
    return complex_of(where(abs(x).equals(abs(y)), abs(x) * 0, (x - y) * (x + y)), product + product)


@decomposition(Conj)
def conj(operand):
    return complex_of(real(operand), -imag(operand)) if is_complex(operand) else operand


@decomposition(IsInf)
def is_inf(operand):
    return abs(operand).equals(math.inf)


@decomposition(IsPosInf)
def is_pos_inf(operand):
    return operand.equals(math.inf)


@decomposition(IsNegInf)
def is_neg_inf(operand):
    return operand.equals(-math.inf)
