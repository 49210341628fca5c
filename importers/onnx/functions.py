"""Functions: those of a model, and those by which ONNX defines an operator in terms of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import onnx

from trivium.importers.common import Calls
from trivium.importers.onnx.context import Operand
from trivium.importers.onnx.schemas import Schema, type_proto

Functions = Mapping[tuple[str, str, str], onnx.FunctionProto]
"""The functions of a model, by domain, name and overload."""

DEFAULT_DOMAINS = ("", "ai.onnx")


def key_of(node: onnx.NodeProto) -> tuple[str, str, str]:
    """Returns what identifies the function that a node calls, if the model has one."""
    return node.domain, node.op_type, node.overload


class Body(NamedTuple):
    """The definition of a node by other nodes: these nodes, the versions of the operator sets that they use, and the
    names of the inputs and outputs."""

    name: str
    nodes: Sequence[onnx.NodeProto]
    opsets: Mapping[str, int]
    inputs: Sequence[str]
    outputs: Sequence[str]


def body_of(function: onnx.FunctionProto, node: onnx.NodeProto, defaults: Iterable[onnx.AttributeProto] = ()) -> Body:
    """Returns a function's body for a node: references to attributes of the function become the node's."""
    given = {attribute.name: attribute for attribute in (*defaults, *function.attribute_proto, *node.attribute)}
    nodes = [_with_attributes(inner, given) for inner in function.node]
    return Body(function.name, nodes, opsets_of(function.opset_import), function.input, function.output)


def opsets_of(entries: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Returns the version of each operator set by its domain."""
    return {"" if entry.domain in DEFAULT_DOMAINS else entry.domain: entry.version for entry in entries}


def is_defined(schema: Schema | None) -> bool:
    """Whether ONNX defines an operator by a function."""
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def definition_of(schema: Schema, node: onnx.NodeProto, operands: Sequence[Operand], opset: int) -> Body | None:
    """Returns the function by which ONNX defines a node for operands of these types; `None` if it has none for
    them."""
    if plain := schema.function_opset_versions:
        data = schema.get_function_with_opset_version(_fitting(plain, opset))
    elif built := schema.context_dependent_function_opset_versions:
        types = [type_proto(x).SerializeToString() for x in operands]
        version = _fitting(built, opset)
        data = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), types)
    else:
        return None
    function = data if isinstance(data, onnx.FunctionProto) else onnx.FunctionProto.FromString(data)
    defaults = [attribute.default_value for attribute in schema.attributes.values() if attribute.default_value.type]
    body = body_of(function, node, defaults)
    opsets = {"": onnx.defs.onnx_opset_version(), **body.opsets}  # some bodies do not say what they use
    if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute):
        opsets[""] = opset  # the graph, which is most of the body, is written in the model's
    return body._replace(opsets=opsets) if body.nodes else None


def _fitting(versions: Sequence[int], opset: int) -> int:
    """Returns the newest version of an operator set that is not too new; the oldest, if all are: ONNX defined some
    operators by functions later, which say what version they use."""
    return max((version for version in versions if version <= opset), default=min(versions))


def require_bounded(graph: onnx.GraphProto, functions: Functions) -> None:
    """Rejects a model whose own functions are recursive, or have far more nodes after inlining."""
    names = {_path(key): key for key in functions}

    def called(node: onnx.NodeProto) -> Iterator[str]:
        name = _path(key_of(node))
        if name in names:
            yield name

    def nodes_of(name: str) -> list[onnx.NodeProto]:
        return list(with_inner(functions[names[name]].node))

    Calls(nodes_of, called).require_bounded(list(with_inner(graph.node)))


def _with_attributes(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """Returns a node whose references to attributes of a function, also those in graphs inside it, are `given`."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        source = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if source is not None:
            added = copy.attribute.add()
            added.CopyFrom(source)
            added.name = attribute.name
            _set_attributes(added, given)
    return copy


def _set_attributes(attribute: onnx.AttributeProto, given: Mapping[str, onnx.AttributeProto]) -> None:
    graphs = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs
    for graph in graphs:
        nodes = [_with_attributes(node, given) for node in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)


def with_inner(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yields nodes, and those of the graphs inside them."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from with_inner(graph.node)


def _path(key: tuple[str, str, str]) -> str:
    return "::".join(part for part in key if part)
