"""The loop over a graph's nodes, and its surroundings: the file, the operator sets, initializers, functions and the
signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike

import onnx

from trivium.importers.binding import options_of
from trivium.importers.common import Calls, GraphImporter, place, role
from trivium.importers.onnx.context import Context, element_type, rule
from trivium.importers.onnx.files import array_of, read_model
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.errors import Error, UnsupportedOpError
from trivium.ir.func import Function, Module
from trivium.ir.location import Location
from trivium.ir.types import TensorType

OLDEST, NEWEST = 13, 28
"""The versions of the operator set that the rules support. In a newer version, an operator is supported if it has not
changed."""

DEFAULT_DOMAINS = ("", "ai.onnx")


def import_module(
    model: onnx.ModelProto | str | PathLike[str], *, shapes: Mapping[str, Sequence[int]] | None = None
) -> Module:
    """Returns the module of an ONNX model: a path, or a `ModelProto`.

    Initializers are constants: views of the model's bytes. `shapes` maps inputs whose sizes are symbolic to their
    shapes. Raises `Error` if the model is not valid, `UnsupportedOpError` with every operator that has no rule."""
    model, folder = read_model(model)
    opset = _opset(model)
    functions = {(function.domain, function.name): function for function in model.functions}
    _require_bounded(model.graph, functions)
    graph = model.graph
    initializers = {tensor.name for tensor in graph.initializer}
    inputs = [info for info in graph.input if info.name not in initializers]
    types = [_input_type(info, shapes or {}) for info in inputs]
    unknown = sorted(set(shapes or {}) - {info.name for info in inputs})
    if unknown:
        raise Error(f"shapes has {', '.join(unknown)}, expected inputs: {', '.join(info.name for info in inputs)}")

    def body(builder: Builder, *arguments: Value) -> tuple[Value, ...]:
        emit = Context(builder.block)
        emit.opset = opset
        importer = OnnxImporter(emit, functions, folder)
        importer.environment.update(zip((info.name for info in inputs), arguments, strict=True))
        return importer.run(graph)

    main = Function.build(
        "main",
        types,
        body,
        arg_attrs=[role("input", info.name) for info in inputs],
        res_attrs=[role("output", info.name) for info in graph.output],
    )
    return Module.build(functions=[main])


class OnnxImporter(GraphImporter[onnx.NodeProto, Context]):
    """Converts one graph. Graphs inside nodes get importers of their own, which can use the values of this one."""

    def __init__(
        self, emit: Context, functions: Mapping[tuple[str, str], onnx.FunctionProto], folder: str, graph: str = "main"
    ):
        super().__init__(emit, graph)
        emit.enter = self._enter
        self.functions = functions
        self.folder = folder
        self.environment: dict[str, Value] = {}
        self.defined: set[str] = set()
        self.declared: dict[str, onnx.TypeProto.Tensor] = {}

    def name_of(self, node: onnx.NodeProto) -> str:
        return node.op_type if node.domain in DEFAULT_DOMAINS else f"{node.domain}::{node.op_type}"

    def rule_of(self, node: onnx.NodeProto) -> Callable[..., Value | Sequence[Value]] | None:
        if (node.domain, node.op_type) in self.functions:
            return _called
        name, opset = self.name_of(node), self.emit.opset
        if opset > NEWEST and node.domain in DEFAULT_DOMAINS and _has_changed(name, opset):
            return None
        return rule.find(name, opset)

    def location_of(self, node: onnx.NodeProto) -> Location:
        stack = next((entry.value for entry in node.metadata_props if entry.key == "pkg.torch.onnx.stack_trace"), "")
        file, line, function = _innermost(stack)
        scope = node.name.rpartition("/")[0].strip("/")
        return place(node.name or self.name_of(node), file, line, function, scope)

    def describe(self, node: onnx.NodeProto) -> str:
        return f"{', '.join(node.output)} = {self.name_of(node)}({', '.join(node.input)})"

    def inner_nodes(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from attribute.g.node
        if (function := self.functions.get((node.domain, node.op_type))) is not None:
            yield from function.node

    def convert(self, node: onnx.NodeProto, rule: Callable[..., Value | Sequence[Value]]) -> None:
        values = [self.read(name) if name else None for name in node.input]
        while values and values[-1] is None:  # trailing inputs that are omitted
            values.pop()
        name = self.name_of(node)
        self.emit.op, self.emit.outputs = name, len(node.output)
        if rule is _called:
            results = self._call(node, values)
        else:
            attributes = {attribute.name: _attribute(attribute) for attribute in node.attribute}
            results = rule(self.emit, *values, **options_of(self.emit, rule, len(values), attributes))
        results = (results,) if isinstance(results, Value) else tuple(results)
        missing = [output for output in node.output[len(results) :] if output]
        if missing:
            raise UnsupportedOpError(f"{name}: output {len(results)} ({missing[0]}) is not supported")
        for output, value in zip(node.output, results, strict=False):
            if output:
                self.define(output, value)

    def define(self, name: str, value: Value) -> None:
        """Records the value of a tensor that a node defines; a name has one value, with the type that it declares."""
        if name in self.defined:
            raise Error(f"tensor {name!r} is defined twice, expected once")
        self.defined.add(name)
        self.environment[name] = value
        if (declared := self.declared.get(name)) is not None:
            _check_declared(name, value.type, declared)

    def read(self, name: str) -> Value:
        """Returns the value of a tensor by its name."""
        if name not in self.environment:
            raise Error(f"tensor {name!r} is used before any node or input defines it")
        return self.environment[name]

    def run(self, graph: onnx.GraphProto) -> tuple[Value, ...]:
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
        self.convert_all(graph.node)
        return tuple(self.read(info.name) for info in graph.output)

    def _enter(self, emit: Context, graph: onnx.GraphProto, operands: Sequence[Value]) -> tuple[Value, ...]:
        importer = OnnxImporter(emit, self.functions, self.folder, graph.name or self.graph)
        importer.environment = dict(self.environment)
        importer.environment.update(zip((info.name for info in graph.input), operands, strict=True))
        return importer.run(graph)

    def _call(self, node: onnx.NodeProto, values: Sequence[Value | None]) -> tuple[Value, ...]:
        """Converts a model's own function in place. References to its attributes become the node's."""
        function = self.functions[node.domain, node.op_type]
        given = {attribute.name: attribute for attribute in function.attribute_proto}
        given.update({attribute.name: attribute for attribute in node.attribute})
        importer = OnnxImporter(self.emit.copied(), self.functions, self.folder, function.name)
        importer.environment.update(
            (name, value) for name, value in zip(function.input, values, strict=False) if value is not None
        )
        importer.convert_all([_with_attributes(inner, given) for inner in function.node])
        return tuple(importer.read(name) for name in function.output)


def _require_bounded(graph: onnx.GraphProto, functions: Mapping[tuple[str, str], onnx.FunctionProto]) -> None:
    """Rejects a model whose own functions are recursive, or have far more nodes after inlining."""
    names = {"::".join(key): key for key in functions}

    def called(node: onnx.NodeProto) -> Iterator[str]:
        name = f"{node.domain}::{node.op_type}"
        if name in names:
            yield name

    def nodes_of(name: str) -> list[onnx.NodeProto]:
        return list(_with_inner(functions[names[name]].node))

    Calls(nodes_of, called).require_bounded(list(_with_inner(graph.node)))


def _with_inner(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yields nodes, and those of the graphs inside them."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _with_inner(graph.node)


def _opset(model: onnx.ModelProto) -> int:
    versions = [entry.version for entry in model.opset_import if entry.domain in DEFAULT_DOMAINS]
    if not versions:
        raise Error("the model names no version of the ONNX operator set")
    if versions[0] < OLDEST:
        raise Error(
            f"the model has ONNX operator set {versions[0]}, expected at least {OLDEST}; "
            "onnx.version_converter.convert_version can raise it"
        )
    return versions[0]


def _input_type(info: onnx.ValueInfoProto, shapes: Mapping[str, Sequence[int]]) -> TensorType:
    if not info.type.HasField("tensor_type"):
        kind = info.type.WhichOneof("value") or "no type"
        raise UnsupportedOpError(f"input {info.name} has {kind}, expected a tensor")
    tensor = info.type.tensor_type
    kind = element_type(tensor.elem_type)
    extents = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in tensor.shape.dim]
    if info.name in shapes:
        given = tuple(int(extent) for extent in shapes[info.name])
        if tensor.HasField("shape") and not _fits(given, extents):
            raise Error(f"shapes gives input {info.name} {given}, expected a shape like {extents}")
        return TensorType(given, kind)
    known = tuple(extent for extent in extents if isinstance(extent, int))
    if min(known, default=0) < 0:
        raise Error(f"input {info.name} has shape {extents}, expected no negative extents")
    if not tensor.HasField("shape") or len(known) < len(extents):
        raise Error(
            f"input {info.name} has shape {extents}, expected numbers; give them as shapes={{'{info.name}': ...}}"
        )
    return TensorType(known, kind)


def _has_changed(name: str, opset: int) -> bool:
    """Whether an operator differs, in an operator set newer than the rules, from the newest version that they
    support."""
    if opset > onnx.defs.onnx_opset_version() or not onnx.defs.has(name):
        return True
    return onnx.defs.get_schema(name, opset).since_version > NEWEST


def _check_declared(name: str, kind: TensorType, declared: onnx.TypeProto.Tensor) -> None:
    """Rejects a tensor whose type differs from the one that the model declares for it, as far as that is known."""
    extents = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in declared.shape.dim]
    same_element = not declared.elem_type or element_type(declared.elem_type) is kind.element_type
    if not same_element or (declared.HasField("shape") and not _fits(kind.static_shape, extents)):
        shape = extents if declared.HasField("shape") else "any shape"
        element = onnx.TensorProto.DataType.Name(declared.elem_type)
        raise Error(f"tensor {name!r} has type {kind}, the model declares {element} and {shape}")


def _fits(shape: Sequence[int], extents: Sequence[int | str]) -> bool:
    """Whether a shape has the sizes of a model's input, as far as those are numbers."""
    return len(shape) == len(extents) and all(
        isinstance(extent, str) or extent == size for size, extent in zip(shape, extents, strict=True)
    )


def _attribute(attribute: onnx.AttributeProto) -> object:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list) and value and isinstance(value[0], bytes):
        return [item.decode() for item in value]
    return value


def _called(ctx: Context) -> tuple[Value, ...]:
    """A placeholder for the rule of a model's own function, which is inlined."""
    return ()


def _with_attributes(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    if not any(attribute.ref_attr_name for attribute in node.attribute):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        source = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if source is not None:
            copy.attribute.add().CopyFrom(source)
            copy.attribute[-1].name = attribute.name
    return copy


def _innermost(stack: str) -> tuple[str, int, str]:
    """Returns file, line and function of the last frame of a Python stack trace, as torch.onnx.export records them."""
    frames = [line.strip() for line in stack.splitlines() if line.strip().startswith('File "')]
    if not frames:
        return "", 0, ""
    file, _, rest = frames[-1].removeprefix('File "').partition('", line ')
    line, _, function = rest.partition(", in ")
    return (file, int(line), function) if line.isdigit() else ("", 0, "")
