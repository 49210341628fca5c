"""The LAPACK routines that programs call (`trivium.ir.lapack`), on NumPy arrays with any batch dimensions. Where NumPy
has no function, they are written for readability. If a result is not unique (such as the sign of an eigenvector), it
may differ from LAPACK's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trivium.ir import indefinite

Array = NDArray[np.inexact]
"""An array of real or complex numbers. Pivots and status codes are integers."""

Arrays = tuple[np.ndarray, ...]


def evaluate(routine: str, arrays: Sequence[np.ndarray], settings: Mapping[str, int]) -> Arrays:
    """Returns the results of a routine, stacked over the matrices of the batch."""
    function = _ROUTINES[routine]
    main = arrays[-1] if routine == "gtsv" else arrays[0]
    batch = main.shape[:-2]
    with np.errstate(all="ignore"):
        rows = [function(*(array[index] for array in arrays), **settings) for index in np.ndindex(batch)]
        # For an empty batch only the shapes matter.
        results = rows or [function(*(np.ones(x.shape[len(batch) :], x.dtype) for x in arrays), **settings)]
    stacked = [np.stack([row[i] for row in results]) for i in range(len(results[0]))]
    return tuple(x[: len(rows)].reshape((*batch, *x.shape[1:])) for x in stacked)


def _info(failed: bool = False) -> np.ndarray:
    return np.asarray(int(failed), np.int32)


def _potrf(a: Array, *, uplo: int) -> Arrays:
    """Column by column; where the matrix is not positive-definite, `info` counts to the column that shows it."""
    if uplo == ord("U"):
        factor, info = _potrf(a.conj().T, uplo=ord("L"))
        return factor.conj().T, info
    factor = a.copy()
    for k in range(len(a)):
        row = factor[k, :k]
        rest = factor[k, k].real - np.vdot(row, row).real
        if not rest > 0:
            return factor, np.asarray(k + 1, np.int32)
        factor[k, k] = np.sqrt(rest)
        factor[k + 1 :, k] = (factor[k + 1 :, k] - factor[k + 1 :, :k] @ row.conj()) / factor[k, k]
    return factor, _info()


def _trsm(a: Array, b: Array, *, side: int, uplo: int, trans_x: int, diag: int) -> Arrays:
    triangle = np.tril(a) if uplo == ord("L") else np.triu(a)
    if diag == ord("U"):
        np.fill_diagonal(triangle, 1)
    triangle = {"N": triangle, "T": triangle.T, "C": triangle.conj().T}[chr(trans_x)]
    if side == ord("R"):
        return (_substituted(triangle.T, b.T, lower=(uplo == ord("L")) != (trans_x == ord("N"))).T,)
    return (_substituted(triangle, b, lower=(uplo == ord("L")) == (trans_x == ord("N"))),)


def _substituted(triangle: Array, b: Array, lower: bool) -> Array:
    """Solves row by row. A number that cannot be divided by makes infinities and NaN, as in LAPACK."""
    x = b.copy()
    for k in range(len(b)) if lower else reversed(range(len(b))):
        known = slice(0, k) if lower else slice(k + 1, None)
        x[k] = (x[k] - triangle[k, known] @ x[known]) / triangle[k, k]
    return x


def _getrf(a: Array) -> Arrays:
    lu, count = a.copy(), min(a.shape)
    pivots, info = np.zeros(count, np.int32), 0
    for k in range(count):
        best = k + int(np.argmax(abs(lu[k:, k].real) + abs(lu[k:, k].imag)))
        pivots[k] = best + 1
        if lu[best, k] == 0:
            info = info or k + 1
            continue
        lu[[k, best]] = lu[[best, k]]
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return lu, pivots, np.asarray(info, np.int32)


def _geqrf(a: Array) -> Arrays:
    if not a.size:
        return a, np.zeros(0, a.dtype)
    transposed, scales = np.linalg.qr(a, mode="raw")
    return np.ascontiguousarray(transposed.T), scales


def _geqp3(a: Array, given: Array) -> Arrays:
    """Columns that `given` marks come first; then, at each step, the one whose remaining part has the largest norm."""
    m, n = a.shape
    order = [*np.flatnonzero(given), *np.flatnonzero(given == 0)]
    fixed = int(np.count_nonzero(given))
    a, scales = a[:, order], np.zeros(min(m, n), a.dtype)
    for k in range(min(m, n)):
        if k >= fixed:
            best = k + int(np.argmax(np.linalg.norm(a[k:, k:], axis=0)))
            a[:, [k, best]] = a[:, [best, k]]
            order[k], order[best] = order[best], order[k]
        tail, scales[k], beta = _reflector(a[k:, k])
        a[k:, k + 1 :] -= np.conj(scales[k]) * np.outer(tail, tail.conj() @ a[k:, k + 1 :])
        a[k, k], a[k + 1 :, k] = beta, tail[1:]
    return a, np.asarray(order, np.int32) + 1, scales


def _reflector(x: Array) -> tuple[Array, np.inexact, np.inexact]:
    """Returns `v`, `tau` and `beta` with `(1 - tau v v^H)^H x = beta e_1`, `v[0] = 1` and a real `beta`."""
    rest = np.linalg.norm(x[1:])
    if rest == 0 and x[0].imag == 0:
        return np.r_[np.ones(1, x.dtype), np.zeros(len(x) - 1, x.dtype)], x.dtype.type(0), x[0]
    beta = -np.copysign(np.hypot(abs(x[0]), rest), x[0].real)
    v = np.r_[np.ones(1, x.dtype), x[1:] / (x[0] - beta)].astype(x.dtype)
    return v, (beta - x[0]) / beta, beta


def _reflectors(a: Array, scales: Array) -> list[tuple[Array, np.inexact]]:
    """Returns the reflectors below the diagonal of `a`, each with its scale."""
    vectors = np.tril(a[:, : len(scales)], -1) + np.eye(len(a), len(scales), dtype=a.dtype)
    return list(zip(vectors.T, scales, strict=True))


def _orgqr(a: Array, scales: Array) -> Arrays:
    q = np.eye(*a.shape, dtype=a.dtype)
    for v, tau in reversed(_reflectors(a, scales)):
        q -= tau * np.outer(v, v.conj() @ q)
    return (q,)


def _ormqr(a: Array, scales: Array, c: Array, *, left: int, transpose: int) -> Arrays:
    c, steps = c.copy(), _reflectors(a, scales)
    for v, tau in steps if bool(left) == bool(transpose) else reversed(steps):
        tau = np.conj(tau) if transpose else tau
        c -= tau * np.outer(v, v.conj() @ c) if left else tau * np.outer(c @ v, v.conj())
    return (c,)


def _syevd(a: Array, *, mode: int, uplo: int) -> Arrays:
    try:
        values, vectors = np.linalg.eigh(a, "L" if uplo == ord("L") else "U")
    except np.linalg.LinAlgError:
        return a, np.zeros(len(a), a.real.dtype), _info(failed=True)
    return vectors if mode == ord("V") else a, values, _info()


def _svd(a: Array, *, mode: int, u: int, v: int) -> Arrays:
    """`u` and `v` are the numbers of left and right singular vectors; with mode N the vectors are zero."""
    m, n = a.shape
    left, values, right = np.eye(m, u, dtype=a.dtype), np.zeros(min(m, n), a.real.dtype), np.eye(v, n, dtype=a.dtype)
    try:
        if mode == ord("N"):
            return a, np.linalg.svd(a, compute_uv=False) if a.size else values, 0 * left, 0 * right, _info()
        if a.size:
            left, values, right = np.linalg.svd(a, full_matrices=mode == ord("A"))
    except np.linalg.LinAlgError:
        return a, values, left, right, _info(failed=True)
    return a, values, left, right, _info()


def _geev(a: Array, *, compute_left: int, compute_right: int) -> Arrays:
    wide = np.result_type(a.dtype, np.complex64)
    none = np.zeros(a.shape, wide)
    try:
        values, right = np.linalg.eig(a.astype(wide) if np.iscomplexobj(a) else a)
        left = np.linalg.inv(right).conj().T if compute_left == ord("V") else none
    except np.linalg.LinAlgError:
        return *_parts(np.zeros(len(a), wide), a), none, none, _info(failed=True)
    left = left / np.where(compute_left == ord("V"), np.linalg.norm(left, axis=0), 1)
    right = right if compute_right == ord("V") else none
    return *_parts(values, a), left.astype(wide), right.astype(wide), _info()


def _parts(values: Array, a: Array) -> Arrays:
    """Returns eigenvalues in the form of the routines: for a real matrix, real and imaginary parts."""
    if np.iscomplexobj(a):
        return (values.astype(a.dtype),)
    return values.real.astype(a.dtype), values.imag.astype(a.dtype)


def _gees(a: Array, *, mode: int, sort: int) -> Arrays:
    """By deflation: the first columns of the basis come from an eigenvector, or a conjugate pair; then the rest
    follows.
    """
    n, at = len(a), 0
    form, basis = a.copy(), np.eye(n, dtype=a.dtype)
    try:
        while at < n:
            values, vectors = np.linalg.eig(form[at:, at:])
            pair = not np.iscomplexobj(a) and values[0].imag != 0
            v = vectors[:, 0]
            columns = np.stack([np.real(v), np.imag(v)], 1) if pair else v[:, None]
            columns = columns.astype(a.dtype) if np.iscomplexobj(a) else np.real(columns).astype(a.dtype)
            q = np.eye(n, dtype=a.dtype)
            q[at:, at:] = np.linalg.qr(columns, mode="complete")[0]
            form, basis = q.conj().T @ form @ q, basis @ q
            if pair:
                q = _balanced(form[at : at + 2, at : at + 2], at, n)
                form, basis = q.T @ form @ q, basis @ q
            at += 1 + pair
            form[at:, :at] = 0
    except np.linalg.LinAlgError:
        return a, basis, *_parts(np.zeros(n, np.complex128), a), _info(), _info(failed=True)
    vectors = basis if mode == ord("V") else 0 * basis
    return form, vectors, *_parts(_block_values(form), a), _info(), _info()


def _balanced(block: Array, at: int, n: int) -> Array:
    """Returns the rotation that makes the two diagonal elements of a block with complex eigenvalues equal."""
    angle = np.arctan2(block[1, 1] - block[0, 0], block[0, 1] + block[1, 0]) / 2
    q = np.eye(n, dtype=block.dtype)
    cosine, sine = np.cos(angle), np.sin(angle)
    q[at : at + 2, at : at + 2] = [[cosine, -sine], [sine, cosine]]
    return q


def _block_values(form: Array) -> Array:
    """Returns the eigenvalues of a Schur form, in their order on the diagonal."""
    values = np.diag(form).astype(np.complex128)
    for k in range(len(form) - 1):
        if form[k + 1, k] != 0:
            spread = np.sqrt(abs(form[k, k + 1]) * abs(form[k + 1, k]))
            values[k], values[k + 1] = values[k] + 1j * spread, values[k + 1] - 1j * spread
    return values


def _gehrd(a: Array, *, low: int, high: int) -> Arrays:
    form, scales = a.copy(), np.zeros(max(len(a) - 1, 0), a.dtype)
    for k in range(low - 1, high - 1):
        v, scales[k], beta = _reflector(form[k + 1 : high, k])
        form[k + 1 : high, k + 1 :] -= np.conj(scales[k]) * np.outer(v, v.conj() @ form[k + 1 : high, k + 1 :])
        form[:high, k + 1 : high] -= scales[k] * np.outer(form[:high, k + 1 : high] @ v, v.conj())
        form[k + 1, k], form[k + 2 : high, k] = beta, v[1:]
    return form, scales, _info()


def _sytrd(a: Array, *, uplo: int) -> Arrays:
    """The upper triangle is handled as the lower one of the matrix with rows and columns reversed."""
    if uplo == ord("U"):
        form, diagonal, off_diagonal, scales, info = _sytrd(a[::-1, ::-1], uplo=ord("L"))
        return form[::-1, ::-1], diagonal[::-1], off_diagonal[::-1], scales[::-1], info
    n = len(a)
    form, scales = a.copy(), np.zeros(max(n - 1, 0), a.dtype)
    full = np.tril(a) + np.tril(a, -1).conj().T
    np.fill_diagonal(full, np.real(np.diag(a)))
    for k in range(n - 1):
        v, scales[k], beta = _reflector(full[k + 1 :, k])
        h = np.eye(n, dtype=a.dtype)
        h[k + 1 :, k + 1 :] -= scales[k] * np.outer(v, v.conj())
        full = h.conj().T @ full @ h
        form[k + 1, k], form[k + 2 :, k] = beta, v[1:]
    np.fill_diagonal(form, np.diag(full))
    below = np.diag(full, -1) if n > 1 else np.zeros(0, a.dtype)
    return form, np.real(np.diag(full)).copy(), np.real(below).copy(), scales, _info()


def _gtsv(lower: Array, main: Array, upper: Array, b: Array) -> Arrays:
    """Solves by dense elimination; the diagonals are returned unchanged."""
    a = np.diag(main) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
    try:
        return lower, main, upper, np.linalg.solve(a, b).astype(b.dtype), _info()
    except np.linalg.LinAlgError:
        return lower, main, upper, b, _info(failed=True)


_ROUTINES: dict[str, Callable[..., Arrays]] = {
    "potrf": _potrf,
    "trsm": _trsm,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "geqp3": _geqp3,
    "orgqr": _orgqr,
    "ormqr": _ormqr,
    "syevd": _syevd,
    "gesdd": _svd,
    "gesvd": _svd,
    "geev": _geev,
    "gees": _gees,
    "gehrd": _gehrd,
    "sytrd": _sytrd,
    "sytrf": functools.partial(indefinite.factor, hermitian=False),
    "hetrf": functools.partial(indefinite.factor, hermitian=True),
    "sytrs": functools.partial(indefinite.solve, hermitian=False),
    "hetrs": functools.partial(indefinite.solve, hermitian=True),
    "gtsv": _gtsv,
}
