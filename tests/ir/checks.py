"""The `check` ops of StableHLO's own test programs, as custom calls (`@check.expect_close`): each demands that its two
operands agree. One that does not hold is an `ExecutionError` with the text and the place of the call."""

from __future__ import annotations

from typing import Any

import numpy as np

from trivium.ir.custom_calls import register_custom_call
from trivium.ir.errors import ExecutionError
from trivium.ir.ops.numerics import widen

ALMOST = 1e-4
"""The absolute difference that `almost_eq` allows."""
MAX_ULPS = 3
"""The units of the last place that `close` allows."""


def expect_eq(value: np.ndarray, expected: np.ndarray) -> None:
    """Demands equal elements; NaN equals NaN."""
    one, other = _parts(value), _parts(expected)
    _expect(_equal(one, other), one, other, "equal elements")


def expect_almost_eq(value: np.ndarray, expected: np.ndarray) -> None:
    """Demands elements that are equal, or finite and nearly so."""
    one, other = _parts(value), _parts(expected)
    with np.errstate(all="ignore"):
        near = np.abs(widen(one) - widen(other)) <= ALMOST
    _expect(_equal(one, other) | near, one, other, f"{ALMOST} apart at most")


def expect_close(value: np.ndarray, expected: np.ndarray) -> None:
    """Demands elements a few units of the last place apart at most."""
    one, other = _parts(value), _parts(expected)
    near = np.abs(_place(one) - _place(other)) <= MAX_ULPS
    finite = np.isfinite(widen(one)) & np.isfinite(widen(other))
    _expect(_equal(one, other) | (near & finite), one, other, f"{MAX_ULPS} ulps apart at most")


def _equal(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    one, other = widen(one), widen(other)
    return (one == other) | ((one != one) & (other != other))


def _parts(array: np.ndarray) -> np.ndarray:
    """Real numbers; a complex one is two of them, side by side in a dimension of their own."""
    array = np.asarray(array)
    return np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array


def _place(array: np.ndarray) -> np.ndarray:
    """The place of each float among all of its type in order; both zeros have place 0. Differences of finite ones may
    wrap around, but never to a few units."""
    bits = np.ascontiguousarray(array).view(f"i{array.dtype.itemsize}")
    least = np.int64(np.iinfo(bits.dtype).min)
    return np.where(bits < 0, least - bits.astype(np.int64), bits.astype(np.int64))


def _expect(holds: np.ndarray, value: np.ndarray, expected: np.ndarray, wanted: str) -> None:
    if np.all(holds):
        return
    index = tuple(map(int, np.argwhere(~holds)[0]))
    wrong = f"{np.size(holds) - np.count_nonzero(holds)} of {np.size(holds)} numbers differ"
    raise ExecutionError(f"{wrong}, the first at {index}: has {value[index]}, expected {expected[index]}, {wanted}")


def register() -> None:
    """Makes the checks known as custom calls."""
    for check in (expect_eq, expect_almost_eq, expect_close):

        def evaluate(op: Any, value: np.ndarray, expected: np.ndarray, check: Any = check) -> tuple[()]:
            check(value, expected)
            return ()

        register_custom_call(f"check.{check.__name__}", evaluate=evaluate, effects=True, replace=True)
