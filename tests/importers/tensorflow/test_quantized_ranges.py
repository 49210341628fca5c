"""Quantization by ranges of numbers, bit for bit as TensorFlow does it."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium
import trivium.tensorflow
from trivium.importers.tensorflow.types import QUANTIZED

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(0)
RAW = tf.raw_ops
MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
RANGES = [
    *((-1, 2), (0, 0), (1, 2), (-3.3, -1.1), (0.3, 9.7), (-1e30, 1e30), (-0.1, 7), (-1e-3, 1e-3), (np.nan, 1)),
    *((-127.5, 127), (-128, 127), (0, 255), (-7, 0.3), (-0.4, 0.4), (-5, np.nan)),
]
NUMBERS = np.concatenate(
    [
        np.array([np.inf, -np.inf, 0, -0.0, 1e-30, 3e38, -3e38, 1]),
        RANDOM.standard_normal(300) * 3,
        RANDOM.integers(-300, 300, 300) / 2,  # halves, which are rounded
    ]
)
NUMBERS = NUMBERS.astype(np.float32).reshape(2, -1)


def by_trivium(function: Callable[..., Any], *inputs: np.ndarray) -> list[np.ndarray]:
    module = trivium.from_tensorflow(tf.function(function, autograph=False), *inputs)
    module.verify()
    return list(trivium.evaluate(module, *inputs))


def require_same(got: list[np.ndarray], wanted: Any) -> None:
    for mine, theirs in zip(got, tf.nest.flatten(wanted), strict=True):
        assert (mine.dtype, mine.shape) == (theirs.numpy().dtype, tuple(theirs.shape))
        wide = [np.asarray(x).astype(np.float64) for x in (mine, theirs)]
        np.testing.assert_array_equal(*wide)


def along(axis: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns a range for all numbers, or two for the slices along an axis."""
    bounds = [low, high] if axis < 0 else [[low, -1.5], [high, 2.5]]
    return np.float32(bounds[0]), np.float32(bounds[1])


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("kind", QUANTIZED)
@pytest.mark.parametrize("mode", [*MODES, "SCALED narrow", "SCALED even"])
def test_to_integers(mode: str, kind: Any, axis: int) -> None:
    mode, _, option = mode.partition(" ")
    how = {"narrow": {"narrow_range": True}, "even": {"round_mode": "HALF_TO_EVEN"}}.get(option, {})

    def function(x: Any, low: Any, high: Any) -> Any:
        found, *bounds = RAW.QuantizeV2(input=x, min_range=low, max_range=high, T=kind, mode=mode, axis=axis, **how)
        return [tf.bitcast(found, QUANTIZED[kind]), *bounds]

    if mode == "MIN_FIRST" and axis == 0:
        with pytest.raises(trivium.UnsupportedOpError, match="axis has 0 in the mode MIN_FIRST, expected -1"):
            by_trivium(function, NUMBERS, *along(0, 0, 1))
        return
    for low, high in RANGES:
        if option == "narrow" and not high >= 0:  # TensorFlow takes the smallest step above zero for zero
            continue
        given = (NUMBERS, *along(axis, low, high))
        require_same(by_trivium(function, *given), function(*map(tf.constant, given)))


def integers(kind: Any, count: int) -> np.ndarray:
    info = np.iinfo(kind)
    # TensorFlow converts the largest integers of 32 bits to a float that is too large.
    most = min(info.max, 2**31 - 128)
    ends = [info.min, most, 0, 1, info.min + 1, most - 1]
    return np.array([*ends, *RANDOM.integers(info.min, most, count - len(ends))], kind).reshape(2, -1)


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("kind", QUANTIZED)
@pytest.mark.parametrize("mode", [*MODES, "SCALED narrow", "MIN_COMBINED bfloat16"])
def test_from_integers(mode: str, kind: Any, axis: int) -> None:
    mode, _, option = mode.partition(" ")
    how = {"narrow": {"narrow_range": True}, "bfloat16": {"dtype": tf.bfloat16}}.get(option, {})
    x = integers(QUANTIZED[kind].as_numpy_dtype, 300)

    def function(x: Any, low: Any, high: Any) -> Any:
        return RAW.Dequantize(input=tf.bitcast(x, kind), min_range=low, max_range=high, mode=mode, axis=axis, **how)

    if mode == "MIN_FIRST" and axis == 0:
        with pytest.raises(trivium.UnsupportedOpError, match="axis has 0 in the mode MIN_FIRST, expected -1"):
            by_trivium(function, x, *along(0, 0, 1))
        return
    for low, high in RANGES:
        given = (x, *along(axis, low, high))
        require_same(by_trivium(function, *given), function(*map(tf.constant, given)))


@pytest.mark.parametrize("mode", MODES)
def test_there_and_back_with_any_size(mode: str) -> None:
    def function(x: Any, low: Any, high: Any) -> Any:
        steps = tf.quantization.quantize(x, low, high, tf.qint16, mode, "HALF_AWAY_FROM_ZERO")
        return [tf.quantization.dequantize(*steps, mode), *steps[1:]]

    specs = [tf.TensorSpec([None]), tf.TensorSpec([]), tf.TensorSpec([])]
    module = trivium.from_tensorflow(tf.function(function, autograph=False), *specs)
    module.verify()
    run = trivium.compile(module)
    for count in (0, 1, 600):
        given = NUMBERS.ravel()[:count], np.float32(-1.7), np.float32(2.9)
        for results in (trivium.evaluate(module, *given), run(*given)):
            require_same(results, function(*map(tf.constant, given)))


@pytest.mark.parametrize("kind", QUANTIZED)
def test_results_have_their_dtype(kind: Any) -> None:
    def function(x: Any) -> Any:
        return tf.quantization.quantize(x, -3.0, 3.0, kind)

    found = trivium.tensorflow.function(function, fallback=False)(NUMBERS)
    for got, wanted in zip(found, function(NUMBERS), strict=True):
        assert got.dtype == wanted.dtype
        assert got.numpy().tolist() == wanted.numpy().tolist()


@pytest.mark.parametrize("kind", [tf.qint8, tf.quint16])
@pytest.mark.parametrize("mode", MODES)
def test_what_is_no_number_is_what_most_lanes_of_tensorflow_return(mode: str, kind: Any) -> None:
    def function(x: Any) -> Any:
        steps = RAW.QuantizeV2(input=x, min_range=-1.0, max_range=2.0, T=kind, mode=mode)
        return tf.bitcast(steps[0], QUANTIZED[kind])

    x = np.full(64, np.nan, np.float32)
    require_same(by_trivium(function, x), function(tf.constant(x)))


def test_bounds_in_the_wrong_order() -> None:
    def function(x: Any, low: Any, high: Any) -> Any:
        steps = RAW.QuantizeV2(input=x, min_range=low, max_range=high, T=tf.qint8)
        return steps[1:]

    for bound in by_trivium(function, NUMBERS, np.float32(2), np.float32(1)):
        assert np.isnan(bound)
    with pytest.raises(trivium.UnsupportedOpError, match=r"max_range has 1.0, expected at least min_range, 2.0"):
        by_trivium(lambda x: function(x, 2.0, 1.0), NUMBERS)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"round_mode": "HALF_TO_EVEN"}, "round_mode has HALF_TO_EVEN in the mode MIN_COMBINED, expected HALF_AWAY"),
        ({"axis": 1}, "min_range has tensor<2xf32>, expected a number for each slice along dimension 1 of tensor<2x3"),
        ({}, r"min_range has tensor<2xf32>, expected one number"),
    ],
)
def test_arguments_that_do_not_fit(how: dict[str, Any], message: str) -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec(None), tf.TensorSpec(None)])
    def function(x: Any, low: Any, high: Any) -> Any:
        return RAW.QuantizeV2(input=x, min_range=low, max_range=high, T=tf.qint8, **how)[1]

    with pytest.raises(trivium.Error, match=message):
        trivium.from_tensorflow(function, NUMBERS[:, :3], np.float32([-1, -2]), np.float32([1, 2]))
