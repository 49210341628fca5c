"""The logarithm of the gamma function and its derivative: accuracy, poles, and special values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special as special

from tests.backends.llvm.math.measuring import INF, NAN, TYPES, compiled, expect_f32, expect_limits, worst


def test_digamma_in_f32() -> None:
    """SciPy's digamma has a sign at its pole 0, StableHLO's is NaN at every pole. The reference is not exact near its
    zeros."""
    expect_f32("digamma", lambda x: np.where(x == 0, np.nan, special.digamma(x)), 1.0, zeros=1e-3)


def test_lgamma_in_f32() -> None:
    """C's lgamma(-inf) is inf, SciPy's is -inf."""
    expect_f32("lgamma", lambda x: np.where(np.isneginf(x), np.inf, special.gammaln(x)), 5.0, zeros=1e-3)


@pytest.mark.parametrize(("name", "limit"), [("f32", 2.0), ("f64", 6.0)])
def test_lgamma_at_all_exponents(name: str, limit: float) -> None:
    assert worst("lgamma", name, mpmath.loggamma, (5e-324, 1e308)) <= limit


@pytest.mark.parametrize("name", TYPES)
def test_negative_numbers(name: str) -> None:
    """Near their zeros, only the absolute error is small."""
    dtype = TYPES[name]
    x = np.random.default_rng(0).uniform(-30, 5, 400).astype(dtype)
    for op, reference in (("lgamma", lambda v: mpmath.log(abs(mpmath.gamma(v)))), ("digamma", mpmath.digamma)):
        got = compiled(op, name, x)
        with mpmath.workprec(200):
            wanted = np.array([float(reference(mpmath.mpf(v))) for v in x.tolist()])
        np.testing.assert_allclose(got, wanted, rtol=40 * np.finfo(dtype).eps, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", TYPES)
def test_limits(name: str) -> None:
    expect_limits("lgamma", name, (INF, INF, INF, INF))
    expect_limits("digamma", name, (NAN, NAN, INF, NAN))


@pytest.mark.parametrize("name", TYPES)
def test_poles(name: str) -> None:
    """Every whole number up to 0, including numbers so large that all of them are whole."""
    poles = [-1, -2, -30, -1000, -(2.0**24), -(2.0**100)]
    assert (compiled("lgamma", name, poles) == INF).all()
    assert np.isnan(compiled("digamma", name, poles)).all()


@pytest.mark.parametrize("name", TYPES)
def test_factorials(name: str) -> None:
    n = np.arange(1, 100)
    got = compiled("lgamma", name, n)
    assert got[:2].tolist() == [0, 0]
    wanted = special.gammaln(n.astype(np.float64))
    np.testing.assert_allclose(got, wanted, rtol=4 * np.finfo(TYPES[name]).eps)


def test_the_recurrence_of_the_derivative() -> None:
    """digamma(x + 1) = digamma(x) + 1 / x"""
    x = np.linspace(0.1, 30, 300)
    low, high = compiled("digamma", "f64", x), compiled("digamma", "f64", x + 1)
    np.testing.assert_allclose(high - low, 1 / x, rtol=0, atol=8e-15)


def test_where_lgamma_overflows() -> None:
    got = compiled("lgamma", "f64", [2.5599e305, 2.5601e305])
    assert np.isfinite(got[0])
    assert got[1] == INF
