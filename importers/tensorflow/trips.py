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


def written(
    body: tf.Graph, index: int, operands: Sequence[Operand], counters: Sequence[np.ndarray | None]
) -> int | None:
    """Returns the number of elements that a list which grows by writing has after a loop whose iterations each write
    one, at a counter that moves by one. `None` if that is not so, or if something else needs the list meanwhile."""
    node, start = _origin(body.outputs[index]).op, body.inputs[index]
    if node.type != "TensorListSetItem" or _origin(node.inputs[0]).name != start.name:
        return None
    if not node.get_attr("resize_if_index_out_of_bounds") or _uses(start) != [node.name]:
        return None
    place = _origin(node.inputs[1])
    counter = next((i for i, x in enumerate(body.inputs) if x.name == place.name), None)
    if counter is None or counters[counter] is None or not _moves_by_one(body, counter, operands):
        return None
    return int(np.asarray(counters[counter]))


def _moves_by_one(body: tf.Graph, index: int, operands: Sequence[Operand]) -> bool:
    node, names = _origin(body.outputs[index]).op, [x.name for x in body.inputs]
    if node.type not in ("Add", "AddV2"):
        return False
    by = [x for x in map(_origin, node.inputs) if x.name != names[index]]
    if len(by) == 1 and by[0].op.type == "Const":
        return _scalar(by[0].op) == 1
    if len(by) != 1 or by[0].name not in names:
        return False
    place = names.index(by[0].name)
    step = operands[place]
    return _origin(body.outputs[place]).name == by[0].name and isinstance(step, np.ndarray) and (step == 1).all()


def _origin(tensor: tf.Tensor) -> tf.Tensor:
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


def _uses(tensor: tf.Tensor) -> list[str]:
    """Returns the names of the nodes that use a list, or an identity of it. A length that is kept for the gradient
    counts for none: there it is the length that the list of gradients gets, which may as well be the last one."""
    found = []
    for node in tensor.consumers():
        if node.type == "Identity":
            found += _uses(node.outputs[0])
        elif node.type != "TensorListLength" or any(
            x.type != "TensorListPushBack" for x in node.outputs[0].consumers()
        ):
            found.append(node.name)
    return found


_SAME_LIST = frozenset(
    {
        *("AddN", "Identity", "TensorListPopBack", "TensorListPushBack", "TensorListScatterIntoExistingList"),
        "TensorListSetItem",
    }
)
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
