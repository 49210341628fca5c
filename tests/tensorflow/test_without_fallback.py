"""Functions with `fallback=False`: loops whose length is an argument, tensor arrays that grow, ragged and sparse
tensors. What only the values of integers determine is compiled for those values."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium.tensorflow
from trivium.ir.errors import UnsupportedOpError

pytestmark = pytest.mark.tensorflow

X = tf.constant(np.random.default_rng(0).standard_normal(3).astype(np.float32))


def assert_same(calculate: Callable[..., Any], *args: Any) -> None:
    """Compares results, and the gradient of the first argument, with TensorFlow's."""

    def with_gradient(*args: Any) -> Any:
        parts = [x for x in tf.nest.flatten(args[0], expand_composites=True) if x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(parts)
            results = calculate(*args)
        return results, tape.gradient(results, parts)

    compiled = trivium.tensorflow.function(with_gradient, fallback=False)
    flat = (tf.nest.flatten(f(*args), expand_composites=True) for f in (compiled, tf.function(with_gradient)))
    for got, wanted in zip(*flat, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_a_loop_whose_length_is_an_argument() -> None:
    def powers(x: Any, n: Any) -> Any:
        return tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, tf.sin(v) * 1.5), (0, x))[1]

    for n in (4, 0):
        assert_same(powers, X, tf.constant(n))


def test_a_loop_of_a_function_with_a_program_for_each_length() -> None:
    @trivium.tensorflow.function(fallback=False)
    def rows(x: Any, n: Any) -> Any:
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=(3,))
        for i in tf.range(n):
            array = array.write(i, x * tf.cast(i, tf.float32))
        return array.stack()

    around = tf.function(lambda x, n: rows(x, n) + 1)
    for n in (2, 4, 2):
        wanted = X * tf.range(float(n))[:, None]
        np.testing.assert_allclose(rows(X, tf.constant(n)), wanted)
        np.testing.assert_allclose(around(X, tf.constant(n)), wanted + 1)


def test_gradients_of_a_loop_whose_length_follows_from_data() -> None:
    """The second call needs more room for what the loop keeps for its gradient than a program has at first."""

    def grown(x: Any, least: Any) -> Any:
        while tf.reduce_sum(tf.abs(x)) < least:
            x = tf.sin(x) * 0.1 + x * 1.05
        return x * x

    for least in (50.0, 5000.0, 0.0):
        assert_same(grown, X, tf.constant(least))


def test_loops_that_need_more_room_write_variables_once() -> None:
    def counted(count: Any, x: Any, n: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(n):
                count.assign_add(1.0)
                y = tf.sin(y)
        return tape.gradient(y, x)

    ours, theirs = tf.Variable(0.0), tf.Variable(0.0)
    compiled = trivium.tensorflow.function(counted, fallback=False)
    for n in (3, 130, 70):
        wanted = tf.function(counted)(theirs, X, tf.constant(n))
        np.testing.assert_allclose(compiled(ours, X, tf.constant(n)), wanted, rtol=1e-5)
        assert ours.numpy() == theirs.numpy()


def test_gradients_of_a_loop_of_unknown_length_in_another_are_left_to_tensorflow() -> None:
    def triangle(x: Any, n: Any) -> Any:
        for i in tf.range(n):
            for _ in tf.range(i):
                x = tf.sin(x) * 1.1
        return x

    def gradient(f: Callable[..., Any]) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = f(X, tf.constant(4))
        return tape.gradient(y, X)

    with pytest.raises(UnsupportedOpError, match="a loop whose trip count is not known"):
        gradient(trivium.tensorflow.function(triangle, fallback=False))
    wanted = gradient(tf.function(triangle))
    np.testing.assert_allclose(gradient(trivium.tensorflow.function(triangle)), wanted, rtol=1e-5)


def test_steps_of_sequences_in_a_loop() -> None:
    def recurrent(x: Any, n: Any) -> Any:
        state = x[:, 0]
        for t in tf.range(n):
            state = tf.tanh(state * 0.5 + x[:, t] * x[1, t, :2])
        return state

    x = tf.constant(np.random.default_rng(0).standard_normal((2, 4, 2)).astype(np.float32))
    for n in (4, 2):
        assert_same(recurrent, x, tf.constant(n))


def test_slices_of_variables_are_written_in_a_loop() -> None:
    def written(kept: Any, x: Any) -> Any:
        for t in tf.range(3):
            kept[:, t].assign(x[t] * 2)
            kept[0, -1 - t].assign(tf.reduce_sum(x))
        return kept * 2

    x = tf.constant(np.random.default_rng(0).standard_normal((3, 2)).astype(np.float32))
    ours, theirs = (tf.Variable(np.arange(10, dtype=np.float32).reshape(2, 5)) for _ in range(2))
    wanted = tf.function(written)(theirs, x)
    np.testing.assert_allclose(trivium.tensorflow.function(written, fallback=False)(ours, x), wanted, rtol=1e-6)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_tensor_arrays_that_grow() -> None:
    def written(x: Any) -> Any:
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        array = array.write(0, x).write(1, x * 2)
        for i in tf.range(2, 5):
            array = array.write(i, tf.sin(x) * tf.cast(i, tf.float32))
        return array.stack()

    assert_same(written, X)


def test_tensor_arrays_that_only_might_grow() -> None:
    def written(x: Any) -> Any:
        array = tf.TensorArray(tf.float32, 2, dynamic_size=True, element_shape=(3,))
        for i in tf.range(4):
            array = array.write(array.size() - 1, x * tf.cast(i, tf.float32))
        return array.stack()

    assert_same(written, X)


@pytest.mark.parametrize("place", [lambda i, array: i * 2, lambda i, array: array.size()], ids=["jump", "size"])
def test_tensor_arrays_that_grow_otherwise_are_refused(place: Callable[[Any, Any], Any]) -> None:
    def written(x: Any) -> Any:
        array = tf.TensorArray(tf.float32, 2, dynamic_size=True, element_shape=(3,))
        for i in tf.range(4):
            array = array.write(place(i, array), x)
        return array.stack()

    with pytest.raises(UnsupportedOpError, match=r"counts a loop's iterations|expected one type"):
        trivium.tensorflow.function(written, fallback=False)(X)
    np.testing.assert_array_equal(trivium.tensorflow.function(written)(X), tf.function(written)(X))


RAGGED = tf.ragged.constant([[1.0, 2.0], [], [3.0, 4.0, 5.0]])
SPARSE = tf.sparse.from_dense([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])


@pytest.mark.parametrize("reduce", [tf.reduce_sum, tf.reduce_mean], ids=["sum", "mean"])
def test_ragged_tensors(reduce: Any) -> None:
    assert_same(lambda x: reduce(x * 2, 1), RAGGED)


def test_ragged_tensors_as_dense_ones() -> None:
    assert_same(lambda x: tf.sin(x.to_tensor(default_value=-1.0)), RAGGED)


def test_rows_that_each_element_names() -> None:
    def dense(x: tf.Tensor) -> tf.Tensor:
        return tf.RaggedTensor.from_value_rowids(x * 2, [0, 0, 2, 2, 3, 5]).to_tensor()

    assert_same(dense, tf.range(6.0))


def test_ragged_tensors_as_sparse_ones() -> None:
    def dense(x: tf.RaggedTensor) -> tf.Tensor:
        return tf.sparse.to_dense((x * 2).to_sparse(), default_value=-1.0)

    assert_same(dense, RAGGED)


def test_parts_of_ragged_tensors() -> None:
    assert_same(lambda x: (x[:, :2], tf.gather(x, [2, 0, 2]), tf.gather(x, tf.zeros(0, tf.int32)), x[1:]), RAGGED)


def test_parts_of_nested_ragged_tensors() -> None:
    nested = tf.ragged.constant([[[1.0], [2.0, 3.0]], [], [[], [4.0]]])
    assert_same(lambda x: tf.gather(x, [2, 1, 0]) * 2, nested)


@pytest.mark.parametrize(
    "ends",
    [(tf.constant([3, 0, 2]),), (0, tf.constant([5, -4, 0]), tf.constant([2, -3, 1])), (tf.constant([7]), 1, -2)],
)
def test_ragged_ranges(ends: Any) -> None:
    tensors = [tf.constant(x) for x in ends]
    compiled = trivium.tensorflow.function(tf.ragged.range, fallback=False)
    got, wanted = compiled(*tensors), tf.ragged.range(*tensors)
    np.testing.assert_array_equal(got.row_splits, wanted.row_splits)
    np.testing.assert_array_equal(got.flat_values, wanted.flat_values)


def test_sparse_tensors() -> None:
    def several(x: Any, dense: Any) -> Any:
        return tf.sparse.to_dense(x) * 2, tf.sparse.sparse_dense_matmul(x, dense), tf.sparse.reduce_sum(x, 1)

    assert_same(several, SPARSE, tf.constant(np.arange(6, dtype=np.float32).reshape(3, 2)))
