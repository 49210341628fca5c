"""Fourier transforms and linear algebra. Factorizations are calls of LAPACK's routines, as on JAX's CPU platform; a
factorization that fails returns NaN."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax import lax

from trivium.importers.factorizations import identities, lapack
from trivium.importers.jax.context import Context, Ints, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import is_complex


@rule("fft")
def fft(ctx: Context, x: Value, fft_type: int, fft_lengths: Ints) -> Value:
    """fft(x, fft_type, fft_lengths)"""
    return ctx.add(ops.Fft(x, fft_type=ops.FftType(lax.FftType(fft_type).name), fft_length=tuple(fft_lengths)))


@rule("cholesky")
def cholesky(ctx: Context, a: Value) -> Value:
    """cholesky(a): the lower factor"""
    return ctx.add(ops.Cholesky(a, lower=True))


@rule("triangular_solve")
def triangular_solve(
    ctx: Context, a: Value, b: Value, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool,
    unit_diagonal: bool,
) -> Value:  # fmt: skip
    """triangular_solve(a, b, left_side, lower, transpose_a, conjugate_a, unit_diagonal)"""
    conjugated = conjugate_a and is_complex(a.type.element_type)
    if conjugated and not transpose_a:
        a = ctx.add(ops.Complex(ctx.add(ops.Real(a)), ctx.add(ops.Negate(ctx.add(ops.Imag(a))))))
    transpose = ("ADJOINT" if conjugated else "TRANSPOSE") if transpose_a else "NO_TRANSPOSE"
    return ctx.add(
        ops.TriangularSolve(
            a,
            b,
            left_side=left_side,
            lower=lower,
            unit_diagonal=unit_diagonal,
            transpose_a=ops.TransposeMode(transpose),
        )
    )


@rule("lu")
def lu(ctx: Context, a: Value) -> Sequence[Value]:
    """lu(a): the factors in one matrix, pivots, and the permutation that they make"""
    factors, pivots, info = lapack(ctx, "getrf", a)
    (factors,) = _where_done(ctx, info, "GE", factors)
    pivots = ctx.minus(pivots, ctx.full_like(pivots, 1))
    rows = a.type.static_shape[-2]
    return factors, pivots, *ctx.trace(lambda x: jax.lax.linalg.lu_pivots_to_permutation(x, rows), pivots)


@rule("geqrf")
def geqrf(ctx: Context, a: Value) -> Sequence[Value]:
    """geqrf(a)"""
    return lapack(ctx, "geqrf", a)


@rule("geqp3")
def geqp3(ctx: Context, a: Value, pivots: Value, use_magma: bool | None) -> Sequence[Value]:
    """geqp3(a, jpvt); use_magma is for GPUs"""
    return lapack(ctx, "geqp3", a, pivots)


@rule("householder_product")
def householder_product(ctx: Context, a: Value, taus: Value) -> Sequence[Value]:
    """householder_product(a, taus)"""
    return lapack(ctx, "orgqr", a, taus)


@rule("ormqr")
def ormqr(ctx: Context, a: Value, taus: Value, c: Value, left: bool, transpose: bool) -> Sequence[Value]:
    """ormqr(a, taus, c, left, transpose)"""
    return lapack(ctx, "ormqr", a, taus, c, left=int(left), transpose=int(transpose))


@rule("eigh")
def eigh(
    ctx: Context, a: Value, lower: bool, sort_eigenvalues: bool, subset_by_index: tuple[int, int] | None,
    algorithm: object,
) -> Sequence[Value]:  # fmt: skip
    """eigh(a, lower, sort_eigenvalues, subset_by_index, algorithm): vectors and values, which are always sorted"""
    order = a.type.static_shape[-1]
    _require_all(ctx, subset_by_index, order)
    if getattr(algorithm, "name", "QR") != "QR":
        ctx.unsupported("algorithm", algorithm, "QR")
    vectors, values, info = lapack(ctx, "syevd", a, mode=ord("V"), uplo=ord("L" if lower else "U"))
    return _where_done(ctx, info, "EQ", vectors, values)


@rule("eig")
def eig(
    ctx: Context, a: Value, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool, implementation: object,
) -> Sequence[Value]:  # fmt: skip
    """eig(a, compute_left_eigenvectors, compute_right_eigenvectors): values, left and right vectors"""
    if getattr(implementation, "name", "LAPACK") != "LAPACK":
        ctx.unsupported("implementation", implementation, "LAPACK")
    wanted = (compute_left_eigenvectors, compute_right_eigenvectors)
    left, right = (ord("V" if want else "N") for want in wanted)
    *values, left_vectors, right_vectors, info = lapack(ctx, "geev", a, compute_left=left, compute_right=right)
    found = ctx.add(ops.Complex(*values)) if len(values) == 2 else values[0]
    vectors = [x for x, want in zip((left_vectors, right_vectors), wanted, strict=True) if want]
    return _where_done(ctx, info, "EQ", found, *vectors)


@rule("svd")
def svd(
    ctx: Context, a: Value, full_matrices: bool, compute_uv: bool, subset_by_index: tuple[int, int] | None,
    algorithm: object,
) -> Sequence[Value]:  # fmt: skip
    """svd(a, full_matrices, compute_uv, subset_by_index, algorithm): singular values, left and right vectors"""
    rows, columns = a.type.static_shape[-2:]
    _require_all(ctx, subset_by_index, min(rows, columns))
    routine = {"DEFAULT": "gesdd", "DIVIDE_AND_CONQUER": "gesdd", "QR": "gesvd"}.get(
        getattr(algorithm, "name", "DEFAULT")
    )
    if routine is None:
        ctx.unsupported("algorithm", algorithm, "DEFAULT, QR or DIVIDE_AND_CONQUER")
    if not rows or not columns:
        return [identities(ctx, kind.static_shape, kind.element_type) for kind in ctx.result_types]
    mode = ord("A" if full_matrices else "S") if compute_uv else ord("N")
    _, values, left, right, info = lapack(ctx, routine, a, mode=mode)
    return _where_done(ctx, info, "EQ", values, *((left, right) if compute_uv else ()))


@rule("schur")
def schur(
    ctx: Context, a: Value, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: object = None
) -> Sequence[Value]:
    """schur(a, compute_schur_vectors, sort_eig_vals): the form, and vectors"""
    if sort_eig_vals:
        ctx.unsupported("sort_eig_vals", True, "False")
    form, vectors, *_, info = lapack(ctx, "gees", a, mode=ord("V" if compute_schur_vectors else "N"), sort=ord("N"))
    return _where_done(ctx, info, "EQ", form, *((vectors,) if compute_schur_vectors else ()))


@rule("hessenberg")
def hessenberg(ctx: Context, a: Value) -> Sequence[Value]:
    """hessenberg(a): the form with the reflectors below it, and their scales"""
    form, taus, info = lapack(ctx, "gehrd", a, low=1, high=a.type.static_shape[-1])
    return _where_done(ctx, info, "EQ", form, taus)


@rule("tridiagonal")
def tridiagonal(ctx: Context, a: Value, lower: bool) -> Sequence[Value]:
    """tridiagonal(a, lower): the matrix with reflectors, both diagonals, and the reflectors' scales"""
    *found, info = lapack(ctx, "sytrd", a, uplo=ord("L" if lower else "U"))
    return _where_done(ctx, info, "EQ", *found)


@rule("tridiagonal_solve")
def tridiagonal_solve(
    ctx: Context, lower: Value, main: Value, upper: Value, b: Value, perturb_singular: bool = False
) -> Sequence[Value]:
    """tridiagonal_solve(dl, d, du, b)"""
    if perturb_singular:
        ctx.unsupported("perturb_singular", True, "False")
    *_, solution, info = lapack(ctx, "gtsv", lower, main, upper, b)
    return _where_done(ctx, info, "EQ", solution)


def _where_done(ctx: Context, info: Value, direction: str, *values: Value) -> list[Value]:
    """Returns the values, with NaN for each matrix of the batch for which the routine reports a failure."""
    done = ctx.compare(direction, info, ctx.full_like(info, 0))
    return [
        ctx.select(
            ctx.broadcast_in_dim(done, value.type.static_shape, range(done.type.rank)),
            value,
            ctx.full_like(value, np.nan),
        )
        for value in values
    ]


def _require_all(ctx: Context, subset: tuple[int, int] | None, count: int) -> None:
    if subset is not None and tuple(subset) != (0, count):
        ctx.unsupported("subset_by_index", subset, f"all of them, (0, {count})")
