"""Argument values of random programs. They follow from a number and a type, so that a saved program needs no data. Also
the properties of arrays that the comparison needs: their magnitudes, and the grid of which all elements are
multiples."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from trivium.ir.attributes import Integer
from trivium.ir.func import Function
from trivium.ir.types import I64, TensorType, is_boolean, is_complex, is_float

SEED = "random.seed"
"""The attribute of a function's argument that determines its values."""


def values(seed: int, kind: TensorType) -> np.ndarray:
    """Returns the elements for `seed`: mostly small multiples of a power of two, whose sums are exact in any order;
    otherwise numbers that use all their bits or, rarely, infinities, NaN and the limits of the type."""
    rng = np.random.default_rng(seed)
    shape, style = kind.static_shape, rng.random()
    if is_boolean(kind.element_type):
        return rng.random(shape) < 0.5
    if is_complex(kind.element_type):
        parts = [_floats(rng, shape, min(style, 0.9)) for _ in range(2)]
        return (parts[0] + 1j * parts[1]).astype(kind.dtype)
    if is_float(kind.element_type):
        with np.errstate(over="ignore"):
            return _floats(rng, shape, style).astype(kind.dtype)
    info = ml_dtypes.iinfo(kind.dtype)
    low, high = max(int(info.min), -6), min(int(info.max), 9)
    if style > 0.9:
        low, high = int(info.min), int(info.max)
    return rng.integers(low, high, shape, np.uint64 if low >= 0 else np.int64, endpoint=True).astype(kind.dtype)


def _floats(rng: np.random.Generator, shape: tuple[int, ...], style: float) -> np.ndarray:
    if style < 0.65:
        return rng.integers(-6, 7, shape) * 2.0 ** -int(rng.integers(0, 3))
    if style < 0.97:
        return rng.uniform(-1, 1, shape)
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-42, 3e38, -3e38, 65504.0, 1e-8, 2.5]
    return rng.choice(np.array(special), shape)


def arguments_of(main: Function) -> list[np.ndarray]:
    """Returns the values of a function's arguments, from the attributes that name them."""
    found = []
    for index, kind in enumerate(main.function_type.inputs):
        seed: Any = main.argument_attributes(index).get(SEED, Integer(index, I64))
        found.append(values(seed.value, kind))
    return found


def wide(array: np.ndarray) -> np.ndarray:
    """Returns the elements in double precision."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def parts(array: np.ndarray) -> np.ndarray:
    """Returns the real numbers that the elements consist of, in double precision."""
    return wide(array).reshape(-1).view(np.float64)


def greatest(array: np.ndarray) -> float:
    """Returns the largest magnitude; infinite if an element is not finite."""
    if not array.size:
        return 0.0
    most = float(np.abs(parts(array)).max())
    return most if math.isfinite(most) else math.inf


def least(array: np.ndarray) -> float:
    """Returns the smallest magnitude."""
    return float(np.abs(wide(array)).min(initial=math.inf))


def grain(array: np.ndarray) -> float:
    """Returns the largest power of two of which all elements are multiples; 0 if an element is not finite."""
    numbers = parts(array)
    numbers = np.abs(numbers[numbers != 0])
    if not np.isfinite(numbers).all():
        return 0.0
    if not numbers.size:
        return math.inf
    mantissas, exponents = np.frexp(numbers)
    whole = (mantissas * 2.0**53).astype(np.int64)
    return float(np.min(np.ldexp((whole & -whole).astype(np.float64), exponents - 53)))


def precision(dtype: np.dtype) -> int:
    """Returns the number of bits of a float's significand."""
    return ml_dtypes.finfo(_real(dtype)).nmant + 1


def epsilon(dtype: np.dtype) -> float:
    """Returns the distance from 1 to the next number."""
    return float(ml_dtypes.finfo(_real(dtype)).eps)


def rounding_to_tf32(array: np.ndarray) -> float:
    """Returns how much the elements of an array of f32 change at most, relative to themselves, if they are rounded to
    10 bits of mantissa."""
    return 2.0**-11 if (array.view(np.uint32) & 0x1FFF).any() else 0.0


def is_inexact(dtype: np.dtype) -> bool:
    """Whether computing with numbers of the type rounds."""
    return dtype.kind not in "biu" and not dtype.name.startswith(("int", "uint"))


def _real(dtype: np.dtype) -> np.dtype:
    return {"c8": np.dtype(np.float32), "c16": np.dtype(np.float64)}.get(f"{dtype.kind}{dtype.itemsize}", dtype)
