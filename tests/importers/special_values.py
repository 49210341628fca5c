"""Numbers for which elementwise ops have special cases, and the comparison of their results: infinities, NaN and the
sign of zero exactly, other numbers up to rounding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import ml_dtypes
import numpy as np

import trivium

ALONE = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1,
    -1,
    2,
    -2,
    -3,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    1e-3,
    88,
    -88,
    1e4,
    -1e4,
    -0.3,
]
PAIRED = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 5.3, -5.3, 1e4, -1e4]
INTEGERS = [0, 1, -1, 2, -2, 3, -3, 7, -7, 100]
ROUNDING = {"float64": 1e-11, "float32": 3e-5, "float16": 3e-3, "bfloat16": 2e-2}
FLOATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


def numbers(dtype: object) -> np.ndarray:
    """Returns special values of an element type."""
    return _cast(_integers(dtype) or ALONE, dtype)


def pairs(dtype: object) -> tuple[np.ndarray, np.ndarray]:
    """Returns all pairs of special values. For integers, without zero on the right, and without the quotient that no
    integer type can hold."""
    values = _integers(dtype) or PAIRED
    listed = list(itertools.product(values, values))
    if _integers(dtype):
        least = np.iinfo(dtype).min  # type: ignore[arg-type]
        listed = [(x, y) for x, y in listed if y and not (x == least and y == -1)]
    left, right = zip(*listed, strict=True)
    return _cast(list(left), dtype), _cast(list(right), dtype)


def assert_same(got: object, expected: object) -> None:
    """Compares two arrays of one type."""
    ours, theirs = np.asarray(got), np.asarray(expected)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    tolerance = ROUNDING.get(theirs.dtype.name, 0)
    if theirs.dtype.kind not in "biu":
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
        zero = (ours == 0) & (theirs == 0)
        np.testing.assert_array_equal(np.signbit(ours[zero]), np.signbit(theirs[zero]), "the sign of zero")
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=1e-30)


def assert_runs(module: trivium.Module, arrays: Sequence[np.ndarray], expected: object) -> None:
    """Runs a module interpreted, and compiled if its type is f32: the compiler has its own tests for other types."""
    runs = [trivium.evaluate(module, *arrays)]
    if np.float32 in (arrays[0].dtype, np.asarray(expected).dtype):
        runs.append(trivium.compile(module)(*arrays))
    for results in runs:
        assert_same(results[0], expected)


def _integers(dtype: object) -> list[int]:
    kind = np.dtype(dtype)  # type: ignore[call-overload]
    if kind.kind not in "iu":
        return []
    limits = np.iinfo(kind)
    edges = [int(limits.max), int(limits.min), int(limits.min) + 1]
    return [value for value in (*INTEGERS, *edges) if limits.min <= value <= limits.max]


def _cast(values: list, dtype: object) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array(values).astype(dtype)  # type: ignore[call-overload]
