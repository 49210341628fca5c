"""PyTorch's own primitives, to which some of its decompositions lead: most mean the same as an aten op."""

from __future__ import annotations

import math

from trivium.importers.emit import accumulation_type
from trivium.importers.pytorch import comparison, elementwise, joining, powers, shape
from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.elementwise import Scalar
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64

SOURCES = (comparison, elementwise, joining, powers, shape)
"""The families whose rules are registered here under other names."""

SAME_AS = {
    **{name: f"{name}.default" for name in ("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil")},
    **{name: f"{name}.default" for name in ("cos", "cosh", "digamma", "erf", "erfc", "exp", "exp2", "expm1", "floor")},
    **{name: f"{name}.default" for name in ("lgamma", "log", "log10", "log1p", "log2", "maximum", "minimum", "neg")},
    **{name: f"{name}.default" for name in ("reciprocal", "round", "rsqrt", "sign", "signbit", "sin", "sinh", "sqrt")},
    **{name: f"{name}.default" for name in ("tan", "tanh", "trunc", "real", "imag", "bitwise_not", "isfinite")},
    **{
        name: f"{name}.Tensor"
        for name in ("add", "sub", "mul", "eq", "ne", "ge", "gt", "le", "lt", "fmod", "remainder")
    },
    **{name: f"{name}.Tensor" for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{
        "erf_inv": "erfinv.default",
        "pow": "pow.Tensor_Tensor",
        "where": "where.self",
        "conj_physical": "conj_physical.default",
    },
    **{"transpose": "permute.default", "reshape": "view.default", "cat": "cat.default", "rev": "flip.default"},
}


def _register() -> None:
    for name, aten in SAME_AS.items():
        function = rule.find(f"aten.{aten}")
        assert function is not None, aten
        rule.add(f"prims.{name}.default", function)


_register()


@rule("aten.fmax.default", "prims.fmax.default", "aten.fmin.default", "prims.fmin.default")
def fmax(ctx: Context, x: Value, other: Value) -> Value:
    """fmax(Tensor self, Tensor other) -> Tensor"""
    kind = ctx.result.element_type
    x, other = ctx.convert(x, kind), ctx.convert(other, kind)
    larger = ctx.binary(ops.Maximum if "fmax" in ctx.op else ops.Minimum, x, other)
    # A NaN loses against any number.
    without = ctx.select(ctx.compare("EQ", x, x), larger, other)
    return ctx.select(ctx.compare("EQ", other, other), without, x)


@rule("aten.hypot.default", "prims.hypot.default")
def hypot(ctx: Context, x: Value, other: Value) -> Value:
    """hypot(Tensor self, Tensor other) -> Tensor"""
    kind = ctx.result.element_type
    wide = accumulation_type(kind)
    one, two = (ctx.add(ops.Abs(ctx.convert(ctx.convert(side, kind), wide))) for side in (x, other))
    long, short = ctx.binary(ops.Maximum, one, two), ctx.binary(ops.Minimum, one, two)
    # Scaled by the longer side, so that no square overflows.
    share = ctx.over(short, long)
    length = ctx.times(long, ctx.add(ops.Sqrt(ctx.plus(ctx.times(share, share), ctx.full_like(share, 1)))))
    length = ctx.select(ctx.compare("EQ", long, ctx.full_like(long, 0)), long, length)
    endless = ctx.full_like(long, math.inf)
    infinite = ctx.binary(ops.Or, ctx.compare("EQ", one, endless), ctx.compare("EQ", two, endless))
    return ctx.convert(ctx.select(infinite, endless, length), kind)


@rule("prims.fma.default")
def fma(ctx: Context, a: Scalar, b: Scalar, c: Scalar) -> Value:
    """fma(Tensor a, Tensor b, Tensor c) -> Tensor"""
    # In double precision the product of floats is exact, and the sum is rounded as one operation would.
    a, b, c = (ctx.broadcast(ctx.tensor(x, F64), ctx.shape) for x in (a, b, c))
    return ctx.convert(ctx.plus(ctx.times(a, b), c), ctx.result.element_type)


@rule("prims.div.default")
def div(ctx: Context, a: Scalar, b: Scalar) -> Value:
    """div(Tensor self, Tensor other) -> Tensor"""
    kind = ctx.result.element_type
    return ctx.over(ctx.tensor(a, kind), ctx.tensor(b, kind))


@rule("prims.broadcast_in_dim.default")
def broadcast_in_dim(ctx: Context, a: Value, shape: list[int], broadcast_dimensions: list[int]) -> Value:
    """broadcast_in_dim(Tensor(a) a, SymInt[] shape, int[] broadcast_dimensions) -> Tensor(a)"""
    return ctx.broadcast_in_dim(a, shape, broadcast_dimensions)
