"""Gradients from TensorFlow's tape: each uses the ops that only gradients have."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium.tensorflow

pytestmark = pytest.mark.tensorflow

generator = np.random.default_rng(0)
MATRIX = generator.uniform(0.2, 0.9, (3, 4)).astype(np.float32)
IMAGE = generator.standard_normal((2, 6, 6, 4)).astype(np.float32)
VOLUME = generator.standard_normal((1, 4, 4, 4, 2)).astype(np.float32)
KERNEL = generator.standard_normal((3, 3, 4, 5)).astype(np.float32)
nn, math = tf.nn, tf.math

OF_MATRICES: dict[str, Callable[[Any], Any]] = {
    "band_part": lambda x: tf.linalg.band_part(x, 0, 1) ** 2,
    "batch_matmul": lambda x: tf.matmul(x[None], x[None], transpose_b=True),
    "broadcast": lambda x: tf.broadcast_to(x, [2, 3, 4]) ** 2,
    "clip": lambda x: tf.clip_by_value(x, 0.3, 0.6),
    "concat": lambda x: tf.concat([x, x * 2], 1),
    "cross": lambda x: tf.linalg.cross(x[:, :3], x[:, 1:]),
    "cumprod": lambda x: math.cumprod(x, 1),
    "cumsum": lambda x: tf.cumsum(x, 1) ** 2,
    "cumulative_logsumexp": lambda x: math.cumulative_logsumexp(x, 1),
    "diag_part": lambda x: tf.linalg.diag_part(x) ** 2,
    "digamma": math.digamma,
    "einsum": lambda x: tf.einsum("ij,kj->ik", x, x),
    "fake_quant": lambda x: tf.quantization.fake_quant_with_min_max_vars(x, -0.5, 0.7),
    "gather_axis": lambda x: tf.gather(x, [2, 0], axis=1),
    "gather_batch": lambda x: tf.gather(x, [[0], [1], [3]], batch_dims=1),
    "gather_nd": lambda x: tf.gather_nd(x, [[0, 1], [2, 2]]),
    "logsumexp": lambda x: tf.reduce_logsumexp(x, 1),
    "max": lambda x: tf.reduce_max(x, 0),
    "mirror_pad": lambda x: tf.pad(x, [[1, 1], [0, 2]], "REFLECT"),
    "prod": lambda x: tf.reduce_prod(x, 1),
    "power": lambda x: x**x,
    "reverse_sequence": lambda x: tf.reverse_sequence(x, [1, 3, 2], seq_axis=1) ** 2,
    "scatter_nd": lambda x: tf.scatter_nd([[1], [1], [0]], x, [4, 4]) ** 2,
    "segment_mean": lambda x: math.segment_mean(x, [0, 0, 1]) ** 2,
    "slice": lambda x: tf.slice(x, [1, 1], [2, 2]) ** 2,
    "softmax_cross_entropy": lambda x: nn.softmax_cross_entropy_with_logits(x, x),
    "sort": lambda x: tf.sort(x) ** 2,
    "standard_deviation": lambda x: math.reduce_std(x, 0),
    "strided_slice": lambda x: x[::-1, tf.newaxis, -1] ** 2,
    "tensor_scatter_add": lambda x: tf.tensor_scatter_nd_add(x, [[0], [0]], x[1:] * 2) ** 2,
    "tensor_scatter_update": lambda x: tf.tensor_scatter_nd_update(x, [[0]], x[1:2] * 2) ** 2,
    "tile": lambda x: tf.tile(x, [2, 1]) ** 2,
    "top_k": lambda x: math.top_k(x, 2)[0] ** 2,
    "transpose": lambda x: tf.transpose(x) ** 2,
    "unsorted_segment_max": lambda x: math.unsorted_segment_max(x, [0, 1, 0], 2) ** 2,
    "where": lambda x: tf.where(x > 0.5, x * x, x),
}
OF_IMAGES: dict[str, Callable[[Any], Any]] = {
    "batch_norm": lambda x: tf.compat.v1.nn.fused_batch_norm(x, tf.ones(4), tf.zeros(4))[0] ** 3,
    "bicubic": lambda x: tf.image.resize(x, (9, 9), "bicubic") ** 2,
    "bilinear": lambda x: tf.image.resize(x, (9, 9)) ** 2,
    "depthwise": lambda x: nn.depthwise_conv2d(x, KERNEL[:, :, :, :2], [1, 1, 1, 1], "SAME", dilations=[2, 2]) ** 2,
    "dilated": lambda x: nn.conv2d(x, KERNEL, 1, "SAME", dilations=2) ** 2,
    "max_pool": lambda x: nn.max_pool2d(x, 3, 2, "SAME") ** 2,
    "patches": lambda x: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME") ** 2,
    "space_to_batch": lambda x: tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]) ** 2,
    "transposed": lambda x: nn.conv2d_transpose(x, np.swapaxes(KERNEL, 2, 3), (2, 12, 12, 5), 2) ** 2,
}
OF_VOLUMES: dict[str, Callable[[Any], Any]] = {
    "avg_pool3d": lambda x: nn.avg_pool3d(x, 2, 2, "VALID") ** 2,
    "conv3d": lambda x: nn.conv3d(x, KERNEL.reshape(3, 3, 2, 2, 5), [1, 1, 2, 1, 1], "SAME") ** 2,
    "max_pool3d": lambda x: nn.max_pool3d(x, 2, 2, "SAME") ** 2,
}
CASES = [
    *((name, function, MATRIX) for name, function in OF_MATRICES.items()),
    *((name, function, IMAGE) for name, function in OF_IMAGES.items()),
    *((name, function, VOLUME) for name, function in OF_VOLUMES.items()),
]


@pytest.mark.parametrize(("function", "x"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_gradient(function: Callable[[Any], Any], x: np.ndarray) -> None:
    @tf.function
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y, tape.gradient(y, x)

    module = trivium.from_tensorflow(gradient, x)
    module.verify()
    for got, wanted in zip(trivium.evaluate(module, x), tensorflow_values(gradient, x), strict=True):
        np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-3, atol=1e-4)


def tensorflow_values(function: Any, x: np.ndarray) -> Any:
    """Returns TensorFlow's result. Whether its kernels support the gradient of a dilated convolution depends on the
    processor (oneDNN's do, Eigen's reject it); XLA computes it everywhere."""
    try:
        return function(x)
    except tf.errors.InvalidArgumentError as error:
        if "dilation rates" not in str(error):
            raise
        return tf.function(function.python_function, jit_compile=True)(x)


OF_GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "choices": lambda x: tf.case(
        [(tf.reduce_sum(x) > 9, lambda: x * 2), (tf.reduce_sum(x) > 1, lambda: tf.tanh(x) * x)], lambda: x * x
    ),
    "map": lambda x: tf.map_fn(lambda row: tf.reduce_sum(row) * row, x),
    "scan": lambda x: tf.scan(lambda a, b: tf.tanh(a * b) + b, x),
    "scan_backwards": lambda x: tf.scan(lambda a, b: (a[0] * b, a[1] + b), x, (x[0], x[1]), reverse=True)[0],
}


@pytest.mark.parametrize("name", OF_GRADIENTS)
def test_gradients_of_gradients(name: str) -> None:
    def twice(x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                total = tf.reduce_sum(OF_GRADIENTS[name](x) ** 2)
            slope = inner.gradient(total, x)
            steepness = tf.reduce_sum(slope**2)
        return slope, outer.gradient(steepness, x)

    function = tf.function(twice)
    program = trivium.from_tensorflow(function, MATRIX)
    for got, wanted in zip(trivium.evaluate(program, MATRIX), function(tf.constant(MATRIX)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_gradients_of_matrix_exponentials() -> None:
    """The scaled matrix is chosen by a conditional, whose gradient gets optional values that are absent."""

    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(tf.linalg.expm(x) ** 2)
        return tape.gradient(total, x)

    square = MATRIX[:, :3]
    got = trivium.tensorflow.function(tf.function(slope), fallback=False)(square)
    np.testing.assert_allclose(got, slope(tf.constant(square)), rtol=1e-3)
