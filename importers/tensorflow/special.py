"""Special functions for which the language has no op."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import ml_dtypes

from trivium.importers.emit import in_single
from trivium.importers.gamma import incomplete_beta, is_pole, log_scale, lower_and_upper, slope_of_lower
from trivium.importers.tensorflow.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64

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
    a, x = ctx.aligned(a, x)
    # Where TensorFlow's zeta function has a pole, its sign is that of one side, or unknown.
    half = ctx.scaled(a, 0.5)
    is_odd = ctx.compare("EQ", ctx.minus(half, ctx.add(ops.Floor(half))), ctx.full_like(half, 0.5))
    pole = ctx.select(is_odd, ctx.full_like(x, math.inf), ctx.full_like(x, math.nan))
    at_pole = ctx.binary(ops.And, is_pole(ctx, x), ctx.compare("GE", a, ctx.full_like(a, 1)))
    found = _where_high(ctx, a, x, ctx.add(ops.Polygamma(a, x)))
    # Of infinite order, the factorial is infinite, and the sum is zero unless one of its terms is at most 1.
    endless = ctx.full_like(x, math.inf)
    of_endless = ctx.select(ctx.compare("LE", x, ctx.full_like(x, 1)), endless, ctx.full_like(x, math.nan))
    return ctx.select(ctx.compare("EQ", a, endless), of_endless, ctx.select(at_pole, pole, found))


def _where_high(ctx: Context, a: Value, x: Value, found: Value) -> Value:
    """Returns polygamma functions where the zeta function is too small for a number: (-1)^(a+1) a! (x^-(a+1) +
    (x+1)^-(a+1) + ...), by logarithms. Where more terms would matter, the result is nearly zero."""
    a, x = ctx.convert(a, F64), ctx.convert(x, F64)
    power = ctx.plus(a, ctx.full_like(a, 1))
    terms = ctx.full_like(x, 1)
    for number in range(1, 8):
        part = ctx.add(ops.LogPlusOne(ctx.over(ctx.full_like(x, number), x)))
        terms = ctx.plus(terms, ctx.add(ops.Exponential(ctx.add(ops.Negate(ctx.times(power, part))))))
    small = ctx.times(power, ctx.add(ops.Log(x)))
    size = ctx.times(ctx.add(ops.Exponential(ctx.minus(ctx.add(ops.Lgamma(power)), small))), terms)
    half = ctx.scaled(a, 0.5)
    is_even = ctx.compare("EQ", half, ctx.add(ops.Floor(half)))
    signed = ctx.convert(ctx.select(is_even, ctx.add(ops.Negate(size)), size), found.type.element_type)
    endless = ctx.full_like(x, math.inf)
    conditions = [
        ctx.compare("GT", small, ctx.full_like(x, 740)),
        *(ctx.compare("LT", v, endless) for v in (a, x)),
        ctx.compare("EQ", a, ctx.add(ops.Floor(a))),
        ctx.compare("GT", a, ctx.full_like(a, 100)),
    ]
    return ctx.select(reduce(lambda p, q: ctx.binary(ops.And, p, q), conditions), signed, found)


@rule("Zeta")
def zeta(ctx: Context, x: Value, q: Value) -> Value:
    """Zeta(x, q) -> z"""
    x, q = ctx.aligned(x, q)
    endless, nothing = ctx.full_like(x, math.inf), ctx.full_like(x, math.nan)
    found = ctx.add(ops.Zeta(x, q))
    # Some term is infinite: its base is below 1, or the sum is one of TensorFlow's poles, at infinity too.
    half = ctx.scaled(x, 0.5)
    is_even = ctx.compare("EQ", half, ctx.add(ops.Floor(half)))
    is_valid = ctx.binary(ops.And, is_even, ctx.compare("GT", x, ctx.full_like(x, 1)))
    at_end = ctx.select(is_valid, endless, nothing)
    found = ctx.select(ctx.compare("EQ", q, ctx.full_like(q, -math.inf)), at_end, found)
    is_negative = ctx.compare("LE", q, ctx.full_like(q, 0))
    is_endless = ctx.binary(ops.And, ctx.compare("EQ", x, endless), is_negative)
    is_endless = ctx.binary(ops.Or, is_endless, ctx.compare("EQ", x, ctx.full_like(x, 1)))
    return ctx.select(is_endless, endless, found)


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


# Incomplete gamma and beta functions


@rule("Igamma")
def igamma(ctx: Context, a: Value, x: Value) -> Value:
    """Igamma(a, x) -> z"""
    a, x = _in_double(ctx, a, x)
    lower, _ = lower_and_upper(ctx, a, x)
    zero, endless = ctx.full_like(x, 0), ctx.full_like(x, math.inf)
    found = ctx.select(ctx.compare("EQ", x, endless), ctx.full_like(x, 1), lower)
    return _from_zero(ctx, a, x, ctx.select(ctx.compare("EQ", a, endless), zero, found))


@rule("Igammac")
def igammac(ctx: Context, a: Value, x: Value) -> Value:
    """Igammac(a, x) -> z"""
    a, x = _in_double(ctx, a, x)
    _, upper = lower_and_upper(ctx, a, x)
    zero, one, endless = (ctx.full_like(x, number) for number in (0, 1, math.inf))
    is_all = ctx.binary(ops.Or, ctx.compare("EQ", x, zero), ctx.compare("EQ", a, endless))
    found = ctx.select(ctx.compare("EQ", x, endless), zero, ctx.select(is_all, one, upper))
    return _within(ctx, found, ctx.compare("GT", a, zero), ctx.compare("GE", x, zero))


@rule("IgammaGradA", "RandomGammaGrad")
def igamma_grad_a(ctx: Context, a: Value, x: Value) -> Value:
    """IgammaGradA(a, x) -> z"""
    a, x = _in_double(ctx, a, x)
    scale = log_scale(ctx, a, x)
    factor = ctx.add(ops.Exponential(scale) if ctx.op == "IgammaGradA" else ops.Negate(x))
    # As in TensorFlow's kernel, there is no slope where the function itself is too small for the type.
    least = -math.log(float(ml_dtypes.finfo(ctx.element_type.dtype).max))
    is_large = ctx.compare("GE", scale, ctx.full_like(scale, least))
    slope = ctx.times(factor, slope_of_lower(ctx, a, x))
    return _from_zero(ctx, a, x, ctx.select(is_large, slope, ctx.full_like(x, 0)))


def _from_zero(ctx: Context, a: Value, x: Value, found: Value) -> Value:
    """Returns results for positive arguments; zero where `x` is zero, whatever the other."""
    zero = ctx.full_like(x, 0)
    is_zero = ctx.compare("EQ", x, zero)
    found = ctx.select(is_zero, zero, found)
    return _within(ctx, found, ctx.binary(ops.Or, is_zero, ctx.compare("GT", a, zero)), ctx.compare("GE", x, zero))


@rule("Betainc")
def betainc(ctx: Context, a: Value, b: Value, x: Value) -> Value:
    """Betainc(a, b, x) -> z"""
    kind = ctx.element_type
    a, b, x = _in_double(ctx, a, b, x)
    zero, one = ctx.full_like(x, 0), ctx.full_like(x, 1)
    is_end = ctx.binary(ops.Or, *(ctx.compare("EQ", x, end) for end in (zero, one)))
    # As in TensorFlow's kernel, there is no result where the logarithm of the gamma function overflows.
    size = ctx.convert(ctx.add(ops.Lgamma(ctx.plus(a, b))), kind)
    is_fine = ctx.binary(ops.Or, is_end, ctx.compare("LT", size, ctx.full_like(size, math.inf)))
    found = ctx.select(is_end, x, incomplete_beta(ctx, a, b, x))
    is_positive = [ctx.add(ops.Not(ctx.compare("LE", side, zero))) for side in (a, b)]
    return _within(ctx, found, is_fine, *is_positive, ctx.compare("GE", x, zero), ctx.compare("LE", x, one))


def _in_double(ctx: Context, *operands: Value) -> list[Value]:
    return ctx.aligned(*(ctx.convert(x, F64) for x in operands))


def _within(ctx: Context, found: Value, *conditions: Value) -> Value:
    """Returns results of the node's type, NaN where a condition does not hold."""
    holds = reduce(lambda p, q: ctx.binary(ops.And, p, q), conditions)
    return ctx.convert(ctx.select(holds, found, ctx.full_like(found, math.nan)), ctx.element_type)
