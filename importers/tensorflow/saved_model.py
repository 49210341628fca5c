"""A SavedModel as data: the graph of its serving signature, from `saved_model.pb`, and the values of its variables,
from the checkpoint. No session, initializer or op of it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework import variable_pb2
from tensorflow.core.protobuf import saved_model_pb2, trackable_object_graph_pb2
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef
from tensorflow.core.protobuf.saved_object_graph_pb2 import SavedVariable
from tensorflow.python.framework.tensor_shape import as_shape

from trivium.importers.common import require_regular
from trivium.importers.tensorflow.checkpoint import OBJECTS, Checkpoint, Stored
from trivium.importers.tensorflow.context import NonTensor
from trivium.importers.tensorflow.definitions import (
    call_of,
    importable,
    library_of,
    library_only,
    node_name,
    require_bounded,
)
from trivium.importers.tensorflow.graph import LoadedGraph
from trivium.importers.tensorflow.state import Variable
from trivium.importers.tensorflow.types import element_type_of
from trivium.ir.errors import Error
from trivium.ir.types import TensorType

SERVING, INITIALIZER = "serving_default", "__saved_model_init_op"


@dataclass(frozen=True)
class Resource(NonTensor):
    """A captured object that is neither a variable nor a constant: a table, an asset."""

    kind: str


Captured = Variable | np.ndarray | Resource


@dataclass(frozen=True)
class Signature:
    """A graph, the inputs that a caller passes, the captured objects of the others, and the names of its outputs."""

    graph: tf.Graph
    arguments: list[tf.Tensor]
    captured: Sequence[Captured]
    outputs: list[str]


def read_signature(folder: str | Path, name: str | None = None) -> Signature:
    """Returns a signature of a SavedModel's folder: the one with a name, or the serving one."""
    folder = Path(folder)
    try:
        meta = _meta_graph(folder)
        if meta.object_graph_def.nodes:
            return _of_objects(meta, folder, name)
        return _of_graph(meta, folder, name)
    except Error:
        raise
    except Exception as error:  # various types: TensorFlow builds the graph
        raise Error(f"cannot read {folder} as a SavedModel: {type(error).__name__}: {error}") from error


def _meta_graph(folder: Path) -> MetaGraphDef:
    path = folder / "saved_model.pb"
    require_regular(path)
    try:
        saved = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    except OSError as error:
        raise Error(f"cannot read {folder} as a SavedModel: {error.strerror}: {path.name}") from None
    except DecodeError as error:
        raise Error(f"{path} is not a SavedModel, or is damaged: {error}") from None
    graphs = list(saved.meta_graphs)
    serving = [graph for graph in graphs if "serve" in graph.meta_info_def.tags]
    if len(graphs) != 1 and len(serving) != 1:
        raise Error(f"{folder} has {len(graphs)} graphs, expected one, or one with the tag serve")
    return graphs[0] if len(graphs) == 1 else serving[0]


def chosen(names: Iterable[str], folder: str | Path, wanted: str | None) -> str:
    """Returns the name of a signature: the one that is wanted, or the serving one."""
    names = [name for name in names if name != INITIALIZER]
    default = SERVING if SERVING in names or len(names) != 1 else names[0]
    name = default if wanted is None else wanted
    if name in names:
        return name
    have = ", ".join(sorted(names)) or "none"
    expected = f"signature= with one of them, or {SERVING}" if wanted is None else wanted
    raise Error(f"{folder} has the signatures {have}, expected {expected}")


# TensorFlow 2: a graph of objects, among them functions


def _of_objects(meta: MetaGraphDef, folder: Path, wanted: str | None) -> Signature:
    objects = meta.object_graph_def
    served, name = _signature_function(meta, folder, wanted)
    library = library_of(meta.graph_def)
    library.require_importable([call_of(name)], ["call"])
    stored = _Objects(meta, folder)
    captured = [stored.captured(index) for index in objects.concrete_functions[name].bound_inputs]
    graph = LoadedGraph(library_only(meta.graph_def, library.needed)).function(name)
    count = len(graph.inputs) - len(captured)
    if count < 0:
        raise Error(f"function {name} has {len(graph.inputs)} inputs, expected the {len(captured)} that it captures")
    for tensor, x in zip(graph.inputs[count:], captured, strict=True):
        _require_fitting(tensor, x)
    outputs = sorted(meta.signature_def[served].outputs)
    return Signature(graph, list(graph.inputs[:count]), captured, outputs)


def _signature_function(meta: MetaGraphDef, folder: Path, wanted: str | None) -> tuple[str, str]:
    """Returns the name of the signature, and of its function."""
    objects = meta.object_graph_def
    root = {child.local_name: child.node_id for child in objects.nodes[0].children}
    children = objects.nodes[root["signatures"]].children if "signatures" in root else ()
    found = {child.local_name: child.node_id for child in children}
    served = chosen(found, folder, wanted)
    name = objects.nodes[found[served]].bare_concrete_function.concrete_function_name
    if name not in objects.concrete_functions:
        raise Error(f"{folder} has no function {name!r}, expected that of the signature {served}")
    return served, name


def _require_fitting(tensor: tf.Tensor, x: Captured) -> None:
    """Rejects a captured input whose type is not the one that its function takes."""
    if isinstance(x, np.ndarray) and tf.as_dtype(x.dtype) == tensor.dtype and tensor.shape.is_compatible_with(x.shape):
        return
    if isinstance(x, Variable | Resource) and tensor.dtype == tf.resource:
        return
    have = f"an array {x.dtype} {x.shape}" if isinstance(x, np.ndarray) else f"a {type(x).__name__.lower()}"
    raise Error(f"the captured input {tensor.op.name} is {have}, expected {tensor.dtype.name} {tensor.shape}")


class _Objects:
    """The objects of a SavedModel: their graph names variables, the checkpoint has the same graph with keys."""

    def __init__(self, meta: MetaGraphDef, folder: Path):
        self.meta, self.folder = meta, folder
        self.nodes = meta.object_graph_def.nodes
        self.found: dict[int, Captured] = {}

    @cached_property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.folder / "variables" / "variables")

    @cached_property
    def keys(self) -> dict[int, str]:
        """The keys of the objects that have values, which are found along the same names from the root."""
        stored = trackable_object_graph_pb2.TrackableObjectGraph.FromString(self.checkpoint.text(OBJECTS)).nodes
        places: dict[int, int] = {0: 0}
        keys: dict[int, str] = {}
        stack = [0]
        while stack:
            index = stack.pop()
            there = stored[places[index]]
            for value in there.attributes:
                if value.name == "VARIABLE_VALUE":
                    keys[index] = value.checkpoint_key
            named = {child.local_name: child.node_id for child in there.children}
            for child in self.nodes[index].children:
                if child.node_id not in places and child.local_name in named:
                    places[child.node_id] = named[child.local_name]
                    stack.append(child.node_id)
        return keys

    def captured(self, index: int) -> Captured:
        """Returns the kind of an object for a function that captured it: a variable, an array, or a resource."""
        if index not in self.found:
            node = self.nodes[index]
            kind = node.WhichOneof("kind")
            if kind == "variable":
                self.found[index] = self._variable(index, node.variable)
            elif kind == "constant":
                self.found[index] = self._constant(node.constant.operation)
            else:
                self.found[index] = Resource(kind or "nothing")
        return self.found[index]

    def _constant(self, name: str) -> np.ndarray:
        for node in self.meta.graph_def.node:
            if node.name == name and node.op == "Const":
                require_bounded(node)
                return tf.make_ndarray(node.attr["value"].tensor)
        raise Error(f"{self.folder} has no constant {name!r}")

    def _variable(self, index: int, variable: SavedVariable) -> Variable:
        name = variable.name.partition(":")[0]
        if index not in self.keys:
            raise Error(f"{self.checkpoint.prefix} has no value of the variable {name}")
        role = "parameter" if variable.trainable else "buffer"
        shape, dtype = as_shape(variable.shape), tf.as_dtype(variable.dtype)
        return _stored_variable(name, self.checkpoint, self.keys[index], shape, dtype, role)


def _stored_variable(
    name: str, checkpoint: Checkpoint, key: str, shape: tf.TensorShape, dtype: tf.DType, role: str
) -> Variable:
    if not shape.is_fully_defined():
        shape = tf.TensorShape(checkpoint.shape(key))
    kind = TensorType(tuple(shape), element_type_of(dtype))
    return Variable(name, kind, role, Stored(checkpoint, key, kind.static_shape, dtype))


# TensorFlow 1: one graph


def _of_graph(meta: MetaGraphDef, folder: Path, wanted: str | None) -> Signature:
    signature = meta.signature_def[chosen(meta.signature_def, folder, wanted)]
    fed = [signature.inputs[name].name for name in sorted(signature.inputs)]
    outputs = sorted(signature.outputs)
    fetched = [signature.outputs[name].name for name in outputs]
    if not all((*fed, *fetched)):
        raise Error(f"{folder} has a sparse input or output, expected dense tensors")
    graph = LoadedGraph(importable(meta.graph_def, map(node_name, (*fed, *fetched))))
    arguments = [graph.get_tensor_by_name(name) for name in fed]
    for tensor in arguments:
        if tensor.op.type != "Placeholder":
            raise Error(f"the input {tensor.name} is fed into {tensor.op.type}, expected a Placeholder")
    handles = [node.outputs[0] for node in graph.get_operations() if node.type == "VarHandleOp"]
    captured = _variables_of_graph(handles, meta, folder) if handles else []
    graph.inputs = [*arguments, *handles]
    graph.outputs = [graph.get_tensor_by_name(name) for name in fetched]
    return Signature(graph, arguments, captured, outputs)


def _variables_of_graph(handles: Sequence[tf.Tensor], meta: MetaGraphDef, folder: Path) -> list[Variable]:
    trained = meta.collection_def["trainable_variables"].bytes_list.value
    names = {variable_pb2.VariableDef.FromString(data).variable_name.partition(":")[0] for data in trained}
    checkpoint = Checkpoint(folder / "variables" / "variables")
    found: dict[str, Variable] = {}
    shared = [handle.op.get_attr("shared_name").decode() or handle.op.name for handle in handles]
    for handle, name in zip(handles, shared, strict=True):
        if name not in found:
            role = "parameter" if name in names else "buffer"
            shape, dtype = as_shape(handle.op.get_attr("shape")), handle.op.get_attr("dtype")
            found[name] = _stored_variable(name, checkpoint, name, shape, dtype, role)
    return [found[name] for name in shared]
