"""Inverse trigonometric functions, in f64 arithmetic; for f32 with shorter polynomials, and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import llvmlite.ir as ll

from trivium.backends.llvm.code import F32, F64, Code, element, shaped

ATAN = (
    -0.017850177848565324, 0.038013666070159914, -0.05037350799399303, 0.05847467241194927, -0.06663047728198712,
    0.07692055417421419, -0.09090897497465654, 0.11111110774763247, -0.14285714280030354, 0.19999999999952023,
    -0.3333333333333319,
)  # fmt: skip
ATAN_SHORT = (
    -0.06072411258132262, 0.10591880599811872, -0.14243327491242333, 0.19998464035559516, -0.3333331513216398,
)  # fmt: skip
"""(atan(x) - x) / x^3 in x^2 for |x| <= tan(pi / 8), for f64 and for f32"""
ASIN = (
    0.03293215905757214, -0.021476542616332313, 0.022039136177260506, 0.0035725022136809574, 0.010815041486623411,
    0.011392828556906954, 0.013981548256447415, 0.017351552714823054, 0.02237221820463977, 0.03038194259685341,
    0.04464285717684976, 0.07499999999968539, 0.16666666666666768,
)  # fmt: skip
ASIN_SHORT = (
    0.03769243761047593, 0.014316509558029124, 0.03183910274449119, 0.04451330871048073, 0.07500522596573277,
    0.16666659690621644,
)  # fmt: skip
"""(asin(x) - x) / x^3 in x^2 for |x| <= 1 / 2, for f64 and for f32"""
TAN_EIGHTH = math.sqrt(2) - 1
HALF_PI, HALF_PI_LOW = math.pi / 2, 6.123233995736766e-17

Function = Callable[..., ll.Value]


def in_f64(function: Function) -> Function:
    """Makes a function of f64 work for f32 too: computed in f64, and rounded once. `is_short` says that f32's precision
    is sufficient."""

    def both(code: Code, *operands: ll.Value) -> ll.Value:
        if element(operands[0].type) == F64:
            return function(code, *operands, is_short=False)
        wide = [code.builder.fpext(operand, shaped(F64, operand.type)) for operand in operands]
        found = function(code, *wide, is_short=True)
        return code.builder.fptrunc(found, shaped(F32, found.type))

    return both


def _odd(code: Code, x: ll.Value, coefficients: Sequence[float]) -> ll.Value:
    """x^3 P(x^2)"""
    square = code.mul(x, x)
    return code.mul(code.mul(square, x), code.polynomial(square, coefficients))


@in_f64
def atan(code: Code, x: ll.Value, *, is_short: bool) -> ll.Value:
    angle = _angle(code, code.abs(x), code.like(x, 1.0), ATAN_SHORT if is_short else ATAN)
    return code.copysign(angle, x)


@in_f64
def atan2(code: Code, y: ll.Value, x: ll.Value, *, is_short: bool) -> ll.Value:
    """Returns the angle between the x axis and the point, reflected for negative x."""
    height, width = code.abs(y), code.abs(x)
    if not is_short:
        height, width = _moderate(code, height, width)
    angle = _angle(code, height, width, ATAN_SHORT if is_short else ATAN)
    same = code.compare("==", height, width)  # both 0, or both infinite
    zero = code.compare("==", height, 0.0)
    diagonal = code.select(zero, 0.0, code.like(y, math.pi / 4))
    angle = code.select(same, diagonal, angle)
    negative = code.icompare("<", code.bits(x, ll.IntType(64)), 0)
    reflected = code.add(code.sub(math.pi, angle), 2 * HALF_PI_LOW)
    angle = code.copysign(code.select(negative, reflected, angle), y)
    nan = code.builder.fcmp_unordered("uno", x, y)
    return code.select(nan, float("nan"), angle)


def _moderate(code: Code, height: ll.Value, width: ll.Value) -> tuple[ll.Value, ll.Value]:
    """Returns both times a power of two, so that their sum does not overflow and their difference is not subnormal."""
    larger = code.select(code.compare(">", height, width), height, width)
    scale = code.select(code.compare(">", larger, 2.0**1000), code.like(height, 2.0**-60), 1.0)
    scale = code.select(code.compare("<", larger, 2.0**-900), 2.0**100, scale)
    return code.mul(height, scale), code.mul(width, scale)


def _angle(code: Code, height: ll.Value, width: ll.Value, coefficients: Sequence[float]) -> ll.Value:
    """Returns atan(height / width) of two positive numbers, turned by an eighth or a quarter of a turn if it is
    steep."""
    steep = code.compare(">", code.mul(height, TAN_EIGHTH), width)
    level = code.compare("<", height, code.mul(width, TAN_EIGHTH))
    above = code.select(steep, code.builder.fneg(width), code.select(level, height, code.sub(height, width)))
    below = code.select(steep, height, code.select(level, width, code.add(height, width)))
    ratio = code.div(above, below)
    turn = code.select(steep, code.like(height, HALF_PI), code.select(level, 0.0, code.like(height, HALF_PI / 2)))
    low = code.mul(turn, HALF_PI_LOW / HALF_PI)
    return code.add(turn, code.add(ratio, code.add(_odd(code, ratio, coefficients), low)))


@in_f64
def asin(code: Code, x: ll.Value, *, is_short: bool) -> ll.Value:
    """x + x^3 P(x^2) near 0, and pi / 2 - 2 asin(sqrt((1 - |x|) / 2)) further out"""
    coefficients = ASIN_SHORT if is_short else ASIN
    a = code.abs(x)
    far = code.compare(">", a, 0.5)
    root, rest = _half_chord(code, a)
    s = code.select(far, root, a)
    tail = _odd(code, s, coefficients)
    large = code.sub(HALF_PI, code.sub(code.mul(code.add(root, code.add(tail, rest)), 2.0), HALF_PI_LOW))
    return code.copysign(code.select(far, large, code.add(s, tail)), x)


@in_f64
def acos(code: Code, x: ll.Value, *, is_short: bool) -> ll.Value:
    """pi / 2 - asin(x) near 0, and twice the asin of half a chord further out, from 0 or from pi"""
    coefficients = ASIN_SHORT if is_short else ASIN
    a = code.abs(x)
    far = code.compare(">", a, 0.5)
    root, rest = _half_chord(code, a)
    s = code.select(far, root, x)
    tail = _odd(code, s, coefficients)
    near = code.sub(HALF_PI, code.sub(x, code.sub(HALF_PI_LOW, tail)))
    chord = code.mul(code.add(root, code.add(tail, rest)), 2.0)
    opposite = code.add(code.sub(math.pi, chord), 2 * HALF_PI_LOW)
    return code.select(far, code.select(code.compare("<", x, 0.0), opposite, chord), near)


def _half_chord(code: Code, a: ll.Value) -> tuple[ll.Value, ll.Value]:
    """Returns sqrt((1 - a) / 2), and its rounding error."""
    half = code.mul(code.sub(1.0, a), 0.5)
    root = code.intrinsic("llvm.sqrt", half)
    missing = code.fused(code.builder.fneg(root), root, half) if code.target.fma else code.like(a, 0.0)
    safe = code.select(code.compare(">", root, 0.0), root, 1.0)
    return root, code.div(code.mul(missing, 0.5), safe)


FUNCTIONS: dict[str, Function] = {"atan": atan, "atan2": atan2, "asin": asin, "acos": acos}
