"""Facts of Fourier transforms: which of them are separate kernels, and roots of unity."""

from __future__ import annotations

from typing import Any

import numpy as np

from trivium.ir.ops import Fft, FftType

ComplexArray = np.ndarray[Any, np.dtype[np.clongdouble]]

TURN = 2 * np.longdouble("3.14159265358979323846264338327950288")

SHORTEST = 16
"""Shorter rows are one product of matrices."""

ODD = 3, 5, 7
"""The odd numbers of elements that are transformed at once, beside powers of two."""


def is_transform_of_rows(op: Fft) -> bool:
    """Whether the op has kernels of its own: if its length has small prime factors."""
    (length, *others), size = reversed(op.fft_length), op.result.type.size
    # Real numbers are transformed in pairs.
    pairs = 1 if op.fft_type in (FftType.FFT, FftType.IFFT) else 2
    if others or not size or length < SHORTEST * pairs or length % pairs:
        return False
    _, rest = odd_radices(length)
    return rest & (rest - 1) == 0


def odd_radices(length: int) -> tuple[list[int], int]:
    """Returns the prime factors of a length that are in `ODD`, and the number that remains."""
    found = []
    for radix in ODD:
        while length % radix == 0:
            length //= radix
            found.append(radix)
    return found, length


def roots(exponents: np.ndarray, order: int, inverse: bool) -> ComplexArray:
    """Returns exp(-2 pi i k / order) for integers k, or the conjugates; exact if a part is 0 or 1."""
    angles = (exponents % order).astype(np.longdouble) * (TURN / order)
    parts = np.cos(angles), np.sin(angles) * (1 if inverse else -1)
    real_part, imaginary = (np.where(np.abs(each) < 2.0**-55, 0, each) for each in parts)
    return (real_part + 1j * imaginary).astype(np.clongdouble)
