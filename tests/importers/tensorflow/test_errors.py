"""Bad input: each raises one clear error, with TensorFlow's own message if TensorFlow rejects it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import trivium

pytestmark = pytest.mark.tensorflow


def test_all_unsupported_ops_are_listed_at_once() -> None:
    @tf.function
    def exotic(x: Any) -> Any:
        return tf.linalg.sqrtm(x), tf.strings.as_string(x), tf.linalg.sqrtm(x + 1)

    with pytest.raises(trivium.UnsupportedOpError) as caught:
        trivium.from_tensorflow(exotic, tf.ones((3, 3)))
    assert {op.name: op.count for op in caught.value.ops} == {"MatrixSquareRoot": 2, "AsString": 1}
    assert "test_errors.py:" in caught.value.ops[0].first


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (3, (), "cannot import a int, expected a tf.function"),
        (tf.function(lambda x: x), (), "TensorFlow cannot trace .*missing a required argument"),
        (tf.function(lambda x: x @ x), (np.ones(3, np.float32),), "TensorFlow cannot trace .*must be rank"),
        ("nowhere", (), "cannot read nowhere as a SavedModel: No such file"),
    ],
)
def test_errors_of_tensorflow_are_reported(function: Any, args: tuple, message: str) -> None:
    with pytest.raises(trivium.Error, match=f"(?s){message}"):
        trivium.from_tensorflow(function, *args)


def test_a_damaged_saved_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"junk")
    with pytest.raises(trivium.Error, match="is not a SavedModel, or is damaged"):
        trivium.load(tmp_path)


def test_parameters_are_constants_or_arguments() -> None:
    with pytest.raises(trivium.Error, match="parameters has 'weights', expected 'constants' or 'arguments'"):
        trivium.from_tensorflow(tf.function(lambda x: x), tf.ones(3), parameters="weights")
