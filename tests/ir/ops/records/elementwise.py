"""Elementwise ops: the samples that all of them are tested on, and records of `map`. Samples include the extreme values
of each type: zeros of both signs, infinities, NaN, the largest and smallest integers; binary ops see every pair."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from tests.ir.ops.records import Record, body
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


RECORDS = [
    Record(
        ops.Map,
        ((np.arange(6, dtype=np.float32).reshape(2, 3), np.full((2, 3), 2, np.float32)),),
        {"dimensions": (0, 1), "computation": body(ops.Power, F32, F32)},
        oracle=lambda x, y: x**y,
    ),
]
