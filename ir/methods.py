"""The functions of a declared op (`infer`, `check`, `evaluate`) as functions of an op: their parameters name the fields
that they receive."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from operator import attrgetter

from trivium.ir.core import Operation, Value
from trivium.ir.errors import Error
from trivium.ir.fields import Field, Role
from trivium.ir.types import Type

Fields = tuple[Field, ...]


def _type_of(value: Value | tuple[Value, ...] | None) -> Type | tuple[Type, ...] | None:
    if value is None:
        return None
    return tuple(item.type for item in value) if isinstance(value, tuple) else value.type


def static_caller(
    cls: type[Operation], fields: Fields, method: str, function: Callable[..., object]
) -> Callable[[Operation], object]:
    """Returns a function that calls `infer` or `check` with the fields that its parameters name."""
    getters: list[Callable[[Operation], object]] = []
    for name in inspect.signature(function).parameters:
        if name == "op":
            getters.append(lambda op: op)
            continue
        field = _named_field(cls, fields, method, name)
        typed = field.role in (Role.OPERAND, Role.RESULT)
        getters.append(_typed_getter(attrgetter(name)) if typed else attrgetter(name))
    return lambda op: function(*[get(op) for get in getters])


Getter = Callable[[Operation, Sequence[object], Sequence[object], object], object]
"""Picks one argument of `evaluate` from an op, the values of its operands, its regions as functions, and a context."""


def _typed_getter(get: Callable[[Operation], Value | tuple[Value, ...] | None]) -> Callable[[Operation], object]:
    return lambda op: _type_of(get(op))


def evaluate_caller(cls: type[Operation], fields: Fields, function: Callable[..., object]) -> Getter:
    """Returns a function that calls `evaluate`, with the flat operands and regions grouped as the op declares them."""
    getters: list[Getter] = []
    for name in inspect.signature(function).parameters:
        if name in ("op", "context"):
            getters.append(_SURROUNDINGS[name])
            continue
        field = _named_field(cls, fields, "evaluate", name)
        getters.append(_runtime_getter(cls, field))
    return lambda op, operands, regions, context: function(*[get(op, operands, regions, context) for get in getters])


_SURROUNDINGS: dict[str, Getter] = {
    "op": lambda op, operands, regions, context: op,
    "context": lambda op, operands, regions, context: context,
}


def _runtime_getter(cls: type[Operation], field: Field) -> Getter:
    get = attrgetter(field.name)
    if field.role is Role.ATTRIBUTE:
        return lambda op, operands, regions, context: get(op)
    if field.role is Role.RESULT:
        return lambda op, operands, regions, context: _type_of(get(op))
    get = getattr(cls, field.name).fget
    if field.role is Role.OPERAND:
        return lambda op, operands, regions, context: get(_Stand(op, tuple(operands), ()))
    return lambda op, operands, regions, context: get(_Stand(op, (), tuple(regions)))


class _Stand:
    """A stand-in for an op, from which a group getter picks run-time values."""

    __slots__ = ("_operands", "regions", "segments")

    def __init__(self, op: Operation, operands: tuple[object, ...], regions: tuple[object, ...]):
        self._operands, self.regions, self.segments = operands, regions, op.segments


def _named_field(cls: type[Operation], fields: Fields, method: str, name: str) -> Field:
    for field in fields:
        if field.name == name:
            return field
    raise Error(f"{cls.NAME}: {method} has a parameter {name}, which is not a field of the op")
