"""Fourier transforms of rows, in scratch and in one launch for each pass, compared with NumPy's in higher precision."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of, run
from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret
from trivium.compiler.kernel import KernelBuilder
from trivium.compiler.kernel.interpreter import run as run_kernel
from trivium.compiler.lower import lower
from trivium.compiler.lowering.fourier import Pass, passes, radices, small_transform
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.types import C64, C128, F32, F64, Type, tensor

SCARCE = replace(TARGET, fusion=replace(TARGET.fusion, scratch_bytes=64))
NUMPY = {ops.FftType.FFT: np.fft.fft, ops.FftType.IFFT: np.fft.ifft}


def random(*shape: int, kind: Type = C64) -> np.ndarray:
    parts = np.random.default_rng(0).standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(kind.dtype)


def expect_close(found: np.ndarray, wanted: np.ndarray, length: int | None = None) -> None:
    """Expects at most the error that grows with the logarithm of the length; transforms of odd numbers of elements
    round more often. NumPy's own errors are as large."""
    length = length or found.shape[-1]
    odd = 1 if length & (length - 1) == 0 else 1.5
    error = np.linalg.norm((found - wanted).ravel()) / np.linalg.norm(wanted.ravel())
    assert error < odd * (0.25 + 0.1 * math.log2(length)) * np.finfo(found.dtype).eps


@pytest.mark.parametrize("target", [TARGET, SCARCE], ids=["scratch", "passes"])
@pytest.mark.parametrize("way", list(NUMPY))
@pytest.mark.parametrize("kind", [C64, C128], ids=str)
@pytest.mark.parametrize("shape", [(3, 16), (2, 2, 32), (64,), (5, 512), (3, 27), (2, 2, 40), (126,), (2, 1000)])
def test_rows(shape: tuple[int, ...], kind: Type, way: ops.FftType, target: Target) -> None:
    module = program_of([tensor(*shape, of=kind)], lambda b, x: b.add(ops.Fft(x, way, shape[-1:])))
    x = random(*shape, kind=kind)
    (found,) = run(lower(module, target), [x])
    expect_close(found, NUMPY[way](x.astype(np.clongdouble)))


@pytest.mark.parametrize("target", [TARGET, SCARCE], ids=["scratch", "passes"])
@pytest.mark.parametrize("kind", [F32, F64], ids=str)
@pytest.mark.parametrize("shape", [(3, 32), (2, 2, 64), (128,), (5, 1024), (3, 42), (2, 2, 100), (400,), (2, 1470)])
def test_rows_of_real_numbers(shape: tuple[int, ...], kind: Type, target: Target) -> None:
    """The inverse takes no notice of the imaginary parts of the first and of the last number."""
    *outer, length = shape
    module = program_of([tensor(*shape, of=kind)], lambda b, x: b.add(ops.Fft(x, ops.FftType.RFFT, (length,))))
    x = random(*shape, kind=C128).real.astype(kind.dtype)
    (found,) = run(lower(module, target), [x])
    expect_close(found, np.fft.rfft(x.astype(np.longdouble)), length)
    waves, half = C64 if kind is F32 else C128, length // 2 + 1
    body = lambda b, x: b.add(ops.Fft(x, ops.FftType.IRFFT, (length,)))  # noqa: E731
    z = random(*outer, half, kind=waves)
    (found,) = run(lower(program_of([tensor(*outer, half, of=waves)], body), target), [z])
    expect_close(found, np.fft.irfft(z.astype(np.clongdouble)))


@pytest.mark.parametrize("target", [TARGET, SCARCE], ids=["scratch", "passes"])
def test_the_interpreter_of_kernels(target: Target) -> None:
    module = program_of([tensor(2, 32, of=C64)], lambda b, x: b.add(ops.Fft(x, ops.FftType.FFT, (32,))))
    x = random(2, 32)
    (found,) = interpret(lower(module, target), x)
    expect_close(found, np.fft.fft(x.astype(np.clongdouble)))


def test_what_is_transformed_is_computed_in_the_first_pass() -> None:
    def body(b, x, y):
        return b.add(ops.Fft(b.add(ops.Complex(x, b.add(ops.Negate(y)))), ops.FftType.FFT, (64,)))

    program = lower(program_of([tensor(4, 64), tensor(4, 64)], body), TARGET)
    x, y = random(4, 64).real.copy(), random(4, 64).imag.copy()
    assert len(program.kernels()) == 1
    expect_close(run(program, [x, y])[0], np.fft.fft((x - 1j * y).astype(np.clongdouble)))


@pytest.mark.parametrize("bits", range(4, 21))
def test_radices(bits: int) -> None:
    found = radices(1 << bits)
    assert math.prod(found) == 1 << bits
    assert set(found) <= {8, 4}
    assert found.count(4) <= 2


def test_passes() -> None:
    assert list(passes(64)) == [Pass(8, 8, 1), Pass(8, 1, 8)]
    assert list(passes(16)) == [Pass(4, 4, 1), Pass(4, 1, 4)]


@pytest.mark.parametrize(
    ("length", "found"), [(400, [4, 4, 5, 5]), (210, [2, 3, 5, 7]), (27, [3, 3, 3]), (1000, [8, 5, 5, 5])]
)
def test_radices_of_other_lengths(length: int, found: list[int]) -> None:
    assert radices(length) == found


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8])
def test_small_transforms(size: int) -> None:
    b = KernelBuilder("small")
    x, y = b.input("x", "f64", (size, 2)), b.output("y", "f64", (size, 2))
    taken = [(b.load(x, n, 0), b.load(x, n, 1)) for n in range(size)]
    for n, (real, imag) in enumerate(small_transform(b, taken)):
        b.store(y, real, n, 0)
        b.store(y, imag, n, 1)
    given, found = random(size, kind=C128), np.empty(size, np.complex128)
    run_kernel(b.build(), [given.view(np.float64), found.view(np.float64)])
    np.testing.assert_allclose(found, np.fft.fft(given), atol=1e-14)
