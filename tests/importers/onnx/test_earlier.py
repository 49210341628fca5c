"""Operators as earlier operator sets define them, against NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import trivium

pytestmark = pytest.mark.onnx

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 3, 4)).astype(np.float32)
ROW = RANDOM.standard_normal(3).astype(np.float32)


def run(op: str, opset: int, *inputs: np.ndarray, outputs: int = 1, **attributes: Any) -> np.ndarray:
    names = [f"x{index}" for index in range(len(inputs))]
    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, inputs, strict=True)
    ]
    results = [f"y{index}" for index in range(outputs)]
    node = onnx.helper.make_node(op, names, results, **attributes)
    graph = onnx.helper.make_graph([node], "g", infos, [onnx.helper.make_empty_tensor_value_info("y0")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    return trivium.evaluate(trivium.from_onnx(model), *inputs)[0]


def softmax(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    powers = np.exp(x - x.max(axes, keepdims=True))
    return powers / powers.sum(axes, keepdims=True)


CASES: list[tuple[str, int, tuple[np.ndarray, ...], dict[str, Any], Callable[[], Any]]] = [
    ("Add", 6, (X, ROW), {"broadcast": 1, "axis": 1}, lambda: X + ROW[:, None]),
    ("Mul", 6, (X, X[0, 0]), {"broadcast": 1}, lambda: X * X[0, 0]),
    ("Less", 1, (X, ROW), {"broadcast": 1, "axis": -2}, lambda: ROW[:, None] > X),
    ("PRelu", 6, (X, ROW), {}, lambda: np.where(X < 0, X * ROW[:, None], X)),
    ("PRelu", 7, (X, X[0, 0]), {}, lambda: np.where(X < 0, X * X[0, 0], X)),
    ("Softmax", 11, (X,), {}, lambda: softmax(X, (1, 2))),
    ("Softmax", 13, (X,), {}, lambda: softmax(X, (2,))),
    ("LogSoftmax", 1, (X,), {"axis": 2}, lambda: np.log(softmax(X, (2,)))),
    ("Hardmax", 11, (X,), {}, lambda: np.eye(12, dtype=np.float32)[X.reshape(2, 12).argmax(1)].reshape(2, 3, 4)),
    ("Clip", 6, (X,), {"max": 0.5}, lambda: np.minimum(X, 0.5)),
    ("Reshape", 1, (X,), {"shape": [0, -1]}, lambda: X.reshape(2, 12)),
    ("Squeeze", 11, (X[:, None],), {"axes": [1]}, lambda: X),
    ("Unsqueeze", 1, (X,), {"axes": [0, 2]}, lambda: X[None, :, None]),
    ("Slice", 9, (X,), {"axes": [2], "starts": [-3], "ends": [100]}, lambda: X[:, :, 1:]),
    ("Split", 2, (X,), {"axis": 1, "split": [1, 2]}, lambda: X[:, :1]),
    ("Pad", 2, (X,), {"pads": [0, 1, 0, 0, 0, 2], "value": 3.0}, lambda: np.pad(
        X, ((0, 0), (1, 0), (0, 2)), constant_values=3)),
    ("Concat", 1, (X, X), {}, lambda: np.concatenate([X, X], 1)),
    ("TopK", 1, (X,), {"k": 2}, lambda: -np.sort(-X)[..., :2]),
    ("Gemm", 6, (X[0], X[1], np.zeros((3, 3), np.float32)), {"transB": 1, "broadcast": 1}, lambda: X[0] @ X[1].T),
    ("ReduceSum", 1, (X,), {"axes": [1], "keepdims": 0}, lambda: X.sum(1)),
    ("Dropout", 6, (X,), {"is_test": 1}, lambda: X),
    ("Dropout", 10, (X,), {"ratio": 0.3}, lambda: X),
    ("Relu", 1, (X,), {"consumed_inputs": [0]}, lambda: np.maximum(X, 0)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "attributes", "expected"), CASES, ids=lambda x: x if isinstance(x, str | int) else ""
)
def test_rule(
    op: str, opset: int, inputs: tuple[np.ndarray, ...], attributes: dict[str, Any], expected: Callable[[], Any]
) -> None:
    outputs = 2 if op in ("Split", "TopK") else 1
    np.testing.assert_allclose(run(op, opset, *inputs, outputs=outputs, **attributes), expected(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("Add", (X, ROW), {}, "broadcast has 0, expected operands of one shape"),
        ("Dropout", (X,), {}, "is_test has 0, expected 1"),
        ("BatchNormalization", (X, ROW, ROW, ROW, ROW), {}, "is_test has 0, expected 1"),
    ],
)
def test_unsupported_attributes_are_refused(op: str, inputs: tuple, attributes: dict, message: str) -> None:
    with pytest.raises(trivium.UnsupportedOpError, match=message):
        run(op, 6, *inputs, **attributes)
