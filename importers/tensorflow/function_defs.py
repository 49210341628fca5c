"""Parts of a graph from a file as functions of its library: definitions of nodes, whose inputs are named in the way of
functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import NameAttrList
from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.op_def_pb2 import OpDef
from tensorflow.python.framework import op_def_registry

from trivium.ir.errors import Error


@dataclass(frozen=True)
class Source:
    """What an input of a node refers to: an output of another node, or (by a negative index) only that it has run."""

    node: str
    index: int

    @property
    def is_control(self) -> bool:
        return self.index < 0

    def __str__(self) -> str:
        if self.is_control:
            return f"^{self.node}"
        return f"{self.node}:{self.index}" if self.index else self.node


Nodes = dict[str, NodeDef]
"""Nodes by their names."""


def source_of(text: str) -> Source:
    """Reads an input in the form of graphs (`node`, `node:1`, `^node`)."""
    if text.startswith("^"):
        return Source(text[1:], -1)
    name, _, index = text.partition(":")
    return Source(name, int(index or 0))


def sources(node: NodeDef) -> list[Source]:
    return list(map(source_of, node.input))


def data(node: NodeDef) -> list[Source]:
    """Returns the sources that are tensors."""
    return [source for source in sources(node) if not source.is_control]


def ancestors(nodes: Nodes, ends: Iterable[str], stop: Callable[[NodeDef], bool] = lambda _: False) -> list[str]:
    """Returns the nodes that lead to the given ones, including these; none beyond a node at which to stop, which is not
    included either."""
    found: dict[str, None] = {}
    stack = list(ends)
    while stack:
        name = stack.pop()
        if name in found or name not in nodes or stop(nodes[name]):
            continue
        found[name] = None
        stack += [source.node for source in sources(nodes[name])]
    return list(found)


def with_sources(node: NodeDef, changed: Callable[[Source], str | None]) -> NodeDef:
    """Returns a copy of a node with other inputs; control edges that become nothing are left out."""
    copy = NodeDef()
    copy.CopyFrom(node)
    del copy.input[:]
    texts = [changed(source) for source in sources(node)]
    copy.input.extend(dict.fromkeys(x for x in texts if x and x.startswith("^")))
    controls = list(copy.input)
    del copy.input[:]
    copy.input.extend([*(x for x in texts if x and not x.startswith("^")), *controls])
    return copy


def function_of(
    name: str,
    nodes: Nodes,
    signature: Sequence[tuple[str, int]],
    arguments: Mapping[Source, str],
    results: Sequence[tuple[Source, int]],
    effects: Sequence[str] = (),
) -> FunctionDef:
    """Returns the function of the nodes that lead to `results` (tensors, and their types) and to `effects`. `signature`
    has the names and types of its arguments; `arguments`, which tensors they are."""
    made = FunctionDef()
    made.signature.name = name
    given = {source.node for source in arguments}
    ends = [source.node for source, _ in results if source not in arguments]
    inside = set(ancestors(nodes, [*ends, *effects], lambda node: node.name in given))
    _require_regular(name, (nodes[x] for x in inside))

    def named(source: Source) -> str | None:
        if source in arguments:
            return arguments[source]
        if source.is_control:
            return str(source) if source.node in inside else None
        if source.node not in inside:
            raise Error(f"{source} is used in {name}, but comes from outside of it")
        return _output_name(nodes[source.node], source.index)

    for argument, dtype in signature:
        made.signature.input_arg.add(name=argument, type=dtype)
    for index, (source, dtype) in enumerate(results):
        made.signature.output_arg.add(name=f"result_{index}", type=dtype)
        made.ret[f"result_{index}"] = named(source) or ""
    for end in effects:
        made.signature.control_output.append(end)
        made.control_ret[end] = end
    made.signature.is_stateful = bool(effects)
    made.node_def.extend(with_sources(nodes[x], named) for x in nodes if x in inside)
    return made


SWITCHES = ("Switch", "_SwitchN")
"""Ops that pass their first operand to the branch that the second one chooses."""

CONTROL_FLOW = frozenset({"Enter", "Exit", "LoopCond", "Merge", "NextIteration", *SWITCHES})
"""The ops of which loops and conditionals consist in TensorFlow 1."""


def _require_regular(name: str, nodes: Iterable[NodeDef]) -> None:
    for node in nodes:
        if node.op in CONTROL_FLOW:
            raise Error(f"{node.name} in {name} is a {node.op} that belongs to no loop or conditional")


def _output_name(node: NodeDef, index: int) -> str:
    """Returns the name of an output inside functions, `node:output:index`."""
    for output in declared(node).output_arg:
        count = _length(node, output)
        if index < count:
            return f"{node.name}:{output.name}:{index}"
        index -= count
    raise Error(f"{node.name} has no output {index}")


def declared(node: NodeDef) -> OpDef:
    """Returns what TensorFlow declares of a node's op."""
    found = op_def_registry.get(node.op)
    if found is None:
        raise Error(f"{node.name} has the op {node.op}, which TensorFlow does not have")
    return found


def type_of_output(node: NodeDef, index: int) -> int:
    """Returns the type of an output of a node."""
    for output in declared(node).output_arg:
        count = _length(node, output)
        if index < count:
            if output.type_list_attr:
                return node.attr[output.type_list_attr].list.type[index]
            return node.attr[output.type_attr].type if output.type_attr else output.type
        index -= count
    raise Error(f"{node.name} has no output {index}")


def _length(node: NodeDef, output: OpDef.ArgDef) -> int:
    if output.number_attr:
        return node.attr[output.number_attr].i
    return len(node.attr[output.type_list_attr].list.type) if output.type_list_attr else 1


def caller(
    name: str,
    op: str,
    functions: Mapping[str, str | list[str]],
    inputs: Iterable[str],
    types: Mapping[str, Sequence[int]],
) -> NodeDef:
    """Returns a node that calls functions; `functions` and `types` are attributes, by their names."""
    node = tf.compat.v1.NodeDef(name=name, op=op, input=inputs)
    for attribute, called in functions.items():
        if isinstance(called, str):
            node.attr[attribute].func.name = called
        else:
            node.attr[attribute].list.func.extend(NameAttrList(name=x) for x in called)
    for attribute, given in types.items():
        node.attr[attribute].list.SetInParent()
        node.attr[attribute].list.type.extend(given)
    return node


def output_of(node: NodeDef, index: int, name: str, dtype: int) -> NodeDef:
    """Returns a node that stands for an output of another one, under a name that others use."""
    made = tf.compat.v1.NodeDef(name=name, op="Identity", input=[str(Source(node.name, index))])
    made.attr["T"].type = dtype
    return made


def unused(wish: str, nodes: Nodes) -> str:
    """Returns a name that no node has."""
    name, number = wish, 0
    while name in nodes:
        name, number = f"{wish}_{number}", number + 1
    return name
