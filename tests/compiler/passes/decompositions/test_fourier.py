"""Fourier transforms of many lengths, compared with NumPy's in f64 and in higher precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

import trivium
from tests.compiler.passes.decompositions.running import decomposed, program, three_ways
from trivium.compiler.fourier import is_transform_of_rows
from trivium.compiler.passes.decompositions.fourier import LARGEST, convolution_length, radices
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import Fft, FftType

POWERS = [16, 32, 64, 128, 256, 1024, 4096]
"""Lengths whose transforms are kernels of their own, except that of 16 real numbers."""
LENGTHS = [*range(1, 201), 243, 256, 343, 509, 625, 1009, 1024, 2 * 1009, 4096]
COMPILED = [1, 3, 8, 61, 67, 134, 1000, *POWERS]
LONG = [100003, 65536, 1 << 19, 2 * 3 * 5 * 7 * 11 * 13]


def random(*shape: int, dtype: str = "complex128") -> np.ndarray:
    parts = np.random.default_rng(math.prod(shape)).standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1] if dtype.startswith("complex") else parts[0]).astype(dtype)


def error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Returns the error in units in the last place of the largest numbers."""
    norm = np.linalg.norm(wanted.ravel())
    eps = np.finfo(found.dtype).eps
    return float(np.linalg.norm((found - wanted).ravel()) / norm / eps)


def cases(length: int, dtype: str = "complex128", *batch: int):
    """Yields every kind of transform, with its operand and its result in higher precision."""
    real = "float64" if dtype == "complex128" else "float32"
    wide = np.clongdouble
    x, r = random(*batch, length, dtype=dtype), random(*batch, length, dtype=real)
    half = np.fft.rfft(r).astype(dtype)
    yield FftType.FFT, x, np.fft.fft(x.astype(wide))
    yield FftType.IFFT, x, np.fft.ifft(x.astype(wide))
    yield FftType.RFFT, r, np.fft.rfft(r.astype(np.longdouble))
    yield FftType.IRFFT, half, np.fft.irfft(half.astype(wide), length)


@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(length):
    """Tests the decomposition in f64; the error grows with the logarithm of the length."""
    for kind, x, wanted in cases(length):
        module = program(Fft, x, fft_type=kind, fft_length=(length,))
        op = next(iter(module.main.body.block))
        assert isinstance(op, Fft)
        if is_transform_of_rows(op):
            continue
        (found,) = evaluate(decomposed(module), x)
        assert found.shape == wanted.shape
        assert error(found, wanted) < 1 + 0.5 * math.log2(length), kind


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("length", COMPILED)
def test_compiled_lengths(length, dtype):
    for kind, x, wanted in cases(length, dtype, 3):
        module = program(Fft, x, fft_type=kind, fft_length=(length,))
        assert error(trivium.compile(module)(x)[0], wanted) < 1 + 0.5 * math.log2(length), kind


@pytest.mark.parametrize("length", LONG)
def test_long_ones(length):
    kind, x, wanted = next(cases(length, "complex64"))
    module = program(Fft, x, fft_type=kind, fft_length=(length,))
    assert error(trivium.compile(module)(x)[0], wanted) < 1 + 0.5 * math.log2(length)


@pytest.mark.parametrize("kind", list(FftType))
@pytest.mark.parametrize("lengths", [(6,), (4, 6), (2, 4, 6), (5, 4, 7), (16, 32), (16, 11, 32), (20, 16, 48)])
def test_several_dimensions(kind, lengths):
    shape = [3, *lengths]
    if kind is FftType.IRFFT:
        shape[-1] = lengths[-1] // 2 + 1
    x = random(*shape, dtype="float64" if kind is FftType.RFFT else "complex128")
    wanted, expanded, compiled = three_ways(program(Fft, x, fft_type=kind, fft_length=lengths), x)
    np.testing.assert_allclose(expanded, wanted, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(compiled, wanted, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("shape", "lengths"), [((0, 4), (4,)), ((3, 0), (0,)), ((2, 1), (1,)), ((1, 1), (1, 1))])
def test_empty_and_single(shape, lengths):
    for kind in (FftType.FFT, FftType.IFFT):
        x = random(*shape)
        wanted, expanded, compiled = three_ways(program(Fft, x, fft_type=kind, fft_length=lengths), x)
        np.testing.assert_array_equal(expanded, wanted)
        np.testing.assert_array_equal(compiled, wanted)


def test_the_work_is_n_log_n():
    """The operations on each number are proportional to the logarithm of the length, for any length."""
    for length in (1000, 4096, 100003, 99991 * 2, 10**6):
        factors = radices(length) or radices(convolution_length(2 * length - 1))
        assert factors is not None
        assert max(factors) <= LARGEST
        assert len(factors) <= math.log2(length) / 2
        assert math.prod(factors) in (length, convolution_length(2 * length - 1))


def test_only_large_primes_need_a_convolution():
    assert [n for n in range(1, 150) if radices(n) is None] == [67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113,
        127, 131, 134, 137, 139, 142, 146, 149]  # fmt: skip


def test_convolution_lengths():
    for least in (1, 2, 133, 2017, 200005):
        found = convolution_length(least)
        assert least <= found < 1.2 * least + 1
        for prime in (2, 3, 5):
            while found % prime == 0:
                found //= prime
        assert found == 1
