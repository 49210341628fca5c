"""Functions of two arguments that the language has itself, and orthogonal polynomials by their recurrences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

from trivium.importers.gamma import is_pole, lower_and_upper, slope_of_lower
from trivium.importers.pytorch.context import Context, Number, rule
from trivium.importers.pytorch.elementwise import absolute, digamma
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, I64, is_float

Scalar = Value | Number


@rule("aten.polygamma.default")
def polygamma(ctx: Context, n: int, x: Value) -> Value:
    """polygamma(int n, Tensor self) -> Tensor"""
    x = ctx.convert(x, ctx.result.element_type)
    if n == 0:
        return digamma(ctx, x)
    found = ctx.add(ops.Polygamma(ctx.full_like(x, n), x))
    return ctx.select(is_pole(ctx, x), ctx.full_like(x, math.inf if n % 2 else -math.inf), found)


@rule("aten.special_zeta.default", "aten.special_zeta.self_scalar", "aten.special_zeta.other_scalar")
def zeta(ctx: Context, x: Scalar, other: Scalar) -> Value:
    """special_zeta(Tensor self, Tensor other) -> Tensor"""
    x, q = _both(ctx, x, other)
    is_endless = ctx.binary(ops.And, is_pole(ctx, q), ctx.compare("GT", x, ctx.full_like(x, 1)))
    return ctx.select(is_endless, ctx.full_like(x, math.inf), ctx.add(ops.Zeta(x, q)))


@rule("aten.nextafter.default", "prims.nextafter.default")
def nextafter(ctx: Context, x: Value, other: Value) -> Value:
    """nextafter(Tensor self, Tensor other) -> Tensor"""
    return ctx.add(ops.NextAfter(*_both(ctx, x, other)))


def _both(ctx: Context, *operands: Scalar) -> list[Value]:
    kind = ctx.result.element_type
    return [ctx.broadcast(ctx.tensor(x, kind), ctx.shape) for x in operands]


# Incomplete gamma functions


@rule("aten.igamma.default", "prims.igamma.default", "aten.igammac.default", "prims.igammac.default")
def igamma(ctx: Context, a: Value, other: Value) -> Value:
    """igamma(Tensor self, Tensor other) -> Tensor"""
    a, x = (ctx.broadcast(ctx.convert(side, F64), ctx.shape) for side in (a, other))
    lower, upper = lower_and_upper(ctx, a, x)
    found = _at_limits(ctx, a, x, upper if "igammac" in ctx.op else lower)
    return ctx.convert(found, ctx.result.element_type)


@rule("aten._standard_gamma_grad.default")
def standard_gamma_grad(ctx: Context, alpha: Value, output: Value) -> Value:
    """_standard_gamma_grad(Tensor self, Tensor output) -> Tensor"""
    a, x = (ctx.broadcast(ctx.convert(side, F64), ctx.shape) for side in (alpha, output))
    slope = ctx.add(ops.Negate(ctx.times(x, slope_of_lower(ctx, a, x))))
    # As in PyTorch, where there is no slope, such as at zero, it is zero.
    slope = ctx.select(ctx.compare("EQ", slope, slope), slope, ctx.full_like(x, 0))
    return ctx.convert(slope, ctx.result.element_type)


def _at_limits(ctx: Context, a: Value, x: Value, found: Value) -> Value:
    """Returns the function that the op names, with its values where an argument is zero, infinite or negative."""
    zero, one = ctx.full_like(x, 0), ctx.full_like(x, 1)
    endless = ctx.full_like(x, math.inf)
    none, all_ = (one, zero) if "igammac" in ctx.op else (zero, one)
    found = ctx.select(ctx.compare("EQ", x, zero), none, found)
    found = ctx.select(ctx.compare("EQ", a, zero), all_, found)
    found = ctx.select(ctx.compare("EQ", a, endless), none, found)
    found = ctx.select(ctx.compare("EQ", x, endless), all_, found)
    both = [ctx.binary(ops.And, *(ctx.compare("EQ", side, limit) for side in (a, x))) for limit in (zero, endless)]
    wrong = [*both, *(ctx.compare("LT", side, zero) for side in (a, x)), *(ctx.compare("NE", y, y) for y in (a, x))]
    return ctx.select(reduce(lambda p, q: ctx.binary(ops.Or, p, q), wrong), ctx.full_like(x, math.nan), found)


def _any(ctx: Context, x: Value) -> Value:
    return ctx.reduce(ops.Or, x, range(x.type.rank))


@rule("aten.gcd.default", "prims.gcd.default")
def gcd(ctx: Context, x: Value, other: Value) -> Value:
    """gcd(Tensor self, Tensor other) -> Tensor"""
    start = [absolute(ctx, ctx.shaped(side)) for side in (x, other)]
    zero = ctx.full_like(start[0], 0)

    def unfinished(emit: Context, a: Value, b: Value) -> Value:
        return _any(emit, emit.compare("NE", b, zero))

    def advance(emit: Context, a: Value, b: Value) -> Sequence[Value]:
        done = emit.compare("EQ", b, zero)
        rest = emit.add(ops.Remainder(a, emit.select(done, emit.full_like(b, 1), b)))
        return emit.select(done, a, b), emit.select(done, b, rest)

    types = [value.type for value in start]
    return ctx.add(ops.While(start, cond=ctx.region(types, unfinished), body=ctx.region(types, advance)))[0]


# Orthogonal polynomials

Step = Callable[[Context, Value, Value, Value, Value], Value]
"""From x, the number of the last polynomial, that one and the one before to the next."""


def _twice(ctx: Context, x: Value, k: Value, last: Value, before: Value) -> Value:
    return ctx.minus(ctx.times(ctx.plus(x, x), last), before)


def _hermite(ctx: Context, x: Value, k: Value, last: Value, before: Value) -> Value:
    doubled = ctx.minus(ctx.times(x, last), ctx.times(k, before))
    return ctx.plus(doubled, doubled)


def _hermite_of_chance(ctx: Context, x: Value, k: Value, last: Value, before: Value) -> Value:
    return ctx.minus(ctx.times(x, last), ctx.times(k, before))


def _laguerre(ctx: Context, x: Value, k: Value, last: Value, before: Value) -> Value:
    one = ctx.full_like(k, 1)
    total = ctx.minus(ctx.times(ctx.minus(ctx.plus(ctx.plus(k, k), one), x), last), ctx.times(k, before))
    return ctx.over(total, ctx.plus(k, one))


def _legendre(ctx: Context, x: Value, k: Value, last: Value, before: Value) -> Value:
    one = ctx.full_like(k, 1)
    total = ctx.minus(ctx.times(ctx.times(ctx.plus(ctx.plus(k, k), one), x), last), ctx.times(k, before))
    return ctx.over(total, ctx.plus(k, one))


POLYNOMIALS: dict[str, tuple[float, float, Step]] = {
    "chebyshev_polynomial_t": (1, 0, _twice),
    "chebyshev_polynomial_u": (2, 0, _twice),
    "chebyshev_polynomial_v": (2, -1, _twice),
    "chebyshev_polynomial_w": (2, 1, _twice),
    "hermite_polynomial_h": (2, 0, _hermite),
    "hermite_polynomial_he": (1, 0, _hermite_of_chance),
    "laguerre_polynomial_l": (-1, 1, _laguerre),
    "legendre_polynomial_p": (1, 0, _legendre),
}
"""The polynomial of degree 1, as factor and constant, and the recurrence."""

RECURRENT = {"t": 6, "u": 8, "v": 8, "w": 8}
"""The highest degrees of Chebyshev's polynomials that PyTorch computes by the recurrence between -1 and 1."""


def _by_angle(ctx: Context, kind: str, x: Value, degree: Value) -> Value:
    """Returns Chebyshev's polynomials between -1 and 1 from the angle whose cosine `x` is: their errors grow with the
    degree, and not with its square."""
    half, one = ctx.full_like(x, 0.5), ctx.full_like(x, 1)
    angle, n = ctx.add(ops.Acos(x)), ctx.convert(degree, x.type.element_type)
    halved = ctx.times(angle, half)
    many = ctx.times(ctx.plus(n, {"t": ctx.full_like(x, 0), "u": one}.get(kind, half)), angle)
    found = ctx.add((ops.Cosine if kind in "tv" else ops.Sine)(many))
    if kind != "t":
        share = angle if kind == "u" else halved
        found = ctx.over(found, ctx.add((ops.Cosine if kind == "v" else ops.Sine)(share)))

    count = ctx.plus(n, one) if kind == "u" else ctx.plus(ctx.plus(n, n), one)
    low, high = (count if kind in kinds else one for kinds in ("uv", "uw"))
    is_odd = ctx.compare("NE", ctx.binary(ops.And, degree, ctx.full_like(degree, 1)), ctx.full_like(degree, 0))
    low = ctx.select(is_odd, ctx.add(ops.Negate(low)), low)
    found = ctx.select(ctx.compare("EQ", x, one), high, found)
    return ctx.select(ctx.compare("EQ", x, ctx.full_like(x, -1)), low, found)


def _degree(ctx: Context, n: Scalar) -> Value:
    """Returns a degree as an integer; -1, where polynomials are 0, if no integer represents it, as in PyTorch."""
    n = n if isinstance(n, Value) else ctx.scalar(n, F64)
    if is_float(n.type.element_type):
        is_integer = ctx.compare("LT", absolute(ctx, n), ctx.full_like(n, 2.0**63))
        n = ctx.select(is_integer, n, ctx.full_like(n, -1))
    return ctx.convert(n, I64)


@rule(
    *(
        f"aten.special_{shifted}{name}.{kind}"
        for name in POLYNOMIALS
        for shifted in (("", "shifted_") if "chebyshev" in name else ("",))
        for kind in ("default", "x_scalar", "n_scalar")
    )
)
def polynomial(ctx: Context, x: Scalar, n: Scalar) -> Value:
    """special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor"""
    kind, shape = ctx.result.element_type, ctx.shape
    name = ctx.op.removeprefix("aten.special_").removeprefix("shifted_").partition(".")[0]
    factor, constant, step = POLYNOMIALS[name]
    degree = ctx.broadcast(_degree(ctx, n), shape)
    x = ctx.broadcast(ctx.tensor(x, kind), shape)
    if "shifted" in ctx.op:
        x = ctx.minus(ctx.plus(x, x), ctx.full_like(x, 1))
    one = ctx.full_like(x, 1)
    first = ctx.plus(ctx.times(x, ctx.full_like(x, factor)), ctx.full_like(x, constant))
    chebyshev = name.rpartition("_")[2] if "chebyshev" in name else ""
    steps, has_angle = degree, None
    if chebyshev:
        within = ctx.compare("LE", absolute(ctx, x), one)
        is_high = ctx.compare("GT", degree, ctx.full_like(degree, RECURRENT[chebyshev]))
        has_angle = ctx.binary(ops.And, within, is_high)
        steps = ctx.select(has_angle, ctx.full_like(degree, 1), degree)
    most = ctx.reduce(ops.Maximum, steps, range(len(shape)))

    def more(emit: Context, k: Value, before: Value, last: Value) -> Value:
        return emit.compare("LT", k, most)

    def advance(emit: Context, k: Value, before: Value, last: Value) -> Sequence[Value]:
        number = emit.broadcast(emit.convert(k, kind), shape)
        unfinished = emit.compare("LT", emit.broadcast(k, shape), steps)
        following = step(emit, x, number, last, before)
        return (
            emit.plus(k, emit.scalar(1, I64)),
            emit.select(unfinished, last, before),
            emit.select(unfinished, following, last),
        )

    start = [ctx.scalar(1, I64), one, first]
    types = [value.type for value in start]
    loop = ops.While(start, cond=ctx.region(types, more), body=ctx.region(types, advance))
    zero = ctx.full_like(degree, 0)
    found = ctx.select(ctx.compare("EQ", degree, zero), one, ctx.add(loop)[2])
    if has_angle is not None:
        found = ctx.select(has_angle, _by_angle(ctx, chebyshev, x, degree), found)
    return ctx.select(ctx.compare("LT", degree, zero), ctx.full_like(x, 0), found)
