"""Matrix products, all of them the language's general dot product."""

from __future__ import annotations

from trivium.importers.emit import accumulation_type
from trivium.importers.pytorch.context import Context, Number, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import ElementType


@rule("aten.mm.default", "aten.bmm.default", "aten.mv.default", "aten.dot.default", "aten.matmul.default")
def matmul(ctx: Context, x: Value, other: Value) -> Value:
    """matmul(Tensor self, Tensor other) -> Tensor"""
    return _product(ctx, x, other, x.type.element_type)


def _product(ctx: Context, x: Value, other: Value, kind: ElementType) -> Value:
    """Returns the matrix product, in an element type."""
    if other.type.rank == 1:
        return ctx.dot(x, other, ([x.type.rank - 1], [0]), element_type=kind)
    if x.type.rank == 1:
        row = ctx.matmul(ctx.unsqueeze(x, [0]), other, kind)
        return ctx.squeeze(row, [row.type.rank - 2])
    if other.type.rank == 2:
        # One product of all rows, whatever the number of batch dimensions.
        return ctx.dot(x, other, ([x.type.rank - 1], [0]), element_type=kind)
    return ctx.matmul(x, other, kind)


@rule("aten.addmm.default", "aten.baddbmm.default", "aten.addmv.default")
def addmm(ctx: Context, x: Value, mat1: Value, mat2: Value, *, beta: Number = 1, alpha: Number = 1) -> Value:
    """addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"""
    return _weighted(ctx, x, _product(ctx, mat1, mat2, accumulation_type(mat1.type.element_type)), beta, alpha)


@rule("aten.addbmm.default")
def addbmm(ctx: Context, x: Value, batch1: Value, batch2: Value, *, beta: Number = 1, alpha: Number = 1) -> Value:
    """addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"""
    kind = accumulation_type(batch1.type.element_type)
    return _weighted(ctx, x, ctx.dot(batch1, batch2, ([0, 2], [0, 1]), element_type=kind), beta, alpha)


@rule("aten.addr.default")
def addr(ctx: Context, x: Value, vec1: Value, vec2: Value, *, beta: Number = 1, alpha: Number = 1) -> Value:
    """addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"""
    kind = accumulation_type(vec1.type.element_type)
    return _weighted(ctx, x, ctx.dot(vec1, vec2, ([], []), element_type=kind), beta, alpha)


def _weighted(ctx: Context, x: Value, product: Value, beta: Number, alpha: Number) -> Value:
    """Returns `beta * x + alpha * product`, rounded once, as in PyTorch; with `beta` 0, not even a NaN of `x` gets
    through."""
    kind = product.type.element_type
    product = product if alpha == 1 else ctx.times(product, ctx.tensor(alpha, kind))
    if beta != 0:
        x = ctx.convert(x, kind)
        product = ctx.plus(product, x if beta == 1 else ctx.times(x, ctx.tensor(beta, kind)))
    return ctx.convert(product, ctx.result.element_type)


@rule("aten.linear.default")
def linear(ctx: Context, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"""
    kind = input.type.element_type
    wide = kind if bias is None else accumulation_type(kind)
    product = ctx.dot(input, weight, ([input.type.rank - 1], [weight.type.rank - 1]), element_type=wide)
    return product if bias is None else ctx.convert(ctx.plus(product, ctx.convert(bias, wide)), kind)


@rule("aten.outer.default")
def outer(ctx: Context, x: Value, vec2: Value) -> Value:
    """outer(Tensor self, Tensor vec2) -> Tensor"""
    kind = ctx.result.element_type
    return ctx.binary(ops.Multiply, ctx.convert(ctx.unsqueeze(x, [1]), kind), ctx.convert(vec2, kind))


# Products of groups, as the mixtures of experts in transformers call them: its own op where PyTorch's has no kernel


@rule("transformers.grouped_mm_fallback.default")
def grouped(ctx: Context, input: Value, weight: Value, offs: Value) -> Value:
    """grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor"""
    return _ragged(ctx, input, weight, offs, contracted=(1, 1))


@rule("transformers.grouped_mm_fallback_backward.default")
def grouped_backward(ctx: Context, input: Value, weight: Value, offs: Value, grad_output: Value) -> tuple[Value, Value]:
    """grouped_mm_fallback_backward(Tensor input, Tensor weight, Tensor offs, Tensor grad_output) -> (Tensor, Tensor)"""
    of_input = _ragged(ctx, grad_output, weight, offs, contracted=(1, 2))
    return of_input, _ragged(ctx, input, grad_output, offs, contracted=(0, 0))


def _ragged(ctx: Context, lhs: Value, rhs: Value, offs: Value, contracted: tuple[int, int]) -> Value:
    """Returns the products of the groups of rows of `lhs` that end at `offs`: each with a matrix of `rhs`, or, if rows
    are contracted, with the same rows of it."""
    before = ctx.slice(ctx.pad(offs, [1], [0]), 0, 0, offs.type.static_shape[0])
    numbers = ops.RaggedDotDimensionNumbers(
        lhs_contracting_dimensions=contracted[:1],
        rhs_contracting_dimensions=contracted[1:],
        lhs_ragged_dimensions=(0,),
        rhs_group_dimensions=(0,) if rhs.type.rank == 3 else (),
    )
    return ctx.add(ops.RaggedDot(lhs, rhs, ctx.minus(offs, before), ragged_dot_dimension_numbers=numbers))
