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
ALIGNED = [f"{above}_{below}" for above in ("LEFT", "RIGHT") for below in ("LEFT", "RIGHT")]
BANDS = [
    *(
        case(
            "MatrixDiagPartV3",
            lambda x, k=k, align=align: raw.MatrixDiagPartV3(input=x, k=k, padding_value=9.0, align=align),
            normal(2, 3, 5),
        )
        for k in (0, -2, 3, [-1, 2], [1, 4], [-2, -1])
        for align in ALIGNED
    ),
    *(
        case(
            "MatrixDiagV3",
            lambda x, k=k, align=align: raw.MatrixDiagV3(
                diagonal=x, k=k, num_rows=-1, num_cols=-1, padding_value=9.0, align=align
            ),
            normal(2, count, 3),
        )
        for k, count in (([-1, 1], 3), ([0, 1], 2), ([-2, -1], 2), ([1, 2], 2))
        for align in ALIGNED
    ),
    case(
        "MatrixDiagV2",
        lambda x: raw.MatrixDiagV2(diagonal=x, k=-1, num_rows=-1, num_cols=4, padding_value=0.0),
        normal(2, 3),
    ),
    *(
        case(
            "MatrixSetDiagV3",
            lambda x, d, k=k, align=align: raw.MatrixSetDiagV3(input=x, diagonal=d, k=k, align=align),
            normal(2, 3, 5),
            normal(2, *diagonal),
        )
        for k, diagonal in ((0, (3,)), (-1, (2,)), ([-1, 3], (5, 3)))
        for align in ALIGNED
    ),
    case("MatrixSetDiag", lambda x, d: raw.MatrixSetDiag(input=x, diagonal=d), normal(2, 3, 3), normal(2, 3)),
    case("MatrixSetDiagV2", lambda x, d: raw.MatrixSetDiagV2(input=x, diagonal=d, k=1), normal(3, 3), normal(2)),
    case("MatrixDiagPartV2", lambda x: raw.MatrixDiagPartV2(input=x, k=[-1, 1], padding_value=1.0), normal(3, 4)),
    case("Diag", lambda x: raw.Diag(diagonal=x), normal(2, 3)),
    case("DiagPart", lambda x: raw.DiagPart(input=x), normal(2, 3, 2, 3)),
]
MORE_CASES: list[Case] = [*LINALG, *FOURIER, *BANDS]
