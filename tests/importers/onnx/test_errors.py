"""Bad models: each raises one clear error, with the node."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import trivium
from tests.importers.onnx.checks import by_runtime

pytestmark = pytest.mark.onnx


def model(body: str, inputs: str = "float[2] x", result: str = "float[2] y", opset: int = 17) -> Any:
    text = f'<ir_version: 9, opset_import: ["" : {opset}]> g ({inputs}) => ({result}) {{ {body} }}'
    return onnx.parser.parse_model(text)


def test_all_unsupported_ops_are_listed_at_once() -> None:
    with pytest.raises(trivium.UnsupportedOpError) as caught:
        trivium.from_onnx(model("a = Fly(x) b = Swim(a) c = Fly(b) y = Relu(c)"))
    assert [(op.name, op.count) for op in caught.value.ops] == [("Fly", 2), ("Swim", 1)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "the model is a int, expected a path or a ModelProto"),
        ("nowhere.onnx", "cannot read nowhere.onnx: No such file"),
        (model("y = Gelu(x)", opset=19), r"(?s)1 op has no rule.*Gelu"),
        (model("y = Upsample<scales = [2.0]>(x)", opset=10), r"(?s)1 op has no rule.*Upsample"),
        (model("y = Relu(x)", opset=0), r"(?s)1 op has no rule.*Relu"),
        (model("y = Add(x, z)"), r"(?s)tensor 'z' is used before.*in: +y = Add\(x, z\)"),
        (
            model("y = Add(x, z)", inputs="float[2] x, float[3] z"),
            r"(?s)\[2\], \[3\] cannot be broadcast.*in: +y = Add",
        ),
        (
            model("y = Squeeze(x)", inputs="float[N, 1] x"),
            r"Squeeze: argument axes has nothing for tensor<\?x1xf32>, expected axes",
        ),
        (model("y, i = Relu(x)"), r"Relu: output 1 \(i\) is not supported"),
    ],
)
def test_wrong_models_are_refused(given: Any, message: str) -> None:
    with pytest.raises(trivium.Error, match=message):
        trivium.from_onnx(given)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": (3, 3)}, r"shapes gives input x \(3, 3\), expected a shape like \['N', 2\]"),
        ({"x": (3,)}, "expected a shape like"),
        ({"x": (3, 2), "z": (1,)}, "shapes has z, expected inputs: x"),
        ({"x": (None, 3)}, "expected a shape like"),
        ({"x": ("N", 2)}, r"shapes gives input x \('N', 2\), expected numbers, or None for a dynamic size"),
        ({"x": 3}, "shapes gives input x 3, expected a sequence of numbers"),
        ({"x": (-1, 2)}, r"shapes gives input x \(-1, 2\), expected no negative extents"),
        ({3: (3, 2)}, "shapes has 3, expected inputs: x"),
        ([(3, 2)], "shapes is a list, expected a dictionary from inputs to shapes"),
    ],
)
def test_given_shapes_must_fit(shapes: Any, message: str) -> None:
    with pytest.raises(trivium.Error, match=message):
        trivium.from_onnx(model("y = Relu(x)", inputs="float[N,2] x", result="float[N,2] y"), shapes=shapes)


@pytest.mark.parametrize("declared", ["float[3]", "float[2,1]", "float[N,2]"])
def test_wrong_shapes_of_results_are_only_reported(declared: str, caplog: pytest.LogCaptureFixture) -> None:
    """As ONNX Runtime does: the nodes say what is computed."""
    given, x = model("y = Relu(x)", result=f"{declared} y"), np.float32([-1, 2])
    imported = trivium.from_onnx(given)
    assert "tensor 'y' has type tensor<2xf32>, the model declares FLOAT and [" in caplog.text
    np.testing.assert_array_equal(trivium.compile(imported)(x)[0], by_runtime(given, [x])[0])


def test_declared_elements_without_a_type_are_refused() -> None:
    given = model("z = Relu(x) y = Neg(z)")
    declared = given.graph.value_info.add()
    declared.name, declared.type.tensor_type.elem_type = "z", 99
    with pytest.raises(trivium.Error, match="the ONNX element type 99 has no tensor type"):
        trivium.from_onnx(given)


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    content = model("c = Constant<value = float[2] {1, 2}>() y = Add(x, c)").SerializeToString()
    path = tmp_path / "model.onnx"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(trivium.Error, match=r"model\.onnx is not an ONNX model|the model names no version"):
            trivium.load(path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (model("y = Concat<axis=1>(x, x)"), r"(?s)axis has 1, expected a number from -1 to 0.*in: +y = Concat"),
        (model("y = Concat<axis=-2>(x, x)"), "axis has -2, expected a number from -1 to 0"),
        (model("y = Softmax<axis=3>(x)"), "axis has 3, expected a number from -1 to 0"),
        (model("y = Relu(x) y = Neg(x)"), r"(?s)tensor 'y' is defined twice.*in: +y = Neg\(x\)"),
        (model("x = Relu(x) y = Neg(x)"), "tensor 'x' is defined twice, expected once"),
        (model("y = Relu(x)", result="int64[2] y"), r"tensor 'y' has type tensor<2xf32>, the model declares INT64"),
        (model("y = Relu(x)", opset=1000), r"version 1000 of the ONNX operator set, expected at most \d+, the newest"),
        (model("y = Relu(x)", "float[2] x, float[2] x"), "the model has the inputs x, x, expected no name twice"),
        (model("y = Sum()"), r"input 0 \(data_0\) of Sum is omitted, expected a value"),
        (
            model("y = MaxPool<kernel_shape = [2, 2]>(x)", "float[1,1,4] x"),
            "windows have 2 dimensions, expected 1",
        ),
        (model('y = Einsum<equation = "i->k">(x)'), "Einsum: Equation output contains a label missing from the inputs"),
        (
            model("k = Constant<value_floats = [2.0]>() y = Reshape(x, k)"),
            r"input 1 \(shape\) of Reshape has .*, expected int",
        ),
        (model("y = Gemm(x)"), r"input 1 \(B\) of Gemm is omitted, expected a value"),
        (model("y = Softmax(x)", "complex64[2] x", "complex64[2] y"), r"Softmax has .*complex<f32>>, expected float"),
        (model("y = Add(x, z)", "float[2] x, double[2] z"), r"input 1 \(B\) of Add has .*, expected f32 as an input"),
        (model("y = Relu(x, x)"), "Relu has 2 inputs, expected at most 1"),
        (model("y = Concat<axis = 1.5>(x)"), "attribute axis of Concat has type FLOAT, expected INT"),
        (model("y = Concat(x)"), "Concat has no attribute axis"),
        (model("k = Constant<value_ints = [0, -1]>() y = ReduceSum(x, k)"), "expected no axis twice"),
        (model("y = Flatten<axis = 2>(x)"), "axis has 2, expected a number from -1 to 1"),
        (model("k = Constant<value_ints = [3]>() y = Split(x, k)"), "split has the sum 3, expected the extent 2"),
        (
            model("k = Constant<value_ints = [0, 1]>() i = Constant<value_ints = [0]>() y = Slice(x, i, i, k)"),
            "axes has 2 entries, expected 1, as many as starts",
        ),
        (model("k = Constant<value_ints = [1]>() y = Pad(x, k)"), "pads has 1 entries, expected 2"),
        (
            model("y = Conv<kernel_shape = [2]>(x, w)", "float[1,1,4] x, float[1,1,3] w"),
            r"kernel_shape has \[2\], expected \[3\]",
        ),
        (
            model("y = LSTM<hidden_size = 2>(x, w, r)", "float[3,1,4] x, float[2,8,4] w, float[2,8,2] r"),
            r"W of a forward layer has type tensor<2x8x4xf32>, expected the shape \[1, 8, 4\]",
        ),
        (
            model("y = NegativeLogLikelihoodLoss(x, t)", "float[3,5,2] x, int64[3,1] t"),
            r"target has type tensor<3x1xi64>, expected the shape \[3, 2\]",
        ),
        (
            model("k = Constant<value_ints = [2, 2]>() y = Tile(x, k)"),
            "repeats has 2 entries, expected 1, as many as dimensions",
        ),
        (model("y = Det(x)", "float[2,3] x"), "X has matrices of 2 rows and 3 columns, expected square ones"),
        (model("y = DFT(x)", "float[1,4,3] x"), "input has a last dimension of 3, expected 1 or 2"),
    ],
)
def test_what_the_checker_of_onnx_finds_is_refused(given: Any, message: str) -> None:
    with pytest.raises(trivium.Error, match=message):
        trivium.from_onnx(given)


def test_operators_that_changed_after_the_newest_known_set_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from trivium.importers.onnx import graph

    newest = onnx.defs.onnx_opset_version()
    monkeypatch.setattr(graph, "NEWEST", onnx.defs.get_schema("Cast").since_version - 1)
    assert trivium.from_onnx(model("y = Relu(x)", opset=newest))
    with pytest.raises(trivium.UnsupportedOpError, match="Cast"):
        trivium.from_onnx(model("y = Cast<to=1>(x)", opset=newest))


def test_graphs_inside_nodes_do_not_meet_where_threads_import_at_once() -> None:
    """Each importer reads the bodies of its own model."""

    def looped(number: int) -> Any:
        body = f"""
            n = Constant<value = int64 {{3}}>()
            y = Loop(n, , x) <body = b (int64 i, bool go, float[2] v) => (bool again, float[2] w) {{
                again = Identity(go) k = Constant<value = float {{{number}}}>() w = Add(v, k) }}>
        """
        return model(body)

    models = [looped(number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for modules in pool.map(lambda made: [trivium.from_onnx(made) for _ in range(10)], models):
            assert len(modules) == 10
        modules = list(pool.map(trivium.from_onnx, models * 5))
    for index, module in enumerate(modules):
        assert trivium.evaluate(module, np.zeros(2, np.float32))[0].tolist() == [3.0 * (index % 8)] * 2


def test_text_and_large_numbers_of_attributes_are_read_with_care() -> None:
    changed = model('y = BitShift<direction = "LEFT">(x, x)', "uint8[2] x", "uint8[2] y")
    changed.graph.node[0].attribute[0].s = b"\xff"
    with pytest.raises(trivium.Error, match=r"attribute direction has b'.xff', expected text in UTF-8"):
        trivium.from_onnx(changed)
    for number in (1 << 31, -(1 << 63)):  # which end the process in ONNX's own inference of shapes
        with pytest.raises(trivium.Error, match="axis has"):
            trivium.from_onnx(model(f"y = LayerNormalization<axis = {number}>(x, x)"))


def test_huge_numbers_take_no_time() -> None:
    text = """y = TfIdfVectorizer<max_gram_length = 2, min_gram_length = 2, max_skip_count = 2147483647, mode = "TF",
        ngram_counts = [0, 1], ngram_indexes = [0, 1], pool_int64s = [5, 1, 2]>(x)"""
    assert trivium.from_onnx(model(text, "int64[2] x", "float[2] y"))
    body = "b (float v) => (float w) { w = Neg(v) }"
    with pytest.raises(trivium.Error, match="num_scan_inputs has 9999999999, expected a number from 1 to 1"):
        trivium.from_onnx(model(f"y = Scan<num_scan_inputs = 9999999999, body = {body}>(x)"))
