"""Constants of a graph from a file, hidden from TensorFlow while it builds the graph. To infer shapes, it runs every op
whose operands it knows, whatever the size of the result: a range of 10^10 elements is three numbers in a file. Here the
rules infer shapes and compute known values, within bounds. So TensorFlow must not know any values: it treats the result
of a `PlaceholderWithDefault` as unknown, and likewise the results of ops that query a shape that it does not know.

The exception is the number -1 as the shape of a list's elements, which stands for any: TensorFlow takes no shape there
whose rank is zero and whose value it does not know."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import tensorflow as tf
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto
from tensorflow.python.framework import op_def_registry

Nodes = RepeatedCompositeFieldContainer[NodeDef]

HIDDEN = "PlaceholderWithDefault"
"""The op whose result TensorFlow never treats as a constant. It returns its operand."""

_OF_SHAPES = frozenset({"Rank", "Shape", "ShapeN", "Size"})
"""Ops that TensorFlow computes from the shapes of their operands."""


def hide_constants(graph: tf.compat.v1.GraphDef) -> None:
    """Hides the constants in the nodes of a graph and of its functions. Every node keeps its name."""
    _hide(graph.node, "{}")
    for function in graph.library.function:
        _hide(function.node_def, "{}:output:0")


def _hide(nodes: Nodes, output: str) -> None:
    """Hides constants in a field of nodes; `output` is the form in which these refer to the first output of a node."""
    names = {node.name for node in nodes}
    used = {source.split(":")[0] for node in nodes for source in node.input}
    numbers: dict[str, str] = {}
    for node in list(nodes):
        if node.op == "Const" and node.name in used:
            name, node.name = node.name, _unused(f"{node.name}/value", names)
            if not node.attr["value"].tensor.tensor_shape.dim:
                numbers[name] = node.name
            shape = AttrValue(shape=node.attr["value"].tensor.tensor_shape)
            _add(nodes, name, output.format(node.name), node.attr["dtype"], shape)
        elif node.op in _OF_SHAPES:
            unknown = AttrValue(shape=TensorShapeProto(unknown_rank=True))
            for index, source in enumerate(_data(node.input)):
                name = _unused(f"{node.name}/operand", names)
                _add(nodes, name, source, node.attr["T"], unknown)
                node.input[index] = output.format(name)
    for node in nodes:
        for index in _element_shapes(node.op):
            if (number := numbers.get(node.input[index].split(":")[0])) is not None:
                node.input[index] = output.format(number)


@cache
def _element_shapes(op: str) -> list[int]:
    """Returns which inputs of an op are the shape of a list's elements."""
    declared = op_def_registry.get(op)
    inputs = declared.input_arg if declared is not None else ()
    return [index for index, argument in enumerate(inputs) if argument.name == "element_shape"]


def _data(inputs: Iterable[str]) -> list[str]:
    """Returns the inputs that are not control edges, which come last."""
    return [source for source in inputs if not source.startswith("^")]


def _add(nodes: Nodes, name: str, source: str, dtype: AttrValue, shape: AttrValue) -> None:
    node = nodes.add(name=name, op=HIDDEN, input=[source])
    node.attr["dtype"].CopyFrom(dtype)
    node.attr["shape"].CopyFrom(shape)


def _unused(wish: str, names: set[str]) -> str:
    """Returns a name that no node has, and reserves it."""
    name = wish
    for number in range(len(names) + 1):
        if name not in names:
            break
        name = f"{wish}_{number}"
    names.add(name)
    return name
