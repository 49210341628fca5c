"""Incomplete gamma and beta functions, their derivatives, Bessel functions and integrals, against TensorFlow."""

import os

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium

pytestmark = pytest.mark.tensorflow

LIMITS = np.array([0, -0.0, 1, 2, -1, 0.5, np.inf, -np.inf, np.nan, 1e-30, 0.999, 1e-3, 10, -2.5])


def arguments(kind: type) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of special values and of random ones, which have the transition of the functions among them."""
    random = np.random.default_rng(0)
    a, x = (side.ravel() for side in np.meshgrid(LIMITS, LIMITS))
    size = 10 ** random.uniform(-3, 2.5, 100)
    a = np.concatenate([a, random.exponential(3, 100), size])
    return a.astype(kind), np.concatenate([x, random.exponential(3, 100), size * random.uniform(0.7, 1.4, 100)]).astype(
        kind
    )


def check(function, *arrays: np.ndarray) -> None:
    tolerance = 2e-4 if arrays[0].dtype == np.float32 else 1e-7
    expected = function(*map(tf.constant, arrays)).numpy()
    (got,) = trivium.compile(trivium.from_tensorflow(tf.function(function), *arrays))(*arrays)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, tolerance, tolerance)


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", ["Igamma", "Igammac", "IgammaGradA"])
def test_incomplete_gamma(name: str, kind: type) -> None:
    check(lambda a, x: getattr(tf.raw_ops, name)(a=a, x=x), *arguments(kind))


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["float32", "float64"])
def test_gradient_of_gamma_samples(kind: type) -> None:
    check(lambda a, x: tf.raw_ops.RandomGammaGrad(alpha=a, sample=x), *arguments(kind))


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["float32", "float64"])
def test_incomplete_beta(kind: type) -> None:
    a, _ = arguments(kind)
    random = np.random.default_rng(1)
    x = np.concatenate([random.choice([0, 1, 0.5, 1e-3, 0.999, -1, 2, np.nan, np.inf], 196), random.random(200)])
    check(lambda a, b, x: tf.raw_ops.Betainc(a=a, b=b, x=x), a, random.permutation(a), x.astype(kind))


BESSEL = [f"Bessel{name}" for name in ("I0", "I0e", "I1", "I1e", "J0", "J1", "K0", "K0e", "K1", "K1e", "Y0", "Y1")]
FITTED = [*BESSEL, "Dawsn", "Expint", "FresnelCos", "FresnelSin", "Spence"]
KINDS = [(name, kind) for name in FITTED for kind in (np.float32, np.float64)] + [(name, np.float16) for name in BESSEL]


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_fitted(name: str, kind: type) -> None:
    """The functions of one number, with the values of TensorFlow's kernels at infinity and below zero."""
    positive = np.geomspace(1e-4, 80, 101)
    x = np.concatenate([LIMITS, np.linspace(-20, 20, 81), positive, -positive, [8, 5, 1.6, 24, 100]]).astype(kind)
    if name == "BesselY1":
        x = x[x != 0]  # where TensorFlow has an infinity in 64 bits, and no number in fewer
    relative, absolute = {2: (2e-3, 1e-3), 4: (3e-6, 1e-5), 8: (1e-12, 1e-12)}[x.itemsize]
    expected = getattr(tf.raw_ops, name)(x=x).numpy()
    (got,) = trivium.evaluate(trivium.from_tensorflow(tf.function(lambda x: getattr(tf.raw_ops, name)(x=x)), x), x)
    assert got.dtype == kind
    np.testing.assert_allclose(got, expected, relative, absolute)


def computed(function, *arrays: np.ndarray) -> np.ndarray:
    (got,) = trivium.compile(trivium.from_tensorflow(tf.function(function), *arrays))(*arrays)
    return got


def test_large_arguments_are_as_exact_as_scipy() -> None:
    """TensorFlow's kernels lose digits there, up to all of them."""
    special = pytest.importorskip("scipy.special")
    a = np.repeat([1e4, 2e6, 1e9, 1e15, 3e38], 5)
    x = a * (1 + np.tile([-3, -0.5, 0, 0.5, 3], 5) / np.sqrt(a))
    for op, exact in (("Igamma", special.gammainc), ("Igammac", special.gammaincc)):
        got = computed(lambda a, x, op=op: getattr(tf.raw_ops, op)(a=a, x=x), a, x)
        np.testing.assert_allclose(got, exact(a, x), 1e-7, 1e-7)
    slopes = computed(lambda a, x: tf.raw_ops.RandomGammaGrad(alpha=a, sample=x), a, x)
    # How the quantiles move: by differences of SciPy's inverse, where these have digits enough.
    inside = a < 1e9
    p, step = special.gammainc(a, x)[inside], a[inside] * 1e-3
    quantiles = [special.gammaincinv(a[inside] + side * step, p) for side in (1, -1)]
    np.testing.assert_allclose(slopes[inside], (quantiles[0] - quantiles[1]) / (2 * step), 1e-5)
    np.testing.assert_allclose(slopes[~inside], 1, 1e-4)


def test_polygamma_of_infinite_order() -> None:
    at = np.array([0, -1, -2.5, 1, 0.5, -0.5, 1.5, 2, 3e4, np.inf, -np.inf, np.nan], np.float32)
    order = np.full_like(at, np.inf)
    got = computed(lambda a, x: tf.raw_ops.Polygamma(a=a, x=x), order, at)
    np.testing.assert_array_equal(got, tf.raw_ops.Polygamma(a=order, x=at))


def test_zeta_and_polygamma_of_special_numbers() -> None:
    x, q = (side.ravel() for side in np.meshgrid([*LIMITS, 3.0, 1e4], [*LIMITS, -2.0, 3.0]))
    check(lambda x, q: tf.raw_ops.Zeta(x=x, q=q), x, q)
    mpmath = pytest.importorskip("mpmath")
    # Orders of which factorial and zeta function are beyond the numbers' range.
    n, at = np.array([200.0, 1000.0, 1e4, 1e4, 1e4]), np.array([74.0, 368.5, 3679.0, 10.0, np.inf])
    exact = [-float(mpmath.factorial(a) * mpmath.zeta(int(a) + 1, b)) for a, b in zip(n[:4], at[:4], strict=True)]
    got = computed(lambda a, x: tf.raw_ops.Polygamma(a=a, x=x), n, at)
    np.testing.assert_allclose(got, [*exact, 0.0], 1e-7)
