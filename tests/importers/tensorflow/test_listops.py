"""Tensor arrays to which rows are scattered, and those that branches write; lists to which loops push."""

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


def chosen_in_a_loop(x, places):
    array, count = tf.TensorArray(tf.float32, 4, element_shape=[6]), 0
    for i in tf.range(4):
        if x[i, 0] > 0:
            array = array.write(count, x[i] * 2)
            count += 1
        elif x[i, 1] > 0:
            array = array.write(3, x[i])
    return array.stack(), count


def chosen_in_a_loop_with_a_gradient(x, places):
    array = tf.TensorArray(tf.float32, 4, element_shape=[6])
    with tf.GradientTape() as tape:
        tape.watch(x)
        for i in tf.range(4):
            array = array.write(i, x[i] * x[i]) if x[i, 0] > 0 else array.write(i, tf.sin(x[i]))
        total = tf.reduce_sum(array.stack() ** 2)
    return total, tape.gradient(total, x)


def different_values_for_the_gradient(x, places):
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.constant(0.0)
        for i in tf.range(4):
            y = tf.reduce_sum(x[i] * x[i]) * x[0] if x[i, 0] > 0 else tf.sin(x[i])
            total += tf.reduce_sum(y**2)
        last = tf.linalg.matvec(x, x[0] ** 2) if total > 20 else tf.exp(x[:, 1])
        total += tf.reduce_sum(last)
    return total, tape.gradient(total, x)


def chosen_once(x, places):
    array = tf.TensorArray(tf.float32, 3, element_shape=[6]).write(2, x[0])
    array = array.write(0, x[1]) if x[0, 0] > 0 else array.write(places[2], x[2])
    return array.stack()


def exchanged(x, places):
    first = tf.TensorArray(tf.float32, 2, element_shape=[6]).write(0, x[0])
    second = tf.TensorArray(tf.float32, 2, element_shape=[6]).write(1, x[1])
    for i in tf.range(3):
        first, second = (second, first.write(0, x[i])) if x[i, 0] > 0 else (second, first)
    return first.stack(), second.stack()


WITH_GRADIENTS = chosen_in_a_loop_with_a_gradient, different_values_for_the_gradient


@pytest.mark.parametrize("function", [chosen_in_a_loop, *WITH_GRADIENTS, chosen_once, exchanged])
@pytest.mark.parametrize("sign", [1, -1])
def test_conditionals_write_to_arrays(function, sign: int) -> None:
    function, places = tf.function(function), np.int32([3, 1, 0, 5])
    module = trivium.from_tensorflow(function, X, places)
    expected = tf.nest.flatten(function(X * sign, places))
    for got, wanted in zip(trivium.evaluate(module, X * sign, places), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def pushed(held, row):
    return tf.raw_ops.TensorListPushBack(input_handle=held, tensor=row)


def popped(held):
    return tf.raw_ops.TensorListPopBack(input_handle=held, element_shape=[6], element_dtype=tf.float32)


def stacked(held):
    return tf.raw_ops.TensorListStack(input_handle=held, element_shape=[6], element_dtype=tf.float32)


def of_rows(x):
    return tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=[6])


def empty():
    return tf.raw_ops.EmptyTensorList(element_shape=[6], max_num_elements=-1, element_dtype=tf.float32)


def pushed_to_rows(x):
    return stacked(pushed(of_rows(x[:2]), x[3]))


def pushed_to_rows_in_a_loop(x):
    held = of_rows(x[:2])
    for i in tf.range(4):
        held = pushed(held, x[i] * 2)
    return stacked(held)


def pushed_and_popped(x):
    total, held = x[0], of_rows(x[:2])
    for i in tf.range(4):
        held, last = popped(pushed(pushed(held, x[i]), x[i] * 2))
        held, first = popped(held)
        total = total * 2 + last - first * 3
    return total


def pushed_and_popped_again(x):
    total, held = x[0], empty()
    for i in tf.range(4):
        held, last = popped(pushed(held, x[i]))
        total = total * 2 + last
    return total


def pushed_in_both_branches(x):
    held = of_rows(x[:1])
    for i in tf.range(4):
        held = pushed(held, x[i]) if x[i, 0] > 0 else popped(pushed(pushed(held, -x[i]), x[i]))[0]
    return stacked(held)


PUSHES = pushed_to_rows, pushed_to_rows_in_a_loop, pushed_and_popped, pushed_and_popped_again, pushed_in_both_branches


@pytest.mark.parametrize("function", PUSHES)
def test_lists_have_room_for_what_is_pushed(function) -> None:
    function = tf.function(function)
    module = trivium.from_tensorflow(function, X)
    for got, wanted in zip(trivium.evaluate(module, X), tf.nest.flatten(function(X)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_lists_that_grow_in_one_branch_only_are_refused() -> None:
    def grown(x):
        held = of_rows(x[:1])
        for i in tf.range(4):
            if x[i, 0] > 0:
                held = pushed(held, x[i])
        return tf.raw_ops.TensorListLength(input_handle=held)

    with pytest.raises(trivium.Error, match="a list that may be full"):
        trivium.from_tensorflow(tf.function(grown), X)
