"""The constraints of Fourier transforms and triangular matrices, each broken once."""

from __future__ import annotations

from typing import Any

from tests.ir.ops.constraints import breaks, value
from trivium.ir.core import Value
from trivium.ir.ops import Cholesky, Fft, FftType, TransposeMode, TriangularSolve
from trivium.ir.types import C64, C128, F64, I32, TOKEN, tensor


def fft(operand: Value | None = None, kind: FftType = FftType.FFT, *lengths: int, **results: Any) -> None:
    Fft(operand or value(3, 4, of=C64), kind, lengths or (4,), **results)


def test_fft_i1() -> None:
    with breaks("I1"):
        fft(value(3, 4, of=I32))


def test_fft_c1() -> None:
    with breaks("C1"):
        fft(None, FftType.FFT, 2, 3, 4)


def test_fft_c2() -> None:
    with breaks("C2"):
        fft(value(3, 4))
    with breaks("C2"):
        fft(None, FftType.RFFT)
    with breaks("C2"):
        fft(result=tensor(3, 4, of=C128))


def test_fft_c3() -> None:
    with breaks("C3"):
        Fft(value(3, 4, of=C64), FftType.FFT, ())
    with breaks("C3"):
        fft(value(1, 2, 3, 4, of=C64), FftType.FFT, 1, 2, 3, 4)


def test_fft_c4() -> None:
    with breaks("C4"):
        fft(value(3, 4), FftType.RFFT, 5)


def test_fft_c5() -> None:
    with breaks("C5"):
        fft(result=tensor(3, 5, of=C64))
    with breaks("C5"):
        fft(None, FftType.IRFFT, 5)


def test_cholesky_i1() -> None:
    with breaks("I1"):
        Cholesky(value(3, 3, of=I32))


def test_cholesky_c1() -> None:
    with breaks("C1"):
        Cholesky(value(3, 3), result=tensor(4, 4))


def test_cholesky_c2() -> None:
    with breaks("C2"):
        Cholesky(value(3))


def test_cholesky_c3() -> None:
    with breaks("C3"):
        Cholesky(value(3, 4))


def solve(
    a: Value | None = None,
    b: Value | None = None,
    left_side: bool = True,
    transpose_a: TransposeMode = TransposeMode.NO_TRANSPOSE,
    **results: Any,
) -> None:
    TriangularSolve(a or value(3, 3), b or value(3, 2), left_side, True, False, transpose_a, **results)


def test_triangular_solve_i1() -> None:
    with breaks("I1"):
        solve(value(3, 3, of=I32))


def test_triangular_solve_i2() -> None:
    with breaks("I2"):
        solve(b=Value(TOKEN))


def test_triangular_solve_i6() -> None:
    with breaks("I6"):
        solve(transpose_a=TransposeMode.TRANSPOSE_INVALID)


def test_triangular_solve_c1() -> None:
    with breaks("C1"):
        solve(b=value(3, 2, of=F64))


def test_triangular_solve_c2() -> None:
    with breaks("C2"):
        solve(value(3), value(3))
    with breaks("C2"):
        solve(b=value(3))


def test_triangular_solve_c3() -> None:
    with breaks("C3"):
        solve(value(3, 4))
    with breaks("C3"):
        solve(left_side=False)
    with breaks("C3"):
        solve(value(2, 3, 3), value(4, 3, 2))


def test_triangular_solve_c4() -> None:
    with breaks("C4"):
        solve(result=tensor(3, 3))
