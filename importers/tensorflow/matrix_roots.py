"""Square roots of matrices, by the method of Björck and Hammarling: the root of a triangular matrix is triangular, and
its columns follow from each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import ml_dtypes

from trivium.importers.emit import accumulation_type
from trivium.importers.factorizations import adjoint, identities, lapack
from trivium.importers.loops import scan
from trivium.importers.tensorflow.context import Context, rule
from trivium.importers.tensorflow.linalg import VECTORS, where_done
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I32, ComplexType, is_complex


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
