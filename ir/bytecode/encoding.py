"""The basic encodings of MLIR bytecode: integers of variable width, signed integers, floats, strings, blobs, sections.
`Cursor` reads from a view of a file and states the offset of any error; `Output` writes."""

from __future__ import annotations

import struct

from trivium.ir.errors import ParseError

PADDING = 0xCB
"""The padding byte before an aligned section."""

DYNAMIC_EXTENT = -(1 << 63)
"""MLIR's extent of a dynamic dimension."""


class Cursor:
    """A position in a part of a file. `base` is the offset of the part, for messages."""

    __slots__ = ("base", "data", "pos")

    def __init__(self, data: memoryview | bytes, base: int = 0):
        self.data = data
        self.base = base
        self.pos = 0

    def error(self, message: str, pos: int | None = None) -> ParseError:
        """Returns a `ParseError` at this position, or at `pos`."""
        return ParseError(f"at byte {self.base + (self.pos if pos is None else pos)}: {message}")

    @property
    def left(self) -> int:
        """The number of bytes not read yet."""
        return len(self.data) - self.pos

    def take(self, count: int) -> memoryview | bytes:
        """Takes the next `count` bytes; from a view, as a view."""
        start, end = self.pos, self.pos + count
        if end > len(self.data):
            raise self.error(f"{count} bytes are announced, {self.left} are left")
        self.pos = end
        return self.data[start:end]

    def byte(self) -> int:
        return self.take(1)[0]

    def varint(self) -> int:
        """Reads an unsigned integer; the number of trailing zeros of its first byte is the number of further bytes."""
        data, pos = self.data, self.pos
        if pos >= len(data):
            raise self.error("the data ends, expected an integer")
        first = data[pos]
        if first & 1:
            self.pos = pos + 1
            return first >> 1
        if first == 0:
            self.pos = pos + 1
            return int.from_bytes(self.take(8), "little")
        size = (first & -first).bit_length()
        return int.from_bytes(self.take(size), "little") >> size

    def varints(self) -> list[int]:
        """Reads a list of unsigned integers."""
        return [self.varint() for _ in range(self.count())]

    def signed(self) -> int:
        """Reads a signed integer: the low bit is the sign."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def count(self) -> int:
        """Reads the length of a list whose elements take at least a byte each, as no list is longer than the file."""
        value = self.varint()
        if value > self.left:
            raise self.error(f"a list has {value} elements, {self.left} bytes are left")
        return value

    def integer(self, width: int) -> int:
        """Reads an integer of known width as unsigned: the low bits of a byte or word if that has more bits. Wide
        integers are stored as 64-bit words."""
        if width <= 8:
            return self.byte() & ((1 << width) - 1)
        if width <= 64:
            return self.signed() & ((1 << width) - 1)
        words = [self.signed() & ((1 << 64) - 1) for _ in range(self.count())]
        return sum(word << 64 * place for place, word in enumerate(words)) & ((1 << width) - 1)

    def double(self) -> float:
        return struct.unpack("<d", self.integer(64).to_bytes(8, "little"))[0]

    def text(self) -> str:
        """Reads the bytes up to a zero as text."""
        found = bytearray()
        while byte := self.byte():
            found.append(byte)
        return text_of(found)

    def blob(self) -> memoryview | bytes:
        """Reads a length and that many bytes."""
        return self.take(self.varint())

    def section(self) -> tuple[int, Cursor]:
        """Reads a section; returns its number and its content."""
        kind = self.byte()
        length = self.varint()
        if kind & 0x80:
            self.align(self.varint())
        start = self.base + self.pos
        return kind & 0x7F, Cursor(self.take(length), start)

    def align(self, alignment: int) -> None:
        """Moves to the next offset in the file that is a multiple of `alignment`."""
        if alignment & (alignment - 1) or not 0 < alignment <= 1 << 30:
            raise self.error(f"an alignment is {alignment}, expected a power of two")
        padding = self.take(-(self.base + self.pos) % alignment)
        if any(byte != PADDING for byte in padding):
            raise self.error("the padding has bytes other than 0xCB")


class Output:
    """Bytes being written: small pieces are collected, large ones are kept uncopied until the end."""

    __slots__ = ("_current", "_done", "_done_size")

    def __init__(self) -> None:
        self._done: list[bytes | bytearray | memoryview] = []
        self._done_size = 0
        self._current = bytearray()

    def __len__(self) -> int:
        return self._done_size + len(self._current)

    def byte(self, value: int) -> None:
        self._current.append(value)

    def raw(self, data: bytes | bytearray | memoryview) -> None:
        if len(data) < 4096:
            self._current += data
        else:
            self._finish_current()
            self._add(data)

    def varint(self, value: int) -> None:
        if value < 0x80:
            self._current.append(value << 1 | 1)
            return
        # Each further byte adds seven bits: its own eight, less one bit of the first byte. Eight of them hold all 64.
        more = (value.bit_length() - 1) // 7
        if more >= 8:
            self._current += b"\0" + value.to_bytes(8, "little")
        else:
            self._current += ((value << 1 | 1) << more).to_bytes(more + 1, "little")

    def signed(self, value: int) -> None:
        self.varint(value << 1 if value >= 0 else (-value << 1) - 1)

    def flagged(self, value: int, flag: bool) -> None:
        """Writes an integer and a bit."""
        self.varint(value << 1 | flag)

    def integer(self, value: int, width: int) -> None:
        """Writes an integer of known width."""
        value &= (1 << width) - 1
        if width <= 8:
            self.byte(value)
        elif width <= 64:
            self._word(value)
        else:
            words = max(1, -(-value.bit_length() // 64))
            self.varint(words)
            for place in range(words):
                self._word(value >> 64 * place & ((1 << 64) - 1))

    def _word(self, value: int) -> None:
        # For types narrower than 64 bits, MLIR writes the unsigned number.
        self.signed(value - (1 << 64) if value >> 63 else value)

    def double(self, value: float) -> None:
        self.integer(int.from_bytes(struct.pack("<d", value), "little"), 64)

    def blob(self, data: bytes | memoryview) -> None:
        self.varint(len(data))
        self.raw(data)

    def section(self, kind: int, content: Output) -> None:
        self.byte(kind)
        self.varint(len(content))
        self.append(content)

    def append(self, other: Output) -> None:
        """Appends the contents of `other`."""
        if not other._done:
            self.raw(other._current)
            return
        self._finish_current()
        for part in other._done:
            self._add(part)
        self._current = other._current

    def split(self) -> Output:
        """Returns everything written so far, and starts again empty."""
        rest = Output()
        rest._done, rest._done_size, rest._current = self._done, self._done_size, self._current
        self._done, self._done_size, self._current = [], 0, bytearray()
        return rest

    def getvalue(self) -> bytes:
        return b"".join([*self._done, self._current])

    def _finish_current(self) -> None:
        self._add(self._current)
        self._current = bytearray()

    def _add(self, part: bytes | bytearray | memoryview) -> None:
        self._done.append(part)
        self._done_size += len(part)


def text_of(data: memoryview | bytes | bytearray) -> str:
    """Decodes text of a file: UTF-8, with all other bytes preserved."""
    return bytes(data).decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Encodes a text; the inverse of `text_of`."""
    return text.encode("utf-8", "surrogateescape")
