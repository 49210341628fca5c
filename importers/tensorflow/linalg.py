"""Linear algebra. Factorizations are calls of LAPACK's routines; of a matrix that cannot be factored the result is NaN,
as of XLA."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import accumulation_type
from trivium.importers.factorizations import adjoint, diagonal_of, half, identities, lapack, permutation_of
from trivium.importers.tensorflow.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I32, is_complex

VECTORS = {True: ord("V"), False: ord("N")}


@rule("Cholesky")
def cholesky(ctx: Context, input: Value) -> Value:
    """Cholesky(input) -> output"""
    return half(ctx, ctx.add(ops.Cholesky(input, lower=True)), "LE") if input.type.size else input


@rule("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def triangular_solve(ctx: Context, matrix: Value, rhs: Value, *, lower: bool, adjoint: bool) -> Value:
    """MatrixTriangularSolve(matrix, rhs; lower=true, adjoint=false) -> output"""
    return _triangular(ctx, *_same_batch(ctx, matrix, rhs), lower, adjoint)


@rule("MatrixSolve")
def matrix_solve(ctx: Context, matrix: Value, rhs: Value, *, adjoint: bool) -> Value:
    """MatrixSolve(matrix, rhs; adjoint=false) -> output"""
    return _solved(ctx, *_same_batch(ctx, matrix, rhs), adjoint)


@rule("BandedTriangularSolve")
def banded_triangular_solve(ctx: Context, matrix: Value, rhs: Value, *, lower: bool, adjoint: bool) -> Value:
    """BandedTriangularSolve(matrix, rhs; lower=true, adjoint=false) -> output"""
    *batch, bands, size = matrix.type.static_shape
    row, column = (ctx.iota((size, size), d, I32) for d in range(2))
    away = ctx.minus(row, column) if lower else ctx.minus(column, row)
    whole = ctx.full((*batch, size, size), 0, matrix.type.element_type)
    for index in range(bands):
        # The diagonal is the first band of a lower matrix, and the last one of an upper matrix.
        distance = index if lower else bands - 1 - index
        band = ctx.squeeze(ctx.slice(matrix, len(batch), index, index + 1), [len(batch)])
        is_here = ctx.compare("EQ", away, ctx.scalar(distance, I32))
        whole = ctx.select(is_here, ctx.unsqueeze(band, [len(batch) + 1]), whole)
    return _triangular(ctx, *_same_batch(ctx, whole, rhs), lower, adjoint)


@rule("MatrixSolveLs")
def matrix_solve_ls(ctx: Context, matrix: Value, rhs: Value, l2_regularizer: Value, *, fast: bool) -> Value:
    """MatrixSolveLs(matrix, rhs, l2_regularizer; fast=true) -> output"""
    *batch, rows, columns = matrix.type.static_shape
    if not matrix.type.size or not rhs.type.size:
        return ctx.full((*batch, columns, rhs.type.static_shape[-1]), 0, matrix.type.element_type)
    if not fast:
        return _least_norm(ctx, matrix, rhs)
    other = adjoint(ctx, matrix)
    if rows >= columns:
        return _from_gramian(ctx, ctx.matmul(other, matrix), l2_regularizer, ctx.matmul(other, rhs))
    return ctx.matmul(other, _from_gramian(ctx, ctx.matmul(matrix, other), l2_regularizer, rhs))


def _from_gramian(ctx: Context, gramian: Value, regularizer: Value, rhs: Value) -> Value:
    """Returns the solution for a positive definite matrix, to whose diagonal a number is added."""
    kind = gramian.type.element_type
    ones = identities(ctx, gramian.type.static_shape, kind)
    raised = ctx.plus(gramian, ctx.times(ones, ctx.convert(regularizer, kind)))
    factor = ctx.add(ops.Cholesky(raised, lower=True))
    return _triangular(ctx, factor, _triangular(ctx, factor, rhs, True, False), True, True)


def _least_norm(ctx: Context, matrix: Value, rhs: Value) -> Value:
    """Returns the smallest solution with the least squares. What is left of a singular value by rounding is zero."""
    values, left, right = _singular(ctx, matrix, ord("S"))
    if is_complex(matrix.type.element_type):
        values = ctx.add(ops.Real(values))
    last = values.type.rank - 1
    most = ctx.reduce(ops.Maximum, values, [last], keep=True)
    least = ctx.scaled(most, float(np.finfo(values.type.element_type.dtype).eps) * values.type.static_shape[-1])
    inverses = ctx.over(ctx.constant_like(values, 1), values)
    inverses = ctx.select(ctx.compare("GT", values, least), inverses, ctx.constant_like(values, 0))
    seen = ctx.matmul(adjoint(ctx, left), rhs)
    scaled = ctx.times(ctx.convert(ctx.unsqueeze(inverses, [last + 1]), rhs.type.element_type), seen)
    return ctx.matmul(right, scaled)


@rule("MatrixInverse")
def matrix_inverse(ctx: Context, input: Value, *, adjoint: bool) -> Value:
    """MatrixInverse(input; adjoint=false) -> output"""
    kind = input.type.element_type
    input = ctx.convert(input, accumulation_type(kind))
    return ctx.convert(_solved(ctx, input, identities(ctx, ctx.extents(input), input.type.element_type), adjoint), kind)


@rule("Lu")
def lu(ctx: Context, input: Value) -> tuple[Value, Value]:
    """Lu(input; output_idx_type=DT_INT32) -> lu, p"""
    factors, pivots, _ = lapack(ctx, "getrf", input)
    order = permutation_of(ctx, pivots, input.type.static_shape[-2])
    return factors, ctx.convert(order, ctx.result_types[1].element_type)


@rule("MatrixDeterminant")
def matrix_determinant(ctx: Context, input: Value) -> Value:
    """MatrixDeterminant(input) -> output"""
    diagonal, sign = _eliminated(ctx, input)
    return ctx.times(ctx.reduce(ops.Multiply, diagonal, [diagonal.type.rank - 1]), sign)


@rule("LogMatrixDeterminant")
def log_matrix_determinant(ctx: Context, input: Value) -> tuple[Value, Value]:
    """LogMatrixDeterminant(input) -> sign, log_abs_determinant"""
    diagonal, sign = _eliminated(ctx, input)
    last = [diagonal.type.rank - 1]
    sign = ctx.times(ctx.reduce(ops.Multiply, ctx.add(ops.Sign(diagonal)), last), sign)
    log = ctx.reduce(ops.Add, ctx.add(ops.Log(ctx.add(ops.Abs(diagonal)))), last)
    return sign, ctx.convert(log, input.type.element_type)


@rule("Qr")
def qr(ctx: Context, input: Value, *, full_matrices: bool) -> tuple[Value, Value]:
    """Qr(input; full_matrices=false) -> q, r"""
    *batch, rows, columns = input.type.static_shape
    count, kind = rows if full_matrices else min(rows, columns), input.type.element_type
    if not input.type.size:
        q, r = (identities(ctx, (*batch, *shape), kind) for shape in ((rows, count), (count, columns)))
        return q, r
    reflected, scales = lapack(ctx, "geqrf", ctx.convert(input, accumulation_type(kind)))
    r = half(ctx, ctx.slice(reflected, len(batch), 0, min(count, rows)), "GE")
    last = len(batch) + 1
    wide = ctx.slice(reflected, last, 0, min(count, columns))
    wide = ctx.pad(wide, [0] * (last + 1), [*[0] * last, max(count - columns, 0)])
    return ctx.convert(lapack(ctx, "orgqr", wide, scales)[0], kind), ctx.convert(r, kind)


@rule("SelfAdjointEigV2")
def self_adjoint_eig(ctx: Context, input: Value, *, compute_v: bool) -> tuple[Value, Value]:
    """SelfAdjointEigV2(input; compute_v=true) -> e, v"""
    vectors, values, info = lapack(ctx, "syevd", input, mode=VECTORS[compute_v], uplo=ord("L"))
    values = ctx.convert(where_done(ctx, info, values), input.type.element_type)
    return values, where_done(ctx, info, vectors) if compute_v else ctx.full((0,), 0, input.type.element_type)


@rule("XlaSelfAdjointEig")
def xla_self_adjoint_eig(ctx: Context, a: Value, *, lower: bool, max_iter: int, epsilon: float) -> Sequence[Value]:
    """XlaSelfAdjointEig(a; lower, max_iter, epsilon) -> w, v"""
    vectors, values, info = lapack(ctx, "syevd", a, mode=VECTORS[True], uplo=ord("L" if lower else "U"))
    return ctx.convert(where_done(ctx, info, values), a.type.element_type), where_done(ctx, info, vectors)


@rule("Eig")
def eig(ctx: Context, input: Value, *, compute_v: bool) -> tuple[Value, Value]:
    """Eig(input; compute_v=true) -> e, v"""
    *values, _, vectors, info = lapack(
        ctx, "geev", input, compute_left=VECTORS[False], compute_right=VECTORS[compute_v]
    )
    found = ctx.add(ops.Complex(*values)) if len(values) == 2 else values[0]
    kind = ctx.result_types[1]
    return where_done(ctx, info, found), (
        where_done(ctx, info, vectors) if compute_v else ctx.full((0,), 0, kind.element_type)
    )


@rule("Svd")
def svd(ctx: Context, input: Value, *, compute_uv: bool, full_matrices: bool) -> tuple[Value, Value, Value]:
    """Svd(input; compute_uv=true, full_matrices=false) -> s, u, v"""
    kind, (*batch, rows, columns) = input.type.element_type, input.type.static_shape
    if not input.type.size:
        least = min(rows, columns)
        sides = ((rows, rows if full_matrices else least), (columns, columns if full_matrices else least))
        left, right = (identities(ctx, (*batch, *side) if compute_uv else (0,), kind) for side in sides)
        return ctx.full((*batch, least), 0, kind), left, right
    values, left, right = _singular(ctx, input, ord("A" if full_matrices else "S") if compute_uv else ord("N"))
    if not compute_uv:
        return values, ctx.full((0,), 0, kind), ctx.full((0,), 0, kind)
    return values, left, right


@rule("XlaSvd")
def xla_svd(
    ctx: Context, a: Value, *, max_iter: int, epsilon: float, precision_config: str
) -> tuple[Value, Value, Value]:
    """XlaSvd(a; max_iter, epsilon, precision_config) -> s, u, v"""
    return _singular(ctx, a, ord("S"))


def _singular(ctx: Context, x: Value, mode: int) -> tuple[Value, Value, Value]:
    """Returns singular values, left and right vectors: the latter are columns here, rows in LAPACK."""
    _, values, left, right, info = lapack(ctx, "gesdd", x, mode=mode)
    values = ctx.convert(where_done(ctx, info, values), x.type.element_type)
    return values, where_done(ctx, info, left), adjoint(ctx, where_done(ctx, info, right))


@rule("TridiagonalMatMul")
def tridiagonal_matmul(ctx: Context, superdiag: Value, maindiag: Value, subdiag: Value, rhs: Value) -> Value:
    """TridiagonalMatMul(superdiag, maindiag, subdiag, rhs) -> output"""
    last = rhs.type.rank - 2
    count = rhs.type.static_shape[last]
    above, middle, below = (ctx.unsqueeze(ctx.squeeze(x, [last]), [last + 1]) for x in (superdiag, maindiag, subdiag))
    nothing = [0] * rhs.type.rank
    one = [int(d == last) for d in range(rhs.type.rank)]
    after = ctx.pad(ctx.slice(rhs, last, 1, count), nothing, one)
    before = ctx.pad(ctx.slice(rhs, last, 0, count - 1), one, nothing)
    # The elements outside the matrix are multiplied by zeros, unless they are not finite.
    inside = ctx.iota(above.type.static_shape, last, I32)
    above = ctx.select(ctx.compare("LT", inside, ctx.scalar(count - 1, I32)), above, ctx.constant_like(above, 0))
    below = ctx.select(ctx.compare("GT", inside, ctx.scalar(0, I32)), below, ctx.constant_like(below, 0))
    return ctx.plus(ctx.plus(ctx.times(above, after), ctx.times(middle, rhs)), ctx.times(below, before))


@rule("TridiagonalSolve")
def tridiagonal_solve(
    ctx: Context, diagonals: Value, rhs: Value, *, partial_pivoting: bool, perturb_singular: bool
) -> Value:
    """TridiagonalSolve(diagonals, rhs; partial_pivoting=true, perturb_singular=false) -> output"""
    if perturb_singular:
        ctx.unsupported("perturb_singular", True, "false")
    last = diagonals.type.rank - 2
    count = diagonals.type.static_shape[-1]
    upper, main, lower = (ctx.squeeze(ctx.slice(diagonals, last, i, i + 1), [last]) for i in range(3))
    edge = ctx.iota(main.type.static_shape, last, I32)
    upper = ctx.select(ctx.compare("LT", edge, ctx.scalar(count - 1, I32)), upper, ctx.constant_like(upper, 0))
    lower = ctx.select(ctx.compare("GT", edge, ctx.scalar(0, I32)), lower, ctx.constant_like(lower, 0))
    *_, solution, info = lapack(ctx, "gtsv", lower, main, upper, rhs)
    return where_done(ctx, info, solution)


def _solved(ctx: Context, matrix: Value, rhs: Value, is_adjoint: bool) -> Value:
    """Returns the solution by elimination with the rows in another order: P A = L U."""
    if not matrix.type.size or not rhs.type.size:
        return rhs
    factors, pivots, info = lapack(ctx, "getrf", matrix)
    rows = matrix.type.static_shape[-1]
    order = permutation_of(ctx, pivots, rows)
    places = ctx.iota((rows,), 0, I32)
    # A matrix that moves rows: row i of P has its one at the place that comes there.
    ones = ctx.compare("EQ", ctx.unsqueeze(order, [order.type.rank]), places)
    permutation = ctx.convert(ones, matrix.type.element_type)
    if is_adjoint:
        y = _triangular(ctx, factors, rhs, False, True)
        y = _triangular(ctx, factors, y, True, True, unit=True)
        rank = permutation.type.rank
        found = ctx.matmul(ctx.transpose(permutation, [*range(rank - 2), rank - 1, rank - 2]), y)
    else:
        y = _triangular(ctx, factors, ctx.matmul(permutation, rhs), True, False, unit=True)
        found = _triangular(ctx, factors, y, False, False)
    return where_done(ctx, info, found)


def _eliminated(ctx: Context, x: Value) -> tuple[Value, Value]:
    """Returns the diagonal after elimination, and the sign of the permutation of rows."""
    factors, pivots, _ = lapack(ctx, "getrf", x)
    last = pivots.type.rank - 1
    own = ctx.iota(pivots.type.static_shape, last, I32)
    moved = ctx.compare("NE", pivots, ctx.plus(own, ctx.scalar(1, I32)))
    signs = ctx.select(moved, ctx.full_like(pivots, -1), ctx.full_like(pivots, 1))
    return diagonal_of(ctx, factors), ctx.convert(ctx.reduce(ops.Multiply, signs, [last]), x.type.element_type)


def _triangular(ctx: Context, a: Value, b: Value, lower: bool, is_adjoint: bool, unit: bool = False) -> Value:
    transposed = "ADJOINT" if is_complex(a.type.element_type) else "TRANSPOSE"
    transpose_a = ops.TransposeMode(transposed if is_adjoint else "NO_TRANSPOSE")
    return ctx.add(ops.TriangularSolve(a, b, left_side=True, lower=lower, unit_diagonal=unit, transpose_a=transpose_a))


def _same_batch(ctx: Context, a: Value, b: Value) -> tuple[Value, Value]:
    batch = np.broadcast_shapes(a.type.static_shape[:-2], b.type.static_shape[:-2])
    mine, theirs = (ctx.broadcast(x, (*batch, *x.type.static_shape[-2:])) for x in (a, b))
    return mine, theirs


def where_done(ctx: Context, info: Value, x: Value) -> Value:
    """Returns `x`, with NaN for each matrix of the batch for which the routine reports a failure."""
    done = ctx.compare("EQ", info, ctx.full_like(info, 0))
    done = ctx.broadcast_in_dim(done, x.type.static_shape, range(done.type.rank))
    return ctx.select(done, x, ctx.full_like(x, math.nan))
