"""The attributes and types of StableHLO and CHLO in plain MLIR bytecode, that of programs in non-portable form. They
are only read; Trivium always writes portable files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import get_args, get_origin, get_type_hints

from trivium.ir import ops  # noqa: F401  declares the attributes
from trivium.ir.attributes import ENUMERATIONS, STRUCTS, DenseElements, Enumeration, Struct, is_attribute
from trivium.ir.bytecode.tables import Dialect, EntryReader, EntryWriter, Read
from trivium.ir.bytecode.vhlo import enumeration_reader
from trivium.ir.bytecode.vhlo_types import read_extents
from trivium.ir.errors import Error
from trivium.ir.mesh import MeshAxis, SubAxis
from trivium.ir.types import TOKEN, Bounds, FutureType, Type

_CODES = {
    **{1: "channel_handle", 2: "comparison_direction", 3: "comparison_type", 4: "conv", 5: "dot", 6: "fft_type"},
    **{7: "gather", 8: "precision", 9: "rng_algorithm", 10: "rng_distribution", 11: "scatter", 12: "transpose"},
    **{14: "output_operand_alias", 15: "dot_algorithm", 16: "result_accuracy_mode", 17: "result_accuracy"},
    **{18: "replica_group_mesh_axes", 19: "sub_axis_info", 20: "axis_ref", 21: "mesh_axis", 22: "mesh"},
}
"""Structs and enumerations by their codes in StableHLO."""
_CHLO_CODES = {0: "comparison_direction", 1: "comparison_type"}


def _optional(kind: type) -> Read:
    return lambda reader: reader.expect(reader.attribute(), kind) if reader.byte() else None


def _mesh_axes(reader: EntryReader) -> tuple[MeshAxis, ...]:
    return tuple(reader.expect(axis, MeshAxis) for axis in reader.expect(reader.attribute(), tuple))


_FIELDS: dict[object, Read] = {
    int: EntryReader.signed,
    float: EntryReader.double,
    bool: lambda reader: bool(reader.byte()),
    str: EntryReader.string,
    Type: EntryReader.type,
    tuple[int, ...]: EntryReader.signeds,
    tuple[MeshAxis, ...]: _mesh_axes,
    SubAxis | None: _optional(SubAxis),
    DenseElements | None: _optional(DenseElements),
}
"""How a field of a struct is read, by its declared type."""


def _field_reader(kind: object) -> Read:
    if is_attribute(kind):
        return EntryReader.attribute
    if get_origin(kind) is tuple and is_attribute(get_args(kind)[0]):
        return EntryReader.attributes
    if isinstance(kind, type) and issubclass(kind, Enumeration):
        return lambda reader: reader.expect(reader.attribute(), kind)
    return _FIELDS[kind]


def _struct_reader(kind: type[Struct]) -> Callable[[EntryReader], Struct]:
    """Returns a function that reads a struct, whose fields are in the order of their declaration."""
    hints = get_type_hints(kind)
    readers = [_field_reader(hints[field.name]) for field in fields(kind)]
    return lambda reader: kind(*[read(reader) for read in readers])


def _reader(mnemonic: str) -> Read:
    return enumeration_reader(mnemonic) if mnemonic in ENUMERATIONS else _struct_reader(STRUCTS[mnemonic])


def refuse(out: EntryWriter, value: object) -> None:
    """The writer for attributes and types that are never written."""
    raise Error("plain bytecode can be read, but not written")


STABLEHLO = Dialect(
    {
        **{code: _reader(f"stablehlo.{mnemonic}") for code, mnemonic in _CODES.items()},
        13: lambda reader: Bounds(read_extents(reader)),
    },
    {0: lambda reader: TOKEN, 1: lambda reader: FutureType(reader.types())},
    refuse,
    refuse,
)
CHLO = Dialect({code: _reader(f"chlo.{mnemonic}") for code, mnemonic in _CHLO_CODES.items()}, {}, refuse, refuse)
