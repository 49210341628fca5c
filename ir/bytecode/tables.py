"""The tables of a bytecode file: strings, and the attributes and types of each dialect, which refer to one another by
number. Reading is lazy: an entry is decoded at its first use. Writing collects entries as they occur and, like MLIR,
gives the small numbers to those that are used most."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from trivium.ir.attributes import MAX_DEPTH, MAX_EXPANSION, Attribute, Enumeration, OpaqueAttribute, Struct
from trivium.ir.bytecode.encoding import Cursor, Output, bytes_of
from trivium.ir.bytecode.refusals import Refusals
from trivium.ir.bytecode.versions import OTHER_DIALECTS, Version
from trivium.ir.errors import Error, ParseError
from trivium.ir.text.attributes import AttributeWriter
from trivium.ir.types import Bounds, Type

if TYPE_CHECKING:
    from trivium.ir.bytecode.resources import Resource

Item = TypeVar("Item")

Read = Callable[["EntryReader"], object]


@dataclass(frozen=True)
class Dialect:
    """How a dialect encodes its attributes and types: readers by code, a writer for attributes and one for types."""

    attributes: Mapping[int, Read]
    types: Mapping[int, Read]
    write_attribute: Callable[[EntryWriter, Any], None]
    write_type: Callable[[EntryWriter, Type], None]
    canonical: Callable[[Any], Any] = lambda value: value
    """Returns the canonical form of an attribute, which is the same for all attributes that the dialect encodes alike.
    """
    home: Callable[[Attribute], str] = lambda value: ""
    """Returns the dialect of an attribute that this dialect cannot encode; empty if it can."""


# Reading


@dataclass
class _Entries:
    """The attributes, or the types, of a file. An entry has its dialect, its position, and its size combined with a low
    bit that is 0 for text."""

    what: str
    found: list[tuple[str, int, int]] = field(default_factory=list)
    values: dict[int, Any] = field(default_factory=dict)
    extents: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The nesting depth of each decoded entry, and its size in bytes, with everything that it refers to."""


class Tables:
    """The contents of the sections before the program. `parse_text` reads an entry that is stored as MLIR text."""

    def __init__(self, dialects: Mapping[str, Dialect], parse_text: Callable[[str, str], Any]):
        self.strings: Sequence[str] = ()
        self.data = Cursor(b"")
        self.limit = MAX_EXPANSION
        """The largest size in bytes of an entry with everything that it refers to."""
        self.resources: Sequence[Resource] = ()
        self._dialects = dialects
        self._parse_text = parse_text
        self._entries = {what: _Entries(what) for what in ("attribute", "type")}
        self._depth = 0

    def add(self, what: str, dialect: str, sizes: Sequence[int]) -> None:
        """Adds entries of a dialect, which are in sequence in `data`."""
        found, data, pos = self._entries[what].found, self.data, self.data.pos
        for size in sizes:
            found.append((dialect, pos, size))
            pos += size >> 1
        if pos > len(data.data):
            raise data.error(f"the {what}s of dialect {dialect} end at {pos}, there are {len(data.data)} bytes")
        data.pos = pos

    def attribute(self, number: int, asker: Cursor) -> Any:
        """Returns the attribute with this number; `asker` is the position of the reference, for errors."""
        values = self._entries["attribute"].values
        return values[number] if number in values else self._decoded(self._entries["attribute"], number, asker)

    def type(self, number: int, asker: Cursor) -> Any:
        """Returns the type with this number."""
        values = self._entries["type"].values
        return values[number] if number in values else self._decoded(self._entries["type"], number, asker)

    def string(self, number: int, asker: Cursor) -> str:
        """Returns the string with this number."""
        if number >= len(self.strings):
            raise asker.error(f"string {number} is referenced, the file has {len(self.strings)}")
        return self.strings[number]

    def part(self, what: str, number: int, asker: EntryReader) -> Any:
        """Returns an entry that is part of another one, and adds its depth and size to those of the other."""
        value = self.attribute(number, asker) if what == "attribute" else self.type(number, asker)
        depth, size = self._entries[what].extents[number]
        asker.depth = max(asker.depth, depth + 1)
        asker.size += size
        if asker.depth > MAX_DEPTH:
            raise asker.error(f"entries are nested more than {MAX_DEPTH} deep")
        if asker.size > self.limit:
            raise asker.error(f"has {asker.size} bytes with all that it refers to, expected at most {self.limit}")
        return value

    def _decoded(self, entries: _Entries, number: int, asker: Cursor) -> Any:
        if number >= len(entries.found):
            raise asker.error(f"{entries.what} {number} is referenced, the file has {len(entries.found)}")
        if self._depth >= MAX_DEPTH:
            raise asker.error(f"entries are nested more than {MAX_DEPTH} deep, or refer to themselves")
        dialect, start, size = entries.found[number]
        data = self.data
        reader = EntryReader(Cursor(data.data[start : start + (size >> 1)], data.base + start), self)
        self._depth += 1
        try:
            value = self._decode(entries.what, dialect, reader, bool(size & 1))
        finally:
            self._depth -= 1
        entries.values[number] = value
        entries.extents[number] = reader.depth, reader.size + (size >> 1)
        return value

    def _decode(self, what: str, dialect: str, reader: EntryReader, is_encoded: bool) -> Any:
        try:
            if not is_encoded:
                return self._read_text(what, reader)
            if dialect not in self._dialects:
                raise reader.error(f"the file has {what}s of dialect {dialect} in an unknown encoding")
            codes = getattr(self._dialects[dialect], f"{what}s")
            code = reader.varint()
            if code not in codes:
                raise reader.error(f"{dialect} has {what} code {code}, which is unknown")
            value = codes[code](reader)
        except ParseError:
            raise
        except (Error, ValueError, TypeError, OverflowError) as error:
            raise reader.error(f"a {dialect} {what} is invalid: {getattr(error, 'message', error)}") from None
        if reader.left:
            raise reader.error(f"a {dialect} {what} has {reader.left} bytes too many")
        return value

    def _read_text(self, what: str, reader: EntryReader) -> Any:
        try:
            return self._parse_text(what, reader.text())
        except ParseError as error:
            raise reader.error(f"{what} {error.message}", 0) from None


class EntryReader(Cursor):
    """Reads the bytes of one entry. `depth` and `size` are those of the entries that it refers to."""

    __slots__ = ("depth", "size", "tables")

    def __init__(self, data: Cursor, tables: Tables):
        super().__init__(data.data, data.base)
        self.tables = tables
        self.depth = self.size = 0

    def attribute(self) -> Any:
        return self.tables.part("attribute", self.varint(), self)

    def optional_attribute(self) -> Any:
        """Reads an attribute, or `None`."""
        number = self.varint()
        return self.tables.part("attribute", number >> 1, self) if number & 1 else None

    def attributes(self) -> tuple[Any, ...]:
        return tuple([self.attribute() for _ in range(self.count())])

    def type(self) -> Any:
        kind = self.tables.part("type", self.varint(), self)
        if not isinstance(kind, Type):
            raise self.error(f"has a {type(kind).__name__}, expected a type")
        return kind

    def types(self) -> tuple[Type, ...]:
        return tuple([self.type() for _ in range(self.count())])

    def string(self) -> str:
        text = self.tables.string(self.varint(), self)
        # A long string counts less than the same number of bytes elsewhere: attributes of many arguments may share it.
        self.size += len(text) // 16
        return text

    def signeds(self) -> tuple[int, ...]:
        return tuple([self.signed() for _ in range(self.count())])

    def expect(self, value: object, *kinds: type) -> Any:
        """Returns the value if it is of one of these classes; raises an error otherwise."""
        if not isinstance(value, kinds):
            raise self.error(f"has a {type(value).__name__}, expected {' or '.join(kind.__name__ for kind in kinds)}")
        return value


# Writing


class Entry:
    """An attribute or a type to be written: its bytes, and references to entries and strings without numbers yet."""

    __slots__ = ("count", "dialect", "encoded", "number", "parts")

    def __init__(self, dialect: str):
        self.dialect = dialect
        self.count = 0
        self.number = -1
        self.encoded = True
        self.parts: list[Output | Entry | Flagged | str] = []


@dataclass(frozen=True)
class Flagged:
    """An optional reference that is present."""

    entry: Entry


class EntryWriter(Output):
    """Writes the bytes of one entry; everything that it refers to is added to the tables immediately."""

    __slots__ = ("_entry", "_tables")

    def __init__(self, entry: Entry, tables: WriteTables):
        super().__init__()
        self._entry = entry
        self._tables = tables
        entry.parts.append(self)

    def attribute(self, value: Any, dialect: str = "") -> None:
        """Refers to another attribute, of the same dialect unless another is named."""
        self._refer(self._tables.attribute(dialect or self._entry.dialect, value))

    def optional_attribute(self, value: Any) -> None:
        """Refers to an attribute, or `None`."""
        if value is None:
            self.varint(0)
        else:
            self._refer(Flagged(self._tables.attribute(self._entry.dialect, value)))

    def type(self, kind: Type) -> None:
        self._refer(self._tables.type(self._entry.dialect, kind))

    def attributes(self, values: Sequence[Attribute]) -> None:
        self.varint(len(values))
        for value in values:
            self.attribute(value)

    def types(self, kinds: Sequence[Type]) -> None:
        self.varint(len(kinds))
        for kind in kinds:
            self.type(kind)

    def signeds(self, values: Sequence[int]) -> None:
        self.varint(len(values))
        for value in values:
            self.signed(value)

    def string(self, text: str) -> None:
        self._refer(text)

    def as_text(self, text: str) -> None:
        """Writes the entry as MLIR text."""
        self._entry.encoded = False
        self.raw(bytes_of(text) + b"\0")

    @property
    def target(self) -> Version:
        """The version of the file."""
        return self._tables.target

    def require(self, version: Version, what: str) -> None:
        """Records that files older than `version` cannot have this entry."""
        self._tables.refusals.require(version, what)

    def _refer(self, part: Entry | Flagged | str) -> None:
        # This writer stays the last part, so that what follows is written after the reference.
        self._entry.parts[-1:] = [self.split(), part, self]


class WriteTables:
    """The attributes and types of a program to be written, for files of version `target`."""

    def __init__(self, dialects: Mapping[str, Dialect], target: Version):
        self.target = target
        self.refusals = Refusals(target)
        self.dialects: dict[str, int] = {}
        self.strings: dict[str, int] = {}
        self._codecs = dialects
        self._attributes: dict[tuple[str, Hashable], Entry] = {}
        self._types: dict[tuple[str, Hashable], Entry] = {}

    def attribute(self, dialect: str, value: Any) -> Entry:
        """Returns the entry of an attribute, and counts one more use by an op or an attribute of `dialect`."""
        value = self._codecs[dialect].canonical(value)
        # Values of different types may be equal in Python, for example True and 1.
        key = (dialect, (type(value), value))
        entry = self._attributes.get(key)
        if entry is not None:
            entry.count += 1
            return entry
        home = self._codecs[dialect].home(value)
        if not home:
            return self._entry(self._attributes, dialect, key[1], value, "write_attribute")
        if dialect == "vhlo":
            self.refusals.require(OTHER_DIALECTS, f"an attribute of dialect {home}")
        entry = self._attributes[key] = self._foreign(home, value)
        return entry

    def type(self, dialect: str, kind: Type) -> Entry:
        """Returns the entry of a type, and counts one more use."""
        return self._entry(self._types, dialect, kind, kind, "write_type")

    def string(self, text: str) -> int:
        """Returns the number of a string."""
        return self.strings.setdefault(text, len(self.strings))

    def number(self) -> tuple[list[Entry], list[Entry]]:
        """Numbers all entries, and returns the attributes and the types in order."""
        # An attribute that several dialects use is a single entry.
        return self._sorted(list(dict.fromkeys(self._attributes.values()))), self._sorted(list(self._types.values()))

    def dialect(self, name: str) -> int:
        """Returns the number of a dialect."""
        return self.dialects.setdefault(name, len(self.dialects))

    def _entry(self, table: dict, dialect: str, key: Hashable, value: Any, write: str) -> Entry:
        entry = table.get((dialect, key))
        if entry is None:
            entry = table[dialect, key] = Entry(dialect)
            self.dialect(dialect)
            getattr(self._codecs[dialect], write)(EntryWriter(entry, self), value)
        else:
            entry.count += 1
        return entry

    def _foreign(self, dialect: str, value: Attribute) -> Entry:
        """Returns the entry of another dialect's attribute; as text if that dialect's encoding is unknown."""
        if dialect in self._codecs:
            return self.attribute(dialect, value)
        entry = self._attributes.get((dialect, value))
        if entry is None:
            entry = self._attributes[dialect, value] = Entry(dialect)
            self.dialect(dialect)
            EntryWriter(entry, self).as_text(text_of_attribute(value))
        else:
            entry.count += 1
        return entry

    def _sorted(self, entries: list[Entry]) -> list[Entry]:
        entries.sort(key=lambda entry: -entry.count)
        by_dialect(entries, lambda entry: self.dialects[entry.dialect])
        for number, entry in enumerate(entries):
            entry.number = number
        return entries

    def emit(self, entry: Entry, out: Output) -> None:
        """Writes the bytes of an entry, after all entries were numbered."""
        for part in entry.parts:
            if isinstance(part, Entry):
                out.varint(part.number)
            elif isinstance(part, Flagged):
                out.flagged(part.entry.number, True)
            elif isinstance(part, str):
                out.varint(self.string(part))
            else:
                out.append(part)


def home_of(value: Attribute) -> str:
    """Returns the dialect of an attribute that is not a plain Python value."""
    match value:
        case OpaqueAttribute(text):
            return text[1:].partition(".")[0].partition("<")[0] if text.startswith("#") else "builtin"
        case Struct() | Enumeration():
            return value.MNEMONIC.partition(".")[0]
        case Bounds():
            return "stablehlo"
    return "builtin"


def text_of_attribute(value: Attribute, brief: bool = False) -> str:
    """Returns an attribute as MLIR text; with `brief`, shortened for messages."""
    return AttributeWriter(brief).attribute(value)


def by_dialect(items: list[Item], dialect_of: Callable[[Item], int]) -> None:
    """Groups items by dialect, among those whose numbers take the same number of bytes."""
    start = length = first = 0
    for size in range(1, 9):
        # MLIR's own arithmetic: the number of values that `size` bytes can encode, minus the previous length.
        length = (1 << 7 * size) - length
        stretch = items[start : start + length]
        stretch.sort(key=lambda item, first=first: -1 if dialect_of(item) == first else dialect_of(item))
        items[start : start + length] = stretch
        start += length
        if start >= len(items):
            return
        first = dialect_of(stretch[-1])
