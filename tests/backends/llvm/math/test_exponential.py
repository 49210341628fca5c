"""The exponential function and functions that use it, and logarithms, in f64: accuracy and special values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special as special

from tests.backends.llvm.math.measuring import (
    INF,
    NAN,
    TYPES,
    WAYS,
    compiled,
    everywhere,
    expect_lanes_not_to_matter,
    expect_limits,
    in_lanes,
    ulps,
    worst,
)
from trivium.backends.llvm.math import f32

FUNCTIONS = {
    # the exact function, its domain, and its values at 0, -0, inf, -inf
    "exponential": (mpmath.exp, (-750, 709.7), (1, 1, INF, 0)),
    "exponential_minus_one": (mpmath.expm1, (-100, 709.7), (0, -0.0, INF, -1)),
    "log": (mpmath.log, (5e-324, 1e308), (-INF, -INF, INF, NAN)),
    "log_plus_one": (mpmath.log1p, (-1 + 2**-53, 1e308), (0, -0.0, INF, NAN)),
    "logistic": (lambda x: 1 / (1 + mpmath.exp(-x)), (-745, 750), (0.5, 0.5, 1, 0)),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), (5e-324, 1e308), (INF, -INF, 0, NAN)),
}


@pytest.mark.parametrize("op", FUNCTIONS)
def test_all_exponents(op: str) -> None:
    exact, domain, _ = FUNCTIONS[op]
    assert worst(op, "f64", exact, domain) <= 4.0


@pytest.mark.parametrize("op", FUNCTIONS)
def test_limits(op: str) -> None:
    expect_limits(op, "f64", FUNCTIONS[op][2])


def test_where_the_exponential_overflows_and_vanishes() -> None:
    last, first = 709.782712893384, -745.1332191019411
    got = compiled("exponential", "f64", [last, np.nextafter(last, INF), first, np.nextafter(first, -INF), -1e300])
    assert np.isfinite(got[0])
    assert got[1] == INF
    assert got[2] == 5e-324
    assert got[3:].tolist() == [0, 0]


def test_small_arguments_lose_no_digits() -> None:
    x = np.exp2(np.linspace(-1020, -54, 200))
    x = np.concatenate([x, -x])
    for op in ("exponential_minus_one", "log_plus_one"):
        np.testing.assert_array_equal(compiled(op, "f64", x), x)
    for name, smallest in (("f32", np.float32(1e-45)), ("f64", np.float64(5e-324))):
        subnormal = smallest * np.array([1, -1, 3, 12345], smallest.dtype)
        np.testing.assert_array_equal(compiled("exponential_minus_one", name, subnormal), subnormal)


def test_logarithms_outside_of_their_domain() -> None:
    assert np.isnan(compiled("log", "f64", [-5e-324, -1, -1e308])).all()
    got = compiled("log_plus_one", "f64", [-1, np.nextafter(-1, -INF), -2])
    np.testing.assert_array_equal(got, [-INF, NAN, NAN])


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_the_exponential_never_falls(name: str) -> None:
    """Also at the boundaries of reduced ranges, which are odd multiples of log(2) / 2."""
    meeting = (np.arange(-60, 60) + 0.5) * np.log(2)
    step = np.finfo(np.float32 if name == "f32" else np.float64).eps
    x = np.sort((meeting[:, None] * (1 + step * np.arange(-8, 9))).ravel())
    assert (np.diff(compiled("exponential", name, x)) >= 0).all()


@pytest.mark.parametrize("looks_up", WAYS)
def test_powers_of_two_by_instruction_or_by_products(looks_up: int) -> None:
    x = np.linspace(-106, 106, 160_000).astype(np.float32)
    got, exact = in_lanes(f32.exp.logistic, x, 16, looks_up), special.expit(x.astype(np.float64))
    assert ulps(got, exact).max() <= 1.8
    assert got.max() == 1
    x = x[x < 88]
    x = x[: x.size // 16 * 16]
    assert ulps(in_lanes(f32.exp, x, 16, looks_up), np.exp(x.astype(np.float64))).max() <= 1.0
    expect_lanes_not_to_matter(f32.exp.logistic, looks_up, [NAN, 1, 0, 0.5, 0.5], 40)


@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize("op", ["exponential", "logistic"])
def test_neighbours_do_not_matter(op: str, name: str) -> None:
    """A vector without large numbers is computed with fewer operations: with the same results as beside them."""
    edges = [16, 16.3, 36, 36.4, 87, 87.3, 88.7, 103.9, 708, 708.4, 709.7, 745]
    x = np.concatenate([everywhere(TYPES[name], (-800, 800)), np.array(edges, TYPES[name])])
    x = np.sort(np.concatenate([x, -x]))
    apart = compiled(op, name, np.stack([x, np.full_like(x, NAN)], 1).ravel())
    assert np.isnan(apart[1::2]).all()
    np.testing.assert_array_equal(compiled(op, name, x), apart[::2])
