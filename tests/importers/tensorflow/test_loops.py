"""Loops and conditionals of TensorFlow 1, in graphs and in files, against a session that runs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium
from tests.importers.tensorflow.graphs import constant, graph_of, node, placeholder
from trivium.importers.tensorflow.definitions import importable
from trivium.ir.errors import Error

pytestmark = pytest.mark.tensorflow

v1 = tf.compat.v1

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


@pytest.fixture
def graph() -> Iterator[Any]:
    """A graph to which TensorFlow adds loops and conditionals in their old form."""
    was_enabled = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as made:
            yield made
    finally:
        if was_enabled:
            v1.enable_control_flow_v2()


def check(graph: Any, *feeds: tuple[Any, ...]) -> None:
    """Compares the program of a graph with a session; the results are the nodes named `y`, `y_1`, ..."""
    inputs = [x.outputs[0] for x in graph.get_operations() if x.type == "Placeholder"]
    results = [x.outputs[0] for x in graph.get_operations() if x.name.startswith("y")]
    with v1.Session(graph=graph) as session, TemporaryDirectory() as folder:
        named = {x.op.name: x for x in inputs}, {x.op.name: x for x in results}
        v1.saved_model.simple_save(session, f"{folder}/model", *named)
        program = trivium.from_tensorflow(f"{folder}/model")
        for arrays in feeds:
            expected = session.run(results, dict(zip(inputs, arrays, strict=True)))
            # The arguments of a signature are in the order of their names.
            for got, wanted in zip(trivium.evaluate(program, *reversed(arrays)), expected, strict=True):
                assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
                np.testing.assert_allclose(got, wanted, 1e-5, 1e-6)


def inputs() -> tuple[Any, Any]:
    return v1.placeholder(tf.float32, [3, 4], name="x"), v1.placeholder(tf.int32, [], name="n")


FEEDS = [(X, np.int32(n)) for n in (0, 1, 4)]


def test_a_loop(graph: Any) -> None:
    x, n = inputs()
    _, y = v1.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * 1.5 + x), [0, x])
    tf.identity(y, name="y")
    check(graph, *FEEDS)


def test_inputs_and_results_are_in_the_order_of_the_graph(graph: Any) -> None:
    x, n = inputs()
    _, a, b = v1.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, a + 1.0), [0, x, x * 2.0])
    results = [tf.identity(a, name="first"), tf.identity(b, name="second")]
    module = trivium.from_tensorflow(graph.as_graph_def())
    with v1.Session(graph=graph) as session:
        for arrays in FEEDS:
            expected = session.run(results, dict(zip((x, n), arrays, strict=True)))
            for got, wanted in zip(trivium.evaluate(module, *arrays), expected, strict=True):
                np.testing.assert_allclose(got, wanted, 1e-5, 1e-6)


def test_a_loop_in_a_loop(graph: Any) -> None:
    x, n = inputs()

    def body(i, a):
        return i + 1, v1.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b * 0.5 + x), [0, a])[1]

    tf.identity(v1.while_loop(lambda i, a: i < n, body, [0, x])[1], name="y")
    check(graph, *FEEDS)


def test_conditionals_in_a_loop(graph: Any) -> None:
    x, n = inputs()

    def body(i, a):
        first, second = tf.cond(
            a[0, 0] > 0.5,
            lambda: (a * 0.5, tf.constant(2.0)),
            lambda: (a + tf.cond(a[1, 1] > 0, lambda: 1.0, lambda: a[0, 0]), a[0, 1]),
        )
        return i + 1, first * second

    tf.identity(v1.while_loop(lambda i, a: i < n, body, [0, x])[1], name="y")
    check(graph, *FEEDS)


def test_a_loop_in_a_conditional(graph: Any) -> None:
    x, n = inputs()

    def repeated():
        return v1.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a + x), [0, x])[1]

    tf.identity(tf.cond(n > 2, repeated, lambda: tf.zeros_like(x)), name="y")
    tf.identity(tf.cond(n > 0, lambda: (x, n), lambda: (-x, 3 * n))[1], name="y")
    check(graph, *FEEDS)


def test_conditionals_one_after_the_other(graph: Any) -> None:
    x, n = inputs()
    for _ in range(3):
        x = tf.cond(n > 0, lambda x=x: x * 2.0, lambda x=x: x + 1.0)
    tf.identity(x, name="y")
    check(graph, *FEEDS)


def test_tensor_arrays(graph: Any) -> None:
    x, n = inputs()
    given = tf.TensorArray(tf.float32, size=3).unstack(x)

    def body(i, array):
        return i + 1, array.write(i, given.read(i) * tf.cast(n, tf.float32))

    _, made = v1.while_loop(lambda i, _: i < 3, body, [0, tf.TensorArray(tf.float32, size=3, clear_after_read=False)])
    tf.identity(made.stack(), name="y")
    tf.identity(made.gather([2, 0]), name="y")
    tf.identity(made.size(), name="y")
    check(graph, *FEEDS)


def test_gradients_of_tensor_arrays(graph: Any) -> None:
    x, n = inputs()
    array = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
    used = array.read(0) * array.read(n % 3) + array.read(1)
    pieces = tf.TensorArray(tf.float32, size=2).split(tf.reshape(x, [6, 2]), [3, 3])
    total = tf.reduce_sum(used) + tf.reduce_sum(pieces.concat() ** 2) + tf.reduce_sum(array.gather([1, 1]))
    tf.identity(tf.gradients(total, [x])[0], name="y")
    check(graph, *FEEDS)


def test_gradients_of_loops(graph: Any) -> None:
    """What TensorFlow keeps for them is on stacks."""
    x, n = inputs()
    _, y = v1.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, tf.sin(a) * x), [0, x])
    tf.identity(tf.gradients(tf.reduce_sum(y), [x])[0] + tf.cast(n, tf.float32), name="y")
    check(graph, *FEEDS)


def test_stacks(graph: Any) -> None:
    x, n = inputs()
    stack = tf.raw_ops.StackV2(max_size=-1, elem_type=tf.float32)
    pushed = tf.raw_ops.StackPushV2(handle=stack, elem=x)
    with tf.control_dependencies([pushed]):
        pushed = tf.raw_ops.StackPushV2(handle=stack, elem=x * 2.0)
    with tf.control_dependencies([pushed]):
        first = tf.raw_ops.StackPopV2(handle=stack, elem_type=tf.float32)
    with tf.control_dependencies([first]):
        second = tf.raw_ops.StackPopV2(handle=stack, elem_type=tf.float32)
    tf.identity(first - second * tf.cast(n, tf.float32), name="y")
    check(graph, *FEEDS)


def frozen() -> tuple[Any, Any]:
    """A function, and the same with its control flow lowered and its variable frozen, as TensorFlow does it."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    w = tf.Variable(np.random.default_rng(1).standard_normal((4, 4)).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([3, 4]), tf.TensorSpec([], tf.int32)])
    def function(x, n):
        i = 0
        while i < n:
            x = tf.matmul(x, w) * 0.5 if tf.reduce_sum(x) > 0 else x - tf.cast(i, tf.float32)
            i += 1
        return x, tf.switch_case(n, [lambda: x, lambda: x * 2.0, lambda: x + 1.0])

    return function, convert_variables_to_constants_v2(function.get_concrete_function())


@pytest.mark.parametrize("form", ["function", "graph"])
def test_frozen_functions(form: str) -> None:
    function, concrete = frozen()
    names = [x.op.name for x in (*concrete.graph.inputs, *concrete.outputs)]
    definition = v1.graph_util.extract_sub_graph(concrete.graph.as_graph_def(), names)
    program = trivium.from_tensorflow(concrete if form == "function" else definition)
    for arrays in FEEDS:
        for got, wanted in zip(trivium.evaluate(program, *arrays), function(*arrays), strict=True):
            np.testing.assert_allclose(got, wanted.numpy(), 1e-5, 1e-6)


def test_saved_models(graph: Any, tmp_path: Path) -> None:
    x, n = inputs()
    w = v1.get_variable("w", initializer=tf.constant(X), use_resource=True)
    _, y = v1.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * w), [0, x])
    with v1.Session(graph=graph) as session:
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x, "n": n}, {"y": y})
        expected = session.run(y, {x: X, n: 3})
    (got,) = trivium.evaluate(trivium.from_tensorflow(tmp_path / "model"), np.int32(3), X)
    np.testing.assert_allclose(got, expected, 1e-5)


def _two(x: Any, n: Any) -> Any:
    a, b = v1.cond(n > 1, lambda: (tf.sin(x), x * 3), lambda: (x * x, x + 1))
    return a * b


def _nested(x: Any, n: Any) -> Any:
    y = x * 2
    return v1.cond(n > 1, lambda: v1.cond(tf.reduce_sum(x) > 0, lambda: y * x, lambda: tf.exp(x)), lambda: x - y) * y


@pytest.mark.parametrize("f", [_two, _nested])
def test_gradients_of_conditionals(graph: Any, f: Callable[..., Any]) -> None:
    x, n = inputs()
    y = f(x, n)
    tf.identity(y, name="y")
    tf.identity(v1.gradients(y, x)[0], name="y_1")
    check(graph, *((sign * X, np.int32(n)) for sign in (1, -1) for n in (0, 3)))


# Graphs that no function of TensorFlow's writes


SWITCH = [
    placeholder("x", [2]),
    constant("p", True, tf.bool),
    node("s", "Switch", "x", "p", T=tf.float32),
    node("a", "Neg", "s", T=tf.float32),
    node("b", "Abs", "s:1", T=tf.float32),
]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (("a", "a"), r"y merges the branches \[0, 0\], expected all of a conditional"),
        (("a", "x"), None),
        (("x", "x"), r"y merges the branches \[None, None\], expected all"),
        (("a", "c"), "y merges a result that depends on several branches"),
    ],
)
def test_irregular_conditionals(inputs: tuple[str, str], message: str | None) -> None:
    both = node("c", "AddV2", "a", "b", T=tf.float32)
    definition = graph_of(*SWITCH, both, node("y", "Merge", *inputs, N=2, T=tf.float32))
    if message is None:
        assert "If" in {x.op for x in importable(definition, ["y"]).node}
        return
    with pytest.raises(Error, match=message):
        importable(definition, ["y"])


def test_a_switch_without_a_merge() -> None:
    with pytest.raises(Error, match="Switch"):
        importable(graph_of(*SWITCH), ["a"])


def loop(*without: str) -> Any:
    frame = tf.compat.v1.AttrValue(s=b"loop")
    nodes = [
        placeholder("x", []),
        node("enter", "Enter", "x", T=tf.float32, frame_name=frame),
        node("merge", "Merge", "enter", "next", N=2, T=tf.float32),
        constant("zero", 0.0, tf.float32),
        node("limit", "Enter", "zero", T=tf.float32, frame_name=frame, is_constant=tf.compat.v1.AttrValue(b=True)),
        node("less", "Less", "merge", "limit", T=tf.float32),
        node("test", "LoopCond", "less"),
        node("switch", "Switch", "merge", "test", T=tf.float32),
        node("square", "Square", "switch:1", T=tf.float32),
        node("next", "NextIteration", "square", T=tf.float32),
        node("y", "Exit", "switch", T=tf.float32),
    ]
    return graph_of(*(x for x in nodes if x.name not in without))


def test_regular_loops() -> None:
    program = trivium.from_tensorflow(importable(loop(), ["x", "y"]))
    assert trivium.evaluate(program, np.float32(-3)) == (9.0,)


@pytest.mark.parametrize(
    ("without", "message"),
    [
        ("test", "the loop loop has 0 conditions, expected one"),
        ("next", "the loop loop has no next value of enter"),
        ("merge", "merge is used in loop_0_test, but comes from outside of it"),
        ("enter", "enter is used in a conditional, but the graph does not have it"),
        ("square", "square is used in loop_0_body, but comes from outside of it"),
    ],
)
def test_irregular_loops(without: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        importable(loop(without), ["y"])
