"""Powers: those that PyTorch computes by products and roots, and all others."""

from __future__ import annotations

import math

from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.elementwise import Scalar, binary, widened
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F16, is_complex, is_integer


@rule("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def pow(ctx: Context, x: Scalar, exponent: Scalar) -> Value:
    """pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor"""
    kind = ctx.result.element_type
    if isinstance(x, Value) and not isinstance(exponent, Value) and not isinstance(exponent, complex):
        found = _small_power(ctx, widened(ctx, x)[0], exponent)
        if found is not None:
            return ctx.convert(found, kind)
    found = binary(ctx, ops.Power, x, exponent)
    return _with_pole(ctx, x, exponent, found) if is_complex(kind) else found


def _with_pole(ctx: Context, x: Scalar, exponent: Scalar, found: Value) -> Value:
    """Returns complex powers that are infinite where those of zero are: StableHLO's are zero."""
    x, exponent = (ctx.broadcast(ctx.tensor(side, found.type.element_type), ctx.shape) for side in (x, exponent))
    real, imaginary = ctx.add(ops.Real(exponent)), ctx.add(ops.Imag(exponent))
    zero = ctx.full_like(real, 0)
    is_zero = ctx.compare("EQ", x, ctx.full_like(x, 0))
    is_pole = ctx.binary(ops.And, is_zero, ctx.compare("LT", real, zero))
    turns = ctx.binary(ops.And, ctx.compare("EQ", real, zero), ctx.compare("NE", imaginary, zero))
    undefined = ctx.full_like(x, complex(math.nan, math.nan))
    found = ctx.select(ctx.binary(ops.And, is_zero, turns), undefined, found)
    return ctx.select(is_pole, ctx.full_like(x, complex(math.inf, math.nan)), found)


def _small_power(ctx: Context, x: Value, exponent: float) -> Value | None:
    """Returns the powers that PyTorch computes without `pow`."""
    if exponent == 0:
        return ctx.full_like(x, 1)
    if exponent in (1, 2, 3):
        square = ctx.times(x, x) if exponent > 1 else x
        return ctx.times(square, x) if exponent == 3 else square
    if is_integer(x.type.element_type):
        return None
    # Its vectorized f16 kernel uses `pow` here, which has a different result for -0 and -inf.
    if exponent in (0.5, -0.5) and x.type.element_type is not F16:
        return ctx.add((ops.Sqrt if exponent > 0 else ops.Rsqrt)(x))
    if exponent in (-1, -2):
        power = x if exponent == -1 else ctx.times(x, x)
        return ctx.over(ctx.full_like(x, 1), power)
    return None
