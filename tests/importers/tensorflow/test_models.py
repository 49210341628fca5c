"""Whole graphs against TensorFlow itself: Keras models, loops, conditionals, lists, variables, files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

import trivium

pytestmark = pytest.mark.tensorflow


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


X = normal(2, 4)


def assert_close(got: Any, wanted: Any, tolerance: float = 1e-4) -> None:
    for mine, theirs in zip(got, tf.nest.flatten(wanted), strict=True):
        theirs = np.asarray(theirs)
        assert mine.shape == theirs.shape
        assert np.abs(mine - theirs).max(initial=0) <= tolerance * np.abs(theirs).max(initial=1e-30)


def check(function: Callable[..., Any], *inputs: np.ndarray, compiled: bool = False) -> trivium.Module:
    """Imports a function, runs it, and compares with TensorFlow."""
    module = trivium.from_tensorflow(tf.function(function), *inputs)
    module.verify()
    run = trivium.compile(module) if compiled else lambda *arrays: trivium.evaluate(module, *arrays)
    assert_close(run(*inputs), tf.function(function)(*map(tf.constant, inputs)))
    return module


# Control flow


def test_while_loop() -> None:
    check(lambda x: tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.5 + tf.cast(i, x.dtype)), (0, x)), X)


def test_while_loop_with_a_condition_on_data() -> None:
    check(lambda x: tf.while_loop(lambda x: tf.norm(x) < 100.0, lambda x: (x * 2.0,), (x,)), X)


@pytest.mark.parametrize("sign", [1, -1])
def test_conditional(sign: int) -> None:
    check(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: (x * 2, x), lambda: (x - 1, x)), sign * abs(X))


def test_a_known_condition_takes_its_branch() -> None:
    module = check(lambda x: tf.cond(tf.shape(x)[0] > 1, lambda: x * 2, lambda: x), X)
    assert not any(op.NAME == "stablehlo.if" for op in module.walk())


@pytest.mark.parametrize("index", [0, 1, 2, 7])
def test_switch_case(index: int) -> None:
    def function(i: Any, x: Any) -> Any:
        return tf.switch_case(i, [lambda: x, lambda: x * 2, lambda: -x])

    check(function, np.int32(index), X)


def test_nested_calls_and_loops() -> None:
    @tf.function
    def inner(x: Any) -> Any:
        return tf.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, tf.cond(i > 0, lambda: x + 1, lambda: x * 2)), (0, x)
        )[1]

    check(lambda x: tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, inner(x)), (0, x)), X)


def test_tensor_arrays() -> None:
    def function(x: Any) -> Any:
        rows = tf.TensorArray(tf.float32, size=4).unstack(tf.transpose(x))
        out = tf.TensorArray(tf.float32, size=4)
        for i in tf.range(4):
            out = out.write(i, rows.read(3 - i) * 2.0)
        return out.stack(), out.gather([2, 0])

    check(function, X)


def test_map_and_scan() -> None:
    check(lambda x: tf.map_fn(lambda row: row * tf.reduce_sum(row), x), X)
    check(lambda x: tf.scan(lambda carry, row: carry + row, x), X)


def test_gradients_of_loops() -> None:
    def function(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            _, h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(h @ w + x)), (0, tf.zeros_like(x)))
            loss = tf.reduce_sum(h * h)
        return tape.gradient(loss, [x, w])

    check(function, X, normal(4, 4, seed=1))
    check(function, X, normal(4, 4, seed=1), compiled=True)


def test_gradients_of_conditionals() -> None:
    def function(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(x) * x, lambda: tf.exp(x))
        return tape.gradient(y, x)

    check(function, abs(X))
    check(function, -abs(X))


def test_gradients_of_nested_loops() -> None:
    def inner(x: Any, y: Any) -> Any:
        def branch(y: Any) -> Any:
            return tf.cond(tf.reduce_sum(y) > 1, lambda: tf.tanh(y) * x, lambda: y * 2)

        return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, branch(y)), (0, y))[1]

    def function(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, inner(x, y)), (0, x))[1]
        return tape.gradient(y, x)

    check(function, X)


# Variables


def test_written_variables_are_arguments_and_results() -> None:
    count = tf.Variable(0, trainable=False, name="count")
    weight = tf.Variable(X, name="weight")

    def function(x: Any) -> Any:
        before = count.read_value()
        count.assign_add(2)
        return x * weight, before, count.read_value()

    module = trivium.from_tensorflow(tf.function(function), X)
    signature = trivium.compile(module).signature
    assert [(x.name, x.role) for x in signature.arguments] == [("count", "state"), ("x", "input")]
    assert [x.role for x in signature.results] == ["output", "output", "output", "state"]
    product, before, after, state = trivium.evaluate(module, np.int32(5), X)
    assert (before, after, state) == (5, 7, 7)
    np.testing.assert_allclose(product, X * X)


def test_parameters_as_arguments() -> None:
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3), keras.layers.BatchNormalization()])
    module = trivium.from_tensorflow(model, X, parameters="arguments")
    roles = [module.main.argument_attributes(i)["trivium.role"] for i in range(len(module.main.arguments))]
    assert roles == ["parameter", "parameter", "buffer", "buffer", "parameter", "parameter", "input"]


def test_variables_written_in_loops_and_branches() -> None:
    total = tf.Variable(np.zeros(4, np.float32), name="total")

    def function(x: Any) -> Any:
        for row in x:
            if tf.reduce_sum(row) > 0:
                total.assign_add(row)
        return total.read_value()

    module = trivium.from_tensorflow(tf.function(function), X)
    value, state = trivium.evaluate(module, total.numpy(), X)
    np.testing.assert_allclose(value, X[X.sum(1) > 0].sum(0), rtol=1e-5)
    np.testing.assert_array_equal(value, state)


# Models


def small_lstm() -> Any:
    return keras.Sequential(
        [
            keras.layers.Input((6,)),
            keras.layers.Embedding(20, 4),
            keras.layers.LSTM(5),
            keras.layers.Dense(3, "softmax"),
        ]
    )


def test_lstm_classifier() -> None:
    model, tokens = small_lstm(), np.random.default_rng(0).integers(0, 20, (2, 6)).astype(np.int32)
    module = trivium.from_tensorflow(model, tokens)
    assert_close(trivium.evaluate(module, tokens), model(tokens))
    assert_close(trivium.compile(module)(tokens), model(tokens))


@pytest.mark.parametrize(("name", "size"), [("MobileNetV2", 96), ("ResNet50", 64), ("Xception", 71)])
def test_keras_applications(name: str, size: int) -> None:
    keras.utils.set_random_seed(0)
    model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classifier_activation=None)
    images = normal(1, size, size, 3)
    module = trivium.from_tensorflow(model, images)
    assert_close(trivium.compile(module)(images), model(images, training=False))


# Files and graphs


class Counter(tf.Module):
    def __init__(self) -> None:
        self.weight = tf.Variable(normal(4, 4), name="weight")
        self.count = tf.Variable(0, trainable=False, name="count")

    @tf.function(input_signature=[tf.TensorSpec((None, 4))])
    def __call__(self, x):
        self.count.assign_add(1)
        return {"y": tf.cond(tf.reduce_sum(x) > 0, lambda: x @ self.weight, lambda: -x), "n": self.count.read_value()}


def test_saved_model(tmp_path: Path) -> None:
    counter = Counter()
    tf.saved_model.save(counter, str(tmp_path), signatures=counter.__call__)
    module = trivium.from_tensorflow(tmp_path, X)
    assert [module.main.result_attributes(i).get("trivium.name") for i in range(3)] == ["n", "y", "count"]
    n, y, count = trivium.evaluate(module, np.int32(3), X)
    assert n == count == 4
    assert_close([y], counter(tf.constant(X))["y"])


def test_exported_keras_model(tmp_path: Path) -> None:
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, activation="relu")])
    model.export(str(tmp_path), verbose=False)
    assert_close(trivium.evaluate(trivium.from_tensorflow(tmp_path, X), X), model(X))


def test_graph_def() -> None:
    function = tf.function(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.nn.softmax(x), lambda: -x))
    definition = function.get_concrete_function(tf.TensorSpec((None, 4))).graph.as_graph_def()
    assert_close(trivium.evaluate(trivium.from_tensorflow(definition, X), X), function(tf.constant(X)))


# Errors


def test_all_unsupported_ops_are_listed_with_their_lines() -> None:
    def function(x: Any) -> Any:
        product = tf.matmul(x, x, transpose_a=True)
        return tf.raw_ops.IsotonicRegression(input=x).output, tf.cond(
            x[0, 0] > 0, lambda: tf.strings.to_number(tf.strings.as_string(product)), lambda: product
        )

    with pytest.raises(trivium.UnsupportedOpError) as caught:
        trivium.from_tensorflow(tf.function(function), X)
    assert {op.name for op in caught.value.ops} == {"AsString", "IsotonicRegression", "StringToNumber"}
    assert all("test_models.py" in op.first for op in caught.value.ops)


def test_an_unsupported_argument_is_named() -> None:
    with pytest.raises(trivium.UnsupportedOpError, match="Sum: argument reduction_indices has a value computed"):
        trivium.from_tensorflow(tf.function(lambda x, d: tf.reduce_sum(x, d)), X, np.array([1], np.int32))


def test_a_graph_takes_its_inputs_in_order() -> None:
    definition = tf.function(lambda x: x + 1).get_concrete_function(tf.TensorSpec((2,))).graph.as_graph_def()
    with pytest.raises(trivium.Error, match="GraphDef has no arguments outputs, expected inputs in the order"):
        trivium.from_tensorflow(definition, np.ones(2, np.float32), outputs=["y"])


def test_what_cannot_be_imported() -> None:
    with pytest.raises(trivium.Error, match="cannot import a int"):
        trivium.from_tensorflow(3)
