"""Hyperbolic functions, their inverses and the cube root: accuracy in both types, and special values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tests.backends.llvm.math.measuring import EVERYTHING, INF, NAN, TYPES, compiled, expect_f32, expect_limits, worst

AGAINST_F64 = {
    "cbrt": (np.cbrt, 1.1), "sinh": (np.sinh, 2.0), "cosh": (np.cosh, 2.0), "asinh": (np.arcsinh, 2.0),
    "acosh": (np.arccosh, 2.1), "atanh": (np.arctanh, 2.0),
}  # fmt: skip
FUNCTIONS = {
    # the exact function, its domain, and its values at 0, -0, inf, -inf
    "sinh": (mpmath.sinh, (-710, 710), (0, -0.0, INF, -INF)),
    "cosh": (mpmath.cosh, (-710, 710), (1, 1, INF, INF)),
    "asinh": (mpmath.asinh, EVERYTHING, (0, -0.0, INF, -INF)),
    "acosh": (mpmath.acosh, (1.0, 1e308), (NAN, NAN, INF, NAN)),
    "atanh": (mpmath.atanh, (-1 + 2**-53, 1 - 2**-53), (0, -0.0, NAN, NAN)),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), EVERYTHING, (0, -0.0, INF, -INF)),
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


def test_tanh_in_f64() -> None:
    """f32 has a separate implementation."""
    assert worst("tanh", "f64", mpmath.tanh, (-50, 50)) <= 4.0
    expect_limits("tanh", "f64", (0, -0.0, 1, -1))


@pytest.mark.parametrize(("name", "last"), [("f32", 89.415985), ("f64", 710.4758600739439)])
def test_sinh_and_cosh_overflow_no_earlier_than_they_must(name: str, last: float) -> None:
    """exp(x) overflows earlier, by log(2)."""
    kind = TYPES[name]
    following = np.nextafter(kind(last), kind(INF))
    for op in ("sinh", "cosh"):
        got = compiled(op, name, [last, following])
        assert np.isfinite(got[0])
        assert got[1] == INF
    assert compiled("sinh", name, [-following]) == -INF


@pytest.mark.parametrize("name", TYPES)
def test_outside_of_the_domains(name: str) -> None:
    below, beyond = 1 - np.finfo(TYPES[name]).epsneg, 1 + np.finfo(TYPES[name]).eps
    assert np.isnan(compiled("acosh", name, [below, 0.5, -1, -1e30])).all()
    np.testing.assert_array_equal(compiled("acosh", name, [1]), [0])
    got = compiled("atanh", name, [1, -1, beyond, -beyond, below, -below])
    np.testing.assert_array_equal(got[:4], [INF, -INF, NAN, NAN])
    assert np.isfinite(got[4:]).all()


@pytest.mark.parametrize("name", TYPES)
def test_cubes_have_whole_roots(name: str) -> None:
    """Within a unit in the last place for all numbers, and exactly for cubes of powers of two."""
    roots = np.arange(1, 256, dtype=TYPES[name])
    np.testing.assert_allclose(compiled("cbrt", name, -(roots**3)), -roots, rtol=np.finfo(TYPES[name]).eps)
    powers = np.exp2(np.arange(-40, 41))
    np.testing.assert_array_equal(compiled("cbrt", name, powers**3), powers)


@pytest.mark.parametrize("name", TYPES)
def test_odd_functions_are_odd(name: str) -> None:
    x = np.random.default_rng(0).uniform(0, 20, 500)
    for op in ("sinh", "asinh", "cbrt", "tanh"):
        np.testing.assert_array_equal(compiled(op, name, -x), -compiled(op, name, x))
    np.testing.assert_array_equal(compiled("cosh", name, -x), compiled("cosh", name, x))
