"""Linear models, against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import RANDOM, floats
from tests.importers.onnx.checks import check_rows, node

pytestmark = pytest.mark.onnx

ROWS = RANDOM.random((7, 3)).astype(np.float32)
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]


def weights(*shape: int) -> list[float]:
    """Weights of which each row has a positive sum below 1, so that PROBIT has values."""
    return (RANDOM.random(shape) / shape[-1]).astype(np.float32).ravel().tolist()


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_regressors(targets: int, transform: str) -> None:
    options = {"targets": targets, "coefficients": weights(targets, 3), "post_transform": transform}
    check_rows("LinearRegressor", ROWS, **options)
    check_rows("LinearRegressor", ROWS, **options, intercepts=[0.01] * targets)


def test_a_single_row_without_batch() -> None:
    made = node("LinearRegressor", ROWS[0], domain="ai.onnx.ml", version=1, coefficients=weights(1, 3), targets=1)
    assert trivium.compile(trivium.from_onnx(made))(ROWS[0])[0].shape == (1, 1)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.int64])
def test_classifiers_of_many_classes(kind: type, transform: str) -> None:
    x = ROWS.astype(kind) if kind in (np.float32, np.float64) else (ROWS * 2).astype(kind)
    options = {"coefficients": weights(4, 3), "intercepts": [0.0, 0.1, -0.0, 0.05], "multi_class": 1}
    check_rows("LinearClassifier", x, outputs=2, classlabels_ints=[3, 1, 4, 5], post_transform=transform, **options)


@pytest.mark.parametrize("transform", TRANSFORMS[:-1])
def test_one_score_of_two_classes(transform: str) -> None:
    options = {"coefficients": [0.5, -0.25, 1.0], "intercepts": [-0.5], "classlabels_ints": [7, 3]}
    check_rows("LinearClassifier", ROWS, outputs=2, post_transform=transform, **options)


def test_scores_of_zero() -> None:
    zeros = np.zeros((2, 3), np.float32)
    options = {"coefficients": weights(3, 3), "intercepts": [0.0, 0.2, 0.3], "classlabels_ints": [0, 1, 2]}
    check_rows("LinearClassifier", zeros, outputs=2, post_transform="SOFTMAX_ZERO", **options)


def refused(message: str, op: str, x: np.ndarray = ROWS, **options: Any) -> None:
    with pytest.raises(trivium.Error, match=message):
        trivium.from_onnx(
            node(op, x, outputs=1 + (op == "LinearClassifier"), domain="ai.onnx.ml", version=1, **options)
        )


def test_what_is_refused() -> None:
    labels = {"classlabels_ints": [0, 1]}
    refused("intercepts has 2 entries, expected 1: one for each of the targ", "LinearRegressor", coefficients=[0.5] * 3,
            intercepts=[0.1, 0.2])  # fmt: skip
    refused("coefficients has 0 entries", "LinearRegressor")
    refused("X has type tensor<7x3xf32>, expected the shape", "LinearRegressor", coefficients=[0.5] * 4)
    refused("X has type .*, expected one or two dimensions", "LinearRegressor", floats(2, 3, 4), coefficients=[0.5] * 3)
    refused("post_transform has SQRT, expected one of NONE", "LinearRegressor", coefficients=[0.5] * 3,
            post_transform="SQRT")  # fmt: skip
    refused("coefficients has 7 entries, expected a positive multiple of 2", "LinearClassifier",
            coefficients=[0.5] * 7, **labels)  # fmt: skip
    refused("intercepts has 3 entries, expected 2", "LinearClassifier", coefficients=[0.5] * 9, intercepts=[0.0] * 3,
            **labels)  # fmt: skip
    refused("has no attribute classlabels_ints", "LinearClassifier", coefficients=[0.5] * 3)
    refused("classlabels_strings has 2 strings, expected integers", "LinearClassifier", coefficients=[0.5] * 6,
            classlabels_strings=["a", "b"])  # fmt: skip
    refused("PROBIT for one score and two classes", "LinearClassifier", coefficients=[0.5] * 3, intercepts=[0.0],
            post_transform="PROBIT", **labels)  # fmt: skip
