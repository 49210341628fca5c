"""Single numbers in text: floats with the digits that MLIR writes, or as bits where digits cannot express them, and
integers, which may be read as signed or unsigned."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from trivium.ir.bits import narrow
from trivium.ir.element_types import ComplexType, FloatType, IntegerType, Type

_INTEGER = re.compile(r"-?(?:0x[0-9a-fA-F]{1,32}|\d{1,40})", re.ASCII)
DECIMAL = re.compile(r"-?\d{1,400}\.\d*(?:[eE][-+]?\d{1,9})?", re.ASCII)
"""A float in decimal digits."""
_HEX = re.compile(r"0x[0-9a-fA-F]{1,32}", re.ASCII)


def float_text(value: npt.ArrayLike, kind: FloatType) -> str:
    """Formats a float exactly as MLIR does: `1.000000e+00` if six digits are exact, otherwise with enough digits to
    distinguish it from its neighbours, or as bits if the text would have no decimal point (NaN, infinities, long
    integers)."""
    number = narrow(value, kind) if isinstance(value, float) else np.asarray(value, kind.dtype)
    return _float_text(number.tobytes(), kind)


@lru_cache(1 << 12)
def _float_text(data: bytes, kind: FloatType) -> str:
    """Formats a float that is given by its bytes. Programs repeat few numbers many times."""
    number = np.frombuffer(data, kind.dtype)[0]
    wide = float(number)
    text = ""
    if np.isfinite(wide):
        sign = "-" if np.signbit(wide) else ""
        text = sign + _short_text(abs(wide))
        if float_of(text, kind).tobytes() != number.tobytes():
            text = sign + _long_text(abs(wide), 17 if kind.name == "f64" else 9)
    if "." in text:
        return text
    size = number.dtype.itemsize
    return f"0x{int(number.reshape(1).view(f'u{size}')[0]):0{2 * size}X}"


def _short_text(value: float) -> str:
    digits, exponent = _decimal(value, 6)
    return f"{digits[0]}.{digits[1:]:0<6}e{exponent + len(digits) - 1:+03d}"


def _long_text(value: float, precision: int) -> str:
    """Writes an exponent if more than three zeros would separate the digits from the decimal point."""
    digits, exponent = _decimal(value, precision)
    first = exponent + len(digits) - 1
    if exponent > 3 or first >= precision or first < -3:
        return f"{digits[0]}.{digits[1:] or '0'}E{first:+d}"
    if exponent >= 0:
        return digits + "0" * exponent
    return f"{digits[: first + 1]}.{digits[first + 1 :]}" if first >= 0 else f"0.{'0' * (-first - 1)}{digits}"


def _decimal(value: float, precision: int) -> tuple[str, int]:
    """Returns the digits and the power of ten of the last one. Like LLVM, it first truncates surplus digits and then
    rounds half up. The result is not always the nearest, but producing the same text matters more."""
    numerator, denominator = value.as_integer_ratio()
    exponent = 1 - denominator.bit_length()
    numerator *= 5**-exponent
    surplus = numerator.bit_length() - (precision * 196 + 58) // 59
    if surplus > 0:
        tens = surplus * 59 // 196
        numerator //= 10**tens
        exponent += tens
    digits = str(numerator).rstrip("0") or "0"
    exponent += len(str(numerator)) - len(digits)
    if len(digits) > precision:
        exponent += len(digits) - precision
        rounded = str(int(digits[:precision]) + (digits[precision] >= "5"))
        digits = rounded.rstrip("0")
        exponent += len(rounded) - len(digits)
    return (digits, exponent) if value else ("0", 0)


def scalar_text(value: Any, kind: Type) -> str:
    """Formats one element of a tensor."""
    if isinstance(kind, FloatType):
        return float_text(value, kind)
    if isinstance(kind, ComplexType):
        part = kind.element_type
        return f"({float_text(value.real, part)},{float_text(value.imag, part)})"
    if isinstance(kind, IntegerType) and kind.width == 1:
        return "true" if value else "false"
    return str(int(value))


def float_of(text: str, kind: FloatType) -> np.generic:
    """Returns the float that a literal stands for; hexadecimal digits are its bits. Raises `ValueError` otherwise."""
    if _HEX.fullmatch(text):
        size = kind.dtype.itemsize
        bits = int(text, 16)
        if bits >= 1 << 8 * size:
            raise ValueError(f"{text} has more than {8 * size} bits")
        return np.uint64(bits).astype(f"u{size}").view(kind.dtype)
    if not DECIMAL.fullmatch(text):
        raise ValueError(f"'{text}' is not a float, expected one as in 1.0, 1.0e-3 or 0x3F800000")
    return narrow(float(text), kind)


def integer_of(text: str, kind: Type) -> int:
    """Returns the integer that a literal stands for, wrapped as in MLIR (255 is -1 in i8). Raises `ValueError` if it
    does not fit."""
    if text in ("true", "false"):
        if kind != IntegerType(1):
            raise ValueError(f"'{text}' is not of type {kind}")
        return int(text == "true")
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"'{text}' is not an integer")
    value = int(text, 16 if "x" in text else 10)
    low, high = integer_range(kind)
    if not low <= value < high:
        raise ValueError(f"{text} does not fit in {kind}")
    if kind == IntegerType(1):
        return value & 1
    return value - high if low < 0 and value >= -low else value


def integer_range(kind: Type) -> tuple[int, int]:
    """Returns the range of literals of an integer type, with an exclusive end. For a signless type it covers the signed
    and the unsigned reading."""
    width = kind.width if isinstance(kind, IntegerType) else 64
    signedness = kind.signedness if isinstance(kind, IntegerType) else "s"
    low = 0 if signedness == "u" else -(1 << width - 1)
    return low, 1 << (width - 1 if signedness == "s" else width)
