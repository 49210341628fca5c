"""Fourier transforms whose lengths the program computes, against TensorFlow."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(0)
SIGNAL = tf.signal
SHAPES = ((2, 3, 4, 6), (1, 2, 5, 7), (3, 1, 1, 1), (0, 2, 3, 4), (2, 4, 8, 5))


def drawn(shape: tuple[int, ...], kind: Any) -> np.ndarray:
    x = RANDOM.standard_normal(shape)
    return (x + 1j * RANDOM.standard_normal(shape) if np.dtype(kind).kind == "c" else x).astype(kind)


def require_equal(function: Callable[..., Any], spec: Any, inputs: list[np.ndarray]) -> None:
    """Requires that one program computes for all inputs what a function does, interpreted and compiled."""
    module = trivium.from_tensorflow(tf.function(function, autograph=False), spec)
    module.verify()
    run = trivium.compile(module)
    error = 1e-12 if spec.dtype in (tf.float64, tf.complex128) else 2e-6
    for x in inputs:
        wanted = function(tf.constant(x)).numpy()
        for got in (*trivium.evaluate(module, x), *tf.nest.flatten(run(x))):
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_allclose(got, wanted, error, error * max(1.0, np.abs(wanted).max(initial=0)))


OF_COMPLEX = [SIGNAL.fft, SIGNAL.ifft, SIGNAL.fft2d, SIGNAL.ifft2d, SIGNAL.fft3d, SIGNAL.ifft3d]
OF_COMPLEX += [SIGNAL.irfft, SIGNAL.irfft2d, SIGNAL.irfft3d]


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
@pytest.mark.parametrize("function", OF_COMPLEX)
def test_of_complex_numbers(function: Callable[..., Any], kind: Any) -> None:
    shapes = [shape for shape in SHAPES if shape[3] > 1]  # of one element, an inverse has none
    require_equal(function, tf.TensorSpec([None] * 4, kind), [drawn(shape, kind) for shape in shapes])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("function", [SIGNAL.rfft, SIGNAL.rfft2d, SIGNAL.rfft3d])
def test_of_real_numbers(function: Callable[..., Any], kind: Any) -> None:
    require_equal(function, tf.TensorSpec([None] * 4, kind), [drawn(shape, kind) for shape in SHAPES])


@pytest.mark.parametrize("fixed", [1, 2, 3])
@pytest.mark.parametrize("function", [SIGNAL.fft3d, SIGNAL.ifft3d, SIGNAL.irfft3d])
def test_where_some_lengths_are_known(function: Callable[..., Any], fixed: int) -> None:
    shape: list[int | None] = [None] * 4
    shape[fixed] = 5
    given = [tuple(size or some for size, some in zip(shape, sizes, strict=True)) for sizes in SHAPES[:2]]
    require_equal(function, tf.TensorSpec(shape, tf.complex64), [drawn(each, np.complex64) for each in given])


@pytest.mark.parametrize("more", [-1, 0, 3])
def test_lengths_that_are_computed(more: int) -> None:
    """Signals are cut, or zeros are added behind them."""

    def there(x: Any) -> Any:
        return SIGNAL.rfft(x, [tf.shape(x)[1] + more])

    def back(x: Any) -> Any:
        return SIGNAL.irfft(x, [2 * tf.shape(x)[1] + more])

    for function, kind in ((there, np.float32), (back, np.complex64)):
        require_equal(function, tf.TensorSpec([None, None], kind), [drawn((2, n), kind) for n in (2, 5, 6)])


def test_frames_of_a_signal_of_any_length() -> None:
    def spectrum(x: Any) -> Any:
        return tf.abs(SIGNAL.stft(x, 8, 4)) ** 2

    require_equal(spectrum, tf.TensorSpec([None, None]), [drawn((2, n), np.float32) for n in (8, 21)])


def test_gradients() -> None:
    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.abs(SIGNAL.rfft(x)) ** 2) + tf.reduce_sum(
                SIGNAL.irfft(tf.cast(x, tf.complex64)) ** 3
            )
        return tape.gradient(loss, x)

    require_equal(slope, tf.TensorSpec([None, None]), [drawn((2, n), np.float32) for n in (4, 7)])


def test_numbers_that_are_not_finite() -> None:
    module = trivium.from_tensorflow(tf.function(SIGNAL.rfft), tf.TensorSpec([None, None]))
    x = np.float32([[1, 2, 3], [1, np.nan, 2], [np.inf, 0, 0]])
    (got,) = trivium.evaluate(module, x)
    np.testing.assert_allclose(got[0], SIGNAL.rfft(x)[0], 1e-5)
    assert not np.isfinite(got[1:]).any()
