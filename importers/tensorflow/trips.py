"""The number of iterations of a loop, if it follows from known values: only its condition and the counters in it are
computed during import. Lists that a loop fills get their size from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from trivium.importers.tensorflow.context import Operand
from trivium.importers.tensorflow.graph import ends_of, function_graph, needed_nodes
from trivium.importers.tensorflow.hiding import HIDDEN

Scalar = np.ndarray | np.generic
"""A number that is known during import."""

MAX_TRIPS = 100_000
"""The number of iterations after which counting stops."""

_ARITHMETIC = {
    "Add": np.add,
    "AddV2": np.add,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Identity": lambda x: x,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "LogicalAnd": np.logical_and,
    "LogicalNot": np.logical_not,
    "LogicalOr": np.logical_or,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "NotEqual": np.not_equal,
    HIDDEN: lambda x: x,
    "Sub": np.subtract,
}
"""The ops that counters consist of."""


def trip_count(
    cond: tf.Graph, body: tf.Graph, operands: Sequence[Operand]
) -> tuple[int | None, list[np.ndarray | None]]:
    """Returns the number of iterations, `None` if it is not known or too large to count; and the counters after the
    loop, `None` for those that are not known."""
    state: list[Scalar | None] = [x if isinstance(x, np.ndarray) and x.ndim == 0 else None for x in operands]
    test, step = _counter_nodes(cond), _counter_nodes(body)
    for trip in range(MAX_TRIPS):
        (goes_on,) = _computed(cond, test, state)
        if goes_on is None:
            break
        if not goes_on:
            return trip, [None if x is None else np.asarray(x) for x in state]
        state = _computed(body, step, state)
    return None, [None] * len(operands)


def pushes(graph: tf.Graph, tensor: tf.Tensor) -> int | None:
    """Returns by how many elements a list grows between an input of a function and the tensor; `None` if that is not
    known."""
    grown = 0
    inputs = {x.name for x in graph.inputs}
    while tensor.name not in inputs:
        node = tensor.op
        grown += {"TensorListPushBack": 1, "TensorListPopBack": -1}.get(node.type, 0)
        if node.type in ("While", "StatelessWhile"):
            body = function_graph(graph, node.get_attr("body").name)
            if pushes(body, body.outputs[tensor.value_index]) != 0:
                return None
            tensor = node.inputs[tensor.value_index]
        elif node.type in _SAME_LIST:
            tensor = node.inputs[0]
        else:
            return None
    return grown


_SAME_LIST = frozenset({"Identity", "TensorListSetItem", "TensorListPushBack", "TensorListPopBack", "AddN"})
"""Ops whose first input is the list that they return."""


def _computed(graph: tf.Graph, nodes: Sequence[tf.Operation], operands: Sequence[Scalar | None]) -> list[Scalar | None]:
    """Returns the outputs of a graph, as far as the counters' arithmetic determines them; `None` for the others."""
    values: dict[str, Scalar | None] = {x.name: operand for x, operand in zip(graph.inputs, operands, strict=True)}
    for node in nodes:
        if node.type == "Const":
            values[node.outputs[0].name] = _scalar(node)
            continue
        sources = [values.get(x.name) for x in node.inputs]
        if not any(x is None for x in sources):
            values[node.outputs[0].name] = _ARITHMETIC[node.type](*sources)
    return [values.get(x.name) for x in graph.outputs]


def _counter_nodes(graph: tf.Graph) -> list[tf.Operation]:
    return [x for x in needed_nodes(*ends_of(graph)) if x.type in _ARITHMETIC or x.type == "Const"]


def _scalar(node: tf.Operation) -> Scalar | None:
    if node.outputs[0].shape.rank != 0 or node.outputs[0].dtype == tf.string:
        return None
    return tf.make_ndarray(node.get_attr("value"))
