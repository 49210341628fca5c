"""Types and constants in XLA's form: `ShapeProto` and `LiteralProto` of its `xla_data.proto`."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from trivium.backends.plugin.hlo.wire import message, messages, number, numbers
from trivium.ir.errors import CompileError
from trivium.ir.types import (
    F32,
    F64,
    ComplexType,
    FloatType,
    IndexType,
    IntegerType,
    QuantizedType,
    TensorType,
    TokenType,
    TupleType,
    Type,
)

_FLOATS = {
    "f16": 10, "f32": 11, "f64": 12, "bf16": 16, "f8E5M2": 19, "f8E4M3FN": 20, "f8E4M3B11FNUZ": 23, "f8E5M2FNUZ": 24,
    "f8E4M3FNUZ": 25, "f8E4M3": 28, "f8E3M4": 29, "f4E2M1FN": 32, "f8E8M0FNU": 33, "f6E3M2FN": 35, "f6E2M3FN": 36,
    "tf32": 11,
}  # fmt: skip
_SIGNED = {2: 26, 4: 21, 8: 2, 16: 3, 32: 4, 64: 5}
_UNSIGNED = {1: 31, 2: 27, 4: 22, 8: 6, 16: 7, 32: 8, 64: 9}
_PRED, _ONE_BIT, _TUPLE, _TOKEN = 1, 30, 13, 17
_COMPLEX = {F32: 15, F64: 18}

MOST_LITERAL_BYTES = 256
"""The size up to which constants are part of a program. XLA, too, prints larger ones as `{...}` by default."""

_IN_BYTES = {
    "int8": 15, "uint8": 3, "int16": 17, "uint16": 16, "float16": 11, "bfloat16": 13, "float8_e5m2": 19,
    "float8_e4m3fn": 20, "float8_e4m3b11fnuz": 23, "float8_e5m2fnuz": 24, "float8_e4m3fnuz": 25, "float8_e4m3": 28,
    "float8_e3m4": 29, "float8_e8m0fnu": 33, "float32": 8, "float64": 9, "complex64": 12, "complex128": 18,
    "int2": 26, "uint2": 27, "int4": 21, "uint4": 22,
}  # fmt: skip
"""The fields of `LiteralProto` with the elements as they are in memory, each in a byte at least. For numbers of more
bits, the packed form is the same."""

_AS_NUMBERS = {"bool": 2, "int32": 4, "int64": 5, "uint32": 6, "uint64": 7}


def primitive_type(kind: Type) -> int:
    """Returns XLA's number of an element type."""
    match kind:
        case FloatType(name):
            return _FLOATS[name]
        case ComplexType(part) if part in _COMPLEX:
            return _COMPLEX[part]
        case IndexType():
            return _SIGNED[64]
        case QuantizedType():
            return primitive_type(kind.storage_type)
        case IntegerType(1, "s"):
            return _ONE_BIT
        case IntegerType(1, ""):
            return _PRED
        case IntegerType(width, signedness) if width in (_UNSIGNED if signedness == "u" else _SIGNED):
            return (_UNSIGNED if signedness == "u" else _SIGNED)[width]
    raise CompileError(f"XLA has no element type for {kind}")


@functools.lru_cache(maxsize=1 << 12)
def shape_of(kind: Type, order: tuple[int, ...] = ()) -> bytes:
    """Returns the shape of a type. `order` is the layout of a tensor, from the innermost dimension on; without it, the
    tensor is row-major."""
    match kind:
        case TensorType():
            return array_shape(kind.static_shape, kind.element_type, order)
        case TupleType():
            return tuple_shape([shape_of(part) for part in kind.types])
        case TokenType():
            return number(2, _TOKEN)
    raise CompileError(f"XLA has no type for {kind}")


def array_shape(shape: Sequence[int], element: Type, order: Sequence[int] = (), packs: bool = True) -> bytes:
    """Returns the shape of an array. `packs`: elements of less than a byte share bytes."""
    order = order or range(len(shape))[::-1]
    width = getattr(element, "width", 8) if packs else 8
    # 1: the number of elements to whose multiple the array is padded.
    layout = numbers(1, order) + number(16, 1) + number(7, width if 1 < width < 8 else 0)
    static = numbers(6, [0] * len(shape))
    return number(2, primitive_type(element)) + numbers(3, shape) + static + message(5, layout)


def tuple_shape(parts: Sequence[bytes]) -> bytes:
    """Returns the shape of a tuple of values of these shapes."""
    return number(2, _TUPLE) + messages(4, parts)


def literal_of(array: np.ndarray, element: Type) -> bytes | None:
    """Returns a constant, or None if it is large, or has elements of a rare type."""
    name = array.dtype.name
    if array.nbytes > MOST_LITERAL_BYTES or not (name in _IN_BYTES or name in _AS_NUMBERS):
        return None
    shape = message(1, array_shape(array.shape, element, packs=False))
    if name in _AS_NUMBERS:
        return shape + numbers(_AS_NUMBERS[name], array.reshape(-1).tolist())
    return shape + message(_IN_BYTES[name], np.ascontiguousarray(array).tobytes())
