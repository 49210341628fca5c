"""The error function and its complement, in f32 and f64."""

from __future__ import annotations

import math

import llvmlite.ir as ll

from trivium.backends.llvm.code import F32, Code, element
from trivium.backends.llvm.math import f64, short_erfc
from trivium.backends.llvm.math.hyperbolic import log1p
from trivium.ir.decompositions.coefficients import ERF_INV

LIMIT = 0.95
SMALL = (
    5.960685338520971e-11, -1.137495573607015e-09, 1.466032872274226e-08, -1.6350396222864617e-07,
    1.64610084778027e-06, -1.4925595772180906e-05, 0.0001205533113295582, -0.0008548326981425542,
    0.005223977624828431, -0.026866170645077875, 0.11283791670954885, -0.3761263890318375, 0.1283791670955126,
)  # fmt: skip
"""erf(x) / x - 1 in x^2, up to LIMIT and a little further"""
K = 2.25
TAIL = (
    5.086823086651771e-08, -2.2414947051571626e-07, 2.173588159111756e-07, 2.264231563688308e-07,
    -4.510561170219512e-08, -5.08166758467257e-07, -1.2037294538100646e-06, 2.651590883308866e-07,
    5.597181027747488e-06, 6.720594395328286e-06, -1.618914656484621e-05, -5.11302001696484e-05,
    2.363005298567877e-05, 0.00028571693413860803, 8.07293754245897e-05, -0.0016356683760900316,
    -0.0007970915422904478, 0.011658682803032156, -0.003610910934999489, -0.1012104018806203, 0.3715174733330307,
    -0.7519590175904071, 1.0398926642867634,
)  # fmt: skip
"""erfc(x) exp(x^2) (x + K) in (x - K) / (x + K), from below LIMIT to where erfc vanishes"""
VANISHING = 27.23
HEAD = -1 << 27
"""Keeps the bits of a number whose square is exact."""


def erfc(code: Code, x: ll.Value) -> ll.Value:
    """1 - erf(x) near 0; further out erfc(|x|), or its difference from 2"""
    if element(x.type) == F32:
        return short_erfc.erfc(code, x)
    tail = _tail(code, code.abs(x))
    tail = code.select(code.compare("<", x, 0.0), code.sub(2.0, tail), tail)
    small = code.sub(1.0, _small(code, x))
    return code.select(code.compare("<", code.abs(x), LIMIT), small, tail)


def erf(code: Code, x: ll.Value) -> ll.Value:
    """x + x P(x^2) near 0, and 1 - erfc(|x|) further out"""
    large = code.copysign(code.sub(1.0, _tail(code, code.abs(x))), x)
    return code.select(code.compare("<", code.abs(x), LIMIT), _small(code, x), large)


def _small(code: Code, x: ll.Value) -> ll.Value:
    return code.fma(x, code.polynomial(code.mul(x, x), SMALL), x)


def _tail(code: Code, a: ll.Value) -> ll.Value:
    """erfc(a) = exp(-a^2) P((a - k) / (a + k)), where a^2 is taken in two parts"""
    exp = f64.exp
    # Results of 0 are not reached by scaling; see `Exponential`.
    vanishes = code.compare(">", a, VANISHING)
    a = code.select(vanishes, 1.0, a)
    head = code.bits(code.both(code.bits(a, exp.integer), HEAD), exp.scalar)
    square = code.builder.fneg(code.mul(head, head))
    rest = code.mul(code.sub(head, a), code.add(head, a))
    n, r = exp.split(code, square, rest)
    below = code.add(a, K)
    above = code.sub(a, K)
    ratio = code.div(above, below)
    smooth = code.div(code.polynomial(ratio, TAIL), below)
    # The rounding error of the ratio, as a step of a, times the derivative of erfc(a) exp(a^2): below k, where it
    # matters.
    lost_above = code.sub(code.add(above, K), a)
    lost_below = code.sub(code.sub(below, K), a)
    lost = code.sub(code.fma(code.builder.fneg(ratio), below, above), code.sub(lost_above, code.mul(ratio, lost_below)))
    step = code.mul(code.mul(lost, below), 0.5 / K)
    slope = code.fma(code.add(a, a), smooth, -2 / math.sqrt(math.pi))
    smooth = code.select(code.compare("<", a, K), code.fma(step, slope, smooth), smooth)
    found = code.fma(smooth, exp.minus_one(code, r), smooth)
    return code.select(vanishes, 0.0, exp.scale(code, found, n))


def erf_inv(code: Code, x: ll.Value) -> ll.Value:
    """Giles, "Approximating the erfinv function", 2010, for f64: three polynomials of the logarithm of 1 - x^2."""
    a = code.abs(x)
    far = code.mul(code.sub(1.0, a), code.add(a, 1.0))
    near = log1p(code, code.builder.fneg(code.mul(x, x)))
    w = code.builder.fneg(code.select(code.compare("<", a, 0.5), near, f64.log(code, far)))
    root = code.intrinsic("llvm.sqrt", w)
    centre, middle, tail = ERF_INV
    found = code.select(
        code.compare("<", w, 16.0),
        code.polynomial(code.sub(root, 3.25), middle),
        code.polynomial(code.sub(root, 5.0), tail),
    )
    found = code.select(code.compare("<", w, 6.25), code.polynomial(code.sub(w, 3.125), centre), found)
    infinite = code.copysign(code.like(x, float("inf")), x)
    return code.select(code.compare("==", a, 1.0), infinite, code.mul(found, x))
