"""Incomplete gamma and beta functions, their derivatives, and a Bessel function, against TensorFlow's kernels."""

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


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16], ids=["float32", "float64", "float16"])
def test_bessel(kind: type) -> None:
    x = np.concatenate([LIMITS, np.linspace(-20, 20, 81), [1e3, 6e4]]).astype(kind)
    tolerance = {2: 1e-3, 4: 1e-6, 8: 1e-13}[x.itemsize]
    expected = tf.raw_ops.BesselI0e(x=x).numpy()
    (got,) = trivium.evaluate(trivium.from_tensorflow(tf.function(lambda x: tf.raw_ops.BesselI0e(x=x)), x), x)
    np.testing.assert_allclose(got, expected, tolerance)
