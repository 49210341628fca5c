"""Scatters into variables, of every type for which TensorFlow has a kernel."""

import os

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium.tensorflow

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(0)
NUMBERS = RANDOM.integers(1, 5, (4, 3))
TYPES = ["bool", "int8", "uint8", "int64", "float16", "float32", "complex64"]
ROWS, PLACES = np.array([2, 0, 2], np.int32), np.array([[1], [3], [1]], np.int32)


def written(compiled: bool, op: str, kind: str, places: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """Returns a variable that an op has written to."""
    variable = tf.Variable(NUMBERS.astype(kind) if kind != "bool" else NUMBERS > 2, trainable=False)
    handle = {"ref" if "Nd" in op else "resource": variable.handle}

    def write(places, updates):
        getattr(tf.raw_ops, op)(**handle, indices=places, updates=updates)
        return variable.read_value()

    function = trivium.tensorflow.function(write, fallback=False) if compiled else tf.function(write)
    return function(places, updates).numpy()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("op", [f"ResourceScatterNd{word}" for word in ("Add", "Sub", "Update")])
def test_scatters_at_places(op: str, kind: str) -> None:
    updates = NUMBERS[::-1][:3].astype(kind) if kind != "bool" else NUMBERS[::-1][:3] > 2
    got, wanted = (written(compiled, op, kind, PLACES, updates) for compiled in (True, False))
    np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("kind", TYPES[1:])
@pytest.mark.parametrize("op", [f"ResourceScatter{word}" for word in ("Add", "Sub", "Mul", "Div", "Update")])
def test_scatters_of_rows(op: str, kind: str) -> None:
    updates = NUMBERS[::-1][:3].astype(kind)
    got, wanted = (written(compiled, op, kind, ROWS, updates) for compiled in (True, False))
    np.testing.assert_allclose(got, wanted, rtol=1e-3 if kind == "float16" else 1e-6)
