"""The forms of elements: in memory, as values of a kernel, and in computations. Floats narrower than 32 bits are held
as their bits, so that everything that only moves them keeps them, NaNs too. Operations compute with them as f32 and
round the result, which yields the correctly rounded result for + - * / and sqrt. Integers narrower than 8 bits are held
as i8 and wrapped after each operation, since not every device computes with fewer bits. They, and booleans, take one
byte each in memory."""

from __future__ import annotations

from dataclasses import dataclass

import llvmlite.ir as ll
import numpy as np

from trivium.backends.llvm.code import (
    BF16,
    F32,
    F64,
    I1,
    I16,
    I32,
    Code,
    Number,
    element,
    literal,
    shaped,
    undefined,
)
from trivium.compiler.kernel.dtypes import FLOATS, INTEGERS, SIGNED, bit_width, numpy_dtype, storage_bytes


def held_type(dtype: str) -> ll.Type:
    """Returns the LLVM type of a value of `dtype`."""
    return I1 if dtype == "i1" else memory_type(dtype)


def computed_type(dtype: str) -> ll.Type:
    """Returns the LLVM type in which operations compute with values of `dtype`."""
    return F32 if is_narrow(dtype) else held_type(dtype)


def memory_type(dtype: str) -> ll.Type:
    """Returns the LLVM type of an element of `dtype` in memory."""
    return {"f32": F32, "f64": F64}.get(dtype) or ll.IntType(8 * storage_bytes(dtype))


def constant(dtype: str, number: Number) -> ll.Value:
    """Returns the held value of a number."""
    if is_narrow(dtype):
        number = int(np.array(number, numpy_dtype(dtype)).view(f"u{storage_bytes(dtype)}"))
    return literal(held_type(dtype), number)


def from_memory(code: Code, raw: ll.Value, dtype: str) -> ll.Value:
    """Returns the held value for a loaded one."""
    if dtype == "i1":
        # As in NumPy, every byte but 0 is true: `numpy.ndarray.view` makes arrays of such bytes.
        return code.icompare("!=", raw, 0)
    return wrapped(code, raw, dtype)


def to_memory(code: Code, value: ll.Value, dtype: str) -> ll.Value:
    """Returns the value to store for a held value."""
    if dtype == "i1":
        return code.builder.zext(value, shaped(memory_type(dtype), value.type))
    if dtype in SIGNED and bit_width(dtype) < 8:
        # As in ml_dtypes, the unused bits of a byte are zero: callers look at the bytes of such arrays, to pack them.
        return code.both(value, (1 << bit_width(dtype)) - 1)
    return value


def reordered(code: Code, bits: ll.Value) -> ll.Value:
    """Returns signed integers that are in the order of the floats with these bits: -NaN < -inf < ... < -0 < 0 < ... <
    inf < NaN; for such integers, the bits."""
    signs = code.ashr(bits, element(bits.type).width - 1)
    return code.builder.xor(bits, code.lshr(signs, 1))


def is_narrow(dtype: str) -> bool:
    """Whether `dtype` is a float that operations compute with as f32."""
    return dtype in FLOATS and dtype not in ("f32", "f64")


def widened(code: Code, value: ll.Value, dtype: str) -> ll.Value:
    """Returns the f32 with which operations compute for a held narrow float; values of other types unchanged."""
    return _decode(code.strict(), value, dtype) if is_narrow(dtype) else value


def rounded(code: Code, value: ll.Value, dtype: str) -> ll.Value:
    """Returns the held value of narrow `dtype` that is nearest to an f32; values of other types unchanged."""
    return _encode(code.strict(), value, dtype) if is_narrow(dtype) else value


def sign_bit(dtype: str) -> int | None:
    """Returns the bit of a narrow float that alone decides its sign. None if its zero or NaN has only one sign."""
    form = _FORMATS.get(dtype)
    signed = dtype == "bf16" or (form is not None and not form.unsigned_zero)
    return 1 << (bit_width(dtype) - 1) if signed else None


def wrapped(code: Code, value: ll.Value, dtype: str) -> ll.Value:
    """Returns an i8 reduced modulo 2^width to the range of a sub-byte integer; values of other types unchanged."""
    unused = 8 - bit_width(dtype)
    if dtype not in INTEGERS or unused <= 0:
        return value
    if dtype in SIGNED:
        return code.ashr(code.shl(value, unused), unused)
    return code.both(value, (1 << bit_width(dtype)) - 1)


@dataclass(frozen=True)
class Format:
    """A small float: a sign bit (except for E8M0), exponent and mantissa bits, bias; the magnitudes above `largest` are
    infinity, if the format has one, then NaN. `unsigned_zero`: the code of -0 is the only NaN instead. Without
    infinity, overflow becomes NaN; without NaN, it saturates."""

    exponent: int
    mantissa: int
    bias: int
    largest: int
    infinity: int | None
    nan: int | None
    unsigned_zero: bool = False


_FORMATS = {
    "f8E3M4": Format(3, 4, 3, 0x6F, 0x70, 0x78), "f8E4M3": Format(4, 3, 7, 0x77, 0x78, 0x7C),
    "f8E5M2": Format(5, 2, 15, 0x7B, 0x7C, 0x7E), "f16": Format(5, 10, 15, 0x7BFF, 0x7C00, 0x7E00),
    "f8E4M3FN": Format(4, 3, 7, 0x7E, None, 0x7F),
    "f8E4M3FNUZ": Format(4, 3, 8, 0x7F, None, 0x80, True), "f8E4M3B11FNUZ": Format(4, 3, 11, 0x7F, None, 0x80, True),
    "f8E5M2FNUZ": Format(5, 2, 16, 0x7F, None, 0x80, True),
    "f4E2M1FN": Format(2, 1, 1, 0x7, None, None), "f6E2M3FN": Format(2, 3, 1, 0x1F, None, None),
    "f6E3M2FN": Format(3, 2, 3, 0x1F, None, None),
}  # fmt: skip


def _decode(code: Code, raw: ll.Value, dtype: str) -> ll.Value:
    if dtype == "f16" and code.target.half:
        return code.builder.fpext(code.bits(raw, ll.HalfType()), shaped(F32, raw.type))
    wide = code.builder.zext(raw, shaped(I32, raw.type))
    if dtype == "bf16":
        return code.bits(code.shl(wide, 16), F32)
    if dtype == "f8E8M0FNU":
        power = code.select(code.icompare("==", wide, 0), 0x00400000, code.shl(wide, 23))
        return code.bits(code.select(code.icompare("==", wide, 0xFF), 0x7FC00000, power), F32)
    return _decode_small(code, wide, _FORMATS[dtype])


def _encode(code: Code, value: ll.Value, dtype: str) -> ll.Value:
    memory = shaped(memory_type(dtype), value.type)
    if dtype == "f16" and code.target.half:
        return code.bits(code.builder.fptrunc(value, shaped(ll.HalfType(), value.type)), I16)
    if dtype == "bf16" and code.target.rounds_to_bf16:
        return _round_pairs(code, value)
    if dtype == "bf16":
        bits = code.bits(value, I32)
        nan = code.either(code.both(code.lshr(bits, 16), 0x8000), 0x7FC0)
        encoded = code.select(code.is_nan(value), nan, code.lshr(_round_bits(code, bits, 16), 16))
    elif dtype == "f8E8M0FNU":
        bits = code.bits(value, I32)
        # To the nearest power of two, and half way between two of them to the larger one. The smallest, 2^-127, is the
        # only one that is subnormal in f32.
        normal = code.builder.zext(code.icompare(">=", bits, 1 << 23), bits.type)
        power = code.lshr(code.iadd(code.iadd(bits, (1 << 22) - 1), normal), 23)
        valid = code.both(code.compare(">", value, 0.0), code.icompare("<", power, 0xFF, signed=False))
        encoded = code.select(valid, power, 0xFF)
    else:
        encoded = _encode_small(code, value, _FORMATS[dtype])
    return code.builder.trunc(encoded, memory)


def _round_pairs(code: Code, value: ll.Value) -> ll.Value:
    """Returns f32 rounded to bf16 by a device's own instruction."""
    builder = code.builder

    def pair(low: ll.Value, high: ll.Value) -> ll.Value:
        found = code.call(code.target.rounds_to_bf16, ll.VectorType(BF16, 2), high, low)
        return builder.bitcast(found, I32)

    if not isinstance(value.type, ll.VectorType):
        return builder.trunc(pair(value, F32(0.0)), I16)
    lanes = [builder.extract_element(value, I32(lane)) for lane in range(value.type.count)]
    words = undefined(ll.VectorType(I32, len(lanes) // 2))
    for number, (low, high) in enumerate(zip(lanes[::2], lanes[1::2], strict=True)):
        words = builder.insert_element(words, pair(low, high), I32(number))
    return builder.bitcast(words, ll.VectorType(I16, len(lanes)))


def _round_bits(code: Code, bits: ll.Value, dropped: int) -> ll.Value:
    """Returns `bits` with the last `dropped` ones rounded to nearest, ties to even; the dropped bits still hold
    garbage."""
    odd = code.both(code.lshr(bits, dropped), 1)
    return code.iadd(code.iadd(bits, (1 << (dropped - 1)) - 1), odd)


def _decode_small(code: Code, raw: ll.Value, form: Format) -> ll.Value:
    sign_bit = form.exponent + form.mantissa
    magnitude = code.both(raw, (1 << sign_bit) - 1)
    value = code.mul(code.bits(code.shl(magnitude, 23 - form.mantissa), F32), 2.0 ** (127 - form.bias))
    if form.infinity is not None:
        value = code.select(code.icompare(">=", magnitude, form.infinity), float("inf"), value)
        value = code.select(code.icompare(">", magnitude, form.infinity), float("nan"), value)
    if form.infinity is None and form.nan is not None:
        code_of_nan = raw if form.unsigned_zero else magnitude
        value = code.select(code.icompare("==", code_of_nan, form.nan), float("nan"), value)
    sign = code.both(code.shl(raw, 31 - sign_bit), -(1 << 31))
    return code.bits(code.either(code.bits(value, I32), sign), F32)


def _encode_small(code: Code, value: ll.Value, form: Format) -> ll.Value:
    positive = code.abs(value)
    # Below the smallest normal number, adding this makes the f32 adder round to multiples of the smallest subnormal
    # number.
    shift = 2.0 ** (24 - form.bias - form.mantissa)
    tiny = code.isub(code.bits(code.add(positive, shift), I32), code.bits(code.like(positive, shift), I32))
    dropped = 23 - form.mantissa
    normal = code.lshr(_round_bits(code, code.bits(positive, I32), dropped), dropped)
    normal = code.isub(normal, (127 - form.bias) << form.mantissa)
    magnitude = code.select(code.compare("<", positive, 2.0 ** (1 - form.bias)), tiny, normal)
    beyond = form.infinity if form.infinity is not None else form.nan if form.nan is not None else form.largest
    magnitude = code.select(code.icompare(">", magnitude, form.largest), beyond, magnitude)
    sign_bit = form.exponent + form.mantissa
    sign = code.shl(code.lshr(code.bits(value, I32), 31), sign_bit)
    encoded = code.either(magnitude, sign)
    if form.unsigned_zero:
        encoded = code.select(code.icompare("==", magnitude, 0), 0, encoded)
        encoded = code.select(code.icompare("==", magnitude, form.nan), form.nan, encoded)
    if form.nan is None:
        nan = code.isub(code.like(sign, 1 << sign_bit), sign)  # the zero of the other sign, as in ml_dtypes
    else:
        nan = form.nan if form.unsigned_zero else code.either(sign, form.nan)
    return code.select(code.is_nan(value), nan, encoded)
