"""Support vector machines, against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import RANDOM
from tests.importers.onnx.checks import check_rows, node

pytestmark = pytest.mark.onnx

ROWS = RANDOM.standard_normal((20, 3)).astype(np.float32)
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]


def numbers(*shape: int) -> list[float]:
    return RANDOM.standard_normal(shape).astype(np.float32).ravel().tolist()


def kernel(kind: str, degree: float = 2.0) -> dict[str, Any]:
    return {"kernel_type": kind, "kernel_params": [0.4, 0.25, degree]}


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_regressors(kind: str, one_class: int) -> None:
    options = {"n_supports": 5, "support_vectors": numbers(5, 3), "coefficients": numbers(5), "rho": [0.25]}
    check_rows("SVMRegressor", ROWS, **options, **kernel(kind, 3.0), one_class=one_class)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_regressors(transform: str) -> None:
    options = {"coefficients": numbers(3), "rho": [0.25], "post_transform": transform}
    check_rows("SVMRegressor", ROWS, **options, **kernel("LINEAR"))


def machine(counts: list[int], *, probability: bool, kind: str = "RBF", **more: Any) -> dict[str, Any]:
    """A classifier; `counts` has the number of support vectors of each class."""
    pairs = len(counts) * (len(counts) - 1) // 2
    chances = {"prob_a": [-1.5] * pairs, "prob_b": numbers(pairs)} if probability else {}
    return {
        "classlabels_ints": [7, 3, 9, 1][: len(counts)],
        "vectors_per_class": counts,
        "support_vectors": numbers(sum(counts), 3),
        "coefficients": numbers(len(counts) - 1, sum(counts)),
        "rho": (0.25 * RANDOM.standard_normal(pairs)).tolist(),
        **kernel(kind),
        **chances,
        **more,
    }


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("probability", [False, True])
@pytest.mark.parametrize("counts", [[3, 2], [2, 3, 1], [1, 2, 2, 3]])
def test_classifiers(counts: list[int], probability: bool, kind: str) -> None:
    check_rows("SVMClassifier", ROWS, outputs=2, known=kind == "RBF",
               **machine(counts, probability=probability, kind=kind))  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS[1:])
@pytest.mark.parametrize("probability", [False, True])
@pytest.mark.parametrize("counts", [[3, 2], [2, 3, 1]])
def test_transforms(counts: list[int], probability: bool, transform: str) -> None:
    if transform == "PROBIT" and len(counts) == 2 and not probability:
        pytest.skip("refused: ONNX Runtime computes one of two scores")
    options = machine(counts, probability=probability, post_transform=transform)
    check_rows("SVMClassifier", ROWS, outputs=2, tolerance=1e-3, known=False, **options)


@pytest.mark.parametrize("kind", [np.float64, np.int32, np.int64])
def test_types(kind: type) -> None:
    check_rows("SVMClassifier", (ROWS * 3).astype(kind), outputs=2, known=False,
               **machine([2, 2], probability=True))  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_linear_classifiers(count: int, transform: str) -> None:
    for coefficients in (numbers(count, 3), np.abs(numbers(count, 3)).tolist()):
        options = {"coefficients": coefficients, "rho": [0.1], "classlabels_ints": [7, 3, 9][:count]}
        check_rows("SVMClassifier", ROWS, outputs=2, post_transform=transform, known=False, **options,
                   **kernel("LINEAR"))  # fmt: skip


def refused(message: str, op: str, **options: Any) -> None:
    with pytest.raises(trivium.Error, match=message):
        trivium.from_onnx(
            node(op, ROWS, outputs=1 + (op == "SVMClassifier"), domain="ai.onnx.ml", version=1, **options)
        )


def test_what_is_refused() -> None:
    regressor = {"n_supports": 2, "support_vectors": numbers(2, 3), "coefficients": [1.0, 2.0], "rho": [0.0],
                 **kernel("RBF")}  # fmt: skip
    for message, options in (
        ("rho has 2 entries, expected 1", {"rho": [0.0, 1.0]}),
        ("kernel_type has COSINE, expected one of LINEAR", {"kernel_type": "COSINE"}),
        ("kernel_params has 2 entries, expected gamma, coef0 and degree", {"kernel_params": [1.0, 2.0]}),
        ("coefficients has 3 entries, expected 2: one for each of the support vectors", {"coefficients": [1.0] * 3}),
        ("support_vectors has 5 entries, expected a positive multiple of 2", {"support_vectors": [1.0] * 5}),
        ("X has type .*, expected the shape", {"support_vectors": [1.0] * 4}),
    ):
        refused(message, "SVMRegressor", **regressor | options)
    classifier = machine([2, 1, 1], probability=True)
    for message, options in (
        ("rho has 2 entries, expected 3", {"rho": [0.0, 1.0]}),
        ("coefficients has 4 entries, expected 2 times 4", {"coefficients": [1.0] * 4}),
        ("vectors_per_class has 2 entries, expected 3", {"vectors_per_class": [2, 2]}),
        ("expected two classes or more", {"vectors_per_class": [5, -1, 1]}),
        ("prob_b has 1 entries, expected 3", {"prob_b": [1.0]}),
        ("classlabels_strings has 1 strings, expected integers", {"classlabels_strings": ["a"]}),
        ("coefficients has 4 entries, expected a positive multiple of 3", {"vectors_per_class": [0] * 3,
                                                                           "coefficients": [1.0] * 4}),
    ):  # fmt: skip
        refused(message, "SVMClassifier", **classifier | options)
    refused("PROBIT for one score", "SVMClassifier", **machine([1, 1], probability=False, post_transform="PROBIT"))
    linear = {"coefficients": [1.0] * 3, "classlabels_ints": [1]}
    refused("SVMClassifier has no attribute rho", "SVMClassifier", **linear)
