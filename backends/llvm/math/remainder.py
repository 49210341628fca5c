"""The remainder of a division of floats, which is exact however large the quotient is: by integers, for devices where
LLVM computes it from a rounded quotient; elsewhere from the quotient where that is small."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.llvm.code import F64, Code, element
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.math.rare import unless_any
from trivium.backends.llvm.numbers import Int

_FORMS = {True: (64, 52), False: (32, 23)}
"""The bits of f64 and f32, and those of their mantissas."""


def remainder(code: Code, x: ll.Value, y: ll.Value) -> ll.Value:
    """Returns x - n y for the integer n that is x / y without its fraction; it has the sign of x."""
    width, mantissa = _FORMS[x.type == F64]
    integer, builder = ll.IntType(width), code.builder
    magnitudes = [code.bits(code.abs(value), integer) for value in (x, y)]
    (m, e), (n, f) = (_parts(code, bits, mantissa) for bits in magnitudes)
    # The remainder of the mantissas, then one bit of the quotient after the other.
    start = builder.urem(m, code.select(code.icompare("==", n, 0), 1, n))
    steps = builder.sub(e, f) if width == 64 else builder.sext(builder.sub(e, f), ll.IntType(64))
    with counted(code, 0, Int(code, steps), carried=[start]) as loop:
        doubled = code.shl(loop.carried[0], 1)
        rest = builder.sub(doubled, n)
        loop.next = [code.select(code.icompare(">=", doubled, n, signed=False), rest, doubled)]
    found = code.mul(builder.uitofp(loop.carried[0], x.type), _power(code, f, x.type, mantissa))
    smaller = code.icompare("<", magnitudes[0], magnitudes[1], signed=False)
    result = code.select(smaller, x, code.copysign(found, x))
    undefined = code.either(code.compare("==", y, 0.0), code.is_nan(code.sub(x, x)))  # x is infinite or NaN
    return code.select(code.either(undefined, code.is_nan(y)), float("nan"), result)


def remainder_of_quotient(code: Code, x: ll.Value, y: ll.Value) -> ll.Value:
    """Returns the same, on devices with fused multiply-adds. The rounded quotient without its fraction is the exact
    one, or one more. So what is left of x after that many y is between -y and y, and a multiple of the last digit of y:
    a float, which a fused multiply-add computes exactly. A large quotient is rounded itself; then LLVM's instruction
    computes all lanes one by one."""
    builder, (_, mantissa) = code.builder, _FORMS[element(x.type) == F64]
    whole, part = code.abs(x), code.abs(y)
    # The quotient with its sign, which programs that round it compute, too: LLVM divides once.
    quotient = code.intrinsic("llvm.trunc", code.abs(builder.fdiv(x, y)))
    left = code.fused(builder.fneg(quotient), part, whole)
    left = code.select(code.compare("<", left, 0.0), builder.fadd(left, part), left)
    left = code.select(code.compare("<", whole, part), whole, left)  # of an infinite y, too
    is_small = code.compare("<", quotient, float(1 << (mantissa - 1)))  # of no NaN
    (found,) = unless_any(code, builder.not_(is_small), (code.copysign(left, x),), lambda: (builder.frem(x, y),))
    return found


def _parts(code: Code, bits: ll.Value, mantissa: int) -> tuple[ll.Value, ll.Value]:
    """Returns m and e of the number m 2^(e - c), where e is at least 1 and c is the same for all numbers of the
    type."""
    field, fraction = code.lshr(bits, mantissa), code.both(bits, (1 << mantissa) - 1)
    subnormal = code.icompare("==", field, 0)
    return code.select(subnormal, fraction, code.either(fraction, 1 << mantissa)), code.select(subnormal, 1, field)


def _power(code: Code, e: ll.Value, type_: ll.Type, mantissa: int) -> ll.Value:
    """Returns 2^(e - c), which is subnormal for small e."""
    normal = code.shl(code.isub(e, mantissa), mantissa)
    subnormal = code.shl(code.like(e, 1), code.isub(e, 1))
    return code.bits(code.select(code.icompare(">", e, mantissa), normal, subnormal), type_)
