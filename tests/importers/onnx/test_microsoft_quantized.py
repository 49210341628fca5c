"""Quantized operators of ONNX Runtime, against ONNX Runtime: within one step, since it computes some by tables."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import RANDOM, floats
from tests.importers.onnx.checks import by_exact_runtime, by_runtime, check_node, node

pytestmark = pytest.mark.onnx


def integers(*shape: int, kind: type = np.uint8) -> np.ndarray:
    limits = np.iinfo(kind)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(kind)


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def within(steps: int, op: str, *inputs: np.ndarray | None, more: Any = (), **attributes: Any) -> None:
    made = node(op, *inputs, domain="com.microsoft", **attributes)
    made.graph.node[0].attribute.extend(more)
    given = [x for x in inputs if x is not None]
    (expected,) = by_runtime(made, given)
    module = trivium.from_onnx(made)
    module.verify()
    (result,) = trivium.compile(module)(*given)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert np.abs(result.astype(np.int64) - expected.astype(np.int64)).max() <= steps


@pytest.fixture(params=[np.uint8, np.int8])
def kind(request: pytest.FixtureRequest) -> type:
    return request.param


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_arithmetic(op: str, kind: type) -> None:
    a, b = integers(3, 20, kind=kind), integers(20, kind=kind)
    within(0 if op == "QLinearAdd" else 1, op, a, scale(0.1), kind(3), b, scale(0.07), kind(9), scale(0.15), kind(5))


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_activations(op: str, kind: type) -> None:
    options = {"alpha": 0.2} if op == "QLinearLeakyRelu" else {}
    within(1, op, integers(3, 20, kind=kind), scale(0.1), kind(7), scale(1 / 256), kind(0), **options)


@pytest.mark.parametrize("axis", [-1, 1])
def test_softmax(axis: int, kind: type) -> None:
    x, opset = integers(2, 5, 7, kind=kind), onnx.helper.make_attribute("opset", 13)
    within(1, "QLinearSoftmax", x, scale(0.05), kind(3), scale(1 / 256), kind(0), axis=axis, more=[opset])


@pytest.mark.parametrize("last", [0, 1])
def test_pools(last: int, kind: type) -> None:
    x = integers(2, 6, 8, 4, kind=kind)
    numbers = (scale(0.1), kind(4), scale(0.05), kind(2))
    within(1, "QLinearGlobalAveragePool", x, *numbers, channels_last=last)
    within(1, "QLinearAveragePool", x, *numbers, channels_last=last, kernel_shape=[3, 2], strides=[2, 1],
           pads=[1, 0, 0, 1])  # fmt: skip


def test_max_pool(kind: type) -> None:
    options = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2], "ceil_mode": 1}
    within(0, "NhwcMaxPool", integers(2, 6, 8, 3, kind=kind), **options)


def test_concat_and_where(kind: type) -> None:
    a, b = integers(3, 4, kind=kind), integers(2, 4, kind=kind)
    within(1, "QLinearConcat", scale(0.1), kind(5), a, scale(0.07), kind(3), b, scale(0.1), kind(5), axis=0)
    chosen, other = RANDOM.random((3, 4)) < 0.5, integers(3, 4, kind=kind)
    within(1, "QLinearWhere", chosen, a, scale(0.07), kind(3), other, scale(0.1), kind(5), scale(0.2), kind(1))


@pytest.mark.parametrize("channels_last", [0, 1])
def test_convolution(channels_last: int) -> None:
    x, w = integers(1, 6, 5, 3), integers(4, 3, 3, 3)
    x = x if channels_last else x.transpose(0, 3, 1, 2).copy()
    bias = RANDOM.integers(-500, 500, 4).astype(np.int32)
    within(0, "QLinearConv", x, scale(0.1), np.uint8(7), w, scale(0.05), np.uint8(120), scale(0.9), np.uint8(100), bias,
           channels_last=channels_last, pads=[1, 1, 1, 1])  # fmt: skip


def test_products() -> None:
    """On processors without products of bytes, ONNX Runtime adds pairs of products in 16 bits, and saturates. Sums with
    weights of 7 bits fit."""
    a, b = integers(3, 8), integers(8, 5, kind=np.int8) // 2
    c = RANDOM.integers(-500, 500, 5).astype(np.int32)
    numbers = (a, scale(0.1), np.uint8(9), b, scale(0.05), np.int8(3))
    within(0, "QGemm", *numbers, c, scale(0.9), np.uint8(100), alpha=0.5)
    options = {"domain": "com.microsoft", "tolerance": 1e-5}
    check_node("QGemm", *numbers, c, **options)
    check_node("QGemm", a.T.copy(), *numbers[1:3], b.T.copy(), *numbers[4:], transA=1, transB=1, **options)
    columns, shifts = RANDOM.random(5).astype(np.float32), integers(5, kind=np.int8)
    for b_scale, b_zero in ((columns, shifts), (scale(0.1), np.int8(4)), (scale(0.1), None)):
        check_node("MatMulIntegerToFloat", a, b, scale(0.2), b_scale, np.uint8(3), b_zero, floats(5), **options)
        check_node("DynamicQuantizeMatMul", floats(3, 8), b, b_scale, b_zero, floats(5), **options)


def recurrent(directions: int, hidden: int, kind: type, columns: int | None = None) -> tuple[np.ndarray, ...]:
    """Weights of a quantized LSTM layer of inputs of 6 numbers: W, R, B, and the scales and zero points of W and R."""
    w, r = integers(directions, 6, 4 * hidden, kind=kind), integers(directions, hidden, 4 * hidden, kind=kind)
    shape = (directions,) if columns is None else (directions, columns)
    scales = [(RANDOM.random(shape) * 0.005 + 0.002).astype(np.float32) for _ in range(2)]
    zeros = [np.full(shape, 128 if kind is np.uint8 else 0, kind) for _ in range(2)]
    return w, r, floats(directions, 8 * hidden), scales[0], zeros[0], scales[1], zeros[1]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("per_column", [False, True])
def test_lstm(direction: str, per_column: bool, kind: type) -> None:
    """A layer that quantizes its inputs and outputs; where ONNX Runtime rounds differently, these differ by a step."""
    count = 2 if direction == "bidirectional" else 1
    w, r, bias, *numbers = recurrent(count, 5, kind, 20 if per_column else None)
    options: dict[str, Any] = {"domain": "com.microsoft", "outputs": 3, "hidden_size": 5, "direction": direction}
    options |= {"tolerance": 0.02, "oracle": by_exact_runtime}
    lengths, states = np.array([4, 7, 2], np.int32), [floats(count, 3, 5) * np.float32(0.1) for _ in range(2)]
    for x, given in (
        (floats(7, 3, 6), (None, None, None, None)),
        (floats(7, 3, 6), (None, *states, floats(count, 15))),
        (floats(8, 3, 6), (lengths, *states, None)),
    ):
        check_node("DynamicQuantizeLSTM", x, w, r, bias, *given, *numbers, **options)
    check_node("DynamicQuantizeLSTM", floats(2, 1, 6), w, r, *[None] * 5, *numbers, **options)
