"""How a declared attribute (`dimension: int`) becomes an attribute of the file format (`dimension = 0 : i64`), and
back. Each annotation has one codec, so that ops never spell it out."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import numpy as np

from trivium.ir.attributes import (
    Attribute,
    DenseArray,
    DenseElements,
    Dictionary,
    Enumeration,
    Float,
    Integer,
    Struct,
    SymbolRef,
    Unit,
    is_attribute,
)
from trivium.ir.errors import VerificationError, shortened
from trivium.ir.location import Location
from trivium.ir.mesh import ReplicaGroupMeshAxes
from trivium.ir.types import F32, F64, I1, I32, I64, FunctionType, TensorType, Type

Ints = tuple[int, ...]
"""`array<i64: ...>`; in older files a rank-1 `dense` tensor."""
Bools = tuple[bool, ...]
"""`array<i1: ...>`."""
Pairs = tuple[tuple[int, int], ...]
"""`dense<...> : tensor<Nx2xi64>`: low and high of each dimension."""
IntMatrix = Annotated[tuple[tuple[int, ...], ...], "matrix"]
"""`dense<...> : tensor<NxMxi64>`, for example for replica groups."""
ReplicaGroups = Annotated[IntMatrix | ReplicaGroupMeshAxes, "replica groups"]
"""A matrix, or the axes of a mesh (`#stablehlo.replica_group_mesh_axes<...>`)."""
I32Int = Annotated[int, I32]
"""An `i32` attribute."""
F32Float = Annotated[float, F32]
"""An `f32` attribute."""


Same = TypeVar("Same")


@dataclass(frozen=True)
class Codec:
    """`coerce` turns what a caller passed into the declared Python value; `encode` and `decode` translate that value to
    and from the file format. Each raises `TypeError` or `ValueError` for anything else."""

    what: str
    coerce: Callable[[Any], object]
    encode: Callable[[Any], Attribute]
    decode: Callable[[Attribute], object]


def codec_of(annotation: object) -> Codec:
    """Returns the codec of a declared annotation; `X | None` has the codec of `X`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if is_attribute(annotation):
        return Codec("attribute", _same, _same, _same)
    if origin in (Union, types.UnionType):
        return codec_of(next(kind for kind in arguments if kind is not type(None)))
    if annotation in _FIXED:
        return _FIXED[annotation]
    if origin is Annotated:
        return _integer_codec(arguments[1]) if arguments[0] is int else _float_codec(arguments[1])
    if origin is tuple:
        return _array_codec(codec_of(arguments[0]))
    if isinstance(annotation, type) and issubclass(annotation, Enumeration):
        return Codec(annotation.__name__, annotation, _same, _instance(annotation))
    if isinstance(annotation, type) and issubclass(
        annotation, Struct | Type | SymbolRef | Dictionary | Location | Unit
    ):
        return Codec(annotation.__name__, _instance(annotation), _same, _instance(annotation))
    raise TypeError(f"no attribute has the annotation {annotation}")


def _same(value: Same) -> Same:
    return value


def _instance(kind: type) -> Callable[[object], Any]:
    def check(value: object) -> object:
        if kind is Dictionary and type(value) is dict:
            return Dictionary(value)
        if not isinstance(value, kind):
            raise TypeError(f"has {value!r}")
        return value

    return check


def _int(value: Any) -> int:
    if isinstance(value, bool | np.bool_) or int(value) != value:
        raise TypeError(f"has {value!r}")
    return int(value)


def _bool(value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"has {value!r}")
    return bool(value)


def _integer_codec(kind: Type) -> Codec:
    return Codec(f"{kind} integer", _int, lambda value: Integer(value, kind), _number_of(kind, _int))


def _float_codec(kind: Type) -> Codec:
    return Codec(f"{kind} float", float, lambda value: Float(value, kind), _number_of(kind, float))


def _number_of(kind: Type, convert: Callable[[Any], object]) -> Callable[[Attribute], object]:
    """Returns a function that reads numbers of one type. A number of another type is a different attribute."""

    def decode(attribute: Attribute) -> object:
        if not isinstance(attribute, Integer | Float):
            return convert(attribute)
        if attribute.type is not kind:
            raise TypeError(f"has {attribute!r}")
        return convert(attribute.value)

    return decode


def _array_codec(element: Codec) -> Codec:
    def coerce(values: Any) -> tuple:
        if isinstance(values, str):
            raise TypeError(f"has {values!r}")
        return tuple(element.coerce(value) for value in values)

    def encode(values: tuple) -> tuple:
        return tuple(element.encode(value) for value in values)

    def decode(attribute: Attribute) -> tuple:
        if not isinstance(attribute, tuple):
            raise TypeError(f"has {attribute!r}")
        return tuple(element.decode(value) for value in attribute)

    return Codec(f"array of {element.what}", coerce, encode, decode)


def _numbers(convert: Callable[[Any], object]) -> Callable[[Any], tuple]:
    """Returns a function that reads a flat list of numbers, in either of the forms that files use."""

    def read(values: Any) -> tuple:
        if isinstance(values, DenseArray):
            values = values.values
        elif isinstance(values, DenseElements):
            values = values.expanded().reshape(-1).tolist()
        return tuple(convert(value.value if isinstance(value, Integer) else value) for value in values)

    return read


def _stored(element: Type, read: Callable[[Any], tuple]) -> Callable[[Any], tuple]:
    """Returns a function that reads numbers of one element type. An array of another type is a different attribute."""

    def decode(values: Any) -> tuple:
        kind = values.type if isinstance(values, DenseElements) else values
        if not isinstance(values, DenseElements | DenseArray) or kind.element_type is not element:
            raise TypeError(f"has {values!r}")
        return read(values)

    return decode


def _matrix(values: Any) -> tuple[tuple[int, ...], ...]:
    rows = values.expanded().tolist() if isinstance(values, DenseElements) else values
    return tuple(tuple(_int(value) for value in row) for row in rows)


def _matrix_attribute(rows: tuple[tuple[int, ...], ...], columns: int) -> DenseElements:
    columns = len(rows[0]) if rows else columns
    return DenseElements(
        np.array(rows, dtype=np.int64).reshape(len(rows), columns), TensorType((len(rows), columns), I64)
    )


def _groups(value: Any) -> tuple[tuple[int, ...], ...] | ReplicaGroupMeshAxes:
    return value if isinstance(value, ReplicaGroupMeshAxes) else _matrix(value)


def _stored_groups(value: Attribute) -> tuple[tuple[int, ...], ...] | ReplicaGroupMeshAxes:
    return value if isinstance(value, ReplicaGroupMeshAxes) else _stored(I64, _matrix)(value)


def _groups_attribute(value: tuple[tuple[int, ...], ...] | ReplicaGroupMeshAxes) -> Attribute:
    return value if isinstance(value, ReplicaGroupMeshAxes) else _matrix_attribute(value, 0)


def _elements(value: object) -> DenseElements:
    return value if isinstance(value, DenseElements) else DenseElements(np.asarray(value))


_FIXED: dict[object, Codec] = {
    int: _integer_codec(I64),
    float: _float_codec(F64),
    bool: Codec("bool", _bool, _same, _bool),
    str: Codec("string", _instance(str), _same, _instance(str)),
    Ints: Codec(
        "list of integers", _numbers(_int), lambda values: DenseArray(I64, values), _stored(I64, _numbers(_int))
    ),
    Bools: Codec(
        "list of booleans", _numbers(bool), lambda values: DenseArray(I1, values), _stored(I1, _numbers(bool))
    ),
    Pairs: Codec("list of pairs", _matrix, lambda rows: _matrix_attribute(rows, 2), _stored(I64, _matrix)),
    IntMatrix: Codec("matrix of integers", _matrix, lambda rows: _matrix_attribute(rows, 0), _stored(I64, _matrix)),
    ReplicaGroups: Codec("matrix of integers, or axes of a mesh", _groups, _groups_attribute, _stored_groups),
    DenseElements: Codec("elements", _elements, _same, _instance(DenseElements)),
    FunctionType: Codec("function type", _instance(FunctionType), _same, _instance(FunctionType)),
}


def coerce(codec: Codec, op: str, name: str, value: object) -> Any:
    """Converts what a caller passed for attribute `name` to the declared Python value, or raises
    `VerificationError`."""
    return _converted(codec.coerce, codec, op, name, value)


def decode(codec: Codec, op: str, name: str, attribute: Attribute) -> Any:
    """Converts an attribute that was read to the declared Python value, or raises `VerificationError`."""
    return _converted(codec.decode, codec, op, name, attribute)


def _converted(convert: Callable[[Any], object], codec: Codec, op: str, name: str, value: object) -> Any:
    try:
        return convert(value)
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise VerificationError(f"{op}: attribute {name} has {shortened(repr(value))}, expected {codec.what}") from None
