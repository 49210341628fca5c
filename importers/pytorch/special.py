"""Functions of two arguments that the language has itself, and orthogonal polynomials by their recurrences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

from trivium.importers.pytorch.context import Context, Number, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, I1, I64

Scalar = Value | Number


@rule("aten.polygamma.default")
def polygamma(ctx: Context, n: int, x: Value) -> Value:
    """polygamma(int n, Tensor self) -> Tensor"""
    x = ctx.convert(x, ctx.result.element_type)
    return ctx.add(ops.Digamma(x)) if n == 0 else ctx.add(ops.Polygamma(ctx.full_like(x, n), x))


@rule("aten.special_zeta.default", "aten.special_zeta.self_scalar", "aten.special_zeta.other_scalar")
def zeta(ctx: Context, x: Scalar, other: Scalar) -> Value:
    """special_zeta(Tensor self, Tensor other) -> Tensor"""
    return ctx.add(ops.Zeta(*_both(ctx, x, other)))


@rule("aten.nextafter.default", "prims.nextafter.default")
def nextafter(ctx: Context, x: Value, other: Value) -> Value:
    """nextafter(Tensor self, Tensor other) -> Tensor"""
    return ctx.add(ops.NextAfter(*_both(ctx, x, other)))


def _both(ctx: Context, *operands: Scalar) -> list[Value]:
    kind = ctx.result.element_type
    return [ctx.broadcast(ctx.tensor(x, kind), ctx.shape) for x in operands]


# Incomplete gamma functions

MOST_TERMS = 20_000
"""The terms after which a series ends that has not converged: more than the square root of any argument needs."""


@rule("aten.igamma.default", "prims.igamma.default", "aten.igammac.default", "prims.igammac.default")
def igamma(ctx: Context, a: Value, other: Value) -> Value:
    """igamma(Tensor self, Tensor other) -> Tensor"""
    a, x = (ctx.broadcast(ctx.convert(side, F64), ctx.shape) for side in (a, other))
    one, shape = ctx.full_like(x, 1), ctx.shape
    is_series = ctx.compare("LT", x, ctx.plus(a, one))
    power = ctx.minus(ctx.times(a, ctx.add(ops.Log(x))), ctx.plus(x, ctx.add(ops.Lgamma(a))))
    scale = ctx.add(ops.Exponential(power))

    def holds(emit: Context, step: Value, *state: Value) -> Value:
        return emit.binary(ops.And, emit.compare("LT", step, emit.scalar(MOST_TERMS, I64)), state[-1])

    def advance(emit: Context, step: Value, *state: Value) -> Sequence[Value]:
        """The next term of the series below, and of the continued fraction above (by Lentz's algorithm)."""
        term, total, c, d, fraction, _ = state
        n = emit.broadcast(emit.convert(step, F64), shape)
        term = emit.over(emit.times(term, x), emit.plus(a, n))
        total = emit.plus(total, term)
        numerator = emit.times(n, emit.minus(a, n))
        addend = emit.plus(emit.minus(emit.plus(x, one), a), emit.plus(n, n))
        d = emit.over(one, _away_from_zero(emit, emit.plus(emit.times(numerator, d), addend)))
        c = _away_from_zero(emit, emit.plus(addend, emit.over(numerator, c)))
        change = emit.times(c, d)
        fraction = emit.times(fraction, change)
        error = emit.select(is_series, emit.over(term, total), emit.minus(change, one))
        open_ = emit.compare("GT", emit.add(ops.Abs(error)), emit.full_like(error, 1e-16))
        return emit.plus(step, emit.scalar(1, I64)), term, total, c, d, fraction, _any(emit, open_)

    first = ctx.over(one, a)
    b = _away_from_zero(ctx, ctx.minus(ctx.plus(x, one), a))
    d = ctx.over(one, b)
    start = [ctx.scalar(1, I64), first, first, ctx.full_like(x, 1e300), d, d, ctx.scalar(True, I1)]
    types = [value.type for value in start]
    found = ctx.add(ops.While(start, cond=ctx.region(types, holds), body=ctx.region(types, advance)))
    lower, upper = ctx.times(scale, found[2]), ctx.times(scale, found[5])
    lower = ctx.select(is_series, lower, ctx.minus(one, upper))
    return ctx.convert(_at_limits(ctx, a, x, lower, upper, is_series), ctx.result.element_type)


def _at_limits(ctx: Context, a: Value, x: Value, lower: Value, upper: Value, is_series: Value) -> Value:
    """Returns the function that the op names, with its values where an argument is zero, infinite or negative."""
    zero, one = ctx.full_like(x, 0), ctx.full_like(x, 1)
    endless = ctx.full_like(x, math.inf)
    none, all_ = (one, zero) if "igammac" in ctx.op else (zero, one)
    found = ctx.select(is_series, ctx.minus(one, lower), upper) if "igammac" in ctx.op else lower
    found = ctx.select(ctx.compare("EQ", x, zero), none, found)
    found = ctx.select(ctx.compare("EQ", a, zero), all_, found)
    found = ctx.select(ctx.compare("EQ", a, endless), none, found)
    found = ctx.select(ctx.compare("EQ", x, endless), all_, found)
    both = [ctx.binary(ops.And, *(ctx.compare("EQ", side, limit) for side in (a, x))) for limit in (zero, endless)]
    wrong = [*both, *(ctx.compare("LT", side, zero) for side in (a, x)), *(ctx.compare("NE", y, y) for y in (a, x))]
    return ctx.select(reduce(lambda p, q: ctx.binary(ops.Or, p, q), wrong), ctx.full_like(x, math.nan), found)


def _away_from_zero(ctx: Context, x: Value) -> Value:
    return ctx.select(ctx.compare("EQ", x, ctx.full_like(x, 0)), ctx.full_like(x, 1e-300), x)


def _any(ctx: Context, x: Value) -> Value:
    return ctx.reduce(ops.Or, x, range(x.type.rank))


@rule("aten.gcd.default", "prims.gcd.default")
def gcd(ctx: Context, x: Value, other: Value) -> Value:
    """gcd(Tensor self, Tensor other) -> Tensor"""
    start = [ctx.add(ops.Abs(ctx.shaped(side))) for side in (x, other)]
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
    degree = ctx.broadcast(ctx.tensor(n, I64), shape)
    x = ctx.broadcast(ctx.tensor(x, kind), shape)
    if "shifted" in ctx.op:
        x = ctx.minus(ctx.plus(x, x), ctx.full_like(x, 1))
    one = ctx.full_like(x, 1)
    first = ctx.plus(ctx.times(x, ctx.full_like(x, factor)), ctx.full_like(x, constant))
    most = ctx.reduce(ops.Maximum, degree, range(len(shape)))

    def more(emit: Context, k: Value, before: Value, last: Value) -> Value:
        return emit.compare("LT", k, most)

    def advance(emit: Context, k: Value, before: Value, last: Value) -> Sequence[Value]:
        number = emit.broadcast(emit.convert(k, kind), shape)
        unfinished = emit.compare("LT", emit.broadcast(k, shape), degree)
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
    return ctx.select(ctx.compare("LT", degree, zero), ctx.full_like(x, 0), found)
