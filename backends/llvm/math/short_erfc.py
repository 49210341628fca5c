"""The complement of the error function in f32: by polynomials of 16 or 8 parts of its domain, or in f64."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.llvm import lookup
from trivium.backends.llvm.code import F32, F64, I32, Code, shaped
from trivium.backends.llvm.math import f32, f64
from trivium.backends.llvm.math.by_parts import ByParts
from trivium.backends.llvm.whole_vectors import scaled

LAST = 10.06
"""From here on, erfc is less than half of the smallest number of f32."""
K = 3.5
TAIL = (
    0.0004150217764028987, 0.00024910520699584885, -0.004320734804949381, 0.01696639732592141, -0.04541921493897989,
    0.09443043925371554, -0.16134014673109287, 0.23313034593670595, -0.2892650007601256, 0.15529365619176044,
)  # fmt: skip
"""erfc(x) exp(x^2) in (x - K) / (x + K) for 0 <= x <= 10.2, to 26 bits"""
EXP = (*f32.exp.coefficients, 1.0, 1.0)
CENTRES = (
    2.3151689, 3.0394924, 3.6804492, 4.386039, 5.416119, 6.771205, 8.050145, 9.435264, 0.0, 0.24991615, 0.41411245,
    0.5841186, 0.84546167, 1.1791471, 1.5020344, 1.838833,
)  # fmt: skip
COEFFICIENTS = (
    (
        0.00029025422, 8.165703e-05, 2.7456244e-05, 1.0281394e-05, 2.922966e-06, 7.025336e-07, 2.1285136e-07,
        7.287784e-08, 0.10896962, 0.07215693, 0.04544885, 0.02336237, 0.011090718, 0.0043601682, 0.0018560026,
        0.00082402554,
    ),
    (
        -0.0010308119, -0.00030856716, -0.00012258942, -4.9953156e-05, -1.6549127e-05, -4.79519e-06,
        -1.8047735e-06, -7.231154e-07, -0.28426707, -0.13709064, -0.08356189, -0.05042995, -0.024977697,
        -0.010811206, -0.00514706, -0.0025189612,
    ),
    (
        0.0032697408, 0.0011605438, 0.00052851037, 0.00024777328, 9.5916505e-05, 3.3982513e-05, 1.49432335e-05,
        6.9554935e-06, 0.4976331, 0.24256083, 0.15534219, 0.10025926, 0.053340208, 0.025511857, 0.013325725,
        0.0071782726,
    ),
    (
        -0.010104707, -0.0042909994, -0.0022485547, -0.001211361, -0.0005605022, -0.00024207502, -0.0001247376,
        -6.7408124e-05, -0.75208354, -0.39811182, -0.2697953, -0.18441403, -0.107004054, -0.05693824, -0.0328221,
        -0.019498536,
    ),
    (
        0.029930735, 0.01536492, 0.009332996, 0.0058086705, 0.0032281252, 0.0017072373, 0.0010341093,
        0.00064995245, 0.99999446, 0.5846452, 0.4224774, 0.30823314, 0.19716638, 0.1181666, 0.075950384,
        0.05020904,
    ),
    (
        -0.084452935, -0.0531383, -0.037722558, -0.027294084, -0.018324712, -0.01192317, -0.008511849,
        -0.0062335897, -1.1283791, -0.74330395, -0.5796616, -0.4566659, -0.32720715, -0.22474423, -0.16331348,
        -0.121573366,
    ),
    (
        0.22545359, 0.17687836, 0.14816895, 0.12552159, 0.102476925, 0.08244146, 0.06955572, 0.059465513, 1.0,
        0.77040887, 0.66252244, 0.5749802, 0.47380742, 0.3831731, 0.32125285, 0.27376217,
    ),
)  # fmt: skip
SCALED = ByParts(0.7455, LAST, CENTRES, COEFFICIENTS)
CENTRES_OF_8 = (2.6872857, 4.016832, 6.0390134, 8.720583, 0.0, 0.50260323, 1.007089, 1.6772087)
COEFFICIENTS_OF_8 = (
    (
        1.1115799e-05, 7.485458e-07, 3.3481466e-08, 1.5582194e-09, -0.020042479, 0.0025196008, 0.0010478907,
        0.00015415295,
    ),
    (
        -4.2689764e-05, -3.620683e-06, -2.2434382e-07, -1.42778225e-08, -0.019223042, -0.009835767,
        -0.002771867, -0.00046065266,
    ),
    (
        0.00014713281, 1.6468148e-05, 1.3582217e-06, 1.2335464e-07, 0.1329045, 0.030632531, 0.006833489,
        0.0012280121,
    ),
    (
        -0.0005333143, -7.812724e-05, -8.919054e-06, -1.1231165e-06, -0.29169956, -0.06368994, -0.016367143,
        -0.0035076768,
    ),
    (
        0.0018788769, 0.00036370446, 5.8104488e-05, 1.0175966e-05, 0.4985985, 0.123338826, 0.036986936,
        0.0095914835,
    ),
    (
        -0.0063855164, -0.0016564878, -0.00037325546, -9.1551105e-05, -0.7521375, -0.22071911, -0.07816973,
        -0.024875894,
    ),
    (0.020916896, 0.0073811663, 0.0023702262, 0.0008187241, 0.99999547, 0.35761714, 0.1526979, 0.06090392),
    (-0.06578768, -0.032133613, -0.014873693, -0.007277077, -1.1283791, -0.5108224, -0.27103522, -0.1394618),
    (0.1977072, 0.13645649, 0.092192665, 0.06427908, 1.0, 0.6143581, 0.4256545, 0.29481047),
)  # fmt: skip
SCALED_BY_8 = ByParts(0.7455, LAST, CENTRES_OF_8, COEFFICIENTS_OF_8)
"""erfc(x) exp(x^2)"""
LARGER = 64
"""Added to exponents of 2, so that the powers are normal numbers."""


def erfc(code: Code, x: ll.Value) -> ll.Value:
    """erfc(|x|), or its difference from 2"""
    if lookup.is_possible(code, lookup.SHORT) and not lookup.is_possible(code):
        tail = _by_8_parts(code, code.abs(x))
        return code.select(code.icompare("<", code.bits(x, I32), 0), code.sub(2.0, tail), tail)
    tail = _by_parts(code, code.abs(x)) if lookup.is_possible(code) else _in_f64(code, x)
    return code.select(code.compare("<", x, 0.0), code.sub(2.0, tail), tail)


def _by_parts(code: Code, a: ll.Value) -> ll.Value:
    """The product of SCALED and exp(-a^2), where a^2 is taken in two parts"""
    vanishes = code.compare(">=", a, LAST)
    a = code.select(vanishes, 0.0, a)
    square = code.builder.fneg(code.mul(a, a))
    rest = code.builder.fneg(code.fma(a, a, square))
    _, n, r = f32.exp.parts(code, square, rest)
    factor = SCALED(code, a)
    found = scaled(code, code.fma(factor, f32.exp.minus_one(code, r), factor), n)
    return code.select(vanishes, 0.0, found)


def _by_8_parts(code: Code, a: ll.Value) -> ll.Value:
    """The same without an instruction that scales: the product is 2^LARGER times as large first."""
    vanishes = code.compare(">=", a, LAST)
    a = code.select(vanishes, 0.0, a)
    square = code.builder.fneg(code.mul(a, a))
    rest = code.builder.fneg(code.fma(a, a, square))
    rounded, _, r = f32.exp.parts(code, square, rest, f32.exp.bias + LARGER)
    power = code.bits(code.shl(code.bits(rounded, I32), f32.exp.digits), F32)
    factor = SCALED_BY_8(code, a)
    found = code.fma(factor, f32.exp.minus_one(code, r), factor)
    return code.select(vanishes, 0.0, code.mul(code.mul(found, power), 2.0**-LARGER))


def _in_f64(code: Code, x: ll.Value) -> ll.Value:
    """With the accuracy of f32: the rounding of a quotient and of x^2 would have to be made up for otherwise."""
    a = code.builder.fpext(code.abs(x), shaped(F64, x.type))
    a = code.select(code.compare(">", a, LAST), LAST, a)
    ratio = code.div(code.sub(a, K), code.add(a, K))
    n, r = f64.exp.split(code, code.builder.fneg(code.mul(a, a)))
    power = code.mul(code.polynomial(r, EXP), f64.exp.power_of_two(code, n))
    tail = code.mul(code.polynomial(ratio, TAIL), power)
    tail = code.select(code.compare(">=", a, LAST), 0.0, tail)
    return code.builder.fptrunc(tail, x.type)
