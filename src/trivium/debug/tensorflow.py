"""Compares the import of a TensorFlow function with TensorFlow itself, node by node: each is imported alone, and
evaluated on the values that TensorFlow computed. Calls, loops and branches are entered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from trivium.debug.differences import difference
from trivium.debug.parting import Parting
from trivium.importers.tensorflow import import_module
from trivium.importers.tensorflow.graph import (
    add_function,
    called_functions,
    ends_of,
    function_graph,
    location_of,
    needed_nodes,
)
from trivium.importers.tensorflow.module import read
from trivium.importers.tensorflow.schema import schema_of
from trivium.importers.tensorflow.source import (
    Concrete,
    arguments_of,
    concrete_function,
    examples_for,
    import_concrete,
)
from trivium.ir.errors import Error
from trivium.ir.interpreter import evaluate


def is_tensorflow(program: object, args: Sequence[object]) -> bool:
    """Whether a program is TensorFlow's: a model, a function of `tf.function`, or a function of its tensors."""
    kinds = (tf.Module, tf.types.experimental.PolymorphicFunction, tf.types.experimental.ConcreteFunction)
    tensors = any(isinstance(x, tf.Tensor | tf.Variable) for x in tf.nest.flatten(list(args)))
    return isinstance(program, kinds) or hasattr(program, "trainable_variables") or (callable(program) and tensors)


class Run:
    """One run of a function in TensorFlow, node by node, on copies of its variables: `module` is its import,
    `arguments` and `results` are what it takes and returns. `compare` then tells the first node that the import gets
    wrong."""

    def __init__(self, program: object, args: Sequence[object]):
        concrete, args = concrete_function(program, args, {})
        imported = import_concrete(concrete, examples_for(arguments_of(concrete), args, {}), "constants")
        if any(variable.handle is None for variable in imported.arguments):
            raise Error("the function draws random numbers, expected one that computes the same again")
        given = [tf.convert_to_tensor(x) for x in tf.nest.flatten(list(args)) if _is_tensor(x)]
        self.module = imported.module
        self.arguments = [*map(read, imported.arguments), *map(_array, given)]
        self._steps: list[tuple[tf.Operation, list[tf.Tensor], list[tf.Tensor]]] = []
        self._alone: dict[tf.Operation, Callable[..., list[tf.Tensor]]] = {}
        self._copies: list[tf.Variable] = []
        captured = [self._captured(tensor, concrete) for tensor in concrete.captured_inputs]
        self.results = [_array(x) for x in self._run(concrete.graph, [*given, *captured])]

    def _captured(self, tensor: tf.Tensor, concrete: Concrete) -> tf.Tensor:
        """Returns what stands for a captured tensor: of a variable, its copy, so that the user's stays as it is."""
        for variable in concrete.graph.variables:
            if variable.handle is tensor:
                self._copies.append(tf.Variable(variable))
                return self._copies[-1].handle
        return tensor

    def _run(self, graph: tf.Graph, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        values = {tensor.name: value for tensor, value in zip(graph.inputs, operands, strict=True)}
        for node in needed_nodes(*ends_of(graph)):
            given = [values[tensor.name] for tensor in node.inputs]
            results = self._step(node, given)
            values |= {tensor.name: value for tensor, value in zip(node.outputs, results, strict=True)}
        return [values[tensor.name] for tensor in graph.outputs]

    def _step(self, node: tf.Operation, given: list[tf.Tensor]) -> list[tf.Tensor]:
        graphs = [function_graph(node.graph, name) for name in called_functions(node)]
        match node.type:
            case "PartitionedCall" | "StatefulPartitionedCall":
                return self._run(graphs[0], given)
            case "If" | "StatelessIf":
                return self._run(graphs[0 if given[0] else 1], given[1:])
            case "While" | "StatelessWhile":
                while self._run(graphs[0], given)[0]:
                    given = self._run(graphs[1], given)
                return given
        if node not in self._alone:
            self._alone[node] = tf.function(_alone(node))
        results = list(self._alone[node](*given))
        self._steps.append((node, given, results))
        return results

    def compare(self, tolerance: float | None = None) -> Parting | None:
        """Returns the first node whose import differs from TensorFlow; `None` if there is none."""
        found = (_compared(*step, tolerance) for step in self._steps if _has_arrays(step[0]))
        return next((parting for parting in found if parting is not None), None)


def _alone(node: tf.Operation, known: Sequence[tf.Tensor | None] = ()) -> Callable[..., list[tf.Tensor]]:
    """Returns a function of one node: of its operands, or of those that are not `known`."""

    def run(*operands: tf.Tensor) -> list[tf.Tensor]:
        graph: Any = tf.compat.v1.get_default_graph()
        for name in called_functions(node):
            add_function(graph, node.graph, name)
        rest = iter(operands)
        inputs = [next(rest) if x is None else tf.constant(x.numpy()) for x in known] if known else list(operands)
        types = [tensor.dtype for tensor in node.outputs]
        return graph.create_op(node.type, inputs, types, name=node.name, attrs=dict(node.node_def.attr)).outputs

    return run


def _compared(
    node: tf.Operation, operands: Sequence[tf.Tensor], results: Sequence[tf.Tensor], tolerance: float | None
) -> Parting | None:
    ours = _evaluated(node, operands)
    for index, (mine, theirs) in enumerate(zip(ours, results, strict=True)):
        found = difference(mine, _array(theirs), tolerance)
        if found is not None:
            text = f"{node.name} = {node.type}({', '.join(tensor.op.name for tensor in node.inputs)})"
            return Parting(text, location_of(node).describe(), index, found, "importing from TensorFlow")
    return None


def _evaluated(node: tf.Operation, operands: Sequence[tf.Tensor]) -> Sequence[np.ndarray]:
    """Returns what the import of a node computes. Integers are known while it is imported, since they may be shapes; if
    the import needs to know more, all operands are."""
    try:
        known = [None if x.dtype.is_floating or x.dtype.is_complex else x for x in operands]
        rest = [x for x, constant in zip(operands, known, strict=True) if constant is None]
        return evaluate(import_module(tf.function(_alone(node, known)), rest), *map(_array, rest))
    except Error:
        return evaluate(import_module(tf.function(_alone(node, operands))))


def _has_arrays(node: tf.Operation) -> bool:
    """Whether a node has no state, reads arrays and returns some: a random number, or what a variable has, cannot be
    computed again."""
    tensors = [*node.inputs, *node.outputs]
    plain = all(tensor.dtype not in (tf.resource, tf.variant, tf.string) for tensor in tensors)
    return plain and bool(node.outputs) and not schema_of(node.type).is_stateful


def _is_tensor(x: object) -> bool:
    return isinstance(x, tf.Tensor | tf.Variable | np.ndarray | np.generic)


def _array(tensor: tf.Tensor) -> np.ndarray:
    return np.asarray(tensor.numpy())
