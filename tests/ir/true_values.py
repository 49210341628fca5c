"""The correct results of StableHLO's recorded programs, computed from their inputs with fifty digits (Fourier
transforms: in NumPy's widest type). This file has only those programs whose own expectation is off by more than their
check allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

from tests.ir import checks

mpmath.mp.dps = 50


def elementwise(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """Returns a function of arrays that applies a function of mpmath to each element."""
    return lambda *arrays: np.frompyfunc(function, len(arrays), 1)(*map(exact, arrays))


def cumulative_product(array: np.ndarray) -> np.ndarray:
    return np.multiply.accumulate(exact(array), 0)


def real_transform(array: np.ndarray) -> np.ndarray:
    """Returns the first half of the Fourier transform along the last dimension."""
    length = array.shape[-1]
    return array.astype(np.clongdouble) @ _roots(length, -1)[:, : length // 2 + 1]


def inverse_real_transform(array: np.ndarray) -> np.ndarray:
    """Returns the inverse of `real_transform`, in three dimensions: the numbers of the other half are the conjugates of
    the first."""
    _, rows, columns, half = array.shape
    length = 2 * (half - 1)
    spectrum = np.einsum("brcn,rs->bscn", array.astype(np.clongdouble), _roots(rows, 1))
    spectrum = np.einsum("bscn,ct->bstn", spectrum, _roots(columns, 1))
    waves = spectrum[..., 1:-1] @ _roots(length, 1)[1 : half - 1]
    ends = spectrum[..., :1] + spectrum[..., -1:] * (-1) ** np.arange(length)
    return (ends + 2 * waves).real / (rows * columns * length)


def _roots(count: int, sign: int) -> np.ndarray:
    """Returns the matrix of a Fourier transform, in NumPy's widest type."""
    turns = np.outer(np.arange(count), np.arange(count)) % count
    return np.exp(sign * 2j * np.arccos(np.longdouble(-1)) * turns / count)


def exact(array: np.ndarray) -> np.ndarray:
    """Returns the same numbers as numbers of mpmath."""
    number = mpmath.mpmathify
    return np.frompyfunc(lambda value: number(complex(value) if np.iscomplexobj(array) else float(value)), 1, 1)(array)


def error(array: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Returns the distance of each number from the true one. A complex number is two numbers, as in `checks.parts`."""
    numbers = exact(array) if true.dtype == object else array.astype(np.result_type(true, np.longdouble))
    return np.abs(_parts(numbers - true)).astype(np.float64)


def _parts(array: np.ndarray) -> np.ndarray:
    if array.dtype == object and isinstance(array.flat[0], mpmath.mpc):
        return np.stack(
            [
                np.frompyfunc(lambda value: value.real, 1, 1)(array),
                np.frompyfunc(lambda value: value.imag, 1, 1)(array),
            ],
            -1,
        )
    return checks.parts(array)


TRUE_VALUES: dict[str, Callable[..., np.ndarray]] = {
    "cosh_float32_20_20_chlo": elementwise(mpmath.cosh),
    "cumprod_complex64_8_9": cumulative_product,
    "fft_complex64_14_15_16_17": inverse_real_transform,
    "fft_float32_14_15_16_17": real_transform,
    "pow_complex64_20_30_complex64_20_30": elementwise(mpmath.power),
    "sin_complex64_20_20": elementwise(mpmath.sin),
    "sinh_float32_20_20_chlo": elementwise(mpmath.sinh),
}
"""The functions that compute the true values, by the program's name."""
