"""Cases of linear algebra, Fourier transforms, optimizers, quantization, images and XLA's own ops, as in `cases`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.tf2xla.python import xla

from tests.importers.tensorflow.cases import Case, case, ints, normal, positive, raw

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
    *(
        case(
            "BandedTriangularSolve",
            lambda x, y, lower=lower, adjoint=adjoint: tf.linalg.banded_triangular_solve(x, y, lower, adjoint),
            x + 3,
            y,
        )
        for lower in FLAGS
        for adjoint in FLAGS
        for x, y in ((SQUARE[0, :2], normal(2, 4, 3)), (COMPLEX[:, :3], COMPLEX[..., :2]))
    ),
    *(
        case(
            "MatrixSolveLs",
            lambda x, y, fast=fast: raw.MatrixSolveLs(matrix=x, rhs=y, l2_regularizer=fast * 0.1, fast=fast),
            x,
            y,
        )
        for fast, x, y in (
            *((fast, x, normal(2, x.shape[1], 3)) for fast in FLAGS for x in (normal(2, 5, 3), normal(2, 3, 5))),
            *((fast, COMPLEX[:, :3].swapaxes(1, 2), COMPLEX[..., :2]) for fast in FLAGS),
            (False, SQUARE[..., [0, 1, 0, 3]], normal(2, 4, 3)),
        )
    ),
    *(case("MatrixInverse", lambda x, a=a: raw.MatrixInverse(input=x, adjoint=a), COMPLEX) for a in FLAGS),
    *(
        case("MatrixSquareRoot", lambda x: raw.MatrixSquareRoot(input=x), x)
        for x in (
            *(POSITIVE, POSITIVE.astype(np.float64), -POSITIVE, SQUARE[0] + 4 * np.eye(4, dtype=np.float32)),
            *(COMPLEX + 4 * np.eye(4, dtype=np.float32), np.float32([[0, -1], [1, 0]]), normal(2, 0, 0)),
        )
    ),
    *(
        case("MatrixLogarithm", lambda x: raw.MatrixLogarithm(input=x), x)
        for x in (
            *(POSITIVE.astype(np.complex64), POSITIVE.astype(np.complex128) * 1e9, SQUARE[0].astype(np.complex128)),
            *(
                COMPLEX + 4 * np.eye(4, dtype=np.float32),
                COMPLEX.astype(np.complex128),
                np.zeros((2, 0, 0), np.complex64),
            ),
            *(np.array(rows, np.complex128) for rows in ([[1, 1], [0, 1]], [[0, -1], [1, 0]], [[-1, 0], [0, -1]])),
            *(
                np.array(rows, np.complex64)
                for rows in ([[0, 1], [0, 0]], [[1, 0], [0, 0]], [[-1, 1], [0, -1]], [[5j]])
            ),
            np.array([[[1e-300, 1], [0, 1e300]], [[1, 2], [3, 4]], [[0, 0], [0, 0]]], np.complex128),
        )
    ),
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
    # Without vectors, TensorFlow's second result is a number from memory that nothing has written.
    case("SelfAdjointEigV2", lambda x: raw.SelfAdjointEigV2(input=x, compute_v=False)[0], SYMMETRIC),
    *(
        case("Svd", lambda x, full=full: restored(x, full), x)
        for full in FLAGS
        for x in (normal(2, 5, 3), normal(3, 5), COMPLEX)
    ),
    case("Svd", lambda x: raw.Svd(input=x, compute_uv=False)[0], normal(3, 5)),
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
QUANTIZATION = [
    case(
        "FakeQuantWithMinMaxArgs",
        lambda x: raw.FakeQuantWithMinMaxArgs(inputs=x, min=-1.0, max=2.0, num_bits=4, narrow_range=True),
        normal(3, 4),
    ),
    case(
        "FakeQuantWithMinMaxArgsGradient",
        lambda d, x: raw.FakeQuantWithMinMaxArgsGradient(gradients=d, inputs=x, min=-1.0, max=0.5),
        normal(3, 4),
        normal(3, 4),
    ),
]
RGB = positive(2, 4, 5, 3)
GRAY = np.repeat(RGB[..., :1], 3, -1)
COLORS = [
    *(case("RGBToHSV", lambda x: raw.RGBToHSV(images=x), x) for x in (RGB, GRAY, RGB * 0)),
    *(case("HSVToRGB", lambda x: raw.HSVToRGB(images=x), x) for x in (RGB, GRAY)),
    case("AdjustContrastv2", lambda x: raw.AdjustContrastv2(images=x, contrast_factor=1.7), RGB),
    *(
        case("LRN", lambda x, r=r: raw.LRN(input=x, depth_radius=r, bias=0.7, alpha=0.3, beta=0.6), normal(2, 3, 4, 7))
        for r in (1, 3, 9)
    ),
    case(
        "LRNGrad",
        lambda d, x: raw.LRNGrad(
            input_grads=d,
            input_image=x,
            output_image=raw.LRN(input=x, depth_radius=2, beta=0.7),
            depth_radius=2,
            beta=0.7,
        ),
        normal(2, 3, 4, 7),
        normal(2, 3, 4, 7),
    ),
]


def by_xla(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ops that only XLA has."""
    return tf.function(function, jit_compile=True, autograph=False)


XLA = [
    case("XlaPad", by_xla(lambda x: xla.pad(x, 2.0, [1, 0], [0, -1], [0, 2])), normal(3, 4)),
    case("XlaEinsum", by_xla(lambda x, y: gen_xla_ops.xla_einsum(x, y, "ij,jk->ki")), normal(3, 4), normal(4, 2)),
    case("XlaReducePrecision", by_xla(lambda x: xla.reduce_precision(x, 5, 3)), normal(3, 4)),
    case("XlaSort", by_xla(xla.sort), normal(3, 4)),
    # In total order, in which a NaN with a sign is the smallest number.
    case("XlaSort", by_xla(xla.sort), np.array([1, np.nan, -np.inf, -np.nan, 0, -0.0, np.inf, -2], np.float32)),
    case("XlaKeyValueSort", by_xla(xla.key_value_sort), normal(7), ints(*range(7))),
    case("XlaKeyValueSort", by_xla(xla.key_value_sort), np.array(2.5, np.float32), np.array(3, np.int32)),
    case("XlaOptimizationBarrier", by_xla(lambda x: gen_xla_ops.xla_optimization_barrier([x])[0] + 1), normal(3)),
]
OTHERS = [
    case(
        "SpaceToBatch",
        lambda x: raw.SpaceToBatch(input=x, paddings=[[0, 0], [1, 0]], block_size=2),
        normal(2, 4, 5, 3),
    ),
    case("BatchToSpace", lambda x: raw.BatchToSpace(input=x, crops=[[0, 1], [1, 0]], block_size=2), normal(8, 2, 3, 1)),
    *(
        case(
            op,
            by_xla(lambda x, op=op: getattr(raw, op)(data=x, segment_ids=[0, 0, 2], num_segments=4)),
            normal(3, 2),
        )
        for op in ("SegmentMaxV2", "SegmentMinV2", "SegmentProdV2", "SegmentSumV2")
    ),
    case("SparseMatMul", lambda x, y: raw.SparseMatMul(a=x, b=y, transpose_b=True), normal(3, 4), normal(5, 4)),
    *(
        case(
            "StatelessRandomUniformInt",
            lambda s, dtype=dtype: raw.StatelessRandomUniformInt(
                shape=[7], seed=s, minval=tf.constant(-4, dtype), maxval=tf.constant(90, dtype)
            ),
            ints(3, -4),
        )
        for dtype in (tf.int32, tf.int64)
    ),
    case(
        "CumulativeLogsumexp",
        lambda x: (tf.math.cumulative_logsumexp(x, 1), tf.math.cumulative_logsumexp(x, 0, True, True)),
        normal(3, 5) * 400,
    ),
    case("SquaredDifference", lambda x, y: raw.SquaredDifference(x=x, y=y), COMPLEX, COMPLEX[::-1]),
    case(
        "ClipByValue",
        lambda x: raw.ClipByValue(t=x, clip_value_min=0.5, clip_value_max=float("nan")),
        normal(3, 4),
    ),
    case(
        "ConjugateTranspose", lambda x: raw.ConjugateTranspose(x=x, perm=[1, 0]), ints(3, 4, 5, -1, 0, 2).reshape(2, 3)
    ),
    case("EuclideanNorm", lambda x: raw.EuclideanNorm(input=x, axis=[1]), COMPLEX),
    case("EuclideanNorm", lambda x: raw.EuclideanNorm(input=x, axis=[1]), ints(3, 4, 5, -1, 0, 2).reshape(2, 3)),
]
MORE_CASES: list[Case] = [*LINALG, *FOURIER, *BANDS, *QUANTIZATION, *COLORS, *XLA, *OTHERS]
