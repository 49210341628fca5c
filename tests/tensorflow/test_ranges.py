"""Functions with unknown sizes, as programs for ranges of them: what is in the space behind the elements is NaN."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

import trivium.tensorflow
from tests.backends.test_ranged import noted
from tests.tensorflow.test_function import assert_same, normal
from trivium.backends.ranged import RangedProgram

pytestmark = pytest.mark.tensorflow

ROWS = tf.TensorSpec((None, 6))
ANY = tf.TensorSpec((None, None, 4))
IDS = tf.TensorSpec((None, None), tf.int32)


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[RangedProgram]:
    """The programs for ranges, which are compiled from the second combination on."""
    monkeypatch.setattr("trivium.tensorflow.compiled.COMPILED_AT_ONCE", 1)
    return noted(monkeypatch)


FUNCTIONS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "rows": (lambda x: tf.nn.softmax(tf.nn.gelu(x) * 2), [ROWS]),
    "flattened": (lambda x: tf.reshape(x, [tf.shape(x)[0] * 2, 3]), [ROWS]),
    "sums": (lambda x: (tf.reduce_sum(x, 0), tf.reduce_mean(x), tf.argmax(x, 0)), [ROWS]),
    "two inputs": (lambda x, y: tf.concat([x, y], 0) @ tf.transpose(y), [ROWS, ROWS]),
    "attention": (lambda x: tf.nn.softmax(tf.matmul(x, x, transpose_b=True)) @ x, [ANY]),
    "shapes": (lambda x: (tf.shape(x), tf.cast(tf.size(x), tf.float32) * x, tf.zeros(tf.shape(x)[:2])), [ANY]),
    "padded": (lambda x: tf.pad(x, [[0, 0], [1, 2], [0, 0]], constant_values=3.0)[:, 1:], [ANY]),
    "integers": (lambda x: (x // 3, tf.one_hot(x, 5), tf.reduce_max(x, 1)), [IDS]),
    "looked up": (lambda x: tf.gather(tf.reshape(tf.range(60.0), [20, 3]), x), [IDS]),
    "pictures": (lambda x: tf.nn.max_pool2d(tf.nn.relu(x), 2, 2, "SAME"), [tf.TensorSpec((None, None, 7, 2))]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, made: list[RangedProgram]) -> None:
    f, signature = FUNCTIONS[name]
    compiled = trivium.tensorflow.function(f, input_signature=signature, fallback=False)
    random = np.random.default_rng(0)
    for rows, columns in ((3, 9), (4, 11), (7, 12), (1, 9), (6, 10), (8, 15), (12, 16)):
        given = []
        for spec in signature:
            sizes = iter((rows, columns))
            shape = [next(sizes) if size is None else size for size in spec.shape]
            drawn = random.integers(0, 20, shape) if spec.dtype.is_integer else random.standard_normal(shape)
            given.append(tf.constant(drawn.astype(spec.dtype.as_numpy_dtype)))
        assert_same(compiled(*given), f(*given))
    assert made


def test_a_model(made: list[RangedProgram]) -> None:
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            *(keras.Input((None, 8)), keras.layers.LSTM(8, return_sequences=True), keras.layers.LayerNormalization()),
            *(keras.layers.Conv1D(4, 3, padding="same"), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(3)),
        ]
    )
    compiled = trivium.tensorflow.function(
        lambda x: model(x), input_signature=[tf.TensorSpec((None, 5, 8))], fallback=False
    )
    for batch in (3, 5, 8, 2, 11, 9):
        x = normal(batch, 5, 8, seed=batch)
        assert_same(compiled(x), model(x))
    assert len(made) == 2


def test_variables_are_assigned(made: list[RangedProgram]) -> None:
    total, count = tf.Variable(tf.zeros(6)), tf.Variable(0)

    @trivium.tensorflow.function(input_signature=[ROWS])
    def add(x: Any) -> Any:
        total.assign_add(tf.reduce_sum(x, 0))
        return x - total / tf.cast(count.assign_add(tf.shape(x)[0]), tf.float32)

    expected, rows = np.zeros(6), 0
    for size in (4, 5, 7, 3):
        x = normal(size, 6, seed=size)
        expected, rows = expected + x.numpy().sum(0), rows + size
        np.testing.assert_allclose(add(x), x - expected / rows, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(total.numpy(), expected, rtol=1e-4, atol=1e-4)
        assert count.numpy() == rows
    assert len(made) == 1


def test_inside_of_a_graph(made: list[RangedProgram]) -> None:
    inner = trivium.tensorflow.function(lambda x: tf.exp(x) @ tf.transpose(x), input_signature=[ROWS])
    outer = tf.function(lambda x: inner(x) + 1, input_signature=[ROWS])
    for size in (4, 5, 7, 3):
        x = normal(size, 6, seed=size)
        assert_same(outer(x), tf.exp(x) @ tf.transpose(x) + 1)
    assert len(made) == 1


def test_gradients(made: list[RangedProgram]) -> None:
    f = trivium.tensorflow.function(lambda x: tf.reduce_mean(tf.nn.softmax(x) ** 2, 1), input_signature=[ROWS])
    for size in (4, 5, 7, 3):
        x = normal(size, 6, seed=size)
        found = []
        for run in (f, lambda x: tf.reduce_mean(tf.nn.softmax(x) ** 2, 1)):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = run(x)
            found.append((y, tape.gradient(y, x)))
        assert_same(*found)
    assert made


SLOW = {
    "TopKV2: argument k": lambda x: tf.sort(x, 0),
    "FFT: argument fft_length": lambda x: tf.abs(tf.signal.fft(tf.cast(tf.transpose(x), tf.complex64))),
}
"""Functions that programs for known sizes compute faster, by what is told of them."""


@pytest.mark.parametrize("op", SLOW)
def test_functions_that_know_one_size_say_why(
    op: str, made: list[RangedProgram], caplog: pytest.LogCaptureFixture
) -> None:
    f = trivium.tensorflow.function(SLOW[op], input_signature=[ROWS])
    with caplog.at_level("INFO", "trivium.executable"):
        for size in (4, 5, 7, 3):
            x = normal(size, 6, seed=size)
            assert_same(f(x), SLOW[op](x))
    assert not made
    told = [record.getMessage() for record in caplog.records if "ranges" in record.getMessage()]
    assert len(told) == 1
    assert f"has no programs for ranges of sizes: an argument is not supported:\n  - {op}" in told[0]


def test_they_are_explained(made: list[RangedProgram]) -> None:
    f = trivium.tensorflow.function(lambda x: tf.tanh(x) / 3, input_signature=[ROWS])
    for size in (4, 5, 7):
        f(normal(size, 6))
    assert "was compiled again, for sizes from 2 to 8" in trivium.explain()
