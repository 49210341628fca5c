"""The inputs that users can pass: functions, Keras models, SavedModels and graphs, each read as one concrete graph with
a description of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from trivium.importers.tensorflow.definitions import INPUTS, ends_in, importable
from trivium.importers.tensorflow.function_defs import CONTROL_FLOW
from trivium.importers.tensorflow.graph import LoadedGraph
from trivium.importers.tensorflow.keras_files import is_keras_file, load_model
from trivium.importers.tensorflow.module import Program, captured, declared_variable, import_graph, variable_from
from trivium.importers.tensorflow.saved_model import chosen, read_signature
from trivium.importers.tensorflow.types import Shaped, is_shaped, type_of
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.stack import with_stack


class Concrete(Protocol):
    """A function that has been traced, a `ConcreteFunction`."""

    graph: FuncGraph
    captured_inputs: Sequence[tf.Tensor]
    structured_outputs: object
    _keep_alive: SavedModel


@runtime_checkable
class Traceable(Protocol):
    """A function of tensors, a `tf.function`."""

    def get_concrete_function(self, *args: object, **kwargs: object) -> Concrete: ...


class SavedModel(Protocol):
    """A SavedModel that TensorFlow has loaded."""

    signatures: Mapping[str, Concrete]


@with_stack
def import_module(
    function: object,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    parameters: str = "constants",
    trust: bool = False,
    signature: str | None = None,
) -> Module:
    """Returns the program of a `tf.function`, a `ConcreteFunction`, a `GraphDef`, a SavedModel folder, a Keras model or
    its file, or a function of tensors, for inputs like `args` and `kwargs` (arrays, tensors or `tf.TensorSpec`s). Files
    are read as data, unless the user trusts them. `signature` is the name of that of a SavedModel."""
    kwargs = dict(kwargs or {})
    if signature is not None and (is_keras_file(function) or not isinstance(function, str | Path)):
        raise Error(f"signature has {signature!r} for a {type(function).__name__}, expected a SavedModel's folder")
    if isinstance(function, tf.compat.v1.GraphDef):
        if kwargs:
            raise Error(
                f"a GraphDef has no arguments {', '.join(sorted(kwargs))}, expected inputs in the order of its own"
            )
        return import_graph_def(function, args, parameters).module
    if is_keras_file(function):
        function = load_model(function, trust)
    if isinstance(function, str | Path):
        if not trust:
            return _import_folder(function, args, kwargs, parameters, signature)
        function = serving_function(_loaded(function), function, signature)
    concrete, args = concrete_function(function, args, kwargs)
    return import_concrete(concrete, examples_for(arguments_of(concrete), args, kwargs), parameters).module


def concrete_function(
    function: object, args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[Concrete, Sequence[object]]:
    """Returns a function as TensorFlow traces it, and the inputs that it was traced for: those given, or a model's."""
    if is_concrete(function):
        return function, args
    traceable, args = _traceable(function, args)
    return _traced(traceable, args, kwargs), args


def _import_folder(
    folder: str | Path, args: Sequence[object], kwargs: Mapping[str, object], parameters: str, name: str | None
) -> Module:
    """Returns the program of a SavedModel, which is read as data."""
    signature = read_signature(folder, name)
    given = examples_for(signature.arguments, args, kwargs)
    names = [tensor.op.name for tensor in signature.arguments]
    inputs = [*map(type_of, given), *signature.captured]
    return import_graph(signature.graph, inputs, names, signature.outputs, parameters).module


@with_stack
def import_concrete(function: Concrete, given: Sequence[Shaped], parameters: str) -> Program:
    """Returns the program of a concrete function. For each of its inputs, `given` contains an object that determines
    the shape: a tensor, a `TensorSpec`, or a variable if the function takes one."""
    graph = without_cycles(function.graph)
    externals = function.captured_inputs
    inputs = [
        *(variable_from(x) if isinstance(x, tf.Variable) else type_of(x) for x in given),
        *(captured(tensor, function.graph.variables) for tensor in externals),
    ]
    names = [tensor.op.name for tensor in arguments_of(function) if tensor.dtype != tf.resource]
    structure = function.structured_outputs
    return import_graph(graph, inputs, names, output_names(structure), parameters, count_of(structure))


def without_cycles(graph: FuncGraph) -> tf.Graph:
    """Returns a graph whose loops and conditionals are nodes. TensorFlow writes others when it freezes variables."""
    if not any(node.type in CONTROL_FLOW for node in graph.get_operations()):
        return graph
    ends = [tensor.op.name for tensor in (*graph.inputs, *graph.outputs)] + [x.name for x in graph.control_outputs]
    loaded = LoadedGraph(importable(graph.as_graph_def(), ends))
    loaded.inputs = [loaded.get_tensor_by_name(tensor.name) for tensor in graph.inputs]
    loaded.outputs = [loaded.get_tensor_by_name(tensor.name) for tensor in graph.outputs]
    return loaded


def count_of(structure: object) -> int:
    """Returns the number of tensors in a structure of results."""
    return sum(x is not None for x in tf.nest.flatten(structure, expand_composites=True))


def arguments_of(function: Concrete) -> list[tf.Tensor]:
    """Returns the inputs of a concrete function that a caller passes; those that it captured come after them."""
    inputs = function.graph.inputs
    return list(inputs[: len(inputs) - len(function.captured_inputs)])


def import_graph_def(definition: tf.compat.v1.GraphDef, args: Sequence[object], parameters: str) -> Program:
    """Returns the program of a graph: its placeholders are the inputs, the tensors that no node uses the outputs; both
    in the order of the graph."""
    ends = ends_in(definition)
    graph = LoadedGraph(importable(definition, ends))
    nodes = {node.name: node for node in graph.get_operations()}
    last = [nodes[name] for name in ends if name in nodes]
    graph.inputs = [node.outputs[0] for node in last if node.type == "Placeholder"]
    handles = [node.outputs[0] for node in nodes.values() if node.type == "VarHandleOp"]
    graph.outputs = [
        tensor
        for node in last
        if node.type not in ("Const", "ReadVariableOp", "VarIsInitializedOp", *INPUTS)
        for tensor in node.outputs
        if tensor.dtype not in (tf.resource, tf.variant)
    ]
    names = [tensor.op.name for tensor in graph.inputs]
    inputs = [*map(type_of, examples_for(graph.inputs, args, {})), *map(declared_variable, handles)]
    graph.inputs += handles
    return import_graph(graph, inputs, names, [tensor.op.name for tensor in graph.outputs], parameters)


def is_concrete(function: object) -> TypeGuard[Concrete]:
    """Whether it is a function that has already been traced."""
    return isinstance(function, tf.types.experimental.ConcreteFunction)


def _loaded(folder: str | Path) -> SavedModel:
    try:
        return tf.saved_model.load(str(folder))
    # Various types: from the protocol buffers, the file system, the object graph.
    except Exception as error:
        raise Error(f"TensorFlow cannot load {folder} as a SavedModel: {error}") from error


def serving_function(loaded: SavedModel, folder: str | Path, name: str | None) -> Concrete:
    """Returns a signature of a SavedModel: the one with a name, or the serving one."""
    signatures = dict(loaded.signatures)
    function = signatures[chosen(signatures, folder, name)]
    # The variables live as long as the loaded object.
    function._keep_alive = loaded
    return function


def specification(x: object) -> object:
    """Returns the `TensorSpec` of an example input; specs, Python values and structures remain unchanged."""
    if isinstance(x, tf.TensorSpec | tf.Variable):
        return x
    if isinstance(x, tf.Tensor | np.ndarray | np.generic):
        return tf.TensorSpec(x.shape, x.dtype)
    if isinstance(x, list | tuple | dict):
        return tf.nest.map_structure(specification, x)
    return x


def output_names(structure: object) -> list[str]:
    """Returns names for results that come in a dictionary."""
    if not isinstance(structure, Mapping):
        return []
    return [str(key) for key in sorted(structure) if structure[key] is not None]


def _specifications(kwargs: Mapping[str, object]) -> dict[str, object]:
    return {name: specification(x) for name, x in kwargs.items()}


def _traced(function: Traceable, args: Sequence[object], kwargs: Mapping[str, object]) -> Concrete:
    try:
        return function.get_concrete_function(*map(specification, args), **_specifications(kwargs))
    except Exception as error:  # anything that the function raises while it is traced
        name = getattr(function, "__name__", type(function).__name__)
        raise Error(f"TensorFlow cannot trace {name}: {error}") from error


def _traceable(function: object, args: Sequence[object]) -> tuple[Traceable, Sequence[object]]:
    if isinstance(function, Traceable):
        return function, args
    if not callable(function):
        expected = "a tf.function, a ConcreteFunction, a GraphDef, a SavedModel folder or a Keras model"
        raise Error(f"cannot import a {type(function).__name__}, expected {expected}")
    if hasattr(function, "trainable_variables") and hasattr(function, "call"):
        return _keras(function, args)
    return tf.function(function), args


def _keras(model: Callable[..., object], args: Sequence[object]) -> tuple[Traceable, Sequence[object]]:
    """Returns a Keras model at inference; without examples, for its own inputs."""
    given = tf.function(lambda *inputs: model(*inputs, training=False))
    if not args:
        declared = getattr(model, "inputs", None) or ()
        args = [tf.TensorSpec(x.shape, x.dtype, x.name) for x in declared]
    return given, args


def examples_for(arguments: Sequence[tf.Tensor], args: Sequence[object], kwargs: Mapping[str, object]) -> list[Shaped]:
    """Returns for each input of a graph an object that determines its shape: the example, if there are any and sizes
    of the inputs are unknown; otherwise the input itself."""
    by_name = {name: x for name, x in kwargs.items() if is_shaped(x)}
    flat = [x for x in tf.nest.flatten(list(args)) if is_shaped(x)]
    is_static = all(tensor.shape.is_fully_defined() for tensor in arguments)
    if (is_static or not (by_name or flat)) and not any(tensor.dtype == tf.resource for tensor in arguments):
        return list(arguments)
    if len(by_name) + len(flat) != len(arguments):
        shapes = ", ".join(f"{tensor.op.name}: {tensor.shape}" for tensor in arguments)
        has = f"{len(by_name) + len(flat)} example inputs"
        raise Error(f"{has} for inputs of dynamic shapes ({shapes}), expected one for each, or none")
    positional = iter(flat)
    return [by_name[tensor.op.name] if tensor.op.name in by_name else next(positional) for tensor in arguments]
