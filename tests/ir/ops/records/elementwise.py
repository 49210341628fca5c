"""Arithmetic and logic on each element. Samples hold the corners of each type: zeros of both signs, infinities, NaN,
the extremes of integers; binary ops see every pair."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
from scipy import special

from tests.ir.ops.records import Lax, Record, body, exact, rounded
from trivium.ir import ops
from trivium.ir.types import F32

nan, inf = math.nan, math.inf

F32_SAMPLE = np.array([-inf, -88.5, -2.5, -1.5, -0.3, -0.0, 0.0, 1e-5, 0.5, 1.0, 2.5, 700.0, inf, nan], np.float32)
F64_SAMPLE = F32_SAMPLE.astype(np.float64)
F16_SAMPLE, BF16_SAMPLE = F32_SAMPLE.astype(np.float16), F32_SAMPLE.astype(ml_dtypes.bfloat16)
F8_SAMPLE = np.array([-448, -1.5, -0.0, 0.0, 0.0625, 1, 2.5, 448, nan], ml_dtypes.float8_e4m3fn)
REALS = (F32_SAMPLE, F64_SAMPLE, F16_SAMPLE, BF16_SAMPLE)
C64_SAMPLE = np.array([1 + 2j, -0.5 + 0.25j, 0.75 - 3j, -2 - 1j, 1j, -1 + 0j], np.complex64)
COMPLEX = (C64_SAMPLE, C64_SAMPLE.astype(np.complex128))
# Their exponentials are finite, or infinite in one direction, though those of their real parts are not.
ANGLES = np.array([88.9 + 0.8j, 88.9 - 0.8j, 89 + 0j, np.inf + 0j, -np.inf + 1j], np.complex64)
# Of moduli that 32 bits cannot hold, or hold with few digits, and at the edges of the plane.
EXTREME = np.array(
    [
        complex(real, imag)
        for real in (3e38, -3e38, 1e-45, -1e-45, 1e-20, 89.0, 0.0)
        for imag in (3e38, -3e38, 1e-45, -1e-20, 1.57, 0.0, -0.0)
        if real or imag
    ],
    np.complex64,
)

I8_SAMPLE = np.array([-128, -127, -7, -1, 0, 1, 2, 5, 127], np.int8)
U8_SAMPLE = np.array([0, 1, 3, 8, 127, 128, 255], np.uint8)
I4_SAMPLE = np.array([-8, -3, -1, 0, 1, 5, 7], ml_dtypes.int4)
U4_SAMPLE = np.array([0, 1, 3, 8, 15], ml_dtypes.uint4)
I32_SAMPLE = np.array([-(2**31), -10, -1, 0, 1, 3, 33, 2**31 - 1], np.int32)
I64_SAMPLE = np.array([-(2**63), -5, -1, 0, 1, 4, 63, 64, 2**63 - 1], np.int64)
U64_SAMPLE = np.array([0, 1, 2, 63, 2**63, 2**64 - 1], np.uint64)
INTEGERS = (I8_SAMPLE, U8_SAMPLE, I4_SAMPLE, U4_SAMPLE, I32_SAMPLE, I64_SAMPLE, U64_SAMPLE)
SIGNED = (I8_SAMPLE, I4_SAMPLE, I32_SAMPLE, I64_SAMPLE)
BOOLEANS = np.array([False, True])


def unary(op, oracle, samples, ulps=0):
    return [Record(op, (sample,), oracle=oracle, ulps=ulps) for sample in samples]


def binary(op, oracle, samples, ulps=0):
    pairs = [(np.repeat(sample, sample.size), np.tile(sample, sample.size)) for sample in samples]
    return [Record(op, pair, oracle=oracle, ulps=ulps) for pair in pairs]


def width_of(array):
    return ml_dtypes.iinfo(array.dtype).bits


def bitwise(function):
    """An oracle that gets the unsigned bits of each element, and the width."""

    def oracle(*arrays):
        width = width_of(arrays[0])
        return exact(lambda *numbers: function(*(number % (1 << width) for number in numbers), width))(*arrays)

    return oracle


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


def arithmetic_shift(bits, amount, width):
    value = bits - (1 << width) if bits >> (width - 1) else bits
    return value >> min(amount, width)


UNARY = [
    *unary(ops.Abs, rounded(np.abs), (*REALS, F8_SAMPLE)),
    *unary(ops.Abs, lambda x: np.hypot(x.real, x.imag), COMPLEX, ulps=2),
    *unary(ops.Abs, exact(abs), SIGNED),
    *unary(ops.Negate, rounded(np.negative), (*REALS, *COMPLEX, F8_SAMPLE)),
    *unary(ops.Negate, exact(lambda x: -x), INTEGERS),
    *unary(ops.Sign, rounded(sign), (*REALS, *COMPLEX), ulps=2),
    *unary(ops.Sign, exact(lambda x: (x > 0) - (x < 0)), SIGNED),
    *unary(ops.Not, np.logical_not, (BOOLEANS,)),
    *unary(ops.Not, exact(lambda x: ~x), INTEGERS),
    *unary(ops.Popcnt, bitwise(lambda bits, width: bits.bit_count()), INTEGERS),
    *unary(ops.CountLeadingZeros, bitwise(lambda bits, width: width - bits.bit_length()), INTEGERS),
    *unary(ops.Ceil, rounded(np.ceil), REALS),
    *unary(ops.Floor, rounded(np.floor), REALS),
    *unary(ops.RoundNearestAfz, rounded(half_away), REALS),
    *unary(ops.RoundNearestAfz, lambda x: np.float32([0, -0.0, 8388609]), (np.float32([0.49999997, -0.0, 8388609]),)),
    *unary(ops.RoundNearestEven, rounded(np.rint), REALS),
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
]

BINARY = [
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
    *binary(ops.Atan2, rounded(np.arctan2), REALS, ulps=4),
    *binary(ops.And, np.logical_and, (BOOLEANS,)),
    *binary(ops.And, exact(lambda x, y: x & y), INTEGERS),
    *binary(ops.Or, np.logical_or, (BOOLEANS,)),
    *binary(ops.Or, exact(lambda x, y: x | y), INTEGERS),
    *binary(ops.Xor, np.logical_xor, (BOOLEANS,)),
    *binary(ops.Xor, exact(lambda x, y: x ^ y), INTEGERS),
    *binary(ops.ShiftLeft, bitwise(lambda x, y, width: x << y if y < width else 0), INTEGERS),
    *binary(ops.ShiftRightLogical, bitwise(lambda x, y, width: x >> y), INTEGERS),
    *binary(ops.ShiftRightArithmetic, bitwise(arithmetic_shift), INTEGERS),
    *binary(ops.ShiftRightArithmetic, Lax("shift_right_arithmetic"), (I32_SAMPLE,)),
    # In the right half plane the complex angle is the arctangent of the quotient.
    Record(ops.Atan2, (C64_SAMPLE[:3], C64_SAMPLE[:3] + 5), oracle=rounded(lambda y, x: np.arctan(y / x)), ulps=64),
]

MAP = [
    Record(
        ops.Map,
        ((np.arange(6, dtype=np.float32).reshape(2, 3), np.full((2, 3), 2, np.float32)),),
        {"dimensions": (0, 1), "computation": body(ops.Power, F32, F32)},
        oracle=lambda x, y: x**y,
    ),
]

RECORDS = [*UNARY, *BINARY, *MAP]
