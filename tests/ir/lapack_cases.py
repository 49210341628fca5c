"""A case for each routine of LAPACK that programs call: its operands, and assertions about its results. The
interpreter, the interpreter of programs and machine code run all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg.lapack import get_lapack_funcs

from trivium.ir import ops
from trivium.ir.func import Function, Module
from trivium.ir.lapack import call_attributes
from trivium.ir.types import type_of

COMPLEX = (np.complex64, np.complex128)
DTYPES = (np.float32, np.float64, *COMPLEX)

Make = Callable[[Any], tuple[np.ndarray, ...]]
Holds = Callable[[list[np.ndarray], list[np.ndarray]], None]


@dataclass(frozen=True)
class Case:
    """`make` returns operands of a type, one of `dtypes`; `holds` makes assertions about operands and results."""

    routine: str
    make: Make
    holds: Holds
    attributes: dict[str, int] = field(default_factory=dict)
    dtypes: Sequence[Any] = DTYPES

    def module(self, operands: tuple[np.ndarray, ...]) -> Module:
        types = [type_of(operand) for operand in operands]
        about = call_attributes(self.routine, types, self.attributes)
        return Module.build(
            functions=[
                Function.build("main", types, lambda b, *values: tuple(b.add(ops.CustomCall(list(values), **about))))
            ]
        )


def numbers(*shape: int, dtype: Any, seed: int = 0) -> np.ndarray:
    parts = np.random.default_rng(seed).standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1] if np.dtype(dtype).kind == "c" else parts[0]).astype(dtype)


def close(one: np.ndarray, other: np.ndarray) -> None:
    np.testing.assert_allclose(one, other, rtol=0, atol=1e3 * float(np.finfo(one.dtype).eps))


def adjoint(x: np.ndarray) -> np.ndarray:
    return x.conj().swapaxes(-1, -2)


def is_unitary(q: np.ndarray) -> None:
    close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), (*q.shape[:-2], *q.shape[-1:] * 2)))


def hermitian(x: np.ndarray, lower: bool) -> np.ndarray:
    """Returns the matrix of which one triangle is given."""
    half = np.tril(x, -1) if lower else np.triu(x, 1)
    diagonal = np.real(np.diagonal(x, axis1=-2, axis2=-1))[..., None] * np.eye(x.shape[-1], dtype=x.real.dtype)
    return half + adjoint(half) + diagonal.astype(x.dtype)


def symmetric(x: np.ndarray, lower: bool) -> np.ndarray:
    """Returns the matrix of which one triangle is given, without conjugates."""
    half = np.tril(x, -1) if lower else np.triu(x, 1)
    return half + half.swapaxes(-1, -2) + x * np.eye(x.shape[-1], dtype=x.real.dtype)


def product(reflectors: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Returns H_1 H_2 ..., the product of the reflectors below the diagonal."""
    m, count = reflectors.shape[-2], scales.shape[-1]
    vectors = np.tril(reflectors[..., :count], -1) + np.eye(m, count, dtype=reflectors.dtype)
    q = np.broadcast_to(np.eye(m, dtype=reflectors.dtype), (*reflectors.shape[:-2], m, m))
    for i in range(count):
        v = vectors[..., i : i + 1]
        q = q - scales[..., i, None, None] * (q @ v) @ adjoint(v)
    return q


def holds_lu(given: list[np.ndarray], found: list[np.ndarray]) -> None:
    (a,), (lu, pivots, info) = given, found
    k = min(a.shape[-2:])
    swapped = a.copy()
    for index in np.ndindex(a.shape[:-2]):
        for row, pivot in enumerate(pivots[index] - 1):
            swapped[index][[row, pivot]] = swapped[index][[pivot, row]]
    lower = np.tril(lu[..., :k], -1) + np.eye(a.shape[-2], k, dtype=a.dtype)
    close(lower @ np.triu(lu[..., :k, :]), swapped)
    assert not info.any()
    assert (abs(lower) <= np.sqrt(2) + 1e-6).all()


def definite(dtype: Any) -> tuple[np.ndarray, ...]:
    """Returns a batch of matrices; the second one is not positive-definite from its third row on."""
    a = numbers(3, 5, 5, dtype=dtype)
    a = a @ adjoint(a) + np.eye(5, dtype=dtype)
    a[1, 2, 2] = -1
    return (a,)


def holds_cholesky(lower: bool) -> Holds:
    def holds(given: list[np.ndarray], found: list[np.ndarray]) -> None:
        (a,), (factors, info) = given, found
        half, other = (np.tril(factors), np.triu) if lower else (adjoint(np.triu(factors)), np.tril)
        close((half @ adjoint(half))[[0, 2]] / 10, a[[0, 2]] / 10)
        np.testing.assert_array_equal(other(factors, 1 if lower else -1), other(a, 1 if lower else -1))
        assert info.tolist() == [0, 3, 0]

    return holds


def triangle_and(*shape: int) -> Make:
    return lambda dtype: (definite(dtype)[0] + 3 * np.eye(5, dtype=dtype), numbers(3, *shape, dtype=dtype))


def holds_triangular(side: int, uplo: int, trans: int, diag: int) -> Holds:
    def holds(given: list[np.ndarray], found: list[np.ndarray]) -> None:
        (a, b), (x,) = given, found
        triangle = np.tril(a) if uplo == L else np.triu(a)
        if diag == U:
            triangle[..., range(5), range(5)] = 1
        triangle = {N: triangle, T: triangle.swapaxes(-1, -2), C: adjoint(triangle)}[trans]
        size = float(np.abs(triangle).max() * np.abs(x).max())
        close((triangle @ x if side == L else x @ triangle) / size, b / size)

    return holds


def holds_qr(given: list[np.ndarray], found: list[np.ndarray]) -> None:
    qr, scales = found
    q = product(qr, scales)
    is_unitary(q)
    close(q @ np.triu(qr), given[0])


def holds_pivoted(given: list[np.ndarray], found: list[np.ndarray]) -> None:
    (a, fixed), (qr, order, scales) = given, found
    picked = np.take_along_axis(a, (order - 1)[..., None, :], -1)
    close(product(qr, scales) @ np.triu(qr), picked)
    assert (fixed[..., 2] == 1).all()
    assert (order[..., 0] == 3).all()
    sizes = abs(np.diagonal(qr, axis1=-2, axis2=-1))[..., 1:]
    assert (np.diff(sizes) <= 1e-5).all()


def of_reflectors(m: int, n: int, k: int) -> Make:
    """Returns the reflectors of a QR factorization, with more columns if requested."""

    def make(dtype: Any) -> tuple[np.ndarray, ...]:
        vectors = np.tril(numbers(2, m, n, dtype=dtype), -1)[..., :k] + np.eye(m, k, dtype=dtype)
        scales = (2 / (abs(vectors) ** 2).sum(-2)).astype(dtype)
        return np.pad(vectors, ((0, 0), (0, 0), (0, n - k)), constant_values=7).astype(dtype), scales

    return make


def holds_product(given: list[np.ndarray], found: list[np.ndarray]) -> None:
    close(found[0], product(*given)[..., : given[0].shape[-1]])


def applied(left: bool, transposed: bool) -> Holds:
    def holds(given: list[np.ndarray], found: list[np.ndarray]) -> None:
        q = product(*given[:2])
        q = adjoint(q) if transposed else q
        close(found[0], q @ given[2] if left else given[2] @ q)

    return holds


def holds_eigh(lower: bool) -> Holds:
    def holds(given: list[np.ndarray], found: list[np.ndarray]) -> None:
        a, (vectors, values, info) = hermitian(given[0], lower), found
        is_unitary(vectors)
        close(a @ vectors, vectors * values[..., None, :])
        assert (np.diff(values) >= 0).all()
        assert not info.any()

    return holds


def holds_eigvalsh(given: list[np.ndarray], found: list[np.ndarray]) -> None:
    close(found[1], np.linalg.eigvalsh(given[0]))
    np.testing.assert_array_equal(found[0], given[0])


def holds_svd(given: list[np.ndarray], found: list[np.ndarray]) -> None:
    a, values, u, vt, info = found
    np.testing.assert_array_equal(a, given[0])
    k = values.shape[-1]
    is_unitary(u)
    is_unitary(adjoint(vt))
    close(u[..., :k] * values[..., None, :] @ vt[..., :k, :], a)
    assert (np.diff(values) <= 0).all()
    assert not info.any()


def holds_values(given: list[np.ndarray], found: list[np.ndarray]) -> None:
    close(found[1], np.linalg.svd(given[0], compute_uv=False))
    assert not found[2].any()
    assert not found[3].any()


def eigenvalues(found: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    if np.iscomplexobj(found[0]):
        return found[0], found[1:]
    return found[0] + 1j * found[1], found[2:]


def in_order(values: np.ndarray) -> np.ndarray:
    """Sorts by the real part. The two of a conjugate pair, whose real parts may differ in the last digits, are sorted
    by the imaginary part."""
    order = np.lexsort((values.imag, values.real.round(3)), axis=-1)
    return np.take_along_axis(values, order, -1)


def holds_eig(given: list[np.ndarray], found: list[np.ndarray]) -> None:
    a, (values, (left, right, info)) = given[0], eigenvalues(found)
    close(a @ right, right * values[..., None, :])
    close(adjoint(left) @ a, values[..., :, None] * adjoint(left))
    close((abs(left) ** 2).sum(-2), np.ones_like(values.real))
    close((abs(right) ** 2).sum(-2), np.ones_like(values.real))
    assert not info.any()


def holds_eigvals(given: list[np.ndarray], found: list[np.ndarray]) -> None:
    values, (left, right, _) = eigenvalues(found)
    close(in_order(values), in_order(np.linalg.eigvals(given[0])))
    assert not left.any()
    assert not right.any()


def holds_schur(given: list[np.ndarray], found: list[np.ndarray]) -> None:
    form, vectors, *rest, selected, info = found
    is_unitary(vectors)
    close(vectors @ form @ adjoint(vectors), given[0])
    depth = -1 if np.iscomplexobj(form) else -2
    assert not np.tril(form, depth).any()
    values, _ = eigenvalues(rest)
    close(in_order(values), in_order(np.linalg.eigvals(given[0])))
    assert not selected.any()
    assert not info.any()


def holds_hessenberg(given: list[np.ndarray], found: list[np.ndarray]) -> None:
    form, scales, info = found
    below = np.pad(product(form[..., 1:, :-1], scales), [(0, 0)] * (form.ndim - 2) + [(1, 0)] * 2)
    below[..., 0, 0] = 1
    close(below @ np.triu(form, -1) @ adjoint(below), given[0])
    assert not info.any()


def holds_tridiagonal(lower: bool) -> Holds:
    def holds(given: list[np.ndarray], found: list[np.ndarray]) -> None:
        form, diagonal, beside, scales, info = found
        a = hermitian(given[0], lower)
        if not lower:  # rows and columns in reverse order
            a, form = a[..., ::-1, ::-1], form[..., ::-1, ::-1]
            diagonal, beside, scales = diagonal[..., ::-1], beside[..., ::-1], scales[..., ::-1]
        q = np.pad(product(form[..., 1:, :-1], scales), [(0, 0)] * (form.ndim - 2) + [(1, 0)] * 2)
        q[..., 0, 0] = 1
        middle = np.zeros_like(a)
        at = np.arange(a.shape[-1])
        middle[..., at, at] = diagonal
        middle[..., at[1:], at[:-1]] = middle[..., at[:-1], at[1:]] = beside
        close(q @ middle @ adjoint(q), a)
        assert not info.any()

    return holds


def diagonals(dtype: Any) -> tuple[np.ndarray, ...]:
    return (*(numbers(2, 5, dtype=dtype, seed=seed) for seed in range(3)), numbers(2, 5, 3, dtype=dtype, seed=3))


def holds_solution(given: list[np.ndarray], found: list[np.ndarray]) -> None:
    for one, other in zip(given[:3], found[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    lower, main, upper, b = (x[..., None] if x.ndim == 2 else x for x in given)
    x = found[3]
    product = main * x
    product[..., 1:, :] += lower[..., 1:, :] * x[..., :-1, :]
    product[..., :-1, :] += upper[..., :-1, :] * x[..., 1:, :]
    close(product / 10, b / 10)
    assert not found[4].any()


def rebuilt(factors: np.ndarray, pivots: np.ndarray, lower: bool, whole: Any) -> np.ndarray:
    """Returns P_1 L_1 P_2 L_2 ... D ... L_2^T P_2^T L_1^T P_1^T; `whole` is `symmetric` or `hermitian`."""
    n = len(pivots)
    if not lower:  # rows and columns in reverse order
        turned = (np.sign(pivots) * (n + 1 - abs(pivots)))[::-1]
        return rebuilt(factors[::-1, ::-1], turned, True, whole)[::-1, ::-1]
    left, middle, k = np.eye(n, dtype=factors.dtype), np.zeros_like(factors), 0
    while k < n:
        end = k + (1 if pivots[k] > 0 else 2)
        assert pivots[k] == pivots[end - 1]
        order, step = np.arange(n), np.eye(n, dtype=factors.dtype)
        order[[end - 1, abs(pivots[k]) - 1]] = order[[abs(pivots[k]) - 1, end - 1]]
        step[end:, k:end] = factors[end:, k:end]
        left = left @ np.eye(n, dtype=factors.dtype)[order] @ step
        middle[k:end, k:end] = whole(factors[k:end, k:end], True)
        k = end
    right = left.T if whole is symmetric else adjoint(left)
    return left @ middle @ right


def indefinite(dtype: Any) -> tuple[np.ndarray, ...]:
    """Returns a batch of matrices; the second one needs blocks of two rows."""
    a = numbers(2, 5, 5, dtype=dtype)
    a[1, range(5), range(5)] = 0
    return (a,)


def holds_ldl(lower: bool, whole: Any) -> Holds:
    def holds(given: list[np.ndarray], found: list[np.ndarray]) -> None:
        factors, pivots, info = found
        close(np.stack([rebuilt(*x, lower, whole) for x in zip(factors, pivots, strict=True)]), whole(given[0], lower))
        other = np.triu if lower else np.tril
        np.testing.assert_array_equal(other(factors, 1 if lower else -1), other(given[0], 1 if lower else -1))
        assert (pivots[1] < 0).any()
        assert not info.any()

    return holds


def factored(lower: bool, routine: str) -> Make:
    """Returns factors by SciPy, their pivots, and what to solve for."""

    def make(dtype: Any) -> tuple[np.ndarray, ...]:
        (factor,) = get_lapack_funcs((routine,), dtype=dtype)
        factors, pivots, _ = zip(*(factor(a, lower=lower) for a in indefinite(dtype)[0]), strict=True)
        return np.stack(factors), np.stack(pivots).astype(np.int32), numbers(2, 5, 3, dtype=dtype, seed=1)

    return make


def holds_ldl_solution(lower: bool, whole: Any) -> Holds:
    def holds(given: list[np.ndarray], found: list[np.ndarray]) -> None:
        factors, pivots, b = given
        a = np.stack([rebuilt(*x, lower, whole) for x in zip(factors, pivots, strict=True)])
        close(a @ found[0], b)

    return holds


def matrices(*shape: int) -> Make:
    return lambda dtype: (numbers(*shape, dtype=dtype),)


def pivoting(dtype: Any) -> tuple[np.ndarray, ...]:
    return numbers(2, 5, 4, dtype=dtype), np.tile(np.array([0, 0, 1, 0], np.int32), (2, 1))


def to_apply(*shape: int) -> Make:
    return lambda dtype: (*of_reflectors(5, 3, 3)(dtype), numbers(2, *shape, dtype=dtype))


L, U, R, V, N, T, C, A, S = map(ord, "LURVNTCAS")
CASES = {
    "potrf": Case("potrf", definite, holds_cholesky(True), {"uplo": L}),
    "potrf, upper": Case("potrf", definite, holds_cholesky(False), {"uplo": U}),
    **{
        f"trsm, {''.join(map(chr, options))}": Case(
            "trsm",
            triangle_and(*((5, 2) if options[0] == L else (2, 5))),
            holds_triangular(*options),
            dict(zip(("side", "uplo", "trans_x", "diag"), options, strict=True)),
        )
        for options in [(L, L, N, N), (L, U, T, N), (R, L, C, N), (R, U, N, U), (L, L, C, U), (R, L, N, N)]
    },
    "getrf": Case("getrf", matrices(2, 3, 5, 4), holds_lu),
    "getrf of a wide matrix": Case("getrf", matrices(3, 5), holds_lu),
    "geqrf": Case("geqrf", matrices(2, 5, 4), holds_qr),
    "geqrf of a wide matrix": Case("geqrf", matrices(2, 3, 5), holds_qr),
    "geqp3": Case("geqp3", pivoting, holds_pivoted),
    "orgqr": Case("orgqr", of_reflectors(5, 3, 3), holds_product),
    "orgqr of more columns": Case("orgqr", of_reflectors(5, 5, 2), holds_product),
    **{
        f"ormqr, left {left}, transposed {turned}": Case(
            "ormqr",
            to_apply(*((5, 2) if left else (2, 5))),
            applied(bool(left), bool(turned)),
            {"left": left, "transpose": turned},
        )
        for left in (0, 1)
        for turned in (0, 1)
    },
    "syevd": Case("syevd", matrices(2, 4, 4), holds_eigh(True), {"mode": V, "uplo": L}),
    "syevd, upper": Case("syevd", matrices(2, 4, 4), holds_eigh(False), {"mode": V, "uplo": U}),
    "syevd, values": Case("syevd", matrices(2, 4, 4), holds_eigvalsh, {"mode": N, "uplo": L}),
    **{
        f"{name}, {chr(mode)} of {shape}": Case(name, matrices(*shape), holds_svd, {"mode": mode})
        for name in ("gesdd", "gesvd")
        for mode in (A, S)
        for shape in ((2, 5, 3), (3, 5))
    },
    "gesdd, values": Case("gesdd", matrices(2, 5, 3), holds_values, {"mode": N}),
    "gesvd, values": Case("gesvd", matrices(2, 5, 3), holds_values, {"mode": N}),
    "geev": Case("geev", matrices(3, 5, 5), holds_eig, {"compute_left": V, "compute_right": V}),
    "geev, values": Case("geev", matrices(3, 5, 5), holds_eigvals, {"compute_left": N, "compute_right": N}),
    "gees": Case("gees", matrices(3, 5, 5), holds_schur, {"mode": V, "sort": N}),
    "gehrd": Case("gehrd", matrices(2, 5, 5), holds_hessenberg, {"low": 1, "high": 5}),
    "sytrd": Case("sytrd", matrices(2, 5, 5), holds_tridiagonal(True), {"uplo": L}),
    "sytrd, upper": Case("sytrd", matrices(2, 5, 5), holds_tridiagonal(False), {"uplo": U}),
    "gtsv": Case("gtsv", diagonals, holds_solution),
    **{
        f"{prefix}trf, {chr(uplo)}": Case(
            f"{prefix}trf", indefinite, holds_ldl(uplo == L, whole), {"uplo": uplo}, dtypes
        )
        for prefix, whole, dtypes in (("sy", symmetric, DTYPES), ("he", hermitian, COMPLEX))
        for uplo in (L, U)
    },
    **{
        f"{prefix}trs, {chr(uplo)}": Case(
            f"{prefix}trs",
            factored(uplo == L, f"{prefix}trf"),
            holds_ldl_solution(uplo == L, whole),
            {"uplo": uplo},
            dtypes,
        )
        for prefix, whole, dtypes in (("sy", symmetric, DTYPES), ("he", hermitian, COMPLEX))
        for uplo in (L, U)
    },
}
CALLS = [(name, dtype) for name, case in CASES.items() for dtype in case.dtypes]
