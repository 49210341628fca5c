"""Arithmetic on arrays as the specification defines it, where NumPy differs: narrow element types, integer division,
shifts, conversion, total order. It works for any shape, so that the body of a region runs on whole arrays at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import numpy.typing as npt

from trivium.ir.types import FLOATS, ComplexType, IntegerType, element_type_of

_WIDE: dict[np.dtype, type] = {kind.dtype: np.float32 for kind in FLOATS.values() if kind.width < 32}
_ROUNDED_TWICE = _WIDE.keys() - {np.dtype(np.float16), np.dtype(np.float32)}  # tf32 is stored in 32 bits
_WIDE[np.dtype(np.complex64)] = np.complex128
_WIDE |= {IntegerType(width).dtype: np.int8 for width in (2, 4)}
_WIDE |= {IntegerType(width, "u").dtype: np.uint8 for width in (2, 4)}


def widen(array: npt.ArrayLike) -> np.ndarray:
    """Converts to a type that NumPy computes in: `float32` for narrower floats, a byte for narrower integers, and
    `complex128` for `complex64`, whose products and quotients NumPy rounds in intermediate steps."""
    array = np.asarray(array)
    return array.astype(_WIDE[array.dtype]) if array.dtype in _WIDE else array


def compute(function: Callable[..., np.ndarray], *arrays: npt.ArrayLike, dtype: np.dtype | None = None) -> np.ndarray:
    """Applies an elementwise function. Narrow operands are widened, and the result is rounded (integers wrap around)
    once, to `dtype` or that of the first operand. NumPy's warnings about overflow and division by zero are off, because
    both are well defined here."""
    dtype = np.asarray(arrays[0]).dtype if dtype is None else dtype
    with np.errstate(all="ignore"):
        return rounded(np.asarray(function(*map(widen, arrays))), dtype)


def rounded(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Rounds to the nearest values of another dtype. Where ml_dtypes rounds to 32 bits first, that step here rounds to
    odd, which preserves the side of a tie that the value is on."""
    if values.dtype != np.float64 or dtype not in _ROUNDED_TWICE:
        return values.astype(dtype, copy=False)
    single = values.astype(np.float32)
    bits, wide = single.view(np.uint32), single.astype(np.float64)
    bits = bits - (np.abs(wide) > np.abs(values))
    return np.where((wide == values) | np.isnan(values), single, (bits | 1).view(np.float32)).astype(dtype)


def accurate(function: Callable[..., np.ndarray], *arrays: npt.ArrayLike) -> np.ndarray:
    """Applies a function of floats or complex numbers in 64 bits, and rounds once to their dtype: NumPy's results in 32
    bits are off by a few units, depending on the host."""
    widest = np.complex128 if np.iscomplexobj(arrays[0]) else np.float64
    return compute(function, *(np.asarray(array).astype(widest) for array in arrays), dtype=np.asarray(arrays[0]).dtype)


def is_real_float(dtype: np.dtype) -> bool:
    """Whether the dtype of a widened array is that of real floats."""
    return np.issubdtype(dtype, np.floating)


# Integers


def unsigned(array: npt.ArrayLike) -> tuple[np.ndarray, int]:
    """Returns the bits of integers as unsigned numbers, and the number of bits of each."""
    array = np.asarray(array)
    width = element_type_of(array.dtype).width  # type: ignore[union-attr]
    wide = widen(array)
    bits = wide.view(f"u{wide.dtype.itemsize}")
    return (bits if width >= 8 else bits & np.uint8((1 << width) - 1)), width


def integer_quotient(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Integer division, rounded towards zero. x / 0 has all bits set, as in XLA; the least integer / -1 wraps."""
    safe = np.where(rhs == 0, np.ones_like(rhs), rhs)
    floor = np.floor_divide(lhs, safe)
    inexact_negative = (np.fmod(lhs, safe) != 0) & ((lhs < 0) != (rhs < 0))
    return np.where(rhs == 0, ~np.zeros_like(lhs), floor + inexact_negative.astype(lhs.dtype))


def modulus(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The remainder of integer division, with the sign of the dividend. The remainder of x / 0 is x, as in XLA."""
    safe = np.where(rhs == 0, np.ones_like(rhs), rhs)
    return np.where(rhs == 0, lhs, np.fmod(lhs, safe))


def integer_power(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Integer exponentiation that wraps around. With a negative exponent, only powers of 1 and -1 are not 0."""
    wrapped = np.power(lhs, np.maximum(rhs, np.zeros_like(rhs)))
    if not np.issubdtype(rhs.dtype, np.signedinteger):
        return wrapped
    inverse = np.where(lhs == -1, np.where(rhs % 2 == 0, 1, -1), np.where(lhs == 1, 1, 0)).astype(lhs.dtype)
    return np.where(rhs < 0, inverse, wrapped)


def leading_zeros(array: npt.ArrayLike) -> np.ndarray:
    """Returns how many bits are above the highest set bit."""
    bits, width = unsigned(array)
    for distance in (1, 2, 4, 8, 16, 32):
        if distance < width:  # sets every bit below the highest one
            bits = bits | (bits >> bits.dtype.type(distance))
    return width - np.bitwise_count(bits).astype(np.int64)


def shift(function: Callable[..., np.ndarray], lhs: npt.ArrayLike, rhs: npt.ArrayLike) -> np.ndarray:
    """Shifts the bits of `lhs` by `rhs`, an unsigned amount; the result is 0 if it is the width or more."""
    bits, width = unsigned(lhs)
    amount, _ = unsigned(rhs)
    moved = function(bits, np.minimum(amount, amount.dtype.type(width - 1)))
    return np.where(amount < width, moved, np.zeros_like(moved)).astype(np.asarray(lhs).dtype)


def shift_arithmetic(lhs: npt.ArrayLike, rhs: npt.ArrayLike) -> np.ndarray:
    """Shifts to the right by `rhs`, an unsigned amount, and fills with the highest bit."""
    bits, width = unsigned(lhs)
    amount, _ = unsigned(rhs)
    spare = bits.dtype.itemsize * 8 - width
    signed = (bits << bits.dtype.type(spare)).view(f"i{bits.dtype.itemsize}")
    amount = np.minimum(amount, amount.dtype.type(width - 1)).astype(signed.dtype)
    return (signed >> (amount + signed.dtype.type(spare))).astype(np.asarray(lhs).dtype)


# Floats


def maximum(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The larger of two numbers; NaN if either is NaN. 0 is larger than -0, where NumPy may return either."""
    greater = np.maximum(lhs, rhs)
    return np.where((lhs == 0) & (rhs == 0), lhs + rhs, greater) if is_real_float(greater.dtype) else greater


def minimum(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The smaller of two numbers, with the same rules as `maximum`."""
    smaller = np.minimum(lhs, rhs)
    return np.where((lhs == 0) & (rhs == 0), -(-lhs - rhs), smaller) if is_real_float(smaller.dtype) else smaller


def round_half_away(values: np.ndarray) -> np.ndarray:
    """Rounds to the nearest integer, ties away from zero."""
    whole = np.trunc(values)
    return np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(np.ones_like(values), values), whole)


def logistic(values: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), in a form where the exponential cannot overflow."""
    positive = values.real >= 0
    small = np.exp(np.where(positive, -values, values))
    return np.where(positive, np.ones_like(small), small) / (1 + small)


def exponential(values: np.ndarray) -> np.ndarray:
    """exp(x). For a complex number with two infinite parts it is NaN, as in XLA; NumPy returns 0 for some."""
    result = np.exp(values)
    if is_real_float(values.dtype):
        return result
    return np.where(np.isinf(values.real) & np.isinf(values.imag), complex(np.nan, np.nan), result)


def square(values: np.ndarray) -> np.ndarray:
    """x * x; for complex numbers, computed without overflow unless the result overflows."""
    if is_real_float(values.dtype):
        return np.square(values)
    x, y = values.real, values.imag
    result = np.empty_like(values)
    result.real = np.where(np.abs(x) == np.abs(y), np.abs(x) * 0, (x - y) * (x + y))
    result.imag = x * y + x * y
    return result


def exponential_minus_one(values: np.ndarray) -> np.ndarray:
    """exp(x) - 1. If the imaginary part of x is zero, so is that of the result, even if x is infinite."""
    result = np.asarray(np.expm1(values))
    if not is_real_float(values.dtype):
        result.imag = np.where(values.imag == 0, values.imag, result.imag)
    return result


def reciprocal_square_root(values: np.ndarray) -> np.ndarray:
    return quotient(np.ones_like(values), np.sqrt(values))


def quotient(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """lhs / rhs. As in C, a finite complex number divided by an infinite one is zero. Divided by zero it is infinite in
    its own direction, or in the opposite direction if the real part of the divisor is -0."""
    result = np.divide(lhs, rhs)
    if is_real_float(result.dtype):
        return result
    result = np.where(np.isfinite(lhs) & np.isinf(rhs), 0, result)
    infinite = np.empty_like(result)
    infinity = np.copysign(np.inf, rhs.real)
    infinite.real, infinite.imag = infinity * lhs.real, infinity * lhs.imag
    return np.where(rhs == 0, infinite, result)


def sign(values: np.ndarray) -> np.ndarray:
    """-1, 0 or 1; zeros keep their sign, NaN stays NaN, and a complex number becomes one of modulus 1."""
    if np.issubdtype(values.dtype, np.complexfloating):
        unit = np.where(values == 0, values * 0, values / np.abs(values))
        return np.where(np.isnan(values), complex(np.nan, np.nan), unit)
    return np.where(values == 0, values, np.sign(values))


def log_plus_one(values: np.ndarray) -> np.ndarray:
    """log(1 + x). For complex numbers, the real part is half the logarithm of |1 + x|^2, whose difference from 1 is
    computed exactly if it is small."""
    if is_real_float(values.dtype):
        return np.log1p(values)
    x, y = values.real, values.imag
    result = np.empty_like(values)
    length = np.hypot(1 + x, y)
    halved = np.log(np.hypot(x / 2, y / 2)) + math.log(2)
    result.real, result.imag = np.where(np.isinf(length), halved, np.log(length)), np.arctan2(y, 1 + x)
    near = np.abs(values) < 4
    if np.any(near):
        result.real[near] = 0.5 * np.log1p(_excess(x[near], y[near]))
    return result


@np.vectorize
def _excess(x: float, y: float) -> float:
    """(1 + x)^2 + y^2 - 1, rounded once."""
    real, imaginary = Fraction(float(x)), Fraction(float(y))
    return float(real * (2 + real) + imaginary * imaginary)


def cube_root(values: np.ndarray) -> np.ndarray:
    """The real cube root of a real number, the principal one of a complex number."""
    if is_real_float(values.dtype):
        return np.cbrt(values)
    return np.where(values == 0, 0, np.exp(np.log(values) / 3))


def arctangent2(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The angle of the point (rhs, lhs), continued to complex numbers."""
    if is_real_float(lhs.dtype):
        return np.arctan2(lhs, rhs)
    return -1j * np.log((rhs + 1j * lhs) / np.sqrt(lhs * lhs + rhs * rhs))


def total_order(values: np.ndarray) -> np.ndarray:
    """Returns integers in the order of IEEE-754's `totalOrder` of the floats: -NaN, -inf, ..., -0, 0, ..., inf, NaN.
    For types without infinities, whose NaN may have any bits, it is the order of wider floats."""
    infinite = np.isinf(np.full((), np.inf, values.dtype).astype(np.float32))
    bits = values if infinite else widen(values)
    bits = bits.view(f"i{bits.dtype.itemsize}")
    return bits ^ ((bits >> (bits.dtype.itemsize * 8 - 1)) & np.iinfo(bits.dtype).max)


def reduce_precision(values: np.ndarray, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    """Rounds to the values of a float format with fewer bits, ties to even. Values that are too large become infinite;
    values that would be subnormal in the smaller format become zero."""
    info = ml_dtypes.finfo(values.dtype)
    dtype = np.dtype(f"u{values.dtype.itemsize}")
    sign_bit = 1 << (info.bits - 1)
    bits = values.view(dtype).astype(np.uint64)
    sign, magnitude = bits & np.uint64(sign_bit), bits & np.uint64(sign_bit - 1)
    infinity = np.full_like(values, np.inf)  # NaN where a type has no infinity
    infinite = infinity.view(dtype).astype(np.uint64)
    if mantissa_bits < info.nmant:
        dropped = info.nmant - mantissa_bits
        tie = (magnitude >> np.uint64(dropped)) & np.uint64(1)
        magnitude = magnitude + tie + np.uint64((1 << (dropped - 1)) - 1)
        magnitude = np.minimum(magnitude >> np.uint64(dropped) << np.uint64(dropped), infinite)
    if exponent_bits < info.nexp:
        bias, reduced_bias = (1 << (info.nexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = magnitude >> np.uint64(info.nmant)
        magnitude = np.where(exponent > bias + reduced_bias, infinite, magnitude)
        magnitude = np.where(exponent <= bias - reduced_bias, np.uint64(0), magnitude)
    reduced = np.asarray(sign | magnitude).astype(dtype).view(values.dtype)
    return np.where(np.isnan(values), values if mantissa_bits else infinity, reduced)


# From one element type to another


def convert(array: npt.ArrayLike, dtype: np.dtype) -> np.ndarray:
    """Converts to the nearest value of another element type. Integers wrap around; a float outside of the range of an
    integer type becomes the nearest limit, and NaN becomes 0, as in XLA. An imaginary part is dropped, or added as
    0."""
    array = np.asarray(array)
    if array.dtype == dtype:
        return array
    wide = widen(array)
    with np.errstate(all="ignore"):
        if np.issubdtype(wide.dtype, np.complexfloating) and not np.issubdtype(dtype, np.complexfloating):
            wide = wide.real
        if dtype == np.bool_:
            return np.asarray(wide != 0)
        if is_real_float(wide.dtype) and _is_integer(dtype):
            return _saturate(wide, dtype)
        return wide.astype(dtype)


def _is_integer(dtype: np.dtype) -> bool:
    return isinstance(element_type_of(dtype), IntegerType)


def _saturate(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    limits = ml_dtypes.iinfo(dtype)
    least, greatest = int(limits.min), int(limits.max)
    values = np.trunc(values.astype(np.float64))
    fits = (values >= least) & (values < greatest + 1)
    exact = np.where(fits, values, 0).astype(_WIDE.get(dtype, dtype))
    held = np.where(values >= greatest + 1, exact.dtype.type(greatest), exact)
    return np.where(values < least, exact.dtype.type(least), held).astype(dtype)


def bitcast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns the same bits as elements of another type; the last dimension has the small elements in a large one,
    lowest first."""
    width, new_width = _bits(array.dtype), _bits(dtype)
    shape = (*array.shape, width // new_width) if new_width < width else array.shape[: array.ndim - (new_width > width)]
    octets = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if min(width, new_width) >= 8:
        return octets.view(dtype).reshape(shape)
    bits = np.unpackbits(octets.reshape(array.size, -1), axis=1, count=width, bitorder="little")
    packed = np.packbits(bits.reshape(-1, new_width), axis=1, bitorder="little").reshape(-1)
    return (packed.astype(dtype) if dtype in _WIDE and _is_integer(dtype) else packed.view(dtype)).reshape(shape)


def _bits(dtype: np.dtype) -> int:
    kind = element_type_of(dtype)
    return 2 * kind.element_type.width if isinstance(kind, ComplexType) else kind.width
