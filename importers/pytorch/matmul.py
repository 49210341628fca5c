"""Matrix products, all of them the language's general dot product."""

from __future__ import annotations

from trivium.importers.pytorch.context import Context, Number, rule
from trivium.ir import ops
from trivium.ir.core import Value


@rule("aten.mm.default", "aten.bmm.default", "aten.mv.default", "aten.dot.default", "aten.matmul.default")
def matmul(ctx: Context, x: Value, other: Value) -> Value:
    """matmul(Tensor self, Tensor other) -> Tensor"""
    if other.type.rank == 1:
        return ctx.dot(x, other, ([x.type.rank - 1], [0]))
    if x.type.rank == 1:
        row = ctx.matmul(ctx.unsqueeze(x, [0]), other)
        return ctx.squeeze(row, [row.type.rank - 2])
    if other.type.rank == 2:
        # One product of all rows, whatever the number of batch dimensions.
        return ctx.dot(x, other, ([x.type.rank - 1], [0]))
    return ctx.matmul(x, other)


@rule("aten.addmm.default", "aten.baddbmm.default", "aten.addmv.default")
def addmm(ctx: Context, x: Value, mat1: Value, mat2: Value, *, beta: Number = 1, alpha: Number = 1) -> Value:
    """addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"""
    return _weighted(ctx, x, matmul(ctx, mat1, mat2), beta, alpha)


@rule("aten.addbmm.default")
def addbmm(ctx: Context, x: Value, batch1: Value, batch2: Value, *, beta: Number = 1, alpha: Number = 1) -> Value:
    """addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"""
    return _weighted(ctx, x, ctx.dot(batch1, batch2, ([0, 2], [0, 1])), beta, alpha)


@rule("aten.addr.default")
def addr(ctx: Context, x: Value, vec1: Value, vec2: Value, *, beta: Number = 1, alpha: Number = 1) -> Value:
    """addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"""
    return _weighted(ctx, x, ctx.dot(vec1, vec2, ([], [])), beta, alpha)


def _weighted(ctx: Context, x: Value, product: Value, beta: Number, alpha: Number) -> Value:
    """Returns `beta * x + alpha * product`; with `beta` 0, not even a NaN of `x` gets through."""
    kind = product.type.element_type
    product = product if alpha == 1 else ctx.times(product, ctx.tensor(alpha, kind))
    if beta == 0:
        return product
    return ctx.plus(product, x if beta == 1 else ctx.times(x, ctx.tensor(beta, kind)))


@rule("aten.linear.default")
def linear(ctx: Context, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"""
    product = ctx.dot(input, weight, ([input.type.rank - 1], [weight.type.rank - 1]))
    return product if bias is None else ctx.plus(product, bias)


@rule("aten.outer.default")
def outer(ctx: Context, x: Value, vec2: Value) -> Value:
    """outer(Tensor self, Tensor vec2) -> Tensor"""
    kind = ctx.result.element_type
    return ctx.binary(ops.Multiply, ctx.convert(ctx.unsqueeze(x, [1]), kind), ctx.convert(vec2, kind))
