"""Programs for any size: dynamic sizes of a model, and shapes, axes and bounds that are its inputs, against
ONNX's reference evaluator."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import helper
from onnx.reference import ReferenceEvaluator

import trivium
from tests.importers.onnx.arrays import floats, ints
from tests.importers.onnx.checks import by_runtime

pytestmark = pytest.mark.onnx


def model(text: str, *inputs: np.ndarray, opset: int = 21, **weights: np.ndarray) -> Any:
    """A model of nodes `text` whose inputs have no sizes, but whose weights do."""
    infos = [
        helper.make_tensor_value_info(
            f"x{i}", helper.np_dtype_to_tensor_dtype(x.dtype), [f"n{i}_{d}" for d in range(x.ndim)]
        )
        for i, x in enumerate(inputs)
    ]
    made = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> g () => () {{ {text} }}')
    made.graph.input.extend(infos)
    made.graph.initializer.extend(onnx.numpy_helper.from_array(x, name) for name, x in weights.items())
    made.graph.output.append(helper.make_empty_tensor_value_info("y"))
    return made


X, Y = floats(2, 3, 4), floats(3, 4)
IMAGE = floats(2, 4, 6, 5)

OPEN = [
    ("y = Add(x0, x1)", (X, Y)),
    ("y = Mul(x0, x1)", (X, floats(2, 1, 4))),
    ("y = Softmax<axis = 1>(x0)", (X,)),
    ("y = MatMul(x0, x1)", (X, floats(4, 5))),
    ("y = MatMul(x0, x1)", (floats(5, 1, 3, 4), X.transpose(0, 2, 1).copy())),
    ('y = Einsum<equation = "...ij,...jk->...ik">(x0, x1)', (floats(1, 2, 3), floats(4, 3, 5))),
    ('y = Einsum<equation = "...ij,...jk->...ik">(x0, x1)', (floats(4, 2, 3), floats(4, 3, 5))),
    ("y = Gather<axis = 1>(x0, x1)", (X, np.array([[0, -1]]))),
    ("y = GatherND(x0, x1)", (X, np.array([[0, 1], [-1, 2]]))),
    ("y = ScatterElements<axis = 1>(x0, x1, x2)", (X, np.array([[[0, -1]]]), floats(1, 1, 2))),
    ("y = ReduceMean<keepdims = 0>(x0)", (X,)),
    ("y = LayerNormalization(x0, x1)", (X, floats(4))),
    ("y = Flatten<axis = 2>(x0)", (X,)),
    ("y = Transpose<perm = [2, 0, 1]>(x0)", (X,)),
    ("y = Concat<axis = 1>(x0, x1)", (X, floats(2, 5, 4))),
    ("y = ArgMax<axis = 1, select_last_index = 1>(x0)", (X,)),
    ("y = Relu(x0)", (X,)),
    ("y = Shape<start = 1>(x0)", (X,)),
    ("y = Size(x0)", (X,)),
    ("n = Shape(x0) k = Constant<value = int64[1] {-1}>() m = Slice(n, zero, one) s = Concat<axis = 0>(m, k)"
     " y = Reshape(x0, s)", (X,)),
    ("a, b = Split<axis = 1, num_outputs = 2>(x0) y = Neg(b)", (X,)),
    ("y = Slice(x0, zero, one)", (X,)),
    ("y = DepthToSpace<blocksize = 2>(x0)", (IMAGE,)),
    ("y = GlobalAveragePool(x0)", (IMAGE,)),
    ("y = Trilu(x0)", (X,)),
    ("y = Mod(x0, x1)", (np.array([-7, 5, 3]), np.array([3]))),
    ("y = Dropout(x0)", (X,)),
]  # fmt: skip

COMPUTED = [
    ("y = Reshape(x0, x1)", (X, ints(0, -1, 2))),
    ("y = Reshape<allowzero = 1>(x0, x1)", (floats(0, 3), ints(3, 0))),
    ("y = Expand(x0, x1)", (Y, ints(2, 1, 1))),
    ("y = Tile(x0, x1)", (Y, ints(2, 3))),
    ("y = Slice(x0, x1, x2)", (X, ints(1, -2), ints(9, 3))),
    ("y = Slice(x0, x1, x2, x3, x4)", (X, ints(-1, 0), ints(-9, 3), ints(2, -2), ints(-2, 2))),
    ("y = Pad(x0, x1)", (Y, ints(1, 0, 2, 3))),
    *((f"y = Pad<mode = \"{mode}\">(x0, x1)", (Y, ints(1, 2, 2, 1))) for mode in ("reflect", "edge", "wrap")),
    ("y = Pad(x0, x1, x2, x3)", (Y, ints(1, 2), np.float32(7), ints(-1))),
    ("y = ReduceSum(x0, x1)", (X, ints(0, -1))),
    ("y = ReduceMean<keepdims = 0>(x0, x1)", (X, ints(-2))),
    ("y = ReduceLogSumExp<keepdims = 0>(x0, x1)", (X, ints(1, 2))),
    ("y = ReduceL2(x0, x1)", (X, ints(2))),
    ("y = Squeeze(x0, x1)", (X[:, None, :, :, None], ints(-1, 1))),
    ("y = Unsqueeze(x0, x1)", (Y, ints(-1, 0))),
    ("y = CumSum(x0, x1)", (X, np.array(-1))),
    ("y = CumSum<exclusive = 1, reverse = 1>(x0, x1)", (X, np.array(1))),
    ("y = CumSum<reverse = 1>(x0, x1)", (X, np.array(0))),
    ("y = ConstantOfShape(x0)", (ints(2, 3),)),
    ("y = Range(x0, x1, x2)", (np.array(7), np.array(1), np.array(-2))),
    ("y = Range(x0, x1, x2)", (np.float32(0.5), np.float32(2), np.float32(0.25))),
    ("y = OneHot(x0, x1, x2)", (ints(0, 2, -1), np.array(4), np.array([0, 1], np.float32))),
    ("y, i = TopK(x0, x1)", (X, ints(2))),
    ("y = Trilu(x0, x1)", (X, np.array(1))),
    ("a, y = Split<axis = 2>(x0, x1)", (X, ints(1, 3))),
]  # fmt: skip


FILTERS = floats(4, 4, 3, 3)
SPACE = "kernel_shape = [3, 2], strides = [2, 2]"

IMAGES = [
    *((f'y = Conv<auto_pad = "{pad}", strides = [2, 3]>(x0, w)', (IMAGE,)) for pad in ("SAME_UPPER", "SAME_LOWER")),
    *((f"y = {op}<{SPACE}, ceil_mode = 1>(x0)", (IMAGE,)) for op in ("MaxPool", "AveragePool")),
    *((f'y = {op}<{SPACE}, auto_pad = "SAME_UPPER">(x0)', (IMAGE,)) for op in ("MaxPool", "AveragePool", "LpPool")),
    (f"y, i = MaxPool<{SPACE}, ceil_mode = 1>(x0)", (IMAGE,)),
    (f"i, y = MaxPool<{SPACE}, ceil_mode = 1>(x0)", (IMAGE,)),
    (f"y = AveragePool<{SPACE}, pads = [1, 0, 1, 1], count_include_pad = 1, ceil_mode = 1>(x0)", (IMAGE,)),
    ("y = AveragePool<kernel_shape = [2, 2], pads = [1, 1, 0, 1]>(x0)", (IMAGE,)),
    ("y = ConvTranspose<strides = [2, 2], pads = [1, 0, 1, 2], output_padding = [1, 0]>(x0, w)", (IMAGE,)),
    ('y = ConvTranspose<strides = [2, 3], auto_pad = "SAME_UPPER">(x0, w)', (IMAGE,)),
    ("y = GroupNormalization<num_groups = 2>(x0, s, b)", (IMAGE,)),
    ("y = InstanceNormalization(x0, s, b)", (IMAGE,)),
    ("y = BatchNormalization(x0, s, b, s, v)", (IMAGE,)),
]

AT_PLACES = [
    ("y = GridSample(x0, x1)", (None, None, None, 2)),
    ('y = GridSample<padding_mode = "reflection", align_corners = 1>(x0, x1)', (None, None, None, 2)),
    ('y = GridSample<padding_mode = "border", mode = "cubic">(x0, x1)', (None, None, None, 2)),
    ("y = DeformConv(x0, w, x1)", (None, 18, None, None)),
]
"""Ops that read images at computed places, and the types of those."""


def check(text: str, arrays: tuple[np.ndarray, ...]) -> None:
    constants = "zero = Constant<value = int64[1] {0}>() one = Constant<value = int64[1] {1}>() " * ("zero" in text)
    arrays = tuple(map(np.asarray, arrays))
    made = model(constants + text, *arrays)
    expected = ReferenceEvaluator(made).run(None, {f"x{i}": x for i, x in enumerate(arrays)})[0]
    module = trivium.from_onnx(made, shapes={f"x{i}": x.shape for i, x in enumerate(arrays) if x.dtype == np.int64})
    module.verify()
    (result,) = trivium.compile(module)(*arrays)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("text", "arrays"), OPEN, ids=[text for text, _ in OPEN])
def test_sizes_that_stay_open(text: str, arrays: tuple[np.ndarray, ...]) -> None:
    check(text, arrays)


@pytest.mark.parametrize(("text", "arrays"), COMPUTED, ids=[text for text, _ in COMPUTED])
def test_shapes_and_axes_that_are_inputs(text: str, arrays: tuple[np.ndarray, ...]) -> None:
    check(text, arrays)


WEIGHTS = {"w": FILTERS, "s": floats(4), "b": floats(4), "v": np.abs(floats(4))}


@pytest.mark.parametrize(("text", "arrays"), IMAGES, ids=[text for text, _ in IMAGES])
def test_images_of_any_size(text: str, arrays: tuple[np.ndarray, ...]) -> None:
    made = model(text, *arrays, **WEIGHTS)
    known = None if "BatchNormalization" in text else 4  # the statistics tell how many features there are
    run = trivium.compile(trivium.from_onnx(made, shapes={"x0": (None, known, None, None)}))
    for shape in (arrays[0].shape, (3, 4, 5, 8), (1, 4, 3, 3)):
        expect(made, run, [floats(*shape)])


@pytest.mark.parametrize(("text", "places"), AT_PLACES, ids=[text for text, _ in AT_PLACES])
def test_places_in_images_of_any_size(text: str, places: tuple[int | None, ...]) -> None:
    made = model(text, IMAGE, floats(1, 1, 1, 1), **WEIGHTS)
    module = trivium.from_onnx(made, shapes={"x0": (None, 4, None, None), "x1": places})
    x, at = floats(2, 4, 5, 7), floats(2, 18, 3, 5) if "Deform" in text else floats(2, 3, 4, 2)
    np.testing.assert_allclose(trivium.evaluate(module, x, at)[0], by_runtime(made, [x, at])[0], rtol=1e-4, atol=1e-5)


def test_transposed_convolutions_with_a_given_size() -> None:
    made = model("y = ConvTranspose<output_shape = [9, 13], strides = [2, 2]>(x0, w)", IMAGE, **WEIGHTS)
    module, x = trivium.from_onnx(made, shapes={"x0": (None, 4, None, None)}), floats(2, 4, 5, 7)
    np.testing.assert_allclose(trivium.evaluate(module, x)[0], by_runtime(made, [x])[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", ["Softmax", "Hardmax"])
def test_sizes_of_earlier_operator_sets(op: str) -> None:
    made, x = model(f"y = {op}<axis = 1>(x0)", X, opset=11), floats(3, 2, 5)
    flat = x.reshape(3, 10)
    powers = np.exp(flat - flat.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True) if op == "Softmax" else flat == flat.max(1, keepdims=True)
    (result,) = trivium.evaluate(trivium.from_onnx(made), x)
    np.testing.assert_allclose(result, expected.reshape(x.shape), rtol=1e-5)


@pytest.mark.parametrize("text", ["y = GatherND(x0, x1)", "y = ScatterND(x0, x1, x0)"])
def test_indices_of_an_unknown_number_of_dimensions(text: str) -> None:
    with pytest.raises(
        trivium.UnsupportedOpError, match=r"indices has type .*expected a last dimension whose extent is"
    ):
        trivium.from_onnx(model(text, X, np.zeros((2, 2), np.int64)))


def expect(made: Any, run: Any, arrays: list[np.ndarray]) -> None:
    expected = ReferenceEvaluator(made).run(None, {f"x{i}": x for i, x in enumerate(arrays)})[0]
    (result,) = run(*arrays)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_one_program_for_any_batch() -> None:
    weights = floats(8, 4, 3, 3)
    made = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]> g (float[batch, 4, 6, 5] x) => (float[batch, 8] y) {
            a = Conv<pads = [1, 1, 1, 1]>(x, w) b = Relu(a) c = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(b)
            d = GlobalAveragePool(c) y = Flatten(d)
        }"""
    )
    made.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    module = trivium.from_onnx(made)
    assert module.main.function_type.inputs[0].shape == (None, 4, 6, 5)
    run = trivium.compile(module)
    for batch in (1, 3):
        x = floats(batch, 4, 6, 5)
        expected = ReferenceEvaluator(made).run(None, {"x": x})[0]
        np.testing.assert_allclose(run(x)[0], expected, rtol=1e-5, atol=1e-5)


def test_shapes_may_be_given_in_part() -> None:
    made = model("y = Relu(x0)", X)
    assert trivium.from_onnx(made, shapes={"x0": (None, 3, 4)}).main.function_type.inputs[0].shape == (None, 3, 4)
    assert trivium.from_onnx(made, shapes={"x0": (2, 3, 4)}).main.function_type.inputs[0].shape == (2, 3, 4)
