"""Bad models: each raises one clear error, with the node."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import trivium

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
        (model("y = Add(x, z)", inputs="float[2] x, float[3] z"), r"(?s)Add: .*in: +y = Add\(x, z\)"),
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
        (
            model("y = Relu(x)", result="float[3] y"),
            r"tensor 'y' has type tensor<2xf32>, the model declares FLOAT and \[3\]",
        ),
        (model("y = Relu(x)", result="int64[2] y"), r"tensor 'y' has type tensor<2xf32>, the model declares INT64"),
        (model("y = Relu(x)", result="float[2,1] y"), r"the model declares FLOAT and \[2, 1\]"),
        (model("y = Relu(x)", opset=1000), r"(?s)1 op has no rule.*Relu"),
        (model("y = Relu(x)", "float[2] x, float[2] x"), "the model has the inputs x, x, expected no name twice"),
        (model("y = Sum()"), r"Sum: Node with schema.* has input size 0 not in range"),
        (
            model("y = MaxPool<kernel_shape = [2, 2]>(x)", "float[1,1,4] x"),
            "MaxPool: Attribute kernel_shape has incorr",
        ),
        (model('y = Einsum<equation = "i->k">(x)'), "Einsum: Equation output contains a label missing from the inputs"),
        (
            model("k = Constant<value_ints = [2, 2]>() y = Tile(x, k)"),
            "Tile: 'Repeats' input has incorrect number of values",
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
