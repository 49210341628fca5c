"""TensorFlow's dtypes as element types, and its tensors as arrays that share their memory."""

from __future__ import annotations

from typing import Protocol, TypeGuard

import numpy as np
import tensorflow as tf

from trivium.ir import types
from trivium.ir.errors import Error
from trivium.ir.types import FLOATS, TensorType

ELEMENT_TYPES = {
    tf.bool: types.I1,
    tf.uint8: types.UI8,
    tf.uint16: types.UI16,
    tf.uint32: types.UI32,
    tf.uint64: types.UI64,
    tf.int8: types.I8,
    tf.int16: types.I16,
    tf.int32: types.I32,
    tf.int64: types.I64,
    tf.float16: types.F16,
    tf.bfloat16: types.BF16,
    tf.float32: types.F32,
    tf.float64: types.F64,
    tf.complex64: types.C64,
    tf.complex128: types.C128,
    tf.dtypes.experimental.float8_e4m3fn: FLOATS["f8E4M3FN"],
    tf.dtypes.experimental.float8_e5m2: FLOATS["f8E5M2"],
}
QUANTIZED = {
    tf.qint8: tf.int8,
    tf.quint8: tf.uint8,
    tf.qint16: tf.int16,
    tf.quint16: tf.uint16,
    tf.qint32: tf.int32,
}
"""Dtypes of integers that express other numbers, as the integers that they store."""

DTYPES = {element_type: dtype for dtype, element_type in ELEMENT_TYPES.items()}


ALIGNMENT = 64
"""The alignment of a tensor's memory in bytes; TensorFlow aborts on any other."""


def element_type_of(dtype: tf.DType) -> types.ElementType:
    """Returns the element type of a dtype."""
    try:
        return ELEMENT_TYPES[QUANTIZED.get(dtype.base_dtype, dtype.base_dtype)]
    except KeyError:
        raise Error(f"dtype {dtype.name} has no StableHLO element type") from None


class Shaped(Protocol):
    """Anything that has a shape and a dtype: a tensor, an array, a variable, a `TensorSpec`."""

    @property
    def shape(self) -> tf.TensorShape | tuple[int, ...]: ...

    @property
    def dtype(self) -> tf.DType | np.dtype: ...


def is_shaped(x: object) -> TypeGuard[Shaped]:
    return hasattr(x, "shape")


def type_of(x: Shaped) -> TensorType:
    """Returns the type of a tensor; unknown extents are dynamic."""
    shape = tf.TensorShape(x.shape)
    if shape.rank is None:
        name = getattr(x, "name", "an input")
        raise Error(f"{name} has an unknown number of dimensions: give example inputs")
    return TensorType(tuple(shape.as_list()), element_type_of(tf.as_dtype(x.dtype)))


def to_array(tensor: tf.Tensor) -> np.ndarray:
    """Returns an eager tensor as a read-only array over the same memory."""
    return np.asarray(tensor.numpy() if isinstance(tensor, tf.Tensor) and not tensor.shape.rank else tensor)


def to_tensor(array: np.ndarray) -> tf.Tensor:
    """Returns an array as a tensor: over the same memory if TensorFlow's kernels can work on it, otherwise a copy."""
    is_narrow = array.dtype.kind == "f" and array.itemsize < 2  # which DLPack does not name
    borrowed = (
        array.dtype.kind in "iufc"
        and not is_narrow
        and array.size
        and array.flags.c_contiguous
        and array.flags.writeable
    )
    if borrowed and array.__array_interface__["data"][0] % ALIGNMENT == 0:
        return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    return tf.constant(array)


def empty(kind: TensorType) -> np.ndarray:
    """Returns an array of a type whose memory TensorFlow can borrow."""
    count = kind.size * kind.dtype.itemsize
    memory = np.empty(count + ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    return memory[start : start + count].view(kind.dtype).reshape(kind.static_shape)
