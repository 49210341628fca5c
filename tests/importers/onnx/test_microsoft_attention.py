"""Attention with masks, caches and groups of heads, and rotary embeddings, against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import RANDOM, floats
from tests.importers.onnx.checks import by_exact_runtime, by_runtime, check_node, node

pytestmark = pytest.mark.onnx

BATCH, LENGTH, HEADS, SIZE = 2, 5, 4, 16
WIDTH = HEADS * SIZE


def close(op: str, *inputs: np.ndarray | None, **options: Any) -> None:
    check_node(op, *inputs, domain="com.microsoft", fixed=False, **options)


def number(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


# Rotary embeddings

COSINES, SINES = floats(20, SIZE // 2), floats(20, SIZE // 2)
PLACES = RANDOM.integers(0, 20, (BATCH, LENGTH))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", [np.array([3]), PLACES])
def test_rotary_embeddings(positions: np.ndarray, interleaved: int) -> None:
    close("RotaryEmbedding", floats(BATCH, LENGTH, WIDTH), positions, COSINES, SINES, interleaved=interleaved)
    close("RotaryEmbedding", floats(BATCH, HEADS, LENGTH, SIZE), positions, COSINES, SINES, interleaved=interleaved)
    part = {"num_heads": HEADS, "rotary_embedding_dim": 4, "interleaved": interleaved}
    close("RotaryEmbedding", floats(BATCH, LENGTH, WIDTH), positions, COSINES[:, :2], SINES[:, :2], **part)


# Heads that each have keys and values

Q, K, V = floats(BATCH, LENGTH, WIDTH), floats(BATCH, 6, WIDTH), floats(BATCH, 6, WIDTH)
BIAS = floats(3 * WIDTH)
OWN = {"domain": "com.microsoft", "num_heads": HEADS}
PAST = [floats(BATCH, HEADS, 3, SIZE) for _ in range(2)]


@pytest.mark.parametrize(
    ("padding", "options"),
    [(None, {}), (number(4, 6), {"scale": 0.3}),
     ((RANDOM.random((BATCH, 6)) < 0.7).astype(np.int32), {"mask_filter_value": -5.0}),
     ((RANDOM.random((BATCH, LENGTH, 6)) < 0.7).astype(np.int32), {})],
)  # fmt: skip
def test_padding(padding: np.ndarray | None, options: dict[str, Any]) -> None:
    close("MultiHeadAttention", Q, K, V, BIAS, padding, num_heads=HEADS, **options)


def test_biases_of_scores() -> None:
    for shape in ((BATCH, HEADS, LENGTH, 6), (1, HEADS, LENGTH, 6), (1, 1, LENGTH, 6)):
        close("MultiHeadAttention", Q, K, V, None, None, floats(*shape), num_heads=HEADS)


def test_packed_heads() -> None:
    """ONNX Runtime takes these on other devices only: here, it gets the parts."""
    for count in (2, 3):
        packed = floats(BATCH, LENGTH, HEADS, count, SIZE)
        apart = [np.ascontiguousarray(packed[:, :, :, i]).reshape(BATCH, LENGTH, WIDTH) for i in range(count)]
        given, parts = ([Q, packed], [Q, *apart]) if count == 2 else ([packed], apart)
        (result,) = trivium.compile(trivium.from_onnx(node("MultiHeadAttention", *given, **OWN)))(*given)
        (expected,) = by_runtime(node("MultiHeadAttention", *parts, **OWN), parts)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_keys_by_heads() -> None:
    close("MultiHeadAttention", Q, *(floats(BATCH, HEADS, 6, SIZE) for _ in range(2)), num_heads=HEADS)


def test_values_of_another_size() -> None:
    close("MultiHeadAttention", Q, K, floats(BATCH, 6, 2 * WIDTH), floats(4 * WIDTH), num_heads=HEADS)


@pytest.mark.parametrize("causal", [0, 1])
def test_keys_and_values_of_before(causal: int) -> None:
    new = [floats(BATCH, LENGTH, WIDTH) for _ in range(2)]
    close("MultiHeadAttention", Q, *new, None, None, None, *PAST, outputs=3, num_heads=HEADS, unidirectional=causal)
    close("MultiHeadAttention", Q, *new, outputs=3, num_heads=HEADS, unidirectional=causal)


INPUT, WEIGHTS = floats(BATCH, LENGTH, 12), floats(12, 3 * WIDTH)


@pytest.mark.parametrize(
    ("mask", "causal"),
    [(None, 1), (number(4, 5), 0), (number(4, 5), 1), ((RANDOM.random((BATCH, LENGTH)) < 0.7).astype(np.int32), 1),
     ((RANDOM.random((BATCH, LENGTH, LENGTH)) < 0.7).astype(np.int32), 0)],
)  # fmt: skip
def test_attention_to_itself(mask: np.ndarray | None, causal: int) -> None:
    close("Attention", INPUT, WEIGHTS, BIAS, mask, num_heads=HEADS, unidirectional=causal)


def test_more_of_attention_to_itself() -> None:
    past = floats(2, BATCH, HEADS, 3, SIZE)
    close("Attention", INPUT, WEIGHTS, BIAS, None, past, outputs=2, num_heads=HEADS, unidirectional=1)
    close("Attention", INPUT, WEIGHTS, BIAS, None, None, floats(BATCH, HEADS, LENGTH, LENGTH), num_heads=HEADS)
    close("Attention", INPUT, floats(12, 4 * WIDTH), floats(4 * WIDTH), num_heads=HEADS,
          qkv_hidden_sizes=[WIDTH, WIDTH, 2 * WIDTH])  # fmt: skip
    with pytest.raises(trivium.UnsupportedOpError, match="mask_index has type tensor<4xi32>, expected one length"):
        trivium.from_onnx(node("Attention", INPUT, WEIGHTS, BIAS, number(4, 5, 0, 0), domain="com.microsoft",
                               num_heads=HEADS))  # fmt: skip


@pytest.mark.parametrize("columns", [1, 3 * WIDTH])
def test_quantized_attention_to_itself(columns: int) -> None:
    """An input and weights that integers express; the weights may have a scale for each column."""
    x = RANDOM.integers(0, 256, (BATCH, LENGTH, 12)).astype(np.uint8)
    weights = RANDOM.integers(-128, 128, (12, 3 * WIDTH)).astype(np.int8)
    scale, steps = np.array(0.02, np.float32), (RANDOM.random(columns) * 0.01).astype(np.float32)
    steps, zeros = (steps, np.zeros(columns, np.int8)) if columns > 1 else (steps.reshape(()), np.int8(3))
    numbers, past = (x, weights, BIAS, scale, steps), floats(2, BATCH, HEADS, 3, SIZE)
    options: dict[str, Any] = {"num_heads": HEADS, "oracle": by_exact_runtime}
    close("QAttention", *numbers, number(4, 5), np.uint8(120), zeros, **options)
    close("QAttention", *numbers, None, np.uint8(0), zeros, past, outputs=2, unidirectional=1, **options)
    close("QAttention", *numbers, **options)


# Groups of heads

GROUPS = 2
NARROW = GROUPS * SIZE


def grouped(length: int, before: int, lengths: np.ndarray, *more: np.ndarray | None, packed: bool = False,
            room: int | None = None, outputs: int = 3, kind: type = np.float32, **options: Any) -> None:  # fmt: skip
    """A step of `length` elements after `before` ones."""
    q, k, v = (floats(BATCH, length, width).astype(kind) for width in (WIDTH, NARROW, NARROW))
    parts = [np.concatenate([q, k, v], 2), None, None] if packed else [q, k, v]
    caches = [floats(BATCH, GROUPS, before if room is None else room, SIZE).astype(kind) for _ in range(2)]
    total = np.array(before + length, np.int32)
    tolerance = 1e-2 if kind is np.float16 else 1e-4
    close("GroupQueryAttention", *parts, *caches, lengths, total, *more, outputs=outputs, num_heads=HEADS,
          kv_num_heads=GROUPS, tolerance=tolerance, **options)  # fmt: skip


def full(count: int) -> np.ndarray:
    return np.full(BATCH, count - 1, np.int32)


@pytest.mark.parametrize(
    ("length", "before", "options"),
    [(5, 0, {}), (1, 6, {"scale": 0.2}), (5, 0, {"local_window_size": 3}), (1, 6, {"local_window_size": 3}),
     (5, 0, {"softcap": 2.0}), (1, 6, {"smooth_softmax": 1})],
)  # fmt: skip
def test_groups_of_heads(length: int, before: int, options: dict[str, Any]) -> None:
    grouped(length, before, full(before + length), **options)


@pytest.mark.parametrize(
    ("length", "before", "packed", "interleaved"),
    [(5, 0, True, 0), (5, 0, False, 1), (1, 6, True, 1), (1, 6, False, 0)],
)
def test_groups_with_rotary_embeddings(packed: bool, length: int, before: int, interleaved: int) -> None:
    grouped(length, before, full(before + length), COSINES, SINES, packed=packed, do_rotary=1,
            rotary_interleaved=interleaved)  # fmt: skip


def test_groups_of_different_lengths() -> None:
    """Of the first steps, only what is not padding counts."""
    grouped(1, 6, number(6, 6), room=12)
    grouped(1, 6, number(4, 6), COSINES, SINES, do_rotary=1)


def test_groups_in_half_precision() -> None:
    grouped(1, 6, full(7), kind=np.float16)


def test_groups_with_more() -> None:
    grouped(5, 0, full(5), None, None, None, floats(1, 1, 5, 5))
    grouped(1, 6, full(7), None, None, None, floats(BATCH, HEADS, 1, 7))
    grouped(5, 0, full(5), None, None, None, None, floats(HEADS))


def test_what_is_refused() -> None:
    q, k = floats(BATCH, 1, WIDTH), floats(BATCH, 1, NARROW)
    inputs = [q, k, k, None, None, full(1), np.array(1, np.int32)]
    options = {"num_heads": HEADS, "kv_num_heads": GROUPS, "domain": "com.microsoft"}
    with pytest.raises(trivium.UnsupportedOpError, match="causal has 0, qk_output 0"):
        trivium.from_onnx(node("GroupQueryAttention", *inputs, causal=0, **options))
    with pytest.raises(trivium.UnsupportedOpError, match="k_quant_type"):
        trivium.from_onnx(node("GroupQueryAttention", *inputs, k_quant_type="PER_TENSOR", **options))
