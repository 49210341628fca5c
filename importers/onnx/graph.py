"""The loop over a graph's nodes: which rule converts a node, or which function it stands for; the values of tensors by
their names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx

from trivium.importers.binding import options_of
from trivium.importers.common import RAW_ERRORS, GraphImporter, place
from trivium.importers.onnx.context import Context, Listed, Operand, element_type, rule
from trivium.importers.onnx.files import array_of
from trivium.importers.onnx.functions import (
    DEFAULT_DOMAINS,
    Body,
    Functions,
    body_of,
    definition_of,
    is_defined,
    key_of,
)
from trivium.importers.onnx.order import in_order
from trivium.importers.onnx.schemas import DEPRECATED_LATER, Schema, finding_of, require_valid, schema_of
from trivium.ir.core import Value
from trivium.ir.errors import Error, UnsupportedOpError
from trivium.ir.location import Location
from trivium.ir.types import TensorType

log = logging.getLogger("trivium.onnx")

NEWEST = 28
"""The newest version of the operator set that the rules support. In a newer version, an operator is supported if it has
not changed."""

ADDED = frozenset({"SimplifiedLayerNormalization"})
"""The operators that ONNX Runtime adds to ONNX's own set."""

RUNTIME = "com.microsoft"
"""ONNX Runtime's own operator set. It has one version, which models that its optimizer writes need not name."""

WITHOUT_MEANING = frozenset({"consumed_inputs"})
"""Attributes of the first operator sets that say nothing about results."""


class OnnxImporter(GraphImporter[onnx.NodeProto, Context]):
    """Converts one graph. Graphs inside nodes get importers of their own, which can use the values of this one.
    `opsets` has the version of each operator set by its domain."""

    def __init__(
        self, emit: Context, functions: Functions, folder: str, opsets: Mapping[str, int], graph: str = "main"
    ):
        super().__init__(emit, graph)
        emit.enter = self._enter
        emit.folder = folder
        self.functions = functions
        self.folder = folder
        self.opsets = opsets
        self.environment: dict[str, Operand] = {}
        self.defined: set[str] = set()
        self.declared: dict[str, onnx.TypeProto.Tensor] = {}

    def name_of(self, node: onnx.NodeProto) -> str:
        return node.op_type if node.domain in DEFAULT_DOMAINS else f"{node.domain}::{node.op_type}"

    def rule_of(self, node: onnx.NodeProto) -> Callable[..., Value | Sequence[Value]] | None:
        if key_of(node) in self.functions:
            return _called
        schema, version = self._schema(node), self._version(node)
        if node.domain in DEFAULT_DOMAINS and schema is None and node.op_type not in ADDED:
            return None
        return rule.find(self.name_of(node), version) or (_called if is_defined(schema) else None)

    def _version(self, node: onnx.NodeProto) -> int:
        domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
        if domain == RUNTIME:
            return self.opsets.get(domain, 1)
        if domain not in self.opsets:
            raise Error(f"the model names no version of the operator set {domain or 'of ONNX'}")
        return self.opsets[domain]

    def _schema(self, node: onnx.NodeProto) -> Schema | None:
        """Returns the definition of an operator; `None` if its operator set has none, or one that is newer than the
        rules."""
        version, domain = self._version(node), "" if node.domain in DEFAULT_DOMAINS else node.domain
        schema = schema_of(node.op_type, version, domain)
        if (
            schema is None
            or (schema.deprecated and node.op_type not in DEPRECATED_LATER)
            or (not domain and schema.since_version > NEWEST)
        ):
            return None
        return schema

    def _definition(self, node: onnx.NodeProto) -> Schema | None:
        """Returns ONNX's definition of a node that is no function of the model."""
        return None if key_of(node) in self.functions else self._schema(node)

    def location_of(self, node: onnx.NodeProto) -> Location:
        stack = next((entry.value for entry in node.metadata_props if entry.key == "pkg.torch.onnx.stack_trace"), "")
        file, line, function = _innermost(stack)
        scope = node.name.rpartition("/")[0].strip("/")
        return place(node.name or self.name_of(node), file, line, function, scope)

    def describe(self, node: onnx.NodeProto) -> str:
        return f"{', '.join(node.output)} = {self.name_of(node)}({', '.join(node.input)})"

    def inner_nodes(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        is_defined_by_function = self.rule_of(node) is _called
        for attribute in node.attribute:
            # Those of an operator that ONNX defines by a function belong to its body.
            if attribute.type == onnx.AttributeProto.GRAPH and not is_defined_by_function:
                yield from attribute.g.node
        if (function := self.functions.get(key_of(node))) is not None:
            yield from function.node

    def convert(self, node: onnx.NodeProto, rule: Callable[..., Value | Sequence[Value]]) -> None:
        values = [self.read(name) if name else None for name in node.input]
        while values and values[-1] is None:  # trailing inputs that are omitted
            values.pop()
        name = self.name_of(node)
        self.emit.op, self.emit.outputs, self.emit.opset = name, len(node.output), self._version(node)
        if (schema := self._definition(node)) is not None:
            require_valid(schema, node, values)
        results = self._call(node, values) if rule is _called else self._apply(node, rule, values)
        missing = [output for output in node.output[len(results) :] if output]
        if missing:
            raise UnsupportedOpError(f"{name}: output {len(results)} ({missing[0]}) is not supported")
        for output, value in zip(node.output, results, strict=False):
            if output:
                self.define(output, value)

    def _apply(
        self, node: onnx.NodeProto, rule: Callable[..., Value | Sequence[Value]], values: Sequence[Operand]
    ) -> Sequence[Operand]:
        attributes = {attribute.name: _attribute(attribute) for attribute in node.attribute}
        options = options_of(self.emit, rule, len(values), attributes, WITHOUT_MEANING)
        try:
            results = rule(self.emit, *values, **options)
        except Error:
            raise
        except RAW_ERRORS as error:
            schema, version = self._schema(node), self._version(node)
            if schema is None or (finding := finding_of(schema, node, values, version)) is None:
                raise
            raise Error(f"{self.name_of(node)}: {finding}") from error
        return (results,) if isinstance(results, Value | Listed) else tuple(results)

    def define(self, name: str, value: Operand) -> None:
        """Records the value of a tensor that a node defines; a name has one value, with the type that it declares."""
        if name in self.defined:
            raise Error(f"tensor {name!r} is defined twice, expected once")
        self.defined.add(name)
        self.environment[name] = value
        if isinstance(value, Value) and (declared := self.declared.get(name)) is not None:
            _check_declared(name, value.type, declared)

    def read(self, name: str) -> Operand:
        """Returns the value of a tensor by its name."""
        if name not in self.environment:
            raise Error(f"tensor {name!r} is used before any node or input defines it")
        return self.environment[name]

    def run(self, graph: onnx.GraphProto) -> tuple[Operand, ...]:
        """Converts a whole graph. Returns the values of its outputs."""
        self.defined = {entry.name for entry in (*graph.input, *graph.initializer)}
        self.declared = {
            info.name: info.type.tensor_type
            for info in (*graph.value_info, *graph.output)
            if info.type.HasField("tensor_type")
        }
        for tensor in graph.initializer:
            self.environment[tensor.name] = self.emit.elements(array_of(tensor, self.folder))
        if graph.sparse_initializer:
            raise UnsupportedOpError("sparse initializers are not supported")
        self.convert_all(in_order(graph.node))
        return tuple(self.read(info.name) for info in graph.output)

    def _enter(self, emit: Context, graph: onnx.GraphProto, operands: Sequence[Operand]) -> tuple[Operand, ...]:
        importer = OnnxImporter(emit, self.functions, self.folder, self.opsets, graph.name or self.graph)
        importer.environment = dict(self.environment)
        importer.environment.update(zip((info.name for info in graph.input), operands, strict=True))
        return importer.run(graph)

    def _call(self, node: onnx.NodeProto, values: Sequence[Operand]) -> tuple[Operand, ...]:
        """Converts the function that a node stands for in place."""
        body = self._body(node, values)
        importer = OnnxImporter(self.emit.copied(), self.functions, self.folder, body.opsets, body.name)
        importer.environment.update(dict.fromkeys(body.inputs))  # those that the node omits
        importer.environment.update(zip(body.inputs, values, strict=False))
        importer.convert_all(in_order(body.nodes))
        wanted = zip(body.outputs, node.output, strict=False)
        return tuple(importer.read(name) if output else None for name, output in wanted)

    def _body(self, node: onnx.NodeProto, values: Sequence[Operand]) -> Body:
        if (function := self.functions.get(key_of(node))) is not None:
            return body_of(function, node)
        schema = self._schema(node)
        assert schema is not None
        body = definition_of(schema, node, values, self._version(node))
        if body is None:
            raise UnsupportedOpError(f"{self.name_of(node)}: ONNX defines no function for these operands")
        return body


def _check_declared(name: str, kind: TensorType, declared: onnx.TypeProto.Tensor) -> None:
    """Rejects a tensor whose elements have another type than the model declares. Another shape is only reported:
    converters of other libraries declare wrong ones, and what the nodes compute does not depend on it."""
    extents = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in declared.shape.dim]
    same_element = not declared.elem_type or element_type(declared.elem_type) is kind.element_type
    if same_element and (not declared.HasField("shape") or fits(kind.shape, extents)):
        return
    shape = extents if declared.HasField("shape") else "any shape"
    element = onnx.TensorProto.DataType.Name(declared.elem_type)
    difference = f"tensor {name!r} has type {kind}, the model declares {element} and {shape}"
    if not same_element:
        raise Error(difference)
    log.warning(difference)


def fits(shape: Sequence[int | None], extents: Sequence[int | str]) -> bool:
    """Whether a shape has the sizes of a model's input, as far as those are numbers."""
    return len(shape) == len(extents) and all(
        isinstance(extent, str) or size is None or extent == size for size, extent in zip(shape, extents, strict=True)
    )


def _attribute(attribute: onnx.AttributeProto) -> object:
    value = onnx.helper.get_attribute_value(attribute)
    try:
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, list) and value and isinstance(value[0], bytes):
            return [item.decode() for item in value]
    except UnicodeDecodeError:
        raise Error(f"attribute {attribute.name} has {value!r}, expected text in UTF-8") from None
    return value


def _called(ctx: Context) -> tuple[Value, ...]:
    """A placeholder for the rule of a model's own function, which is inlined."""
    return ()


def _innermost(stack: str) -> tuple[str, int, str]:
    """Returns file, line and function of the last frame of a Python stack trace, as torch.onnx.export records them."""
    frames = [line.strip() for line in stack.splitlines() if line.strip().startswith('File "')]
    if not frames:
        return "", 0, ""
    file, _, rest = frames[-1].removeprefix('File "').partition('", line ')
    line, _, function = rest.partition(", in ")
    return (file, int(line), function) if line.isdigit() else ("", 0, "")
