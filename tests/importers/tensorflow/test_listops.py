"""Tensor arrays to which rows are scattered."""

import os

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium

pytestmark = pytest.mark.tensorflow

X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)


def scattered(x, places):
    return tf.TensorArray(tf.float32, 6).scatter(places, x).stack()


def over_others(x, places):
    array = tf.TensorArray(tf.float32, 6, element_shape=[6]).write(2, x[0] * 2).scatter(places, x)
    return array.stack(), array.gather([0, 2]), array.read(3)


def in_a_loop(x, places):
    array = tf.TensorArray(tf.float32, 6, element_shape=[6])
    for i in tf.range(3):
        array = array.scatter(places, x * tf.cast(i, tf.float32))
    return array.stack()


def with_a_gradient(x, places):
    with tf.GradientTape() as tape:
        tape.watch(x)
        array = tf.TensorArray(tf.float32, 6, element_shape=[6]).scatter(places, x * x).write(2, x[0])
        total = tf.reduce_sum(array.stack() ** 3)
    return tape.gradient(total, x)


@pytest.mark.parametrize("function", [scattered, over_others, in_a_loop, with_a_gradient])
def test_rows_are_scattered_to_arrays(function) -> None:
    function, places = tf.function(function), np.int32([3, 1, 0, 5])
    module = trivium.from_tensorflow(function, X, places)
    expected = tf.nest.flatten(function(X, places))
    for got, wanted in zip(trivium.evaluate(module, X, places), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_an_array_grows_by_known_places() -> None:
    function = tf.function(lambda x: tf.TensorArray(tf.float32, 0, True).scatter([3, 1, 0, 2], x).stack())
    (got,) = trivium.evaluate(trivium.from_tensorflow(function, X), X)
    np.testing.assert_array_equal(got, function(X))
