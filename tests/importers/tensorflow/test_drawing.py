"""Boxes drawn into images, and glimpses of images, against TensorFlow: inside, in part outside, and outside."""

import functools
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
RAW = tf.raw_ops


def require_equal(function: Callable[..., Any], specs: list[Any], calls: list[list[np.ndarray]]) -> None:
    """Requires that one program computes what a function does, for several sizes, and the first of them compiled."""
    module = trivium.from_tensorflow(tf.function(function, autograph=False), *specs)
    module.verify()
    run = trivium.compile(module)
    for number, given in enumerate(calls):
        wanted = function(*map(tf.constant, given)).numpy()
        compiled = [] if number else tf.nest.flatten(run(*given))
        for got in (*trivium.evaluate(module, *given), *compiled):
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_array_equal(got, wanted)


def images(*shape: int, kind: Any = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(kind)


def boxes(batch: int, count: int) -> np.ndarray:
    """Returns boxes in any place, most of them in order, some with numbers that are no place."""
    ends = RANDOM.uniform(-0.5, 1.5, (batch, count, 2, 2))
    ends = np.where(RANDOM.random((batch, count, 1, 1)) < 0.8, np.sort(ends, 2), ends).reshape(batch, count, 4)
    rounded = np.where(RANDOM.random(ends.shape) < 0.2, np.round(ends), ends)
    special = RANDOM.choice([np.nan, np.inf, -np.inf, 1e30, -1e20], ends.shape)
    return np.where(RANDOM.random(ends.shape) < 0.05, special, rounded).astype(np.float32)


def drawn(colors: np.ndarray, x: Any, at: Any) -> Any:
    return RAW.DrawBoundingBoxesV2(images=x, boxes=at, colors=colors)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("depth", [1, 3, 4])
def test_boxes(depth: int, kind: Any) -> None:
    specs = [tf.TensorSpec([None, None, None, depth], kind), tf.TensorSpec([None, None, 4])]
    sizes = ((2, 9, 7), (3, 5, 5), (1, 1, 4), (1, 12, 16))
    calls = [
        [images(*size, depth, kind=kind), boxes(size[0], count)]
        for size, count in zip(sizes, (13, 1, 5, 40), strict=True)
    ]
    calls.append([images(2, 4, 4, depth, kind=kind), boxes(2, 0)])
    require_equal(lambda x, at: RAW.DrawBoundingBoxes(images=x, boxes=at), specs, calls)
    colors = [RANDOM.uniform(0, 9, (count, width)).astype(np.float32) for count, width in ((1, depth), (3, depth + 2))]
    for color in (*colors, np.zeros((0, depth), np.float32)):
        require_equal(functools.partial(drawn, color), specs, calls)


@pytest.mark.parametrize(
    ("depth", "width", "message"),
    [
        (2, 3, "images has 2 channels, expected 1, 3 or 4"),
        (None, 3, "images has an unknown number of channels, expected 1, 3 or 4"),
        (3, 1, "colors has tensor<2x1xf32>, expected 3 channels, as images, or more"),
    ],
)
def test_channels_that_do_not_fit(depth: int | None, width: int, message: str) -> None:
    specs = [tf.TensorSpec([2, 5, 5, depth]), tf.TensorSpec([2, 1, 4]), tf.TensorSpec([2, width])]

    def function(x: Any, at: Any, colors: Any) -> Any:
        return RAW.DrawBoundingBoxesV2(images=x, boxes=at, colors=colors)

    with pytest.raises(trivium.Error, match=message):
        trivium.from_tensorflow(tf.function(function), *specs)


OFFSETS = np.float32(
    [[0, 0], [0.3, -0.6], [-1.5, 1.2], [2, 3], [-3, -2.5], [9, -9], [np.nan, 0.4], [np.inf, 0], [0.5, 1]]
)


@pytest.mark.parametrize("size", [(2, 3), (5, 6), (9, 1), (0, 2)])
@pytest.mark.parametrize("is_normalized", [False, True])
@pytest.mark.parametrize("is_centered", [False, True])
@pytest.mark.parametrize("op", [RAW.ExtractGlimpse, RAW.ExtractGlimpseV2])
def test_glimpses(op: Callable[..., Any], is_centered: bool, is_normalized: bool, size: tuple[int, int]) -> None:
    how = {"centered": is_centered, "normalized": is_normalized, "uniform_noise": False, "noise": "zero"}

    def function(x: Any, at: Any) -> Any:
        return op(input=x, size=size, offsets=at, **how)

    specs = [tf.TensorSpec([None, None, None, 2]), tf.TensorSpec([None, 2])]
    shapes = ((3, 4), (5, 6), (7, 3), (1, 1))
    require_equal(function, specs, [[images(len(OFFSETS), *shape, 2), OFFSETS] for shape in shapes])


def test_glimpses_of_images_without_channels() -> None:
    def function(x: Any, at: Any) -> Any:
        return RAW.ExtractGlimpse(input=x, size=[2, 3], offsets=at, uniform_noise=False, noise="zero")

    specs = [tf.TensorSpec([2, 4, 4, 0]), tf.TensorSpec([2, 2])]
    require_equal(function, specs, [[images(2, 4, 4, 0), OFFSETS[:2]]])


def test_glimpses_of_a_size_that_is_computed() -> None:
    def half(x: Any, at: Any) -> Any:
        return RAW.ExtractGlimpseV2(input=x, size=tf.shape(x)[1:3] // 2, offsets=at, uniform_noise=False, noise="zero")

    specs = [tf.TensorSpec([None, None, None, 2]), tf.TensorSpec([None, 2])]
    calls = [[images(len(OFFSETS), *shape, 2), OFFSETS] for shape in ((3, 4), (6, 9))]
    require_equal(half, specs, calls)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, "noise has uniform, with uniform_noise True, expected zero, without uniform_noise"),
        ({"noise": "gaussian", "uniform_noise": False}, "noise has gaussian, with uniform_noise False, expected zero"),
        ({"noise": "", "uniform_noise": False}, "noise has none, with uniform_noise False, expected zero"),
    ],
)
def test_random_noise_is_refused(how: dict[str, Any], message: str) -> None:
    def function(x: Any) -> Any:
        return RAW.ExtractGlimpse(input=x, size=[2, 2], offsets=OFFSETS[:1], **how)

    with pytest.raises(trivium.UnsupportedOpError, match=message):
        trivium.from_tensorflow(tf.function(function), images(1, 4, 4, 1))
