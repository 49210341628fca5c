"""Logarithms of matrices to the precision of their type, against TensorFlow and the exponential function."""

import os
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)


MATRICES = {
    "one number": drawn(3, 1, 1),
    "several": drawn(2, 3, 5, 5),
    "large": drawn(16, 16),
    "of a large norm": drawn(4, 4) * 1e12,
    "of a small norm": drawn(4, 4) * 1e-12,
    "close to the identity": np.eye(4) + drawn(4, 4) * 1e-3,
    "triangular": np.triu(drawn(2, 5, 5)),
    "one number, many times": np.eye(4) * 2 + np.diag([1, 1, 1], 1) + 0j,
    "far apart": np.diag([1e-8, 1, 1e8]) + np.triu(drawn(3, 3), 1),
}


@pytest.mark.parametrize(("kind", "error"), [(np.complex64, 1e-6), (np.complex128, 1e-11)])
@pytest.mark.parametrize("name", MATRICES)
def test_logarithms(name: str, kind: Any, error: float) -> None:
    x = MATRICES[name].astype(kind)
    module = trivium.from_tensorflow(tf.function(tf.linalg.logm), x)
    module.verify()
    # In 64 bits: TensorFlow's own logarithms in 32 bits lose most digits of matrices that are close to the identity.
    wanted = tf.linalg.logm(x.astype(np.complex128)).numpy()
    for got in (*trivium.evaluate(module, x), *tf.nest.flatten(trivium.compile(module)(x))):
        assert got.dtype == kind
        np.testing.assert_allclose(got, wanted, error, error * np.abs(wanted).max())
        if kind is np.complex128:
            back = tf.linalg.expm(got).numpy()
            np.testing.assert_allclose(back, x, 1e-8, 1e-8 * np.abs(x).max())


@pytest.mark.parametrize("rows", [[[1, 1], [0, 0]], [[np.nan, 0], [0, 1]]])
def test_matrices_without_a_logarithm(rows: list[list[float]]) -> None:
    x = np.array([rows, [[2, 1], [0, 3]]], np.complex128)
    (got,) = trivium.evaluate(trivium.from_tensorflow(tf.function(tf.linalg.logm), x), x)
    assert np.isnan(got[0]).all()
    np.testing.assert_allclose(got[1], tf.linalg.logm(x[1]), 1e-12, 1e-12)
