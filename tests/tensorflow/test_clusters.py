"""Functions of which only parts can be compiled: TensorFlow runs the rest, in order, with gradients."""

import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium.tensorflow

pytestmark = pytest.mark.tensorflow

X = tf.constant(np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32))


def assert_same(got: Any, wanted: Any) -> None:
    for mine, theirs in zip(tf.nest.flatten(got), tf.nest.flatten(wanted), strict=True):
        if theirs.dtype == tf.string:
            assert np.array_equal(mine, theirs)
        else:
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


class Mixed:
    """Compiled parts around strings, a Python function and sizes that depend on data; variables change between them."""

    def __init__(self) -> None:
        self.weight, self.count = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(0)

    def __call__(self, x: Any) -> Any:
        y = tf.tanh(x * self.weight)
        self.count.assign_add(1)
        numbers, places = tf.unique(tf.cast(tf.reshape(x, [-1]) * 2, tf.int32))
        z = tf.ensure_shape(tf.py_function(lambda y: y + 1, [y], tf.float32), y.shape)
        self.weight.assign(self.weight * 2)
        total = tf.reduce_sum(z * y, 0) + tf.cast(self.count, tf.float32) + self.weight
        dense = tf.sparse.to_dense(tf.sparse.from_dense(y)) - 1
        return total, numbers, places, tf.strings.as_string(self.count), tf.reshape(dense, [tf.shape(dense)[0] * 3])


def outcome(function: Any, mixed: Mixed) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(X)
        results = function(X)
        loss = tf.reduce_sum(results[0])
    return results, tape.gradient(loss, [X, mixed.weight]), mixed.weight.value(), mixed.count.value()


@pytest.mark.parametrize("around", [None, (2, 3), (None, 3)], ids=["eager", "graph", "unknown"])
def test_parts_run_in_order(around: Any, caplog: pytest.LogCaptureFixture) -> None:
    mine, theirs = Mixed(), Mixed()
    compiled = trivium.tensorflow.function(mine.__call__)
    if around is not None:
        compiled = tf.function(compiled, input_signature=[tf.TensorSpec(around)])
    assert_same(outcome(compiled, mine), outcome(theirs, theirs))
    told = warnings(caplog)
    assert len(told) == len({message.split()[0] for message in told})
    assert not any(message.startswith(("Unique", "Where")) for message in told)
    assert any(message.startswith("EagerPyFunc runs in TensorFlow: it has no rule") for message in told)
    assert all("test_clusters.py" in message for message in told if "EagerPyFunc" in message)


def test_printing_comes_in_its_place(tmp_path: Path) -> None:
    count, file = tf.Variable(0), f"file://{tmp_path}/printed"

    @trivium.tensorflow.function
    def function(x: Any) -> Any:
        for _ in range(3):
            count.assign_add(x)
            tf.print(count, output_stream=file)
        return count * 2

    assert function(tf.constant(2)) == 12
    assert (tmp_path / "printed").read_text() == "2\n4\n6\n"


def test_tables() -> None:
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [10.0, 20.0], tf.int64), 0.0)

    def function(keys: Any) -> Any:
        return table.lookup(keys * 2) + 1

    keys = tf.constant([0, 1, 7], tf.int64)
    assert_same(trivium.tensorflow.function(function)(keys), function(keys))


def test_functions_that_are_called_are_divided_as_well(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trivium.tensorflow")

    @tf.function
    def inner(x: Any) -> Any:
        return tf.strings.to_number(tf.strings.as_string(x * 2)) * 3

    function = trivium.tensorflow.function(lambda x: inner(x + 1) - 1)
    assert_same(function(X), inner(X + 1) - 1)
    assert sum("compiling" in record.getMessage() for record in caplog.records) == 2


def test_loops_run_where_their_body_can() -> None:
    def function(x: Any) -> Any:
        for _ in tf.range(3):
            x = tf.unique(tf.cast(x * 1.5, tf.int32))[1]
            x = tf.cast(x, tf.float32) + 1
        return x * 2

    x = tf.constant([1.0, 2.0, 3.0])
    assert_same(trivium.tensorflow.function(function)(x), tf.function(function)(x))


def test_gradients_see_the_values_of_the_forward_pass() -> None:
    weight = tf.Variable(2.0)
    compiled = trivium.tensorflow.function(lambda x: tf.sparse.to_dense(tf.sparse.from_dense(x * weight)) * weight)
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = compiled(X)
        weight.assign(100.0)
    assert_same(tape.gradient(y, X), tf.fill((2, 3), 4.0))
    assert weight.numpy() == 100


@pytest.mark.parametrize("around", [False, True], ids=["eager", "graph"])
def test_gradients_leave_the_variables_alone(around: bool) -> None:
    weight, count = tf.Variable(2.0), tf.Variable(0)
    during: list[tuple[float, int]] = []

    def seen(x: Any) -> Any:
        during.append((float(weight), int(count)))
        return x

    @tf.custom_gradient
    def watched(x: Any) -> Any:
        return x + 0.0, lambda dy: tf.ensure_shape(tf.py_function(seen, [dy], tf.float32), dy.shape)

    @trivium.tensorflow.function
    def compiled(x: Any) -> Any:
        count.assign_add(1)
        return watched(x * weight) * weight

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = compiled(x)
            weight.assign(100.0)
        return tape.gradient(y, [x, weight])

    assert_same((tf.function(step) if around else step)(X), [tf.fill((2, 3), 4.0), tf.reduce_sum(4 * X)])
    # The gradient repeats the forward pass, with the values that the first one had, and counts no second time.
    # A graph does not order the gradient's function and the assignments.
    assert during == [(100.0, 1)] or (around and len(during) == 1)
    assert (weight.numpy(), count.numpy()) == (100, 1)


def test_without_fallback_all_are_listed() -> None:
    mixed = Mixed()
    with pytest.raises(trivium.UnsupportedOpError) as caught:
        trivium.tensorflow.function(mixed.__call__, fallback=False)(X)
    assert {op.name for op in caught.value.ops} == {"EagerPyFunc", "AsString"}
    assert "test_clusters.py" in str(caught.value)


@pytest.mark.parametrize("numbers", [[1, 2, 3], [4]])
def test_a_size_computed_from_data_is_cut_out(numbers: list[int], caplog: pytest.LogCaptureFixture) -> None:
    def up_to_the_sum(x: Any, weight: Any) -> Any:
        return tf.one_hot(0, tf.reduce_sum(x)) * weight

    x, weight = tf.constant(numbers), tf.constant(3.0)
    compiled = trivium.tensorflow.function(up_to_the_sum)
    with tf.GradientTape() as tape:
        tape.watch(weight)
        got = compiled(x, weight)
    assert_same(got, up_to_the_sum(x, weight))
    assert_same(tape.gradient(got, weight), tf.ones(()))
    assert [line.split(" runs in TensorFlow")[0] for line in warnings(caplog)] == ["OneHot"]


def test_ctc_loss_and_its_gradient() -> None:
    labels, lengths, sizes = tf.constant([[1, 2, 2], [3, 4, 0]]), tf.constant([3, 2]), tf.constant([8, 7])

    def loss(logits: Any) -> Any:
        return tf.nn.ctc_loss(labels, logits, lengths, sizes, logits_time_major=False, blank_index=0)

    def slopes(f: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(logits)
            found = f(logits)
        return found, tape.gradient(found, logits)

    logits = tf.constant(np.random.default_rng(0).standard_normal((2, 8, 5)).astype(np.float32))
    assert_same(slopes(trivium.tensorflow.function(loss)), slopes(tf.function(loss)))


def test_branches_of_different_shapes() -> None:
    compiled = trivium.tensorflow.function(lambda x, k: tf.image.rot90(x, k))
    x = tf.reshape(tf.range(12.0), (2, 3, 2))
    for k in (1, 2):
        np.testing.assert_array_equal(compiled(x, tf.constant(k)), tf.image.rot90(x, k))
    known = trivium.tensorflow.function(lambda x: tf.image.rot90(x, 3), fallback=False)
    np.testing.assert_array_equal(known(x), tf.image.rot90(x, 3))
