"""Fourier transforms, compared with the sum that defines them, and triangular matrices, checked by multiplication."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.ir.ops.records import Record
from trivium.ir.ops import Cholesky, Fft, FftType, TransposeMode, TriangularSolve

RANDOM = np.random.default_rng(0)


def complex_normal(*shape, dtype=np.complex64):
    return (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(dtype)


# Fourier transforms


def transform(array, lengths, sign):
    """The sum of all elements times powers of a root of unity, for one dimension after another."""
    result = array.astype(np.complex128)
    for axis in range(array.ndim - len(lengths), array.ndim):
        count = array.shape[axis]
        turns = np.exp(sign * 2j * np.pi * np.outer(range(count), range(count)) / max(count, 1))
        result = np.moveaxis(np.tensordot(turns, result, (1, axis)), 0, axis)
        result = result / count if sign > 0 and count else result
    return result


def whole(half, last):
    """Returns the transform of real numbers, computed from its first half: each number is the conjugate of its mirror
    image."""
    rest = half[..., 1 : last - half.shape[-1] + 1]
    return np.concatenate([half, rest[..., ::-1].conj()], -1)


def fft(kind, array, *lengths):
    def oracle(array):
        result = transform(array, lengths, 1 if kind is FftType.IFFT else -1)
        if kind is FftType.RFFT:
            last = lengths[-1] // 2 + 1 if lengths[-1] else 0
            return result[..., :last].astype(np.result_type(array, np.complex64))
        return result.astype(array.dtype)

    return Record(Fft, (array,), {"fft_type": kind, "fft_length": lengths}, oracle=oracle, ulps=256)


def irfft(array, length):
    """Returns the real numbers of whose transform `array` is the first half."""

    def oracle(half):
        return transform(whole(half, length), (length,), 1).real.astype(half.real.dtype)

    return Record(Fft, (array,), {"fft_type": FftType.IRFFT, "fft_length": (length,)}, oracle=oracle, ulps=256)


REAL = RANDOM.normal(size=(3, 4, 6)).astype(np.float32)
HALF = np.fft.rfft(REAL).astype(np.complex64)

FFTS = [
    fft(FftType.FFT, complex_normal(3, 8), 8),
    fft(FftType.FFT, complex_normal(2, 3, 5, dtype=np.complex128), 3, 5),
    fft(FftType.IFFT, complex_normal(3, 4, 5), 3, 4, 5),
    fft(FftType.IFFT, complex_normal(2, 7, dtype=np.complex128), 7),
    fft(FftType.RFFT, REAL, 6),
    fft(FftType.RFFT, REAL.astype(np.float64)[..., :5], 4, 5),
    fft(FftType.RFFT, np.zeros((3, 0), np.float32), 0),
    irfft(HALF, 6),
    irfft(np.fft.rfft(REAL[..., :5]), 5),
    fft(FftType.FFT, complex_normal(0, 4), 4),
]

# Triangular matrices


def triangular(dtype, *shape, lower=True):
    """Returns matrices with a diagonal far from zero, and with values in the triangle that is not read."""
    array = RANDOM.normal(size=shape) + 4 * np.eye(shape[-1])
    if np.dtype(dtype).kind == "c":
        array = array + 1j * np.tril(RANDOM.normal(size=shape), -1)
    return array.astype(dtype)


def cholesky(dtype, *shape, lower):
    """Returns the factor of a product; the elements of the other triangle are arbitrary."""
    factor = np.tril(triangular(dtype, *shape)).astype(np.result_type(dtype, np.float32))
    factor[..., range(shape[-1]), range(shape[-1])] = np.abs(factor[..., range(shape[-1]), range(shape[-1])])
    product = factor @ factor.conj().swapaxes(-1, -2)
    noise = np.triu(np.ones(shape[-2:]), 1).astype(bool)
    product[..., noise if lower else noise.T] = 99
    factor = factor if lower else factor.conj().swapaxes(-1, -2)
    return Record(Cholesky, (product.astype(dtype),), {"lower": lower}, oracle=lambda _: factor.astype(dtype), ulps=512)


def solve(dtype, a_shape, b_shape, **options):
    options = {"left_side": True, "lower": True, "unit_diagonal": False, "mode": "NO_TRANSPOSE"} | options
    mode = options.pop("mode")

    def oracle(a, b):
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        matrix = (np.tril if options["lower"] else np.triu)(a.astype(wide))
        if options["unit_diagonal"]:
            matrix = matrix - matrix * np.eye(matrix.shape[-1]) + np.eye(matrix.shape[-1])
        if mode != "NO_TRANSPOSE":
            matrix = matrix.swapaxes(-1, -2)
        matrix = matrix.conj() if mode == "ADJOINT" else matrix
        inverse = np.linalg.inv(matrix)
        return (inverse @ b if options["left_side"] else b @ inverse).astype(b.dtype)

    operands = (triangular(dtype, *a_shape), triangular(dtype, *b_shape[:-2], 9, 9)[..., : b_shape[-2], : b_shape[-1]])
    attributes = {**options, "transpose_a": TransposeMode(mode)}
    return Record(TriangularSolve, operands, attributes, oracle=oracle, ulps=256)


NOT_POSITIVE = Record(
    Cholesky,
    (np.float32([[-1, 0], [0, 1]]),),
    {"lower": True},
    oracle=lambda _: np.full((2, 2), np.nan, np.float32),
)

RECORDS = [
    *FFTS,
    cholesky(np.float32, 4, 4, lower=True),
    cholesky(np.float64, 2, 3, 3, lower=False),
    cholesky(np.complex64, 3, 3, lower=True),
    cholesky(np.complex128, 3, 3, lower=False),
    NOT_POSITIVE,
    solve(np.float32, (4, 4), (4, 2)),
    solve(np.float64, (2, 3, 3), (2, 3, 4), lower=False),
    solve(np.float32, (3, 3), (2, 3), left_side=False, unit_diagonal=True),
    solve(ml_dtypes.bfloat16, (3, 3), (3, 1), mode="TRANSPOSE"),
    solve(np.complex64, (3, 3), (3, 2), mode="ADJOINT"),
    solve(np.complex128, (3, 3), (2, 3), left_side=False, lower=False, mode="ADJOINT"),
]
