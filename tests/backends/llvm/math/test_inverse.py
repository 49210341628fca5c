"""Inverse trigonometric functions: accuracy in both types, and special values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tests.backends.llvm.math.measuring import (
    EVERYTHING,
    INF,
    NAN,
    TYPES,
    compiled,
    distance,
    expect_f32,
    expect_limits,
    worst,
)

AGAINST_F64 = {"asin": (np.arcsin, 1.1), "acos": (np.arccos, 1.1), "atan": (np.arctan, 1.1)}
HALF_PI = np.pi / 2
FUNCTIONS = {
    # the exact function, its domain, and its values at 0, -0, inf, -inf
    "asin": (mpmath.asin, (-1.0, 1.0), (0, -0.0, NAN, NAN)),
    "acos": (mpmath.acos, (-1.0, 1.0), (HALF_PI, HALF_PI, NAN, NAN)),
    "atan": (mpmath.atan, EVERYTHING, (0, -0.0, HALF_PI, -HALF_PI)),
}


@pytest.mark.parametrize("op", AGAINST_F64)
def test_f32(op: str) -> None:
    expect_f32(op, *AGAINST_F64[op])


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_all_exponents(op: str, name: str) -> None:
    exact, domain, _ = FUNCTIONS[op]
    assert worst(op, name, exact, domain) <= (2.0 if name == "f32" else 4.0)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_limits(op: str, name: str) -> None:
    expect_limits(op, name, FUNCTIONS[op][2])


@pytest.mark.parametrize("name", TYPES)
def test_the_ends_of_the_domain(name: str) -> None:
    beyond = 1 + np.finfo(TYPES[name]).eps
    asin, acos = (compiled(op, name, [1, -1, beyond, -beyond, 2]) for op in ("asin", "acos"))
    np.testing.assert_array_equal(asin, np.array([HALF_PI, -HALF_PI, NAN, NAN, NAN], TYPES[name]))
    np.testing.assert_array_equal(acos, np.array([0, np.pi, NAN, NAN, NAN], TYPES[name]))


@pytest.mark.parametrize("name", TYPES)
def test_atan2(name: str) -> None:
    values = np.array([0.0, -0.0, 1, -1, 2.5, -2.5, INF, -INF, NAN])
    y, x = (grid.ravel() for grid in np.meshgrid(values, values))
    got, wanted = compiled("atan2", name, y, x), np.arctan2(y, x)
    np.testing.assert_allclose(got, wanted, rtol=1e-6 if name == "f32" else 4e-16)
    zeros = wanted == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(wanted[zeros]))


@pytest.mark.parametrize("name", TYPES)
def test_atan2_of_all_exponents(name: str) -> None:
    """Also if the quotient would overflow or underflow."""
    random, kind = np.random.default_rng(0), np.finfo(TYPES[name])
    y, x = (
        (np.exp2(random.uniform(kind.minexp - kind.nmant, kind.maxexp - 0.01, 800)) * random.choice([-1, 1], 800))
        for _ in range(2)
    )
    x[:400] = y[:400] * random.uniform(-4, 4, 400)
    y, x = y.astype(TYPES[name]), x.astype(TYPES[name])
    finite = np.isfinite(x)
    y, x = y[finite], x[finite]
    got = compiled("atan2", name, y, x)
    with mpmath.workprec(2400):
        pairs = zip(y.tolist(), x.tolist(), got.tolist(), strict=True)
        far = max(distance(angle, mpmath.atan2(mpmath.mpf(a), mpmath.mpf(b)), TYPES[name]) for a, b, angle in pairs)
    assert far <= (2.0 if name == "f32" else 4.0)
