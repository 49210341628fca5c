"""Results in more digits than TensorFlow's kernels have, for ops where these are sometimes the less exact ones: of
special functions, by SciPy and mpmath, and of linear algebra and of rows with NaN, by NumPy, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np
from scipy import special

from tests.suites.tensorflow.draws import Call

PARITY = 2.0**53
"""Orders from which on a number does not say whether it is odd."""

IsClose = Callable[[np.ndarray, np.ndarray], bool]

CHANGES = 4
"""How often the arguments of linear algebra are changed by their last digit."""

SLACK = 32
"""How many times the largest of those changes a result may be away from the exact one: elimination rounds each element
about once for each row."""


def is_exact(call: Call, mine: Sequence[np.ndarray], theirs: Sequence[np.ndarray], is_close: IsClose) -> bool:
    """Whether results are right wherever they differ from TensorFlow's. Special functions must be within the tolerance
    that all ops have; linear algebra may also differ by `SLACK` times what a change of the last digits causes, and
    without limit where a matrix is singular or has elements that are not finite. False for ops that are not here."""
    with np.errstate(all="ignore"), mpmath.workdps(60):
        if call.op in ELEMENTWISE:
            return _is_exact_everywhere(call, mine[0], theirs[0], is_close)
        if call.op in ROWS:
            (given,) = map(_wide, (call.operands | call.known).values())
            return is_close(mine[0], ROWS[call.op](given).astype(mine[0].dtype))
        return call.op in LINEAR and _are_exact_matrices(call, mine, theirs, is_close)


def _is_exact_everywhere(call: Call, mine: np.ndarray, theirs: np.ndarray, is_close: IsClose) -> bool:
    given = np.broadcast_arrays(*map(_wide, (call.operands | call.known).values()))
    for place in np.ndindex(mine.shape):
        if not is_close(mine[place], theirs[place]):
            exact = ELEMENTWISE[call.op](*(float(x[place]) for x in given))
            if exact is not None and not is_close(mine[place], np.asarray(exact, mine.dtype)):
                return False
    return True


def _are_exact_matrices(
    call: Call, mine: Sequence[np.ndarray], theirs: Sequence[np.ndarray], is_close: IsClose
) -> bool:
    given = call.operands | call.known
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in given.values()))
    whole = {name: np.broadcast_to(x, (*batch, *x.shape[-2:])) for name, x in given.items()}
    flags = {name: x for name, x in call.attributes.items() if isinstance(x, bool)}
    for place in np.ndindex(batch):
        if not all(is_close(x[place], y[place]) for x, y in zip(mine, theirs, strict=True)):
            found = _of_matrix(LINEAR[call.op], {name: x[place] for name, x in whole.items()}, flags)
            for x, (exact, change) in zip(mine, found or (), strict=False):
                if not (is_close(x[place], exact.astype(x.dtype)) or (abs(x[place] - exact) <= SLACK * change).all()):
                    return False
    return True


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


# Special functions: NaN where TensorFlow's answer stands, `None` where no answer is defined


def _gamma_slope(a: float, x: float) -> float:
    """The derivative of the lower incomplete gamma function with respect to its first argument."""
    if not (0 < a < np.inf and 0 < x < np.inf):
        return np.nan
    if a > 1e5:  # the normal distribution's density, of which the slope is the negative
        return -float(mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a + 1)))
    return float(mpmath.diff(lambda p: mpmath.gammainc(p, 0, x, regularized=True), a, h=mpmath.mpf(10) ** -10))


def _sample_slope(a: float, x: float) -> float:
    """How a sample of the gamma distribution changes with the distribution's parameter."""
    slope = _gamma_slope(a, x)
    if np.isnan(slope):
        return np.nan
    return float(-mpmath.mpf(slope) / mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a)))


def _polygamma(n: float, x: float) -> float | None:
    if n >= PARITY:
        return None
    if not (n >= 1 and n == np.floor(n)) or (x <= 0 and x == np.floor(x)):
        return np.nan
    if np.isinf(x):
        return 0.0
    size = mpmath.factorial(n) * mpmath.zeta(int(n) + 1, x)
    return float(size if n % 2 else -size)


def _softmax(x: np.ndarray) -> np.ndarray:
    """A row with a NaN consists of NaN, of which TensorFlow's kernel leaves some out."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


ROWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"Softmax": _softmax}

ELEMENTWISE: dict[str, Callable[..., float | None]] = {
    "Betainc": special.betainc,
    "Erf": special.erf,  # TensorFlow's kernel for f64 returns NaN for infinity
    "Igamma": special.gammainc,
    "Igammac": special.gammaincc,
    "IgammaGradA": _gamma_slope,
    "OnesLike": lambda x: 1.0,  # TensorFlow's kernel for u32 returns zeros
    "Polygamma": _polygamma,
    "RandomGammaGrad": _sample_slope,
    "SqrtGrad": lambda y, dy: 0.5 * dy / y,  # TensorFlow's kernel multiplies by 1 / y, which may be too small a number
}


# Linear algebra


def _adjoint(x: np.ndarray) -> np.ndarray:
    return x.conj().swapaxes(-1, -2)


def _triangle(matrix: np.ndarray, lower: bool = True, **_: object) -> np.ndarray:
    return np.tril(matrix) if lower else np.triu(matrix)


def _inverse(input: np.ndarray, adjoint: bool = False) -> list[np.ndarray]:
    return [np.linalg.inv(_adjoint(input) if adjoint else input)]


def _solution(matrix: np.ndarray, rhs: np.ndarray, adjoint: bool = False) -> list[np.ndarray]:
    return [np.linalg.solve(_adjoint(matrix) if adjoint else matrix, rhs)]


def _triangular(matrix: np.ndarray, rhs: np.ndarray, lower: bool = True, adjoint: bool = False) -> list[np.ndarray]:
    return _solution(_triangle(matrix, lower), rhs, adjoint)


def _banded(upper: np.ndarray, main: np.ndarray, lower: np.ndarray) -> np.ndarray:
    return np.diag(main) + np.diag(upper[:-1], 1) + np.diag(lower[1:], -1)


def _tridiagonal(diagonals: np.ndarray, rhs: np.ndarray, **_: object) -> list[np.ndarray]:
    return [np.linalg.solve(_banded(*diagonals), rhs)]


def _tridiagonal_product(
    superdiag: np.ndarray, maindiag: np.ndarray, subdiag: np.ndarray, rhs: np.ndarray
) -> list[np.ndarray]:
    return [_banded(superdiag[0], maindiag[0], subdiag[0]) @ rhs]


LINEAR: dict[str, Callable[..., Sequence[Any]]] = {
    "LogMatrixDeterminant": lambda input: np.linalg.slogdet(input),
    "MatrixDeterminant": lambda input: [np.linalg.det(input)],
    "MatrixInverse": _inverse,
    "MatrixSolve": _solution,
    "MatrixTriangularSolve": _triangular,
    "TridiagonalMatMul": _tridiagonal_product,
    "TridiagonalSolve": _tridiagonal,
}
"""Of one matrix each. A name of a parameter is that of an argument."""


def _of_matrix(
    compute: Callable[..., Sequence[Any]], given: Mapping[str, np.ndarray], flags: Mapping[str, bool]
) -> list[tuple[np.ndarray, float]] | None:
    """Returns the results for one matrix, and by how much they change with the arguments' last digits. Nothing where
    there is no inverse, or elements are not finite."""
    if not all(np.isfinite(x).all() for x in given.values()):
        return None
    random = np.random.default_rng(0)
    digit = max(np.finfo(x.dtype).eps for x in given.values())
    wide = {name: _wide(x) for name, x in given.items()}
    try:
        found = [np.asarray(x) for x in compute(**wide, **flags)]
        changes = [0.0] * len(found)
        for _ in range(CHANGES):
            near = {name: x * (1 + digit * random.uniform(-1, 1, x.shape)) for name, x in wide.items()}
            pairs = zip(found, compute(**near, **flags), changes, strict=True)
            changes = [max(change, float(abs(x - y).max(initial=0))) for x, y, change in pairs]
    except np.linalg.LinAlgError:
        return None
    return list(zip(found, changes, strict=True))
