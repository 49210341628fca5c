"""Distances between rows of sparse tensors, against TensorFlow: rows of any lengths, empty ones, other numbers of rows,
and arguments that TensorFlow rejects."""

import os
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium
import trivium.tensorflow

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(0)


def sparse(rows: tuple[int, ...], length: int, dtype: Any = np.int32, shape: tuple[int, ...] = ()) -> Any:
    """Returns rows of different lengths, some of them empty."""
    indices = [(*row, i) for row in np.ndindex(rows) for i in range(RANDOM.integers(0, length + 1))]
    values = RANDOM.integers(0, 3, len(indices)).astype(dtype)
    return tf.SparseTensor(np.array(indices, np.int64).reshape(-1, len(rows) + 1), values, shape or (*rows, length))


def arrays(*tensors: Any) -> list[np.ndarray]:
    return [x.numpy() for x in tf.nest.flatten(tensors, expand_composites=True)]


def distances(normalize: bool) -> Any:
    def function(*parts: Any) -> Any:
        return tf.edit_distance(tf.SparseTensor(*parts[:3]), tf.SparseTensor(*parts[3:]), normalize)

    return function


PAIRS = {
    "rows": (sparse((9,), 6), sparse((9,), 5)),
    "longer": (sparse((4,), 17), sparse((4,), 9)),
    "more rows": (sparse((3,), 4), sparse((7,), 4)),
    "fewer rows": (sparse((7,), 4), sparse((3,), 4)),
    "rows of rows": (sparse((3, 4), 4, np.int64), sparse((3, 4), 5, np.int64)),
    "other rows of rows": (sparse((2, 4), 4), sparse((3, 2), 5)),
    "no hypotheses": (sparse((3,), 0), sparse((3,), 5)),
    "no truths": (sparse((3,), 5), sparse((3,), 0)),
    "nothing": (sparse((2,), 0), sparse((2,), 0)),
    "one of the same": (tf.sparse.from_dense([[1, 2, 3]]), tf.sparse.from_dense([[1, 2, 3]])),
    "floats": (sparse((5,), 4, np.float64), sparse((5,), 4, np.float64)),
    "bytes": (sparse((5,), 4, np.uint8), sparse((5,), 4, np.uint8)),
    "booleans": (sparse((5,), 4, np.bool_), sparse((5,), 4, np.bool_)),
    "numbers that are not equal to themselves": (
        tf.SparseTensor([[0, 0], [0, 1]], np.float32([np.nan, 0.0]), [1, 2]),
        tf.SparseTensor([[0, 0], [0, 1]], np.float32([np.nan, -0.0]), [1, 2]),
    ),
    "elements after the end": (sparse((3,), 5, shape=(3, 1)), sparse((3,), 5, shape=(3, 2))),
}


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("name", PAIRS)
def test_as_tensorflow(name: str, normalize: bool) -> None:
    function, parts = distances(normalize), arrays(*PAIRS[name])
    expected = function(*parts)
    # The shapes are known, and the numbers of elements are, or are not.
    fixed = tf.function(lambda i, v, j, w: function(i, v, parts[2], j, w, parts[5]))
    given = [parts[i] for i in (0, 1, 3, 4)]
    for module in (
        trivium.from_tensorflow(fixed, *given),
        trivium.from_tensorflow(fixed, *(tf.TensorSpec([None, *x.shape[1:]], x.dtype) for x in given)),
    ):
        module.verify()
        (got,) = trivium.evaluate(module, *given)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, expected)
    for got in tf.nest.flatten(trivium.compile(trivium.from_tensorflow(fixed, *given))(*given)):
        np.testing.assert_array_equal(got, expected)
    compiled = trivium.tensorflow.function(function, fallback=False)
    np.testing.assert_array_equal(compiled(*map(tf.constant, parts)), expected)


def test_shapes_that_are_computed() -> None:
    function, parts = distances(True), arrays(*PAIRS["other rows of rows"])
    specs = [tf.TensorSpec([None, 3], tf.int64), tf.TensorSpec([None], tf.int32), tf.TensorSpec([3], tf.int64)] * 2
    module = trivium.from_tensorflow(tf.function(function), *specs)
    module.verify()
    for name in ("other rows of rows", "rows of rows"):
        parts = [x.astype(spec.dtype.as_numpy_dtype) for x, spec in zip(arrays(*PAIRS[name]), specs, strict=True)]
        np.testing.assert_array_equal(trivium.evaluate(module, *parts)[0], function(*parts))


@pytest.mark.parametrize("rows", [[0, 2, 1], [0, 1, 3], [-1, 0, 1]])
def test_rows_that_are_not_in_order_or_do_not_exist(rows: list[int]) -> None:
    """TensorFlow compares parts of rows, or fails."""
    indices = np.array([[row, 0] for row in rows])
    truth = arrays(PAIRS["one of the same"][0])
    given = [indices, np.int32([1, 2, 3]), np.array([3, 1]), *truth]
    (got,) = trivium.evaluate(trivium.from_tensorflow(tf.function(distances(True)), *given), *given)
    np.testing.assert_array_equal(got, np.full(3, np.nan, np.float32))


@pytest.mark.parametrize(
    ("shape", "count", "message"),
    [
        ([0, 2], 1, "argument hypothesis_shape has no rows, as truth_shape, expected at least one"),
        ([1, 2], 2, "argument hypothesis_indices has tensor<1x2xi64>, expected a row of 2 numbers"),
        ([1, 1, 2], 1, "argument hypothesis_indices has tensor<1x2xi64>, expected a row of 3 numbers"),
    ],
)
def test_arguments_that_do_not_fit(shape: list[int], count: int, message: str) -> None:
    shape = np.array(shape)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64), tf.TensorSpec([None], tf.int32)])
    def function(indices, values):
        return tf.raw_ops.EditDistance(
            hypothesis_indices=indices,
            hypothesis_values=values,
            hypothesis_shape=shape,
            truth_indices=indices,
            truth_values=values[:1],
            truth_shape=shape,
        )

    with pytest.raises(trivium.Error, match=message):
        trivium.from_tensorflow(function, np.zeros((1, 2), np.int64), np.ones(count, np.int32))
