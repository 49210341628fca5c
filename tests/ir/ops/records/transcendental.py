"""Exponentials, logarithms, roots and angles."""

from __future__ import annotations

import numpy as np
from scipy import special

from tests.ir.ops.records import Record, rounded
from tests.ir.ops.records.elementwise import C64_SAMPLE, COMPLEX, F8_SAMPLE, REALS, binary, unary
from trivium.ir import ops

# Their exponentials are finite, or infinite in one part only, although those of their real parts overflow.
ANGLES = np.array([88.9 + 0.8j, 88.9 - 0.8j, 89 + 0j, np.inf + 0j, -np.inf + 1j], np.complex64)
# Their moduli are too large for 32 bits, or have few digits there; some are on an axis.
EXTREME = np.array(
    [
        complex(real, imag)
        for real in (3e38, -3e38, 1e-45, -1e-45, 1e-20, 89.0, 0.0)
        for imag in (3e38, -3e38, 1e-45, -1e-20, 1.57, 0.0, -0.0)
        if real or imag
    ],
    np.complex64,
)

RECORDS = [
    *unary(ops.Exponential, rounded(np.exp), (*REALS, *COMPLEX, F8_SAMPLE, ANGLES), ulps=4),
    *unary(ops.ExponentialMinusOne, rounded(np.expm1), (*REALS, *COMPLEX), ulps=4),
    *unary(ops.Log, rounded(np.log), (*REALS, *COMPLEX, EXTREME), ulps=4),
    *unary(ops.LogPlusOne, rounded(np.log1p), (*REALS, *COMPLEX), ulps=4),
    *unary(ops.Logistic, rounded(special.expit), REALS, ulps=4),
    *unary(ops.Logistic, rounded(lambda x: 1 / (1 + np.exp(-x))), COMPLEX, ulps=8),
    *unary(ops.Sqrt, rounded(np.sqrt), (*REALS, *COMPLEX, EXTREME), ulps=4),
    *unary(ops.Rsqrt, rounded(lambda x: 1 / np.sqrt(x)), (*REALS, *COMPLEX), ulps=4),
    *unary(ops.Cbrt, rounded(np.cbrt), REALS, ulps=4),
    *unary(ops.Cbrt, rounded(lambda x: np.power(x, 1 / 3)), COMPLEX, ulps=8),
    *unary(ops.Sine, rounded(np.sin), (*REALS, *COMPLEX), ulps=4),
    *unary(ops.Cosine, rounded(np.cos), (*REALS, *COMPLEX), ulps=4),
    *unary(ops.Tan, rounded(np.tan), (*REALS, *COMPLEX), ulps=4),
    *unary(ops.Tanh, rounded(np.tanh), (*REALS, *COMPLEX), ulps=4),
    *binary(ops.Atan2, rounded(np.arctan2), REALS, ulps=4),
    # In the right half-plane, the angle of a complex number is the arctangent of the quotient.
    Record(ops.Atan2, (C64_SAMPLE[:3], C64_SAMPLE[:3] + 5), oracle=rounded(lambda y, x: np.arctan(y / x)), ulps=64),
]
