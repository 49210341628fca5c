"""The functions with separate implementations for f32: their accuracy, and their special values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special as special

from tests.backends.llvm.math.measuring import INF, NAN, compiled, expect_f32, expect_limits, ulps, worst

AGAINST_F64 = {
    "exponential": (np.exp, 1.0), "exponential_minus_one": (np.expm1, 1.6), "log": (np.log, 1.0),
    "log_plus_one": (np.log1p, 1.6), "tanh": (np.tanh, 1.6), "logistic": (special.expit, 1.7), "sine": (np.sin, 1.6),
    "cosine": (np.cos, 1.6), "tan": (np.tan, 0.6), "erf": (special.erf, 1.9), "erf_inv": (special.erfinv, 1.7),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5), "sqrt": (np.sqrt, 0.51),
}  # fmt: skip


@pytest.mark.parametrize("op", AGAINST_F64)
def test_against_f64(op: str) -> None:
    reference, tolerance = AGAINST_F64[op]
    # SciPy's erfinv returns 0 for -0.
    expect_f32(op, reference, tolerance, signs=op != "erf_inv")


ALL_EXPONENTS = {
    # the exact function, its domain, and the limit if it is not 2
    "exponential": (mpmath.exp, (-750, 709.7)), "exponential_minus_one": (mpmath.expm1, (-100, 709.7)),
    "log": (mpmath.log, (5e-324, 1e308)), "log_plus_one": (mpmath.log1p, (-1 + 2**-53, 1e308)),
    "logistic": (lambda x: 1 / (1 + mpmath.exp(-x)), (-745, 750)),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), (5e-324, 1e308)), "sine": (mpmath.sin, (-INF, INF)),
    "cosine": (mpmath.cos, (-INF, INF)), "tan": (mpmath.tan, (-INF, INF)), "tanh": (mpmath.tanh, (-50, 50)),
    "erf": (mpmath.erf, (-30, 30)), "erf_inv": (mpmath.erfinv, (-1 + 2**-53, 1 - 2**-53)),
}  # fmt: skip


@pytest.mark.parametrize("op", ALL_EXPONENTS)
def test_all_exponents(op: str) -> None:
    exact, domain, *limit = ALL_EXPONENTS[op]
    bits = 1200 if op in ("sine", "cosine", "tan") else 200
    assert worst(op, "f32", exact, domain, bits) <= (limit[0] if limit else 2.0)


AT_LIMITS = {
    # at 0, -0, inf, -inf
    "exponential": (1, 1, INF, 0), "exponential_minus_one": (0, -0.0, INF, -1), "log": (-INF, -INF, INF, NAN),
    "log_plus_one": (0, -0.0, INF, NAN), "logistic": (0.5, 0.5, 1, 0), "sine": (0, -0.0, NAN, NAN),
    "cosine": (1, 1, NAN, NAN), "tan": (0, -0.0, NAN, NAN), "tanh": (0, -0.0, 1, -1), "erf": (0, -0.0, 1, -1),
    "erf_inv": (0, -0.0, NAN, NAN),
}  # fmt: skip


@pytest.mark.parametrize("op", AT_LIMITS)
def test_limits(op: str) -> None:
    """Zeros with their signs, infinities and NaN."""
    expect_limits(op, "f32", AT_LIMITS[op])


def test_power() -> None:
    random = np.random.default_rng(0)
    x = np.exp(random.uniform(-20, 20, 4000)).astype(np.float32)
    y = random.uniform(-6, 6, 4000).astype(np.float32)
    got = compiled("power", "f32", x, y)
    with np.errstate(over="ignore", under="ignore"):
        exact = x.astype(np.float64) ** y
        finite = np.isfinite(exact.astype(np.float32))
    np.testing.assert_array_equal(np.isinf(got), ~finite)
    assert ulps(got[finite], exact[finite]).max() <= 0.6


def test_results_between_the_normal_numbers_and_zero() -> None:
    """Results are rounded to multiples of the smallest number; those below half of it become 0."""
    x = np.linspace(-104.5, -87, 600).astype(np.float32)
    got, exact = compiled("exponential", "f32", x), np.exp(x.astype(np.float64))
    assert (np.abs(got - exact) <= 2.0**-149).all()
    assert got[x < -103.98].max() == 0
    assert got[x > -103.2].min() > 0


def test_where_the_exponential_overflows() -> None:
    last = np.float32(88.72283)
    got = compiled("exponential", "f32", [last, np.nextafter(last, np.float32(INF))])
    assert np.isfinite(got[0])
    assert got[1] == INF


def test_the_ends_of_the_inverse_error_function() -> None:
    got = compiled("erf_inv", "f32", [1, -1, 1.0000001, -2, np.nextafter(np.float32(1), np.float32(0))])
    np.testing.assert_array_equal(got[:4], [INF, -INF, NAN, NAN])
    assert 3.8 < got[4] < 3.9  # erfinv(1 - 2^-24) is 3.8325
