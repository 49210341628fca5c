"""A sample of the models of Keras, and the page of them."""

import os

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
pytest.importorskip("tensorflow")

from tests.suites.tensorflow.applications import NAMES, outcome, page

pytestmark = pytest.mark.tensorflow


def test_a_small_model() -> None:
    found = outcome("MobileNetV3Small")
    assert found["is equal"], found
    assert found["outside"] == []
    text = page({"MobileNetV3Small": found})
    assert "1 of 40 models were run; 1 are equal" in text.replace("\n", " ")
    assert f"| MobileNetV3Small | {found['weights']:,} | 96 | equal |" in text
    assert text.count("| | | not run |") == len(NAMES) - 1
