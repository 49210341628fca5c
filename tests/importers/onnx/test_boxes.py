"""Boxes: the best ones of each class, against ONNX Runtime; and what images have inside of boxes, against ONNX's
reference."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import RANDOM, floats, ints
from tests.importers.onnx.checks import by_reference, by_runtime, check_node, node

pytestmark = pytest.mark.onnx


def drawn(batch: int, count: int) -> np.ndarray:
    corners = RANDOM.random((batch, count, 2, 2)).astype(np.float32)
    return corners.reshape(batch, count, 4)


def number(value: float) -> np.ndarray:
    return np.array([value], np.float32)


SCORES = RANDOM.random((2, 3, 30)).astype(np.float32)
TIED = RANDOM.integers(0, 4, (1, 1, 25)).astype(np.float32)


@pytest.mark.parametrize(
    ("boxes", "scores", "limits", "options"),
    [
        (drawn(2, 30), SCORES, [ints(5), number(0.4), number(0.3)], {}),
        (drawn(2, 30), SCORES, [ints(50), number(0.2), number(0.9)], {"center_point_box": 1}),
        (drawn(2, 30), SCORES, [ints(4), number(0.5)], {}),
        (drawn(2, 30), SCORES, [ints(3)], {}),
        (drawn(2, 30), SCORES, [], {}),
        (drawn(2, 30), SCORES, [ints(-1), number(0.4)], {}),
        (drawn(1, 25), TIED, [ints(9), number(0.3), number(0.0)], {}),
        (drawn(1, 25), TIED - 2, [ints(25), number(0.9), number(-1.5)], {}),
        (np.repeat(drawn(1, 1), 25, 1), TIED, [ints(9), number(0.3)], {}),
        (np.zeros((1, 25, 4), np.float32), TIED, [ints(9), number(0.3)], {}),
        (drawn(1, 4), np.full((1, 1, 4), 0.1, np.float32), [ints(9), number(0.3), number(0.5)], {}),
    ],
)
def test_best_boxes(boxes: np.ndarray, scores: np.ndarray, limits: list, options: dict[str, Any]) -> None:
    check_node("NonMaxSuppression", boxes, scores, *limits, opset=13, fixed=False, **options)


def test_best_boxes_by_constant_limits() -> None:
    check_node("NonMaxSuppression", drawn(2, 30), SCORES, ints(4), number(0.5))
    check_node("NonMaxSuppression", drawn(2, 30), SCORES, ints(0), number(0.5))


def test_scores_without_bounds() -> None:
    """A box whose score is minus infinity is the last one."""
    scores = np.array([[[-np.inf, 1, np.inf, -np.inf, 2]]], np.float32)
    boxes = np.arange(20, dtype=np.float32).reshape(1, 5, 4)
    check_node("NonMaxSuppression", boxes, scores, ints(5), number(0.5))


IMAGE = floats(2, 3, 9, 8)
BOXES = np.array([[0, 0, 7, 7], [1.5, 2.25, 6.5, 4], [-3, -2, 4, 12], [5, 5, 5.5, 5.25], [7, 3, 2, 1]], np.float32)
IMAGES = np.array([0, 1, 1, 0, 0])


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize(
    "options",
    [
        {"output_height": 3, "output_width": 2, "sampling_ratio": 2},
        {"output_height": 2, "output_width": 2, "spatial_scale": 0.5},
        {"coordinate_transformation_mode": "output_half_pixel", "sampling_ratio": 3, "output_width": 4},
    ],
)
def test_regions(options: dict[str, Any], mode: str) -> None:
    check_node(
        "RoiAlign", IMAGE, BOXES, IMAGES, opset=16, fixed=mode == "avg", oracle=by_reference, mode=mode, **options
    )


def test_regions_before_they_were_moved() -> None:
    check_node("RoiAlign", IMAGE, BOXES, IMAGES, opset=10, oracle=by_runtime, output_height=2, sampling_ratio=2)
    with pytest.raises(trivium.UnsupportedOpError, match="mode has median, half_pixel"):
        trivium.from_onnx(node("RoiAlign", IMAGE, BOXES, IMAGES, mode="median"))


@pytest.mark.parametrize("scale", [1.0, 0.37])
def test_largest_elements_in_boxes(scale: float) -> None:
    rois = [[0, 0, 0, 5, 6], [0, 1.5, 2.4, 1.6, 2.5], [0, -3, -2, 30, 40], [1, 4, 4, 2, 2], [1, 9, 9, 12, 12]]
    x, boxes = floats(2, 3, 7, 6), np.array(rois, np.float32)
    check_node("MaxRoiPool", x, boxes, opset=11, pooled_shape=[2, 3], spatial_scale=scale)
