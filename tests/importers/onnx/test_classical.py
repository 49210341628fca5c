"""N-grams, against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import RANDOM
from tests.importers.onnx.checks import check_node, node

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
