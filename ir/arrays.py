"""Reads the arrays that users pass to programs: anything that NumPy or DLPack can read, or an error that says what is
wrong with it. The interpreter and every backend share it, so that they accept the same things."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
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

Datum = np.ndarray | np.generic | tuple["Datum", ...] | None
"""A value of a program while it runs: an array, or a tuple of values. `None` is a token."""


def read_argument(value: object, kind: Type, name: str) -> Any:
    """Returns `value` as an array of the given type. Raises an `ExecutionError` that says what it has instead."""
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
        raise ExecutionError(f"{name} has type {kind}, which cannot be passed as an argument")
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
    """Converts anything array-like to a NumPy array, without a copy if its elements are on the host."""
    if isinstance(value, np.ma.MaskedArray):
        raise ExecutionError(f"{name} is a masked array, which is not supported; expected value.filled(...)")
    try:
        if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        return _as_bits(value) if type(value).__module__.partition(".")[0] == "torch" else np.asarray(value)
    # Arrays of other libraries may raise anything when they are read.
    except Exception as error:
        raise ExecutionError(f"{name} has {type(value).__name__}, which NumPy cannot read: {error}") from error


def _as_bits(value: Any) -> np.ndarray:
    """Reads a tensor of PyTorch, which does not give NumPy elements of a type that NumPy itself does not have."""
    name = str(value.dtype).removeprefix("torch.")
    if not hasattr(ml_dtypes, name) or value.requires_grad:  # for which PyTorch's error says what to do
        return np.asarray(value)
    bits = getattr(sys.modules["torch"], f"uint{8 * value.element_size()}")
    return np.asarray(value.view(bits)).view(getattr(ml_dtypes, name))


# Python's numbers have no width of their own: they take the argument's type if it can represent them.
_NUMBERS: dict[type, tuple[Callable[[Type], bool], ...]] = {
    bool: (is_boolean,),
    int: (is_integer, is_float, is_complex),
    float: (is_float, is_complex),
    complex: (is_complex,),
}


def _read_number(value: object, kind: TensorType, name: str) -> np.ndarray:
    if not any(holds(kind.element_type) for holds in _NUMBERS[type(value)]):
        return np.asarray(value)
    try:
        return np.array(value, kind.dtype)
    except (OverflowError, ValueError) as error:
        raise ExecutionError(f"{name} has {value}, which {kind.dtype} cannot hold: {error}") from error


def is_unchanging(array: np.ndarray) -> bool:
    """Whether nobody can write to the memory of an array any more."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    return not root.flags.writeable
