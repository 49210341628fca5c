"""Operators that prepare features, against ONNX Runtime, or ONNX's reference where that lacks a type."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import RANDOM, floats
from tests.importers.onnx.checks import by_reference, check_node, check_rows, node

pytestmark = pytest.mark.onnx

ROWS = floats(5, 3)
KINDS = [np.float32, np.float64, np.int32, np.int64]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1, 3])
def test_scalers(kind: type, width: int) -> None:
    check_rows("Scaler", (ROWS * 9).astype(kind), offset=[0.5, -1.0, 2.0][:width], scale=[3.0, 0.1, -1.0][:width])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizers(kind: type, norm: str) -> None:
    rows = np.concatenate([(ROWS * 9).astype(kind), np.zeros((1, 3), kind)])
    check_rows("Normalizer", rows, norm=norm)
    check_rows("Normalizer", rows[0], norm=norm)


@pytest.mark.parametrize("replaced", [float("nan"), 2.0])
@pytest.mark.parametrize("values", [[0.5], [0.5, 1.5, 2.5]])
def test_imputers_of_floats(replaced: float, values: list[float]) -> None:
    rows = ROWS.copy()
    rows[1, 2], rows[3, 0], rows[2] = np.nan, np.nan, 2
    check_rows("Imputer", rows, imputed_value_floats=values, replaced_value_float=replaced)
    made = node("Imputer", rows.astype(np.float64), domain="ai.onnx.ml", version=1, imputed_value_floats=values,
                replaced_value_float=replaced)  # fmt: skip
    missing = np.isnan(rows) if np.isnan(replaced) else rows == replaced
    wanted = np.where(missing, values, rows.astype(np.float64))
    np.testing.assert_array_equal(trivium.compile(trivium.from_onnx(made))(rows.astype(np.float64))[0], wanted)


@pytest.mark.parametrize("values", [[7], [7, 8, 9]])
def test_imputers_of_integers(values: list[int]) -> None:
    rows = RANDOM.integers(0, 3, (6, 3))
    check_rows("Imputer", rows, imputed_value_int64s=values, replaced_value_int64=2)


def test_feature_vectors() -> None:
    for kind in KINDS:
        x = (ROWS * 9).astype(kind)
        check_rows("FeatureVectorizer", x, x[:, :1], x, inputdimensions=[2, 3, 3], version=1)
    made = node("FeatureVectorizer", floats(4, 2, 2), domain="ai.onnx.ml", version=1, inputdimensions=[5])
    assert trivium.compile(trivium.from_onnx(made))(floats(4, 2, 2))[0].shape == (4, 5)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_one_hot(kind: type) -> None:
    x = np.array([[3, 1], [-7, 4], [8, 3]]).astype(kind) + (0.5 if kind != np.int64 else 0)
    check_rows("OneHotEncoder", x.astype(kind), cats_int64s=[3, 8, -6, 4, 3])
    check_rows("OneHotEncoder", x[:, 0].astype(kind), cats_int64s=[3, 8], zeros=1)


def test_one_hot_of_what_is_no_number() -> None:
    x = np.array([[np.nan], [0.0]], np.float32)
    made = node("OneHotEncoder", x, domain="ai.onnx.ml", version=1, cats_int64s=[0, 1], zeros=0)
    np.testing.assert_array_equal(trivium.compile(trivium.from_onnx(made))(x)[0][:, 0], [[0, 0], [1, 0]])


NUMBERS = {"int64s": [4, -2, 9, 4, 0], "floats": [4.0, -2.5, 9.0, 4.0, 0.0]}


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(("version", "keys", "values"), [
    (2, "int64s", "floats"), (2, "floats", "int64s"),
    *((4, keys, values) for keys in NUMBERS for values in NUMBERS),
])  # fmt: skip
def test_label_encoders(version: int, keys: str, values: str, count: int) -> None:
    x = np.array([[4, -2.5, -2], [9, 0, 100]]).astype(np.int64 if keys == "int64s" else np.float32)
    options = {f"keys_{keys}": NUMBERS[keys][:count], f"values_{values}": NUMBERS[values][::-1][:count]}
    default = {"default_int64": 17} if values == "int64s" else {"default_float": 0.5}
    check_rows("LabelEncoder", x, version=version, **options)
    check_rows("LabelEncoder", x, version=version, **options, **default)


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64, np.float32, np.float64])
def test_label_encoders_with_tensors(kind: type) -> None:
    def tensor(*values: float) -> Any:
        return onnx.numpy_helper.from_array(np.array(values, kind))

    keys = (3, 1, 7, float("nan")) if kind in (np.float32, np.float64) else (3, 1, 7, 1)
    x = np.array([[7, 2], [1, keys[-1]]]).astype(kind)
    options = {"keys_tensor": tensor(*keys), "values_tensor": tensor(5, 6, 7, 8), "default_tensor": tensor(9)}
    wanted = np.array([[7, 9], [6, 8 if keys[-1] != 1 else 6]], kind)
    made = node("LabelEncoder", x, domain="ai.onnx.ml", version=4, fixed=False, **options)
    result = trivium.compile(trivium.from_onnx(made))(x)[0]
    assert result.dtype == kind
    np.testing.assert_array_equal(result, wanted)


def test_a_key_that_is_no_number_is_found_since_version_4() -> None:
    x = np.array([np.nan, 1], np.float32)
    options = {"keys_floats": [float("nan"), 1.0], "values_int64s": [5, 6], "default_int64": 0}
    check_rows("LabelEncoder", x, version=4, **options)
    made = node("LabelEncoder", x, domain="ai.onnx.ml", version=2, **options)
    assert trivium.compile(trivium.from_onnx(made))(x)[0].tolist() == [0, 6]


@pytest.mark.parametrize("x", [ROWS, floats(2, 3, 4), floats(6)])
@pytest.mark.parametrize("fixed", [True, False])
def test_extracted_features(x: np.ndarray, fixed: bool) -> None:
    places = np.array([[2, 0, 1, 2]])
    check_node("ArrayFeatureExtractor", x, places, domain="ai.onnx.ml", version=1, fixed=fixed)


def test_extracted_features_of_any_number_of_rows() -> None:
    check_rows("ArrayFeatureExtractor", ROWS, np.array([2, 0]), version=1)
    check_rows("ArrayFeatureExtractor", floats(6), np.array([2, 5]), version=1, oracle=by_reference)


def refused(message: str, op: str, *inputs: np.ndarray, version: int = 1, **options: Any) -> None:
    with pytest.raises(trivium.Error, match=message):
        trivium.from_onnx(node(op, *inputs, domain="ai.onnx.ml", version=version, fixed=op == "ArrayFeatureExtractor",
                               **options))  # fmt: skip


def test_what_is_refused() -> None:
    integers = np.ones((2, 3), np.int64)
    refused("offset has 1 entries, expected 3, as many as scale", "Scaler", ROWS, scale=[1.0] * 3, offset=[1.0])
    refused("offset has 2 entries, expected 1 or 3", "Scaler", ROWS, scale=[1.0] * 2, offset=[1.0] * 2)
    refused("norm has L3, expected one of MAX, L1, L2", "Normalizer", ROWS, norm="L3")
    refused("has 0 entries of imputed_value_floats", "Imputer", ROWS, imputed_value_int64s=[1])
    refused("imputed_value_floats has 2 entries, expected 1 or 3", "Imputer", ROWS, imputed_value_floats=[1.0] * 2)
    refused(
        "inputdimensions has 2 entries, expected 1, as many as X", "FeatureVectorizer", ROWS, inputdimensions=[1, 2]
    )
    refused("expected no negative numbers", "FeatureVectorizer", ROWS, inputdimensions=[-1])
    refused("no attribute cats_int64s", "OneHotEncoder", ROWS)
    refused("cats_strings has 1 strings, expected integers", "OneHotEncoder", ROWS, cats_strings=["a"])
    refused(r"Y has \[3\], expected places in X", "ArrayFeatureExtractor", ROWS, np.array([3]))
    refused("values has 1 entries, expected 2, as many as keys", "LabelEncoder", integers, version=2,
            keys_int64s=[1, 2], values_floats=[1.0])  # fmt: skip
    refused("has 0 lists of keys, expected one of keys_int64s", "LabelEncoder", integers, version=2, values_int64s=[1])
    refused("keys has type float32, expected that of X", "LabelEncoder", integers, version=2, keys_floats=[1.0],
            values_int64s=[1])  # fmt: skip
    refused("default_tensor has 2 elements, expected one", "LabelEncoder", integers, version=4, keys_int64s=[1],
            values_int64s=[1], default_tensor=onnx.numpy_helper.from_array(np.array([1, 2])))  # fmt: skip


def test_strings_and_maps_are_refused_by_name() -> None:
    integers = np.ones((2, 3), np.int64)
    refused("values_strings has 1 strings, expected integers", "LabelEncoder", integers, version=2, keys_int64s=[1],
            values_strings=["a"])  # fmt: skip
    refused("values_tensor has 1 strings", "LabelEncoder", integers, version=4, keys_int64s=[1],
            values_tensor=onnx.helper.make_tensor("t", onnx.TensorProto.STRING, [1], [b"a"]))  # fmt: skip
    refused("LabelEncoder: argument classes_strings has strings", "LabelEncoder", integers, classes_strings=["a"])
    refused("CategoryMapper: argument cats_strings has strings", "CategoryMapper", integers, cats_strings=["a"],
            cats_int64s=[1])  # fmt: skip
    refused("ZipMap: .*option zipmap=False", "ZipMap", ROWS, classlabels_int64s=[0, 1, 2])
