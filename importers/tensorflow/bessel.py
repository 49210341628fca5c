"""Bessel functions, integrals of waves and of exponentials: fitted series, joined where one ends and another begins.
All are computed in 64 bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from scipy import special

from trivium.importers.bessel import I0, I1, J0, J1, K0, K1, LIMIT, WAVES, Y0, Y1
from trivium.importers.fitting import Fit, coefficients_of
from trivium.importers.tensorflow.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64

PAIRS = {"I0": I0, "I1": I1, "K0": K0, "K1": K1}


def _in_double(function: Callable[[Context, Value], Value]) -> Callable[..., Value]:
    @wraps(function)
    def computed(ctx: Context, x: Value, **options: Any) -> Value:
        return ctx.convert(function(ctx, ctx.convert(x, F64)), x.type.element_type)

    return computed


def series(ctx: Context, fit: Fit, x: Value) -> Value:
    """Evaluates a series by Clenshaw's algorithm, at points which are moved into its interval, and between it and 0."""
    low, high = (ctx.constant_like(x, limit) for limit in (min(fit.low, 0), fit.high))
    x = ctx.binary(ops.Minimum, ctx.binary(ops.Maximum, x, low), high)
    width = fit.high - fit.low
    twice = ctx.minus(ctx.scaled(x, 4 / width), ctx.constant_like(x, 2 * (fit.low + fit.high) / width))
    first, *rest = coefficients_of(fit)
    one, two = ctx.full_like(x, 0), ctx.full_like(x, 0)
    for coefficient in reversed(rest):
        following = ctx.plus(ctx.minus(ctx.times(twice, one), two), ctx.constant_like(x, coefficient))
        one, two = following, one
    return ctx.plus(ctx.minus(ctx.scaled(ctx.times(twice, one), 0.5), two), ctx.constant_like(x, first))


def _inverse(ctx: Context, x: Value) -> Value:
    return ctx.over(ctx.constant_like(x, 1), x)


def _where(ctx: Context, direction: str, x: Value, limit: float, on_true: Value | float, on_false: Value) -> Value:
    """Returns one of two values, or of a number and a value, by a comparison with a number."""
    chosen = on_true if isinstance(on_true, Value) else ctx.full_like(x, on_true)
    return ctx.select(ctx.compare(direction, x, ctx.full_like(x, limit)), chosen, on_false)


def _signed(ctx: Context, x: Value, found: Value) -> Value:
    """Returns an odd function, of which `found` is that of the size of `x`."""
    return _where(ctx, "LT", x, 0, ctx.add(ops.Negate(found)), found)


# Modified Bessel functions


def _of_first_kind(ctx: Context, order: str, size: Value) -> Value:
    """Returns the function divided by its exponential."""
    near, far = PAIRS[order]
    below = series(ctx, near, size)
    above = ctx.over(series(ctx, far, _inverse(ctx, size)), ctx.add(ops.Sqrt(size)))
    return _where(ctx, "GT", size, LIMIT, above, ctx.times(size, below) if order == "I1" else below)


@rule("BesselI0", "BesselI0e", "BesselI1")
@_in_double
def bessel_i(ctx: Context, x: Value) -> Value:
    """BesselI0(x) -> y"""
    order, size = ctx.op[6:8], ctx.add(ops.Abs(x))
    found = _of_first_kind(ctx, order, size)
    if not ctx.op.endswith("e"):
        found = ctx.times(ctx.add(ops.Exponential(size)), found)
    return _signed(ctx, x, found) if order == "I1" else found


@rule("BesselK0", "BesselK0e", "BesselK1", "BesselK1e")
@_in_double
def bessel_k(ctx: Context, x: Value) -> Value:
    """BesselK0(x) -> y"""
    order, is_scaled = ctx.op[6:8], ctx.op.endswith("e")
    near, far = PAIRS[order]
    size = ctx.binary(ops.Minimum, x, ctx.full_like(x, 2))
    grown = ctx.times(_of_first_kind(ctx, order.replace("K", "I"), size), ctx.add(ops.Exponential(size)))
    bent = ctx.times(ctx.add(ops.Log(ctx.scaled(size, 0.5))), grown)
    smooth = series(ctx, near, ctx.times(size, size))
    below = ctx.minus(smooth, bent) if order == "K0" else ctx.plus(ctx.over(smooth, size), bent)
    above = ctx.over(series(ctx, far, _inverse(ctx, x)), ctx.add(ops.Sqrt(x)))
    if is_scaled:
        below = ctx.times(below, ctx.add(ops.Exponential(size)))
    else:
        above = ctx.times(above, ctx.add(ops.Exponential(ctx.add(ops.Negate(x)))))
    # As in TensorFlow, negative numbers have the value of the pole.
    return _where(ctx, "LE", x, 0, math.inf, _where(ctx, "GT", x, 2, above, below))


# Bessel functions


def _waves(ctx: Context, order: int, x: Value) -> tuple[Value, Value]:
    """Returns the functions of the first and of the second kind beyond the limit."""
    x = ctx.binary(ops.Maximum, x, ctx.full_like(x, LIMIT))
    waves, inverse = WAVES[order], _inverse(ctx, x)
    share = ctx.scaled(ctx.times(inverse, inverse), LIMIT**2)
    scale = ctx.add(ops.Sqrt(ctx.scaled(inverse, 2 / math.pi)))
    even = ctx.times(scale, series(ctx, waves.even, share))
    odd = ctx.times(ctx.times(scale, series(ctx, waves.odd, share)), inverse)
    turn = ctx.minus(x, ctx.full_like(x, waves.phase))
    sine, cosine = ctx.add(ops.Sine(turn)), ctx.add(ops.Cosine(turn))
    first = ctx.minus(ctx.times(even, cosine), ctx.times(odd, sine))
    return first, ctx.plus(ctx.times(even, sine), ctx.times(odd, cosine))


def _near(ctx: Context, order: int, x: Value) -> Value:
    """Returns the function of the first kind up to the limit."""
    found = series(ctx, (J0, J1)[order], ctx.times(x, x))
    return ctx.times(x, found) if order else found


@rule("BesselJ0", "BesselJ1")
@_in_double
def bessel_j(ctx: Context, x: Value) -> Value:
    """BesselJ0(x) -> y"""
    order, size = int(ctx.op[-1]), ctx.add(ops.Abs(x))
    found = _where(ctx, "GT", size, LIMIT, _waves(ctx, order, size)[0], _near(ctx, order, size))
    return _signed(ctx, x, found) if order else found


@rule("BesselY0", "BesselY1")
@_in_double
def bessel_y(ctx: Context, x: Value) -> Value:
    """BesselY0(x) -> y"""
    order = int(ctx.op[-1])
    size = ctx.binary(ops.Minimum, x, ctx.full_like(x, LIMIT))
    smooth = series(ctx, (Y0, Y1)[order], ctx.times(size, size))
    smooth = ctx.over(smooth, size) if order else smooth
    bent = ctx.times(ctx.add(ops.Log(ctx.scaled(size, 0.5))), _near(ctx, order, size))
    near = ctx.plus(smooth, ctx.scaled(bent, 2 / math.pi))
    return _where(ctx, "LE", x, 0, -math.inf, _where(ctx, "GT", x, LIMIT, _waves(ctx, order, x)[1], near))


# Integrals of waves

WAVY = 1.6
"""Up to here Fresnel's integrals are series, beyond it waves around one half."""

FLAT = 36974.0
"""From here on they are one half, as far as TensorFlow computes them."""

_STEPS = np.arange(0.05, 8, 0.1)
_BELL = 0.1 * math.sqrt(2) * np.exp(-math.pi / 2 * _STEPS**2)


def _amplitude(power: int) -> Fit:
    """Returns an amplitude as a function of x**-4, by its integral (DLMF 7.7.10, 7.7.11): sums at evenly spaced points
    are exact for it."""
    curve = lambda s: (_BELL * _STEPS**power / (1 + np.outer(s, _STEPS**4))).sum(1)  # noqa: E731
    return Fit(curve, 0, WAVY**-4)


_SINE = Fit(lambda s: special.fresnel(s**0.25)[0] / s**0.75, 1e-3, WAVY**4), _amplitude(0)
_COSINE = Fit(lambda s: special.fresnel(s**0.25)[1] / s**0.25, 1e-3, WAVY**4), _amplitude(2)


@rule("FresnelSin", "FresnelCos")
@_in_double
def fresnel(ctx: Context, x: Value) -> Value:
    """FresnelSin(x) -> y"""
    is_sine = ctx.op == "FresnelSin"
    size = ctx.binary(ops.Minimum, ctx.add(ops.Abs(x)), ctx.full_like(x, FLAT))
    square = ctx.times(size, size)
    near = series(ctx, (_SINE if is_sine else _COSINE)[0], ctx.times(square, square))
    near = ctx.times(near, ctx.times(square, size) if is_sine else size)
    inverse = _inverse(ctx, size)
    share = ctx.times(inverse, inverse)
    fourth = ctx.times(share, share)
    first = ctx.scaled(ctx.times(series(ctx, _SINE[1], fourth), inverse), 1 / math.pi)
    second = ctx.scaled(ctx.times(ctx.times(series(ctx, _COSINE[1], fourth), inverse), share), 1 / math.pi)
    turn = ctx.scaled(ctx.binary(ops.Remainder, square, ctx.full_like(x, 4)), math.pi / 2)
    sine, cosine = ctx.add(ops.Sine(turn)), ctx.add(ops.Cosine(turn))
    if is_sine:
        wave = ctx.add(ops.Negate(ctx.plus(ctx.times(first, cosine), ctx.times(second, sine))))
    else:
        wave = ctx.minus(ctx.times(first, sine), ctx.times(second, cosine))
    far = ctx.plus(wave, ctx.full_like(x, 0.5))
    found = _where(ctx, "GT", size, WAVY, far, near)
    return _signed(ctx, x, _where(ctx, "GE", size, FLAT, 0.5, found))


# Integrals of exponentials

STEEP = 5.0
"""Up to here Dawson's integral is a series in `x`, beyond it one in `1 / x`."""

_DAWSON = (
    Fit(lambda s: special.dawsn(np.sqrt(s)) / np.sqrt(s), 1e-12, STEEP**2),
    Fit(lambda s: special.dawsn(1 / np.sqrt(s)) / np.sqrt(s), 1e-9, STEEP**-2),
)


@rule("Dawsn")
@_in_double
def dawsn(ctx: Context, x: Value) -> Value:
    """Dawsn(x) -> y"""
    square = ctx.times(x, x)
    near = ctx.times(series(ctx, _DAWSON[0], square), x)
    far = ctx.over(series(ctx, _DAWSON[1], _inverse(ctx, square)), x)
    return _where(ctx, "GT", square, STEEP**2, far, near)


_POWERS = np.arange(1, 80)


def _dilogarithm(w: np.ndarray) -> np.ndarray:
    """Returns Spence's integral of 1 + w, divided by w, by its power series."""
    return -((-w[:, None]) ** (_POWERS - 1) / _POWERS**2).sum(1)


_SPENCE = Fit(_dilogarithm, -0.5, 0.5)


@rule("Spence")
@_in_double
def spence(ctx: Context, x: Value) -> Value:
    """Spence(x) -> y"""
    # Within half of 1 it is a series. Elsewhere it follows from its values at 1 - x, 1 / x, or both.
    one, inverse = ctx.full_like(x, 1), _inverse(ctx, x)
    small = _where(ctx, "GT", x, 2, inverse, x)
    is_reflected = ctx.compare("LT", small, ctx.full_like(x, 0.5))
    around = ctx.minus(_where(ctx, "GT", x, 1.5, inverse, x), one)
    w = ctx.select(is_reflected, ctx.add(ops.Negate(small)), around)
    found = ctx.times(series(ctx, _SPENCE, w), w)
    logs = ctx.times(ctx.add(ops.Log(small)), ctx.add(ops.LogPlusOne(ctx.add(ops.Negate(small)))))
    constant = ctx.minus(ctx.full_like(x, math.pi**2 / 6), _where(ctx, "EQ", x, 0, 0, logs))
    found = ctx.select(is_reflected, ctx.minus(constant, found), found)
    log = ctx.add(ops.Log(x))
    turned = ctx.minus(ctx.scaled(ctx.times(log, log), -0.5), found)
    return _where(ctx, "LT", x, 0, math.nan, _where(ctx, "GT", x, 1.5, turned, found))


NARROW, BROAD = 6.0, 24.0
"""Up to the first the exponential integral is a series in `x`, then there are two in `1 / x`."""

_EXPONENTIAL = (
    Fit(lambda x: special.expi(x) - np.log(x), 1e-12, NARROW),
    Fit(lambda t: special.expi(1 / t) * np.exp(-1 / t) / t, 1 / BROAD, 1 / NARROW),
    Fit(lambda t: special.expi(1 / t) * np.exp(-1 / t) / t, 1 / 700, 1 / BROAD),
)


@rule("Expint")
@_in_double
def expint(ctx: Context, x: Value) -> Value:
    """Expint(x) -> y"""
    near = ctx.plus(series(ctx, _EXPONENTIAL[0], x), ctx.add(ops.Log(x)))
    inverse = _inverse(ctx, x)
    grown = ctx.times(inverse, ctx.add(ops.Exponential(x)))
    far = [ctx.times(series(ctx, fit, inverse), grown) for fit in _EXPONENTIAL[1:]]
    found = _where(ctx, "GT", x, BROAD, far[1], _where(ctx, "GT", x, NARROW, far[0], near))
    return _where(ctx, "LT", x, 0, math.nan, _where(ctx, "EQ", x, 0, -math.inf, found))
