"""Linear algebra on the innermost dimensions: Fourier transforms, the Cholesky factor, and triangular systems. All are
evaluated in 64 bits and rounded once."""

from __future__ import annotations

import numpy as np

from trivium.ir.attributes import Enumeration, enumeration
from trivium.ir.codecs import Ints
from trivium.ir.declare import EXPRESSED, PURE, Op, Operand, Result
from trivium.ir.errors import fail
from trivium.ir.ops.common import (
    Shape,
    expect_compatible_baseline,
    expect_element,
    expect_same_baseline,
    expect_same_element,
    expect_shape,
    expect_tensor,
    shaped,
)
from trivium.ir.ops.numerics import rounded
from trivium.ir.types import (
    ComplexType,
    FloatType,
    TensorType,
    dimensions_compatible,
    is_complex,
    is_float,
    is_per_tensor,
    shapes_compatible,
)

__all__ = ["Cholesky", "Fft", "FftType", "TransposeMode", "TriangularSolve"]

# Fourier transforms


@enumeration("stablehlo.fft_type")
class FftType(Enumeration):
    """Forward or inverse (`I`), of complex numbers or of real ones (`R`)."""

    FFT = "FFT"
    IFFT = "IFFT"
    RFFT = "RFFT"
    IRFFT = "IRFFT"


class Fft(Op, name="stablehlo.fft", traits={PURE}):
    """The discrete Fourier transform over the last dimensions, whose extents are `fft_length`. The transform of a real
    tensor is symmetric, so only half of its last dimension is kept."""

    operand: Operand
    fft_type: FftType
    fft_length: Ints
    result: Result

    def infer(operand, fft_type, fft_length):
        _check_lengths(operand, fft_length)
        element = _transformed_element(operand, fft_type)
        return shaped(_transformed_shape(operand.shape, fft_type, fft_length), element, operand.bounds)

    def check(operand, fft_type, fft_length, result):
        _check_lengths(operand, fft_length)
        element = _transformed_element(operand, fft_type)
        expect_same_element("C2", expected=operand.with_element(element), result=result)
        real = {FftType.RFFT: operand, FftType.IRFFT: result}.get(fft_type)
        if real is not None and not shapes_compatible(real.shape[-len(fft_length) :], fft_length):
            fail("C4", f"the real tensor has type {real}, fft_length has {list(fft_length)}; expected its last extents")
        expect_shape("C5", "result", result, _transformed_shape(operand.shape, fft_type, fft_length))
        if fft_type is FftType.IRFFT and not dimensions_compatible(operand.shape[-1], _half(fft_length[-1])):
            fail(
                "C5", f"operand has type {operand}, expected last extent {_half(fft_length[-1])}, half of fft_length's"
            )

    def evaluate(operand, fft_type, fft_length, result):
        shape = _transformed_shape(operand.shape, fft_type, fft_length)
        if 0 in (*shape, *operand.shape):
            return np.zeros(shape, result.dtype)
        axes = tuple(range(-len(fft_length), 0))
        lengths = [operand.shape[axis] for axis in axes[:-1]] + [max(operand.shape[-1], shape[-1])]
        wide = operand.astype(np.float64 if fft_type is FftType.RFFT else np.complex128)
        return _TRANSFORMS[fft_type](wide, lengths, axes).astype(result.dtype)


_TRANSFORMS = {
    FftType.FFT: np.fft.fftn,
    FftType.IFFT: np.fft.ifftn,
    FftType.RFFT: np.fft.rfftn,
    FftType.IRFFT: np.fft.irfftn,
}


def _check_lengths(operand: TensorType, fft_length: Ints) -> None:
    expect_element("I1", "operand", operand, is_float, is_complex)
    if len(fft_length) > operand.rank:
        fail("C1", f"fft_length has {len(fft_length)} entries, expected at most {operand.rank}, the rank of operand")
    if not 1 <= len(fft_length) <= 3:
        fail("C3", f"fft_length has {len(fft_length)} entries, expected 1 to 3")


def _transformed_element(operand: TensorType, fft_type: FftType) -> ComplexType | FloatType:
    element = operand.element_type
    if is_float(element) != (fft_type is FftType.RFFT):
        wanted = "floating-point" if fft_type is FftType.RFFT else "complex"
        fail("C2", f"operand has element type {element}, expected {wanted} for {fft_type}")
    if isinstance(element, ComplexType):
        return element.element_type if fft_type is FftType.IRFFT else element
    return ComplexType(element)


def _transformed_shape(operand: Shape, fft_type: FftType, fft_length: Ints) -> Shape:
    """Returns the shape of the transform: only the last extent differs."""
    last = operand[-1]
    last = {FftType.RFFT: _half(last), FftType.IRFFT: fft_length[-1]}.get(fft_type, last)
    return (*operand[:-1], last)


def _half(extent: int | None) -> int | None:
    """Returns how many numbers of a real tensor's transform determine all of them."""
    return extent // 2 + 1 if extent else extent


# Triangular matrices


class Cholesky(Op, name="stablehlo.cholesky", traits={PURE, EXPRESSED}):
    """The triangular factor of Hermitian positive-definite matrices, L in L L^H or, if not `lower`, U in U^H U. Only
    that triangle of the matrix is read. The factor of a matrix that is not positive-definite is NaN."""

    a: Operand
    lower: bool = False
    result: Result

    def infer(a):
        return a

    def check(a, result):
        expect_element("I1", "a", a, is_float, is_complex, is_per_tensor)
        expect_compatible_baseline("C1", a=a, result=result)
        if a.rank < 2:
            fail("C2", f"a has type {a}, expected rank 2 or more")
        if not dimensions_compatible(a.shape[-2], a.shape[-1]):
            fail("C3", f"a has type {a}, expected square matrices")

    def evaluate(a, lower):
        wide = _wide(a)
        triangle = np.tril(wide) if lower else np.triu(wide).conj().swapaxes(-1, -2)
        whole = triangle + np.tril(triangle, -1).conj().swapaxes(-1, -2)
        factor = np.empty_like(whole)
        for index in np.ndindex(whole.shape[:-2]):
            try:
                factor[index] = np.linalg.cholesky(whole[index])
            except np.linalg.LinAlgError:
                factor[index] = np.nan
        return rounded(factor if lower else factor.conj().swapaxes(-1, -2), a.dtype)


@enumeration("stablehlo.transpose")
class TransposeMode(Enumeration):
    """How `triangular_solve` transposes its matrix first."""

    TRANSPOSE_INVALID = "TRANSPOSE_INVALID"
    NO_TRANSPOSE = "NO_TRANSPOSE"
    TRANSPOSE = "TRANSPOSE"
    ADJOINT = "ADJOINT"


class TriangularSolve(Op, name="stablehlo.triangular_solve", traits={PURE, EXPRESSED}):
    """Solves op(a) x = b, or x op(a) = b, for x, where `a` has triangular matrices (only that triangle is read) and op
    is `transpose_a`. With `unit_diagonal`, the diagonal is assumed to be ones."""

    a: Operand
    b: Operand
    left_side: bool
    lower: bool
    unit_diagonal: bool
    transpose_a: TransposeMode
    result: Result

    def infer(b):
        return b

    def check(a, b, left_side, transpose_a, result):
        expect_element("I1", "a", a, is_float, is_complex, is_per_tensor)
        expect_tensor("I2", "b", b)
        expect_same_baseline("C1", a=a, b=b)
        if a.rank < 2 or a.rank != b.rank:
            fail("C2", f"a has type {a}, b has {b}; expected one rank, 2 or more")
        side = b.shape[-2 if left_side else -1]
        if not shapes_compatible(a.shape, (*b.shape[:-2], side, side)) or not dimensions_compatible(*a.shape[-2:]):
            fail("C3", f"a has type {a}, b has {b}; expected the same batch, and square matrices of extent {side}")
        if transpose_a is TransposeMode.TRANSPOSE_INVALID:
            fail("I6", f"transpose_a has {transpose_a}, expected NO_TRANSPOSE, TRANSPOSE or ADJOINT")
        expect_compatible_baseline("C4", b=b, result=result)

    def evaluate(a, b, left_side, lower, unit_diagonal, transpose_a):
        matrix, right = _wide(a), _wide(b)
        if transpose_a is TransposeMode.ADJOINT:
            matrix = matrix.conj()
        # x A = b is A^T x^T = b^T: one more transposition.
        if (transpose_a is not TransposeMode.NO_TRANSPOSE) == left_side:
            matrix, lower = matrix.swapaxes(-1, -2), not lower
        solution = _substitute(matrix, right if left_side else right.swapaxes(-1, -2), lower, unit_diagonal)
        return rounded(solution if left_side else solution.swapaxes(-1, -2), b.dtype)


def _substitute(matrix: np.ndarray, right: np.ndarray, lower: bool, unit_diagonal: bool) -> np.ndarray:
    """Solves row by row: each unknown follows from the previous ones."""
    rows = range(matrix.shape[-1])
    solution = np.zeros_like(right)
    for row in rows if lower else reversed(rows):
        known = slice(0, row) if lower else slice(row + 1, None)
        rest = right[..., row, :] - np.einsum("...k,...kn->...n", matrix[..., row, known], solution[..., known, :])
        solution[..., row, :] = rest if unit_diagonal else rest / matrix[..., row, row, None]
    return solution


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
