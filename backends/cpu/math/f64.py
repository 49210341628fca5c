"""Transcendental functions in f64: the ones that others build on inline, as in `f32`, and the ones that the C
library lacks."""

from __future__ import annotations

import math as constants
from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.cpu.code import F64, I64, Code

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.6931471805592082, 7.371002565167799e-13
UNDERFLOW = -745.1332191019412
"""The logarithm of half of the smallest number."""
ROUND = 1.5 * 2.0**52
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD

EXP = (
    2.0926990706517044e-09, 2.5112345429631013e-08, 2.7557233173538205e-07, 2.7557233941183268e-06,
    2.480158737401575e-05,
    0.0001984126989734641, 0.001388888888885826, 0.008333333333316626, 0.04166666666666673, 0.16666666666666685, 0.5,
)  # fmt: skip
"""(exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2"""
LOG = (
    0.13266839885182868, 0.13248417892123426, 0.15387165884652151, 0.18181773954322017, 0.2222222266808859,
    0.2857142856894513, 0.40000000000006686, 0.6666666666666666,
)  # fmt: skip
"""(log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2 for sqrt(1/2) <= (1 + s) / (1 - s) <= sqrt(2)"""
DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)
"""digamma(x) - log(x) + 1 / (2 x) for large x, in 1 / x^2 from the first power up"""


def exp(code: Code, x: ll.Value) -> ll.Value:
    """exp(x) = 2^n exp(r), where n = round(x / ln 2)"""
    # See `f32.exp`.
    vanishes = code.compare("<", x, UNDERFLOW)
    x = code.select(vanishes, 0.0, code.select(code.compare(">", x, 710.0), 710.0, x))
    rounded = code.fma(x, LOG2_E, ROUND)
    integer = code.isub(code.bits(rounded, I64), code.bits(code.like(x, ROUND), I64))
    n = code.sub(rounded, ROUND)
    r = code.fma(n, -LN2_LOW, code.fma(n, -LN2_HIGH, x))
    value = code.add(code.fma(code.mul(r, r), code.polynomial(r, EXP), r), 1.0)
    half = code.ashr(integer, 1)
    for part in (half, code.isub(integer, half)):
        value = code.mul(value, code.bits(code.shl(code.iadd(part, 1023), 52), F64))
    return code.select(vanishes, 0.0, value)


def log(code: Code, x: ll.Value) -> ll.Value:
    """log(x) = e ln 2 + log(1 + f), by s = f / (2 + f)"""
    tiny = code.compare("<", x, 2.0**-1022)
    scaled = code.select(tiny, code.mul(x, 2.0**52), x)
    shifted = code.isub(code.bits(scaled, I64), SQRT_HALF_BITS)
    exponent = code.isub(code.ashr(shifted, 52), code.select(tiny, code.like(shifted, 52), 0))
    mantissa = code.bits(code.iadd(code.both(shifted, (1 << 52) - 1), SQRT_HALF_BITS), F64)
    e = code.builder.sitofp(exponent, x.type)
    f = code.sub(mantissa, 1.0)
    s = code.div(f, code.add(f, 2.0))
    square = code.mul(s, s)
    half_f = code.mul(code.mul(f, f), 0.5)
    # log(1 + f) = f - f^2/2 + s (f^2/2 + s^2 P), in which only the small part is rounded.
    tail = code.mul(s, code.fma(square, code.polynomial(square, LOG), half_f))
    tail = code.fma(e, LN2_LOW, tail)
    result = code.fma(e, LN2_HIGH, code.sub(f, code.sub(half_f, tail)))
    special = code.select(code.compare("==", x, float("inf")), x, float("nan"))
    special = code.select(code.compare("==", x, 0.0), -float("inf"), special)
    ordinary = code.both(code.compare(">", x, 0.0), code.compare("<", x, float("inf")))
    return code.select(ordinary, result, special)


def rsqrt(code: Code, x: ll.Value) -> ll.Value:
    return code.div(1.0, code.intrinsic("llvm.sqrt", x))


def logistic(code: Code, x: ll.Value) -> ll.Value:
    """1 / (1 + exp(-x)), by exp(-|x|), which does not overflow"""
    e = exp(code, code.builder.fneg(code.abs(x)))
    return code.div(code.select(code.compare("<", x, 0.0), e, 1.0), code.add(e, 1.0))


def erf_inv(code: Code, x: ll.Value) -> ll.Value:
    """Newton's method on erfc from an estimate that is right to 1e-2 of its value."""
    a = code.abs(x)
    # Winitzki: erf_inv(x)^2 = sqrt(t^2 - l / c) - t, where l = log(1 - x^2) and t = 2 / (pi c) + l / 2.
    c = 0.147
    remaining = code.sub(1.0, a)
    logarithm = log(code, code.mul(remaining, code.add(a, 1.0)))
    t = code.fma(logarithm, 0.5, 2.0 / (constants.pi * c))
    root = code.intrinsic("llvm.sqrt", code.sub(code.mul(t, t), code.div(logarithm, c)))
    estimate = code.intrinsic("llvm.sqrt", code.sub(root, t))
    near = code.compare("<", a, 0.5)
    for _ in range(4):
        slope = code.mul(exp(code, code.builder.fneg(code.mul(estimate, estimate))), 2.0 / constants.sqrt(constants.pi))
        by_erf = code.sub(code.each_lane("erf", estimate), a)
        by_erfc = code.sub(remaining, code.each_lane("erfc", estimate))
        miss = code.div(code.select(near, by_erf, by_erfc), slope)
        # Halley's correction: the second derivative of erf is -2 y times the first.
        estimate = code.sub(estimate, code.div(miss, code.fma(estimate, miss, 1.0)))
    infinite = code.select(code.compare("==", a, 1.0), float("inf"), estimate)
    infinite = code.select(code.compare(">", a, 1.0), float("nan"), infinite)
    tiny = code.compare("<", a, 1e-8)
    return code.select(tiny, code.mul(x, constants.sqrt(constants.pi) / 2), code.copysign(infinite, x))


def digamma(code: Code, x: ll.Value) -> ll.Value:
    """The asymptotic series, after the recurrence has moved x beyond 10, and reflection for negative x."""
    negative = code.compare("<", x, 0.0)
    y = code.select(negative, code.sub(1.0, x), x)
    lower = code.like(x, 0.0)
    for _ in range(10):
        small = code.compare("<", y, 10.0)
        lower = code.select(small, code.sub(lower, code.div(1.0, y)), lower)
        y = code.select(small, code.add(y, 1.0), y)
    inverse = code.div(1.0, code.mul(y, y))
    series = code.mul(code.polynomial(inverse, DIGAMMA[::-1]), inverse)
    result = code.add(lower, code.add(code.sub(log(code, y), code.div(0.5, y)), series))
    fraction = code.sub(x, code.intrinsic("llvm.roundeven", x))
    pole = code.compare("==", fraction, 0.0)
    reflected = code.sub(result, code.div(constants.pi, code.each_lane("tan", code.mul(fraction, constants.pi))))
    result = code.select(negative, code.select(pole, float("nan"), reflected), result)
    result = code.select(code.compare("==", x, 0.0), float("nan"), result)
    return code.select(code.compare("==", x, float("inf")), x, result)


FUNCTIONS: dict[str, Callable[..., ll.Value]] = {
    "exponential": exp, "log": log, "rsqrt": rsqrt, "logistic": logistic, "erf_inv": erf_inv, "digamma": digamma,
}  # fmt: skip
