"""The schemas of TensorFlow's ops: how a node's inputs are grouped into arguments, and what its attributes mean. A node
is bound to its rule here, and rejected if it has an attribute that the rule does not take."""

from __future__ import annotations

import inspect
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue, NameAttrList
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto
from tensorflow.python.framework import op_def_registry

from trivium.importers.binding import signature_of
from trivium.importers.tensorflow.context import Context, Operand, Rule
from trivium.importers.tensorflow.ranks import require_ranks

WITHOUT_MEANING = frozenset(
    {
        # where and how TensorFlow would run the op
        *(
            "use_cudnn_on_gpu",
            "parallel_iterations",
            "use_inter_op_parallelism",
            "use_locking",
            "config",
            "config_proto",
        ),
        *("executor_type", "container", "shared_name", "debug_name", "allowed_devices", "swap_memory"),
        # checks that always hold, and types that the operands already determine
        *("validate_indices", "validate_shape", "output_shapes", "message", "summarize"),
        # the gradients that a matrix product is used for
        *("grad_a", "grad_b", "grad_x", "grad_y"),
    }
)
"""Attributes that do not change what a program means."""


AttributeValue = (
    str | bool | int | float | tf.DType | TensorShapeProto | TensorProto | tuple["AttributeValue", ...] | None
)
"""An attribute in Python's terms: text as `str`, lists as tuples, functions by name."""

RawValue = bytes | bool | int | float | tf.DType | TensorShapeProto | TensorProto | NameAttrList | list["RawValue"]
"""An attribute as TensorFlow returns it."""

PASSED_UNCHANGED = frozenset({"Tensor", "Operand", "TensorList", "Optional"})
"""The annotations of inputs that a rule takes as they are."""


@dataclass(frozen=True)
class Attribute:
    """A declared attribute: its kind (`int`, `type`, `func`...) and its default, `None` where there is none."""

    kind: str
    default: AttributeValue


@dataclass(frozen=True)
class Schema:
    """The declaration of an op. An input that is a list names the attribute with its length."""

    inputs: tuple[tuple[str, str], ...]
    attributes: dict[str, Attribute]
    is_stateful: bool


@cache
def schema_of(op: str) -> Schema:
    """Returns the schema of a registered op."""
    declared = op_def_registry.get(op)
    inputs = tuple((argument.name, argument.number_attr or argument.type_list_attr) for argument in declared.input_arg)
    attributes = {
        attribute.name: Attribute(
            attribute.type, _default(attribute.default_value) if attribute.HasField("default_value") else None
        )
        for attribute in declared.attr
    }
    return Schema(inputs, attributes, declared.is_stateful)


def bind(
    ctx: Context, node: tf.Operation, rule: Rule, operands: Sequence[Operand]
) -> tuple[list[Operand | list[Operand]], dict[str, AttributeValue]]:
    """Returns the arguments with which to call a node's rule."""
    schema = schema_of(node.type)
    grouped = _grouped(node, schema, operands)
    require_ranks(ctx, [(name, group) for (name, _), group in zip(schema.inputs, grouped, strict=True)])
    groups = iter(grouped)
    positional: list[Operand | list[Operand]] = []
    named: dict[str, AttributeValue] = {}
    _, *parameters = signature_of(rule).python.parameters.values()
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [_read(ctx, x, parameter) for group in groups for x in _listed(group)]
        elif parameter.kind is parameter.KEYWORD_ONLY:
            # A rule of several ops has a default for an attribute that only some of them declare.
            if parameter.default is parameter.empty or parameter.name in schema.attributes:
                named[parameter.name] = attribute_of(node, parameter.name)
        elif parameter.default is parameter.empty:
            positional.append(_read(ctx, next(groups), parameter))
    _require_defaults(ctx, node, schema, named)
    return positional, named


def attribute_of(node: tf.Operation, name: str) -> AttributeValue:
    """Returns an attribute of a node."""
    return _plain(node.get_attr(name))


def _grouped(node: tf.Operation, schema: Schema, operands: Sequence[Operand]) -> list[Operand | list[Operand]]:
    groups: list[Operand | list[Operand]] = []
    position = 0
    for _, length in schema.inputs:
        if not length:
            groups.append(operands[position])
            position += 1
            continue
        count = node.get_attr(length)
        count = count if isinstance(count, int) else len(count)
        groups.append(list(operands[position : position + count]))
        position += count
    return groups


def _read(ctx: Context, group: Operand | list[Operand], parameter: inspect.Parameter) -> Operand | list[Operand]:
    kind = str(parameter.annotation).removeprefix("list[").removesuffix("]")
    if kind in PASSED_UNCHANGED:
        return group
    read = ctx.known if kind == "Known" else ctx.value
    return [read(x, parameter.name) for x in group] if isinstance(group, list) else read(group, parameter.name)


def _require_defaults(ctx: Context, node: tf.Operation, schema: Schema, taken: Container[str]) -> None:
    for name, attribute in schema.attributes.items():
        if name in taken or name in WITHOUT_MEANING or attribute.kind in ("type", "list(type)"):
            continue
        if attribute.default is None:  # a length, or a function that the rule looks up
            continue
        value = attribute_of(node, name)
        if value != attribute.default:
            ctx.unsupported(name, value, f"its default, {attribute.default!r}")


def _listed(group: Operand | list[Operand]) -> list[Operand]:
    return group if isinstance(group, list) else [group]


def _plain(value: RawValue) -> AttributeValue:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return value.name if isinstance(value, NameAttrList) else value


def _default(attribute: AttrValue) -> AttributeValue:
    kind = attribute.WhichOneof("value")
    assert kind is not None, attribute
    value = getattr(attribute, kind)
    if kind == "list":
        field = next((fields for fields in (value.s, value.i, value.f, value.b) if fields), ())
        return tuple(_plain(entry) for entry in field)
    return _plain(value)
