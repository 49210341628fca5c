"""CHLO ops that are not scalar operations of kernels: they are composed of others."""

from __future__ import annotations

from trivium.compiler.kernel import Register
from trivium.compiler.lowering import complex as complex_numbers
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Indices
from trivium.compiler.lowering.rules import element
from trivium.compiler.lowering.scalars import Scalar
from trivium.ir import ops
from trivium.ir.declare import Op


@element(ops.Square)
def square(ctx: LoweringContext, op: ops.Square, indices: Indices) -> Scalar:
    x = ctx.element(op.operand, indices)
    return complex_numbers.square(ctx.b, x) if isinstance(x, tuple) else ctx.b.multiply(x, x)


@element(ops.Conj)
def conj(ctx: LoweringContext, op: ops.Conj, indices: Indices) -> Scalar:
    x = ctx.element(op.operand, indices)
    return (x[0], ctx.b.apply("negate", x[1])) if isinstance(x, tuple) else x


@element(ops.IsInf)
def is_inf(ctx: LoweringContext, op: ops.IsInf, indices: Indices) -> Register:
    return ctx.b.compare("EQ", ctx.b.apply("abs", ctx.real(op.operand, indices)), float("inf"))


@element(ops.IsPosInf, ops.IsNegInf)
def is_signed_infinity(ctx: LoweringContext, op: Op, indices: Indices) -> Register:
    limit = float("inf") if isinstance(op, ops.IsPosInf) else float("-inf")
    return ctx.b.compare("EQ", ctx.real(op.operands[0], indices), limit)
