"""The logarithm in f32 on processors that multiply and add at once, but have no instructions that scale: with few
operations where all lanes are ordinary numbers."""

from __future__ import annotations

import math

import llvmlite.ir as ll

from trivium.backends.llvm.code import F32, I32, Code
from trivium.backends.llvm.math.exponential import is_whole, log_special
from trivium.backends.llvm.math.rare import if_normal

SQRT_HALF_BITS = 0x3F3504F3
DIGITS = 23
FRACTION = (1 << DIGITS) - 1
COEFFICIENTS = (
    -0.0764804035, 0.12671575, -0.131061256, 0.142137036, -0.166322216, 0.200008184, -0.250003785, 0.333333343,
    -0.50000006,
)  # fmt: skip
"""(log(1 + f) - f) / f^2 for sqrt(1/2) <= 1 + f <= sqrt(2). The last one is not -1/2, for which log(1 - 2^-23), whose
series begins with half a unit in the last place, would be rounded the wrong way."""


def is_better(code: Code) -> bool:
    """Whether the target is a processor of this kind."""
    return code.target.fma and not code.target.ldexp and not code.target.lanes_apart


def log(code: Code, x: ll.Value) -> ll.Value:
    if not is_whole(code, x):
        return of_any(code, x)
    return if_normal(code, x, lambda: of_normal(code, x), lambda: of_any(code, x))


def of_normal(code: Code, x: ll.Value, less: ll.Value | int = 0) -> ll.Value:
    """(e - less) ln 2 + log(m), where x = 2^e m is a positive normal number and m is between sqrt(1/2) and sqrt(2)"""
    shifted = code.isub(code.bits(x, I32), SQRT_HALF_BITS)
    exponent = code.isub(code.ashr(shifted, DIGITS), less)
    mantissa = code.bits(code.iadd(code.both(shifted, FRACTION), SQRT_HALF_BITS), F32)
    f = code.sub(mantissa, 1.0)
    small = code.fma(code.mul(f, f), code.polynomial(f, COEFFICIENTS), f)
    # In f32, ln 2 is off by a fifteenth of what rounding may lose, and the product is not rounded.
    return code.fma(code.builder.sitofp(exponent, x.type), math.log(2), small)


def of_any(code: Code, x: ll.Value) -> ll.Value:
    tiny = code.compare("<", x, 2.0**-126)
    scaled = code.select(tiny, code.mul(x, 2.0**DIGITS), x)
    less = code.select(tiny, code.like(code.bits(x, I32), DIGITS), 0)
    return log_special(code, x, of_normal(code, scaled, less))
