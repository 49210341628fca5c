"""The scalar types of kernels: StableHLO's spellings as plain strings, and facts about them. There are no complex types
(buffers of complex numbers have a last dimension of 2), and every element takes whole bytes: booleans and sub-byte
types take one byte each."""

from typing import NewType

import ml_dtypes
import numpy as np

from trivium.ir.errors import CompileError

DType = NewType("DType", str)

_STORAGE: dict[str, type] = {
    "i1": np.bool_,
    "i2": ml_dtypes.int2, "i4": ml_dtypes.int4, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui2": ml_dtypes.uint2, "ui4": ml_dtypes.uint4, "ui8": np.uint8, "ui16": np.uint16,
    "ui32": np.uint32, "ui64": np.uint64,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn, "f6E2M3FN": ml_dtypes.float6_e2m3fn, "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f8E3M4": ml_dtypes.float8_e3m4, "f8E4M3": ml_dtypes.float8_e4m3, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
_FROM_NUMPY = {np.dtype(storage): name for name, storage in _STORAGE.items()}

DTYPES = frozenset(_STORAGE)
FLOATS = frozenset(name for name in _STORAGE if name.startswith(("f", "bf")))
SIGNED = frozenset(name for name in _STORAGE if name.startswith("i") and name != "i1")
UNSIGNED = frozenset(name for name in _STORAGE if name.startswith("ui"))
INTEGERS = SIGNED | UNSIGNED
SMALL_FLOATS = FLOATS - {"bf16", "f16", "f32", "f64"}
"""Floats of at most 8 bits: stored and converted, but never used in computations."""

INDEX = DType("i64")
BOOL = DType("i1")


def numpy_dtype(dtype: str) -> np.dtype:
    """Returns the NumPy (or ml_dtypes) type whose arrays hold `dtype`."""
    if dtype not in DTYPES:
        raise CompileError(f"{dtype!r} is not a scalar type of kernels; expected one of {', '.join(sorted(DTYPES))}")
    return np.dtype(_STORAGE[dtype])


def from_numpy(dtype: np.dtype) -> DType:
    """Returns the scalar type of a NumPy type (except complex types, which are pairs of floats)."""
    if dtype not in _FROM_NUMPY:
        raise CompileError(f"kernels have no scalar type for NumPy's {dtype}")
    return DType(_FROM_NUMPY[dtype])


def storage_bytes(dtype: str) -> int:
    """Returns the number of bytes of one element in a buffer."""
    return numpy_dtype(dtype).itemsize


def bit_width(dtype: str) -> int:
    """Returns the number of significant bits: 1 for `i1`, 4 for `ui4`, 8 for `f8E5M2`, 32 for `f32`."""
    digits = dtype.removeprefix("b").removeprefix("ui").removeprefix("i").removeprefix("f").partition("E")[0]
    return int(digits)
