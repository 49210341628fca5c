"""Elements that are chosen by their values, against ONNX Runtime or ONNX's reference: from constants, from few inputs,
and from many, whose number is found when the program runs."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import RANDOM, floats
from tests.importers.onnx.checks import by_runtime, check, check_node, node

pytestmark = pytest.mark.onnx

NAN = float("nan")
MANY = (RANDOM.random((12, 11)) < 0.4) * floats(12, 11)


@pytest.mark.parametrize(
    "x",
    [
        np.array([[1, 0], [0, 5]], np.int64),
        np.array([[NAN, -0.0], [np.inf, 0]], np.float32),
        np.array([True, False, True]),
        np.zeros((2, 3), np.float32),
        np.zeros((0, 3), np.float32),
        np.array(3, np.int64),
        MANY.astype(np.float32),
        (MANY > 0)[:, :, None],
    ],
)
def test_nonzero(x: np.ndarray) -> None:
    check_node("NonZero", x, fixed=False)


def test_a_condition_that_turns_out_to_be_longer() -> None:
    """ONNX Runtime ignores its end."""
    made = node("Compress", floats(3, 4), np.ones(5, bool), axis=0, fixed=False)
    for entry in made.graph.input:
        entry.type.tensor_type.shape.dim[0].dim_param = entry.name
    check(made, [floats(3, 4), np.ones(5, bool)])


def test_nonzero_of_a_constant() -> None:
    check_node("NonZero", np.array([[1, 0], [0, 5]]))
    check_node("NonZero", np.zeros((2, 3), np.int64))


CONDITION = RANDOM.random(90) < 0.5


@pytest.mark.parametrize(
    ("x", "condition", "options"),
    [
        (floats(3, 4), np.array([True, False, True]), {"axis": 0}),
        (floats(3, 4), np.array([False, True]), {"axis": -1}),
        (floats(3, 4), np.array([False, True, True, False, True]), {}),
        (floats(3, 4), np.zeros(3, bool), {"axis": 0}),
        (floats(90, 2), CONDITION, {"axis": 0}),
        (floats(10, 9), CONDITION, {}),
    ],
)
def test_compress(x: np.ndarray, condition: np.ndarray, options: dict[str, Any]) -> None:
    check_node("Compress", x, condition, **options)


def test_too_many_conditions_are_refused() -> None:
    with pytest.raises(trivium.UnsupportedOpError, match="condition has 5 elements, expected at most 4"):
        trivium.from_onnx(node("Compress", floats(3, 4), np.zeros(5, bool), axis=1))


DRAWN = RANDOM.integers(-4, 5, (9, 13))


@pytest.mark.parametrize("in_order", [0, 1])
@pytest.mark.parametrize(
    ("x", "axis"),
    [
        (np.array([2.0, 1, 1, 3, 4, 3], np.float32), None),
        (np.array([0.0, -0.0, 1, -np.inf, np.inf, 1], np.float32), None),
        (np.array([], np.float32), None),
        (np.array([[1, 0, 0], [1, 0, 0], [2, 3, 4]], np.float32), 0),
        (RANDOM.integers(0, 2, (3, 6, 2)).astype(np.int8), 1),
        (RANDOM.integers(0, 2, (2, 40)).astype(np.float64), -1),
        (DRAWN.astype(np.float32), None),
        (DRAWN, None),
        (DRAWN > 0, 1),
    ],
)
def test_unique(x: np.ndarray, axis: int | None, in_order: int) -> None:
    if x.dtype == bool:
        x = x.astype(np.int8)
    options = {} if axis is None else {"axis": axis}
    check_node("Unique", x, outputs=4, fixed=False, sorted=in_order, **options)


def test_nan_are_one_element() -> None:
    x = np.array([NAN, 1, NAN, 2], np.float32)
    y, indices, inverse, counts = trivium.compile(trivium.from_onnx(node("Unique", x, outputs=4)))(x)
    np.testing.assert_array_equal(y, [1, 2, NAN])
    assert [x.tolist() for x in (indices, inverse, counts)] == [[1, 3, 0], [2, 0, 2, 1], [1, 1, 2]]


def test_sizes_that_follow_from_data_lead_to_more() -> None:
    """What is found in one selection is selected from again."""
    made = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]> g (float[n, 11] x, float[11, 7] w) => (float[a, b] y, int64[c] z) {
            zero = Constant<value = float {0.0}>() axes = Constant<value = int64[1] {1}>()
            sums = ReduceSum<keepdims = 0>(x, axes) is_some = Greater(sums, zero)
            rows = Compress<axis = 0>(x, is_some) product = MatMul(rows, w) y = Relu(product)
            column = ReduceMax<axes = [1], keepdims = 0>(y) places = NonZero(column) last = Cast<to = 7>(column)
            z = Unique(last)
        }"""
    )
    for rows in (12, 30):
        x = RANDOM.standard_normal((rows, 11)).astype(np.float32)
        check(made, [x, floats(11, 7)], oracle=by_runtime)
