"""Quantized element types, as the tests of ops use them."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.ir.types import F32, I8, FloatType, IntegerType, PerAxisType, PerTensorType, storage_range


def per_tensor(
    scale: float = 0.5, zero_point: int = 0, storage: IntegerType = I8, number: FloatType = F32
) -> PerTensorType:
    """Returns a type whose elements all have the same scale."""
    return PerTensorType(storage, number, *storage_range(storage), scale, zero_point)


def per_axis(
    dimension: int = 0,
    scales: Sequence[float] = (0.5, 0.25),
    zero_points: Sequence[int] | None = None,
    storage: IntegerType = I8,
    number: FloatType = F32,
) -> PerAxisType:
    """Returns a type that has a scale for each slice along the dimension."""
    zero_points = tuple(zero_points) if zero_points is not None else (0,) * len(scales)
    return PerAxisType(storage, number, *storage_range(storage), dimension, tuple(scales), zero_points)
