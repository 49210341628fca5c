"""The number of iterations of a loop, if it follows from known values: only its condition and the counters in it are
computed during import. Lists that a loop fills get their size from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from trivium.importers.tensorflow.context import Operand
from trivium.importers.tensorflow.graph import called_functions, ends_of, function_graph, needed_nodes
from trivium.importers.tensorflow.hiding import HIDDEN
from trivium.importers.tensorflow.lists import TensorList

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


class Growth(NamedTuple):
    """By how many elements a list grows in each iteration of a loop, and by how many at most meanwhile."""

    by: int
    peak: int

    def room(self, trips: int | None) -> int | None:
        """Returns how many rows the list needs beside those of its elements; `None` if that is not known."""
        if self.by <= 0 or trips is None:
            return self.peak if self.by <= 0 else None
        return (trips - 1) * self.by + self.peak if trips else 0


def pushes(body: tf.Graph, index: int, operands: Sequence[Operand]) -> Growth | None:
    """Returns how a list that a loop carries grows; `None` if that is not known."""
    found = _grown(body, body.outputs[index])
    if found is None or found[0] == index:
        return None if found is None else found[1]
    # Lists that take each other's place must all keep one length.
    seen, length, peak = {index}, _length(operands[index]), 0
    while found is not None and found[1].by == 0 and length is not None and length == _length(operands[found[0]]):
        peak = max(peak, found[1].peak)
        if found[0] in seen:
            return Growth(0, peak)
        seen.add(found[0])
        found = _grown(body, body.outputs[found[0]])
    return None


def _length(operand: Operand) -> int | None:
    return operand.length if isinstance(operand, TensorList) and isinstance(operand.length, int) else None


def _grown(graph: tf.Graph, tensor: tf.Tensor) -> tuple[int, Growth] | None:
    """Returns the input of a function that a list comes from, and how it has grown since; `None` if that is not
    known."""
    # From the last op to the first: by how much the list grows after an op, and the least of that.
    grown = least = 0
    places = {x.name: i for i, x in enumerate(graph.inputs)}
    while tensor.name not in places:
        node = tensor.op
        if node.type in ("While", "StatelessWhile", *_CHOICES):
            found = _grown_inside(graph, node, tensor.value_index)
            if found is None:
                return None
            tensor, inner = found
            grown += inner.by
            least = min(least, grown - inner.peak)
        elif node.type in _SAME_LIST:
            tensor = node.inputs[0]
            grown += {"TensorListPushBack": 1, "TensorListPopBack": -1}.get(node.type, 0)
            least = min(least, grown)
        else:
            return None
    return places[tensor.name], Growth(grown, grown - least)


def _grown_inside(graph: tf.Graph, node: tf.Operation, index: int) -> tuple[tf.Tensor, Growth] | None:
    """Returns the operand of a loop or a conditional that a result of it comes from, and how it grows there."""
    # A loop calls its condition first. The first operand of a conditional says which branch is taken.
    is_choice = node.type in _CHOICES
    names = called_functions(node) if is_choice else [node.get_attr("body").name]
    found = []
    for name in names:
        inner = function_graph(graph, name)
        came = _grown(inner, inner.outputs[index])
        if came is None:
            return None
        found.append((node.inputs[came[0] + is_choice], came[1]))
    (source, growth), peak = found[0], max(x.peak for _, x in found)
    if not is_choice and (growth.by or source.name != node.inputs[index].name):
        return None
    if any(x.name != source.name or y.by != growth.by for x, y in found):
        return None
    return source, Growth(growth.by, peak)


_CHOICES = ("If", "StatelessIf", "Case", "StatelessCase")


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
