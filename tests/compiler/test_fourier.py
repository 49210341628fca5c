"""Roots of unity, and the transforms that are kernels of their own."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.decompositions.running import program
from trivium.compiler.fourier import is_transform_of_rows, roots
from trivium.ir.ops import Fft, FftType


def test_roots_are_exact_at_quarter_turns():
    np.testing.assert_array_equal(roots(np.arange(4), 4, inverse=False), [1, -1j, -1, 1j])
    np.testing.assert_array_equal(roots(np.arange(4) + 8, 4, inverse=True), [1, 1j, -1, -1j])


@pytest.mark.parametrize(
    ("shape", "lengths", "kind", "own"),
    [
        ((3, 64), (64,), FftType.FFT, True),
        ((16,), (16,), FftType.IFFT, True),
        ((3, 8), (8,), FftType.FFT, False),
        ((3, 48), (48,), FftType.FFT, True),
        ((3, 105), (105,), FftType.IFFT, True),
        ((3, 44), (44,), FftType.FFT, False),  # 11 is a large prime factor
        ((0, 64), (64,), FftType.FFT, False),
        ((3, 0), (0,), FftType.FFT, False),
        ((64, 64), (64, 64), FftType.FFT, False),
        ((3, 33), (64,), FftType.IRFFT, True),
        ((3, 32), (32,), FftType.RFFT, True),
        ((3, 9), (16,), FftType.IRFFT, False),
        ((3, 16), (16,), FftType.RFFT, False),
        ((3, 25), (48,), FftType.IRFFT, True),
        ((3, 45), (45,), FftType.RFFT, False),  # an odd number of real numbers has no pairs
    ],
)
def test_rows_of_small_prime_factors_are_separate_kernels(
    shape: tuple[int, ...], lengths: tuple[int, ...], kind: FftType, own: bool
) -> None:
    module = program(
        Fft, np.zeros(shape, np.float32 if kind is FftType.RFFT else np.complex64), fft_type=kind, fft_length=lengths
    )
    op = next(iter(module.main.body.block))
    assert isinstance(op, Fft)
    assert is_transform_of_rows(op) == own
