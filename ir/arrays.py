"""What users give as arrays, and what programs take: reads anything that NumPy or DLPack can, or says what is wrong
with it. The interpreter and every backend share it, so that they take the same things."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trivium.ir.errors import ExecutionError
from trivium.ir.types import (
    TensorType,
    TokenType,
    TupleType,
    Type,
    is_boolean,
    is_complex,
    is_float,
    is_integer,
    shapes_compatible,
)


def read_argument(value: Any, kind: Type, name: str) -> Any:
    """The array that `value` holds, if it has the type; else an `ExecutionError` that tells what it has."""
    if isinstance(kind, TupleType):
        if not isinstance(value, Sequence) or len(value) != len(kind.types):
            raise ExecutionError(f"{name} has {type(value).__name__}, expected a tuple of {len(kind.types)} values")
        parts = zip(value, kind.types, strict=True)
        return tuple(
            read_argument(part, inner, f"{name}, element {index}") for index, (part, inner) in enumerate(parts)
        )
    if isinstance(kind, TokenType):
        return None
    if not isinstance(kind, TensorType):
        raise ExecutionError(f"{name} has type {kind}, which cannot be given")
    array = _read_number(value, kind, name) if type(value) in _NUMBERS else as_array(value, name)
    if array.dtype != kind.dtype:
        raise ExecutionError(f"{name} has dtype {array.dtype}, expected {kind.dtype} ({kind})")
    if not shapes_compatible(array.shape, kind.shape) or _exceeds_bounds(array, kind):
        raise ExecutionError(f"{name} has shape {array.shape}, expected {kind.shape} ({kind})")
    return array


def _exceeds_bounds(array: np.ndarray, kind: TensorType) -> bool:
    if kind.encoding is None:
        return False
    return any(bound is not None and extent > bound for extent, bound in zip(array.shape, kind.bounds, strict=True))


def as_array(value: Any, name: str = "the argument") -> np.ndarray:
    """Anything array-like as a NumPy array, without a copy where it has its elements on the host."""
    if isinstance(value, np.ma.MaskedArray):
        raise ExecutionError(f"{name} is a masked array, which programs do not honour; expected value.filled(...)")
    try:
        if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        return np.asarray(value)
    # Whatever another library's array raises when it is read.
    except Exception as error:
        raise ExecutionError(f"{name} has {type(value).__name__}, which NumPy cannot read: {error}") from error


# Python's numbers have no width of their own: they take the argument's, where it can hold them.
_NUMBERS: dict[type, tuple[Callable[[Type], bool], ...]] = {
    bool: (is_boolean,),
    int: (is_integer, is_float, is_complex),
    float: (is_float, is_complex),
    complex: (is_complex,),
}


def _read_number(value: Any, kind: TensorType, name: str) -> np.ndarray:
    if not any(holds(kind.element_type) for holds in _NUMBERS[type(value)]):
        return np.asarray(value)
    try:
        return np.array(value, kind.dtype)
    except (OverflowError, ValueError) as error:
        raise ExecutionError(f"{name} has {value}, which {kind.dtype} cannot hold: {error}") from error
