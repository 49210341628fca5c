"""Edges whose widths the program computes: paddings that depend on a size, and dilated convolutions of inputs of any
size, which are written with them."""

import os
from collections.abc import Callable

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import keras

import trivium

pytestmark = pytest.mark.tensorflow

L = keras.layers
RANDOM = np.random.default_rng(0)
IMAGES, SEQUENCES = (None, None, 3), (None, 3)
LAYERS = {
    "same": (lambda: L.Conv2D(4, 3, padding="same", dilation_rate=2), IMAGES),
    "valid": (lambda: L.Conv2D(4, 3, dilation_rate=(2, 3)), IMAGES),
    "depthwise": (lambda: L.DepthwiseConv2D(3, padding="same", dilation_rate=2), IMAGES),
    "separable": (lambda: L.SeparableConv1D(4, 3, padding="same", dilation_rate=2), SEQUENCES),
    "causal": (lambda: L.Conv1D(4, 3, padding="causal", dilation_rate=2), SEQUENCES),
}


def require_equal(module: trivium.Module, function: Callable[..., "tf.Tensor"], *inputs: np.ndarray) -> None:
    """Requires that a program, interpreted and compiled, computes what a function does."""
    wanted = function(*map(tf.constant, inputs))
    for got in (*trivium.evaluate(module, *inputs), *tf.nest.flatten(trivium.compile(module)(*inputs))):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_dilated_convolutions_of_any_size(name: str) -> None:
    keras.utils.set_random_seed(1)
    make, shape = LAYERS[name]
    model = keras.Sequential([keras.Input(shape), make()])
    module = trivium.from_tensorflow(model)
    module.verify()
    for sizes in ((8, 9), (11, 7)):
        x = RANDOM.standard_normal((2, *sizes[: len(shape) - 1], 3)).astype(np.float32)
        require_equal(module, model, x)


def filled_up(x: "tf.Tensor") -> "tf.Tensor":
    """Returns rows, filled up to a multiple of 8."""
    return tf.pad(x, [[0, 0], [0, -tf.shape(x)[1] % 8]], constant_values=3.0)


def reflected(x: "tf.Tensor", n: "tf.Tensor") -> "tf.Tensor":
    return tf.pad(x, [[0, 0], [n, n + 1]], "reflect")


def slope(x: "tf.Tensor", n: "tf.Tensor") -> "tf.Tensor":
    """Returns a gradient through edges on both sides."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        edged = tf.pad(tf.pad(x, [[1, 0], [n, 2]], "symmetric"), [[0, n], [1, 0]])
        total = tf.reduce_sum(edged * tf.range(tf.cast(tf.size(edged), tf.float32))[0] + edged**2)
    return tape.gradient(total, x)


@pytest.mark.parametrize("rows", [2, 3])
def test_edges_that_are_computed(rows: int) -> None:
    x, n = RANDOM.standard_normal((rows, 5)).astype(np.float32), np.int32(rows)
    matrix, number = tf.TensorSpec([None, None]), tf.TensorSpec([], tf.int32)
    require_equal(trivium.from_tensorflow(tf.function(filled_up), matrix), filled_up, x)
    for function in (reflected, slope):
        require_equal(trivium.from_tensorflow(tf.function(function), matrix, number), function, x, n)


def test_blocks_between_edges_that_are_computed() -> None:
    def there_and_back(x, n):
        blocks = tf.space_to_batch(x, [2], [[n, tf.shape(x)[1] % 2 + n]])
        return tf.batch_to_space(tf.sin(blocks), [2], [[n, n]])

    x = RANDOM.standard_normal((2, 4, 3)).astype(np.float32)
    module = trivium.from_tensorflow(
        tf.function(there_and_back), tf.TensorSpec([None, None, 3]), tf.TensorSpec([], tf.int32)
    )
    for n in range(3):
        require_equal(module, there_and_back, x, np.int32(n))
