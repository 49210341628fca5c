"""SavedModels from others: read as data, so that no initializer and no op of theirs runs; and damaged ones."""

import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")


import trivium
from tests.importers.tensorflow.saved_models import Edit, X, edit, load, refuse, roles
from tests.limits import bounded

pytestmark = pytest.mark.tensorflow

v1 = tf.compat.v1


# Supported contents


@pytest.mark.parametrize("parameters", ["constants", "arguments"])
def test_a_program_is_what_tensorflow_loads(genuine: Path, parameters: str) -> None:
    assert str(load(genuine, parameters=parameters)) == str(load(genuine, trust=True, parameters=parameters))


@pytest.mark.parametrize("sign", [1, -1])
def test_values_come_from_the_checkpoint(genuine: Path, sign: int) -> None:
    x = np.abs(X) * sign
    n, y, count = trivium.evaluate(load(genuine), np.int32(5), x)
    assert n == count == 6
    np.testing.assert_allclose(y, x * 2 + np.arange(4) if sign > 0 else -x * 3)


class Rows(tf.Module):
    """A model whose loops have lists, of elements of any shape."""

    @tf.function(input_signature=[tf.TensorSpec((2, 4), name="x")])
    def __call__(self, x):
        made = tf.TensorArray(tf.float32, size=2, infer_shape=False)
        for i in tf.range(2):
            made = made.write(i, x[i] * 2)
        return tf.map_fn(lambda row: row * tf.reduce_sum(row), x) + made.stack()


def test_lists_of_elements_of_any_shape(tmp_path: Path) -> None:
    model = Rows()
    tf.saved_model.save(model, str(tmp_path))
    definition = model.__call__.get_concrete_function().graph.as_graph_def()
    for program in (trivium.from_tensorflow(tmp_path), trivium.from_tensorflow(definition, X)):
        *_, got = trivium.evaluate(program, X)
        np.testing.assert_allclose(got, model(X).numpy(), rtol=1e-6)


def test_models_of_tensorflow_1(older: Path) -> None:
    double, y = trivium.evaluate(load(older), X)
    np.testing.assert_allclose(double, X * 2)
    np.testing.assert_allclose(y, X * 2 + 1)
    for parameters in ("constants", "arguments"):
        assert roles(load(older, parameters=parameters)) == roles(load(older, trust=True, parameters=parameters))


def test_the_served_signature_is_found(folder: Path) -> None:
    saved = tf.Module()
    saved.f = tf.function(lambda x: {"y": x * 2}, input_signature=[tf.TensorSpec((2, 4))])
    saved.g = tf.function(lambda x: {"y": x * 3}, input_signature=[tf.TensorSpec((2, 4))])
    tf.saved_model.save(saved, str(folder), signatures={"one": saved.f, "other": saved.g})
    refuse(folder, "has the signatures one, other, expected signature= with one of them, or serving_default")
    for trust in (False, True):
        for name, factor in (("one", 2), ("other", 3)):
            results = trivium.evaluate(load(folder, signature=name, trust=trust), X)
            np.testing.assert_array_equal(results[0], X * factor)
        with pytest.raises(trivium.Error, match="has the signatures one, other, expected third"):
            load(folder, signature="third", trust=trust)
    with pytest.raises(trivium.Error, match="expected a SavedModel's folder"):
        trivium.from_tensorflow(saved.f, X, signature="one")
    tf.saved_model.save(saved, str(folder), signatures={"one": saved.f, "serving_default": saved.g})
    np.testing.assert_array_equal(trivium.evaluate(load(folder), X)[0], X * 3)


# Code in the model


def add_write(nodes: Any, marker: Path) -> str:
    """Adds nodes that write a file; returns the name of the last one."""
    for name, text in (("hostile/name", str(marker)), ("hostile/text", "it ran")):
        node = nodes.add(name=name, op="Const")
        node.attr["dtype"].type = tf.string.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(text))
    nodes.add(name="hostile/write", op="WriteFile", input=["hostile/name", "hostile/text"])
    return "hostile/write"


def test_initializers_do_not_run(older: Path, tmp_path: Path, marker: Path) -> None:
    def hostile(meta: Any) -> None:
        write = add_write(meta.graph_def.node, marker)
        meta.graph_def.node.add(name="hostile/init", op="NoOp", input=[f"^{write}"])
        meta.collection_def["saved_model_main_op"].node_list.value[:] = ["hostile/init"]

    folder = Path(shutil.copytree(older, tmp_path / "older"))
    edit(folder, hostile)
    assert str(load(folder)) == str(load(older))
    assert not marker.exists()
    load(folder, trust=True)
    assert marker.exists()


class Hostile(tf.saved_model.experimental.TrackableResource):
    """A resource that writes a file when it is created."""

    def __init__(self, marker: Path):
        super().__init__()
        self.marker = str(marker)

    @tf.function
    def _create_resource(self):
        tf.io.write_file(self.marker, "it ran")
        return tf.raw_ops.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.float32)

    @tf.function
    def _initialize(self):
        tf.io.write_file(self.marker, "it ran")
        return tf.constant(1)


def test_resources_are_not_made(tmp_path: Path, marker: Path) -> None:
    saved = tf.Module()
    saved.resource = Hostile(marker)
    saved.f = tf.function(lambda x: {"y": x * 2}, [tf.TensorSpec((2, 4))])
    tf.saved_model.save(saved, str(tmp_path / "resource"), signatures=saved.f)
    marker.unlink(missing_ok=True)
    np.testing.assert_array_equal(trivium.evaluate(load(tmp_path / "resource"), X)[0], X * 2)
    assert not marker.exists()
    load(tmp_path / "resource", trust=True)
    assert marker.exists()


def functions_of(meta: Any, part: str) -> list[Any]:
    return [x for x in meta.graph_def.library.function if part in x.signature.name]


def test_ops_that_reach_out_are_listed_and_not_run(folder: Path, marker: Path) -> None:
    def hostile(meta: Any) -> None:
        for function in functions_of(meta, "inner"):
            function.control_ret["hostile"] = add_write(function.node_def, marker)
            function.signature.control_output.append("hostile")

    edit(folder, hostile)
    with pytest.raises(trivium.UnsupportedOpError) as caught:
        load(folder)
    assert [op.name for op in caught.value.ops] == ["WriteFile"]
    assert not marker.exists()


def test_shapes_from_files_are_not_read(folder: Path, tmp_path: Path) -> None:
    """TensorFlow reads a file when it builds a graph whose shapes depend on it."""
    secret = tmp_path / "secret"
    secret.write_bytes(np.array([4, 2], np.int32).tobytes())
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, (2, 4), name="x")
        y = tf.reshape(x, tf.io.decode_raw(tf.io.read_file(str(secret)), tf.int32))
    assert y.shape == (4, 2), "TensorFlow no longer does, and the order of the checks matters less"
    for given in (graph.as_graph_def(), folder):
        if given is folder:
            edit(folder, lambda meta: _reshape_by_file(meta, secret))
        with pytest.raises(trivium.UnsupportedOpError) as caught:
            trivium.from_tensorflow(given, X)
        assert {op.name for op in caught.value.ops} == {"ReadFile", "DecodeRaw"}


def _reshape_by_file(meta: Any, secret: Path) -> None:
    inner = next(x for x in meta.graph_def.library.function if any(n.op == "Reshape" for n in x.node_def))
    name = inner.node_def.add(name="hostile/name", op="Const")
    name.attr["dtype"].type = tf.string.as_datatype_enum
    name.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(str(secret)))
    inner.node_def.add(name="hostile/read", op="ReadFile", input=["hostile/name:output:0"])
    decode = inner.node_def.add(name="hostile/decode", op="DecodeRaw", input=["hostile/read:contents:0"])
    decode.attr["out_type"].type = tf.int32.as_datatype_enum
    reshape = next(n for n in inner.node_def if n.op == "Reshape")
    reshape.input[1] = "hostile/decode:output:0"


def test_functions_of_python_are_not_called(tmp_path: Path, marker: Path) -> None:
    saved = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec((2, 4))])
    def touch(x: Any) -> Any:
        return {"y": tf.py_function(lambda x: marker.touch() or x, [x], tf.float32)}

    saved.f = touch
    tf.saved_model.save(saved, str(tmp_path / "python"), signatures=touch)
    with pytest.raises(trivium.UnsupportedOpError, match="EagerPyFunc"):
        load(tmp_path / "python")
    assert not marker.exists()


def test_tables_are_refused_by_name(tmp_path: Path) -> None:
    saved = tf.Module()
    names = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0])
    saved.table = tf.lookup.StaticHashTable(names, 0.0)
    saved.f = tf.function(lambda x: {"y": x + saved.table.lookup(tf.constant("a"))}, [tf.TensorSpec((2, 4))])
    tf.saved_model.save(saved, str(tmp_path / "table"), signatures=saved.f)
    with pytest.raises(trivium.UnsupportedOpError, match="LookupTableFindV2"):
        load(tmp_path / "table")


# Recursive functions


def calling(folder: Path, calls: dict[str, list[str]]) -> None:
    """Makes the signature call `f0`; each function calls the named ones, one after the other."""

    def change(meta: Any) -> None:
        library = meta.graph_def.library
        wrapper = functions_of(meta, "signature_wrapper")[0]
        template = next(x for x in library.function if any(n.op == "MatMul" for n in x.node_def))
        del template.node_def[:]
        wrapped = next(n for n in wrapper.node_def if n.op.endswith("PartitionedCall"))
        outer = next(x for x in library.function if x.signature.name == wrapped.attr["f"].func.name)
        inner = outer.node_def.add(name="hostile", op="PartitionedCall", input=[outer.signature.input_arg[0].name])
        _call(inner, "f0")
        outer.control_ret["hostile"] = "hostile"
        outer.signature.control_output.append("hostile")
        for name, callees in calls.items():
            function = library.function.add()
            function.signature.name = name
            function.signature.input_arg.add(name="x", type=tf.float32.as_datatype_enum)
            function.signature.output_arg.add(name="y", type=tf.float32.as_datatype_enum)
            source = "x"
            for index, callee in enumerate(callees):
                node = function.node_def.add(name=f"call{index}", op="PartitionedCall", input=[source])
                _call(node, callee)
                source = f"call{index}:output:0"
            function.ret["y"] = source

    edit(folder, change)


def _call(node: Any, name: str) -> None:
    node.attr["f"].func.name = name
    for attribute in ("Tin", "Tout"):
        node.attr[attribute].list.type.append(tf.float32.as_datatype_enum)


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ({"f0": ["f0"]}, "function f0 calls itself: f0 calls f0"),
        ({"f0": ["f1"], "f1": ["f2"], "f2": ["f1"]}, "function f1 calls itself: f1 calls f2 calls f1"),
        ({f"f{i}": [f"f{i + 1}"] * 2 for i in range(30)} | {"f30": []}, "nodes when its functions are inlined"),
        ({f"f{i}": [f"f{i + 1}"] for i in range(999)} | {"f999": []}, "is called inside 40 others"),
        ({"f0": ["nowhere"]}, "function nowhere is called, but is not in the graph's library"),
    ],
)
def test_functions_without_end(folder: Path, calls: dict[str, list[str]], message: str) -> None:
    calling(folder, calls)
    refuse(folder, message)


# Damaged models


def objects_of(meta: Any) -> Any:
    return meta.object_graph_def.nodes


def concrete_of(meta: Any) -> Any:
    functions = meta.object_graph_def.concrete_functions
    return functions[next(name for name in functions if "signature_wrapper" in name)]


def variable_of(meta: Any) -> Any:
    found = (node.variable for node in objects_of(meta) if node.WhichOneof("kind") == "variable")
    return next(variable for variable in found if variable.name == "w")


def constant_of(meta: Any) -> Any:
    return next(node for node in meta.graph_def.node if node.op == "Const" and node.attr["dtype"].type == 1)


def widen(meta: Any) -> None:
    constant_of(meta).attr["value"].tensor.tensor_shape.dim[0].size = 1 << 40


def negate(meta: Any) -> None:
    constant_of(meta).attr["value"].tensor.tensor_shape.dim[0].size = -3


def grow(meta: Any) -> None:
    variable_of(meta).shape.dim[0].size = 1 << 40


def cycle(meta: Any) -> None:
    for function in functions_of(meta, "inner"):
        first = next(node for node in function.node_def if node.op == "MatMul")
        last = next(node for node in function.node_def if node.op == "AddV2")
        first.input[0] = f"{last.name}:z:0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda meta: meta.object_graph_def.Clear(), "node|signature|input|variable"),
        (lambda meta: meta.graph_def.Clear(), "is called, but is not in the graph's library"),
        (lambda meta: objects_of(meta)[0].children.pop(), "has the signatures none"),
        (lambda meta: meta.object_graph_def.concrete_functions.clear(), "has no function"),
        (lambda meta: concrete_of(meta).bound_inputs.append(9999), "cannot read .* as a SavedModel"),
        (lambda meta: concrete_of(meta).bound_inputs.append(-7), "as a SavedModel|expected|inputs"),
        (lambda meta: concrete_of(meta).bound_inputs.extend([1] * 50), "expected the 55 that it captures|expected"),
        (lambda meta: concrete_of(meta).bound_inputs.pop(), "variable|dynamic|expected"),
        (lambda meta: concrete_of(meta).bound_inputs.reverse(), "the captured input .* is .*, expected"),
        (lambda meta: constant_of(meta).ClearField("attr"), "cannot read .* as a SavedModel|constant"),
        (grow, "has float32 .4, 4. for the variable .*, expected float32 .1099511627776, 4."),
        (lambda meta: setattr(variable_of(meta), "dtype", 3), "has float32 .4, 4. for the variable"),
        (lambda meta: setattr(variable_of(meta), "dtype", 7), "dtype string has no"),
        (widen, "constant .* has shape .1099511627776., of which the file has only"),
        (negate, "expected no negative extents"),
        (cycle, "TensorFlow cannot build function __inference_inner"),
    ],
)
def test_damaged_graphs_are_refused(folder: Path, change: Edit, message: str) -> None:
    edit(folder, change)
    refuse(folder, message)


def test_truncated_graphs_are_refused(folder: Path) -> None:
    path = folder / "saved_model.pb"
    whole = path.read_bytes()
    for length in [*range(0, 60, 7), *range(60, len(whole), len(whole) // 12)]:
        path.write_bytes(whole[:length])
        refuse(folder, "")


def test_scrambled_graphs_give_errors(folder: Path) -> None:
    """Mutations raise an Error, or are still programs."""
    path = folder / "saved_model.pb"
    whole, generator = path.read_bytes(), random.Random(0)
    for _ in range(40):
        content = bytearray(whole)
        for _ in range(generator.choice([1, 1, 4])):
            content[generator.randrange(len(content))] = generator.randrange(256)
        path.write_bytes(content)
        try:
            with bounded():
                load(folder)
        except trivium.Error:
            continue
