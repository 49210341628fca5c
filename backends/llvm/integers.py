"""Integer operations as StableHLO defines them: division by zero, overflow and oversized shifts have values, and never
trap or produce poison."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.llvm.code import F32, F64, I1, Code, element, mangle, shaped
from trivium.backends.llvm.target import LlvmTarget


def divide(code: Code, a: ll.Value, b: ll.Value, signed: bool) -> ll.Value:
    """Returns a / b rounded toward zero; x / 0 is all ones, and the smallest number / -1 is itself."""
    zero, divisor = _safe_divisor(code, a, b, signed)
    if _divides_in_floats(code, b):
        quotient = _quotient(code, a, divisor, signed)
    else:
        quotient = code.builder.sdiv(a, divisor) if signed else code.builder.udiv(a, divisor)
    return code.select(zero, -1, quotient)


def remainder(code: Code, a: ll.Value, b: ll.Value, signed: bool) -> ll.Value:
    """Returns the remainder of `divide`, with the sign of a; x % 0 is x."""
    zero, divisor = _safe_divisor(code, a, b, signed)
    if _divides_in_floats(code, b):
        rest = code.builder.sub(a, code.builder.mul(_quotient(code, a, divisor, signed), divisor))
    else:
        rest = code.builder.srem(a, divisor) if signed else code.builder.urem(a, divisor)
    return code.select(zero, a, rest)


def fit_floats(target: LlvmTarget, bits: int) -> bool:
    """Whether vectors of integers of this width are converted to floats and divided as such, because the processor has
    no division of integers in lanes. The result is exact for integers of up to 16 bits in f32, and of up to 32 bits in
    f64: if a / b is not an integer, it differs from the nearest integer by at least 1 / b, and rounding changes it by
    less."""
    return bits <= 32 and not target.lanes_apart and target.wide_products


def _divides_in_floats(code: Code, divisor: ll.Value) -> bool:
    """Whether `_quotient` divides by this. LLVM multiplies by the reciprocal of a literal."""
    type_ = divisor.type
    is_vector = isinstance(type_, ll.VectorType) and not isinstance(divisor, ll.Constant)
    return is_vector and fit_floats(code.target, type_.element.width)


def _quotient(code: Code, a: ll.Value, b: ll.Value, signed: bool) -> ll.Value:
    """Returns a / b rounded toward zero, computed in floats, where b is not 0 and the result does not overflow."""
    builder = code.builder
    kind = shaped(F64 if a.type.element.width > 16 else F32, a.type)
    wide = [builder.sitofp(each, kind) if signed else builder.uitofp(each, kind) for each in (a, b)]
    found = builder.fdiv(*wide)
    return builder.fptosi(found, a.type) if signed else builder.fptoui(found, a.type)


def _safe_divisor(code: Code, a: ll.Value, b: ll.Value, signed: bool) -> tuple[ll.Value, ll.Value]:
    """Returns whether b is 0, and b, or 1 if a / b would trap."""
    zero = code.icompare("==", b, 0)
    trap = zero
    if signed:
        smallest = -(1 << (element(a.type).width - 1))
        overflow = code.both(code.icompare("==", a, smallest), code.icompare("==", b, -1))
        trap = code.either(zero, overflow)
    return zero, code.select(trap, 1, b)


def shift(code: Code, op: str, a: ll.Value, b: ll.Value) -> ll.Value:
    """Shifts; an amount of the width or more (or a negative one) shifts everything out."""
    width = element(a.type).width
    inside = code.icompare("<", b, width, signed=False)
    if op == "shift_right_arithmetic":
        return code.ashr(a, code.select(inside, b, width - 1))
    amount = b if code.target.wide_shifts or width < 64 else code.both(b, width - 1)
    shifted = code.shl(a, amount) if op == "shift_left" else code.lshr(a, amount)
    return code.select(inside, shifted, 0)


def power(code: Code, a: ll.Value, b: ll.Value, signed: bool) -> ll.Value:
    """Returns a to the b by squaring, modulo 2^width. For a negative exponent the result is 1 / a^-b, which is 0 unless
    a is 1 or -1."""
    builder = code.builder
    width = element(a.type).width
    before = builder.block
    loop, after = builder.append_basic_block("power"), builder.append_basic_block("power.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    step = builder.phi(ll.IntType(32))
    result, base, exponent = builder.phi(a.type), builder.phi(a.type), builder.phi(a.type)
    odd = code.icompare("!=", code.both(exponent, 1), 0)
    next_result = code.select(odd, builder.mul(result, base), result)
    next_base, next_exponent = builder.mul(base, base), code.lshr(exponent, 1)
    next_step = builder.add(step, step.type(1))
    builder.cbranch(builder.icmp_unsigned("<", next_step, step.type(width)), loop, after)
    starts = (step.type(0), code.like(a, 1), a, b)
    ends = (next_step, next_result, next_base, next_exponent)
    for phi, start, end in zip((step, result, base, exponent), starts, ends, strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(end, loop)
    builder.position_at_end(after)
    if not signed:
        return next_result
    of_minus_one = code.select(code.icompare("==", code.both(b, 1), 0), 1, code.like(a, -1))
    inverse = code.select(code.icompare("==", a, -1), of_minus_one, 0)
    inverse = code.select(code.icompare("==", a, 1), 1, inverse)
    return code.select(code.icompare("<", b, 0), inverse, next_result)


def extremum(code: Code, op: str, a: ll.Value, b: ll.Value, signed: bool) -> ll.Value:
    """Returns `maximum` or `minimum`."""
    greater = code.icompare(">", a, b, signed)
    return code.select(greater, a, b) if op == "maximum" else code.select(greater, b, a)


def absolute(code: Code, a: ll.Value) -> ll.Value:
    return code.select(code.icompare("<", a, 0), code.builder.neg(a), a)


def sign(code: Code, a: ll.Value) -> ll.Value:
    return code.select(code.icompare(">", a, 0), code.like(a, 1), code.ashr(a, element(a.type).width - 1))


def count_leading_zeros(code: Code, a: ll.Value) -> ll.Value:
    return code.call(f"llvm.ctlz.{mangle(a.type)}", a.type, a, I1(0))
