"""The exponential and the logarithm in f64, which other functions are built on, as in `f32`."""

from __future__ import annotations

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


def exp(code: Code, x: ll.Value) -> ll.Value:
    """exp(x) = 2^n exp(r), where n = round(x / ln 2)"""
    # See `f32.exp`.
    vanishes = code.compare("<", x, UNDERFLOW)
    x = code.select(vanishes, 0.0, code.select(code.compare(">", x, 710.0), 710.0, x))
    n, r = split_exponent(code, x)
    return code.select(vanishes, 0.0, scale(code, code.add(exp_minus_one(code, r), 1.0), n))


def split_exponent(code: Code, x: ll.Value, low: ll.Value | None = None) -> tuple[ll.Value, ll.Value]:
    """n = round(x / ln 2) as an integer, and r = x - n ln 2. `low` is what x lacks."""
    rounded = code.fma(x if low is None else code.add(x, low), LOG2_E, ROUND)
    integer = code.isub(code.bits(rounded, I64), code.bits(code.like(x, ROUND), I64))
    n = code.sub(rounded, ROUND)
    r = code.fma(n, -LN2_HIGH, x)
    return integer, code.fma(n, -LN2_LOW, r if low is None else code.add(r, low))


def exp_minus_one(code: Code, r: ll.Value) -> ll.Value:
    """exp(r) - 1 for |r| <= ln(2) / 2"""
    return code.fma(code.mul(r, r), code.polynomial(r, EXP), r)


def scale(code: Code, value: ll.Value, n: ll.Value) -> ll.Value:
    """value * 2^n in two steps, so that both powers are normal numbers and the result may be subnormal or infinite."""
    half = code.ashr(n, 1)
    for part in (half, code.isub(n, half)):
        value = code.mul(value, code.bits(code.shl(code.iadd(part, 1023), 52), F64))
    return value


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


FUNCTIONS: dict[str, Callable[..., ll.Value]] = {
    "exponential": exp, "log": log, "rsqrt": rsqrt, "logistic": logistic,
}  # fmt: skip
