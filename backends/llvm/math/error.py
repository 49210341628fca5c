"""The error function and its complement, in f32 and f64."""

from __future__ import annotations

import math
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.llvm.code import F64, Code, element
from trivium.backends.llvm.math import f32, f64
from trivium.backends.llvm.math.hyperbolic import log1p
from trivium.ir.decompositions.coefficients import ERF_INV


@dataclass(frozen=True)
class _Constants:
    """The numbers of one type. `small` is erf(x) / x - 1 in x^2, up to `limit` and a little further. `tail` is erfc(x)
    exp(x^2) in (x - k) / (x + k), from below `limit` to where erfc vanishes; if it is `divided`, x + k times that.
    `mask` keeps the bits of a number whose square is exact."""

    limit: float
    small: tuple[float, ...]
    k: float
    tail: tuple[float, ...]
    divided: bool
    vanishing: float
    mask: int


_F32 = _Constants(
    limit=0.5,
    small=(
        0.0046213651075959206, -0.026710592210292816, 0.11282133311033249, -0.3761257827281952, 0.12837916612625122,
    ),
    k=2.796875,
    tail=(
        3.75881718355231e-05, -9.740390669321641e-05, -0.00030992605024948716, 0.0013138395734131336,
        0.0005045045982114971, -0.015645617619156837, 0.05978604033589363, -0.1419847458600998, 0.2492404282093048,
        -0.34358876943588257, 0.1907406449317932,
    ),
    divided=False,
    vanishing=10.06,
    mask=-1 << 12,
)  # fmt: skip

_F64 = _Constants(
    limit=0.95,
    small=(
        5.960685338520971e-11, -1.137495573607015e-09, 1.466032872274226e-08, -1.6350396222864617e-07,
        1.64610084778027e-06, -1.4925595772180906e-05, 0.0001205533113295582, -0.0008548326981425542,
        0.005223977624828431, -0.026866170645077875, 0.11283791670954885, -0.3761263890318375, 0.1283791670955126,
    ),
    k=2.25,
    tail=(
        5.086823086651771e-08, -2.2414947051571626e-07, 2.173588159111756e-07, 2.264231563688308e-07,
        -4.510561170219512e-08, -5.08166758467257e-07, -1.2037294538100646e-06, 2.651590883308866e-07,
        5.597181027747488e-06, 6.720594395328286e-06, -1.618914656484621e-05, -5.11302001696484e-05,
        2.363005298567877e-05, 0.00028571693413860803, 8.07293754245897e-05, -0.0016356683760900316,
        -0.0007970915422904478, 0.011658682803032156, -0.003610910934999489, -0.1012104018806203, 0.3715174733330307,
        -0.7519590175904071, 1.0398926642867634,
    ),
    divided=True,
    vanishing=27.23,
    mask=-1 << 27,
)  # fmt: skip


def erfc(code: Code, x: ll.Value) -> ll.Value:
    """1 - erf(x) near 0; further out erfc(|x|), or its difference from 2"""
    numbers = _constants(x)
    tail = _tail(code, code.abs(x), numbers)
    tail = code.select(code.compare("<", x, 0.0), code.sub(2.0, tail), tail)
    small = code.sub(1.0, _small(code, x, numbers))
    return code.select(code.compare("<", code.abs(x), numbers.limit), small, tail)


def erf(code: Code, x: ll.Value) -> ll.Value:
    """x + x P(x^2) near 0, and 1 - erfc(|x|) further out"""
    numbers = _constants(x)
    large = code.copysign(code.sub(1.0, _tail(code, code.abs(x), numbers)), x)
    return code.select(code.compare("<", code.abs(x), numbers.limit), _small(code, x, numbers), large)


def _constants(x: ll.Value) -> _Constants:
    return _F64 if element(x.type) == F64 else _F32


def _small(code: Code, x: ll.Value, numbers: _Constants) -> ll.Value:
    return code.fma(x, code.polynomial(code.mul(x, x), numbers.small), x)


def _tail(code: Code, a: ll.Value, numbers: _Constants) -> ll.Value:
    """erfc(a) = exp(-a^2) P((a - k) / (a + k)), where a^2 is taken in two parts"""
    exp = f64.exp if numbers is _F64 else f32.exp
    # Results of 0 are not reached by scaling; see `Exponential`.
    vanishes = code.compare(">", a, numbers.vanishing)
    a = code.select(vanishes, 1.0, a)
    head = code.bits(code.both(code.bits(a, exp.integer), numbers.mask), exp.scalar)
    square = code.builder.fneg(code.mul(head, head))
    rest = code.mul(code.sub(head, a), code.add(head, a))
    n, r = exp.split(code, square, rest)
    below = code.add(a, numbers.k)
    above = code.sub(a, numbers.k)
    ratio = code.div(above, below)
    smooth = code.polynomial(ratio, numbers.tail)
    smooth = code.div(smooth, below) if numbers.divided else smooth
    # The rounding error of the ratio, as a step of a, times the derivative of erfc(a) exp(a^2): below k, where it
    # matters.
    lost_above = code.sub(code.add(above, numbers.k), a)
    lost_below = code.sub(code.sub(below, numbers.k), a)
    lost = code.sub(code.fma(code.builder.fneg(ratio), below, above), code.sub(lost_above, code.mul(ratio, lost_below)))
    step = code.mul(code.mul(lost, below), 0.5 / numbers.k)
    slope = code.fma(code.add(a, a), smooth, -2 / math.sqrt(math.pi))
    smooth = code.select(code.compare("<", a, numbers.k), code.fma(step, slope, smooth), smooth)
    found = code.fma(smooth, exp.minus_one(code, r), smooth)
    return code.select(vanishes, 0.0, exp.scale(code, found, n))


def erf_inv(code: Code, x: ll.Value) -> ll.Value:
    """Giles, "Approximating the erfinv function", 2010, for f64: three polynomials of the logarithm of 1 - x^2."""
    a = code.abs(x)
    far = code.mul(code.sub(1.0, a), code.add(a, 1.0))
    near = log1p(code, code.builder.fneg(code.mul(x, x)))
    w = code.builder.fneg(code.select(code.compare("<", a, 0.5), near, f64.log(code, far)))
    root = code.intrinsic("llvm.sqrt", w)
    centre, middle, tail = ERF_INV
    found = code.select(
        code.compare("<", w, 16.0),
        code.polynomial(code.sub(root, 3.25), middle),
        code.polynomial(code.sub(root, 5.0), tail),
    )
    found = code.select(code.compare("<", w, 6.25), code.polynomial(code.sub(w, 3.125), centre), found)
    infinite = code.copysign(code.like(x, float("inf")), x)
    return code.select(code.compare("==", a, 1.0), infinite, code.mul(found, x))
