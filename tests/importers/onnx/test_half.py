"""Floats of 16 bits: parameters of other types than the operand's, and computations that need more bits."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import RANDOM, floats, ints
from tests.importers.onnx.checks import by_runtime, check, node

pytestmark = pytest.mark.onnx

HALVES = [np.float16, ml_dtypes.bfloat16]


def halves(kind: Any, *shape: int) -> np.ndarray:
    return floats(*shape).astype(kind)


@pytest.mark.parametrize("training", [0, 1])
@pytest.mark.parametrize(
    ("scale", "statistics"), [(np.float16, np.float32), (np.float32, np.float32), (np.float32, np.float16)]
)
def test_normalization_with_parameters_of_other_types(scale: type, statistics: type, training: int) -> None:
    """With large means, which cancel: the difference has to be computed in more than 16 bits."""
    x = halves(np.float16, 2, 3, 4) + np.float16(100)
    factors, biases = halves(scale, 3), halves(scale, 3)
    means, variances = np.full(3, 100, statistics), np.abs(floats(3)).astype(statistics) + statistics(0.5)
    options = {"training_mode": 1} if training else {}
    model = node(
        "BatchNormalization", x, factors, biases, means, variances, outputs=3 if training else 1, **options
    )  # fmt: skip
    check(model, [x, factors, biases, means, variances], tolerance=5e-3)


def assert_computed_in_single(kind: Any, op: str, *inputs: np.ndarray, **attributes: Any) -> None:
    """Compares a node with what ONNX Runtime computes in 32 bits for the same numbers."""
    wide = [x.astype(np.float32) if x.dtype == kind else x for x in inputs]
    fed = [x for x in inputs if x.dtype != np.int64]
    (result,) = trivium.compile(trivium.from_onnx(node(op, *inputs, **attributes)))(*fed)
    (expected,) = by_runtime(node(op, *wide, **attributes), [x for x in wide if x.dtype != np.int64])
    assert result.dtype == kind
    accuracy = float(ml_dtypes.finfo(kind).eps)
    np.testing.assert_allclose(result.astype(np.float32), expected, rtol=accuracy, atol=accuracy)


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_positions_in_images_are_computed_in_single(mode: str, kind: Any) -> None:
    """Places between the elements of an image of 300 x 300 have no numbers of 16 bits."""
    image = np.broadcast_to(np.linspace(-1, 1, 300)[:, None], (1, 1, 300, 300)).astype(kind)
    grid = RANDOM.uniform(-1, 1, (1, 5, 6, 2)).astype(kind)
    assert_computed_in_single(kind, "GridSample", image, grid, mode=mode)


@pytest.mark.parametrize("kind", HALVES)
def test_grids_and_deformed_convolutions_are_computed_in_single(kind: Any) -> None:
    assert_computed_in_single(kind, "AffineGrid", halves(kind, 1, 2, 3), ints(1, 1, 3, 3000), opset=20)
    image, filters, offsets = halves(kind, 1, 2, 6, 300), halves(kind, 3, 2, 2, 2), halves(kind, 1, 8, 5, 299)
    assert_computed_in_single(kind, "DeformConv", image, filters, offsets, opset=19, kernel_shape=[2, 2])
