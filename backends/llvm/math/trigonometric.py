"""Sine, cosine and tangent in f64, and the reduction of large angles for f32 and f64."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import llvmlite.ir as ll

from trivium.backends.llvm.code import F64, I1, I32, I64, SHIFT_F64, Code
from trivium.backends.llvm.math.rare import unless_any

SIN = (
    -7.577969639231185e-13, 1.605835216319398e-10, -2.505210479998358e-08, 2.7557319213770023e-06,
    -0.00019841269841254275, 0.008333333333333323, -0.16666666666666666,
)  # fmt: skip
"""(sin(r) - r) / r^3 in r^2 for |r| <= pi / 4"""
COS = (
    -1.1358372924858614e-11, 2.0875699389375194e-09, -2.7557314182524597e-07, 2.4801587288916712e-05,
    -0.0013888888888873257, 0.041666666666666595,
)  # fmt: skip
"""(cos(r) - 1 + r^2 / 2) / r^4 in r^2 for |r| <= pi / 4"""

HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
"""pi / 2 in three parts; a multiple of the first two by a number of 20 bits is exact."""
LIMIT = 2.0**19
"""Angles up to this are reduced with the three parts."""

TWO_OVER_PI = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41,
    0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
)  # fmt: skip
"""The bits of 2 / pi after the point, in words of 64 bits, after a word of zeros."""


Angle = tuple[ll.Value, ll.Value, ll.Value]
"""A number of quarter turns, modulo 4, and the rest in two parts."""


def sin(code: Code, x: ll.Value, reduce: Callable[[Code, ll.Value], Angle] | None = None) -> ll.Value:
    """`reduce`: `by_parts` where no angle is beyond `LIMIT`."""
    return code.select(code.compare("==", x, 0.0), x, _sin_of(code, (reduce or reduced)(code, x), 0))


def cos(code: Code, x: ll.Value) -> ll.Value:
    return _sin_of(code, reduced(code, x), 1)


def tan(code: Code, x: ll.Value, reduce: Callable[[Code, ll.Value], Angle] | None = None) -> ll.Value:
    """`reduce`: as for `sin`"""
    quadrant, r, low = (reduce or reduced)(code, x)
    s, c = _sin(code, r, low), _cos(code, r, low)
    odd = code.icompare("!=", code.both(quadrant, 1), 0)
    found = code.div(code.select(odd, code.builder.fneg(c), s), code.select(odd, s, c))
    return code.select(code.compare("==", x, 0.0), x, found)


def _sin_of(code: Code, angle: Angle, shift: int) -> ll.Value:
    """Returns the sine of the angle plus this number of quarter turns."""
    quadrant, r, low = angle
    quadrant = code.iadd(quadrant, shift) if shift else quadrant
    odd = code.icompare("!=", code.both(quadrant, 1), 0)
    value = code.select(odd, _cos(code, r, low), _sin(code, r, low))
    sign = code.shl(code.both(quadrant, 2), 62)
    return code.bits(code.builder.xor(code.bits(value, I64), sign), F64)


def _sin(code: Code, r: ll.Value, low: ll.Value) -> ll.Value:
    """sin(r + low) = sin(r) + low cos(r)"""
    square = code.mul(r, r)
    tail = code.fma(code.mul(square, r), code.polynomial(square, SIN), low)
    tail = code.fma(code.mul(square, -0.5), low, tail)
    return code.add(r, tail)


def _cos(code: Code, r: ll.Value, low: ll.Value) -> ll.Value:
    """cos(r + low) = 1 - r^2 / 2 + r^4 P(r^2) - low sin(r), with the rounding error of 1 - r^2 / 2"""
    square = code.mul(r, r)
    half = code.mul(square, 0.5)
    head = code.sub(1.0, half)
    lost = code.sub(code.sub(1.0, head), half)
    tail = code.mul(code.mul(square, square), code.polynomial(square, COS))
    tail = code.add(tail, code.sub(lost, code.mul(r, low)))
    return code.add(head, tail)


# Reduction


def reduced(code: Code, x: ll.Value) -> Angle:
    """Returns n modulo 4, for n = x / (pi / 2) rounded to the nearest integer, and x - n pi / 2 in two parts."""
    fast = by_parts(code, x)
    huge = code.compare(">", code.abs(x), LIMIT)
    quadrant, r, low = unless_any(code, huge, fast, lambda: by_all_digits(code, x, huge, fast))
    return quadrant, r, low


def by_parts(code: Code, x: ll.Value) -> Angle:
    """Subtracts two exact products, then a small one. For |x| <= LIMIT."""
    rounded = code.add(code.mul(x, 0.6366197723675814), SHIFT_F64)
    n = code.sub(rounded, SHIFT_F64)
    first, second, third = HALF_PI
    rest = code.sub(x, code.mul(n, first))
    step = code.mul(n, second)
    r = code.sub(rest, step)
    back = code.sub(r, rest)
    lost = code.sub(code.sub(rest, code.sub(r, back)), code.add(step, back))
    low = code.sub(lost, code.mul(n, third))
    head = code.add(r, low)
    return code.bits(rounded, I64), head, code.add(code.sub(r, head), low)


def by_all_digits(code: Code, x: ll.Value, huge: ll.Value, fast: tuple[ll.Value, ...]) -> tuple[ll.Value, ...]:
    """Returns what `fast` has, a quadrant and an angle in two parts: by Payne and Hanek's reduction, in the lanes that
    need it."""
    if not isinstance(x.type, ll.VectorType):
        return _payne_hanek(code, x)[: len(fast)]
    module, name = code.builder.module, f"trivium.reduce_{x.type.count}_angles_to_{len(fast)}"
    function = module.globals.get(name) or _emit_lane_by_lane(code, name, x, huge, fast)
    parts = code.builder.call(function, [x, huge, *fast])
    return tuple(code.builder.extract_value(parts, which) for which in range(len(fast)))


def _emit_lane_by_lane(code: Code, name: str, x: ll.Value, huge: ll.Value, fast: tuple[ll.Value, ...]) -> ll.Function:
    """A function of the module, and not part of each sine: for 16 lanes, it is several times as long as the rest."""
    kind = ll.LiteralStructType([part.type for part in fast])
    types = [x.type, huge.type, *(part.type for part in fast)]
    function = ll.Function(code.builder.module, ll.FunctionType(kind, types), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    x, huge, *found = function.args
    inner = Code(ll.IRBuilder(function.append_basic_block("entry")), code.target)
    b = inner.builder
    for lane in range(x.type.count):
        place = I32(lane)
        due = b.extract_element(huge, place)
        parts = _payne_hanek(inner, inner.select(due, b.extract_element(x, place), LIMIT))
        for which, part in enumerate(parts[: len(fast)]):
            kept = b.extract_element(found[which], place)
            found[which] = b.insert_element(found[which], b.select(due, part, kept), place)
    result = ll.Constant(kind, ll.Undefined)
    for which, part in enumerate(found):
        result = b.insert_value(result, part, which)
    b.ret(result)
    return function


def _payne_hanek(code: Code, x: ll.Value) -> tuple[ll.Value, ll.Value, ll.Value]:
    """Calls the function that reduces one angle, which the module defines once."""
    module = code.builder.module
    function = module.globals.get("trivium.reduce_angle")
    if function is None:
        function = _emit_payne_hanek(code, module)
    parts = code.builder.call(function, [x])
    return tuple(code.builder.extract_value(parts, which) for which in range(3))  # type: ignore[return-value]


def _emit_payne_hanek(code: Code, module: ll.Module) -> ll.Function:
    """For x = m 2^e, the bits of 2 / pi from number e - 1 on determine x / (pi / 2) modulo 4: the earlier ones
    contribute multiples of 4, and 192 of them suffice for any x."""
    kind = ll.LiteralStructType([I64, F64, F64])
    function = ll.Function(module, ll.FunctionType(kind, [F64]), "trivium.reduce_angle")
    function.linkage = "internal"
    function.attributes.add("noinline")
    (x,) = function.args
    inner = Code(ll.IRBuilder(function.append_basic_block("entry")), code.target)
    b = inner.builder
    bits = inner.bits(x, I64)
    biased = inner.both(inner.lshr(bits, 52), 0x7FF)
    mantissa = b.or_(inner.both(bits, (1 << 52) - 1), I64(1 << 52))
    # Bit number k of 2 / pi is number 63 + k of the table, whose first word is zeros; angles below 1 never get here.
    position = inner.isub(biased, 1075 - 62)
    high, middle, low = _window(inner, module, position)
    number = _modulo_4(inner, mantissa, high, middle, low)
    quadrant, r, rest = _as_angle(inner, *number)
    negative = inner.compare("<", x, 0.0)
    quadrant = inner.select(negative, b.neg(quadrant), quadrant)
    r, rest = (inner.select(negative, b.fneg(part), part) for part in (r, rest))
    finite = inner.icompare("<", biased, 0x7FF)
    result = ll.Constant(kind, ll.Undefined)
    for which, part in enumerate((quadrant, inner.select(finite, r, float("nan")), rest)):
        result = b.insert_value(result, part, which)
    b.ret(result)
    return function


def _window(code: Code, module: ll.Module, position: ll.Value) -> list[ll.Value]:
    """Returns 192 bits of the table from a position on, as three words, the highest first."""
    space = code.target.constant_space
    table = ll.GlobalVariable(module, ll.ArrayType(I64, len(TWO_OVER_PI)), "trivium.two_over_pi", addrspace=space)
    table.initializer = ll.Constant(table.value_type, list(TWO_OVER_PI))
    table.global_constant, table.linkage = True, "internal"
    # llvmlite's globals have a typed pointer, which not every address space accepts.
    table.type = ll.PointerType(addrspace=space)
    first, shift = code.lshr(position, 6), code.both(position, 63)
    words = []
    for number in range(4):
        place = code.builder.gep(table, [code.iadd(first, number)], source_etype=I64)
        words.append(code.builder.load(place, typ=I64))
    return [code.call("llvm.fshl.i64", I64, *pair, shift) for pair in pairwise(words)]


def _modulo_4(code: Code, mantissa: ll.Value, *window: ll.Value) -> tuple[ll.Value, ll.Value, ll.Value]:
    """Returns the product of a mantissa and a window: its integer part modulo 4, and 128 bits after the point, in two
    words."""
    carried: ll.Value = I64(0)
    words = []
    for word in reversed(window):
        upper, lower = _product(code, mantissa, word)
        lower = code.iadd(lower, carried)
        overflow = code.builder.zext(code.icompare("<", lower, carried, signed=False), I64)
        carried = code.iadd(upper, overflow)
        words.append(lower)
    low, middle, high = words
    point = [code.call("llvm.fshl.i64", I64, *pair, I64(2)) for pair in ((high, middle), (middle, low))]
    return code.lshr(high, 62), point[0], point[1]


def _product(code: Code, a: ll.Value, b: ll.Value) -> tuple[ll.Value, ll.Value]:
    """Returns the 128 bits of a product in two words, the higher first. Not every device has integers of 128 bits."""
    mul, mask = code.builder.mul, (1 << 32) - 1
    (a_high, a_low), (b_high, b_low) = ((code.lshr(x, 32), code.both(x, mask)) for x in (a, b))
    low, high = mul(a_low, b_low), mul(a_high, b_high)
    crossed = mul(a_low, b_high), mul(a_high, b_low)
    middle = code.lshr(low, 32)
    for part in crossed:
        middle = code.iadd(middle, code.both(part, mask))
        high = code.iadd(high, code.lshr(part, 32))
    return code.iadd(high, code.lshr(middle, 32)), code.either(code.shl(middle, 32), code.both(low, mask))


def _as_angle(code: Code, quadrant: ll.Value, high: ll.Value, low: ll.Value) -> tuple[ll.Value, ll.Value, ll.Value]:
    """Returns the nearest integer, and the rest as an angle in two parts, from a fraction of 128 bits."""
    b = code.builder
    above = code.icompare("<", high, 0)  # a half or more: the rest is relative to the next integer
    complement = code.iadd(b.not_(high), b.zext(code.icompare("==", low, 0), I64))
    high, low = code.select(above, complement, high), code.select(above, b.neg(low), low)
    # No f64 is so close to a multiple of pi / 2 that the higher word is 0.
    leading = code.call("llvm.ctlz.i64", I64, high, I1(0))
    high, low = code.call("llvm.fshl.i64", I64, high, low, leading), code.shl(low, leading)
    digits = [code.lshr(high, 11), code.both(code.call("llvm.fshl.i64", I64, high, low, I64(42)), (1 << 53) - 1)]
    unit = code.bits(code.shl(b.sub(I64(1023 - 53), leading), 52), F64)
    head, tail = (b.fmul(b.uitofp(part, F64), unit) for part in digits)
    tail = code.mul(tail, 2.0**-53)
    first, second = 1.5707963267948966, 6.123233995736766e-17
    r = code.mul(head, first)
    rest = code.fused(head, first, b.fneg(r))
    rest = code.add(rest, code.add(code.mul(head, second), code.mul(tail, first)))
    r, rest = (b.select(above, b.fneg(part), part) for part in (r, rest))
    return code.iadd(quadrant, b.zext(above, I64)), r, rest


FUNCTIONS: dict[str, Callable[..., ll.Value]] = {"sine": sin, "cosine": cos, "tan": tan}
