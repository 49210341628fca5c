"""Powers in f64: the exponential of a product that is known with more digits than a number has."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.llvm.code import F64, I64, Code, Literal, literal
from trivium.backends.llvm.math import f64
from trivium.backends.llvm.math.exponential import Exponential

ATANH = (
    0.13266839885182868, 0.13248417892123426, 0.15387165884652151, 0.18181773954322017, 0.2222222266808859,
    0.2857142856894513, 0.40000000000006686,
)  # fmt: skip
THIRDS, THIRDS_LOW = 0.6666666666666666, 3.700743415417188e-17
LN2_HIGH, LN2_LOW = 0.6931471805599453, 2.3190468138462996e-17

Pair = tuple[ll.Value, ll.Value]
"""A number as a sum of two, the second of which is small."""


def power(code: Code, x: ll.Value, y: ll.Value) -> ll.Value:
    """exp(y log |x|), with the sign of x if y is an odd integer."""
    if (found := by_known_operand(code, x, y, f64.exp)) is not None:
        return found
    a = code.abs(x)
    magnitude = _exponential(code, _product(code, _logarithm(code, a), y))
    at_edge = code.select(code.compare("==", a, 0.0), code.like(a, 0.0), float("inf"))
    rising = code.select(code.compare(">", y, 0.0), at_edge, code.div(1.0, at_edge))
    edge = code.either(code.compare("==", a, 0.0), code.compare("==", a, float("inf")))
    magnitude = code.select(edge, rising, magnitude)
    return _signed(code, x, y, _at_infinity(code, a, y, magnitude))


def by_known_operand(code: Code, x: ll.Value, y: ll.Value, exp: Exponential) -> ll.Value | None:
    """2^y, if x is known to be 2. x^(1/2) or x^(3/2), if y is known to be one of these: unlike roots, powers of -0 and
    -inf are positive."""
    if isinstance(x, Literal) and x.constant == literal(x.type, 2.0).constant:
        return exp.of_two(code, y)
    if not isinstance(y, Literal) or y.constant not in (literal(y.type, each).constant for each in (0.5, 1.5)):
        return None
    root = code.intrinsic("llvm.sqrt", x)
    found = code.add(root, 0.0) if y.constant == literal(y.type, 0.5).constant else code.mul(x, root)
    return code.select(code.compare("==", x, -float("inf")), float("inf"), found)


def _at_infinity(code: Code, a: ll.Value, y: ll.Value, magnitude: ll.Value) -> ll.Value:
    """Returns the powers with infinite exponents, which are 0 and infinity, and 1 for 1."""
    grows = code.builder.xor(code.compare(">", a, 1.0), code.compare("<", y, 0.0))
    limit = code.select(grows, code.like(a, float("inf")), 0.0)
    limit = code.select(code.compare("==", a, 1.0), 1.0, limit)
    return code.select(code.compare("==", code.abs(y), float("inf")), limit, magnitude)


def _signed(code: Code, x: ll.Value, y: ll.Value, magnitude: ll.Value) -> ll.Value:
    """Negative numbers have integer powers only; anything to the 0, and 1 to anything, is 1."""
    infinite = code.compare("==", code.abs(y), float("inf"))
    whole = code.compare("==", code.intrinsic("llvm.floor", y), y)
    half = code.mul(y, 0.5)
    odd = code.both(whole, code.compare("!=", code.intrinsic("llvm.floor", half), half))
    found = code.select(code.both(odd, code.builder.not_(infinite)), code.copysign(magnitude, x), magnitude)
    finite_negative = code.both(code.compare("<", x, 0.0), code.compare(">", x, -float("inf")))
    found = code.select(code.both(finite_negative, code.builder.not_(whole)), float("nan"), found)
    found = code.select(code.builder.fcmp_unordered("uno", x, y), float("nan"), found)
    one = code.either(code.compare("==", x, 1.0), code.compare("==", y, 0.0))
    return code.select(one, 1.0, found)


def _logarithm(code: Code, a: ll.Value) -> Pair:
    """e ln 2 + 2 atanh(s), for s = f / (2 + f) in two parts: s, its cube, and the rest of the series"""
    tiny = code.compare("<", a, 2.0**-1022)
    scaled = code.select(tiny, code.mul(a, 2.0**52), a)
    shifted = code.isub(code.bits(scaled, I64), f64.SQRT_HALF_BITS)
    exponent = code.isub(code.ashr(shifted, 52), code.select(tiny, code.like(shifted, 52), 0))
    mantissa = code.bits(code.iadd(code.both(shifted, (1 << 52) - 1), f64.SQRT_HALF_BITS), F64)
    e = code.builder.sitofp(exponent, a.type)
    f = code.sub(mantissa, 1.0)
    below = _sum(code, code.like(f, 2.0), f)
    s = code.div(f, below[0])
    missing = code.fused(code.builder.fneg(s), below[0], f)
    s_low = code.div(code.fused(code.builder.fneg(s), below[1], missing), below[0])
    square = _times(code, (s, s_low), (s, s_low))
    cube = _times(code, square, (s, s_low))
    third = _times(code, cube, (code.like(f, THIRDS), code.like(f, THIRDS_LOW)))
    rest = code.mul(code.mul(cube[0], square[0]), code.polynomial(square[0], ATANH))
    total = _add(code, (code.add(s, s), code.add(s_low, s_low)), third)
    total = _add(code, total, (rest, code.like(rest, 0.0)))
    turns = _times(code, (e, code.like(e, 0.0)), (code.like(e, LN2_HIGH), code.like(e, LN2_LOW)))
    return _add(code, turns, total)


def _product(code: Code, logarithm: Pair, y: ll.Value) -> Pair:
    return _times(code, logarithm, (y, code.like(y, 0.0)))


def _exponential(code: Code, x: Pair) -> ll.Value:
    """Returns exp of a sum, as `Exponential` computes it."""
    head, low = x
    vanishes = code.compare("<", head, f64.exp.underflow)
    overflows = code.compare(">", head, 710.0)
    outside = code.either(vanishes, overflows)
    head, low = code.select(outside, 0.0, head), code.select(outside, 0.0, low)
    n, r = f64.exp.split(code, head, low)
    found = f64.exp.scale(code, code.add(f64.exp.minus_one(code, r), 1.0), n)
    return code.select(vanishes, 0.0, code.select(overflows, float("inf"), found))


# Arithmetic with pairs


def _sum(code: Code, a: ll.Value, b: ll.Value) -> Pair:
    """a + b, exactly"""
    total = code.add(a, b)
    back = code.sub(total, a)
    return total, code.add(code.sub(a, code.sub(total, back)), code.sub(b, back))


def _add(code: Code, a: Pair, b: Pair) -> Pair:
    head, low = _sum(code, a[0], b[0])
    low = code.add(low, code.add(a[1], b[1]))
    total = code.add(head, low)
    return total, code.add(code.sub(head, total), low)


def _times(code: Code, a: Pair, b: Pair) -> Pair:
    head = code.mul(a[0], b[0])
    low = code.fused(a[0], b[0], code.builder.fneg(head))
    low = code.add(low, code.add(code.mul(a[0], b[1]), code.mul(a[1], b[0])))
    return head, low
