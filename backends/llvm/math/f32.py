"""Transcendental functions in f32, inline and free of branches: each is an argument reduction and a minimax polynomial.
The coefficients were found with Remez's algorithm for the intervals named here; tests measure errors of at most about 2
units in the last place."""

from __future__ import annotations

import functools
from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.llvm.code import F32, F64, I32, I64, SHIFT_F64, Code, shaped
from trivium.backends.llvm.math import exponential, f64, short_exponential, short_log, short_tanh
from trivium.backends.llvm.math.exponential import Exponential
from trivium.backends.llvm.math.power import by_known_operand
from trivium.backends.llvm.math.rare import if_within, unless_any
from trivium.backends.llvm.math.short_log import SQRT_HALF_BITS
from trivium.backends.llvm.math.trigonometric import by_all_digits

exp = Exponential(
    scalar=F32,
    integer=I32,
    digits=23,
    bias=127,
    ln2=(0.693115234375, 3.194618329871446e-05),
    coefficients=(
        0.001394649618305266, 0.00836661085486412, 0.04166628047823906, 0.1666654348373413, 0.5,
    ),
    underflow=-103.97207708399179,
    overflow=89.0,
    negligible=-20.0,
)  # fmt: skip

LOG = (
    0.06917817145586014, -0.117909274995327, 0.11872382462024689, -0.12384109199047089, 0.1421872079372406,
    -0.16669267416000366, 0.20002223551273346, -0.24999986588954926, 0.3333331048488617,
)  # fmt: skip
"""(log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2)"""
SIN = (2.7179398784937803e-06, -0.00019839296874124557, 0.008333329111337662, -0.1666666716337204)
"""(sin(r) - r) / r^3 in r^2 for |r| <= pi / 4"""
COS = (2.4434893930447288e-05, -0.0013887337408959866, 0.04166664555668831)
"""(cos(r) - 1 + r^2 / 2) / r^4 in r^2 for |r| <= pi / 4"""
ERF_INV_MIDDLE = 2.499751329421997
"""Where the value, which is the last coefficient, is almost a number of f32."""
ERF_INV_CENTRE = (
    -8.83558826103581e-09, 2.296064671725162e-08, 4.6668000663885323e-07, -3.45957209901826e-06,
    -4.960181286151055e-06, 0.00021833328355569392, -0.0012529578525573015, -0.004176425747573376,
    0.2466423660516739, 0.5013480186462402,
)  # fmt: skip
ERF_INV_NEAR = 0.9966
"""Up to here, w is less than 5."""
ERF_INV_TAIL = (
    0.00011339602497173473, -0.00030545168556272984, -5.552860602620058e-05, 0.001479627564549446,
    -0.003596607595682144, 0.005689484998583794, -0.00763779878616333, 0.009444835595786572, 1.001675009727478,
    1.832976818084717,
)  # fmt: skip
"""erf_inv(x) / x - 1 in w - ERF_INV_MIDDLE, and in sqrt(w) - 3 where w >= 5, with w = -log(1 - x^2), as M. Giles
divides it in Approximating the erfinv function, 2011"""


def log(code: Code, x: ll.Value) -> ll.Value:
    """log(x) = e ln 2 + log(m), where m is between sqrt(1/2) and sqrt(2)"""
    if short_log.is_better(code):
        return short_log.log(code, x)
    tiny = code.compare("<", x, 2.0**-126)
    scaled = code.select(tiny, code.mul(x, 2.0**23), x)
    shifted = code.isub(code.bits(scaled, I32), SQRT_HALF_BITS)
    exponent = code.isub(code.ashr(shifted, 23), code.select(tiny, code.like(shifted, 23), 0))
    mantissa = code.bits(code.iadd(code.both(shifted, 0x7FFFFF), SQRT_HALF_BITS), F32)
    e = code.builder.sitofp(exponent, x.type)
    f = code.sub(mantissa, 1.0)
    square = code.mul(f, f)
    small = code.fma(e, exp.ln2[1], code.mul(code.mul(square, f), code.polynomial(f, LOG)))
    small = code.fma(square, -0.5, small)
    result = code.fma(e, exp.ln2[0], code.add(f, small))
    return exponential.log_special(code, x, result)


def log1p(code: Code, x: ll.Value) -> ll.Value:
    return exponential.log1p(code, x, log)


def short_exp(code: Code, x: ll.Value) -> ll.Value:
    return short_exponential.exp(code, x, exp)


def tanh(code: Code, x: ll.Value) -> ll.Value:
    return short_tanh.tanh(code, x, exp)


def sin(code: Code, x: ll.Value) -> ll.Value:
    quadrant, r = _quadrant(code, x)
    r = _narrow(code, r)
    odd = code.icompare("!=", code.both(quadrant, 1), 0)
    value = _negate_if_bit(code, code.select(odd, _cos(code, r), _sin(code, r)), quadrant, 1)
    return code.select(code.compare("==", x, 0.0), x, value)


def cos(code: Code, x: ll.Value) -> ll.Value:
    quadrant, r = _quadrant(code, x)
    r = _narrow(code, r)
    odd = code.icompare("!=", code.both(quadrant, 1), 0)
    value = code.select(odd, _sin(code, r), _cos(code, r))
    return _negate_if_bit(code, value, code.iadd(quadrant, 1), 1)


def tan(code: Code, x: ll.Value) -> ll.Value:
    """sin(x) / cos(x), whose errors would add up in f32"""
    quadrant, r = _quadrant(code, x)
    s, c = _sin(code, r), _cos(code, r)
    odd = code.icompare("!=", code.both(quadrant, 1), 0)
    found = code.div(code.select(odd, code.builder.fneg(c), s), code.select(odd, s, c))
    return code.select(code.compare("==", x, 0.0), x, _narrow(code, found))


def erf_inv(code: Code, x: ll.Value) -> ll.Value:
    if not short_log.is_better(code):
        return _erf_inv_everywhere(code, x, log)
    everywhere = functools.partial(_erf_inv_everywhere, code, x, short_log.of_any)
    if not exponential.is_whole(code, x):
        return everywhere()
    return if_within(code, x, ERF_INV_NEAR, lambda: _erf_inv_near_zero(code, x), everywhere)


def _erf_inv_near_zero(code: Code, x: ll.Value) -> ll.Value:
    w = code.builder.fneg(short_log.of_normal(code, _one_less_square(code, x)))
    return _increased(code, x, code.polynomial(code.sub(w, ERF_INV_MIDDLE), ERF_INV_CENTRE))


def _erf_inv_everywhere(code: Code, x: ll.Value, log: Callable[[Code, ll.Value], ll.Value]) -> ll.Value:
    w = code.builder.fneg(log(code, _one_less_square(code, x)))
    central = code.compare("<", w, 5.0)
    tail_w = code.sub(code.intrinsic("llvm.sqrt", code.select(central, 5.0, w)), 3.0)
    p = code.select(
        central, code.polynomial(code.sub(w, ERF_INV_MIDDLE), ERF_INV_CENTRE), code.polynomial(tail_w, ERF_INV_TAIL)
    )
    infinite = code.copysign(code.like(x, float("inf")), x)
    return code.select(code.compare("==", code.abs(x), 1.0), infinite, _increased(code, x, p))


def _increased(code: Code, x: ll.Value, part: ll.Value) -> ll.Value:
    """x + part x, where part is more than -1; if x is a zero, with its sign"""
    return code.with_sign(code.fma(part, x, x), x)


def power(code: Code, x: ll.Value, y: ll.Value) -> ll.Value:
    """exp(y log |x|) in f64, whose error vanishes in the rounding to f32; negative if x is and y is an odd integer."""
    if (found := by_known_operand(code, x, y, exp)) is not None:
        return found
    a, wide_y = (_widen(code, value) for value in (code.abs(x), y))
    magnitude = _narrow(code, f64.exp(code, code.mul(wide_y, f64.log(code, a))))
    half = code.mul(y, 0.5)
    integer = code.compare("==", code.intrinsic("llvm.floor", y), y)
    odd = code.both(integer, code.compare("!=", code.intrinsic("llvm.floor", half), half))
    # -0 counts as negative here: its odd powers are -0 and -inf.
    signed = code.select(odd, code.copysign(magnitude, x), magnitude)
    finite_negative = code.both(code.compare("<", x, 0.0), code.compare(">", x, -float("inf")))
    result = code.select(code.both(finite_negative, code.builder.not_(integer)), float("nan"), signed)
    infinite_y = code.compare("==", code.abs(y), float("inf"))
    negative = code.compare("<", x, 0.0)
    result = code.select(code.both(infinite_y, negative), magnitude, result)
    result = code.select(code.both(infinite_y, code.compare("==", code.abs(x), 1.0)), 1.0, result)
    one = code.either(code.compare("==", x, 1.0), code.compare("==", y, 0.0))
    return code.select(one, 1.0, result)


FUNCTIONS: dict[str, Callable[..., ll.Value]] = {
    "exponential": short_exp, "exponential_minus_one": exp.expm1, "log": log, "log_plus_one": log1p, "tanh": tanh,
    "logistic": exp.logistic, "rsqrt": exponential.rsqrt, "sine": sin, "cosine": cos, "tan": tan,
    "erf_inv": erf_inv, "power": power,
}  # fmt: skip


def _one_less_square(code: Code, x: ll.Value) -> ll.Value:
    """1 - x^2, accurate near 0 too"""
    return code.fma(code.builder.fneg(x), x, 1.0) if code.target.fma else code.mul(code.sub(1.0, x), code.add(x, 1.0))


def _quadrant(code: Code, x: ll.Value) -> tuple[ll.Value, ll.Value]:
    """Returns n = round(x / (pi/2)), as an integer that is right at least modulo 4, and x - n pi/2, reduced in f64."""
    wide = _widen(code, x)
    rounded = code.fma(wide, 0.6366197723675814, SHIFT_F64)
    n = code.sub(rounded, SHIFT_F64)
    fast = code.bits(rounded, I64), code.fma(n, -6.123233995736766e-17, code.fma(n, -1.5707963267948966, wide))
    huge = code.compare(">", code.abs(wide), 2.0**45 if code.target.fma else 2.0**10)
    quadrant, r = unless_any(code, huge, fast, lambda: by_all_digits(code, wide, huge, fast))
    return code.builder.trunc(quadrant, shaped(I32, x.type)), r


def _sin(code: Code, r: ll.Value) -> ll.Value:
    square = code.mul(r, r)
    return code.fma(code.mul(square, r), code.polynomial(square, SIN), r)


def _cos(code: Code, r: ll.Value) -> ll.Value:
    square = code.mul(r, r)
    return code.fma(code.mul(square, square), code.polynomial(square, COS), code.fma(square, -0.5, 1.0))


def _negate_if_bit(code: Code, value: ll.Value, integer: ll.Value, bit: int) -> ll.Value:
    sign = code.shl(code.both(integer, 1 << bit), 31 - bit)
    return code.bits(code.builder.xor(code.bits(value, I32), sign), F32)


def _widen(code: Code, x: ll.Value) -> ll.Value:
    return code.builder.fpext(x, shaped(F64, x.type))


def _narrow(code: Code, x: ll.Value) -> ll.Value:
    return code.builder.fptrunc(x, shaped(F32, x.type))
