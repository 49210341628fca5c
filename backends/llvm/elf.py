"""ELF, the format of object files and shared objects, as far as LLVM's output needs it: its tables as NumPy types, its
numbers under the names of the specification, and a reader of object files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trivium.ir.errors import CompileError

HEADER = np.dtype(
    [("ident", "S16"), ("type", "<u2"), ("machine", "<u2"), ("version", "<u4"), ("entry", "<u8"), ("segments", "<u8"),
     ("sections", "<u8"), ("flags", "<u4"), ("size", "<u2"), ("segment_size", "<u2"), ("segment_count", "<u2"),
     ("section_size", "<u2"), ("section_count", "<u2"), ("section_names", "<u2")]
)  # fmt: skip
SECTION = np.dtype(
    [("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8"), ("offset", "<u8"), ("size", "<u8"),
     ("link", "<u4"), ("info", "<u4"), ("alignment", "<u8"), ("entry_size", "<u8")]
)  # fmt: skip
SEGMENT = np.dtype(
    [("type", "<u4"), ("flags", "<u4"), ("offset", "<u8"), ("address", "<u8"), ("physical", "<u8"),
     ("file_size", "<u8"), ("size", "<u8"), ("alignment", "<u8")]
)  # fmt: skip
SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
RELOCATION = np.dtype([("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
DYNAMIC = np.dtype([("tag", "<u8"), ("value", "<u8")])

IDENT = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
ET_REL, ET_DYN = 1, 3
EM_X86_64, EM_AARCH64 = 62, 183
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_HASH, SHT_DYNAMIC, SHT_NOBITS, SHT_DYNSYM = 1, 2, 3, 4, 5, 6, 8, 11
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS = 1, 2, 4, 0x400
SHN_UNDEF, SHN_LORESERVE, SHN_ABS = 0, 0xFF00, 0xFFF1
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STV_HIDDEN = 2
STT_NOTYPE, STT_SECTION, STT_FILE, STT_TLS = 0, 3, 4, 6
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 0x6474E551, 0x6474E552
PF_X, PF_W, PF_R = 1, 2, 4
DT_NULL, DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_RELAENT = 0, 1, 4, 5, 6, 7, 8, 9
DT_STRSZ, DT_SYMENT, DT_FLAGS, DT_FLAGS_1 = 10, 11, 30, 0x6FFFFFFB
DF_BIND_NOW, DF_1_NOW = 8, 1


@dataclass(frozen=True)
class Section:
    """A section of an object file: its header's fields and its bytes (none if they are all zero)."""

    index: int
    name: str
    type: int
    flags: int
    size: int
    alignment: int
    link: int
    info: int
    data: bytes


@dataclass(frozen=True)
class Symbol:
    """A name for a location in a section (or, in section 0, for one in another file)."""

    name: str
    binding: int
    type: int
    section: int
    value: int
    size: int
    hidden: bool = False
    """Whether only the files that are linked together may refer to it."""


@dataclass(frozen=True)
class Object:
    """An object file. `relocations` holds, by the index of a section, the locations to fill in there."""

    machine: int
    sections: list[Section]
    symbols: list[Symbol]
    relocations: dict[int, np.ndarray]


def read_object(data: bytes) -> Object:
    """Reads an object file. Raises CompileError if the bytes are not an object file of 64 bits."""
    header = _table(data, 0, 1, HEADER, "its header")[0]
    if data[: len(IDENT)] != IDENT or header["type"] != ET_REL:
        raise CompileError("this is not a little-endian ELF object file of 64 bits")
    sections = _sections(data, header)
    symbols: list[Symbol] = []
    relocations = {}
    for section in sections:
        if section.type == SHT_SYMTAB:
            symbols = _symbols(section, sections)
        elif section.type == SHT_RELA:
            count = section.size // RELOCATION.itemsize
            relocations[section.info] = _table(section.data, 0, count, RELOCATION, section.name)
    return Object(int(header["machine"]), sections, symbols, relocations)


def is_object_file(data: bytes) -> bool:
    """Whether the bytes are an object file, with nothing outside them."""
    try:
        read_object(data)
    except CompileError:
        return False
    return True


def is_shared_object(data: bytes) -> bool:
    """Whether the bytes have the header of a shared object, whole segments and nothing outside them. The dynamic linker
    trusts the rest."""
    try:
        header = _table(data, 0, 1, HEADER, "its header")[0]
        if data[: len(IDENT)] != IDENT or header["type"] != ET_DYN:
            return False
        segments = _table(data, int(header["segments"]), int(header["segment_count"]), SEGMENT, "its segments")
        _table(data, int(header["sections"]), int(header["section_count"]), SECTION, "its sections")
    except CompileError:
        return False
    ends = segments["offset"].astype(object) + segments["file_size"].astype(object)
    return len(segments) > 0 and bool((ends <= len(data)).all())


def _table(data: bytes, offset: int, count: int, kind: np.dtype, what: str) -> np.ndarray:
    if offset + count * kind.itemsize > len(data):
        raise CompileError(f"the ELF file of {len(data)} bytes is truncated: {what} would end after it")
    return np.frombuffer(data, kind, count, offset)


def _sections(data: bytes, header: np.void) -> list[Section]:
    rows = _table(data, int(header["sections"]), int(header["section_count"]), SECTION, "its sections")
    contents = []
    for row in rows:
        size = 0 if row["type"] == SHT_NOBITS else int(row["size"])
        contents.append(_table(data, int(row["offset"]), size, np.dtype("u1"), "a section").tobytes())
    if header["section_names"] >= len(contents):
        raise CompileError("the ELF file has no names of sections")
    names = contents[header["section_names"]]
    fields = ("type", "flags", "size", "alignment", "link", "info")
    return [
        Section(
            index=index,
            name=_name(names, int(row["name"])),
            data=content,
            **{field: int(row[field]) for field in fields},
        )
        for index, (row, content) in enumerate(zip(rows, contents, strict=True))
    ]


def _symbols(table: Section, sections: list[Section]) -> list[Symbol]:
    if table.link >= len(sections):
        raise CompileError("the ELF file has no names of symbols")
    names = sections[table.link].data
    rows = _table(table.data, 0, table.size // SYMBOL.itemsize, SYMBOL, "its symbols")
    return [
        Symbol(_name(names, name), info >> 4, info & 15, section, value, size, other & 3 == STV_HIDDEN)
        for name, info, other, section, value, size in rows.tolist()
    ]


def _name(names: bytes, offset: int) -> str:
    return names[offset : names.find(b"\0", offset)].decode(errors="replace")
