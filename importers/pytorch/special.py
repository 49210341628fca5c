"""Functions of two arguments that the language has itself, and orthogonal polynomials by their recurrences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trivium.importers.pytorch.context import Context, Number, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64

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
    return [ctx.broadcast(ctx.tensor(x, kind), ctx.result.static_shape) for x in operands]


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
    kind, shape = ctx.result.element_type, ctx.result.static_shape
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
