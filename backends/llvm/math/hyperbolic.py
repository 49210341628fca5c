"""Hyperbolic functions, their inverses and their building blocks, in f64; the results for f32 are rounded once."""

from __future__ import annotations

import math

import llvmlite.ir as ll

from trivium.backends.llvm.code import F64, I64, Code
from trivium.backends.llvm.math import exponential, f64
from trivium.backends.llvm.math.inverse import Function, in_f64

SINH = (
    7.76156841180285e-13, 1.6057167329942863e-10, 2.505212431661565e-08, 2.755731914969951e-06, 0.00019841269841455034,
    0.008333333333333115, 0.16666666666666669,
)  # fmt: skip
"""(sinh(x) - x) / x^3 in x^2 for |x| <= 1"""
LOG_2 = math.log(2)


def log1p(code: Code, x: ll.Value) -> ll.Value:
    return exponential.log1p(code, x, f64.log)


def tanh(code: Code, x: ll.Value) -> ll.Value:
    """t / (t + 2) for t = exp(2 |x|) - 1"""
    a = code.abs(x)
    a = code.select(code.compare(">", a, 20.0), 20.0, a)
    t = f64.exp.less_one(code, code.add(a, a))
    return code.copysign(code.div(t, code.add(t, 2.0)), x)


@in_f64
def sinh(code: Code, x: ll.Value, *, is_short: bool) -> ll.Value:
    square = code.mul(x, x)
    small = code.fma(code.mul(x, square), code.polynomial(square, SINH), x)
    half, quarter = _halves(code, code.abs(x))
    return code.select(code.compare("<", code.abs(x), 1.0), small, code.copysign(code.sub(half, quarter), x))


@in_f64
def cosh(code: Code, x: ll.Value, *, is_short: bool) -> ll.Value:
    return code.add(*_halves(code, code.abs(x)))


def _halves(code: Code, a: ll.Value) -> tuple[ll.Value, ll.Value]:
    """exp(a) / 2 and exp(-a) / 2; the first overflows no earlier than the result does."""
    limited = code.select(code.compare(">", a, 711.0), 711.0, a)
    n, r = f64.exp.split(code, limited)
    power = code.add(f64.exp.minus_one(code, r), 1.0)
    half = f64.exp.scale(code, power, code.isub(n, 1))
    return half, code.div(0.25, half)


@in_f64
def asinh(code: Code, x: ll.Value, *, is_short: bool) -> ll.Value:
    """log1p(a + a^2 / (1 + sqrt(1 + a^2))), and log(2 a) for large numbers"""
    a = code.abs(x)
    large = code.compare(">", a, 2.0**28)
    y = code.select(large, 1.0, a)
    square = code.mul(y, y)
    root = code.intrinsic("llvm.sqrt", code.add(square, 1.0))
    inner = code.add(y, code.div(square, code.add(root, 1.0)))
    found = code.select(large, code.add(f64.log(code, a), LOG_2), log1p(code, inner))
    return code.select(code.compare("==", x, 0.0), x, code.copysign(found, x))


@in_f64
def acosh(code: Code, x: ll.Value, *, is_short: bool) -> ll.Value:
    """log1p(t + sqrt(2 t + t^2)) for t = x - 1, and log(2 x) for large numbers"""
    large = code.compare(">", x, 2.0**28)
    t = code.select(large, 1.0, code.sub(x, 1.0))
    root = code.intrinsic("llvm.sqrt", code.mul(t, code.add(t, 2.0)))
    found = code.select(large, code.add(f64.log(code, x), LOG_2), log1p(code, code.add(t, root)))
    return code.select(code.compare("<", x, 1.0), float("nan"), found)


@in_f64
def atanh(code: Code, x: ll.Value, *, is_short: bool) -> ll.Value:
    """log1p(2 a + 2 a^2 / (1 - a)) / 2"""
    a = code.abs(x)
    twice = code.add(a, a)
    inner = code.add(twice, code.mul(twice, code.div(a, code.sub(1.0, a))))
    inner = code.select(code.compare("==", a, 1.0), float("inf"), inner)
    found = code.mul(log1p(code, inner), 0.5)
    found = code.select(code.compare(">", a, 1.0), float("nan"), found)
    return code.select(code.compare("==", x, 0.0), x, code.copysign(found, x))


@in_f64
def cbrt(code: Code, x: ll.Value, *, is_short: bool) -> ll.Value:
    """A third of the exponent is an estimate, which Halley's method improves."""
    a = code.abs(x)
    tiny = code.compare("<", a, 2.0**-1022)
    huge = code.compare(">", a, 2.0**1000)
    scaled = code.mul(a, code.select(tiny, code.like(a, 2.0**54), code.select(huge, code.like(a, 2.0**-54), 1.0)))
    # A third of the bits, taken as a 32-bit number; a product divides by three.
    high = code.lshr(code.bits(scaled, I64), 32)
    third = code.lshr(code.builder.mul(high, code.like(high, 0x55555556)), 32)
    y = code.bits(code.shl(code.iadd(third, 0x2A9F7893), 32), F64)
    for _ in range(2 if is_short else 3):
        cube = code.mul(code.mul(y, y), y)
        # y (y^3 + 2 a) / (2 y^3 + a), as a step from y.
        step = code.div(code.sub(scaled, cube), code.add(code.add(cube, cube), scaled))
        y = code.fma(y, step, y)
    y = code.mul(y, code.select(tiny, code.like(a, 2.0**-18), code.select(huge, code.like(a, 2.0**18), 1.0)))
    ordinary = code.both(code.compare(">", a, 0.0), code.compare("<", a, float("inf")))
    return code.select(ordinary, code.copysign(y, x), x)


WIDE: dict[str, Function] = {"exponential_minus_one": f64.exp.expm1, "log_plus_one": log1p, "tanh": tanh}
"""The functions for f64; f32 has its own."""
FUNCTIONS: dict[str, Function] = {
    "sinh": sinh, "cosh": cosh, "asinh": asinh, "acosh": acosh, "atanh": atanh, "cbrt": cbrt,
}  # fmt: skip
