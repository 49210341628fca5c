"""Factorizations, which are calls of LAPACK's routines, as in PyTorch itself; what follows from them is expressed in
terms of others (`composed_linalg`). `info` says which matrices could not be factored: where PyTorch raises an error of
it, a compiled graph does."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from trivium.importers.extents import larger, smaller
from trivium.importers.factorizations import (
    adjoint,
    conjugate,
    diagonal_of,
    element_at,
    half,
    identities,
    lapack,
    permutation_of,
    real_part,
)
from trivium.importers.pytorch.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I32, I64, is_complex

VALUE, LOWER = ord("V"), ord("L")


@rule("aten._linalg_check_errors.default")
def check_errors(ctx: Context, info: Value, api_name: str, *, is_matrix: bool) -> None:
    """_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()"""

    def verify(found: torch.Tensor) -> None:
        torch.ops.aten._linalg_check_errors.default(found, api_name, is_matrix=is_matrix)

    ctx.check(info, verify)


@rule("aten.linalg_cholesky_ex.default")
def cholesky_ex(ctx: Context, x: Value, *, upper: bool = False, check_errors: bool = False) -> tuple[Value, Value]:
    """linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)"""
    a = adjoint(ctx, x) if upper else x
    if 0 in x.type.shape:
        return x, ctx.full(ctx.extents(x)[:-2], 0, I32)
    factor = half(ctx, ctx.add(ops.Cholesky(a, lower=True)), "LE")
    info = _failed_minor(ctx, a, factor)
    _check(ctx, check_errors, info, "linalg.cholesky_ex", x)
    return adjoint(ctx, factor) if upper else factor, info


def _failed_minor(ctx: Context, a: Value, factor: Value) -> Value:
    """Returns the order of the first leading minor that is not positive definite, or 0. Only where a factor has NaN,
    the matrix is eliminated row by row to find it."""
    *batch, order, _ = ctx.extents(a)
    count, end = len(batch), ctx.number_as(order, I32)
    diagonal = real_part(ctx, diagonal_of(ctx, factor))
    failed = ctx.reduce(ops.Or, ctx.compare("NE", diagonal, diagonal), [count])

    def more(emit: Context, step: Value, a: Value, info: Value) -> Value:
        open_ = emit.binary(ops.And, failed, emit.compare("EQ", info, emit.full_like(info, 0)))
        unfinished = emit.compare("LT", step, end)
        return emit.binary(ops.And, unfinished, emit.reduce(ops.Or, open_, range(count)))

    def advance(emit: Context, step: Value, a: Value, info: Value) -> Sequence[Value]:
        pivot = real_part(emit, element_at(emit, element_at(emit, a, step, count), step, count))
        bad = emit.binary(ops.Or, emit.compare("LE", pivot, emit.full_like(pivot, 0)), emit.compare("NE", pivot, pivot))
        first = emit.binary(ops.And, bad, emit.compare("EQ", info, emit.full_like(info, 0)))
        next_ = emit.plus(step, emit.scalar(1, I32))
        found = emit.select(first, next_, info)
        column = element_at(emit, a, step, count + 1)
        scaled = emit.over(column, emit.unsqueeze(emit.convert(pivot, a.type.element_type), [count]))
        product = emit.times(emit.unsqueeze(scaled, [count + 1]), emit.unsqueeze(conjugate(emit, column), [count]))
        return next_, emit.minus(a, product), found

    # Of a Hermitian matrix the routine reads one half.
    below = half(ctx, a, "LT")
    whole = ctx.plus(half(ctx, a, "LE"), adjoint(ctx, below))
    start = [ctx.scalar(0, I32), whole, ctx.full(batch, 0, I32)]
    types = [value.type for value in start]
    return ctx.add(ops.While(start, cond=ctx.region(types, more), body=ctx.region(types, advance)))[2]


@rule("aten.linalg_lu_factor_ex.default")
def lu_factor_ex(
    ctx: Context, x: Value, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Value, Value, Value]:
    """linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False)
    -> (Tensor LU, Tensor pivots, Tensor info)"""
    if not pivot:
        ctx.unsupported("pivot", False, "True")
    if 0 in x.type.shape:
        return x, _zeros(ctx, 1), _zeros(ctx, 2)
    factors, pivots, info = lapack(ctx, "getrf", x)
    _check(ctx, check_errors, info, "torch.linalg.lu_factor_ex", x)
    return factors, pivots, info


@rule("aten.lu_unpack.default")
def lu_unpack(
    ctx: Context, x: Value, pivots: Value, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Value, Value, Value]:
    """lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True)
    -> (Tensor P, Tensor L, Tensor U)"""
    *_, rows, columns = ctx.extents(x)
    count, rank = smaller(ctx, rows, columns), x.type.rank
    permutation, lower, upper = (_zeros(ctx, index) for index in range(3))
    if unpack_pivots:
        order = permutation_of(ctx, pivots, rows)
        places = ctx.iota((rows, 1), 0, I32)
        permutation = ctx.convert(ctx.compare("EQ", places, ctx.unsqueeze(order, [rank - 2])), x.type.element_type)
    if unpack_data:
        below = half(ctx, ctx.slice(x, rank - 1, 0, count), "LT")
        lower = ctx.plus(below, identities(ctx, ctx.extents(below), x.type.element_type))
        upper = half(ctx, ctx.slice(x, rank - 2, 0, count), "GE")
    return permutation, lower, upper


@rule("aten.linalg_ldl_factor_ex.default")
def ldl_factor_ex(
    ctx: Context, x: Value, *, hermitian: bool = False, check_errors: bool = False
) -> tuple[Value, Value, Value]:
    """linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False)
    -> (Tensor LD, Tensor pivots, Tensor info)"""
    if 0 in x.type.shape:
        return x, _zeros(ctx, 1), _zeros(ctx, 2)
    routine = "hetrf" if hermitian and is_complex(x.type.element_type) else "sytrf"
    factors, pivots, info = lapack(ctx, routine, half(ctx, x, "LE"), uplo=LOWER)
    _check(ctx, check_errors, info, "torch.linalg.ldl_factor_ex", x)
    return factors, pivots, info


@rule("aten.linalg_ldl_solve.default")
def ldl_solve(ctx: Context, x: Value, pivots: Value, b: Value, *, hermitian: bool = False) -> Value:
    """linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor"""
    *batch, order, _ = shape = ctx.shape
    if 0 in shape:
        return _zeros(ctx, 0)
    routine = "hetrs" if hermitian and is_complex(x.type.element_type) else "sytrs"
    factors = ctx.broadcast(x, (*batch, order, order))
    swaps = ctx.convert(ctx.broadcast(pivots, (*batch, order)), I32)
    return lapack(ctx, routine, factors, swaps, ctx.broadcast(b, shape), uplo=LOWER)[0]


@rule("aten.linalg_solve_triangular.default")
def solve_triangular(
    ctx: Context, x: Value, b: Value, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Value:
    """linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False)
    -> Tensor"""
    shape = ctx.shape
    a, b = ctx.broadcast(x, (*shape[:-2], *ctx.extents(x)[-2:])), ctx.broadcast(b, shape)
    if 0 in shape:
        return b
    mode = ops.TransposeMode("NO_TRANSPOSE")
    return ctx.add(
        ops.TriangularSolve(a, b, left_side=left, lower=not upper, unit_diagonal=unitriangular, transpose_a=mode)
    )


@rule("aten.geqrf.default")
def geqrf(ctx: Context, x: Value) -> Sequence[Value]:
    """geqrf(Tensor self) -> (Tensor a, Tensor tau)"""
    if 0 in x.type.shape:
        return x, _zeros(ctx, 1)
    return lapack(ctx, "geqrf", x)


@rule("aten.linalg_householder_product.default")
def householder_product(ctx: Context, input: Value, tau: Value) -> Value:
    """linalg_householder_product(Tensor input, Tensor tau) -> Tensor"""
    if 0 in tau.type.shape:
        return identities(ctx, ctx.extents(input), input.type.element_type)
    return lapack(ctx, "orgqr", input, tau)[0]


@rule("aten.ormqr.default")
def ormqr(ctx: Context, x: Value, tau: Value, other: Value, left: bool = True, transpose: bool = False) -> Value:
    """ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor"""
    if 0 in (*tau.type.shape, *other.type.shape):
        return other
    return lapack(ctx, "ormqr", x, tau, other, left=int(left), transpose=int(transpose))[0]


@rule("aten.linalg_qr.default")
def qr(ctx: Context, x: Value, mode: str = "reduced") -> tuple[Value, Value]:
    """linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)"""
    left, right = (ctx.shape_of(each) for each in ctx.described)
    kind, last = x.type.element_type, x.type.rank - 1
    if 0 in x.type.shape:
        return identities(ctx, left, kind), ctx.full(right, 0, kind)
    factors, tau = lapack(ctx, "geqrf", x)
    upper = half(ctx, ctx.slice(factors, last - 1, 0, right[-2]), "GE")
    if 0 in left:
        return ctx.full(left, 0, kind), upper
    wanted, none = left[-1], [0] * last
    beyond = larger(ctx, wanted - ctx.extent(x, last), 0)
    factors = ctx.pad(factors, [*none, 0], [*none, beyond])
    return lapack(ctx, "orgqr", ctx.slice(factors, last, 0, wanted), tau)[0], upper


@rule("aten._linalg_eigh.default")
def eigh(ctx: Context, x: Value, UPLO: str = "L", compute_v: bool = True) -> tuple[Value, Value]:
    """_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)"""
    if 0 in x.type.shape:
        return _zeros(ctx, 0), _zeros(ctx, 1)
    right, found, info = lapack(ctx, "syevd", x, mode=VALUE if compute_v else ord("N"), uplo=ord(UPLO.upper()[0]))
    _check(ctx, True, info, "linalg.eigh", x)
    return found, right if compute_v else _zeros(ctx, 1)


@rule("aten.linalg_eig.default", "aten._linalg_eigvals.default")
def eig(ctx: Context, x: Value) -> tuple[Value, Value] | Value:
    """linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)"""
    vectors = len(ctx.results) > 1
    if 0 in x.type.shape:
        return (_zeros(ctx, 0), _zeros(ctx, 1)) if vectors else _zeros(ctx, 0)
    *values, _, right, info = lapack(
        ctx, "geev", x, compute_left=ord("N"), compute_right=VALUE if vectors else ord("N")
    )
    _check(ctx, True, info, "torch.linalg.eig" if vectors else "torch.linalg.eigvals", x)
    found = ctx.add(ops.Complex(*values)) if len(values) == 2 else values[0]
    return (found, right) if vectors else found


@rule("aten._linalg_svd.default")
def svd(
    ctx: Context, x: Value, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> Sequence[Value]:
    """_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None)
    -> (Tensor U, Tensor S, Tensor Vh)"""
    if 0 in x.type.shape:
        shapes = map(ctx.shape_of, ctx.described)
        return [identities(ctx, shape, kind.element_type) for shape, kind in zip(shapes, ctx.result_types, strict=True)]
    mode = ord("A" if full_matrices else "S") if compute_uv else ord("N")
    _, values, left, right, info = lapack(ctx, "gesdd", x, mode=mode)
    _check(ctx, True, info, "linalg.svd", x)
    if compute_uv:
        return left, values, right
    return _zeros(ctx, 0), values, _zeros(ctx, 2)


TERMS, LARGEST = 18, 0.5
"""Terms of the series of a matrix's exponential, and the norm up to which they are enough in double precision."""


@rule("aten.linalg_matrix_exp.default")
def matrix_exp(ctx: Context, x: Value) -> Value:
    """linalg_matrix_exp(Tensor self) -> Tensor"""
    if 0 in x.type.shape:
        return x
    rank, kind = x.type.rank, x.type.element_type
    length = real_part(ctx, ctx.add(ops.Abs(x)))
    norm = ctx.reduce(ops.Maximum, ctx.reduce(ops.Add, length, [rank - 2]), [rank - 2])
    # Halved until the series converges, and squared as often afterwards.
    excess = ctx.over(norm, ctx.full_like(norm, LARGEST))
    doublings = ctx.over(ctx.add(ops.Log(excess)), ctx.full_like(norm, math.log(2)))
    times = ctx.binary(ops.Maximum, ctx.add(ops.Ceil(doublings)), ctx.full_like(norm, 0))
    finite = ctx.compare("LT", norm, ctx.full_like(norm, math.inf))
    times = ctx.select(finite, times, ctx.full_like(norm, 0))
    scale = ctx.binary(ops.Power, ctx.full_like(norm, 0.5), times)
    small = ctx.times(x, ctx.unsqueeze(ctx.convert(scale, kind), [rank - 2, rank - 1]))
    one = identities(ctx, ctx.extents(x), kind)
    total = one
    for number in range(TERMS, 0, -1):
        total = ctx.plus(one, ctx.over(ctx.matmul(small, total), ctx.full_like(total, number)))
    return _squared(ctx, total, ctx.convert(times, I64))


def _squared(ctx: Context, x: Value, times: Value) -> Value:
    """Squares each matrix as many times as `times` says."""
    most = ctx.reduce(ops.Maximum, times, range(times.type.rank))
    each = ctx.unsqueeze(times, [times.type.rank, times.type.rank + 1])

    def more(emit: Context, step: Value, x: Value) -> Value:
        return emit.compare("LT", step, most)

    def advance(emit: Context, step: Value, x: Value) -> Sequence[Value]:
        unfinished = emit.compare("LT", step, each)
        return emit.plus(step, emit.scalar(1, I64)), emit.select(unfinished, emit.matmul(x, x), x)

    start = [ctx.scalar(0, I64), x]
    types = [value.type for value in start]
    return ctx.add(ops.While(start, cond=ctx.region(types, more), body=ctx.region(types, advance)))[1]


def _check(ctx: Context, wanted: bool, info: Value, name: str, x: Value) -> None:
    if wanted:
        check_errors(ctx, info, name, is_matrix=x.type.rank == 2)


def _zeros(ctx: Context, index: int) -> Value:
    """Returns zeros, or nothing, in the place of one of the results."""
    return ctx.full(ctx.shape_of(ctx.described[index]), 0, ctx.result_types[index].element_type)
