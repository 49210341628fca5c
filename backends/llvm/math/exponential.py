"""The exponential function and the functions built from it and from a logarithm, in the same way for every
floating-point format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.llvm.code import Code

LOG2_E = 1.4426950408889634


@dataclass(frozen=True)
class Exponential:
    """exp(x) = 2^n exp(r) in one format, where n = round(x / ln 2). The format has `digits` bits of fraction and an
    exponent with a `bias`. `ln2` is ln 2 in two parts; a multiple of the first by any exponent is exact.
    `coefficients` are (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2. Below `underflow`, the logarithm of half of the
    smallest number, the result is 0; at `overflow` it is infinite; below `negligible`, exp(x) - 1 is -1."""

    scalar: ll.Type
    integer: ll.Type
    digits: int
    bias: int
    ln2: tuple[float, float]
    coefficients: tuple[float, ...]
    underflow: float
    overflow: float
    negligible: float

    def __call__(self, code: Code, x: ll.Value) -> ll.Value:
        """exp(x)"""
        # Further out, the result is 0 or infinity anyway; comparisons keep NaN. Results of 0 are not reached by
        # scaling: subnormal numbers are slow on many processors, and masks produce many zeros.
        kept = code.builder.fcmp_unordered(">=", x, code.like(x, self.underflow))
        x = code.select(kept, code.select(code.compare(">", x, self.overflow), self.overflow, x), 0.0)
        n, r = self.split(code, x)
        return code.select(kept, self.scale(code, self.reduced(code, r), n), 0.0)

    def expm1(self, code: Code, x: ll.Value) -> ll.Value:
        """exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1)"""
        y = code.select(code.compare(">", x, self.overflow), self.overflow, x)
        y = code.select(code.compare("<", y, self.negligible), self.negligible, y)
        n, r = self.split(code, y)
        # Half the power of two, which does not overflow.
        half = self.power_of_two(code, n, -1)
        found = code.fma(half, self.minus_one(code, r), code.sub(half, 0.5))
        return code.select(code.compare("==", x, 0.0), x, code.add(found, found))

    def less_one(self, code: Code, x: ll.Value) -> ll.Value:
        """exp(x) - 1, if its power of two is a normal number"""
        n, r = self.split(code, x)
        power = self.power_of_two(code, n)
        return code.fma(power, self.minus_one(code, r), code.sub(power, 1.0))

    def logistic(self, code: Code, x: ll.Value) -> ll.Value:
        """1 / (1 + exp(a)) for a = |x|, as 2^-n / (exp(r) + 2^-n), or its difference from 1. The sum is rounded once:
        it is that of 1 + 2^-n, what its rounding lost, and exp(r) - 1."""
        a = code.abs(x)
        vanishes = code.compare(">", a, -self.underflow)
        n, r = self.split(code, code.select(vanishes, 0.0, a))
        n = code.isub(code.like(n, 0), n)
        above = code.select(code.icompare("<", n, 1 - self.bias), code.like(n, 1 - self.bias), n)
        power = self.power_of_two(code, above)
        one = code.add(power, 1.0)
        lost = code.sub(power, code.sub(one, 1.0))
        divisor = code.add(one, code.add(lost, self.minus_one(code, r)))
        small = code.select(vanishes, 0.0, self.scale(code, code.div(1.0, divisor), n))
        return code.select(code.compare("<", x, 0.0), small, code.sub(1.0, small))

    def split(self, code: Code, x: ll.Value, low: ll.Value | None = None) -> tuple[ll.Value, ll.Value]:
        """Returns n = round(x / ln 2) as an integer, and r = x - n ln 2. `low` is the low part of x."""
        high_part, low_part = self.ln2
        shift = 1.5 * 2.0**self.digits  # adding this rounds to an integer, which is then in the low bits
        rounded = code.fma(x if low is None else code.add(x, low), LOG2_E, shift)
        integer = code.isub(code.bits(rounded, self.integer), code.bits(code.like(x, shift), self.integer))
        n = code.sub(rounded, shift)
        r = code.fma(n, -high_part, x)
        return integer, code.fma(n, -low_part, r if low is None else code.add(r, low))

    def minus_one(self, code: Code, r: ll.Value) -> ll.Value:
        """exp(r) - 1 for |r| <= ln(2) / 2"""
        return code.fma(code.mul(r, r), code.polynomial(r, self.coefficients), r)

    def reduced(self, code: Code, r: ll.Value) -> ll.Value:
        """exp(r) for |r| <= ln(2) / 2"""
        return code.polynomial(r, (*self.coefficients, 1.0, 1.0))

    def power_of_two(self, code: Code, n: ll.Value, shift: int = 0) -> ll.Value:
        """2^(n + shift), if that is a normal number"""
        return code.bits(code.shl(code.iadd(n, self.bias + shift), self.digits), self.scalar)

    def scale(self, code: Code, value: ll.Value, n: ll.Value) -> ll.Value:
        """value * 2^n, which may be subnormal or infinite; in two steps if the target has no instruction for it, so
        that both powers are normal numbers."""
        if code.target.ldexp:
            return code.ldexp(value, n)
        half = code.ashr(n, 1)
        for part in (half, code.isub(n, half)):
            value = code.mul(value, self.power_of_two(code, part))
        return value


def log_special(code: Code, x: ll.Value, result: ll.Value) -> ll.Value:
    """Returns `result`, a logarithm, if x is positive and finite; otherwise -inf at 0, inf at inf, NaN."""
    special = code.select(code.compare("==", x, float("inf")), x, float("nan"))
    special = code.select(code.compare("==", x, 0.0), -float("inf"), special)
    ordinary = code.both(code.compare(">", x, 0.0), code.compare("<", x, float("inf")))
    return code.select(ordinary, result, special)


def log1p(code: Code, x: ll.Value, log: Callable[[Code, ll.Value], ll.Value]) -> ll.Value:
    """log(u) for u = 1 + x, plus what the rounding of u lost"""
    u = code.add(x, 1.0)
    lost = code.select(code.compare("<", x, 1.0), code.sub(x, code.sub(u, 1.0)), code.sub(1.0, code.sub(u, x)))
    main = log(code, u)
    found = code.add(main, code.div(lost, u))
    ordinary = code.both(code.compare(">", u, 0.0), code.compare("<", u, float("inf")))
    return code.select(code.compare("==", x, 0.0), x, code.select(ordinary, found, main))


def rsqrt(code: Code, x: ll.Value) -> ll.Value:
    return code.div(1.0, code.intrinsic("llvm.sqrt", x))
