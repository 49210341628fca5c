"""Determinants of matrices."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from tests.importers.onnx.arrays import floats
from tests.importers.onnx.checks import by_reference, check_node

pytestmark = pytest.mark.onnx

SINGULAR = np.array([[1, 2], [2, 4]], np.float32)
SPECIAL = np.array([[[np.nan, 1], [0, 1]], [[0, 1], [1, 0]], [[-0.0, 0], [0, 2]]], np.float32)


@pytest.mark.parametrize(
    "x",
    [floats(3, 3), floats(2, 3, 4, 4), floats(5, 1, 1), floats(2, 6, 6).astype(np.float64), SINGULAR, SPECIAL,
     floats(0, 3, 3), floats(2, 0, 0)],
)  # fmt: skip
def test_determinants(x: np.ndarray) -> None:
    check_node("Det", x, oracle=by_reference)
