"""The accuracy of inline math, in units in the last place of the type, against more precise references; and its
special values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special as special

from tests.backends.harness import elementwise, run

F32 = {
    "exponential": (np.exp, 1.0), "exponential_minus_one": (np.expm1, 1.5), "log": (np.log, 1.0),
    "log_plus_one": (np.log1p, 1.6), "tanh": (np.tanh, 1.6), "logistic": (special.expit, 2.6), "sine": (np.sin, 1.6),
    "cosine": (np.cos, 1.6), "tan": (np.tan, 3.2), "erf": (special.erf, 1.5), "erf_inv": (special.erfinv, 4.0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5), "sqrt": (np.sqrt, 0.51), "cbrt": (np.cbrt, 1.1),
    "erfc": (special.erfc, 3.0), "asin": (np.arcsin, 1.1),
    "acos": (np.arccos, 1.1), "atan": (np.arctan, 1.1), "sinh": (np.sinh, 2.0), "cosh": (np.cosh, 2.0),
    "asinh": (np.arcsinh, 2.0), "acosh": (np.arccosh, 2.1), "atanh": (np.arctanh, 2.0),
    # SciPy's digamma has a sign at its pole 0, StableHLO's is NaN at every pole.
    "digamma": (lambda x: np.where(x == 0, np.nan, special.digamma(x)), 1.0),
    # C's lgamma(-inf) is inf, SciPy's is -inf.
    "lgamma": (lambda x: np.where(np.isneginf(x), np.inf, special.gammaln(x)), 5.0),
}  # fmt: skip
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-45, -1e-40, 89, -104, 2, 1e30, 3e38]


def samples(count: int) -> np.ndarray:
    """Numbers of all magnitudes, and special ones."""
    random = np.random.default_rng(0)
    parts = [
        random.standard_normal(count) * 3,
        random.uniform(-1, 1, count),
        random.uniform(-104, 104, count),
        np.exp(random.uniform(-80, 80, count)) * random.choice([-1, 1], count),
        np.array(SPECIAL),
    ]
    return np.concatenate(parts)


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distances in units in the last place of f32 (of its smallest normal number, for smaller ones)."""
    magnitude = np.maximum(np.abs(exact.astype(np.float32)), np.finfo(np.float32).tiny)
    return np.abs(got - exact) / np.spacing(magnitude)


@pytest.mark.parametrize("op", F32)
def test_f32(op: str) -> None:
    reference, tolerance = F32[op]
    x = samples(5000).astype(np.float32)
    got = run(elementwise(op, ["f32"], "f32", len(x)), x)
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64))
        expected = exact.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(got[~finite], expected[~finite])
    # Some references are not exact near their zeros.
    checked = finite & (np.abs(expected) > 1e-3) if op in ("digamma", "lgamma") else finite
    assert ulps(got[checked], exact[checked]).max() <= tolerance
    # SciPy's erfinv gives 0 for -0.
    if op != "erf_inv":
        zeros = (x == 0) & (expected == 0)
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))


F64 = {
    "exponential": mpmath.exp, "log": mpmath.log, "logistic": lambda x: 1 / (1 + mpmath.exp(-x)), "tanh": mpmath.tanh,
    "erf_inv": mpmath.erfinv, "digamma": mpmath.digamma, "sine": mpmath.sin, "log_plus_one": mpmath.log1p,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
}  # fmt: skip


@pytest.mark.parametrize("op", F64)
def test_f64(op: str) -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.uniform(-1, 1, 60), random.standard_normal(60) * 10, random.uniform(-700, 700, 40)])
    x = np.abs(x) if op in ("log", "rsqrt", "log_plus_one") else x[np.abs(x) < 1] if op == "erf_inv" else x
    got = run(elementwise(op, ["f64"], "f64", len(x)), x)
    worst = 0.0
    with mpmath.workprec(120):
        for argument, value in zip(x.tolist(), got.tolist(), strict=True):
            exact = F64[op](mpmath.mpf(argument))
            worst = max(worst, float(abs(value - exact)) / np.spacing(max(abs(float(exact)), 1e-300)))
    # Digamma cancels near its zeros and poles.
    assert worst <= (3e3 if op == "digamma" else 4.0)


def test_power() -> None:
    random = np.random.default_rng(0)
    x = np.exp(random.uniform(-20, 20, 4000)).astype(np.float32)
    y = random.uniform(-6, 6, 4000).astype(np.float32)
    got = run(elementwise("power", ["f32", "f32"], "f32", 4000), x, y)
    with np.errstate(over="ignore", under="ignore"):
        exact = x.astype(np.float64) ** y
        finite = np.isfinite(exact.astype(np.float32))
    np.testing.assert_array_equal(np.isinf(got), ~finite)
    assert ulps(got[finite], exact[finite]).max() <= 0.6


def test_power_in_special_cases() -> None:
    values = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan], np.float32)
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    got = run(elementwise("power", ["f32", "f32"], "f32", len(x)), x, y)
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))


def test_atan2() -> None:
    values = np.array([0.0, -0.0, 1, -1, 2.5, -2.5, np.inf, -np.inf, np.nan], np.float32)
    y, x = (grid.ravel() for grid in np.meshgrid(values, values))
    got = run(elementwise("atan2", ["f32", "f32"], "f32", len(x)), y, x)
    np.testing.assert_allclose(got, np.arctan2(y, x), rtol=1e-6)


@pytest.mark.parametrize(("op", "reference"), [("sine", np.sin), ("cosine", np.cos), ("tan", np.tan)])
def test_huge_angles(op: str, reference: np.ufunc) -> None:
    x = np.array([1e10, 1e20, 3e38, -1e15, 12345.678, 1.0, 1e-3, 5e13] * 3, np.float32)
    got = run(elementwise(op, ["f32"], "f32", len(x)), x)
    np.testing.assert_allclose(got, reference(x.astype(np.float64)), rtol=5e-7)
