"""The elements of a tensor as bytes in an artifact: raw, with booleans packed, and a single element for a splat."""

from __future__ import annotations

import numpy as np

from trivium.ir.attributes import DenseElements
from trivium.ir.bits import view
from trivium.ir.types import I1, QuantizedType, TensorType


def elements_of(data: memoryview | bytes, kind: TensorType) -> DenseElements:
    """Returns the elements in `data`: a view of it, unless booleans must be unpacked, or the unused bits of elements
    smaller than a byte must be cleared. Raises `ValueError`."""
    shape, size = kind.static_shape, kind.size
    if isinstance(kind.element_type, QuantizedType):
        raise ValueError(f"has elements of type {kind.element_type}, expected numbers")
    if kind.element_type is I1:
        flat = _booleans(data, size)
    elif len(data) % kind.dtype.itemsize:
        raise ValueError(f"{len(data)} bytes are not a whole number of {kind.element_type}")
    else:
        flat = view(data, kind)
    if flat.size == size:
        return DenseElements(flat.reshape(shape), kind)
    if flat.size != 1:
        raise ValueError(f"has {flat.size} elements, {kind} has {size}")
    return DenseElements(np.broadcast_to(flat.reshape(()), shape), kind)


def _booleans(data: memoryview | bytes, size: int) -> np.ndarray:
    """Reads eight booleans per byte. A single byte of ones means that all are true. Old files have a byte for each."""
    if len(data) == 1 and data[0] in (0, 0xFF):
        return np.array([data[0] == 0xFF])
    if len(data) == -(-size // 8) != size:
        return np.unpackbits(np.frombuffer(data, np.uint8), count=size, bitorder="little").view(np.bool_)
    return np.frombuffer(data, np.uint8) != 0


def elements_bytes(elements: DenseElements) -> bytes | memoryview:
    """The inverse of `elements_of`: equal elements become the same bytes, no matter how they are stored."""
    array = elements.array
    if elements.filler is not None or (array.size > 1 and elements.is_uniform):
        array = array[(0,) * array.ndim].reshape(1) if elements.filler is None else elements.filler
        if elements.type.element_type is I1:
            return b"\xff" if array[0] else b"\0"
    if elements.type.element_type is I1:
        return np.packbits(array, bitorder="little").tobytes()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
