"""The attributes and types of MLIR's builtin dialect in bytecode: the dictionaries of ops' attributes, the attributes
of modules, and locations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trivium.ir.attributes import (
    UNIT,
    Attribute,
    DenseArray,
    DenseElements,
    Dictionary,
    Enumeration,
    Float,
    Integer,
    OpaqueAttribute,
    Struct,
    SymbolRef,
    Unit,
)
from trivium.ir.bits import float_bits, float_of_bits, view
from trivium.ir.bytecode.elements import elements_bytes, elements_of
from trivium.ir.bytecode.resources import read_dense_resource
from trivium.ir.bytecode.tables import Dialect, EntryReader, EntryWriter, home_of
from trivium.ir.bytecode.versions import FILE_RANGES
from trivium.ir.bytecode.vhlo import signed_value, width_of
from trivium.ir.bytecode.vhlo_types import read_extents, write_extents
from trivium.ir.errors import Error
from trivium.ir.location import (
    UNKNOWN,
    CallSiteLocation,
    FileLocation,
    FusedLocation,
    Location,
    NameLocation,
)
from trivium.ir.types import (
    FLOATS,
    I1,
    INDEX,
    NONE,
    Bounds,
    BufferType,
    ComplexType,
    FloatType,
    FunctionType,
    IndexType,
    IntegerType,
    TensorType,
    TupleType,
    Type,
    UnrankedTensorType,
)


@dataclass(frozen=True)
class OpAttributes:
    """The dictionary of an op's attributes; the values are of the op's own dialect."""

    dialect: str
    entries: tuple[tuple[str, Any], ...]


# Attributes


def _read_dictionary(reader: EntryReader) -> Dictionary:
    entries = {}
    for _ in range(reader.count()):
        name = reader.expect(reader.attribute(), str)
        entries[name] = reader.attribute()
    return Dictionary(entries)


def _read_nested_symbol(reader: EntryReader) -> SymbolRef:
    root = reader.expect(reader.attribute(), str)
    return SymbolRef(root, tuple(reader.expect(part, SymbolRef).name for part in reader.attributes()))


def _read_integer(reader: EntryReader) -> Integer | bool:
    kind = reader.expect(reader.type(), IntegerType, IndexType)
    bits = reader.integer(width_of(kind))
    return bool(bits) if kind is I1 else Integer(signed_value(bits, kind), kind)


def _read_float(reader: EntryReader) -> Float:
    kind = reader.expect(reader.type(), FloatType)
    return Float(float_of_bits(reader.integer(kind.width), kind), kind)


def _read_location(reader: EntryReader) -> Location:
    return reader.expect(reader.attribute(), Location)


def _read_locations(reader: EntryReader) -> tuple[Location, ...]:
    return tuple(_read_location(reader) for _ in range(reader.count()))


def _read_range(reader: EntryReader) -> FileLocation:
    file, places = reader.expect(reader.attribute(), str), [reader.varint() for _ in range(reader.count())]
    match places:
        case []:
            return FileLocation(file, end_line=0)
        case [line]:
            return FileLocation(file, line, 0, line)
        case [line, column, end_column]:
            return FileLocation(file, line, column, line, end_column)
        case _ if len(places) <= 4:
            return FileLocation(file, *places)
    raise reader.error(f"a range in a file has {len(places)} numbers, expected up to 4")


def _read_array(reader: EntryReader) -> DenseArray:
    kind, size, data = reader.type(), reader.varint(), reader.blob()
    reader.expect(kind, IntegerType, FloatType)
    if len(data) != size * kind.dtype.itemsize:
        raise reader.error(f"an array of {size} numbers has {len(data)} bytes")
    return DenseArray(kind, tuple(view(data, TensorType((size,), kind)).tolist()))


def _read_elements(reader: EntryReader) -> DenseElements:
    kind = reader.expect(reader.type(), TensorType)
    return elements_of(reader.blob(), kind)


_ATTRIBUTES: dict[int, Callable[[EntryReader], object]] = {
    0: EntryReader.attributes,
    1: _read_dictionary,
    2: EntryReader.string,
    4: lambda reader: SymbolRef(reader.expect(reader.attribute(), str)),
    5: _read_nested_symbol,
    6: EntryReader.type,
    7: lambda reader: UNIT,
    8: _read_integer,
    9: _read_float,
    10: lambda reader: CallSiteLocation(_read_location(reader), _read_location(reader)),
    11: lambda reader: FileLocation(reader.expect(reader.attribute(), str), reader.varint(), reader.varint()),
    12: lambda reader: FusedLocation(_read_locations(reader)),
    13: lambda reader: FusedLocation(_read_locations(reader), reader.attribute()),
    14: lambda reader: NameLocation(reader.expect(reader.attribute(), str), _read_location(reader)),
    15: lambda reader: UNKNOWN,
    16: read_dense_resource,
    17: _read_array,
    18: _read_elements,
    22: _read_range,
}


def _write_attribute(out: EntryWriter, value: Any) -> None:
    match value:
        case OpAttributes(dialect, entries):
            out.varint(1)
            out.varint(len(entries))
            for name, entry in entries:
                out.attribute(name)
                out.attribute(entry, dialect)
        case Location():
            _write_location(out, value)
        case str():
            out.varint(2)
            out.string(value)
        case bool():
            out.varint(8)
            out.type(I1)
            out.byte(value)
        case Integer(number, kind):
            out.varint(8)
            out.type(kind)
            out.integer(number, width_of(kind))
        case Float(number, FloatType() as kind):
            out.varint(9)
            out.type(kind)
            out.integer(float_bits(number, kind), kind.width)
        case tuple():
            out.varint(0)
            out.attributes(value)
        case Dictionary():
            _write_attribute(out, OpAttributes("builtin", tuple(sorted(value.items()))))
        case _:
            _write_rare_attribute(out, value)


def _write_rare_attribute(out: EntryWriter, value: Any) -> None:
    match value:
        case SymbolRef(name, nested):
            out.varint(5 if nested else 4)
            out.attribute(name)
            if nested:
                out.attributes([SymbolRef(part) for part in nested])
        case Type():
            out.varint(6)
            out.type(value)
        case Unit():
            out.varint(7)
        case DenseArray(element_type=IntegerType() | FloatType() as kind, values=values):
            out.varint(17)
            out.type(kind)
            out.varint(len(values))
            out.blob(np.array(values, kind.dtype).tobytes())
        case DenseElements():
            out.varint(18)
            out.type(value.type)
            out.blob(elements_bytes(value))
        case OpaqueAttribute(text):
            out.as_text(text)
        case _:
            raise Error(f"the attribute {value!r} cannot be written")


def _range_numbers(place: FileLocation) -> tuple[int, ...]:
    """Returns the numbers that MLIR keeps for a range in a file; for a range in one line without a column, only the
    line."""
    line, column, end_line, end_column = place.line, place.column, place.end_line or 0, place.end_column or 0
    if end_line != line:
        return line, column, end_line, end_column
    if not column:
        return (line,) if line or end_column else ()
    return (line, column) if end_column == column else (line, column, end_column)


def _write_location(out: EntryWriter, value: Location) -> None:
    match value:
        case FileLocation(file, line, column, end_line) if end_line is None or out.target < FILE_RANGES:
            out.varint(11)
            out.attribute(file)
            out.varint(line)
            out.varint(column)
        case FileLocation(file):
            numbers = _range_numbers(value)
            out.varint(22)
            out.attribute(file)
            out.varint(len(numbers))
            for number in numbers:
                out.varint(number)
        case NameLocation(name, child):
            out.varint(14)
            out.attribute(name)
            out.attribute(child)
        case CallSiteLocation(callee, caller):
            out.varint(10)
            out.attribute(callee)
            out.attribute(caller)
        case FusedLocation(locations, metadata):
            out.varint(12 if metadata is None else 13)
            out.attributes(locations)
            if metadata is not None:
                out.attribute(metadata)
        case _:
            out.varint(15)


# Types

_SIGNEDNESS = ("", "s", "u")
_SIMPLE: dict[int, Type] = {
    1: INDEX,
    12: NONE,
    **{code: FLOATS[name] for code, name in {3: "bf16", 4: "f16", 5: "f32", 6: "f64"}.items()},
}
_SIMPLE_CODES = {kind: code for code, kind in _SIMPLE.items()}
_NARROW = ("f8E5M2", "f8E4M3", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E3M4")
_NARROW = ("tf32", *_NARROW, "f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E8M0FNU")
"""Floats that only recently got codes, from 21 on; older readers know only their text."""


def _read_integer_type(reader: EntryReader) -> IntegerType:
    width, signedness = divmod(reader.varint(), 4)
    if signedness > 2 or not 0 < width < 10_000:
        raise reader.error(f"an integer type has width {width} and signedness {signedness}")
    return IntegerType(width, _SIGNEDNESS[signedness])


def _read_tensor_type(reader: EntryReader, encoding: Attribute | None = None) -> TensorType:
    shape = read_extents(reader)
    return TensorType(shape, reader.type(), encoding)


def _read_buffer_type(reader: EntryReader) -> BufferType:
    shape, element_type, layout = read_extents(reader), reader.type(), reader.attribute()
    places = ", ".join(f"d{index}" for index in range(len(shape)))
    if layout != OpaqueAttribute(f"affine_map<({places}) -> ({places})>"):
        raise reader.error(f"a buffer has the layout {layout}, expected none")
    return BufferType(shape, element_type)


_TYPES: dict[int, Callable[[EntryReader], Type]] = {
    **{code: lambda reader, kind=kind: kind for code, kind in _SIMPLE.items()},
    **{code: lambda reader, kind=FLOATS[name]: kind for code, name in enumerate(_NARROW, 21)},
    0: _read_integer_type,
    2: lambda reader: FunctionType(reader.types(), reader.types()),
    9: lambda reader: ComplexType(reader.expect(reader.type(), FloatType)),
    10: _read_buffer_type,
    13: _read_tensor_type,
    14: lambda reader: _read_tensor_type(reader, encoding=reader.attribute()),
    15: lambda reader: TupleType(reader.types()),
    18: lambda reader: UnrankedTensorType(reader.type()),
}


def _write_type(out: EntryWriter, kind: Type) -> None:
    match kind:
        case _ if kind in _SIMPLE_CODES:
            out.varint(_SIMPLE_CODES[kind])
        case IntegerType(width, signedness):
            out.varint(0)
            out.varint(width << 2 | _SIGNEDNESS.index(signedness))
        case TensorType(shape, element_type, None):
            out.varint(13)
            write_extents(out, shape)
            out.type(element_type)
        case _:
            out.as_text(str(kind))


def _home(value: Attribute) -> str:
    match value:
        case Struct() | Enumeration() | OpaqueAttribute() | Bounds():
            dialect = home_of(value)
            return "" if dialect == "builtin" else dialect
    return ""


BUILTIN = Dialect(_ATTRIBUTES, _TYPES, _write_attribute, _write_type, home=_home)
