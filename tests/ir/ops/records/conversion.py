"""Comparison, selection, conversion, and parts of complex numbers."""

from __future__ import annotations

import math
import operator
from itertools import product

import ml_dtypes
import numpy as np

from tests.ir.ops.records import Lax, Record, exact, rounded
from tests.ir.ops.records.elementwise import (
    BF16_SAMPLE,
    BOOLEANS,
    C64_SAMPLE,
    COMPLEX,
    F8_SAMPLE,
    F32_SAMPLE,
    F64_SAMPLE,
    I4_SAMPLE,
    I8_SAMPLE,
    I32_SAMPLE,
    I64_SAMPLE,
    INTEGERS,
    REALS,
    U8_SAMPLE,
    U64_SAMPLE,
)
from trivium.ir import ops
from trivium.ir.ops import ComparisonDirection, ComparisonType
from trivium.ir.types import TensorType, element_type_of, tensor

COMPARE = {kind: getattr(operator, kind.value.lower()) for kind in ComparisonDirection}


def pairs(sample):
    return np.repeat(sample, sample.size), np.tile(sample, sample.size)


def comparison(sample, direction, compare_type, oracle):
    attributes = {"comparison_direction": direction, "compare_type": compare_type}
    return Record(ops.Compare, pairs(sample), attributes, oracle=oracle)


def ordered(direction, key):
    """Returns an oracle that compares the keys of Python's numbers."""

    def oracle(*arrays):
        rows = zip(*(map(key, array.tolist()) for array in arrays), strict=True)
        return np.array([COMPARE[direction](left, right) for left, right in rows])

    return oracle


def total_order(x):
    """Sign, then whether it is NaN, then the value: the order of IEEE-754's totalOrder, except for the payloads of
    NaN."""
    sign = math.copysign(1, x)
    return sign, sign * math.isnan(x), 0 if math.isnan(x) else x


COMPARISONS = [
    *(
        comparison(sample, direction, None, COMPARE[direction])
        for direction, sample in product(ComparisonDirection, (F32_SAMPLE, I8_SAMPLE, U8_SAMPLE, BOOLEANS))
    ),
    *(
        comparison(sample, ComparisonDirection.LT, kind, lambda x, y: x.astype(np.float64) < y.astype(np.float64))
        for sample, kind in (
            (BF16_SAMPLE, ComparisonType.FLOAT),
            (F8_SAMPLE, ComparisonType.FLOAT),
            (I4_SAMPLE, ComparisonType.SIGNED),
            (BOOLEANS, ComparisonType.UNSIGNED),
        )
    ),
    *(
        comparison(sample, direction, ComparisonType.TOTALORDER, ordered(direction, total_order))
        for direction, sample in product(
            ComparisonDirection, (np.append(F32_SAMPLE, np.float32(-np.nan)), BF16_SAMPLE, F64_SAMPLE)
        )
    ),
    *(
        comparison(C64_SAMPLE, direction, ComparisonType.FLOAT, ordered(direction, lambda x: (x.real, x.imag)))
        for direction in ComparisonDirection
    ),
]

PREDICATE = np.arange(F32_SAMPLE.size) % 3 == 0
SELECTIONS = [
    Record(
        ops.Select,
        (PREDICATE, F32_SAMPLE, -F32_SAMPLE),
        oracle=lambda p, x, y: np.array([x, y])[1 - p, np.arange(p.size)],
    ),
    Record(ops.Select, (np.array(False), I8_SAMPLE, -I8_SAMPLE), oracle=lambda p, x, y: y),
    Record(ops.Select, (np.array(True), BF16_SAMPLE, -BF16_SAMPLE), oracle=lambda p, x, y: x),
    *(
        Record(ops.Clamp, (np.array(-1, x.dtype), x, np.array(2, x.dtype)), oracle=lambda a, x, b: np.clip(x, a, b))
        for x in (*REALS[:3], I8_SAMPLE, I64_SAMPLE)
    ),
    Record(
        ops.Clamp, (-np.ones_like(I8_SAMPLE), I8_SAMPLE, np.array(5, np.int8)), oracle=lambda a, x, b: np.clip(x, a, b)
    ),
    # Where the bounds cross, the upper one wins.
    Record(ops.Clamp, (np.float32(3), np.float32([0, 2, 4]), np.float32(1)), oracle=lambda *_: np.float32([1, 1, 1])),
    *(Record(ops.IsFinite, (x,), oracle=lambda x: np.isfinite(x.astype(np.float64))) for x in (*REALS, F8_SAMPLE)),
]


def conversion(operand, dtype, oracle):
    return Record(ops.Convert, (operand,), result=TensorType(operand.shape, element_type_of(dtype)), oracle=oracle)


def saturated(dtype):
    """Converts with Python's own integers: truncated, clamped to the range; NaN becomes 0."""
    limits = ml_dtypes.iinfo(dtype)

    def oracle(array):
        values = [0 if math.isnan(x) else x for x in array.astype(np.float64).tolist()]
        held = [min(max(x, int(limits.min)), int(limits.max)) for x in values]
        return np.array([int(x) for x in held], np.uint64 if limits.min == 0 else np.int64).astype(dtype)

    return oracle


INTEGER_DTYPES = [sample.dtype for sample in INTEGERS]
CONVERSIONS = [
    *(
        conversion(x, dtype, saturated(dtype))
        for x, dtype in product((F32_SAMPLE, F64_SAMPLE * 1e17, BF16_SAMPLE), INTEGER_DTYPES)
    ),
    *(
        conversion(x, dtype, exact(int, dtype))
        for x, dtype in product((I64_SAMPLE, U64_SAMPLE, I4_SAMPLE), INTEGER_DTYPES)
    ),
    *(
        conversion(x, dtype, lambda x, t=dtype: x.astype(t))
        for x, dtype in product((I8_SAMPLE, U64_SAMPLE), (np.float32, np.float64))
    ),
    *(
        conversion(x, np.bool_, lambda x: x.astype(np.float64) != 0)
        for x in (F32_SAMPLE, BF16_SAMPLE, I8_SAMPLE, I4_SAMPLE)
    ),
    *(
        conversion(BOOLEANS, dtype, lambda x, t=dtype: np.array([0, 1]).astype(t))
        for dtype in (np.float32, *INTEGER_DTYPES, np.complex64)
    ),
    *(
        conversion(F32_SAMPLE, dtype, lambda x, t=dtype: x.astype(t))
        for dtype in (np.float16, ml_dtypes.bfloat16, np.float64)
    ),
    conversion(C64_SAMPLE, np.dtype(np.float32), lambda x: x.real),
    conversion(C64_SAMPLE, np.bool_, lambda x: x.real != 0),
    conversion(C64_SAMPLE, np.dtype(np.int8), lambda x: np.trunc(x.real).astype(np.int8)),
    conversion(F32_SAMPLE[3:-2], np.dtype(np.complex64), lambda x: x.astype(np.complex64)),
    conversion(I32_SAMPLE, np.dtype(ml_dtypes.bfloat16), lambda x: x.astype(np.float32).astype(ml_dtypes.bfloat16)),
]

BITCASTS = [
    Record(ops.BitcastConvert, (F32_SAMPLE,), result=tensor(14, of=np.int32), oracle=lambda x: x.view(np.int32)),
    Record(
        ops.BitcastConvert,
        (I32_SAMPLE,),
        result=tensor(8, 4, of=np.uint8),
        oracle=lambda x: x.view(np.uint8).reshape(8, 4),
    ),
    Record(
        ops.BitcastConvert,
        (np.arange(24, dtype=np.uint8).reshape(3, 2, 4),),
        result=tensor(3, 2, of=np.uint32),
        oracle=lambda x: (x.astype(np.uint32) << np.uint32([0, 8, 16, 24])).sum(-1).astype(np.uint32),
    ),
    Record(
        ops.BitcastConvert,
        (U8_SAMPLE,),
        result=tensor(7, 2, of=ml_dtypes.uint4),
        oracle=lambda x: np.stack([x & 15, x >> 4], -1).astype(ml_dtypes.uint4),
    ),
    Record(
        ops.BitcastConvert,
        (np.array([[-8, 7], [-1, 0]], ml_dtypes.int4),),
        result=tensor(2, of=np.int8),
        oracle=lambda x: np.array([0x78, 0x0F], np.int8),
    ),
    Record(ops.BitcastConvert, (C64_SAMPLE,), result=tensor(6, of=np.complex64), oracle=lambda x: x),
    Record(
        ops.BitcastConvert,
        (C64_SAMPLE[:2],),
        result=tensor(of=np.complex128),
        oracle=lambda x: x.view(np.complex128).reshape(()),
    ),
    Record(
        ops.BitcastConvert,
        (U8_SAMPLE,),
        result=tensor(7, 8, of=np.bool_),
        oracle=lambda x: np.unpackbits(x[:, None], axis=-1, bitorder="little").astype(bool),
    ),
]

PRECISION_SAMPLE = np.append(F32_SAMPLE, np.float32([1.0009765, 1e-40, 65504, 65520, 6e-5, 3e38, -3e38]))
SMALL_PRECISION_SAMPLE = np.append(
    np.float16([-4.345e-05, -1.41e-05, 6e-8, 6e-5, 60000]), F32_SAMPLE.astype(np.float16)
)
PRECISION = [
    *(
        Record(
            ops.ReducePrecision,
            (x,),
            {"exponent_bits": exponent, "mantissa_bits": mantissa},
            oracle=Lax("reduce_precision", exponent_bits=exponent, mantissa_bits=mantissa),
        )
        for x, (exponent, mantissa) in product(
            (PRECISION_SAMPLE, F64_SAMPLE, BF16_SAMPLE, SMALL_PRECISION_SAMPLE),
            ((5, 10), (8, 7), (8, 23), (2, 3), (11, 52)),
        )
    ),
    # Types without a mantissa have no NaN, and round a tie to the even exponent.
    Record(
        ops.ReducePrecision,
        (np.float32([np.nan, 1.5, 3, 0]),),
        {"exponent_bits": 8, "mantissa_bits": 0},
        oracle=lambda x: np.float32([np.inf, 2, 2, 0]),
    ),
]

PARTS = [
    *(
        Record(ops.Complex, pairs(x), oracle=lambda x, y: np.stack([x, y], -1).view(f"c{2 * x.itemsize}")[..., 0])
        for x in REALS[:2]
    ),
    *(Record(ops.Real, (x,), oracle=lambda x: x.view(x.real.dtype)[::2]) for x in COMPLEX),
    *(Record(ops.Imag, (x,), oracle=lambda x: x.view(x.real.dtype)[1::2]) for x in COMPLEX),
    *(Record(ops.Real, (x,), oracle=rounded(lambda x: x)) for x in REALS),
    *(Record(ops.Imag, (x,), oracle=rounded(lambda x: 0 * np.ones_like(x))) for x in REALS),
]

RECORDS = [*COMPARISONS, *SELECTIONS, *CONVERSIONS, *BITCASTS, *PRECISION, *PARTS]
