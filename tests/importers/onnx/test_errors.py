"""Bad models: each gets one clear error, with the node."""

from pathlib import Path
from typing import Any

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
        (model("y = Relu(x)", opset=7), "the model has ONNX operator set 7, expected at least 13"),
        (model("y = Add(x, z)"), r"(?s)tensor 'z' is used before.*in: +y = Add\(x, z\)"),
        (model("y = Add(x, z)", inputs="float[2] x, float[3] z"), r"(?s)Add: .*in: +y = Add\(x, z\)"),
        (model("y = Relu(x)", inputs="float[N] x"), r"input x has shape \['N'\], expected numbers"),
        (model("y, i = MaxPool<kernel_shape=[1]>(x)", inputs="float[1,1,4] x"), "output"),
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
    ],
)
def test_given_shapes_must_fit(shapes: dict, message: str) -> None:
    with pytest.raises(trivium.Error, match=message):
        trivium.from_onnx(model("y = Relu(x)", inputs="float[N,2] x", result="float[N,2] y"), shapes=shapes)


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    content = model("c = Constant<value = float[2] {1, 2}>() y = Add(x, c)").SerializeToString()
    path = tmp_path / "model.onnx"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(trivium.Error, match=r"model\.onnx is no ONNX model|the model names no version"):
            trivium.load(path)
