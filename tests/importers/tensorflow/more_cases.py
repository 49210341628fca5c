"""Cases of linear algebra, Fourier transforms, optimizers, quantization, images and XLA's own ops, as in `cases`."""

from typing import Any

import numpy as np
import tensorflow as tf

from tests.importers.tensorflow.cases import Case, case, normal, raw

SQUARE = normal(2, 4, 4)
SYMMETRIC = SQUARE + SQUARE.swapaxes(1, 2)
POSITIVE = SQUARE @ SQUARE.swapaxes(1, 2) + np.eye(4, dtype=np.float32)
COMPLEX = (normal(2, 4, 4) + 1j * normal(2, 4, 4)).astype(np.complex64)
FLAGS = (False, True)


def restored(x: Any, full: bool) -> Any:
    """The factors of a singular value decomposition, as far as they are determined: their product, and that of the
    vectors with themselves."""
    s, u, v = raw.Svd(input=x, compute_uv=True, full_matrices=full)
    least = s.shape[-1]
    product = tf.matmul(u[..., :least] * tf.cast(s[..., None, :], u.dtype), v[..., :least], adjoint_b=True)
    return tf.abs(s), product, tf.matmul(u, u, adjoint_a=True), tf.matmul(v, v, adjoint_a=True)


def diagonalized(x: Any) -> Any:
    e, v = raw.SelfAdjointEigV2(input=x)
    return e, tf.matmul(v * e[..., None, :], v, adjoint_b=True)


LINALG = [
    case("Cholesky", lambda x: raw.Cholesky(input=x), POSITIVE),
    *(
        case(
            "MatrixTriangularSolve",
            lambda x, y, lower=lower, adjoint=adjoint: raw.MatrixTriangularSolve(
                matrix=x, rhs=y, lower=lower, adjoint=adjoint
            ),
            x,
            y,
        )
        for lower in FLAGS
        for adjoint in FLAGS
        for x, y in ((SQUARE + 4 * np.eye(4, dtype=np.float32), normal(1, 4, 3)), (COMPLEX + 4 * np.eye(4), COMPLEX))
        if x.dtype == y.dtype
    ),
    *(
        case("MatrixSolve", lambda x, y, a=a: raw.MatrixSolve(matrix=x, rhs=y, adjoint=a), x, y)
        for a in FLAGS
        for x, y in ((SQUARE, normal(2, 4, 3)), (COMPLEX, COMPLEX[..., :2]))
    ),
    *(case("MatrixInverse", lambda x, a=a: raw.MatrixInverse(input=x, adjoint=a), COMPLEX) for a in FLAGS),
    case("Lu", lambda x: raw.Lu(input=x), SQUARE),
    case("MatrixDeterminant", lambda x: raw.MatrixDeterminant(input=x), SQUARE),
    case("MatrixDeterminant", lambda x: raw.MatrixDeterminant(input=x), COMPLEX),
    case("LogMatrixDeterminant", lambda x: raw.LogMatrixDeterminant(input=x), SQUARE),
    *(
        case("Qr", lambda x, full=full: raw.Qr(input=x, full_matrices=full), x)
        for full in FLAGS
        for x in (normal(2, 5, 3), normal(3, 5), COMPLEX, normal(0, 3, 4))
    ),
    case("SelfAdjointEigV2", diagonalized, SYMMETRIC),
    case("SelfAdjointEigV2", lambda x: raw.SelfAdjointEigV2(input=x, compute_v=False), SYMMETRIC),
    *(
        case("Svd", lambda x, full=full: restored(x, full), x)
        for full in FLAGS
        for x in (normal(2, 5, 3), normal(3, 5), COMPLEX)
    ),
    case("Svd", lambda x: raw.Svd(input=x, compute_uv=False), normal(3, 5)),
    case("Eig", lambda x: tf.sort(tf.abs(raw.Eig(input=x, Tout=tf.complex64)[0])), SQUARE),
    case(
        "TridiagonalMatMul",
        lambda a, b, c, x: raw.TridiagonalMatMul(superdiag=a, maindiag=b, subdiag=c, rhs=x),
        *(normal(2, 1, 4), normal(2, 1, 4), normal(2, 1, 4), normal(2, 4, 3)),
    ),
    case(
        "TridiagonalSolve",
        lambda d, x: raw.TridiagonalSolve(diagonals=d, rhs=x),
        normal(2, 3, 4) + np.float32([[0], [4], [0]]),
        normal(2, 4, 3),
    ),
]
FOURIER = [
    *(
        case(op, lambda x, op=op: getattr(raw, op)(input=x), COMPLEX)
        for op in ("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D")
    ),
    *(
        case(f"RFFT{d}", lambda x, d=d, n=n: getattr(raw, f"RFFT{d}")(input=x, fft_length=n), SQUARE)
        for d, n in (("", [4]), ("", [3]), ("2D", [3, 4]), ("3D", [2, 3, 4]))
    ),
    *(
        case(f"IRFFT{d}", lambda x, d=d, n=n: getattr(raw, f"IRFFT{d}")(input=x, fft_length=n), COMPLEX)
        for d, n in (("", [6]), ("", [5]), ("2D", [4, 5]), ("3D", [2, 4, 6]))
    ),
]
MORE_CASES: list[Case] = [*LINALG, *FOURIER]
