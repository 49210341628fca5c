"""The reader of object files: it finds the same as readelf in LLVM's files, and refuses damaged ones."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from itertools import pairwise
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from trivium.backends.cpu.target import CODE_GENERATION, host
from trivium.backends.llvm import elf
from trivium.ir.errors import CompileError

TRIPLES = {"x86_64-unknown-linux-gnu": elf.EM_X86_64, "aarch64-unknown-linux-gnu": elf.EM_AARCH64}
TEXT = """
@table = internal constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]
@zeros = global [100 x i64] zeroinitializer, align 64
@pointers = global [2 x ptr] [ptr @table, ptr @elsewhere]
declare void @elsewhere()
declare extern_weak void @perhaps()
define weak i32 @"a name: with spaces"(i64 %i) {
  %p = getelementptr [4 x i32], ptr @table, i64 0, i64 %i
  %v = load i32, ptr %p
  call void @elsewhere()
  call void @perhaps()
  ret i32 %v
}
define internal void @hidden() noinline { ret void }
define void @open() {
  call void @hidden()
  ret void
}
"""


def object_file(triple: str, text: str = TEXT) -> bytes:
    host()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(**CODE_GENERATION)
    return machine.emit_object(llvm.parse_assembly(f'target triple = "{triple}"\n{text}'))


def symbols(triple: str) -> dict[str, elf.Symbol]:
    return {symbol.name: symbol for symbol in elf.read_object(object_file(triple)).symbols}


def section(read: elf.Object, name: str) -> elf.Section:
    (found,) = (each for each in read.sections if each.name == name)
    return found


@pytest.mark.parametrize("triple", TRIPLES)
def test_sections(triple: str) -> None:
    read = elf.read_object(object_file(triple))
    assert read.machine == TRIPLES[triple]
    assert [each.index for each in read.sections] == list(range(len(read.sections)))
    text, zeros = section(read, ".text"), section(read, ".bss")
    assert text.flags == elf.SHF_ALLOC | elf.SHF_EXECINSTR
    assert len(text.data) == text.size > 0
    assert (zeros.type, zeros.size, zeros.data, zeros.alignment) == (elf.SHT_NOBITS, 800, b"", 64)
    constants = [each for each in read.sections if each.name.startswith(".rodata")]
    assert struct.pack("<4i", 10, 20, 30, 40) in b"".join(each.data for each in constants)


@pytest.mark.parametrize("triple", TRIPLES)
def test_symbols(triple: str) -> None:
    read = elf.read_object(object_file(triple))
    found = {symbol.name: symbol for symbol in read.symbols}
    bindings = {name: found[name].binding for name in ("a name: with spaces", "hidden", "open", "elsewhere", "perhaps")}
    assert list(bindings.values()) == [elf.STB_WEAK, elf.STB_LOCAL, elf.STB_GLOBAL, elf.STB_GLOBAL, elf.STB_WEAK]
    assert found["elsewhere"].section == found["perhaps"].section == elf.SHN_UNDEF
    assert read.sections[found["zeros"].section].name == ".bss"
    assert found["zeros"].size == 800
    text = section(read, ".text")
    functions = sorted((found[name].value, found[name].size) for name in ("a name: with spaces", "hidden", "open"))
    assert functions[0][0] == 0
    assert all(start + size <= following for (start, size), (following, _) in pairwise(functions))
    assert sum(functions[-1]) == text.size


@pytest.mark.parametrize("triple", TRIPLES)
def test_relocations_belong_to_the_section_that_they_fill_in(triple: str) -> None:
    read = elf.read_object(object_file(triple))
    names = [symbol.name for symbol in read.symbols]
    data = read.relocations[section(read, ".data").index]
    assert data["offset"].tolist() == [0, 8]
    assert names[int(data["symbol"][1])] == "elsewhere"
    text = read.relocations[section(read, ".text").index]
    assert {names[number] for number in text["symbol"].tolist()} >= {"elsewhere", "perhaps"}
    assert (text["offset"] < section(read, ".text").size).all()


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")
@pytest.mark.parametrize("triple", TRIPLES)
def test_readelf_finds_the_same(triple: str, tmp_path: Path) -> None:
    data = object_file(triple)
    (tmp_path / "x.o").write_bytes(data)
    command = ["readelf", "--wide", "--sections", "--symbols", str(tmp_path / "x.o")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    read = elf.read_object(data)
    for index, name in re.findall(r"^ *\[ *(\d+)\] (\.\S+)", shown, re.MULTILINE):
        assert read.sections[int(index)].name == name
    rows = re.findall(r"^ *(\d+): ([0-9a-f]{16}) +(\d+) (\w+) +(\w+) +\w+ +(\w+) ?(.*)$", shown, re.MULTILINE)
    assert len(rows) == len(read.symbols)
    for (number, value, size, _, binding, place, name), symbol in zip(rows, read.symbols, strict=True):
        assert symbol is read.symbols[int(number)]
        assert (symbol.value, symbol.size) == (int(value, 16), int(size))
        assert ("LOCAL", "GLOBAL", "WEAK")[symbol.binding] == binding
        assert place in ("UND", "ABS", str(symbol.section))
        assert symbol.name == name or symbol.type == elf.STT_SECTION


def test_tables_have_the_sizes_of_the_specification() -> None:
    sizes = {elf.HEADER: 64, elf.SECTION: 64, elf.SEGMENT: 56, elf.SYMBOL: 24, elf.RELOCATION: 24, elf.DYNAMIC: 16}
    assert {kind: kind.itemsize for kind in sizes} == sizes


# Refused files

FIELDS = {
    "ident": (b"\x7fELF\x01\x01\x01", "not a little-endian ELF object file of 64 bits"),
    "type": (struct.pack("<H", elf.ET_DYN), "not a little-endian ELF object file of 64 bits"),
    "sections": (struct.pack("<Q", 1 << 40), "truncated: its sections would end after it"),
    "section_count": (struct.pack("<H", 0xFFFF), "truncated: its sections would end after it"),
    "section_names": (struct.pack("<H", 0xFFF0), "no names of sections"),
}


@pytest.mark.parametrize("field", FIELDS)
def test_damaged_headers(field: str) -> None:
    data, (value, reason) = bytearray(object_file(next(iter(TRIPLES)))), FIELDS[field]
    at = elf.HEADER.fields[field][1]
    data[at : at + len(value)] = value
    with pytest.raises(CompileError, match=reason):
        elf.read_object(bytes(data))


def test_symbols_without_names() -> None:
    data = bytearray(object_file(next(iter(TRIPLES))))
    read = elf.read_object(bytes(data))
    table = section(read, ".symtab")
    (sections,) = struct.unpack_from("<Q", data, elf.HEADER.fields["sections"][1])
    struct.pack_into("<I", data, sections + 64 * table.index + elf.SECTION.fields["link"][1], 9999)
    with pytest.raises(CompileError, match="no names of symbols"):
        elf.read_object(bytes(data))


def test_object_files_are_not_shared_objects() -> None:
    assert not elf.is_shared_object(object_file(next(iter(TRIPLES))))


def test_segments_that_lie_outside_of_the_file() -> None:
    """A size so large that its sum with an offset exceeds 64 bits is refused, too."""
    header = bytearray(64)
    header[:7] = elf.IDENT
    struct.pack_into("<H", header, elf.HEADER.fields["type"][1], elf.ET_DYN)
    struct.pack_into("<Q", header, elf.HEADER.fields["segments"][1], 64)
    struct.pack_into("<H", header, elf.HEADER.fields["segment_count"][1], 1)
    for offset, size, inside in ((0, 120, True), (0, 121, False), (64, 56, True), (2**64 - 64, 128, False)):
        segment = bytearray(56)
        struct.pack_into("<Q", segment, elf.SEGMENT.fields["offset"][1], offset)
        struct.pack_into("<Q", segment, elf.SEGMENT.fields["file_size"][1], size)
        assert elf.is_shared_object(bytes(header + segment)) == inside
