"""Protocol buffers, as far as messages are written: each function returns the bytes of one field. Fields that have
their default are absent, as in `proto3`; messages are always there."""

from __future__ import annotations

import struct
from collections.abc import Iterable

_VARINT, _BYTES, _WORD_OF_32_BITS = 0, 2, 5
_ALL_BITS = (1 << 64) - 1
_SHORT = tuple(bytes([value]) for value in range(0x80))


def varint(value: int) -> bytes:
    """Returns a number of 64 bits; negative ones in two's complement."""
    if 0 <= value < 0x80:
        return _SHORT[value]
    value &= _ALL_BITS
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def number(field: int, value: int) -> bytes:
    """Returns a field that is an integer, a boolean or an element of an enumeration."""
    return varint(field << 3 | _VARINT) + varint(int(value)) if value else b""


def single(field: int, value: float) -> bytes:
    """Returns a field that is a number of type `float`."""
    return varint(field << 3 | _WORD_OF_32_BITS) + struct.pack("<f", value) if value else b""


def numbers(field: int, values: Iterable[int]) -> bytes:
    """Returns a repeated field of these, packed."""
    written = b"".join(varint(int(value)) for value in values)
    return message(field, written) if written else b""


def message(field: int, data: bytes) -> bytes:
    """Returns a field that is a message, which may be empty."""
    return varint(field << 3 | _BYTES) + varint(len(data)) + data


def messages(field: int, items: Iterable[bytes]) -> bytes:
    """Returns a repeated field of messages."""
    return b"".join(message(field, item) for item in items)


def text(field: int, value: str | bytes) -> bytes:
    """Returns a field that is text or bytes."""
    data = value.encode(errors="replace") if isinstance(value, str) else value
    return message(field, data) if data else b""
