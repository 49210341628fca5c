"""The accuracy of inline math, in units in the last place of the type, against more precise references; and its
special values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special as special

from tests.backends.harness import elementwise, load, run

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
    """Returns numbers of all magnitudes, and special ones."""
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
    """Returns distances in units in the last place of f32 (of its smallest normal number, for smaller ones)."""
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
    # SciPy's erfinv returns 0 for -0.
    if op != "erf_inv":
        zeros = (x == 0) & (expected == 0)
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))


# Of f64, and of all exponents


REFERENCES = {
    "exponential": mpmath.exp, "exponential_minus_one": mpmath.expm1, "log": mpmath.log, "log_plus_one": mpmath.log1p,
    "logistic": lambda x: 1 / (1 + mpmath.exp(-x)), "rsqrt": lambda x: 1 / mpmath.sqrt(x), "sine": mpmath.sin,
    "cosine": mpmath.cos, "tan": mpmath.tan, "tanh": mpmath.tanh, "sinh": mpmath.sinh, "cosh": mpmath.cosh,
    "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan, "asinh": mpmath.asinh, "acosh": mpmath.acosh,
    "atanh": mpmath.atanh, "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), "erf": mpmath.erf,
    "erfc": mpmath.erfc, "erf_inv": mpmath.erfinv, "lgamma": mpmath.loggamma,
}  # fmt: skip
DOMAINS = {
    **dict.fromkeys(("log", "rsqrt", "lgamma"), (5e-324, 1e308)), "log_plus_one": (-1 + 2**-53, 1e308),
    **dict.fromkeys(("asin", "acos"), (-1.0, 1.0)), **dict.fromkeys(("atanh", "erf_inv"), (-1 + 2**-53, 1 - 2**-53)),
    "acosh": (1.0, 1e308), "exponential": (-750, 709.7), "exponential_minus_one": (-100, 709.7), "tanh": (-50, 50),
    "logistic": (-745, 750), "sinh": (-710, 710), "cosh": (-710, 710), "erf": (-30, 30), "erfc": (-30, 28),
}  # fmt: skip
"""The ranges in which functions are evaluated at numbers of all exponents; beyond them, `test_limits` specifies the
results."""
LIMITS = {("f32", "erfc"): 2.6, ("f32", "erf_inv"): 3.2, ("f64", "lgamma"): 6.0}
"""The error bounds in units in the last place, if they are not 2 in f32 and 4 in f64."""


def everywhere(dtype: type, domain: tuple[float, float]) -> np.ndarray:
    """Returns numbers of all exponents in the domain, and many from its middle."""
    random, kind = np.random.default_rng(0), np.finfo(dtype)
    exponents = random.uniform(kind.minexp - kind.nmant, kind.maxexp - 0.01, 500)
    numbers = np.concatenate([np.exp2(exponents), np.exp2(random.uniform(-10, 10, 400)), random.uniform(0, 3, 200)])
    numbers = np.concatenate([numbers, -numbers, random.uniform(max(domain[0], -1e4), min(domain[1], 1e4), 300)])
    numbers = numbers.astype(dtype)
    return numbers[(numbers >= domain[0]) & (numbers <= domain[1])]


def distance(value: float, exact: mpmath.mpf, dtype: type) -> float:
    """Returns errors in units in the last place, which below the smallest normal number are those of that number."""
    kind = np.finfo(dtype)
    if not np.isfinite(value):
        return 0.0 if abs(exact) > mpmath.mpf(float(kind.max)) else np.inf
    magnitude = max(abs(exact), mpmath.mpf(float(kind.tiny)))
    unit = mpmath.mpf(2) ** (mpmath.floor(mpmath.log(magnitude, 2)) - kind.nmant)
    return float(abs(mpmath.mpf(value) - exact) / unit)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", REFERENCES)
def test_all_exponents(op: str, dtype: type) -> None:
    name = "f32" if dtype is np.float32 else "f64"
    x = everywhere(dtype, DOMAINS.get(op, (-np.inf, np.inf)))
    got = run(elementwise(op, [name], name, len(x)), x)
    with mpmath.workprec(1200 if op in ("sine", "cosine", "tan") else 200):
        worst = max(
            distance(value, REFERENCES[op](mpmath.mpf(argument)), dtype)
            for argument, value in zip(x.tolist(), got.tolist(), strict=True)
        )
    assert worst <= LIMITS.get((name, op), 2.0 if name == "f32" else 4.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lgamma_and_digamma_of_negative_numbers(dtype: type) -> None:
    """Next to their zeros only the absolute error is small."""
    name = "f32" if dtype is np.float32 else "f64"
    x = np.random.default_rng(0).uniform(-30, 5, 400).astype(dtype)
    for op, reference in (("lgamma", lambda v: mpmath.log(abs(mpmath.gamma(v)))), ("digamma", mpmath.digamma)):
        got = run(elementwise(op, [name], name, len(x)), x)
        with mpmath.workprec(200):
            wanted = np.array([float(reference(mpmath.mpf(v))) for v in x.tolist()])
        np.testing.assert_allclose(got, wanted, rtol=40 * np.finfo(dtype).eps, atol=100 * np.finfo(dtype).eps)


NAN, INF, HALF_PI = np.nan, np.inf, np.pi / 2
AT_LIMITS = {
    # of 0, -0, inf, -inf
    "exponential": (1, 1, INF, 0), "exponential_minus_one": (0, -0.0, INF, -1), "log": (-INF, -INF, INF, NAN),
    "log_plus_one": (0, -0.0, INF, NAN), "logistic": (0.5, 0.5, 1, 0), "sine": (0, -0.0, NAN, NAN),
    "cosine": (1, 1, NAN, NAN), "tan": (0, -0.0, NAN, NAN), "tanh": (0, -0.0, 1, -1), "sinh": (0, -0.0, INF, -INF),
    "cosh": (1, 1, INF, INF), "asin": (0, -0.0, NAN, NAN), "acos": (HALF_PI, HALF_PI, NAN, NAN),
    "atan": (0, -0.0, HALF_PI, -HALF_PI), "asinh": (0, -0.0, INF, -INF), "acosh": (NAN, NAN, INF, NAN),
    "atanh": (0, -0.0, NAN, NAN), "cbrt": (0, -0.0, INF, -INF), "erf": (0, -0.0, 1, -1), "erfc": (1, 1, 0, 2),
    "erf_inv": (0, -0.0, NAN, NAN), "lgamma": (INF, INF, INF, INF), "digamma": (NAN, NAN, INF, NAN),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", AT_LIMITS)
def test_limits(op: str, dtype: type) -> None:
    """Zeros with their signs, infinities and NaN."""
    name = "f32" if dtype is np.float32 else "f64"
    x = np.array([0.0, -0.0, INF, -INF, NAN], dtype)
    got, wanted = run(elementwise(op, [name], name, len(x)), x), np.array([*AT_LIMITS[op], NAN], dtype)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got[wanted == 0]), np.signbit(wanted[wanted == 0]))


def test_no_function_calls_the_c_library() -> None:
    names = {*AT_LIMITS, *REFERENCES}
    for dtype in ("f32", "f64"):
        for op in names:
            text = load(elementwise(op, [dtype], dtype, 64)).llvm  # type: ignore[attr-defined]
            declared = {line.split("@")[1].split("(")[0].strip('"') for line in text.splitlines() if "declare" in line}
            assert {name for name in declared if not name.startswith(("llvm.", "trivium_"))} == set(), op


def test_power_in_f64() -> None:
    random = np.random.default_rng(0)
    x = np.concatenate(
        [np.exp(random.uniform(-300, 300, 800)), random.uniform(0.5, 2, 300), random.uniform(-9, 9, 200)]
    )
    y = np.concatenate(
        [random.uniform(-1, 1, 800) * 700, random.uniform(-900, 900, 300), random.integers(-30, 30, 200)]
    )
    y[:800] /= np.abs(np.log(x[:800]))
    got = run(elementwise("power", ["f64", "f64"], "f64", len(x)), x, y)
    with mpmath.workprec(250):
        pairs = zip(x.tolist(), y.tolist(), got.tolist(), strict=True)
        worst = max(distance(value, mpmath.power(mpmath.mpf(a), mpmath.mpf(b)), np.float64) for a, b, value in pairs)
    assert worst <= 4.0


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


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_power_in_special_cases(dtype: str) -> None:
    kind = np.float32 if dtype == "f32" else np.float64
    values = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan], kind)
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    got = run(elementwise("power", [dtype, dtype], dtype, len(x)), x, y)
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
