"""Where MaxPool finds its elements, and what puts them back."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from tests.importers.onnx.arrays import RANDOM, floats, ints
from tests.importers.onnx.checks import by_reference, check_node

pytestmark = pytest.mark.onnx

IMAGE = RANDOM.permutation(2 * 3 * 7 * 6).reshape(2, 3, 7, 6).astype(np.float32)
EQUAL = RANDOM.integers(0, 3, (1, 2, 6, 6)).astype(np.float32)


@pytest.mark.parametrize(
    ("x", "options"),
    [
        (IMAGE, {"kernel_shape": [3, 2], "strides": [2, 2]}),
        (IMAGE, {"kernel_shape": [3, 3], "pads": [1, 0, 1, 2], "dilations": [2, 1]}),
        (IMAGE, {"kernel_shape": [3, 2], "strides": [2, 3], "ceil_mode": 1, "storage_order": 1}),
        (IMAGE.astype(np.float64), {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}),
        (EQUAL, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        (EQUAL.astype(np.uint8), {"kernel_shape": [2, 2]}),
        (floats(2, 2, 9), {"kernel_shape": [4], "strides": [3]}),
        (floats(1, 2, 4, 5, 4), {"kernel_shape": [2, 3, 2], "storage_order": 1}),
    ],
)
def test_places_of_the_largest(x: np.ndarray, options: dict[str, Any]) -> None:
    check_node("MaxPool", x, outputs=2, **options)


PLACES = np.array([[[[5, 7], [13, 14]]]], np.int64)


@pytest.mark.parametrize("shape", [None, ints(1, 1, 4, 4), ints(1, 1, 5, 6)])
@pytest.mark.parametrize("fixed", [False, True])
def test_elements_are_put_back(shape: np.ndarray | None, fixed: bool) -> None:
    given = [] if shape is None else [shape]
    check_node("MaxUnpool", floats(1, 1, 2, 2), PLACES, *given, fixed=fixed, oracle=by_reference,
               kernel_shape=[2, 2], strides=[2, 2])  # fmt: skip
