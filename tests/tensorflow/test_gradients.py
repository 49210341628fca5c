"""Gradients of compiled functions inside a `tf.function`, with tapes outside of it and inside: of any order, in reverse
and forward mode, and `None` where `tf.function` has none."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium.tensorflow

pytestmark = pytest.mark.tensorflow

WEIGHT, UNUSED = tf.Variable(2.0), tf.Variable(1.0)
X, Y = tf.constant([1.0, 2.0]), tf.constant([3.0])


def assert_same(calculate: Callable[[Any], Any], tolerance: float = 1e-5) -> None:
    """Compares what is calculated with Trivium's functions with what it is with TensorFlow's."""
    got, wanted = (tf.nest.flatten(calculate(function)) for function in (trivium.tensorflow.function, tf.function))
    assert [x is None for x in got] == [x is None for x in wanted]
    for mine, theirs in zip(got, wanted, strict=True):
        if mine is not None:
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def wave(x: Any) -> Any:
    return tf.sin(x) * WEIGHT * x


@pytest.mark.parametrize("order", [1, 2])
def test_tapes_outside(order: int) -> None:
    """And one order more, by the argument and by the variable. Graphs of the fourth order are far larger."""

    def derivative(function: Any) -> Any:
        inner = function(wave)
        outer = tf.function(lambda x: inner(x) + 1)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(X)
            y = outer(X)
            for _ in range(order):
                y = tape.gradient(y, X)
        return y, tape.gradient(y, [X, WEIGHT])

    assert_same(derivative)


def test_tapes_around_functions_inside() -> None:
    def second(function: Any) -> Any:
        inner = function(wave)
        outer = tf.function(lambda x: inner(x) + 1)

        def derivative(f: Any) -> Any:
            def gradient(x: Any) -> Any:
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = f(x)
                return tape.gradient(y, x)

            return gradient

        return tf.function(derivative(derivative(outer)))(X)

    assert_same(second)


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_not_connected_is_none(count: int) -> None:
    def both(x: Any, y: Any) -> Any:
        return (x * WEIGHT, tf.reduce_sum(y) + UNUSED)[:count]

    def found(function: Any) -> Any:
        inner = function(both)
        outer = tf.function(lambda x, y: inner(x, y)[0] * 1)
        with tf.GradientTape() as tape:
            tape.watch([X, Y])
            z = outer(X, Y)
        return tape.gradient(z, [X, Y, WEIGHT, UNUSED])

    assert_same(found)


@pytest.mark.parametrize("is_nested", [False, True])
def test_forward_mode_and_jacobians(is_nested: bool) -> None:
    def found(function: Any) -> Any:
        inner = function(wave)
        outer = tf.function(lambda x: inner(x) + 1) if is_nested else inner
        with tf.autodiff.ForwardAccumulator(X, tf.ones_like(X)) as forward, tf.GradientTape(True) as tape:
            tape.watch(X)
            y = outer(X)
        return forward.jvp(y), tape.jacobian(y, X, experimental_use_pfor=False)

    assert_same(found)


def test_gradients_of_loops_and_branches_around() -> None:
    def found(function: Any) -> Any:
        inner = function(wave)

        @tf.function
        def outer(x: Any) -> Any:
            for _ in tf.range(3):
                x = inner(x) if x[0] > 0 else x * 2
            return x

        with tf.GradientTape() as tape:
            tape.watch(X)
            y = outer(X)
        return tape.gradient(y, [X, WEIGHT])

    assert_same(found, 1e-4)


def test_a_call_is_one_node() -> None:
    inner = trivium.tensorflow.function(wave)
    graph = tf.function(lambda x: inner(x)).get_concrete_function(X).graph
    nodes = [x for x in graph.get_operations() if x.type not in ("Placeholder", "Identity", "NoOp")]
    assert [x.type for x in nodes] == ["ReadVariableOp", "PyFuncStateless"]
    assert nodes[1].name == "wave"


def test_custom_gradients_of_functions_that_ran_before() -> None:
    @tf.function(autograph=False)
    def loop(x: Any) -> Any:
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1]

    outer = tf.function(lambda x: loop(x) + 1, autograph=False)

    @tf.custom_gradient
    def powers(x: Any) -> Any:
        return outer(x), lambda dy: dy * x

    def calculate(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = powers(x)
        return y, tape.gradient(y, x)

    x = tf.constant([0.5, 2.0])
    calculate(x)  # after this, functions of TensorFlow's context are called by those that are traced
    for result, expected in zip(trivium.tensorflow.function(calculate, fallback=False)(x), calculate(x), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6)
