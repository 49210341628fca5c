"""The error function, its complement and its inverse: accuracy, and special values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special as special

from tests.backends.llvm.math.measuring import INF, NAN, TYPES, compiled, expect_f32, expect_limits, worst

FUNCTIONS = {
    # the exact function, its domain, its values at 0, -0, inf, -inf, and the limits: those of f32 are elsewhere
    "erf": (mpmath.erf, (-30, 30), (0, -0.0, 1, -1), {"f64": 4.0}),
    "erfc": (mpmath.erfc, (-30, 28), (1, 1, 0, 2), {"f32": 2.0, "f64": 4.0}),
    "erf_inv": (mpmath.erfinv, (-1 + 2**-53, 1 - 2**-53), (0, -0.0, NAN, NAN), {"f64": 4.0}),
}
CASES = [(op, name) for op, (*_, limits) in FUNCTIONS.items() for name in limits]


def test_erfc_in_f32() -> None:
    expect_f32("erfc", special.erfc, 2.0)


@pytest.mark.parametrize(("op", "name"), CASES)
def test_all_exponents(op: str, name: str) -> None:
    exact, domain, _, limits = FUNCTIONS[op]
    assert worst(op, name, exact, domain) <= limits[name]


@pytest.mark.parametrize(("op", "name"), CASES)
def test_limits(op: str, name: str) -> None:
    expect_limits(op, name, FUNCTIONS[op][2])


@pytest.mark.parametrize(("name", "last"), [("f32", 10.05), ("f64", 27.22)])
def test_where_the_complement_vanishes(name: str, last: float) -> None:
    """At that point it is the smallest number, and 0 beyond."""
    smallest = float(np.finfo(TYPES[name]).smallest_subnormal)
    got = compiled("erfc", name, [last, last + 0.05, 50, 1e30])
    assert 0 < got[0] <= 2 * smallest
    assert got[1:].tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", TYPES)
def test_both_add_up_to_one_and_turn_around_zero(name: str) -> None:
    x, eps = np.linspace(-6, 6, 2001), np.finfo(TYPES[name]).eps
    erf, erfc = (compiled(op, name, x).astype(np.float64) for op in ("erf", "erfc"))
    np.testing.assert_allclose(erf + erfc, 1, rtol=0, atol=4 * eps)
    np.testing.assert_array_equal(compiled("erf", name, -x), -erf)
    assert (np.diff(erf) >= -eps).all()
    assert (np.diff(erfc) <= 2 * eps).all()


def test_the_ends_of_the_inverse() -> None:
    last = np.nextafter(1.0, 0.0)
    got = compiled("erf_inv", "f64", [1, -1, np.nextafter(1, 2), -2, last, -last])
    np.testing.assert_array_equal(got[:4], [INF, -INF, NAN, NAN])
    np.testing.assert_allclose(got[4:], [5.863584748755168, -5.863584748755168], rtol=1e-15)


def test_the_inverse_undoes_the_function() -> None:
    x = np.linspace(-3, 3, 500)
    again = compiled("erf_inv", "f64", compiled("erf", "f64", x))
    # The rounding error of erf is multiplied by the slope of the inverse.
    slope = np.sqrt(np.pi) / 2 * np.exp(x * x)
    assert (np.abs(again - x) <= np.finfo(np.float64).eps * (slope + 4 * np.abs(x))).all()
