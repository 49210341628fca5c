"""Powers in f64, whose special cases are also those of f32."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tests.backends.harness import run
from tests.backends.llvm.math.measuring import INF, TYPES, compiled, distance
from trivium.compiler.kernel import KernelBuilder


def far_from_all(x: np.ndarray, y: np.ndarray) -> float:
    got = compiled("power", "f64", x, y)
    with mpmath.workprec(250):
        pairs = zip(x.tolist(), y.tolist(), got.tolist(), strict=True)
        return max(distance(value, mpmath.power(mpmath.mpf(a), mpmath.mpf(b)), np.float64) for a, b, value in pairs)


def test_power_in_f64() -> None:
    random = np.random.default_rng(0)
    x = np.concatenate(
        [np.exp(random.uniform(-300, 300, 800)), random.uniform(0.5, 2, 300), random.uniform(-9, 9, 200)]
    )
    y = np.concatenate(
        [random.uniform(-1, 1, 800) * 700, random.uniform(-900, 900, 300), random.integers(-30, 30, 200)]
    )
    y[:800] /= np.abs(np.log(x[:800]))
    assert far_from_all(x, y) <= 4.0


def test_bases_next_to_one_with_large_exponents() -> None:
    """The logarithm must be right to more digits than a number has."""
    steps = np.repeat(np.arange(1, 40), 4) * np.finfo(np.float64).eps
    exponents = 500 / steps * np.tile([1, -1, 0.3, -1.3], 39)
    assert far_from_all(1 + steps, exponents) <= 4.0


@pytest.mark.parametrize("name", TYPES)
def test_special_cases(name: str) -> None:
    values = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, INF, -INF, np.nan], TYPES[name])
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    got = compiled("power", name, x, y)
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))


def with_constant(constant: float, name: str, x: np.ndarray, is_base: bool = False) -> np.ndarray:
    """Returns powers with a constant exponent, or base."""
    b = KernelBuilder("power")
    source, target = b.input("x", name, x.shape), b.output("y", name, x.shape)
    with b.parallel(x.size) as (i,):
        operands = b.load(source, i), b.constant(constant, name)
        b.store(target, b.apply("power", *(operands[::-1] if is_base else operands)), i)
    return run(b.build(), x)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("exponent", [0.5, 1.5])
def test_constants_that_are_roots(name: str, exponent: float) -> None:
    kind = np.finfo(TYPES[name])
    some = np.exp2(np.random.default_rng(0).uniform(kind.minexp - kind.nmant, kind.maxexp - 0.1, 1000))
    x = np.array([0.0, -0.0, 1, -1, INF, -INF, np.nan, kind.max, *some], kind.dtype)
    got, general = with_constant(exponent, name, x), compiled("power", name, x, np.full(x.size, exponent))
    np.testing.assert_array_equal(np.signbit(got[:2]), [False, False])
    np.testing.assert_allclose(got, general, rtol=3 * kind.eps, atol=kind.smallest_subnormal)
    with mpmath.workprec(250):
        exact = [mpmath.power(mpmath.mpf(float(a)), exponent) for a in x[8:]]
        assert max(distance(a, b, kind.dtype.type) for a, b in zip(got[8:].tolist(), exact, strict=True)) <= 2


@pytest.mark.parametrize("name", TYPES)
def test_powers_of_two_are_exact(name: str) -> None:
    kind = np.finfo(TYPES[name])
    y = np.arange(kind.minexp - kind.nmant, kind.maxexp)
    exact = np.ldexp(TYPES[name](1), y)
    np.testing.assert_array_equal(compiled("power", name, np.full(len(y), 2), y), exact)
    np.testing.assert_array_equal(compiled("power", name, np.full(len(y), 0.5), -y), exact)


@pytest.mark.parametrize("name", TYPES)
def test_powers_of_a_constant_two(name: str) -> None:
    kind = np.finfo(TYPES[name])
    whole = np.arange(kind.minexp - kind.nmant, kind.maxexp).astype(kind.dtype)
    np.testing.assert_array_equal(with_constant(2, name, whole, True), np.ldexp(TYPES[name](1), whole.astype(int)))
    y = np.random.default_rng(0).uniform(kind.minexp, kind.maxexp, 2000)
    y = np.concatenate([y, np.random.default_rng(1).normal(size=2000)]).astype(kind.dtype)
    with mpmath.workprec(250):
        exact = [mpmath.power(2, mpmath.mpf(float(each))) for each in y]
        pairs = zip(with_constant(2, name, y, True).tolist(), exact, strict=True)
        assert max(distance(a, b, kind.dtype.type) for a, b in pairs) <= 2
    least = kind.minexp - kind.nmant
    ends = np.array([kind.maxexp, least - 2, least - 1, least - 0.25, 1e30, -1e30, INF, -INF, np.nan, -0.0], kind.dtype)
    tiny = kind.smallest_subnormal
    expected = np.array([INF, 0, 0, tiny, INF, 0, INF, 0, np.nan, 1], kind.dtype)
    np.testing.assert_array_equal(with_constant(2, name, ends, True), expected)


@pytest.mark.parametrize("name", TYPES)
def test_signs_of_whole_powers_that_are_large(name: str) -> None:
    """Up to 2^digits there are odd numbers; above, there are none."""
    last_odd = 2.0 ** (np.finfo(TYPES[name]).nmant + 1) - 1
    y = np.array([last_odd, -last_odd, last_odd - 1, last_odd + 1, 2 * last_odd])
    assert compiled("power", name, np.full(5, -1), y).tolist() == [-1, -1, 1, 1, 1]
    assert np.isnan(compiled("power", name, [-1, -8, -2], [0.5, 1 / 3, -1.5])).all()


def test_overflow_and_underflow() -> None:
    got = compiled("power", "f64", [10, 10, -10, 1e-200, 10, 10, -1e-200, 5e-324], [308, 309, 309, 2, -323, -324, 3, 1])
    assert got.tolist() == [1e308, INF, -INF, 0, 1e-323, 0, -0.0, 5e-324]
    assert np.signbit(got[6])
