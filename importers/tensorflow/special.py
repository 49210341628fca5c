"""Special functions for which the language has no op."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import in_single
from trivium.importers.tensorflow.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value

# The rational approximations of the Cephes library (`ndtri`), highest power first: near one half, and in the tails
# where sqrt(-2 log p) is below and above 8.
_P0 = (-59.9633501014107895, 98.0010754185999662, -56.6762857469070294, 13.9312609387279680, -1.23916583867381258)
_Q0 = (1, 1.95448858338141760, 4.67627912898881538, 86.3602421390890591, -225.462687854119371, 200.260212380060660,
       -82.0372256168333340, 15.9056225126211696, -1.18331621121330003)  # fmt: skip
_P1 = (4.05544892305962420, 31.5251094599893867, 57.1628192246421288, 44.0805073893200835, 14.6849561928858024,
       2.18663306850790268, -0.140256079171354496, -0.0350424626827848203, -8.57456785154685413e-4)  # fmt: skip
_Q1 = (1, 15.7799883256466750, 45.3907635128879211, 41.3172038254672030, 15.0425385692907503, 2.50464946208309416,
       -0.142182922854787789, -0.0380806407691578277, -9.33259480895457427e-4)  # fmt: skip
_P2 = (3.23774891776946036, 6.91522889068984212, 3.93881025292474443, 1.33303460815807542, 0.201485389549179082,
       0.0123716634817820021, 3.01581553508235416e-4, 2.65806974686737551e-6, 6.23974539184983294e-9)  # fmt: skip
_Q2 = (1, 6.02427039364742014, 3.67983563856160859, 1.37702099489081330, 0.216236993594496636, 0.0134204006088543189,
       3.28014464682127739e-4, 2.89247864745380684e-6, 6.79019408009981274e-9)  # fmt: skip


@rule("Polygamma")
def polygamma(ctx: Context, a: Value, x: Value) -> Value:
    """Polygamma(a, x) -> z"""
    a, x = (ctx.broadcast(v, np.broadcast_shapes(a.type.static_shape, x.type.static_shape)) for v in (a, x))
    # Where TensorFlow's zeta function has a pole, its sign is that of one side, or unknown.
    half = ctx.scaled(a, 0.5)
    is_odd = ctx.compare("NE", half, ctx.add(ops.Floor(half)))
    pole = ctx.select(is_odd, ctx.full_like(x, math.inf), ctx.full_like(x, math.nan))
    is_whole = ctx.compare("EQ", x, ctx.add(ops.Floor(x)))
    is_pole = ctx.add(ops.And(is_whole, ctx.compare("LE", x, ctx.full_like(x, 0))))
    is_pole = ctx.add(ops.And(is_pole, ctx.compare("GE", a, ctx.full_like(a, 1))))
    return ctx.select(is_pole, pole, ctx.add(ops.Polygamma(a, x)))


@rule("Ndtri")
@in_single
def ndtri(ctx: Context, x: Value) -> Value:
    """Ndtri(x) -> y: where the normal distribution function has the value x"""
    one, half = ctx.constant_like(x, 1), ctx.constant_like(x, 0.5)
    is_upper = ctx.compare("GT", x, ctx.constant_like(x, 1 - math.exp(-2)))
    tail = ctx.select(is_upper, ctx.minus(one, x), x)
    centred = ctx.minus(tail, half)
    square = ctx.times(centred, centred)
    bend = ctx.times(square, _ratio(ctx, square, _P0, _Q0))
    middle = ctx.scaled(ctx.plus(centred, ctx.times(centred, bend)), math.sqrt(2 * math.pi))
    far = ctx.add(ops.Sqrt(ctx.scaled(ctx.add(ops.Log(tail)), -2)))
    inverse = ctx.over(one, far)
    near_tail = ctx.compare("LT", far, ctx.constant_like(x, 8))
    ratio = ctx.select(near_tail, _ratio(ctx, inverse, _P1, _Q1), _ratio(ctx, inverse, _P2, _Q2))
    far = ctx.minus(ctx.minus(far, ctx.over(ctx.add(ops.Log(far)), far)), ctx.times(inverse, ratio))
    outside = ctx.select(is_upper, far, ctx.add(ops.Negate(far)))
    is_middle = ctx.compare("GT", tail, ctx.constant_like(x, math.exp(-2)))
    result = ctx.select(is_middle, middle, outside)
    result = ctx.select(ctx.compare("EQ", x, ctx.constant_like(x, 0)), ctx.constant_like(x, -math.inf), result)
    return ctx.select(ctx.compare("EQ", x, one), ctx.constant_like(x, math.inf), result)


def _ratio(ctx: Context, x: Value, numerator: Sequence[float], denominator: Sequence[float]) -> Value:
    return ctx.over(_polynomial(ctx, x, numerator), _polynomial(ctx, x, denominator))


def _polynomial(ctx: Context, x: Value, coefficients: Sequence[float]) -> Value:
    """Evaluates by Horner's rule, from the highest power down."""
    total = ctx.constant_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = ctx.plus(ctx.times(total, x), ctx.constant_like(x, coefficient))
    return total
