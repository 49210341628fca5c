"""An artifact, taken apart so that mutations can change what its bytes mean: sections by number, and the entries of the
tables of attributes and types. It is put together again with correct sizes, unless wrong ones are requested. It does
not use `trivium.ir.bytecode`, whose reader is under test."""

from __future__ import annotations

from dataclasses import dataclass, field

MAGIC = b"ML\xefR"
STRING, DIALECT, ATTR_TYPE, ATTR_TYPE_OFFSET, IR = range(5)


def varint(value: int) -> bytes:
    """An unsigned integer of up to 64 bits."""
    for size in range(1, 9):
        if value < 1 << 7 * size:
            return ((value << 1 | 1) << size - 1).to_bytes(size, "little")
    return b"\0" + (value & (1 << 64) - 1).to_bytes(8, "little")


def read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """Returns an integer, and the position after it. Raises `IndexError` at the end of the data."""
    first = data[pos]
    if not first:
        return int.from_bytes(data[pos + 1 : pos + 9], "little"), pos + 9
    size = (first & -first).bit_length()
    return int.from_bytes(data[pos : pos + size], "little") >> size, pos + size


@dataclass
class Entry:
    """An attribute or a type: its dialect, its bytes, and whether these are an encoding rather than text."""

    dialect: int
    content: bytes
    encoded: bool = True


@dataclass
class Container:
    """A file. `attributes` and `types` represent the sections of offsets and contents."""

    version: int = 0
    producer: bytes = b""
    sections: list[tuple[int, bytes]] = field(default_factory=list)
    attributes: list[Entry] = field(default_factory=list)
    types: list[Entry] = field(default_factory=list)

    @classmethod
    def of(cls, data: bytes) -> Container:
        """Takes a valid file apart."""
        found = cls()
        found.version, pos = read_varint(data, len(MAGIC))
        end = data.index(0, pos)
        found.producer, pos = data[pos:end], end + 1
        while pos < len(data):
            kind = data[pos]
            size, pos = read_varint(data, pos + 1)
            if kind & 0x80:
                alignment, pos = read_varint(data, pos)
                pos += -pos % alignment
            found.sections.append((kind & 0x7F, data[pos : pos + size]))
            pos += size
        found._read_entries(dict(found.sections))
        return found

    def _read_entries(self, sections: dict[int, bytes]) -> None:
        offsets, contents = sections[ATTR_TYPE_OFFSET], sections[ATTR_TYPE]
        counts, pos, start = [], 0, 0
        for _ in range(2):
            count, pos = read_varint(offsets, pos)
            counts.append(count)
        for entries, count in zip((self.attributes, self.types), counts, strict=True):
            while len(entries) < count:
                dialect, pos = read_varint(offsets, pos)
                size, pos = read_varint(offsets, pos)
                for _ in range(size):
                    flagged, pos = read_varint(offsets, pos)
                    entries.append(Entry(dialect, contents[start : start + (flagged >> 1)], bool(flagged & 1)))
                    start += flagged >> 1

    def tables(self) -> dict[int, bytes]:
        """Returns the sections that contain the entries."""
        offsets = [varint(len(self.attributes)), varint(len(self.types))]
        for entries in (self.attributes, self.types):
            start = 0
            while start < len(entries):
                end = start
                while end < len(entries) and entries[end].dialect == entries[start].dialect:
                    end += 1
                offsets += [varint(entries[start].dialect), varint(end - start)]
                offsets += [varint(len(entry.content) << 1 | entry.encoded) for entry in entries[start:end]]
                start = end
        contents = b"".join(entry.content for entry in (*self.attributes, *self.types))
        return {ATTR_TYPE_OFFSET: b"".join(offsets), ATTR_TYPE: contents}

    def getvalue(self) -> bytes:
        """Returns the file."""
        tables = self.tables()
        parts = [MAGIC, varint(self.version), self.producer, b"\0"]
        for kind, content in self.sections:
            content = tables.get(kind, content)
            parts += [bytes([kind]), varint(len(content)), content]
        return b"".join(parts)
