"""Graphs as files define them, before TensorFlow builds them. Building infers shapes, for which TensorFlow runs ops
whose operands are constants: so this rejects, beforehand, ops without a rule, and functions that are recursive or have
too many nodes after inlining."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.python.framework import op_def_registry

from trivium.importers.common import Calls, place, refuse
from trivium.importers.tensorflow.conditionals import functionalized_conditionals
from trivium.importers.tensorflow.context import rule
from trivium.importers.tensorflow.function_defs import CONTROL_FLOW, SWITCHES, Nodes, ancestors
from trivium.importers.tensorflow.loops import functionalized_loops
from trivium.ir.errors import Error
from trivium.ir.location import Location

INPUTS = frozenset({"Placeholder", "VarHandleOp"})
"""Nodes that have their values before a graph runs."""

UNUSED = "unused_control_flow_input"
"""The names of placeholders that TensorFlow leaves behind when it freezes variables in loops."""

MAX_CONSTANT = 1 << 28
"""Bytes that a constant may represent beyond those in the file: one element may stand for many."""


class Definitions:
    """The functions of a graph's library. Those that passed `require_importable` are among `needed`."""

    def __init__(self, functions: Mapping[str, FunctionDef]):
        self.functions = functions
        self.unknown: list[tuple[str, Location]] = []
        self.calls = Calls(self._nodes_of, self._called)

    @property
    def needed(self) -> Iterable[str]:
        """The names of the functions that are called."""
        return self.calls.sizes

    def require_importable(self, nodes: Iterable[NodeDef], ends: Iterable[str]) -> list[NodeDef]:
        """Returns the nodes that lead to `ends` (names of nodes). Raises an error if they, or the functions that they
        call, cannot be imported. The other nodes of those functions are deleted."""
        found = _needed({node.name: node for node in nodes}, ends)
        self.calls.require_bounded(found)
        if self.unknown:
            refuse(self.unknown, during="importing 'main'")
        return found

    def _nodes_of(self, name: str) -> list[NodeDef]:
        if name not in self.functions:
            raise Error(f"function {name} is called, but is not in the graph's library")
        return _pruned(self.functions[name])

    def _called(self, node: NodeDef) -> list[str]:
        """Returns the functions that a node calls, after checking the node."""
        if node.op not in INPUTS and rule.find(node.op) is None:
            self.unknown.append((node.op, place(node.op, function=node.name)))
        require_bounded(node)
        return list(_called(node))


def library_of(graph: tf.compat.v1.GraphDef) -> Definitions:
    """Returns the library of a graph, to be checked."""
    return Definitions(functions_of(graph))


def functions_of(graph: tf.compat.v1.GraphDef) -> dict[str, FunctionDef]:
    """Returns the functions in a graph's library, by name."""
    return {function.signature.name: function for function in graph.library.function}


def importable(definition: tf.compat.v1.GraphDef, ends: Iterable[str]) -> tf.compat.v1.GraphDef:
    """Returns the part of a graph that leads to `ends`, names of nodes."""
    copy = tf.compat.v1.GraphDef()
    copy.CopyFrom(definition)
    ends = list(ends)
    functionalize(copy, ends)
    library = library_of(copy)
    needed = library.require_importable(copy.node, ends)
    bare = library_only(copy, library.needed)
    bare.node.extend(needed)
    for node in bare.node:
        unplaced(node)
    return bare


def functionalize(graph: tf.compat.v1.GraphDef, ends: Iterable[str]) -> None:
    """Replaces the loops and conditionals of TensorFlow 1 by nodes that call functions; only what leads to `ends`
    remains."""
    if not any(node.op in CONTROL_FLOW for node in graph.node):
        return
    nodes, library = {node.name: node for node in graph.node}, []
    nodes = functionalized_loops(_leading_to(nodes, ends), library)
    made = list(_leading_to(functionalized_conditionals(nodes, library), ends).values())
    del graph.node[:]
    graph.node.extend(made)
    graph.library.function.extend(library)


def _leading_to(nodes: Nodes, ends: Iterable[str]) -> Nodes:
    found = set(ancestors(nodes, ends))
    return {name: node for name, node in nodes.items() if name in found}


def ends_in(graph: tf.compat.v1.GraphDef) -> list[str]:
    """Returns the nodes of a graph whose results no other node uses, and all inputs."""
    nodes = graph.node
    used = {node_name(source) for node in nodes for source in node.input if not source.startswith("^")}
    switches = {node.name for node in nodes if node.op in SWITCHES}
    ends = []
    for node in nodes:
        declared = op_def_registry.get(node.op)
        # Only control edges lead on from what merely shows that a branch runs, or counts a loop.
        is_control_flow = node.op in CONTROL_FLOW or any(node_name(source) in switches for source in node.input)
        if node.op == "Placeholder" and node.name.startswith(UNUSED) and node.name not in used:
            continue
        if node.op in INPUTS or (
            node.name not in used and not is_control_flow and (declared is None or declared.output_arg)
        ):
            ends.append(node.name)
    return ends


def node_name(source: str) -> str:
    """Returns the node of an input (`node`, `node:1`, `node:output:1`, `^node`)."""
    return source.removeprefix("^").partition(":")[0]


def _needed(nodes: Mapping[str, NodeDef], ends: Iterable[str]) -> list[NodeDef]:
    """Returns the nodes that lead to the given ones, in their order."""
    found: set[str] = set()
    stack = list(ends)
    while stack:
        name = stack.pop()
        if name not in found and name in nodes:
            found.add(name)
            if nodes[name].op not in INPUTS:
                stack += map(node_name, nodes[name].input)
    return [node for name, node in nodes.items() if name in found]


def _pruned(function: FunctionDef) -> list[NodeDef]:
    """Returns the nodes of a function that lead to its results or must run; the others are removed from it."""
    ends = [*map(node_name, function.ret.values()), *function.control_ret.values()]
    needed = {node.name for node in _needed({node.name: node for node in function.node_def}, ends)}
    for index in reversed(range(len(function.node_def))):
        if function.node_def[index].name not in needed:
            del function.node_def[index]
    for node in function.node_def:
        unplaced(node)
    return list(function.node_def)


def unplaced(node: NodeDef) -> None:
    """Removes the device on which TensorFlow would run a node, and its colocations, whose nodes may be gone."""
    node.device = ""
    node.attr.pop("_class", None)


def _called(node: NodeDef) -> Iterator[str]:
    for attribute in node.attr.values():
        if attribute.HasField("func"):
            yield attribute.func.name
        elif attribute.HasField("list"):
            yield from (function.name for function in attribute.list.func)


def require_bounded(node: NodeDef) -> None:
    """Rejects a constant that represents far more than is in the file."""
    if "value" not in node.attr or not node.attr["value"].HasField("tensor"):
        return
    tensor = node.attr["value"].tensor
    shape = [dimension.size for dimension in tensor.tensor_shape.dim]
    if min(shape, default=0) < 0:
        raise Error(f"constant {node.name} has shape {shape}, expected no negative extents")
    needed, held = math.prod(shape) * 8, tensor.ByteSize()
    if needed > MAX_CONSTANT + 64 * held:
        raise Error(f"constant {node.name} has shape {shape}, of which the file has only {held} bytes")


def call_of(name: str) -> NodeDef:
    """Returns a node that calls a function."""
    node = tf.compat.v1.NodeDef(name="call", op="PartitionedCall")
    node.attr["f"].func.name = name
    return node


def library_only(definition: tf.compat.v1.GraphDef, names: Iterable[str]) -> tf.compat.v1.GraphDef:
    """Returns a graph without nodes, whose library has only the given functions."""
    bare, kept = tf.compat.v1.GraphDef(), set(names)
    bare.versions.CopyFrom(definition.versions)
    bare.library.function.extend(x for x in definition.library.function if x.signature.name in kept)
    return bare
