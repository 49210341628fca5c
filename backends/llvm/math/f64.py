"""The exponential and the logarithm in f64, which other functions are built on."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.llvm.code import F64, I64, Code
from trivium.backends.llvm.math.exponential import Exponential, log_special, rsqrt

SQRT_HALF_BITS = 0x3FE6A09E667F3BCD

exp = Exponential(
    scalar=F64,
    integer=I64,
    digits=52,
    bias=1023,
    ln2=(0.6931471805592082, 7.371002565167799e-13),
    coefficients=(
        2.0926990706517044e-09, 2.5112345429631013e-08, 2.7557233173538205e-07, 2.7557233941183268e-06,
        2.480158737401575e-05, 0.0001984126989734641, 0.001388888888885826, 0.008333333333316626, 0.04166666666666673,
        0.16666666666666685, 0.5,
    ),
    underflow=-745.1332191019412,
    overflow=710.0,
    negligible=-40.0,
)  # fmt: skip

LOG = (
    0.13266839885182868, 0.13248417892123426, 0.15387165884652151, 0.18181773954322017, 0.2222222266808859,
    0.2857142856894513, 0.40000000000006686, 0.6666666666666666,
)  # fmt: skip
"""(log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2 for sqrt(1/2) <= (1 + s) / (1 - s) <= sqrt(2)"""


def log(code: Code, x: ll.Value) -> ll.Value:
    """log(x) = e ln 2 + log(1 + f), by s = f / (2 + f)"""
    tiny = code.compare("<", x, 2.0**-1022)
    scaled = code.select(tiny, code.mul(x, 2.0**52), x)
    shifted = code.isub(code.bits(scaled, I64), SQRT_HALF_BITS)
    exponent = code.isub(code.ashr(shifted, 52), code.select(tiny, code.like(shifted, 52), 0))
    mantissa = code.bits(code.iadd(code.both(shifted, (1 << 52) - 1), SQRT_HALF_BITS), F64)
    e = code.builder.sitofp(exponent, x.type)
    f = code.sub(mantissa, 1.0)
    s = code.div(f, code.add(f, 2.0))
    square = code.mul(s, s)
    half_f = code.mul(code.mul(f, f), 0.5)
    # log(1 + f) = f - f^2/2 + s (f^2/2 + s^2 P), in which only the small part is rounded.
    tail = code.mul(s, code.fma(square, code.polynomial(square, LOG), half_f))
    tail = code.fma(e, exp.ln2[1], tail)
    result = code.fma(e, exp.ln2[0], code.sub(f, code.sub(half_f, tail)))
    return log_special(code, x, result)


FUNCTIONS: dict[str, Callable[..., ll.Value]] = {
    "exponential": exp, "log": log, "rsqrt": rsqrt, "logistic": exp.logistic,
}  # fmt: skip
