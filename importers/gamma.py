"""The incomplete gamma functions and their derivatives with respect to the first argument, and the incomplete beta
function: a series where it converges quickly, elsewhere a continued fraction, evaluated by Lentz's algorithm; near the
normal distribution, which gamma functions approach, an expansion. All operands are f64 and of one shape. Values at
limits and outside of the domain are left to the caller."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from trivium.importers.emit import Emitter
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, I1, I64

MOST_TERMS = 20_000
"""The terms after which a series ends that has not converged: more than the square root of any argument needs."""

Step = Callable[[Emitter, Value, Sequence[Value]], tuple[Sequence[Value], Value]]
"""From the number of a term, which is 0-d, and a state to the next state, and where it still changes."""


def is_pole(emit: Emitter, x: Value) -> Value:
    """Whether numbers, of any type of floats, are integers that are not positive."""
    is_whole = emit.compare("EQ", x, emit.add(ops.Floor(x)))
    return emit.binary(ops.And, is_whole, emit.compare("LE", x, emit.full_like(x, 0)))


def repeated(emit: Emitter, start: Sequence[Value], step: Step) -> Sequence[Value]:
    """Returns the state after the steps that it takes until no element changes."""

    def holds(emit: Emitter, number: Value, *state: Value) -> Value:
        return emit.binary(ops.And, emit.compare("LT", number, emit.scalar(MOST_TERMS, I64)), state[-1])

    def advance(emit: Emitter, number: Value, *state: Value) -> Sequence[Value]:
        after, is_open = step(emit, emit.convert(number, F64), state[:-1])
        return emit.plus(number, emit.scalar(1, I64)), *after, emit.reduce(ops.Or, is_open, range(is_open.type.rank))

    carried = [emit.scalar(1, I64), *start, emit.scalar(True, I1)]
    types = [value.type for value in carried]
    loop = ops.While(carried, cond=emit.region(types, holds), body=emit.region(types, advance))
    return emit.add(loop)[1:-1]


def lower_and_upper(emit: Emitter, a: Value, x: Value) -> tuple[Value, Value]:
    """Returns the regularized lower and upper incomplete gamma functions, each accurate where it is small."""
    one = emit.full_like(x, 1)
    is_vast, normal, a, x = _split(emit, a, x)
    is_series = emit.compare("LT", x, emit.plus(a, one))

    def step(emit: Emitter, n: Value, state: Sequence[Value]) -> tuple[Sequence[Value], Value]:
        term, total, c, d, fraction = state
        term = emit.over(emit.times(term, x), emit.plus(a, n))
        total = emit.plus(total, term)
        numerator = emit.times(n, emit.minus(a, n))
        addend = emit.plus(emit.minus(emit.plus(x, one), a), emit.plus(n, n))
        d = emit.over(one, away_from_zero(emit, emit.plus(emit.times(numerator, d), addend)))
        c = away_from_zero(emit, emit.plus(addend, emit.over(numerator, c)))
        fraction, is_open = _converging(emit, fraction, emit.times(c, d))
        is_open = emit.select(is_series, _is_large(emit, emit.over(term, total)), is_open)
        return (term, total, c, d, fraction), is_open

    first = emit.over(one, a)
    d = emit.over(one, away_from_zero(emit, emit.minus(emit.plus(x, one), a)))
    found = repeated(emit, [first, first, emit.full_like(x, 1e300), d, d], step)
    scale = emit.add(ops.Exponential(log_scale(emit, a, x)))
    lower, upper = emit.times(scale, found[1]), emit.times(scale, found[4])
    below = emit.select(is_series, lower, emit.minus(one, upper))
    above = emit.select(is_series, emit.minus(one, lower), upper)
    is_tiny = emit.binary(ops.And, is_series, emit.compare("LT", a, emit.full_like(a, TINY)))
    above = emit.select(is_tiny, _upper_of_tiny(emit, a, x), above)
    return emit.select(is_vast, normal[0], below), emit.select(is_vast, normal[1], above)


TINY = 1 / 64
"""Below this the upper function of small numbers is about as small as `a`: the rest of the lower one has no digits."""

LOG_GAMMA = (0.5772156649015329, 1.6449340668482264, 1.2020569031595942, 1.0823232337111382, 1.03692775514337)
LOG_GAMMA += (1.0173430619844491, 1.0083492773819228, 1.0040773561979443, 1.0020083928260822, 1.0009945751278181)
"""The Euler constant and values of the zeta function, of which the series of log gamma(1 + a) consists (DLMF 5.7.3)."""


def _upper_of_tiny(emit: Emitter, a: Value, x: Value) -> Value:
    """Returns the upper function of a tiny `a` and x < 1 + a, by an alternating series (DLMF 8.7.1): one less
    x^a / gamma(1 + a) * (1 + a * the sum of (-x)^n / (n! (a + n)) from n = 1 on)."""
    one, total, log_gamma = emit.full_like(x, 1), emit.full_like(x, 0), emit.full_like(x, 0)
    for n in range(18, 0, -1):
        part = emit.plus(total, emit.over(one, emit.plus(a, emit.full_like(a, n))))
        total = emit.times(part, emit.scaled(x, -1 / n))
    for n, factor in reversed(list(enumerate(LOG_GAMMA, 1))):
        log_gamma = emit.times(emit.scaled(a, -1), emit.plus(log_gamma, emit.full_like(a, factor / n)))
    exponent = emit.minus(emit.times(a, emit.add(ops.Log(x))), log_gamma)
    rest = emit.times(emit.times(a, emit.add(ops.Exponential(exponent))), total)
    return emit.add(ops.Negate(emit.plus(emit.add(ops.ExponentialMinusOne(exponent)), rest)))


VAST = 1e6
"""From here on the functions of `a` are those of the normal distribution, and a correction."""


def _split(emit: Emitter, a: Value, x: Value) -> tuple[Value, tuple[Value, Value], Value, Value]:
    """Returns where `a` is vast, what both functions are there, and arguments with others in their place."""
    is_vast = _is_vast(emit, a)
    one = emit.full_like(a, 1)
    return is_vast, _of_vast(emit, a, x), emit.select(is_vast, one, a), emit.select(is_vast, one, x)


def _is_vast(emit: Emitter, a: Value) -> Value:
    return emit.binary(
        ops.And, emit.compare("GT", a, emit.full_like(a, VAST)), emit.compare("LT", a, emit.full_like(a, math.inf))
    )


def _of_vast(emit: Emitter, a: Value, x: Value) -> tuple[Value, Value]:
    """Returns both functions by the first terms of their uniform expansion (DLMF 8.12.3, 8.12.4)."""
    one, half = emit.full_like(x, 1), emit.full_like(x, 0.5)
    distance, exponent = _distance(emit, a, x)
    size = emit.add(ops.Sqrt(exponent))
    root = emit.times(emit.add(ops.Sign(distance)), size)
    eta = emit.scaled(emit.over(root, emit.add(ops.Sqrt(a))), math.sqrt(2))
    first = emit.minus(emit.over(one, away_from_zero(emit, distance)), emit.over(one, away_from_zero(emit, eta)))
    near = emit.compare("LT", emit.add(ops.Abs(distance)), emit.full_like(x, 1e-3))
    first = emit.select(near, emit.plus(emit.full_like(x, -1 / 3), emit.scaled(distance, 1 / 12)), first)
    density = emit.over(
        emit.add(ops.Exponential(emit.add(ops.Negate(exponent)))), emit.add(ops.Sqrt(emit.scaled(a, 2 * math.pi)))
    )
    rest = emit.times(density, first)
    lower = emit.minus(emit.times(half, emit.add(ops.Erfc(emit.add(ops.Negate(root))))), rest)
    return lower, emit.plus(emit.times(half, emit.add(ops.Erfc(root))), rest)


def _distance(emit: Emitter, a: Value, x: Value) -> tuple[Value, Value]:
    """Returns d = x / a - 1, and a (d - log(1 + d))."""
    d = emit.over(emit.minus(x, a), a)
    near = emit.plus(emit.full_like(x, 1 / 4), emit.scaled(d, -1 / 5))
    near = emit.plus(emit.full_like(x, -1 / 3), emit.times(d, near))
    near = emit.plus(emit.full_like(x, 1 / 2), emit.times(d, near))
    far = emit.minus(d, emit.add(ops.LogPlusOne(d)))
    is_near = emit.compare("LT", emit.add(ops.Abs(d)), emit.full_like(x, 1e-3))
    return d, emit.times(a, emit.select(is_near, emit.times(emit.times(d, d), near), far))


def slope_of_lower(emit: Emitter, a: Value, x: Value) -> Value:
    """Returns the derivative of the lower function with respect to `a`, divided by x^a exp(-x) / gamma(a)."""
    one, zero = emit.full_like(x, 1), emit.full_like(x, 0)
    is_vast = _is_vast(emit, a)
    distance, _ = _distance(emit, a, x)
    of_vast = emit.over(emit.minus(emit.scaled(distance, 0.5), one), a)
    a, x = emit.select(is_vast, one, a), emit.select(is_vast, one, x)
    is_series = emit.compare("LT", x, emit.plus(a, one))

    def step(emit: Emitter, n: Value, state: Sequence[Value]) -> tuple[Sequence[Value], Value]:
        """The next term, and its derivative, of the series and of the fraction."""
        term, slope, total, total_slope, c, c_slope, d, d_slope, fraction, fraction_slope = state
        ratio = emit.over(x, emit.plus(a, n))
        term, slope = emit.times(term, ratio), emit.times(ratio, emit.minus(slope, emit.over(term, emit.plus(a, n))))
        numerator = emit.times(n, emit.minus(a, n))
        addend = emit.plus(emit.minus(emit.plus(x, one), a), emit.plus(n, n))
        below = away_from_zero(emit, emit.plus(emit.times(numerator, d), addend))
        below_slope = emit.minus(emit.plus(emit.times(n, d), emit.times(numerator, d_slope)), one)
        d = emit.over(one, below)
        d_slope = emit.add(ops.Negate(emit.times(below_slope, emit.times(d, d))))
        part = emit.over(numerator, c)
        c_slope = emit.minus(emit.over(emit.minus(n, emit.times(part, c_slope)), c), one)
        c = away_from_zero(emit, emit.plus(addend, part))
        change = emit.times(c, d)
        change_slope = emit.plus(emit.times(c_slope, d), emit.times(c, d_slope))
        fraction_slope = emit.plus(emit.times(fraction_slope, change), emit.times(fraction, change_slope))
        fraction = emit.times(fraction, change)
        total, total_slope = emit.plus(total, term), emit.plus(total_slope, slope)
        of_series = emit.over(slope, away_from_zero(emit, total_slope))
        error = emit.select(is_series, of_series, change_slope)
        after = (term, slope, total, total_slope, c, c_slope, d, d_slope, fraction, fraction_slope)
        return after, _is_large(emit, error, 1e-15)

    d = emit.over(one, away_from_zero(emit, emit.minus(emit.plus(x, one), a)))
    d_slope = emit.times(d, d)
    start = [one, zero, one, zero, emit.full_like(x, 1e300), zero, d, d_slope, d, d_slope]
    found = repeated(emit, start, step)
    log = emit.add(ops.Log(x))
    # The series lacks the factor 1 / a, whose derivative would cancel most of the others where a is small.
    power = emit.minus(log, emit.add(ops.Digamma(emit.plus(a, one))))
    of_series = emit.over(emit.plus(emit.times(power, found[2]), found[3]), a)
    power = emit.minus(log, emit.add(ops.Digamma(a)))
    of_fraction = emit.plus(emit.times(power, found[8]), found[9])
    found = emit.select(is_series, of_series, emit.add(ops.Negate(of_fraction)))
    return emit.select(is_vast, of_vast, found)


def log_scale(emit: Emitter, a: Value, x: Value) -> Value:
    """Returns the logarithm of x^a exp(-x) / gamma(a)."""
    # Stirling's formula: the others would cancel.
    vast = emit.scaled(emit.add(ops.Log(emit.scaled(a, 1 / (2 * math.pi)))), 0.5)
    vast = emit.minus(vast, _distance(emit, a, x)[1])
    return emit.select(_is_vast(emit, a), vast, _log_scale(emit, a, x))


def _log_scale(emit: Emitter, a: Value, x: Value) -> Value:
    return emit.minus(emit.times(a, emit.add(ops.Log(x))), emit.plus(x, emit.add(ops.Lgamma(a))))


def incomplete_beta(emit: Emitter, a: Value, b: Value, x: Value) -> Value:
    """Returns the regularized incomplete beta function, for x between 0 and 1 (DLMF 8.17.22)."""
    one = emit.full_like(x, 1)
    two = emit.full_like(x, 2)
    mean = emit.over(emit.plus(a, one), emit.plus(emit.plus(a, b), two))
    is_swapped = emit.compare("GT", x, mean)
    p, q = emit.select(is_swapped, b, a), emit.select(is_swapped, a, b)
    y = emit.select(is_swapped, emit.minus(one, x), x)
    whole = emit.plus(p, q)

    def step(emit: Emitter, n: Value, state: Sequence[Value]) -> tuple[Sequence[Value], Value]:
        """Two steps of the fraction: one of the even, one of the odd coefficients."""
        c, d, fraction = state
        twice = emit.plus(p, emit.plus(n, n))
        even = emit.times(emit.times(n, emit.minus(q, n)), y)
        even = emit.over(even, emit.times(emit.minus(twice, one), twice))
        odd = emit.times(emit.times(emit.plus(p, n), emit.plus(whole, n)), y)
        odd = emit.add(ops.Negate(emit.over(odd, emit.times(twice, emit.plus(twice, one)))))
        for coefficient in (even, odd):
            d = emit.over(one, away_from_zero(emit, emit.plus(one, emit.times(coefficient, d))))
            c = away_from_zero(emit, emit.plus(one, emit.over(coefficient, c)))
            fraction, is_open = _converging(emit, fraction, emit.times(c, d))
        return (c, d, fraction), is_open

    start = emit.over(emit.times(whole, y), emit.plus(p, one))
    d = emit.over(one, away_from_zero(emit, emit.minus(one, start)))
    _, _, fraction = repeated(emit, [one, d, d], step)
    log = [emit.add(ops.Lgamma(v)) for v in (p, q, whole)]
    rest = emit.add(ops.LogPlusOne(emit.add(ops.Negate(y))))
    power = emit.plus(emit.times(p, emit.add(ops.Log(y))), emit.times(q, rest))
    power = emit.minus(emit.plus(power, log[2]), emit.plus(log[0], log[1]))
    found = emit.over(emit.times(emit.add(ops.Exponential(power)), fraction), p)
    return emit.select(is_swapped, emit.minus(one, found), found)


def _converging(emit: Emitter, fraction: Value, change: Value) -> tuple[Value, Value]:
    """Returns a fraction after its next step, and where it still changes. Factors that are one but for rounding are
    left out: they never end, and would add up while other elements converge."""
    is_open = _is_large(emit, emit.minus(change, emit.full_like(change, 1)), 1e-15)
    return emit.select(is_open, emit.times(fraction, change), fraction), is_open


def _is_large(emit: Emitter, error: Value, limit: float = 1e-16) -> Value:
    return emit.compare("GT", emit.add(ops.Abs(error)), emit.full_like(error, limit))


def away_from_zero(emit: Emitter, x: Value) -> Value:
    """Returns numbers by which can be divided."""
    return emit.select(emit.compare("EQ", x, emit.full_like(x, 0)), emit.full_like(x, 1e-300), x)
