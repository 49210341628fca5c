"""Elementwise arithmetic."""

from __future__ import annotations

import numpy as np

from tests.ir.ops.records import Lax, exact, rounded
from tests.ir.ops.records.elementwise import (
    BOOLEANS,
    COMPLEX,
    F8_SAMPLE,
    I4_SAMPLE,
    I8_SAMPLE,
    I32_SAMPLE,
    INTEGERS,
    REALS,
    SIGNED,
    U8_SAMPLE,
    binary,
    unary,
)
from trivium.ir import ops


def half_away(x):
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def sign(x):
    return np.where(x == 0, x, x / np.abs(x)) if np.iscomplexobj(x) else np.where(x == 0, x, np.sign(x))


def greater(x, y):
    return np.where(x == y, np.where(np.signbit(x), y, x), np.maximum(x, y))


def quotient(x, y):
    return -1 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def remainder(x, y):
    return x if y == 0 else -(-x % abs(y)) if x < 0 else x % abs(y)


def integer_power(x, y):
    return x**y if y >= 0 else {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)


RECORDS = [
    *unary(ops.Abs, rounded(np.abs), (*REALS, F8_SAMPLE)),
    *unary(ops.Abs, lambda x: np.hypot(x.real, x.imag), COMPLEX, ulps=2),
    *unary(ops.Abs, exact(abs), SIGNED),
    *unary(ops.Negate, rounded(np.negative), (*REALS, *COMPLEX, F8_SAMPLE)),
    *unary(ops.Negate, exact(lambda x: -x), INTEGERS),
    *unary(ops.Sign, rounded(sign), (*REALS, *COMPLEX), ulps=2),
    *unary(ops.Sign, exact(lambda x: (x > 0) - (x < 0)), SIGNED),
    *unary(ops.Ceil, rounded(np.ceil), REALS),
    *unary(ops.Floor, rounded(np.floor), REALS),
    *unary(ops.RoundNearestAfz, rounded(half_away), REALS),
    *unary(ops.RoundNearestAfz, lambda x: np.float32([0, -0.0, 8388609]), (np.float32([0.49999997, -0.0, 8388609]),)),
    *unary(ops.RoundNearestEven, rounded(np.rint), REALS),
    *binary(ops.Add, rounded(np.add), (*REALS, *COMPLEX, F8_SAMPLE)),
    *binary(ops.Add, exact(lambda x, y: x + y), INTEGERS),
    *binary(ops.Add, np.logical_or, (BOOLEANS,)),
    *binary(ops.Subtract, rounded(np.subtract), (*REALS, *COMPLEX)),
    *binary(ops.Subtract, exact(lambda x, y: x - y), INTEGERS),
    *binary(ops.Multiply, rounded(np.multiply), (*REALS, *COMPLEX), ulps=1),
    *binary(ops.Multiply, exact(lambda x, y: x * y), INTEGERS),
    *binary(ops.Multiply, np.logical_and, (BOOLEANS,)),
    *binary(ops.Divide, rounded(np.divide), (*REALS, *COMPLEX), ulps=4),
    *binary(ops.Divide, exact(quotient), INTEGERS),
    *binary(ops.Divide, Lax("div"), (I32_SAMPLE,)),
    *binary(ops.Remainder, rounded(np.fmod), REALS),
    *binary(ops.Remainder, exact(remainder), INTEGERS),
    *binary(ops.Remainder, Lax("rem"), (I32_SAMPLE,)),
    *binary(ops.Power, rounded(np.power), REALS, ulps=4),
    *binary(ops.Power, rounded(np.power), COMPLEX, ulps=64),
    *binary(ops.Power, exact(integer_power), (I8_SAMPLE, U8_SAMPLE, I4_SAMPLE, I32_SAMPLE[1:-1])),
    *binary(ops.Maximum, rounded(greater), REALS),
    *binary(ops.Maximum, rounded(np.maximum), COMPLEX),
    *binary(ops.Maximum, exact(max), INTEGERS),
    *binary(ops.Maximum, np.logical_or, (BOOLEANS,)),
    *binary(ops.Minimum, rounded(lambda x, y: -greater(-x, -y)), REALS),
    *binary(ops.Minimum, rounded(np.minimum), COMPLEX),
    *binary(ops.Minimum, exact(min), INTEGERS),
    *binary(ops.Minimum, np.logical_and, (BOOLEANS,)),
]
