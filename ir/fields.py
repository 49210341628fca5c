"""The fields of a declared op: what an annotation of its class means, and how a field is read from an op."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, get_args, get_origin

from trivium.ir.codecs import Codec, codec_of
from trivium.ir.core import Operation, Region, Value


class Role(Enum):
    OPERAND = "operand"
    REGION = "region"
    RESULT = "result"
    ATTRIBUTE = "attribute"


Operand = Annotated[Value, Role.OPERAND, ""]
OptionalOperand = Annotated[Value | None, Role.OPERAND, "?"]
Operands = Annotated[tuple[Value, ...], Role.OPERAND, "*"]
Result = Annotated[Value, Role.RESULT, ""]
Results = Annotated[tuple[Value, ...], Role.RESULT, "*"]
Regions = Annotated[tuple[Region, ...], Role.REGION, "*"]

REQUIRED = object()
"""The default of a field that has none."""


@dataclass(frozen=True)
class Field:
    """One declared field. `arity` is `*` for a list, `?` for an optional field."""

    name: str
    role: Role
    arity: str = ""
    default: object = REQUIRED


@dataclass(frozen=True, kw_only=True)
class AttributeField(Field):
    """A declared attribute, and how its value is read and written."""

    codec: Codec


def field_of(cls: type, name: str, hint: object) -> Field:
    """Returns the field that an annotation of a class declares. An attribute's default is the value of that name."""
    if get_origin(hint) is Annotated and isinstance(get_args(hint)[1], Role):
        _, role, arity = get_args(hint)
        return Field(name, role, arity, REQUIRED if role is not Role.RESULT and arity != "?" else None)
    if hint is Region:
        return Field(name, Role.REGION)
    default = vars(cls).get(name, REQUIRED)
    for base in cls.__mro__[1:]:
        if default is not REQUIRED:
            break
        default = vars(base).get(name, REQUIRED)
        default = REQUIRED if isinstance(default, property) else default
    codec = codec_of(hint)
    if default not in (REQUIRED, None):
        default = codec.coerce(default)
    return AttributeField(name, Role.ATTRIBUTE, "", default, codec=codec)


def attribute_getter(name: str) -> Callable[[Operation], object]:
    """Returns a function that reads an attribute."""
    return lambda op: op.attributes.get(name)


def group_getter(fields: tuple[Field, ...], index: int, source: str) -> Callable[[Operation], object]:
    """Returns a function that finds a declared group in the flat list. With at most one list among the fields, the
    group is a fixed slice."""
    variadic = [position for position, field in enumerate(fields) if field.arity]
    arity = fields[index].arity
    from_end = index - len(fields)
    if len(variadic) > 1:
        return _sized_getter(fields, index, source)
    if not arity:
        position = index if not variadic or index < variadic[0] else from_end
        return lambda op: getattr(op, source)[position]
    end = from_end + 1 or None
    if arity == "*":
        return lambda op: getattr(op, source)[index:end]
    return lambda op: next(iter(getattr(op, source)[index:end]), None)


def _sized_getter(fields: tuple[Field, ...], index: int, source: str) -> Callable[[Operation], object]:
    key = "operands" if source == "_operands" else source

    def get(op: Operation) -> object:
        items = getattr(op, source)
        sizes = (op.segments or {}).get(key) or group_sizes(fields, len(items))
        start = sum(sizes[:index])
        group = items[start : start + sizes[index]]
        return group if fields[index].arity == "*" else group[0] if group else None

    return get


def group_sizes(fields: tuple[Field, ...], count: int) -> tuple[int, ...]:
    """Returns the sizes of the groups of `count` values if nothing states them: all lists have the same length."""
    lists = sum(field.arity == "*" for field in fields)
    optional = sum(field.arity == "?" for field in fields)
    fixed = len(fields) - lists - optional
    if not lists:
        spare = count - fixed
        return tuple(1 if not field.arity else int((spare := spare - 1) >= 0) for field in fields)
    each = max(count - fixed, 0) // lists
    return tuple({"": 1, "*": each, "?": 0}[field.arity] for field in fields)
