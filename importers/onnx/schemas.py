"""ONNX's definitions of its operators: what a node must have by them, and what ONNX's shape inference finds wrong with
a node that a rule cannot convert."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, cast

import onnx

from trivium.importers.onnx.context import Listed, Operand, require_rank, require_shape
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.known import evaluate_known
from trivium.ir.types import ElementType, TensorType

Option = onnx.defs.OpSchema.FormalParameterOption

DEPRECATED_LATER = frozenset({"GroupNormalization"})
"""Operators of which ONNX deprecated a version after models had used it, whereas other versions are valid."""


LOSSES = frozenset({"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})
"""Operators whose functions, by which ONNX defines them, accept targets of other sizes."""


class Schema(Protocol):
    """The schema of an operator, typed: the stubs of ONNX's own class lack most of it."""

    name: str
    domain: str
    since_version: int
    deprecated: bool
    attributes: Mapping[str, onnx.defs.OpSchema.Attribute]
    inputs: Sequence[onnx.defs.OpSchema.FormalParameter]
    has_function: bool
    has_context_dependent_function: bool
    function_opset_versions: Sequence[int]
    context_dependent_function_opset_versions: Sequence[int]

    def get_function_with_opset_version(self, version: int, /) -> bytes | onnx.FunctionProto: ...

    def get_context_dependent_function_with_opset_version(
        self, version: int, node: bytes, types: Sequence[bytes], /
    ) -> bytes | onnx.FunctionProto: ...


def schema_of(name: str, version: int, domain: str) -> Schema | None:
    """Returns the definition of an operator in a version of its operator set; `None` if there is none."""
    if not domain and version > onnx.defs.onnx_opset_version():
        return None
    try:
        return cast(Schema, onnx.defs.get_schema(name, version, domain))
    except onnx.defs.SchemaError:
        return None


class Parameter(NamedTuple):
    """An input of an operator: the classes of the types that it may have, and the name of its type in the operator's
    definition: inputs with the same one have the same type."""

    name: str
    classes: frozenset[str]
    variable: str
    is_required: bool


class Definition(NamedTuple):
    """The inputs of an operator, of which the last one may be `variadic`, and its attributes with their types."""

    inputs: Sequence[Parameter]
    is_variadic: bool
    attributes: Mapping[str, int]
    required: Sequence[str]


@cache
def _definition(name: str, version: int, domain: str) -> Definition:
    schema = schema_of(name, version, domain)
    assert schema is not None, name
    inputs = [
        Parameter(
            x.name,
            frozenset(map(_class_of, x.types)),
            x.type_str if x.is_homogeneous and "(" not in x.type_str else "",
            x.option == Option.Single or (x.option == Option.Variadic and x.min_arity > 0),
        )
        for x in schema.inputs
    ]
    attributes = {key: int(cast(Any, x.type).value) for key, x in schema.attributes.items()}
    required = [key for key, x in schema.attributes.items() if x.required]
    return Definition(inputs, bool(inputs) and schema.inputs[-1].option == Option.Variadic, attributes, required)


def _class_of(kind: str) -> str:
    """Returns the class of a type, as ONNX writes it: floats, integers and so on. Later versions of operators allow
    more types of a class, with the same meaning."""
    if not kind.startswith("tensor("):
        return kind.partition("(")[0]
    return (
        re.sub(r"\d.*", "", kind[len("tensor(") : -1]).removeprefix("u").replace("double", "float").replace("bf", "f")
    )


def require_valid(schema: Schema, node: onnx.NodeProto, operands: Sequence[Operand]) -> None:
    """Rejects a node that lacks an input or an attribute of its operator, or has one of another type."""
    defined = _definition(schema.name, schema.since_version, schema.domain)
    if len(node.input) > len(defined.inputs) and not defined.is_variadic:
        raise Error(f"{node.op_type} has {len(node.input)} inputs, expected at most {len(defined.inputs)}")
    kinds: dict[str, ElementType] = {}
    for index in range(max(len(node.input), len(defined.inputs))):
        parameter = defined.inputs[min(index, len(defined.inputs) - 1)]
        _require_input(node, index, parameter, operands[index] if index < len(operands) else None, kinds)
    for attribute in node.attribute:
        wanted = defined.attributes.get(attribute.name, attribute.type)
        if attribute.type != wanted:
            given, expected = _attribute_type(attribute.type), _attribute_type(wanted)
            raise Error(f"attribute {attribute.name} of {node.op_type} has type {given}, expected {expected}")
    names = {attribute.name for attribute in node.attribute}
    if missing := [name for name in defined.required if name not in names]:
        raise Error(f"{node.op_type} has no attribute {missing[0]}")
    if schema.name in LOSSES:
        _require_targets(*operands)


def _require_input(
    node: onnx.NodeProto, index: int, parameter: Parameter, operand: Operand, kinds: dict[str, ElementType]
) -> None:
    what = f"input {index} ({parameter.name}) of {node.op_type}"
    if operand is None:
        has_name = index < len(node.input) and node.input[index]
        if parameter.is_required and not ("optional" in parameter.classes and has_name):
            raise Error(f"{what} is omitted, expected a value")
    elif isinstance(operand, Listed):
        if "seq" not in parameter.classes:
            raise Error(f"{what} is a sequence, expected {_listed(parameter.classes)}")
    else:
        assert isinstance(operand.type, TensorType)
        kind = operand.type.element_type
        if _class_of(_name_of(kind)) not in parameter.classes:
            raise Error(f"{what} has type {operand.type}, expected {_listed(parameter.classes)}")
        if parameter.variable and kinds.setdefault(parameter.variable, kind) is not kind:
            raise Error(f"{what} has type {operand.type}, expected {kinds[parameter.variable]} as an input before it")


def _require_targets(x: Operand, target: Operand, weights: Operand = None) -> None:
    """Rejects a loss whose targets or weights have other sizes than its scores."""
    assert isinstance(x, Value)
    assert isinstance(target, Value)
    require_rank(x, "input", 2, or_more=True)
    require_shape(target, "target", [x.type.shape[0], *x.type.shape[2:]])
    if isinstance(weights, Value):
        require_shape(weights, "weight", [x.type.shape[1]])


def _listed(classes: Iterable[str]) -> str:
    return " or ".join(sorted(classes))


@cache
def _name_of(kind: ElementType) -> str:
    code = onnx.helper.np_dtype_to_tensor_dtype(kind.dtype)
    return f"tensor({onnx.TensorProto.DataType.Name(code).lower()})"


def _attribute_type(code: int) -> str:
    return onnx.AttributeProto.AttributeType.Name(cast(Any, code))


def finding_of(schema: Schema, node: onnx.NodeProto, operands: Sequence[Operand], opset: int) -> str | None:
    """Returns what ONNX finds wrong with a node for operands of these types; `None` if it finds nothing. Nodes with
    integers beyond 32 bits are not shown to it: it computes with them as if they fitted, and may end the process."""
    if any(abs(number) >> 31 for attribute in node.attribute for number in (attribute.i, *attribute.ints)):
        return None
    named = [(name, x) for name, x in zip(node.input, operands, strict=False) if isinstance(x, Value)]
    known = {name: evaluate_known(x) for name, x in named}
    data = {name: onnx.numpy_helper.from_array(array, name) for name, array in known.items() if array is not None}
    opsets = [onnx.helper.make_opsetid(node.domain, opset)]
    types = {name: type_proto(x) for name, x in named}
    try:
        onnx.shape_inference.infer_node_outputs(cast(Any, schema), node, types, data, opset_imports=opsets)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        return re.sub(r"^\[\w+\] ?", "", str(error))  # the kind of error, as ONNX writes it in front
    return None


def type_proto(x: Operand) -> onnx.TypeProto:
    """Returns the type of a tensor or a sequence of tensors as ONNX writes it, that of an empty sequence as one of
    floats; one that says nothing for any other operand."""
    if isinstance(x, Listed):
        shapes = {part.type.shape for part in x}
        first = type_proto(x[0]) if x else onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
        if len(shapes) > 1:
            first.tensor_type.ClearField("shape")
        return onnx.helper.make_sequence_type_proto(first)
    if not isinstance(x, Value):
        return onnx.TypeProto()
    assert isinstance(x.type, TensorType)
    code = onnx.helper.np_dtype_to_tensor_dtype(x.type.element_type.dtype)
    return onnx.helper.make_tensor_type_proto(code, x.type.shape)
