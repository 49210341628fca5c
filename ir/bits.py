"""Numbers and their bits. Single floats are Python floats. They keep the payload of a NaN, which conversions between
formats do not guarantee, in the high bits of the double's mantissa. In elements smaller than a byte, the unused bits of
the byte are zero."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from trivium.ir.element_types import FloatType, IntegerType

if TYPE_CHECKING:
    from trivium.ir.types import TensorType

_TF32_EXCESS = 13
"""How many more low mantissa bits an f32 has than a tf32."""
_DOUBLE_MANTISSA = 52


def narrow(value: float, kind: FloatType) -> np.generic:
    """Returns the nearest number of that format."""
    with np.errstate(over="ignore", invalid="ignore"):
        number = np.float64(value).astype(kind.dtype)
        if value != value:
            return _nan(value, number)
    return _rounded_to_tf32(number) if kind.name == "tf32" else number


def widen(number: np.generic) -> float:
    """Returns the float that `narrow` turns back into this number, bit for bit."""
    value = float(number)  # type: ignore[arg-type]
    bits, width = _bits(number), _mantissa_width(number)
    payload = bits & ((1 << width) - 1)
    if value == value or not payload:
        return value
    sign = bits >> 8 * number.itemsize - 1
    return struct.unpack("<d", struct.pack("<Q", sign << 63 | 0x7FF << 52 | payload << _DOUBLE_MANTISSA - width))[0]


def float_bits(value: float, kind: FloatType) -> int:
    """Returns the bits of a float as a number of that format."""
    bits = _bits(narrow(value, kind))
    return bits >> _TF32_EXCESS if kind.name == "tf32" else bits


def float_of_bits(bits: int, kind: FloatType) -> float:
    """Returns the float that has these bits."""
    bits = bits << _TF32_EXCESS if kind.name == "tf32" else bits
    return widen(_number(bits & (1 << 8 * kind.dtype.itemsize) - 1, kind.dtype))


def view(data: bytes | memoryview, kind: TensorType) -> np.ndarray:
    """Returns the elements in raw bytes."""
    element = kind.element_type
    width = element.width if isinstance(element, IntegerType | FloatType) else 8
    if width >= 8:
        return np.frombuffer(data, kind.dtype)
    raw = np.frombuffer(data, np.uint8)
    mask = (1 << width) - 1
    return (raw & mask if (raw > mask).any() else raw).view(kind.dtype)


def _nan(value: float, canonical: np.generic) -> np.generic:
    """Returns the NaN with the payload of `value`, if the format has one."""
    wide = struct.unpack("<Q", struct.pack("<d", value))[0]
    width, size = _mantissa_width(canonical), 8 * canonical.itemsize
    payload = (wide & ((1 << _DOUBLE_MANTISSA) - 1)) >> _DOUBLE_MANTISSA - width
    exponent = (1 << size - 1 - width) - 1
    number = _number((wide >> 63) << size - 1 | exponent << width | payload, canonical.dtype)
    return number if payload and np.isnan(number) else canonical


def _rounded_to_tf32(number: np.generic) -> np.generic:
    """Rounds to the nearest f32 that is a tf32, ties to even. Numbers beyond the largest become infinity."""
    bits = _bits(number)
    half = (1 << _TF32_EXCESS - 1) - 1 + (bits >> _TF32_EXCESS & 1)
    return _number((bits + half) >> _TF32_EXCESS << _TF32_EXCESS, number.dtype)


def _mantissa_width(number: np.generic) -> int:
    return ml_dtypes.finfo(number.dtype).nmant


def _bits(number: np.generic) -> int:
    return int.from_bytes(number.tobytes(), "little")


def _number(bits: int, dtype: np.dtype) -> np.generic:
    return np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype)[0]
