"""The exponential function and the functions built from it and from a logarithm, in the same way for every
floating-point format."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.llvm.code import F32, Code
from trivium.backends.llvm.math.rare import if_within
from trivium.backends.llvm.whole_vectors import scaled

LOG2_E = 1.4426950408889634
ONE = 40.0
"""Here and beyond, 1 / (1 + exp(-x)) is 1 in every format."""


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
        """exp(x). Where no instruction scales by powers of two, it is worth a branch that most results are normal."""
        if code.target.extrema and code.target.lanes_apart and self.scalar == F32:
            return self._clamped(code, x)
        if code.target.ldexp or not is_whole(code, x):
            return self._everywhere(code, x)
        limit = int((self.bias - 1) * math.log(2))
        return if_within(code, x, limit, lambda: self._normal(code, x), lambda: self._everywhere(code, x))

    def _normal(self, code: Code, x: ll.Value) -> ll.Value:
        """exp(x) where it is a normal number: n is added to the exponent."""
        rounded, _, r = self.parts(code, x)
        n = code.shl(code.bits(rounded, self.integer), self.digits)
        return code.bits(code.iadd(code.bits(self.reduced(code, r), self.integer), n), self.scalar)

    def _clamped(self, code: Code, x: ll.Value) -> ll.Value:
        """exp(x) where an instruction finds the larger or smaller number, or NaN. Just below `underflow`, scaling
        rounds the result to 0."""
        least, most = (code.like(x, limit) for limit in (self.underflow - 2.0**-5, self.overflow))
        x = code.intrinsic("llvm.minimum", code.intrinsic("llvm.maximum", x, least), most)
        rounded, _, r = self.parts(code, x)
        return self.scale(code, self.reduced(code, r), self.integer_of(code, rounded))

    def _everywhere(self, code: Code, x: ll.Value) -> ll.Value:
        # Further out, the result is 0 or infinity anyway; comparisons keep NaN. Results of 0 are not reached by
        # scaling: subnormal numbers are slow on many processors, and masks produce many zeros.
        kept = code.builder.fcmp_unordered(">=", x, code.like(x, self.underflow))
        x = code.select(kept, code.select(code.compare(">", x, self.overflow), self.overflow, x), 0.0)
        rounded, n, r = self.parts(code, x)
        return code.select(kept, self._scaled(code, r, rounded, n), 0.0)

    def _scaled(self, code: Code, r: ll.Value, rounded: ll.Value, n: ll.Value) -> ll.Value:
        """2^n exp(r), given n + `shift` and n"""
        value = self.reduced(code, r)
        if code.target.ldexp:
            return scaled(code, value, n)
        return self.scale(code, value, self.integer_of(code, rounded))

    def of_two(self, code: Code, y: ll.Value) -> ll.Value:
        """2^y = 2^n exp(r ln 2), where n = round(y)"""
        kept = code.builder.fcmp_unordered(">=", y, code.like(y, -float(self.bias + self.digits)))
        most = float(self.bias + 1)
        y = code.select(kept, code.select(code.compare(">", y, most), most, y), 0.0)
        rounded = code.add(y, self.shift)
        n = code.sub(rounded, self.shift)
        r = code.mul(code.sub(y, n), math.log(2))
        return code.select(kept, self._scaled(code, r, rounded, n), 0.0)

    def expm1(self, code: Code, x: ll.Value) -> ll.Value:
        """exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1)"""
        y = code.select(code.compare(">", x, self.overflow), self.overflow, x)
        y = code.select(code.compare("<", y, self.negligible), self.negligible, y)
        n, r = self.split(code, y)
        # Half the power of two, which does not overflow.
        half = self.power_of_two(code, n, -1)
        found = code.fma(half, self.minus_one(code, r), code.sub(half, 0.5))
        # So close to 0, the result is x, of which the half of a subnormal number would lose a bit.
        return code.select(code.compare("<", code.abs(x), 2.0 ** -(self.digits + 1)), x, code.add(found, found))

    def less_one(self, code: Code, x: ll.Value) -> ll.Value:
        """exp(x) - 1, if its power of two is a normal number"""
        n, r = self.split(code, x)
        power = self.power_of_two(code, n)
        return code.fma(power, self.minus_one(code, r), code.sub(power, 1.0))

    def logistic(self, code: Code, x: ll.Value) -> ll.Value:
        """1 / (1 + exp(-x)), with fewer operations near 0, where the result has the same bits"""
        if not is_whole(code, x):
            return self._logistic_everywhere(code, x)
        limit = int((self.digits + 0.5) * math.log(2))
        otherwise = functools.partial(self._logistic_everywhere, code, x)
        return if_within(code, x, limit, lambda: self._logistic_near_zero(code, x), otherwise)

    def _logistic_near_zero(self, code: Code, x: ll.Value) -> ll.Value:
        """1 / ((1 + 2^n) + 2^n (exp(r) - 1)) where |n| <= `digits`, so that the first sum is exact"""
        rounded, _, r = self.parts(code, code.builder.fneg(x))
        power = self.power_of_two(code, code.bits(rounded, self.integer))
        return code.div(1.0, code.fma(power, self.minus_one(code, r), code.add(power, 1.0)))

    def _logistic_everywhere(self, code: Code, x: ll.Value) -> ll.Value:
        """2^-n / (2^-n + exp(r))"""
        kept = code.builder.fcmp_unordered(">=", x, code.like(x, self.underflow))
        x = code.select(kept, code.select(code.compare(">", x, ONE), ONE, x), 0.0)
        rounded, n, r = self.parts(code, code.builder.fneg(x))
        if code.target.ldexp:
            n = code.builder.fneg(n)
            power = scaled(code, code.like(x, 1.0), n)
            found = scaled(code, self._inverse(code, power, r), n)
        else:
            integer = code.builder.neg(self.integer_of(code, rounded))
            least = code.like(integer, 1 - self.bias)
            power = self.power_of_two(code, code.select(code.icompare("<", integer, least), least, integer))
            found = self.scale(code, self._inverse(code, power, r), integer)
        return code.select(kept, found, 0.0)

    def _inverse(self, code: Code, power: ll.Value, r: ll.Value) -> ll.Value:
        """1 / (power + exp(r)). The sum is rounded once: it is that of 1 + power, what its rounding lost, and
        exp(r) - 1."""
        one = code.add(power, 1.0)
        lost = code.sub(power, code.sub(one, 1.0))
        return code.div(1.0, code.add(one, code.add(lost, self.minus_one(code, r))))

    def split(self, code: Code, x: ll.Value, low: ll.Value | None = None) -> tuple[ll.Value, ll.Value]:
        """Returns n = round(x / ln 2) as an integer, and r = x - n ln 2. `low` is the low part of x."""
        rounded, _, r = self.parts(code, x, low)
        return self.integer_of(code, rounded), r

    def parts(
        self, code: Code, x: ll.Value, low: ll.Value | None = None, more: int = 0
    ) -> tuple[ll.Value, ll.Value, ll.Value]:
        """Returns n + `shift` + `more`, n and r of `split`, as floats."""
        high_part, low_part = self.ln2
        rounded = code.fma(x if low is None else code.add(x, low), LOG2_E, self.shift + more)
        n = code.sub(rounded, self.shift + more)
        r = code.fma(n, -high_part, x)
        return rounded, n, code.fma(n, -low_part, r if low is None else code.add(r, low))

    @property
    def shift(self) -> float:
        """Adding this number rounds to an integer, which is then in the low bits."""
        return 1.5 * 2.0**self.digits

    def integer_of(self, code: Code, rounded: ll.Value) -> ll.Value:
        """Returns n, of n + `shift`."""
        return code.isub(code.bits(rounded, self.integer), code.bits(code.like(rounded, self.shift), self.integer))

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
            return scaled(code, value, code.builder.sitofp(n, value.type))
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


def is_whole(code: Code, x: ll.Value) -> bool:
    """Whether x is a vector, of which instructions compute all lanes at once."""
    return isinstance(x.type, ll.VectorType) and not code.target.lanes_apart
