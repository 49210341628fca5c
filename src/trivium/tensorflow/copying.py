"""Parts of TensorFlow's graphs as separate functions: their nodes are copied while a new function is traced."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.ops import get_default_graph
from tensorflow.python.ops.resource_variable_ops import variable_accessed

from trivium.importers.tensorflow.definitions import INPUTS
from trivium.importers.tensorflow.graph import (
    CALLS,
    add_function,
    called_functions,
    ends_of,
    function_graph,
    needed_nodes,
)
from trivium.tensorflow.tracing import OWN

IsInlined = Callable[[tf.Operation], bool]


class Copy:
    """Copies nodes into the graph that is being traced. `tensors` has the copy of each tensor by its name."""

    def __init__(self, tensors: Mapping[str, Any], is_inlined: IsInlined):
        self.tensors = dict(tensors)
        self.is_inlined = is_inlined
        self.ends: dict[str, list[tf.Operation]] = {}
        """The copies after which a node has run, by its name."""

    def add(self, nodes: Sequence[tf.Operation]) -> None:
        """Copies nodes in an order of execution; edges from nodes that are not copied have no meaning here."""
        for node in nodes:
            before = [end for source in node.control_inputs for end in self.ends.get(source.name, ())]
            with tf.control_dependencies(before):
                if node.type in CALLS and self.is_inlined(node):
                    self._inline(node)
                else:
                    self._copy(node)

    def _copy(self, node: tf.Operation) -> None:
        for name in called_functions(node):
            add_function(get_default_graph(), node.graph, name)
        copy = get_default_graph()._create_op_internal(
            node.type,
            [self.tensors[x.name] for x in node.inputs],
            [x.dtype for x in node.outputs],
            name=node.name.rpartition("/")[2],
            attrs={name: x for name, x in node.node_def.attr.items() if not name.startswith("_")},
            op_def=node.op_def,
        )
        copy.copied_from = getattr(node, "copied_from", node)  # which has the user's line
        for mine, theirs in zip(copy.outputs, node.outputs, strict=True):
            mine.set_shape(theirs.shape)
            self.tensors[theirs.name] = mine
        self.ends[node.name] = [copy]

    def _inline(self, node: tf.Operation) -> None:
        graph = function_graph(node.graph, *called_functions(node))
        given = [self.tensors[x.name] for x in node.inputs]
        inner = Copy({x.name: y for x, y in zip(graph.inputs, given, strict=True)}, self.is_inlined)
        inner.add(needed_nodes(*ends_of(graph)))
        for mine, theirs in zip(graph.outputs, node.outputs, strict=False):  # TensorFlow adds outputs for gradients
            self.tensors[theirs.name] = inner.tensors[mine.name]
        self.ends[node.name] = [end for ends in inner.ends.values() for end in ends]


def function_of(
    nodes: Sequence[tf.Operation],
    inputs: Sequence[tf.Tensor],
    outputs: Sequence[tf.Tensor],
    captured: Mapping[str, Any],
    variables: Sequence[Any],
    name: str,
    is_inlined: IsInlined = lambda _: False,
) -> Any:
    """Returns the concrete function of some nodes of a graph, under that name. `captured` has what the graph itself
    captured, by the name of its input; `variables` are those that it may read."""
    handles = {id(captured[captive]) for node in nodes for x in node.inputs if (captive := x.name) in captured}

    def part(*operands: tf.Tensor) -> list[tf.Tensor]:
        for variable in variables:
            if id(variable.handle) in handles:
                variable_accessed(variable)
        given = dict(captured) | {x.name: y for x, y in zip(inputs, operands, strict=True)}
        copy = Copy(given, is_inlined)
        copy.add([node for node in nodes if node.type not in INPUTS])
        return [tf.identity(copy.tensors[x.name]) for x in outputs]

    part.__name__ = re.sub(r"\W", "_", name)  # by which TensorFlow names the graph
    specs = [tf.TensorSpec(x.shape, x.dtype, name=f"x{index}") for index, x in enumerate(inputs)]
    return OWN(part, autograph=False).get_concrete_function(*specs)
