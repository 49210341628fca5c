"""Square roots of matrices, by the method of Björck and Hammarling: the root of a triangular matrix is triangular, and
its columns follow from each other. Logarithms follow from roots of roots, by Higham, "Functions of matrices" (2008)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import ml_dtypes
import numpy as np

from trivium.importers.emit import accumulation_type
from trivium.importers.factorizations import adjoint, diagonal_of, half, identities, lapack
from trivium.importers.loops import scan
from trivium.importers.tensorflow.context import Context, rule
from trivium.importers.tensorflow.linalg import VECTORS, where_done
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import C128, F64, I32, ComplexType, is_complex


@rule("MatrixSquareRoot")
def matrix_square_root(ctx: Context, input: Value) -> Value:
    """MatrixSquareRoot(input) -> output"""
    if not input.type.size:
        return input
    kind = input.type.element_type
    wide = ctx.convert(input, accumulation_type(kind))
    form, vectors, *_, info = lapack(ctx, "gees", _as_complex(ctx, wide), mode=VECTORS[True], sort=ord("N"))
    whole = ctx.matmul(ctx.matmul(vectors, _root_of_triangular(ctx, form)), adjoint(ctx, vectors))
    whole = where_done(ctx, info, whole)
    return whole if is_complex(kind) else ctx.convert(_real_root(ctx, whole), kind)


def _as_complex(ctx: Context, x: Value) -> Value:
    return x if is_complex(x.type.element_type) else ctx.binary(ops.Complex, x, ctx.full_like(x, 0))


def _root_of_triangular(ctx: Context, form: Value) -> Value:
    """Returns the upper triangular root of an upper triangular matrix, one column after the other."""
    *batch, _, size = form.type.static_shape
    last = len(batch)
    columns = ctx.transpose(form, [last + 1, *range(last + 1)])
    place, row, column = (ctx.iota(shape, d, I32) for shape, d in (((size,), 0), ((size, size), 0), ((size, size), 1)))
    ones = identities(ctx, (size, size), form.type.element_type)

    def step(emit: Context, state: Sequence[Value], given: Sequence[Value]) -> list[Value]:
        (root,), (own, index) = state, given
        none = emit.full_like(own, 0)
        above, here = (emit.compare(which, place, index) for which in ("LT", "EQ"))
        diagonal = emit.add(ops.Sqrt(emit.reduce(ops.Add, emit.select(here, own, none), [last], keep=True)))
        # Only rows above the diagonal have unknowns; the others are those of the identity, and zero.
        shift = emit.select(above, emit.broadcast(diagonal, none.type.static_shape), emit.full_like(none, 1))
        factors = emit.plus(root, emit.times(emit.unsqueeze(shift, [last]), ones))
        known = emit.unsqueeze(emit.select(above, own, none), [last + 1])
        solved = emit.squeeze(_solved(emit, factors, known), [last + 1])
        whole = emit.unsqueeze(emit.select(here, diagonal, solved), [last + 1])
        return [emit.select(emit.compare("EQ", column, index), whole, root)]

    (root,) = scan(ctx, step, [ctx.full_like(form, 0)], [columns, place], [], size)
    return ctx.select(ctx.compare("LE", row, column), root, ctx.full_like(root, 0))


def _solved(ctx: Context, a: Value, b: Value) -> Value:
    none = ops.TransposeMode("NO_TRANSPOSE")
    return ctx.add(ops.TriangularSolve(a, b, left_side=True, lower=False, unit_diagonal=False, transpose_a=none))


def _real_root(ctx: Context, whole: Value) -> Value:
    """Returns the real part of a root, and NaN for matrices whose root is not real: its other part is more than what
    rounding leaves."""
    kind = whole.type.element_type
    assert isinstance(kind, ComplexType)
    last = whole.type.rank - 1
    real, other = ctx.add(ops.Real(whole)), ctx.add(ops.Imag(whole))
    sizes = (ctx.reduce(ops.Maximum, ctx.add(ops.Abs(x)), [last - 1, last], keep=True) for x in (other, whole))
    imaginary, largest = sizes
    limit = ctx.scaled(largest, math.sqrt(float(ml_dtypes.finfo(kind.element_type.dtype).eps)))
    return ctx.select(ctx.compare("LE", imaginary, limit), real, ctx.full_like(real, math.nan))


# Logarithms

CLOSE = 0.25
"""How far from the identity a matrix may be whose logarithm is computed by quadrature."""

NODES = 8
"""With them, the rule of Gauss and Legendre is exact to 64 bits for matrices that are close."""

MOST_ROOTS = 64


@rule("MatrixLogarithm")
def matrix_logarithm(ctx: Context, input: Value) -> Value:
    """MatrixLogarithm(input) -> output: NaN for singular matrices"""
    if not input.type.size:
        return input
    wide = ctx.convert(input, C128)
    form, vectors, *_, info = lapack(ctx, "gees", wide, mode=VECTORS[True], sort=ord("N"))
    upper = half(ctx, form, "GE")
    root, power = _root_close_to_one(ctx, upper)
    logarithm = ctx.times(_logarithm_close_to_one(ctx, root), ctx.convert(power, C128))
    # The diagonal follows from that of the matrix, without the rounding of roots.
    ones = identities(ctx, upper.type.static_shape, C128)
    on_diagonal = ctx.compare("NE", ones, ctx.full_like(ones, 0))
    logarithm = ctx.select(on_diagonal, ctx.add(ops.Log(ctx.select(on_diagonal, upper, ones))), logarithm)
    whole = ctx.matmul(ctx.matmul(vectors, logarithm), adjoint(ctx, vectors))
    diagonal = diagonal_of(ctx, upper)
    last = whole.type.rank - 1
    is_zero = ctx.compare("EQ", diagonal, ctx.full_like(diagonal, 0))
    is_singular = ctx.unsqueeze(ctx.reduce(ops.Or, is_zero, [last - 1]), [last - 1, last])
    whole = ctx.select(is_singular, ctx.full_like(whole, complex(math.nan, math.nan)), whole)
    return ctx.convert(where_done(ctx, info, whole), input.type.element_type)


def _root_close_to_one(ctx: Context, form: Value) -> tuple[Value, Value]:
    """Returns roots of triangular matrices that are close to the identity, and the powers that they have to be raised
    to: a root of the root, again and again."""
    ones = identities(ctx, form.type.static_shape, C128)
    last = form.type.rank - 1

    def is_far(emit: Context, root: Value) -> Value:
        sizes = emit.reduce(ops.Add, emit.add(ops.Abs(emit.minus(root, ones))), [last - 1], keep=True)
        return emit.compare("GT", emit.reduce(ops.Maximum, sizes, [last], keep=True), emit.scalar(CLOSE, F64))

    def condition(emit: Context, turn: Value, root: Value, _: Value) -> Value:
        goes_on = emit.reduce(ops.Or, is_far(emit, root), range(last + 1))
        return emit.binary(ops.And, goes_on, emit.compare("LT", turn, emit.scalar(MOST_ROOTS, I32)))

    def body(emit: Context, turn: Value, root: Value, power: Value) -> list[Value]:
        far = is_far(emit, root)
        root = emit.select(far, _root_of_triangular(emit, root), root)
        power = emit.select(far, emit.scaled(power, 2), power)
        return [emit.plus(turn, emit.scalar(1, I32)), root, power]

    powers = ctx.full((*form.type.static_shape[:-2], 1, 1), 1, F64)
    carried = [ctx.scalar(0, I32), form, powers]
    types = [x.type for x in carried]
    _, root, power = ctx.add(ops.While(carried, ctx.region(types, condition), ctx.region(types, body)))
    return root, power


def _logarithm_close_to_one(ctx: Context, x: Value) -> Value:
    """Returns the integral of `(x - 1) / (1 + t (x - 1))` from 0 to 1, by the rule of Gauss and Legendre."""
    ones = identities(ctx, x.type.static_shape, C128)
    rest = ctx.minus(x, ones)
    total = ctx.full_like(rest, 0)
    for node, weight in zip(*np.polynomial.legendre.leggauss(NODES), strict=True):
        below = ctx.plus(ones, ctx.times(rest, ctx.full_like(rest, (1 + node) / 2)))
        total = ctx.plus(total, ctx.times(_solved(ctx, below, rest), ctx.full_like(rest, weight / 2)))
    return total
