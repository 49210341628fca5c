"""Writes a program as MLIR bytecode, with the same numbering as MLIR's own writer: the same program becomes the same
bytes, which are also those that MLIR would write, except for what MLIR records about the order of uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trivium.ir.bytecode.builtin import BUILTIN, OpAttributes
from trivium.ir.bytecode.casts import dialect_of
from trivium.ir.bytecode.encoding import Output, bytes_of
from trivium.ir.bytecode.forms import form_in_artifacts
from trivium.ir.bytecode.reading import (
    ATTR_TYPE,
    ATTR_TYPE_OFFSET,
    DIALECT,
    HAS_ATTRIBUTES,
    HAS_OPERANDS,
    HAS_PROPERTIES,
    HAS_REGIONS,
    HAS_RESULTS,
    IR,
    MAGIC,
    PRODUCER,
    PROPERTIES,
    RESOURCE,
    RESOURCE_OFFSET,
    STRING,
)
from trivium.ir.bytecode.sdy import SDY
from trivium.ir.bytecode.tables import Entry, WriteTables, by_dialect
from trivium.ir.bytecode.versions import Version, bytecode_version
from trivium.ir.bytecode.vhlo import VHLO
from trivium.ir.core import Block, BlockArgument, Operation, Region, Value
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.location import UNKNOWN, Location


@dataclass
class _Name:
    """The name of an op, how often it occurs, and finally its number."""

    dialect: str
    name: str
    count: int = 0
    number: int = -1


@dataclass
class _Record:
    """The facts about an op that are collected before it is written."""

    name: _Name
    attributes: Entry | None
    properties: tuple[tuple[Entry | None, bool], ...] | None
    location: Entry
    types: list[Entry]


@dataclass
class ModuleWriter:
    """Writes one module for files of version `target`; `refusals` lists what such files cannot have."""

    module: Module
    target: Version
    tables: WriteTables = field(init=False)

    def __post_init__(self) -> None:
        self.tables = WriteTables({"builtin": BUILTIN, "vhlo": VHLO, "sdy": SDY}, self.target)
        self.refusals = self.tables.refusals
        self.bytecode = bytecode_version(self.target)
        self.names: dict[str, _Name] = {}
        self.records: dict[Operation, _Record] = {}
        self.values: dict[Value, int] = {}
        self.sizes: dict[Region, int] = {}
        self.open = _open_ops(self.module)
        self._number()

    # Numbering: in the order of MLIR's writer, which differs from that of the text.

    def _number(self) -> None:
        self._number_or_refuse(self.module, 0)
        todo = [(region, 0) for region in self.module.regions]
        while todo:
            region, first = todo.pop()
            following = self._number_region(region, first)
            for block in region.blocks:
                for op in block:
                    start = following if op in self.open else 0
                    todo += [(inner, start) for inner in op.regions]

    def _number_region(self, region: Region, first: int) -> int:
        """Numbers the values of a region from `first` on; returns the number after the last."""
        following = first
        for block in region.blocks:
            for argument in block.arguments:
                self.values[argument] = following
                following += 1
                self._number_argument(region, argument)
            for op in block:
                following = self._number_or_refuse(op, following)
        self.sizes[region] = following - first
        return following

    def _number_argument(self, region: Region, argument: BlockArgument) -> None:
        self.refusals.op = region.parent
        try:
            self._location(argument.location)
            self.tables.type(dialect_of(argument), argument.type)
        except Error as error:
            self.refusals.refuse(error.message)

    def _number_or_refuse(self, op: Operation, following: int) -> int:
        self.refusals.op = op
        try:
            return self._number_op(op, following)
        except Error as error:
            self.refusals.refuse(error.message)
            return following

    def _number_op(self, op: Operation, following: int) -> int:
        form = form_in_artifacts(op)
        if form is None:
            raise Error("artifacts have no such op")
        name, own = form.lowered(op, self.target, self.refusals.require)
        entry = self._name(name)
        dialect = "vhlo" if entry.dialect == "vhlo" else "builtin"
        types = []
        for result in op.results:
            self.values[result] = following
            following += 1
            types.append(self.tables.type(dialect_of(result), result.type))
        given = op.extra if self.bytecode >= 5 else {**op.extra, **own}
        attributes = None
        if given:
            attributes = self.tables.attribute("builtin", OpAttributes(dialect, tuple(sorted(given.items()))))
        properties = None
        slots = form.slots(own)
        if self.bytecode >= 5 and slots:
            properties = tuple(
                (self.tables.attribute(dialect, own[key]) if key in own else None, optional) for key, optional in slots
            )
        self.records[op] = _Record(entry, attributes, properties, self._location(op.location), types)
        return following

    def _name(self, full: str) -> _Name:
        entry = self.names.get(full)
        if entry is None:
            dialect, _, name = full.partition(".")
            entry = self.names[full] = _Name(dialect, name)
            self.tables.dialect(dialect)
        else:
            entry.count += 1
        return entry

    def _location(self, location: Location) -> Entry:
        return self.tables.attribute("builtin", location)

    # The file

    def getvalue(self) -> bytes:
        """Returns the bytes of the file."""
        out = Output()
        out.raw(MAGIC)
        out.varint(self.bytecode)
        out.raw(bytes_of(f"{PRODUCER}{self.target}") + b"\0")
        attributes, types = self.tables.number()
        out.section(DIALECT, self._dialects())
        self._write_entries(out, attributes, types)
        properties: dict[bytes, int] = {}
        program = Output()
        program.varint(2)
        self._write_program(program, properties)
        out.section(IR, program)
        resources = Output()
        resources.varint(0)
        out.section(RESOURCE_OFFSET, resources)
        out.section(RESOURCE, Output())
        out.section(STRING, self._strings())
        if self.bytecode >= 5:
            out.section(PROPERTIES, _properties(properties))
        return out.getvalue()

    def _dialects(self) -> Output:
        out = Output()
        out.varint(len(self.tables.dialects))
        for name in self.tables.dialects:
            number = self.tables.string(name)
            out.varint(number << 1 if self.bytecode >= 1 else number)
        names = sorted(self.names.values(), key=lambda name: -name.count)
        by_dialect(names, lambda name: self.tables.dialects[name.dialect])
        if self.bytecode >= 4:
            out.varint(len(names))
        for number, name in enumerate(names):
            name.number = number
        for dialect, group in _groups(names):
            out.varint(self.tables.dialects[dialect])
            out.varint(len(group))
            for name in group:
                number = self.tables.string(name.name)
                out.varint(number << 1 | 1 if self.bytecode >= 5 else number)
        return out

    def _write_entries(self, out: Output, attributes: list[Entry], types: list[Entry]) -> None:
        offsets, data = Output(), Output()
        offsets.varint(len(attributes))
        offsets.varint(len(types))
        for entries in (attributes, types):
            for dialect, group in _groups(entries):
                offsets.varint(self.tables.dialects[dialect])
                offsets.varint(len(group))
                for entry in group:
                    start = len(data)
                    self.tables.emit(entry, data)
                    offsets.flagged(len(data) - start, entry.encoded)
        out.section(ATTR_TYPE_OFFSET, offsets)
        out.section(ATTR_TYPE, data)

    def _strings(self) -> Output:
        out = Output()
        texts = [bytes_of(text) + b"\0" for text in self.tables.strings]
        out.varint(len(texts))
        for text in reversed(texts):
            out.varint(len(text))
        for text in texts:
            out.raw(text)
        return out

    # The program

    def _write_program(self, out: Output, properties: dict[bytes, int]) -> None:
        """Writes the ops, outer before inner; regions in their own sections are inserted when they end."""
        stack: list[_Step] = [_Step(out, iter((self.module,)))]
        while stack:
            step = stack[-1]
            item = next(step.items, None)
            if item is None:
                stack.pop()
                if step.into is not None:
                    step.into.section(IR, step.out)
            elif isinstance(item, Operation):
                self._write_op(step.out, item, properties)
                if item.regions:
                    stack.append(self._inner(step, item))
            elif isinstance(item, Region):
                step.out.varint(len(item.blocks))
                if item.blocks:
                    step.out.varint(self.sizes[item])
                stack.append(_Step(step.out, iter(item.blocks)))
            else:
                self._write_block(step.out, item)
                stack.append(_Step(step.out, iter(item)))

    def _inner(self, step: _Step, op: Operation) -> _Step:
        """Returns the step for an op's regions; isolated regions are written to their own section."""
        if op in self.open or self.bytecode < 2:
            return _Step(step.out, iter(op.regions))
        return _Step(Output(), iter(op.regions), into=step.out)

    def _write_block(self, out: Output, block: Block) -> None:
        out.flagged(sum(1 for _ in block), bool(block.arguments))
        if not block.arguments:
            return
        out.varint(len(block.arguments))
        for argument in block.arguments:
            kind = self.tables.type(dialect_of(argument), argument.type).number
            location = self._location(argument.location).number
            if self.bytecode < 4:
                out.varint(kind)
                out.varint(location)
            else:
                out.flagged(kind, argument.location != UNKNOWN)
                if argument.location != UNKNOWN:
                    out.varint(location)
        if self.bytecode >= 3:
            out.byte(0)

    def _write_op(self, out: Output, op: Operation, properties: dict[bytes, int]) -> None:
        record = self.records[op]
        has = {
            HAS_ATTRIBUTES: record.attributes is not None,
            HAS_PROPERTIES: record.properties is not None,
            HAS_RESULTS: bool(op.results),
            HAS_OPERANDS: bool(op.operands),
            HAS_REGIONS: bool(op.regions),
        }
        out.varint(record.name.number)
        out.byte(sum(bit for bit, is_there in has.items() if is_there))
        out.varint(record.location.number)
        if record.attributes is not None:
            out.varint(record.attributes.number)
        if record.properties is not None:
            content = _property_bytes(record.properties)
            out.varint(properties.setdefault(content, len(properties)))
        if op.results:
            out.varint(len(op.results))
            for entry in record.types:
                out.varint(entry.number)
        if op.operands:
            out.varint(len(op.operands))
            for value in op.operands:
                out.varint(self.values[value])
        if op.regions:
            out.flagged(len(op.regions), op not in self.open)


class _Step:
    """A list that is being written. If `into` is set, the output is appended to it as a section at the end."""

    __slots__ = ("into", "items", "out")

    def __init__(self, out: Output, items: Iterator[Any], into: Output | None = None):
        self.out = out
        self.items = items
        self.into = into


def _groups(items: list[Any]) -> list[tuple[str, list[Any]]]:
    """Returns runs of items of one dialect."""
    groups: list[tuple[str, list[Any]]] = []
    for item in items:
        if not groups or groups[-1][0] != item.dialect:
            groups.append((item.dialect, []))
        groups[-1][1].append(item)
    return groups


def _property_bytes(entries: tuple[tuple[Entry | None, bool], ...]) -> bytes:
    out = Output()
    for entry, optional in entries:
        if entry is None:
            out.varint(0)
        elif optional:
            out.flagged(entry.number, True)
        else:
            out.varint(entry.number)
    return out.getvalue()


def _properties(contents: dict[bytes, int]) -> Output:
    out = Output()
    out.varint(len(contents))
    for content in contents:
        out.blob(content)
    return out


def _open_ops(module: Module) -> set[Operation]:
    """Returns the ops whose regions use values from outside."""
    found: set[Operation] = set()
    for op in module.walk():
        for value in op.operands:
            home = _region_of(value)
            region = op.block.region if op.block is not None else None
            while region is not home:
                if region is None or region.parent is None:
                    raise Error(f"{op.NAME} uses a value from outside the module")
                found.add(region.parent)
                region = region.parent.block.region if region.parent.block is not None else None
    return found


def _region_of(value: Value) -> Region | None:
    owner = value.defining_op
    block = owner.block if owner is not None else value.block  # type: ignore[attr-defined]
    return block.region if block is not None else None
