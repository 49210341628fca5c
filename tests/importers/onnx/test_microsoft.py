"""Operators that ONNX Runtime adds, against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import RANDOM, floats
from tests.importers.onnx.checks import check, check_node, node

pytestmark = pytest.mark.onnx

DOMAIN = "com.microsoft"
HALF = np.float16


def close(op: str, *inputs: np.ndarray | None, **options: Any) -> None:
    check_node(op, *inputs, domain=DOMAIN, fixed=False, **options)


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        (floats(3, 4), floats(4, 5), {"alpha": 0.5}),
        (floats(4, 3), floats(5, 4), {"transA": 1, "transB": 1}),
        (floats(2, 3, 4), floats(2, 5, 4), {"transB": 1}),
        (floats(3, 2, 4), floats(2, 4, 5), {"transBatchA": 1}),
        (floats(3, 2, 4), floats(4, 2, 5), {"transBatchA": 1, "transBatchB": 1}),
        (floats(4, 2, 3), floats(5, 2, 4), {"transBatchA": 1, "transA": 1, "transBatchB": 1, "transB": 1}),
        (floats(2, 1, 3, 4), floats(3, 4, 2), {}),
    ],
)
def test_products(a: np.ndarray, b: np.ndarray, options: dict[str, Any]) -> None:
    close("FusedMatMul", a, b, **options)


@pytest.mark.parametrize("activation", ["", "Relu", "LeakyRelu", "Sigmoid", "Tanh"])
def test_products_with_activations(activation: str) -> None:
    more = {"activation": activation} if activation else {}
    numbers = {"activation_params": [0.2]} if activation == "LeakyRelu" else {}
    options = {"pads": [1, 1, 1, 1], "strides": [2, 1], **more, **numbers}
    if activation:
        number = {"activation_alpha": 0.3} if activation == "LeakyRelu" else {}
        close("FusedGemm", floats(3, 4), floats(5, 4), floats(5), transB=1, alpha=0.5, **more, **number)
    close("FusedConv", floats(1, 3, 6, 5), floats(4, 3, 3, 3), floats(4), **options)
    close("FusedConv", floats(1, 3, 6, 5), floats(4, 3, 3, 3), None, floats(1, 4, 3, 5), **options)


def test_models_that_do_not_name_the_version() -> None:
    x, bias = floats(3, 4), floats(4)
    model = node("BiasGelu", x, bias, domain=DOMAIN, fixed=False)
    kept = [x for x in model.opset_import if x.domain != DOMAIN]
    del model.opset_import[:]
    model.opset_import.extend(kept)
    check(model, [x, bias])


def test_an_activation_without_a_rule() -> None:
    with pytest.raises(trivium.UnsupportedOpError, match="activation has Cube, expected Relu, LeakyRelu"):
        trivium.from_onnx(node("FusedGemm", floats(3, 4), floats(4, 5), domain=DOMAIN, activation="Cube"))


@pytest.mark.parametrize("block", [16, 32])
@pytest.mark.parametrize("zeros", ["none", "packed", "floats"])
@pytest.mark.parametrize("bits", [4, 8])
def test_weights_of_few_bits(bits: int, zeros: str, block: int) -> None:
    rows, depth = 6, 80
    blocks = -(-depth // block)
    weights = RANDOM.integers(0, 256, (rows, blocks, block * bits // 8)).astype(np.uint8)
    scales = RANDOM.random((rows, blocks)).astype(np.float32)
    packed = RANDOM.integers(0, 256, (rows, -(-blocks * bits // 8))).astype(np.uint8)
    shift = {"none": None, "packed": packed, "floats": floats(rows, blocks) + 8}[zeros]
    if zeros == "floats" and bits == 8:
        pytest.skip("ONNX Runtime has no such kernel")
    bias = floats(rows) if zeros == "packed" else None
    close("MatMulNBits", floats(2, 3, depth), weights, scales, shift, None, bias,
          K=depth, N=rows, bits=bits, block_size=block, tolerance=1e-3)  # fmt: skip


@pytest.mark.parametrize("quant_type", [0, 1])
@pytest.mark.parametrize(("rows", "depth", "block"), [(6, 32, 16), (5, 24, 16), (7, 48, 64)])
def test_packed_weights_of_floats(rows: int, depth: int, block: int, quant_type: int) -> None:
    weights = RANDOM.integers(0, 256, rows * depth // 2).astype(np.uint8)
    largest = np.abs(floats(-(-rows * depth // block)))
    options = {"K": depth, "N": rows, "block_size": block, "quant_type": quant_type, "tolerance": 1e-4}
    close("MatMulBnb4", floats(2, 3, depth), weights, largest, **options)
    close("MatMulBnb4", floats(4, depth), weights, largest, **options)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_slices_of_packed_weights(bits: int, zeros: bool) -> None:
    """An embedding of 40 numbers in blocks of 16, of which the last one is not full."""
    rows, each = 9, 8 // bits
    data = RANDOM.integers(0, 256, (rows, 40 // each)).astype(np.uint8)
    shift = RANDOM.integers(0, 256, (rows, -(-3 // each))).astype(np.uint8) if zeros else None
    indices = np.array([[1, -1, 8], [0, 4, -9]])
    close("GatherBlockQuantized", data, indices, floats(rows, 3), shift, bits=bits, block_size=16)


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("Gelu", [floats(3, 4)]),
        ("BiasGelu", [floats(3, 4), floats(4)]),
        ("FastGelu", [floats(3, 4), floats(4)]),
        ("FastGelu", [floats(3, 4)]),
        ("QuickGelu", [floats(3, 4)]),
    ],
)
def test_activations(op: str, inputs: list[np.ndarray]) -> None:
    close(op, *inputs)
    x, *bias = inputs
    special = np.array([[0.0, -0.0, 30.0, -30.0], [1e-30, 1e4, -1e4, 5.0]], np.float32)
    close(op, special, *bias)
    if op == "QuickGelu":
        close(op, x, alpha=0.5)


ROWS, SKIP, GAMMA, BETA, BIAS = floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)


@pytest.mark.parametrize("skip", [SKIP, SKIP[:1], SKIP[0]])
@pytest.mark.parametrize("bias", [None, BIAS])
def test_normalization_of_sums(skip: np.ndarray, bias: np.ndarray | None) -> None:
    def sums(op: str, *inputs: np.ndarray | None) -> None:
        made = node(op, *inputs, outputs=4, domain=DOMAIN, epsilon=1e-5)
        made.graph.node[0].output[1] = made.graph.node[0].output[2] = ""
        del made.graph.output[1:3]
        check(made, [x for x in inputs if x is not None])

    sums("SkipLayerNormalization", ROWS, skip, GAMMA, BETA, bias)
    sums("SkipLayerNormalization", ROWS, skip, GAMMA, None, bias)
    sums("SkipSimplifiedLayerNormalization", ROWS, skip, GAMMA, bias)


def test_normalization_without_a_mean() -> None:
    check_node("SimplifiedLayerNormalization", ROWS, GAMMA, outputs=2, axis=-1, epsilon=1e-6)
    check_node("SimplifiedLayerNormalization", ROWS, floats(3, 8), axis=1)


@pytest.mark.parametrize("mask", [None, np.array([[1, 1, 0], [1, 0, 0]], np.int32)])
@pytest.mark.parametrize("segments", [None, np.array([[0, 1, 1], [1, 0, 0]], np.int32)])
def test_embeddings(segments: np.ndarray | None, mask: np.ndarray | None) -> None:
    tokens = np.array([[3, 0, 9], [1, 1, 4]], np.int32)
    kinds = None if segments is None else floats(2, 8)
    close("EmbedLayerNormalization", tokens, segments, floats(10, 8), floats(5, 8), kinds, GAMMA, BETA, mask,
          outputs=3 if mask is None else 2)  # fmt: skip
    places = np.array([[2, 1, 4], [0, 3, 3]], np.int32)
    close("EmbedLayerNormalization", tokens, segments, floats(10, 8), floats(5, 8), kinds, GAMMA, BETA, mask, places,
          outputs=2)  # fmt: skip


def test_softmax_of_sums() -> None:
    x, bias = floats(2, 3, 4, 5), floats(2, 1, 1, 5)
    (result,) = trivium.compile(trivium.from_onnx(node("BiasSoftmax", x, bias, domain=DOMAIN, axis=3)))(x, bias)
    powers = np.exp((x + bias) - (x + bias).max(-1, keepdims=True))
    np.testing.assert_allclose(result, powers / powers.sum(-1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("numbers", [(2, 9), (2, 9, 3), (9, 2, -2), (3, 3, 1)])
@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_ranges(numbers: tuple[int, ...], kind: Any) -> None:
    close("Range", *(np.array(x, kind) for x in numbers))
