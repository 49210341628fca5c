"""Reads a program from MLIR bytecode: first the sections into tables, then the ops in one pass, with a stack of regions
instead of recursion. Malformed bytes raise a `ParseError` that states the offset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trivium.ir.attributes import MAX_EXPANSION, Dictionary
from trivium.ir.bytecode.builtin import BUILTIN
from trivium.ir.bytecode.encoding import Cursor, text_of
from trivium.ir.bytecode.forms import Form, form_named, return_class
from trivium.ir.bytecode.plain import PlainForm
from trivium.ir.bytecode.portable import restore
from trivium.ir.bytecode.quant import QUANT
from trivium.ir.bytecode.resources import read_resources
from trivium.ir.bytecode.sdy import SDY
from trivium.ir.bytecode.stablehlo import CHLO, STABLEHLO
from trivium.ir.bytecode.tables import EntryReader, Tables
from trivium.ir.bytecode.versions import CURRENT, Version
from trivium.ir.bytecode.vhlo import VHLO
from trivium.ir.core import MAX_NESTING, Block, Operation, Region, Value
from trivium.ir.errors import Error, ParseError, Unsupported, UnsupportedOpError
from trivium.ir.func import Module
from trivium.ir.location import UNKNOWN, Location
from trivium.ir.terminators import Return
from trivium.ir.text.parser import Parser
from trivium.ir.types import Type

MAGIC = b"ML\xefR"
PRODUCER = "StableHLO_v"
NEWEST_BYTECODE = 6
STRING, DIALECT, ATTR_TYPE, ATTR_TYPE_OFFSET, IR, RESOURCE, RESOURCE_OFFSET, DIALECT_VERSIONS, PROPERTIES = range(9)
"""The numbers of the sections of a file."""
HAS_ATTRIBUTES, HAS_RESULTS, HAS_OPERANDS, HAS_SUCCESSORS, HAS_REGIONS, HAS_USE_LISTS, HAS_PROPERTIES = (
    1 << bit for bit in range(7)
)
"""The bits of an op's mask, which say what the op has."""
_REQUIRED = {STRING: "strings", DIALECT: "dialects", ATTR_TYPE: "attributes", ATTR_TYPE_OFFSET: "offsets", IR: "ops"}
_DIALECTS = {"builtin": BUILTIN, "vhlo": VHLO, "stablehlo": STABLEHLO, "chlo": CHLO, "quant": QUANT, "sdy": SDY}
_Attributes = tuple[dict[str, Any], dict[str, Any], Mapping[str, tuple[int, ...]] | None]
"""The declared attributes of an op, its others, and the sizes of its groups if they do not follow from the counts."""


@dataclass
class _OpName:
    """An op name of the file. `decoded` caches the attributes by the numbers of their dictionary and properties."""

    form: Form | PlainForm
    number: int
    names: tuple[str, ...]
    decoded: dict[tuple[int, int], _Attributes]


class _Frame:
    """An op whose regions are being read. `values` are the values that the ops inside see; those of the current region
    are added at `next`, and removed from `start` on when it ends."""

    __slots__ = ("block", "blocks", "cursor", "is_section", "next", "op", "ops", "region", "regions", "start", "values")

    def __init__(self, op: Operation | None, cursor: Cursor, values: list[Value | None], is_section: bool = False):
        self.op = op
        self.is_section = is_section
        self.cursor = cursor
        self.values = values
        self.regions: Iterator[Region] = iter(op.regions if op is not None else ())
        self.region, self.block = Region(), Block()
        self.blocks = self.ops = 0
        self.start = self.next = len(values)


class ModuleReader:
    """Reads one file."""

    def __init__(self, data: memoryview):
        self.cursor = Cursor(data)
        self.tables = Tables(_DIALECTS, _parse_text)
        self.tables.limit = max(MAX_EXPANSION, len(data))
        self.unannounced = 2 * len(data)
        """How many more values and regions the file may announce."""
        self.bytecode = 0
        self.version: Version | None = None
        self.is_portable = False
        self.dialects: list[str] = []
        self.ops: list[_OpName] = []
        self.properties: list[Cursor] = []

    def module(self) -> Module:
        """Reads the program."""
        try:
            return self._module()
        except RecursionError:
            raise self.cursor.error("the file nests deeper than Python's stack allows") from None

    def _module(self) -> Module:
        sections = self._sections()
        self._read_strings(sections[STRING])
        self._read_dialects(sections[DIALECT])
        self._read_entries(sections[ATTR_TYPE_OFFSET], sections[ATTR_TYPE])
        if PROPERTIES in sections:
            self._read_properties(sections[PROPERTIES])
        if RESOURCE_OFFSET in sections and RESOURCE in sections:
            self.tables.resources = read_resources(sections[RESOURCE_OFFSET], sections[RESOURCE], self.tables)
        module = self._read_program(sections[IR])
        try:
            restore(module, {name.form.cls for name in self.ops}, self.is_portable)
        except Error as error:
            raise sections[IR].error(error.message) from None
        return module

    # Tables

    def _sections(self) -> dict[int, Cursor]:
        cursor = self.cursor
        if bytes(cursor.data[:4]) != MAGIC:
            raise cursor.error("the file does not begin with 'ML\\xefR', expected MLIR bytecode")
        cursor.take(4)
        self.bytecode = cursor.varint()
        if self.bytecode > NEWEST_BYTECODE:
            raise cursor.error(f"the bytecode has version {self.bytecode}, expected one up to {NEWEST_BYTECODE}")
        producer = cursor.text()
        self.is_portable = producer.startswith(PRODUCER)
        if self.is_portable:
            self.version = _version_of(producer.removeprefix(PRODUCER))
        sections: dict[int, Cursor] = {}
        while cursor.left:
            kind, content = cursor.section()
            if kind in sections or kind > PROPERTIES:
                raise cursor.error(f"section {kind} {'occurs twice' if kind in sections else 'is unknown'}")
            sections[kind] = content
        for kind, what in _REQUIRED.items():
            if kind not in sections:
                raise cursor.error(f"the file has no section of {what}")
        return sections

    def _read_strings(self, cursor: Cursor) -> None:
        sizes = [cursor.varint() for _ in range(cursor.count())]
        strings = []
        for size in reversed(sizes):
            if size < 1:
                raise cursor.error("a string has size 0, expected at least its zero byte")
            strings.append(text_of(cursor.take(size)[:-1]))
        self.tables.strings = strings

    def _read_dialects(self, cursor: Cursor) -> None:
        for _ in range(cursor.count()):
            name = cursor.varint()
            versioned = False
            if self.bytecode >= 1:
                name, versioned = name >> 1, bool(name & 1)
            self.dialects.append(self.tables.string(name, cursor))
            if versioned:
                cursor.section()
        if self.bytecode >= 4:
            cursor.varint()
        unknown: list[Unsupported] = []
        while cursor.left:
            dialect = self._dialect(cursor)
            for _ in range(cursor.count()):
                place = cursor.base + cursor.pos
                name = cursor.varint() >> (self.bytecode >= 5)
                self._add_op(f"{dialect}.{self.tables.string(name, cursor)}", place, unknown)
        if unknown:
            raise self._unsupported(unknown)

    def _dialect(self, cursor: Cursor) -> str:
        number = cursor.varint()
        if number >= len(self.dialects):
            raise cursor.error(f"dialect {number} is referenced, the file has {len(self.dialects)}")
        return self.dialects[number]

    def _add_op(self, name: str, place: int, unknown: list[Unsupported]) -> None:
        found = form_named(name)
        if found is None:
            unknown.append(Unsupported(name, first=f"byte {place}"))
        else:
            form, number = found
            self.ops.append(_OpName(form, number, form.names(number), {}))

    def _unsupported(self, ops: list[Unsupported]) -> UnsupportedOpError:
        text = "the file has unknown ops"
        if self.version is not None and self.version > CURRENT:
            text = f"the file has StableHLO version {self.version}, newer than {CURRENT}, and unknown ops"
        return UnsupportedOpError(text, ops)

    def _read_entries(self, offsets: Cursor, data: Cursor) -> None:
        counts = {"attribute": offsets.varint(), "type": offsets.varint()}
        self.tables.data = data
        for what, count in counts.items():
            while count > 0:
                dialect = self._dialect(offsets)
                sizes = offsets.varints()
                if not 0 < len(sizes) <= count:
                    raise offsets.error(f"a group has {len(sizes)} {what}s, {count} are left")
                count -= len(sizes)
                self.tables.add(what, dialect, sizes)

    def _read_properties(self, cursor: Cursor) -> None:
        for _ in range(cursor.count()):
            size = cursor.varint()
            start = cursor.base + cursor.pos
            self.properties.append(Cursor(cursor.take(size), start))

    # The program

    def _read_program(self, cursor: Cursor) -> Module:
        # Only the ops are copied, for speed: tensors stay in place.
        cursor = Cursor(bytes(cursor.data), cursor.base)
        if cursor.varint() != 2:
            raise cursor.error("the file does not have exactly one op at the top level, expected a module")
        top = _Frame(None, cursor, [])
        module, inner = self._read_op(top)
        if not isinstance(module, Module) or inner is None:
            raise cursor.error(f"the file has {module.NAME} at the top level, expected a module")
        stack = [inner]
        while stack:
            frame = stack[-1]
            inner = self._read_ops(frame)
            if inner is not None:
                if len(stack) >= MAX_NESTING:
                    raise cursor.error(f"regions are nested more than {MAX_NESTING} deep")
                stack.append(inner)
            elif not self._next_block(frame):
                stack.pop()
        if cursor.left:
            raise cursor.error(f"{cursor.left} bytes follow the module")
        return module

    def _read_ops(self, frame: _Frame) -> _Frame | None:
        """Reads the ops of a block up to one that has regions, and returns the frame of these."""
        while frame.ops:
            frame.ops -= 1
            op, inner = self._read_op(frame)
            frame.block.append(op)
            if inner is not None:
                return inner
        return None

    def _read_op(self, frame: _Frame) -> tuple[Operation, _Frame | None]:
        """Reads one op; returns it with the frame of its regions, if any."""
        cursor, tables = frame.cursor, self.tables
        start, number, mask = cursor.pos, cursor.varint(), cursor.byte()
        if number >= len(self.ops):
            raise cursor.error(f"op name {number} is referenced, the file has {len(self.ops)}", start)
        name = self.ops[number]
        location = tables.attribute(cursor.varint(), cursor)
        if not isinstance(location, Location):
            raise cursor.error(f"a location has a {type(location).__name__}", start)
        extra = cursor.varint() if mask & HAS_ATTRIBUTES else -1
        own = cursor.varint() if mask & HAS_PROPERTIES else -1
        attributes, discardable, segments = name.decoded.get((extra, own)) or self._decode(name, extra, own, cursor)
        types = [tables.type(kind, cursor) for kind in cursor.varints()] if mask & HAS_RESULTS else ()
        operands = self._operands(frame) if mask & HAS_OPERANDS else ()
        if mask & HAS_SUCCESSORS:
            raise cursor.error("an op has successors, which no op of StableHLO has", start)
        if mask & HAS_USE_LISTS:
            _skip_use_lists(cursor, len(types))
        flagged = cursor.varint() if mask & HAS_REGIONS else 0
        if flagged >> 1 > cursor.left:
            raise cursor.error(f"an op has {flagged >> 1} regions, {cursor.left} bytes are left")
        cls = name.form.cls if name.form.cls is not Return else return_class(frame.op)
        regions = [Region() for _ in range(self._announced(flagged >> 1, cursor))]
        op = cls.create(operands, types, dict(attributes), regions, discardable, location, segments)
        for result in op.results:
            self._define(frame, result)
        return op, self._inner(frame, op, bool(flagged & 1)) if regions else None

    def _operands(self, frame: _Frame) -> list[Value]:
        cursor, values = frame.cursor, frame.values
        operands = []
        for number in cursor.varints():
            value = values[number] if number < len(values) else None
            if value is None:
                raise cursor.error(f"value {number} is used before it is defined")
            operands.append(value)
        return operands

    def _inner(self, frame: _Frame, op: Operation, is_isolated: bool) -> _Frame:
        """Returns the frame of an op's regions. Isolated regions number their values from zero, in their own
        section."""
        if not is_isolated:
            return _Frame(op, frame.cursor, frame.values)
        if self.bytecode < 2:
            return _Frame(op, frame.cursor, [])
        kind, content = frame.cursor.section()
        if kind != IR:
            raise frame.cursor.error(f"section {kind} is inside an op, expected {IR}")
        return _Frame(op, content, [], is_section=True)

    def _decode(self, name: _OpName, extra: int, own: int, cursor: Cursor) -> _Attributes:
        """Decodes an op's attributes, from the dictionary `extra` and the properties `own`."""
        given = self.tables.attribute(extra, cursor) if extra >= 0 else {}
        if not isinstance(given, Dictionary | dict):
            raise cursor.error(f"an op has a {type(given).__name__} for its attributes, expected a dictionary")
        if own >= 0:
            given = {**given, **self._properties(name, own, cursor)}
        inherent = {key: given[key] for key in name.names if key in given}
        discardable = {key: value for key, value in given.items() if key not in inherent}
        try:
            found = name.form.decode(inherent, name.number), discardable, name.form.segments(inherent)
        except ParseError:
            raise
        except Error as error:
            raise cursor.error(error.message) from None
        name.decoded[extra, own] = found
        return found

    def _properties(self, name: _OpName, number: int, cursor: Cursor) -> dict[str, Any]:
        if number >= len(self.properties):
            raise cursor.error(f"properties {number} are referenced, the file has {len(self.properties)}")
        reader = EntryReader(self.properties[number], self.tables)
        found = name.form.properties(reader, name.number, self.bytecode)
        if reader.left:
            raise reader.error(f"the properties of {name.form.cls.NAME} have {reader.left} bytes too many")
        return found

    def _announced(self, count: int, cursor: Cursor) -> int:
        """Checks a number of values or regions to come. Each takes at least a byte, so no large list is allocated for
        data that does not exist."""
        self.unannounced -= count
        if self.unannounced < 0:
            raise cursor.error("the file announces more values and regions than it has bytes")
        return count

    def _next_block(self, frame: _Frame) -> bool:
        """Moves to the next block of the frame's op; returns False after the last one."""
        cursor = frame.cursor
        while not frame.blocks:
            del frame.values[frame.start :]
            region = next(frame.regions, None)
            if region is None:
                if frame.is_section and cursor.left:
                    raise cursor.error(f"the regions of an op have {cursor.left} bytes too many")
                return False
            frame.region = region
            frame.blocks = cursor.count()
            if frame.blocks:
                frame.next = frame.start
                frame.values.extend([None] * self._announced(cursor.count(), cursor))
        frame.blocks -= 1
        flagged = cursor.varint()
        frame.ops = flagged >> 1
        if frame.ops > cursor.left:
            raise cursor.error(f"a block has {frame.ops} ops, {cursor.left} bytes are left")
        frame.block = frame.region.append(Block())
        if flagged & 1:
            self._read_arguments(frame)
        return True

    def _read_arguments(self, frame: _Frame) -> None:
        cursor, tables = frame.cursor, self.tables
        count = cursor.count()
        for _ in range(count):
            kind = cursor.varint()
            located = True
            if self.bytecode >= 4:
                kind, located = kind >> 1, bool(kind & 1)
            place = tables.attribute(cursor.varint(), cursor) if located else UNKNOWN
            argument = frame.block.add_argument(
                _expected(tables.type(kind, cursor), Type, cursor), location=_expected(place, Location, cursor)
            )
            self._define(frame, argument)
        if self.bytecode >= 3 and cursor.byte():
            _skip_use_lists(cursor, count)

    def _define(self, frame: _Frame, value: Value) -> None:
        if frame.next >= len(frame.values):
            raise frame.cursor.error("a region defines more values than it announces")
        frame.values[frame.next] = value
        frame.next += 1


def _expected(value: Any, kind: type, cursor: Cursor) -> Any:
    if not isinstance(value, kind):
        raise cursor.error(f"has a {type(value).__name__}, expected a {kind.__name__.lower()}")
    return value


def _skip_use_lists(cursor: Cursor, values: int) -> None:
    """Skips the order in which MLIR lists the uses of values, which has no meaning here."""
    for _ in range(1 if values == 1 else cursor.count()):
        if values != 1:
            cursor.varint()
        for _ in range(cursor.varint() >> 1 if cursor.left else 0):
            cursor.varint()


def _version_of(text: str) -> Version | None:
    try:
        return Version.of(text)
    except Error:
        return None


def _parse_text(what: str, text: str) -> Any:
    """Parses an attribute or a type that is stored as MLIR text."""
    parser = Parser(text)
    value = parser.attribute() if what == "attribute" else parser.type()
    if parser.pos < len(text):
        raise Error(f"{text!r} is more than one {what}")
    return value
