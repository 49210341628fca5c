"""The error function in f32: by polynomials of parts of its domain, on processors whose lanes select coefficients from
registers, or by one formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.llvm import lookup
from trivium.backends.llvm.code import I32, SHIFT_F32, Code
from trivium.backends.llvm.math.f32 import exp

ERFC_LOG_FIRST = -1.128379225730896
ERFC_LOG = (
    9.256285011360887e-06, -0.00011764148803194985, 0.0006328377639874816, -0.0016670293407514691,
    0.0001603981072548777, 0.019153062254190445, -0.10277783125638962, -0.6366193890571594, 5.604632491440498e-08,
)  # fmt: skip
"""log(erfc(x)) / x for 0 <= x <= 4, less ERFC_LOG_FIRST"""


@dataclass(frozen=True)
class Parts:
    """Parts of the domain are `width` wide, and their middles are multiples of that, beginning with 0. erf is 1 from
    `last` on, which is in the last part. `table` has, for each part, the coefficients of erf in the distance from its
    middle, the last one erf(middle); near 0, those of erf(x) - x."""

    width: float
    last: float
    table: Sequence[Sequence[float]]

    def __call__(self, code: Code, a: ll.Value) -> ll.Value:
        """Returns erf(a) for a >= 0."""
        a = code.select(code.compare(">", a, self.last), self.last, a)
        rounded = code.fma(a, 1 / self.width, SHIFT_F32)
        number = code.sub(rounded, SHIFT_F32)
        step = code.fma(number, -self.width, a)
        *others, middle = lookup.rows(code, self.table, code.bits(rounded, I32))
        slope = others[0]
        for coefficient in others[1:]:
            slope = code.fma(slope, step, coefficient)
        start = code.select(code.compare("==", number, 0.0), a, middle)
        return code.fma(slope, step, start)


COEFFICIENTS = (
    (
        0.11092084, 0.07675483, 0.0005461809, -0.057928894, -0.06686689, -0.039464306, -0.007398407, 0.010064357,
        0.012737189, 0.008723557, 0.0043419627, 0.0017005958, 0.0005426112, 0.00014371183, 3.196049e-05,
        6.0143475e-06,
    ),
    (
        0.0002936901, 0.13048425, 0.18223488, 0.14026845, 0.05341734, -0.018277055, -0.04801134, -0.044444244,
        -0.028373476, -0.014049646, -0.0056416136, -0.0018784542, -0.00052540866, -0.00012448468, -2.5127234e-05,
        -4.3388854e-06,
    ),
    (
        -0.37614182, -0.30310726, -0.12927389, 0.04729543, 0.14983079, 0.16455914, 0.1256047, 0.07490998,
        0.036455974, 0.014788908, 0.0050621005, 0.0014733017, 0.00036650157, 7.821453e-05, 1.4358569e-05,
        2.2722127e-06,
    ),
    (
        2.677991e-07, -0.2757596, -0.44907683, -0.4782753, -0.3948097, -0.2664236, -0.15049808, -0.072070025,
        -0.029479561, -0.010350052, -0.003129394, -0.0008167716, -0.00018434023, -3.6023983e-05, -6.1018195e-06,
        -8.965473e-07,
    ),
    (
        0.12837917, 1.0536766, 0.8579542, 0.6091516, 0.37713012, 0.20359239, 0.095837705, 0.039338317, 0.014079902,
        0.0043942835, 0.001195862, 0.00028377792, 5.871928e-05, 1.0594673e-05, 1.6668598e-06, 2.2867326e-07,
    ),
    (
        0.0, 0.28871155, 0.54085314, 0.7331641, 0.8612614, 0.93577737, 0.9736326, 0.990427, 0.9969337, 0.9991351,
        0.9997855, 0.99995327, 0.99999106, 0.9999985, 0.99999976, 1.0,
    ),
)  # fmt: skip
SIXTEEN = Parts(67 / 256, 4.05, COEFFICIENTS)
COEFFICIENTS_OF_8 = (
    (
        -0.019815147, -0.047504354, 0.008454801, 0.01656471, -0.0011087925, -0.002491657, -0.00043708849,
        0.001133321,
    ),
    (
        0.118359715, 0.0013445927, -0.06572492, -0.008072325, 0.012549786, 0.0044169584, 0.00057083316,
        3.4774544e-05,
    ),
    (
        -0.00069995533, 0.1834476, 0.05355426, -0.048385046, -0.028484358, -0.00561435, -0.00052301586,
        -0.00014616491,
    ),
    (-0.37608802, -0.12968504, 0.14955848, 0.12593019, 0.03670193, 0.005119995, 0.0003723687, 1.4649525e-05),
    (
        -6.5028405e-07, -0.44888076, -0.39527833, -0.15108758, -0.029709198, -0.003170508, -0.00018786066,
        -3.0896542e-06,
    ),
    (0.12837917, 0.8584243, 0.37795737, 0.09631094, 0.014203727, 0.0012123433, 5.9889542e-05, 1.7124615e-06),
    (0.0, 0.5404041, 0.8608663, 0.9734818, 0.9969041, 0.9997823, 0.9999909, 0.99999976),
)  # fmt: skip
EIGHT = Parts(0.52291423, 3.9198, COEFFICIENTS_OF_8)
"""The multiples of this width are those of which erf is the nearest to numbers of f32."""


def erf(code: Code, x: ll.Value) -> ll.Value:
    if lookup.is_possible(code):
        return code.copysign(SIXTEEN(code, code.abs(x)), x)
    if lookup.is_possible(code, lookup.SHORT):
        return code.with_sign(EIGHT(code, code.abs(x)), x)
    return _by_logarithm(code, x)


def _by_logarithm(code: Code, x: ll.Value) -> ll.Value:
    """1 - exp(Q(|x|)), where Q is the logarithm of erfc"""
    a = code.abs(x)
    a = code.select(code.compare(">", a, 4.0), 4.0, a)
    # The first coefficient in two parts: the error of a single one would be most of the error near 0.
    exponent = code.fma(a, ERFC_LOG_FIRST, code.mul(a, code.polynomial(a, ERFC_LOG)))
    return code.copysign(exp.less_one(code, exponent), x)
