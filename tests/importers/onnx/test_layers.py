"""Recurrent layers, resizing, sampling, quantized products, loops and scans, against ONNX Runtime."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import RANDOM, floats, ints
from tests.importers.onnx.checks import check, check_node, node

pytestmark = pytest.mark.onnx


def bytes_of(*shape: int, kind: type = np.uint8) -> np.ndarray:
    limits = np.iinfo(kind)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(kind)


LENGTHS = np.array([5, 2, 3], np.int32)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_layers(op: str, gates: int, direction: str) -> None:
    count = 2 if direction == "bidirectional" else 1
    x, w, r = floats(5, 3, 4), floats(count, gates * 2, 4), floats(count, gates * 2, 2)
    bias, state = floats(count, 2 * gates * 2), floats(count, 3, 2)
    more = [floats(count, 3, 2), floats(count, 6)] if op == "LSTM" else []
    outputs = 3 if op == "LSTM" else 2
    check_node(op, x, w, r, bias, LENGTHS, state, *more, outputs=outputs, direction=direction, hidden_size=2)


def test_options_of_recurrent_layers() -> None:
    x, w, r, bias = floats(5, 3, 4), floats(1, 6, 4), floats(1, 6, 2), floats(1, 12)
    check_node("GRU", x, w, r, bias, outputs=2, hidden_size=2, linear_before_reset=1, clip=0.5)
    names = ["HardSigmoid", "LeakyRelu"]
    options = {"activations": names, "activation_alpha": [0.3, 0.2], "activation_beta": [0.4]}
    check_node("GRU", x, w, r, bias, outputs=2, hidden_size=2, **options)
    with pytest.raises(trivium.UnsupportedOpError, match="activations has Cube, expected one of sigmoid, tanh"):
        trivium.from_onnx(node("RNN", x, floats(1, 2, 4), floats(1, 2, 2), activations=["Cube"]))


IMAGE = floats(1, 2, 5, 4)
MODES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", MODES)
def test_resize(mode: str, coordinates: str) -> None:
    check_node("Resize", IMAGE, None, None, ints(1, 2, 9, 3), mode=mode, coordinate_transformation_mode=coordinates)


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_resize_by_scales(rounding: str) -> None:
    scales = np.array([1, 1, 2, 0.7], np.float32)
    check_node("Resize", IMAGE, None, scales, mode="nearest", nearest_mode=rounding)


@pytest.mark.parametrize("rounding", ["round_prefer_ceil", "floor"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric"])
def test_nearest_elements_of_places_between_two(rounding: str, coordinates: str) -> None:
    image, options = floats(1, 1, 7, 6), {"nearest_mode": rounding, "coordinate_transformation_mode": coordinates}
    for height, width in ((0.6, 1.7), (0.3, 0.7), (1.2, 2.3)):
        check_node("Resize", image, None, np.array([1, 1, height, width], np.float32), mode="nearest", **options)
    check_node("Resize", image, None, None, ints(1, 1, 3, 14), mode="nearest", **options)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_the_first_resize(mode: str, fixed: bool) -> None:
    """In ONNX Runtime, the nearest element is the next one where an image becomes smaller."""
    for height, width in ((0.6, 0.6), (0.7, 2.3), (1.5, 0.3), (2, 1)):
        scales = np.array([1, 1, height, width], np.float32)
        image = floats(1, 2, 7, 6)
        made = node("Resize", image, scales, opset=10, mode=mode)
        if fixed:
            made.graph.initializer.append(onnx.numpy_helper.from_array(scales, "x1"))
            del made.graph.input[1]
        check(made, [image] if fixed else [image, scales])


@pytest.mark.parametrize("kind", [np.uint8, np.int32])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_filtered_bytes_are_rounded(mode: str, kind: type) -> None:
    """ONNX Runtime rounds after each dimension: here only one is resized."""
    image, scales = RANDOM.integers(0, 50, (1, 2, 12, 9)).astype(kind), np.array([1, 1, 0.7, 1], np.float32)
    check_node("Resize", image, None, scales, mode=mode, antialias=1)


def test_versions_of_normalization_by_groups() -> None:
    check_node("GroupNormalization", floats(2, 4, 3), floats(2), floats(2), opset=18, num_groups=2)
    check_node("GroupNormalization", floats(2, 4, 3), floats(4), floats(4), opset=21, num_groups=2)


@pytest.mark.parametrize("kind", ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Prod", "Sum", "SumSquare"])
def test_reductions_over_no_axes(kind: str) -> None:
    x = np.array([[0.5, 3], [4, 1]] if kind == "LogSum" else [[-0.5, 3], [4, -1]], np.float32)
    check_node(f"Reduce{kind}", x, opset=18, noop_with_empty_axes=1)


def test_powers_of_integers() -> None:
    check_node("Pow", np.array([2, 9, 0, -8], np.int32), np.array([2, 0.5, 0.5, 3], np.float32), opset=15)
    check_node("Pow", floats(4), np.array([2, 3, 0, -1], np.int32), opset=15)


def test_operators_that_became_functions_later() -> None:
    check_node("ThresholdedRelu", floats(3, 4), opset=10, alpha=-0.5)


def test_kernels_of_resize() -> None:
    scales = np.array([1, 1, 2, 0.7], np.float32)
    check_node("Resize", IMAGE, None, scales, mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5)
    check_node("Resize", IMAGE, None, scales, mode="linear", antialias=1)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(mode: str, padding: str) -> None:
    corners = int(mode == "linear" or padding == "border")
    grid = RANDOM.uniform(-1.5, 1.5, (1, 3, 3, 2)).astype(np.float32)
    check_node("GridSample", IMAGE, grid, mode=mode, padding_mode=padding, align_corners=corners)


SCALE, SCALES = np.float32(0.05), RANDOM.uniform(0.01, 0.1, 4).astype(np.float32)


def test_quantization() -> None:
    x = floats(3, 4)
    check_node("QuantizeLinear", x, np.asarray(SCALE), np.array(120, np.uint8))
    check_node("QuantizeLinear", x, SCALES, bytes_of(4, kind=np.int8), axis=1)
    check_node("DequantizeLinear", bytes_of(3, 4), SCALES, bytes_of(4), axis=-1)
    check_node("DynamicQuantizeLinear", x, outputs=3)


def test_products_of_quantized_tensors() -> None:
    """On processors without products of bytes, ONNX Runtime adds pairs of products in 16 bits, and saturates. Sums with
    weights of 7 bits fit."""
    a, b = bytes_of(3, 4), bytes_of(4, 5, kind=np.int8) // 2
    zero, signed = np.array(131, np.uint8), np.array(0, np.int8)
    check_node("MatMulInteger", a, b, zero)
    scales = [np.array(scale, np.float32) for scale in (0.01, 0.02, 0.3)]
    check_node("QLinearMatMul", a, scales[0], zero, b, scales[1], signed, scales[2], zero)
    image, filters = bytes_of(1, 3, 6, 6), bytes_of(4, 3, 3, 3)
    check_node("ConvInteger", image, filters, zero, pads=[1, 1, 1, 1])
    of_channels, zeros = SCALES, np.full(4, 128, np.uint8)
    bias = RANDOM.integers(-1000, 1000, 4).astype(np.int32)
    check_node(
        "QLinearConv", image, scales[0], zero, filters, of_channels, zeros, scales[2], zero, bias, strides=[2, 1]
    )  # fmt: skip


def test_loops_collect_rows() -> None:
    text = """<ir_version: 9, opset_import: ["" : 17]> g (float[3] x) => (float[3] y, float[4, 3] rows) {
        n = Constant<value = int64 {4}>() yes = Constant<value = bool {1}>()
        y, rows = Loop(n, yes, x) <body = b (int64 i, bool go, float[3] v) => (bool again, float[3] w, float[3] row) {
            again = Identity(go) w = Add(v, x) row = Neg(w) }>
    }"""
    check(onnx.parser.parse_model(text), [floats(3)])


def test_scans_go_both_ways() -> None:
    text = """<ir_version: 9, opset_import: ["" : 17]> g (float[3] s, float[3, 5] x) => (float[3] y, float[3, 5] rows) {
        y, rows = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
            scan_output_axes = [-1], body = b (float[3] v, float[3] r) => (float[3] w, float[3] row) {
            w = Add(v, r) row = Mul(w, r) }>(s, x)
    }"""
    check(onnx.parser.parse_model(text), [floats(3), floats(3, 5)])


def test_a_condition_that_is_known_chooses_the_branch() -> None:
    text = """<ir_version: 9, opset_import: ["" : 17]> g (float[3] x) => (float[1, 3] y) {
        no = Constant<value = bool {0}>() zero = Constant<value = int64[1] {0}>()
        y = If(no) <then_branch = a () => (float[3] u) { u = Neg(x) },
                    else_branch = b () => (float[1, 3] v) { v = Unsqueeze(x, zero) }>
    }"""
    check(onnx.parser.parse_model(text), [floats(3)])


def test_small_rules() -> None:
    check_node("LpNormalization", floats(3, 4), axis=0, p=1)
    check_node("LRN", floats(1, 5, 2, 2), size=3)
    whole = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"}
    check_node("Resize", floats(1, 1, 3, 4), None, np.array([1, 1, 2, 1.5], np.float32), **whole)
    check_node("Shrink", floats(3, 4), lambd=0.3, bias=0.1)
    check_node("Shrink", np.arange(-3, 4, dtype=np.int8), lambd=1.5, bias=1.5)
    for op in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp"):
        check_node(op, np.arange(1, 7, dtype=np.int32).reshape(2, 3), ints(1))
    check_node("BatchNormalization", floats(5), *(np.abs(floats(1)) for _ in range(4)))
    check_node("ReverseSequence", floats(4, 2), ints(3, 1), batch_axis=1, time_axis=0)
    normalized = floats(2, 3, 4), floats(3), floats(3), floats(3), abs(floats(3))
    check_node("BatchNormalization", *normalized, outputs=3, training_mode=1, opset=14)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij->ji", [(2, 3)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("i,i", [(3,), (3,)]),
        ("bij,bjk,k->bi", [(2, 3, 4), (2, 4, 5), (5,)]),
        ("...ij,jk", [(2, 2, 3), (3, 4)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
    ],
)
def test_einstein_sums(equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [floats(*shape) for shape in shapes]
    model = node("Einsum", *arrays, equation=equation)
    (result,) = trivium.evaluate(trivium.from_onnx(model), *arrays)
    np.testing.assert_allclose(result, np.einsum(equation, *arrays), rtol=1e-5, atol=1e-5)


def test_sequences() -> None:
    text = """<ir_version: 9, opset_import: ["" : 17]> g (float[4, 3] x) => (float[4, 3] y, int64 count) {
        two = Constant<value = int64 {2}>() first = Constant<value = int64 {0}>() last = Constant<value = int64 {-1}>()
        parts = SplitToSequence(x, two) head = SequenceAt(parts, first) rest = SequenceErase(parts, first)
        both = SequenceInsert(rest, head) turned = SequenceInsert(both, head, last)
        fewer = SequenceErase(turned, last) y = ConcatFromSequence<axis = 0>(fewer) count = SequenceLength(turned)
    }"""
    x = floats(4, 3)
    y, count = trivium.evaluate(trivium.from_onnx(onnx.parser.parse_model(text)), x)
    np.testing.assert_array_equal(y, np.concatenate([x[2:], x[:2]]))
    assert count == 3


def test_pooling_by_norms_and_output_shapes() -> None:
    check_node("LpPool", floats(1, 2, 6, 5), kernel_shape=[3, 2], strides=[2, 1], p=3, pads=[1, 0, 1, 0])
    check_node("GlobalLpPool", floats(1, 2, 6, 5), p=1)
    x, w = floats(1, 2, 4, 4), floats(2, 3, 3, 3)
    check_node("ConvTranspose", x, w, strides=[2, 2], auto_pad="SAME_UPPER")
    check_node("ConvTranspose", x, w, strides=[2, 3], output_shape=[9, 13])


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("shape", [[12, 14], [13, 8], [11, 12]])
def test_transposed_convolutions_to_more_than_their_windows_reach(shape: list[int], auto_pad: str) -> None:
    x, w = floats(1, 2, 4, 4), floats(2, 3, 2, 3)
    check_node("ConvTranspose", x, w, strides=[3, 3], output_shape=shape, auto_pad=auto_pad)


@pytest.mark.parametrize("corners", [0, 1])
def test_grids_and_caches(corners: int) -> None:
    check_node("AffineGrid", floats(2, 2, 3), ints(2, 3, 5, 4), align_corners=corners)
