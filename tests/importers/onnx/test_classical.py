"""N-grams and trees, against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import RANDOM, floats
from tests.importers.onnx.checks import by_reference, check_node, node

pytestmark = pytest.mark.onnx

POOL = {
    "ngram_counts": [0, 3, 9],
    "ngram_indexes": [5, 0, 2, 1, 6, 4],
    "pool_int64s": [2, 3, 5, 5, 4, 5, 6, 7, 8],
    "max_gram_length": 2,
    "min_gram_length": 1,
    "max_skip_count": 0,
    "mode": "TF",
}
TOKENS = RANDOM.integers(2, 9, (4, 15)).astype(np.int32)
WEIGHTS = RANDOM.random(6).round(2).tolist()


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(
    ("x", "options"),
    [
        (TOKENS, {}),
        (TOKENS[0], {"max_skip_count": 3}),
        (TOKENS, {"max_skip_count": 20, "weights": WEIGHTS}),
        (TOKENS[:, :1], {"min_gram_length": 2}),
        (TOKENS, {"max_gram_length": 1, "max_skip_count": 2, "weights": WEIGHTS}),
    ],
)
def test_sequences(x: np.ndarray, options: dict[str, Any], mode: str) -> None:
    check_node("TfIdfVectorizer", x, **{**POOL, **options, "mode": mode})


def test_words_are_refused() -> None:
    options = {**POOL, "pool_strings": ["a"] * 9}
    del options["pool_int64s"]
    with pytest.raises(trivium.UnsupportedOpError, match="mode has TF, 9 strings, expected"):
        trivium.from_onnx(node("TfIdfVectorizer", TOKENS, **options))


def tensor(name: str, values: Any, kind: type) -> Any:
    return onnx.numpy_helper.from_array(np.array(values, kind), name)


def forest(kind: type = np.float32, modes: tuple[int, ...] = (0, 1, 2, 3, 4), **more: Any) -> dict[str, Any]:
    """Three trees: of three nodes, of one node, and of one node, with leaves of two targets."""
    return {
        "tree_roots": [0, 3, 4],
        "n_targets": 2,
        "nodes_featureids": [0, 1, 2, 1, 0],
        "nodes_splits": tensor("splits", [0.1, -0.3, 0.2, 0.0, 1.0], kind),
        "nodes_modes": tensor("modes", modes, np.uint8),
        "nodes_truenodeids": [1, 0, 2, 4, 6],
        "nodes_trueleafs": [0, 1, 1, 1, 1],
        "nodes_falsenodeids": [2, 1, 3, 5, 7],
        "nodes_falseleafs": [0, 1, 1, 1, 1],
        "leaf_targetids": [0, 1, 1, 0, 0, 1, 1, 1],
        "leaf_weights": tensor("weights", [5.0, -2.0, 1.5, 0.25, 3.0, 8.0, -1.0, 4.0], kind),
        **more,
    }


ROWS = np.concatenate([floats(40, 3), np.ones((2, 3), np.float32), np.full((1, 3), np.nan, np.float32)])


@pytest.mark.parametrize("how", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_forests(how: int, kind: type) -> None:
    check_node("TreeEnsemble", ROWS.astype(kind), domain="ai.onnx.ml", **forest(kind, aggregate_function=how))


def test_missing_values_and_other_comparisons() -> None:
    options = forest(modes=(5, 0, 0, 1, 3), nodes_missing_value_tracks_true=[1, 0, 1, 1, 0])
    check_node("TreeEnsemble", ROWS, domain="ai.onnx.ml", **options)


def test_members_of_sets() -> None:
    x = RANDOM.integers(0, 6, (30, 3)).astype(np.float32)
    members = tensor("members", [1, 2, 5, np.nan, 3, np.nan], np.float32)
    options = forest(modes=(6, 0, 6, 1, 4), membership_values=members)
    check_node("TreeEnsemble", x, domain="ai.onnx.ml", oracle=by_reference, **options)


def test_what_is_refused() -> None:
    with pytest.raises(trivium.UnsupportedOpError, match="post_transform has 1, aggregation 1"):
        trivium.from_onnx(node("TreeEnsemble", ROWS, domain="ai.onnx.ml", **forest(post_transform=1)))
    circle = forest(nodes_truenodeids=[1, 0, 2, 4, 6], nodes_trueleafs=[0, 0, 1, 1, 1])
    with pytest.raises(trivium.Error, match="a tree leads back to one of its nodes"):
        trivium.from_onnx(node("TreeEnsemble", ROWS, domain="ai.onnx.ml", **circle))
