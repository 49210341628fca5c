"""Draws from generators: those that are variables draw what TensorFlow draws, the hidden one from the right
distribution."""

import os
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium.tensorflow

raw = tf.raw_ops
pytestmark = pytest.mark.tensorflow

COUNT = 4000
START = [2**63 - 9, 5, 77]

DRAWS = {
    "StatefulUniform": {},
    "StatefulStandardNormalV2": {},
    "StatefulTruncatedNormal": {},
    "StatefulUniformFullInt": {"dtype": tf.int64},
    "StatefulUniformInt": {"minval": -5, "maxval": 90},
}


def compiled(function: Any) -> Any:
    return trivium.tensorflow.function(function, autograph=False, fallback=False)


@pytest.mark.parametrize("op", DRAWS)
def test_generators_that_are_variables(op: str) -> None:
    def twice(compiler: Any) -> list[np.ndarray]:
        generator = tf.Variable(START, dtype=tf.int64, trainable=False)

        def draw() -> Any:
            return getattr(raw, op)(resource=generator.handle, algorithm=1, shape=[3, 5], **DRAWS[op])

        function = compiler(draw)
        return [function().numpy(), function().numpy(), generator.numpy()]

    for mine, theirs in zip(twice(compiled), twice(tf.function), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_skipping() -> None:
    def skipped(compiler: Any) -> np.ndarray:
        generator = tf.Variable(START, dtype=tf.int64, trainable=False)

        def skip(count: Any) -> None:
            raw.RngSkip(resource=generator.handle, algorithm=tf.constant(1, tf.int64), delta=count)

        compiler(skip)(tf.constant(12, tf.int64))
        return generator.numpy()

    np.testing.assert_array_equal(skipped(compiled), skipped(tf.function))


def test_shuffling_permutes_rows() -> None:
    shuffle = compiled(lambda x: raw.RandomShuffle(value=x))
    x = tf.reshape(tf.range(200), (100, 2))
    first, second = shuffle(x).numpy(), shuffle(x).numpy()
    np.testing.assert_array_equal(first[np.argsort(first[:, 0])], x)
    assert (first != second).any()


def test_categories_have_their_probabilities() -> None:
    weights = np.array([[0.1, 0.0, 0.6, 0.3], [0.25] * 4])
    with np.errstate(divide="ignore"):
        logits = tf.constant(np.log(weights), tf.float32)
    drawn = compiled(lambda x: raw.Multinomial(logits=x, num_samples=COUNT))(logits).numpy()
    shares = np.stack([np.bincount(row, minlength=4) / COUNT for row in drawn])
    assert (np.abs(shares - weights) <= 6 * np.sqrt(weights * (1 - weights) / COUNT)).all()


def test_normal_numbers_between_bounds() -> None:
    draw = compiled(
        lambda: raw.ParameterizedTruncatedNormal(
            shape=[2, COUNT], means=[1.0, 0.0], stdevs=[2.0, 1.0], minvals=[-1.0, 0.0], maxvals=[3.0, 9.0]
        )
    )
    both = draw().numpy()
    assert (both >= [[-1], [0]]).all()
    assert (both <= [[3], [9]]).all()
    # The means of the symmetric one and of the half normal distribution.
    for row, mean in zip(both, (1.0, np.sqrt(2 / np.pi)), strict=True):
        assert abs(row.mean() - mean) < 6 * row.std() / np.sqrt(COUNT)
