"""The attributes of VHLO, StableHLO's versioned dialect, in the bytes of an artifact. They correspond to ours one to
one, except that VHLO has strings for symbols; the field of an op determines which strings are symbols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trivium.ir.attributes import (
    ENUMERATIONS,
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
from trivium.ir.bits import float_bits, float_of_bits
from trivium.ir.bytecode.elements import elements_bytes, elements_of
from trivium.ir.bytecode.tables import Dialect, EntryReader, EntryWriter, home_of, text_of_attribute
from trivium.ir.bytecode.versions import MESH_GROUPS, RESULT_ACCURACY
from trivium.ir.bytecode.vhlo_types import TYPE_READERS, Encoding, read_extents, write_extents, write_type
from trivium.ir.errors import Error, shortened
from trivium.ir.location import Location
from trivium.ir.mesh import AxisRef, Mesh, MeshAxis, ReplicaGroupMeshAxes, SubAxis
from trivium.ir.ops.control import CustomCallApiVersion, OutputOperandAlias
from trivium.ir.ops.transcendental import ResultAccuracy, ResultAccuracyMode
from trivium.ir.types import (
    I1,
    I32,
    I64,
    Bounds,
    FloatType,
    IndexType,
    IntegerType,
    TensorType,
    Type,
)


@dataclass(frozen=True)
class ApiVersion:
    """A custom call's `api_version`: an enumeration here, an integer in StableHLO."""

    value: int


# Attributes: the code of each kind, and the bytes after the code

_ENUMERATIONS = {
    3: "stablehlo.comparison_direction",
    4: "stablehlo.comparison_type",
    7: "stablehlo.fft_type",
    11: "stablehlo.precision",
    12: "stablehlo.rng_algorithm",
    13: "stablehlo.rng_distribution",
    16: "stablehlo.transpose",
    19: "stablehlo.result_accuracy_mode",
}
_FIRST_MEMBER = {"stablehlo.rng_distribution": 1}
"""The members of an enumeration are numbered in the order of their declaration, from zero or from this number."""


def enumeration_reader(mnemonic: str) -> Callable[[EntryReader], Enumeration]:
    """Returns a function that reads the number of a member."""
    members = dict(enumerate(ENUMERATIONS[mnemonic], _FIRST_MEMBER.get(mnemonic, 0)))

    def read(reader: EntryReader) -> Enumeration:
        number = reader.varint()
        if number not in members:
            raise reader.error(f"{mnemonic} has {number}, expected one of {', '.join(map(str, members))}")
        return members[number]

    return read


def _read_dictionary(reader: EntryReader) -> Dictionary:
    entries = {}
    for _ in range(reader.count()):
        name = reader.expect(reader.attribute(), str)
        entries[name] = reader.attribute()
    return Dictionary(entries)


def _read_float(reader: EntryReader) -> Float:
    kind = reader.expect(reader.type(), FloatType)
    return Float(float_of_bits(reader.integer(kind.width), kind), kind)


def _read_integer(reader: EntryReader) -> Integer | bool:
    kind = reader.expect(reader.type(), IntegerType, IndexType)
    bits = reader.integer(width_of(kind))
    return bool(bits) if kind is I1 else Integer(signed_value(bits, kind), kind)


def width_of(kind: Type) -> int:
    """Returns the number of bits of an integer type."""
    return kind.width if isinstance(kind, IntegerType) else 64


def signed_value(bits: int, kind: Type) -> int:
    """Returns the integer that these bits stand for."""
    width = width_of(kind)
    unsigned = isinstance(kind, IntegerType) and kind.signedness == "u"
    return bits if unsigned or not bits >> (width - 1) & 1 else bits - (1 << width)


def _read_alias(reader: EntryReader) -> OutputOperandAlias:
    return OutputOperandAlias(reader.signeds(), reader.signed(), reader.signeds())


def _read_tensor(reader: EntryReader) -> DenseElements:
    kind = reader.expect(reader.type(), TensorType)
    return elements_of(reader.blob(), kind)


def _read_accuracy(reader: EntryReader) -> ResultAccuracy:
    atol, rtol, ulps = reader.double(), reader.double(), reader.signed()
    return ResultAccuracy(atol, rtol, ulps, reader.expect(reader.attribute(), ResultAccuracyMode))


def _read_axis_ref(reader: EntryReader) -> AxisRef:
    name = reader.expect(reader.attribute(), str)
    return AxisRef(name, reader.expect(reader.attribute(), SubAxis) if reader.varint() else None)


def _read_mesh_groups(reader: EntryReader) -> ReplicaGroupMeshAxes:
    mesh = reader.expect(reader.attribute(), str, Mesh)
    axes = reader.expect(reader.attribute(), tuple)
    return ReplicaGroupMeshAxes(SymbolRef(mesh) if isinstance(mesh, str) else mesh, axes)


def _read_mesh(reader: EntryReader) -> Mesh:
    axes = reader.expect(reader.attribute(), tuple)
    devices = reader.optional_attribute()
    for axis in axes:
        reader.expect(axis, MeshAxis)
    return Mesh(axes, devices if devices is None else reader.expect(devices, DenseElements))


def _read_api_version(reader: EntryReader) -> Integer:
    return Integer(int(CustomCallApiVersion(reader.varint())), I32)


_ATTRIBUTES: dict[int, Callable[[EntryReader], object]] = {
    1: EntryReader.attributes,
    2: lambda reader: reader.varint() != 0,
    5: _read_api_version,
    6: _read_dictionary,
    8: _read_float,
    9: _read_integer,
    10: _read_alias,
    14: EntryReader.string,
    15: _read_tensor,
    17: EntryReader.type,
    18: lambda reader: Bounds(read_extents(reader)),
    20: _read_accuracy,
    21: lambda reader: SubAxis(reader.signed(), reader.signed()),
    22: _read_axis_ref,
    23: _read_mesh_groups,
    24: lambda reader: MeshAxis(reader.expect(reader.attribute(), str), reader.signed()),
    25: _read_mesh,
    **{code: enumeration_reader(mnemonic) for code, mnemonic in _ENUMERATIONS.items() if mnemonic in ENUMERATIONS},
}
_CODES = {mnemonic: code for code, mnemonic in _ENUMERATIONS.items()}


def _write_attribute(out: EntryWriter, value: Any) -> None:
    match value:
        case bool():
            out.varint(2)
            out.varint(value)
        case str():
            out.varint(14)
            out.string(value)
        case tuple():
            out.varint(1)
            out.attributes(value)
        case Dictionary():
            out.varint(6)
            out.varint(len(value))
            for name, entry in sorted(value.items()):
                out.attribute(name)
                out.attribute(entry)
        case Integer(number, kind):
            out.varint(9)
            out.type(kind)
            out.integer(number, width_of(kind))
        case Float(number, FloatType() as kind):
            out.varint(8)
            out.type(kind)
            out.integer(float_bits(number, kind), kind.width)
        case DenseElements():
            out.varint(15)
            out.type(value.type)
            out.blob(elements_bytes(value))
        case Type():
            out.varint(17)
            out.type(value)
        case _:
            _write_rare_attribute(out, value)


def _write_rare_attribute(out: EntryWriter, value: Any) -> None:
    match value:
        case Enumeration() if value.MNEMONIC in _CODES:  # type: ignore[attr-defined]
            mnemonic = value.MNEMONIC  # type: ignore[attr-defined]
            out.varint(_CODES[mnemonic])
            out.varint(list(type(value)).index(value) + _FIRST_MEMBER.get(mnemonic, 0))
        case ApiVersion(number):
            out.varint(5)
            out.varint(number)
        case OutputOperandAlias(outputs, operand, operands):
            out.varint(10)
            out.signeds(outputs)
            out.signed(operand)
            out.signeds(operands)
        case Encoding(Bounds(bounds)):
            out.varint(18)
            write_extents(out, bounds)
        case ResultAccuracy(atol, rtol, ulps, mode):
            out.require(RESULT_ACCURACY, "an attribute result_accuracy")
            out.varint(20)
            out.double(atol)
            out.double(rtol)
            out.signed(ulps)
            out.attribute(mode)
        case ReplicaGroupMeshAxes() | AxisRef() | SubAxis() | Mesh() | MeshAxis():
            out.require(MESH_GROUPS, "groups along axes of a mesh")
            _write_mesh_attribute(out, value)
        case _:
            text = shortened(text_of_attribute(value, brief=True))
            raise Error(f"the attribute {text} cannot be written: StableHLO's artifacts have no such attributes")


def _write_mesh_attribute(out: EntryWriter, value: Any) -> None:
    match value:
        case ReplicaGroupMeshAxes(mesh, axes):
            out.varint(23)
            out.attribute(mesh)
            out.attribute(axes)
        case AxisRef(name, part):
            out.varint(22)
            out.attribute(name)
            out.varint(part is not None)
            if part is not None:
                out.attribute(part)
        case SubAxis(pre_size, size):
            out.varint(21)
            out.signed(pre_size)
            out.signed(size)
        case Mesh(axes, devices):
            out.varint(25)
            out.attribute(axes)
            out.optional_attribute(devices)
        case MeshAxis(name, size):
            out.varint(24)
            out.attribute(name)
            out.signed(size)


def _canonical(value: Any) -> Any:
    """Converts lists of numbers to tensors, and symbols to strings."""
    match value:
        case DenseArray(element_type=kind, values=values) if kind in (I64, I1):
            array = np.array(values, np.int64 if kind is I64 else np.bool_)
            return DenseElements(array, TensorType((len(values),), kind))
        case SymbolRef(name, ()):
            return name
    return value


def _home(value: Attribute) -> str:
    """Returns the dialect of an attribute that VHLO cannot encode. It must encode everything of StableHLO and VHLO."""
    match value:
        case Unit() | Location() | SymbolRef() | DenseArray():
            return "builtin"
        case Struct() | Enumeration() | OpaqueAttribute():
            dialect = home_of(value)
            return "" if dialect in ("stablehlo", "vhlo") else dialect
    return ""


VHLO = Dialect(_ATTRIBUTES, TYPE_READERS, _write_attribute, write_type, _canonical, _home)
