"""What an object file or a code object for AMD GPUs says about its kernels, in the metadata that LLVM writes for the
driver: a note in MessagePack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trivium.backends.llvm import elf

NOTE, METADATA = 7, 32
"""The types of sections that have notes, and of the note that has the metadata."""


@dataclass(frozen=True)
class Kernel:
    """A kernel: its registers, what of them is spilled to memory, its memory, and the kinds of its arguments."""

    name: str
    registers: int
    spilled: int
    shared: int
    private: int
    threads: int
    wave: int
    arguments: tuple[str, ...]


def kernels(data: bytes) -> list[Kernel]:
    """Returns the kernels that the metadata lists."""
    return [_kernel(found) for found in metadata(data)["amdhsa.kernels"]]


def _kernel(found: dict[str, Any]) -> Kernel:
    return Kernel(
        name=found[".name"],
        registers=found[".vgpr_count"],
        spilled=found[".vgpr_spill_count"] + found[".sgpr_spill_count"],
        shared=found[".group_segment_fixed_size"],
        private=found[".private_segment_fixed_size"],
        threads=found[".max_flat_workgroup_size"],
        wave=found[".wavefront_size"],
        arguments=tuple(argument[".value_kind"] for argument in found.get(".args", [])),
    )


def metadata(data: bytes) -> dict[str, Any]:
    """Returns what is in the note."""
    for section in _sections(data, NOTE):
        at = int(section["offset"])
        name, size, kind = np.frombuffer(data, "<u4", 3, at)
        if kind == METADATA:
            begin = at + 12 + -(-int(name) // 4) * 4
            return unpacked(data[begin : begin + int(size)], 0)[0]
    raise AssertionError("there is no metadata")


def exported(data: bytes) -> set[str]:
    """Returns the names that a code object has for others."""
    (table,), sections = _sections(data, elf.SHT_DYNSYM), _sections(data)
    names = data[int(sections[table["link"]]["offset"]) :]
    count = int(table["size"]) // elf.SYMBOL.itemsize
    symbols = np.frombuffer(data, elf.SYMBOL, count, int(table["offset"]))
    return {names[symbol["name"] : names.index(b"\0", symbol["name"])].decode() for symbol in symbols}


def _sections(data: bytes, kind: int | None = None) -> list[Any]:
    header = np.frombuffer(data, elf.HEADER, 1)[0]
    found = np.frombuffer(data, elf.SECTION, int(header["section_count"]), int(header["sections"]))
    return [section for section in found if kind is None or section["type"] == kind]


def unpacked(data: bytes, at: int) -> tuple[Any, int]:
    """Returns the value of MessagePack at a place, and where the next one is."""
    kind = data[at]
    if kind < 0x80:
        return kind, at + 1
    if kind < 0x90:
        return _pairs(data, at + 1, kind & 0xF)
    if kind < 0xA0:
        return _values(data, at + 1, kind & 0xF)
    if kind < 0xC0:
        return _text(data, at + 1, kind & 0x1F)
    if kind in (0xC2, 0xC3):
        return kind == 0xC3, at + 1
    width = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD9: 1, 0xDA: 2, 0xDC: 2, 0xDE: 2}[kind]
    number, after = int.from_bytes(data[at + 1 : at + 1 + width], "big"), at + 1 + width
    read = {0xD9: _text, 0xDA: _text, 0xDC: _values, 0xDE: _pairs}.get(kind)
    return read(data, after, number) if read else (number, after)


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    return data[at : at + size].decode(), at + size


def _values(data: bytes, at: int, count: int) -> tuple[list[Any], int]:
    found = []
    for _ in range(count):
        value, at = unpacked(data, at)
        found.append(value)
    return found, at


def _pairs(data: bytes, at: int, count: int) -> tuple[dict[Any, Any], int]:
    found, at = _values(data, at, 2 * count)
    return dict(zip(found[::2], found[1::2], strict=True)), at
