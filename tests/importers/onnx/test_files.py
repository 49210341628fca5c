"""ONNX files from others: external data elsewhere or missing, recursive functions, damaged files."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import trivium
from tests.limits import bounded
from trivium.ir.ops import Constant

pytestmark = pytest.mark.onnx

WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)
FILE = "weights.bin"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model with external data, in a separate folder."""
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(WEIGHTS.tobytes())
    text = '<ir_version: 9, opset_import: ["" : 17]> g (float[2,3] x) => (float[2,3] y) { y = Add(x, w) }'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(WEIGHTS, "w"))
    options = {"save_as_external_data": True, "location": FILE, "size_threshold": 0}
    onnx.save(model, str(folder / "model.onnx"), **options)
    return folder / "model.onnx"


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    model = onnx.load(str(path), load_external_data=False)
    change(model)
    path.write_bytes(model.SerializeToString())


def external(**fields: Any) -> Callable[[Any], None]:
    """Changes a model's description of its external data; `None` leaves a field out."""

    def change(model: Any) -> None:
        tensor = model.graph.initializer[0]
        have = {entry.key: entry.value for entry in tensor.external_data} | fields
        del tensor.external_data[:]
        for key, value in have.items():
            if value is not None:
                tensor.external_data.add(key=key, value=str(value))

    return change


def refuse(path: Path, message: str) -> None:
    with bounded(), pytest.raises(trivium.Error, match=f"(?s){message}"):
        trivium.load(path)


def test_external_data_is_read(path: Path) -> None:
    np.testing.assert_array_equal(trivium.evaluate(trivium.load(path), WEIGHTS)[0], WEIGHTS * 2)
    edit(path, external(length=None, offset=None))
    np.testing.assert_array_equal(trivium.evaluate(trivium.load(path), WEIGHTS)[0], WEIGHTS * 2)


def test_external_data_of_constants_is_read(path: Path) -> None:
    def move(model: Any) -> None:
        node = model.graph.node.add(op_type="Constant", output=["w"])
        attribute = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
        attribute.t.CopyFrom(model.graph.initializer[0])
        nodes = [model.graph.node[1], model.graph.node[0]]
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del model.graph.node[:], model.graph.initializer[:]
        model.graph.node.extend(copies)

    edit(path, move)
    np.testing.assert_array_equal(trivium.evaluate(trivium.load(path), WEIGHTS)[0], WEIGHTS * 2)


def constants(module: trivium.Module) -> list[np.ndarray]:
    return [op.value.array for op in module.main.walk() if isinstance(op, Constant)]


def test_external_data_is_mapped(path: Path) -> None:
    (weights,) = constants(trivium.load(path))
    base = weights
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    np.testing.assert_array_equal(weights, WEIGHTS)


def test_external_data_of_more_than_two_gigabytes(path: Path) -> None:
    """It is not read: the file system stores next to nothing of it."""
    rows, size = (1 << 29) // 3 + 7, 4

    def change(model: Any) -> None:
        external(length=None)(model)
        model.graph.initializer[0].dims[:] = [rows, 3]
        model.graph.node[0].op_type = "Gather"
        model.graph.node[0].input[:] = ["w", "x"]
        model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
        model.graph.output[0].ClearField("type")

    edit(path, change)
    os.truncate(path.parent / FILE, rows * 3 * size)
    assert rows * 3 * size > 2 << 30
    with bounded():
        module = trivium.load(path)
    weights = max(constants(module), key=lambda array: array.nbytes)
    np.testing.assert_array_equal(weights[:2], WEIGHTS)
    assert weights.shape == (rows, 3)
    assert not weights[-1].any()


def test_models_in_memory_have_a_folder(path: Path) -> None:
    proto = onnx.load(str(path), load_external_data=False)
    module = trivium.from_onnx(proto, folder=path.parent)
    np.testing.assert_array_equal(trivium.evaluate(module, WEIGHTS)[0], WEIGHTS * 2)
    elsewhere = path.rename(path.parent.parent / "model.onnx")
    module = trivium.from_onnx(elsewhere, folder=path.parent)
    np.testing.assert_array_equal(trivium.evaluate(module, WEIGHTS)[0], WEIGHTS * 2)
    with pytest.raises(trivium.Error, match="its elements are in a file, expected `folder=` beside the ModelProto"):
        trivium.from_onnx(proto)
    with pytest.raises(trivium.Error, match="the folder of external data is nowhere, expected one that exists"):
        trivium.from_onnx(proto, folder="nowhere")


@pytest.mark.parametrize("kind", ["INT4", "UINT2", "BFLOAT16", "FLOAT8E4M3FN", "BOOL"])
def test_external_data_of_other_types(path: Path, kind: str) -> None:
    code = onnx.TensorProto.DataType.Value(kind)
    values = np.array([1, 0, 1, 1, 0, 1], onnx.helper.tensor_dtype_to_np_dtype(code))
    data = onnx.numpy_helper.from_array(values).raw_data
    (path.parent / FILE).write_bytes(b"........" + data)

    def change(model: Any) -> None:
        external(offset=8, length=len(data))(model)
        model.graph.initializer[0].data_type = code
        model.graph.node[0].op_type = "Cast"
        model.graph.node[0].input[:] = ["w"]
        model.graph.node[0].attribute.add(name="to", type=onnx.AttributeProto.INT, i=1)

    edit(path, change)
    np.testing.assert_array_equal(trivium.evaluate(trivium.load(path), WEIGHTS)[0].ravel(), values.astype(np.float32))


@pytest.mark.parametrize("location", ["../secret.bin", "./../secret.bin", "inner/../../secret.bin", "", ".", "a\0b"])
def test_external_data_outside_of_the_folder(path: Path, location: str) -> None:
    edit(path, external(location=location))
    refuse(path, "tensor w cannot be read|cannot read")


def test_external_data_by_absolute_path(path: Path) -> None:
    edit(path, external(location=path.parent.parent / "secret.bin"))
    refuse(path, "tensor w cannot be read")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_external_data_reached_through_links(path: Path, link: Callable[..., None]) -> None:
    (path.parent / FILE).unlink()
    link(path.parent.parent / "secret.bin", path.parent / FILE)
    refuse(path, "tensor w cannot be read")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"length": 1 << 40}, "cannot be read"),
        ({"length": -1}, "non-negative"),
        ({"length": 12}, "cannot be read"),
        ({"offset": 1 << 40}, "cannot be read"),
        ({"offset": -8}, "non-negative"),
        ({"offset": 8, "length": None}, "cannot be read"),
        ({"length": "many"}, "invalid literal"),
        ({"location": "nowhere.bin"}, "No such file"),
    ],
)
def test_external_data_that_is_not_there(path: Path, fields: dict, message: str) -> None:
    edit(path, external(**fields))
    refuse(path, f"tensor w cannot be read.*{message}|{message}")


def test_external_data_of_a_file_that_is_far_larger(path: Path) -> None:
    os.truncate(path.parent / FILE, 1 << 40)  # the file system stores next to nothing of it
    edit(path, external(length=None))
    refuse(path, "bytes of external data, expected 24")


def test_pipes_are_not_waited_for(path: Path) -> None:
    (path.parent / FILE).unlink()
    os.mkfifo(path.parent / FILE)
    refuse(path, "it is not a regular file")
    os.mkfifo(pipe := path.parent / "pipe.onnx")
    refuse(pipe, "neither a file nor a folder")


@pytest.mark.parametrize("dims", [[-1, 3], [-2, -3], [1 << 40, 1 << 20], [1 << 62, 4], [2, 2]])
@pytest.mark.parametrize("kind", ["FLOAT", "INT4", "UINT2", "BFLOAT16", "STRING"])
def test_shapes_that_the_bytes_do_not_have(path: Path, dims: list[int], kind: str) -> None:
    def change(model: Any) -> None:
        tensor = model.graph.initializer[0]
        tensor.Clear()
        tensor.name, tensor.data_type = "w", onnx.TensorProto.DataType.Value(kind)
        tensor.dims.extend(dims)
        tensor.raw_data = WEIGHTS.tobytes()[:20]

    edit(path, change)
    refuse(path, "")


def test_inputs_of_negative_extents(path: Path) -> None:
    edit(path, lambda model: setattr(model.graph.input[0].type.tensor_type.shape.dim[0], "dim_value", -2))
    refuse(path, r"input x has shape \[-2, 3\], expected no negative extents")


def test_cycles_are_refused(path: Path) -> None:
    def change(model: Any) -> None:
        model.graph.node[0].input[1] = "z"
        model.graph.node.add(op_type="Relu", input=["y"], output=["z"])

    edit(path, change)
    refuse(path, "tensor 'y' is used before any node or input defines it")


def calling(path: Path, calls: dict[str, list[str]]) -> None:
    """Makes the model call `f0`; each function calls the named ones, one after the other."""

    def change(model: Any) -> None:
        model.opset_import.add(domain="own", version=1)
        del model.graph.node[:]
        model.graph.node.add(op_type="f0", domain="own", input=["x"], output=["y"])
        for name, callees in calls.items():
            nodes, source = [], "x"
            for index, callee in enumerate(callees):
                nodes.append(onnx.helper.make_node(callee, [source], [f"v{index}"], domain="own"))
                source = f"v{index}"
            nodes.append(onnx.helper.make_node("Relu", [source], ["y"]))
            model.functions.append(onnx.helper.make_function("own", name, ["x"], ["y"], nodes, model.opset_import))

    edit(path, change)


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ({"f0": ["f0"]}, "function own::f0 calls itself: own::f0 calls own::f0"),
        ({"f0": ["f1"], "f1": ["f0"]}, "calls itself"),
        ({f"f{i}": [f"f{i + 1}"] * 2 for i in range(30)} | {"f30": []}, "nodes when its functions are inlined"),
        ({f"f{i}": [f"f{i + 1}"] for i in range(999)} | {"f999": []}, "is called inside 40 others"),
        ({"f0": ["nowhere"]}, "own::nowhere"),
    ],
)
def test_functions_without_end(path: Path, calls: dict[str, list[str]], message: str) -> None:
    calling(path, calls)
    refuse(path, message)


def test_functions_that_end_are_inlined(path: Path) -> None:
    calling(path, {f"f{i}": [f"f{i + 1}"] * 2 for i in range(8)} | {"f8": []})
    np.testing.assert_array_equal(trivium.evaluate(trivium.load(path), WEIGHTS - 2)[0], np.maximum(WEIGHTS - 2, 0))


@pytest.mark.filterwarnings("ignore:Ignoring unknown external data")
def test_scrambled_models_give_errors(path: Path) -> None:
    """Mutations raise an Error, or are still programs."""
    whole, generator = path.read_bytes(), random.Random(0)
    for _ in range(300):
        content = bytearray(whole)
        for _ in range(generator.choice([1, 1, 4])):
            content[generator.randrange(len(content))] = generator.randrange(256)
        path.write_bytes(content)
        try:
            trivium.load(path)
        except trivium.Error:
            continue
