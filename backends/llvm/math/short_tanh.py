"""The hyperbolic tangent in f32: by polynomials of 16 parts of its domain, by steps from eight known results, or by one
formula."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.llvm import lookup
from trivium.backends.llvm.code import I32, SHIFT_F32, Code
from trivium.backends.llvm.math.by_parts import ByParts
from trivium.backends.llvm.math.exponential import Exponential

LIMIT = 0.3
SMALL = -0.050331950187683105, 0.13314472138881683, -0.33333054184913635
"""(tanh(x) - x) / x^3 in x^2 for |x| <= LIMIT"""
LAST = 9.37
"""tanh is 1 here and beyond."""
CENTRES = (
    2.1884792, 2.7826772, 3.4481459, 4.0315313, 5.006708, 6.2229376, 7.465396, 8.68525, 0.0, 0.23472396,
    0.39027083, 0.5444193, 0.7962969, 1.0829583, 1.4159635, 1.7083541,
)  # fmt: skip
COEFFICIENTS = (
    (
        0.004217974, 0.0017272648, 0.00054165005, 0.0001591503, 2.5958863e-05, 2.134242e-06, 1.752367e-07,
        9.906222e-08, 0.12813656, 0.079732604, 0.013419306, -0.038285658, -0.0630381, -0.03564848, -0.007668214,
        0.0031827136,
    ),
    (
        -0.013678817, -0.0048623583, -0.0013497877, -0.00042463242, -6.4138505e-05, -5.629139e-06, -4.6883125e-07,
        -1.8707802e-07, 0.00091627985, 0.13335207, 0.16874237, 0.1569321, 0.08511312, 0.011105663, -0.02269486,
        -0.02414771,
    ),
    (
        0.030275635, 0.009906939, 0.0026742, 0.000838509, 0.00011889872, 1.0498926e-05, 8.758704e-07, 6.094532e-08,
        -0.33338732, -0.2653218, -0.16829956, -0.065575354, 0.05891099, 0.10980736, 0.095945224, 0.066898316,
    ),
    (
        -0.047795765, -0.015078563, -0.004029097, -0.001258063, -0.0001786031, -1.5689042e-05, -1.3074533e-06,
        -6.160522e-08, 9.4366015e-07, -0.21825765, -0.32028237, -0.3740609, -0.37189546, -0.2931765, -0.18674429,
        -0.11524914,
    ),
    (
        0.049014706, 0.015196215, 0.004037966, 0.0012590383, 0.00017919157, 1.573474e-05, 1.3111667e-06,
        1.143255e-07, 1.0, 0.9468669, 0.86191815, 0.7536606, 0.56180704, 0.3690978, 0.21011657, 0.12307022,
    ),
    (
        0.97518474, 0.99237275, 0.997979, 0.9993703, 0.9999104, 0.99999213, 0.99999934, 0.99999994, 0.0,
        0.23050615, 0.37159368, 0.4963259, 0.66196144, 0.7942936, 0.88875383, 0.9364453,
    ),
)  # fmt: skip
PARTS = ByParts(0.8, LAST, CENTRES, COEFFICIENTS)
STEP = 1.2071654
"""The distance between the middles of eight parts: the multiples of this number of which the hyperbolic tangents are
the nearest to numbers of f32."""
END = 9.05
"""tanh is 1 before this number, which is in the last part."""
MIDDLES = 0.0, 0.8358272, 0.98413247, 0.9985707, 0.9998721, 0.99998856, 0.999999, 0.99999994
REST = 1.0, 0.30139294, 0.031483304, 0.0028565873, 0.00025578932, 2.2877179e-05, 2.0458626e-06, 1.8295589e-07
"""tanh(n STEP), and 1 less its square"""
RATIO = -0.00019404298, 0.0021112622, -0.022221636, 0.3333333, 1.0
"""r / tanh(r) in r^2 for |r| <= STEP / 2"""


def tanh(code: Code, x: ll.Value, exp: Exponential) -> ll.Value:
    """By parts or steps; or x + x^3 P(x^2) near 0, and further out e / (e + 2), where e = exp(2 |x|) - 1"""
    a = code.abs(x)
    if lookup.is_possible(code):
        return code.copysign(PARTS(code, code.select(code.compare(">", a, LAST), LAST, a)), x)
    if lookup.is_possible(code, lookup.SHORT):
        return code.with_sign(_by_step(code, code.select(code.compare(">", a, END), END, a)), x)
    square = code.mul(x, x)
    small = code.fma(code.mul(x, square), code.polynomial(square, SMALL), x)
    limited = code.select(code.compare(">", a, 10.0), 10.0, a)
    e = exp.less_one(code, code.add(limited, limited))
    large = code.div(e, code.add(e, 2.0))
    return code.copysign(code.select(code.compare("<", a, LIMIT), small, large), x)


def _by_step(code: Code, a: ll.Value) -> ll.Value:
    """tanh(m + r) = t + (1 - t^2) u / (1 + t u), where t = tanh(m) and u = tanh(r). With one division, as 1 / u is
    P(r^2) / r."""
    rounded = code.fma(a, 1 / STEP, SHIFT_F32)
    r = code.fma(code.sub(rounded, SHIFT_F32), -STEP, a)
    t, rest = lookup.rows(code, (MIDDLES, REST), code.bits(rounded, I32))
    below = code.fma(t, r, code.polynomial(code.mul(r, r), RATIO))
    return code.add(code.div(code.mul(rest, r), below), t)
