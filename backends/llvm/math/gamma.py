"""The logarithm of the gamma function and its derivative, in f64; the results for f32 are rounded once."""

from __future__ import annotations

import math

import llvmlite.ir as ll

from trivium.backends.llvm.code import Code
from trivium.backends.llvm.math import f64, trigonometric
from trivium.backends.llvm.math.inverse import Function, in_f64

LGAMMA = (
    -1.4437737337444666e-07, 2.800522575349163e-07, -4.1865140991350405e-07, 9.187496431122147e-07,
    -2.050490032324202e-06, 4.385234128945208e-06, -9.437029225321034e-06, 2.0505477381693208e-05,
    -4.492656494138112e-05, 9.945768724871737e-05, -0.000223154731953602, 0.0005096695144844802,
    -0.0011927539129286883, 0.0028905103310670806, -0.0073855510286452136, 0.02058080842777987, -0.06735230105319835,
    0.32246703342411326, 0.42278433509846713,
)  # fmt: skip
"""lgamma(2 + u) / u for |u| <= 1 / 2"""
STIRLING = (
    -174611 / 125400, 43867 / 244188, -3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360,
    1 / 12,
)  # fmt: skip
"""lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2, times x, in 1 / x^2, for x >= 8"""
DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)
"""digamma(x) - log(x) + 1 / (2 x) for large x, in 1 / x^2 from the first power up"""
LOG_PI = math.log(math.pi)


@in_f64
def lgamma(code: Code, x: ll.Value, *, is_short: bool) -> ll.Value:
    """Computed by Stirling's series, or by the recurrence from around 2; reflected for negative x."""
    a = code.abs(x)
    positive = code.select(code.compare("<", a, 8.0), _near(code, a), _far(code, a))
    positive = code.select(code.compare("<", a, 2.0**-70), code.builder.fneg(f64.log(code, a)), positive)
    # log(pi / |x sin(pi x)|) - lgamma(|x|)
    fraction = code.sub(x, code.intrinsic("llvm.roundeven", x))
    sine = code.abs(trigonometric.sin(code, code.mul(fraction, math.pi), reduce=trigonometric.by_parts))
    reflected = code.sub(code.sub(LOG_PI, f64.log(code, code.mul(a, sine))), positive)
    pole = code.both(code.compare("==", fraction, 0.0), code.compare("<=", x, 0.0))
    tiny = code.compare("<", a, 2.0**-70)
    found = code.select(code.compare("<", x, 0.0), code.select(tiny, positive, reflected), positive)
    found = code.select(pole, float("inf"), found)
    return code.select(code.compare("==", a, float("inf")), a, found)


def _near(code: Code, a: ll.Value) -> ll.Value:
    """Up to 8: lgamma(2 + u), and the logarithm of the factors between"""
    u, product = a, code.like(a, 1.0)
    for _ in range(6):
        above = code.compare(">=", u, 2.5)
        u = code.select(above, code.sub(u, 1.0), u)
        product = code.select(above, code.mul(product, u), product)
    # Below, the factors are a, and a + 1 where that is closer to 1; the differences are exact.
    low, lowest = code.compare("<", a, 1.5), code.compare("<", a, 0.5)
    quotient = code.select(lowest, code.fma(a, a, a), a)
    u = code.select(lowest, a, code.select(low, code.sub(a, 1.0), code.sub(u, 2.0)))
    series = code.mul(u, code.polynomial(u, LGAMMA))
    logarithm = f64.log(code, code.select(low, quotient, product))
    return code.add(series, code.select(low, code.builder.fneg(logarithm), logarithm))


def _far(code: Code, a: ll.Value) -> ll.Value:
    inverse = code.div(1.0, a)
    series = code.mul(inverse, code.polynomial(code.mul(inverse, inverse), STIRLING))
    logarithm = code.sub(f64.log(code, a), 1.0)
    return code.add(code.mul(code.sub(a, 0.5), logarithm), code.add(series, 0.5 * math.log(2 * math.pi) - 0.5))


@in_f64
def digamma(code: Code, x: ll.Value, *, is_short: bool) -> ll.Value:
    """By the asymptotic series, after the recurrence has moved x beyond 10, and by reflection for negative x."""
    negative = code.compare("<", x, 0.0)
    y = code.select(negative, code.sub(1.0, x), x)
    lower = code.like(x, 0.0)
    for _ in range(10):
        small = code.compare("<", y, 10.0)
        lower = code.select(small, code.sub(lower, code.div(1.0, y)), lower)
        y = code.select(small, code.add(y, 1.0), y)
    inverse = code.div(1.0, code.mul(y, y))
    series = code.mul(code.polynomial(inverse, DIGAMMA[::-1]), inverse)
    result = code.add(lower, code.add(code.sub(f64.log(code, y), code.div(0.5, y)), series))
    fraction = code.sub(x, code.intrinsic("llvm.roundeven", x))
    pole = code.compare("==", fraction, 0.0)
    tangent = trigonometric.tan(code, code.mul(fraction, math.pi), reduce=trigonometric.by_parts)
    reflected = code.sub(result, code.div(math.pi, tangent))
    result = code.select(negative, code.select(pole, float("nan"), reflected), result)
    result = code.select(code.compare("==", x, 0.0), float("nan"), result)
    return code.select(code.compare("==", x, float("inf")), x, result)


FUNCTIONS: dict[str, Function] = {"lgamma": lgamma, "digamma": digamma}
