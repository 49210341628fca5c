"""The resources of a plain bytecode file: tensors that are stored separately from the attributes, each with a name."""

from __future__ import annotations

from typing import NamedTuple

from trivium.ir.attributes import DenseElements
from trivium.ir.bytecode.encoding import Cursor
from trivium.ir.bytecode.tables import EntryReader, Tables
from trivium.ir.errors import Error
from trivium.ir.text.elements import bytes_array
from trivium.ir.types import TensorType

_BLOB = 0
"""The kind of resources that are bytes; others are settings."""


class Resource(NamedTuple):
    """The name and the bytes of a resource."""

    name: str
    content: Cursor


def read_resources(offsets: Cursor, data: Cursor, tables: Tables) -> list[Resource]:
    """Reads the resources of dialects, in the order in which attributes number them; `data` has them in sequence."""
    found: list[Resource] = []
    for _ in range(offsets.count()):
        tables.string(offsets.varint(), offsets)
        _read_group(offsets, data, tables)
    while offsets.left:
        offsets.varint()
        found += _read_group(offsets, data, tables)
    return found


def _read_group(offsets: Cursor, data: Cursor, tables: Tables) -> list[Resource]:
    """Reads the resources of one dialect, or of one tool that wrote the file."""
    group = []
    for _ in range(offsets.count()):
        name, size, kind = tables.string(offsets.varint(), offsets), offsets.varint(), offsets.byte()
        start = data.base + data.pos
        content = Cursor(data.take(size), start)
        group.append(Resource(name, content if kind == _BLOB else Cursor(b"")))
    return group


def read_dense_resource(reader: EntryReader) -> DenseElements:
    """Reads an attribute that is a resource: its type and its number. The elements are not copied."""
    kind, number = reader.expect(reader.type(), TensorType), reader.varint()
    if number >= len(reader.tables.resources):
        raise reader.error(f"resource {number} is referenced, the file has {len(reader.tables.resources)}")
    name, content = reader.tables.resources[number]
    cursor = Cursor(content.data, content.base)
    alignment, size = cursor.varint(), cursor.varint()
    cursor.align(alignment)
    try:
        return DenseElements(bytes_array(cursor.take(size), kind), kind, name)
    except ValueError as error:
        raise Error(f"the resource {name} {error}") from None
