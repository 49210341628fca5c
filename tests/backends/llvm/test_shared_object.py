"""Shared objects from LLVM's object files: they satisfy their format, load, run and can be unloaded. Code for this
machine is loaded by its dynamic linker; code for AArch64 runs in an emulator, if there is one."""

from __future__ import annotations

import ctypes
import math
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from trivium.backends.cpu.target import CODE_GENERATION, host
from trivium.backends.llvm import elf
from trivium.backends.llvm.shared_object import link
from trivium.ir.errors import CompileError

TRIPLES = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
X86_64 = host().triple.startswith("x86_64")


@pytest.fixture(scope="module", autouse=True)
def _targets() -> None:
    host()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def object_file(text: str, triple: str) -> bytes:
    machine = llvm.Target.from_triple(triple).create_target_machine(**CODE_GENERATION)
    return machine.emit_object(llvm.parse_assembly(f'target triple = "{triple}"\n{text}'))


def loaded(shared_object: bytes) -> ctypes.CDLL:
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(shared_object)
        file.flush()
        return ctypes.CDLL(file.name)


# Tables that are indexed, calls within the file and to other files, data that is written, data that is zero, addresses
# in data, and addresses of symbols in another file.
EVERYTHING = """
@table = internal constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]
@aligned = internal constant [4 x double] [double 1.0, double 2.0, double 3.0, double 4.0], align 32
@counter = internal global i64 5
@zeros = internal global [100 x i64] zeroinitializer, align 64
@pointers = internal constant [2 x ptr] [ptr getelementptr (i8, ptr @table, i64 4), ptr @counter]
@functions = internal global [2 x ptr] [ptr @cos, ptr @twice]
@environ = external global ptr

declare double @cos(double)
declare double @pow(double, double)

define internal i64 @twice(i64 %x) noinline {
  %y = mul i64 %x, 2
  ret i64 %y
}

define i32 @lookup(i64 %i) {
  %p = getelementptr [4 x i32], ptr @table, i64 0, i64 %i
  %v = load i32, ptr %p
  ret i32 %v
}

define double @element(i64 %i) {
  %p = getelementptr [4 x double], ptr @aligned, i64 0, i64 %i
  %v = load double, ptr %p
  ret double %v
}

define i64 @count() {
  %old = load i64, ptr @counter
  %new = call i64 @twice(i64 %old)
  store i64 %new, ptr @counter
  ret i64 %new
}

define i64 @sum_of_zeros(i64 %i) {
  %p = getelementptr [100 x i64], ptr @zeros, i64 0, i64 %i
  %v = load i64, ptr %p
  %w = add i64 %v, 1
  store i64 %w, ptr %p
  ret i64 %w
}

define i32 @through_a_pointer() {
  %p = load ptr, ptr @pointers
  %v = load i32, ptr %p
  ret i32 %v
}

define double @outside(double %x, double %y) {
  %a = call double @cos(double %x)
  %b = call double @pow(double %a, double %y)
  ret double %b
}

define double @outside_by_address(double %x) {
  %f = load ptr, ptr @functions
  %a = call double %f(double %x)
  ret double %a
}

define ptr @environment() {
  %v = load ptr, ptr @environ
  ret ptr %v
}
"""


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return loaded(link([object_file(EVERYTHING, host().triple)], ["libm.so.6"]))


def test_tables(library: ctypes.CDLL) -> None:
    assert [library.lookup(i) for i in range(4)] == [10, 20, 30, 40]
    library.element.restype = ctypes.c_double
    assert [library.element(i) for i in range(4)] == [1, 2, 3, 4]


def test_data(library: ctypes.CDLL) -> None:
    assert [library.count() for _ in range(3)] == [10, 20, 40]
    assert [library.sum_of_zeros(99) for _ in range(2)] == [1, 2]
    assert library.through_a_pointer() == 20


def test_functions_of_other_libraries(library: ctypes.CDLL) -> None:
    for function in (library.outside, library.outside_by_address):
        function.restype = ctypes.c_double
        function.argtypes = [ctypes.c_double] * (2 if function is library.outside else 1)
    assert library.outside(0.5, 3.0) == math.cos(0.5) ** 3.0
    assert library.outside_by_address(0.25) == math.cos(0.25)


def test_data_of_other_libraries(library: ctypes.CDLL) -> None:
    library.environment.restype = ctypes.c_void_p
    assert library.environment() == ctypes.c_void_p.in_dll(ctypes.CDLL(None), "environ").value


def test_only_what_is_global_is_exported(library: ctypes.CDLL) -> None:
    for name in ("twice", "table", "counter", "nothing"):
        assert not hasattr(library, name)


def test_a_library_that_is_missing() -> None:
    with pytest.raises(OSError, match=r"libnothing\.so"):
        loaded(link([object_file(EVERYTHING, host().triple)], ["libnothing.so"]))


def test_a_function_that_is_missing() -> None:
    text = "declare i32 @nobody_has_this()\ndefine i32 @f() {\n%x = call i32 @nobody_has_this()\nret i32 %x\n}"
    with pytest.raises(OSError, match="undefined symbol: nobody_has_this"):
        loaded(link([object_file(text, host().triple)]))


def test_many_functions() -> None:
    """The hash table locates each of them."""
    text = "\n".join(f"define i32 @function.{n}() {{ ret i32 {n} }}" for n in range(500))
    library = loaded(link([object_file(text, host().triple)]))
    assert [library[f"function.{n}"]() for n in range(500)] == list(range(500))


@pytest.mark.parametrize("text", ["", "@x = global i32 7", "define void @f() { ret void }"])
@pytest.mark.parametrize("triple", TRIPLES)
def test_files_of_little(text: str, triple: str) -> None:
    assert elf.is_shared_object(link([object_file(text, triple)]))


# The format


def tables(data: bytes) -> tuple[np.void, np.ndarray, np.ndarray]:
    header = np.frombuffer(data, elf.HEADER, 1)[0]
    segments = np.frombuffer(data, elf.SEGMENT, header["segment_count"], header["segments"])
    return header, segments, np.frombuffer(data, elf.SECTION, header["section_count"], header["sections"])


def section_of(data: bytes, name: str) -> np.void:
    header, _, sections = tables(data)
    names = int(sections[header["section_names"]]["offset"])
    (found,) = (s for s in sections if data[names + int(s["name"]) :].startswith(name.encode() + b"\0"))
    return found


@pytest.mark.parametrize("triple", TRIPLES)
def test_segments(triple: str) -> None:
    """No page is both written and executed, none has two sets of rights, and the dynamic linker's tables become
    read-only."""
    _, segments, _ = tables(link([object_file(EVERYTHING, triple)], ["libm.so.6"]))
    loads = segments[segments["type"] == elf.PT_LOAD]
    assert [int(flags) for flags in loads["flags"]] == [4, 5, 6, 6]
    page = int(loads["alignment"][0])
    assert page == (0x1000 if triple.startswith("x86") else 0x10000)
    assert (loads["offset"] % page == loads["address"] % page).all()
    first, last = loads["address"] // page, (loads["address"] + loads["size"] - 1) // page
    assert (last[:-1] < first[1:]).all()
    (stack,) = segments[segments["type"] == elf.PT_GNU_STACK]
    assert stack["flags"] == elf.PF_R | elf.PF_W
    (relro,) = segments[segments["type"] == elf.PT_GNU_RELRO]
    assert relro["address"] == loads["address"][2]
    assert (relro["address"] + relro["size"]) % page == 0


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")
@pytest.mark.parametrize("triple", TRIPLES)
def test_readelf_is_content(triple: str, tmp_path: Path) -> None:
    file = tmp_path / "x.so"
    file.write_bytes(link([object_file(EVERYTHING, triple)], ["libm.so.6"]))
    shown = subprocess.run(["readelf", "--all", "--wide", str(file)], capture_output=True, text=True, check=True)
    assert "readelf: " not in shown.stderr  # an error or a warning
    assert "Shared library: [libm.so.6]" in shown.stdout
    for symbol in ("FUNC    LOCAL  DEFAULT    6 twice", "FUNC    GLOBAL DEFAULT    6 lookup"):
        assert symbol in shown.stdout
    for relocation in ("RELATIVE", "GLOB_DAT"):
        assert relocation in shown.stdout


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
def test_gdb_knows_the_functions(tmp_path: Path) -> None:
    file = tmp_path / "x.so"
    file.write_bytes(link([object_file(EVERYTHING, host().triple)], ["libm.so.6"]))
    command = ["gdb", "-batch", "-nx", "-ex", "info address twice", "-ex", "disassemble lookup", str(file)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert 'Symbol "twice" is at 0x' in shown.stdout
    assert "ret" in shown.stdout
    assert "warning" not in shown.stderr


# AArch64

ON_AARCH64 = """
@table = internal constant [4 x i64] [i64 1, i64 20, i64 300, i64 4000]
@bytes = internal global [3 x i8] c"\\01\\02\\03"
@zeros = internal global [1000 x i64] zeroinitializer

define i64 @exit(i64 %status) noinline {
  %r = mul i64 %status, 123456789
  ret i64 %r
}

define internal i64 @get(i64 %i) noinline {
  %p = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}

define i64 @start() {
  %a = call i64 @get(i64 0)
  %b = call i64 @get(i64 1)
  %v = load <2 x i64>, ptr @table
  %c = extractelement <2 x i64> %v, i32 1
  %p = getelementptr [3 x i8], ptr @bytes, i64 0, i64 2
  store i8 7, ptr %p
  %d = load i8, ptr %p
  %e = zext i8 %d to i64
  %q = getelementptr [1000 x i64], ptr @zeros, i64 0, i64 999
  store i64 9, ptr %q
  %f = load i64, ptr %q
  %ab = add i64 %a, %b
  %abc = add i64 %ab, %c
  %abcd = add i64 %abc, %e
  %status = add i64 %abcd, %f
  %r = tail call i64 @exit(i64 %status)
  ret i64 %r
}
"""


EXIT = struct.pack("<2I", 0xD2800BA8, 0xD4000001)  # mov x8, #93; svc #0: the process exits with the status in x0


@pytest.mark.skipif(shutil.which("qemu-aarch64") is None, reason="qemu-aarch64 is not installed")
def test_code_for_aarch64_runs(tmp_path: Path) -> None:
    """Runs as a program without libraries, whose first instruction is that of `start`."""
    data = bytearray(link([object_file(ON_AARCH64, TRIPLES[1])]))
    symbols = section_of(bytes(data), ".dynsym")
    exit_, start = np.frombuffer(data, elf.SYMBOL, 2, symbols["offset"] + elf.SYMBOL.itemsize)["value"]
    text = section_of(bytes(data), ".text")
    at = int(exit_ - text["address"] + text["offset"])
    data[at : at + len(EXIT)] = EXIT
    struct.pack_into("<Q", data, elf.HEADER.fields["entry"][1], start)
    file = tmp_path / "program"
    file.write_bytes(data)
    file.chmod(0o700)
    assert subprocess.run(["qemu-aarch64", str(file)], timeout=60).returncode == 1 + 20 + 20 + 7 + 9


def test_stubs_of_aarch64() -> None:
    """They load from their slots: `adrp x16`, `ldr x17, [x16]`, `br x17`, whose distances are decoded here."""
    text = "declare void @a()\ndeclare void @b()\ndefine void @f() {\ncall void @a()\ncall void @b()\nret void\n}"
    data = link([object_file(text, TRIPLES[1])])
    plt, got = section_of(data, ".plt"), section_of(data, ".got")
    for number in range(2):
        at = 16 * number
        words = [int(word) for word in np.frombuffer(data, "<u4", 4, int(plt["offset"]) + at)]
        masks = (0x9F00001F, 0xFFC003FF, 0xFFFFFFFF, 0xFFFFFFFF)
        masked = [word & mask for word, mask in zip(words, masks, strict=True)]
        assert masked == [0x90000010, 0xF9400211, 0xD61F0220, 0xD503201F]
        pages = words[0] >> 29 & 3 | (words[0] >> 5 & 0x7FFFF) << 2
        place = ((int(plt["address"]) + at) // 4096 + pages) * 4096 + (words[1] >> 10 & 0xFFF) * 8
        assert place == int(got["address"]) + 8 * number


# Object files that cannot be linked


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("@x = thread_local global i32 7\ndefine ptr @f() {\nret ptr @x\n}", r"the section \.tdata"),
        ("@llvm.global_ctors = appending global [1 x {i32, ptr, ptr}] [{i32, ptr, ptr} {i32 0, ptr @f, ptr null}]\n"
         "define void @f() {\nret void\n}", r"the section \.ctors"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("triple", TRIPLES)
def test_sections_that_need_a_linker(text: str, reason: str, triple: str) -> None:
    with pytest.raises(CompileError, match=reason):
        link([object_file(text, triple)])


def test_code_of_another_machine() -> None:
    text = object_file("define void @f() { ret void }", "riscv64-unknown-linux-gnu")
    with pytest.raises(CompileError, match="no way to link code of ELF machine 243"):
        link([text])


def test_code_that_is_not_position_independent() -> None:
    machine = llvm.Target.from_triple(TRIPLES[0]).create_target_machine(reloc="static", codemodel="large")
    text = f'target triple = "{TRIPLES[0]}"\n@x = global i32 1\ndefine ptr @f() {{ ret ptr @x }}'
    with pytest.raises(CompileError, match=r"the section \.ltext"):
        link([machine.emit_object(llvm.parse_assembly(text))])


def relocations_at(data: bytes) -> int:
    """Returns the offset of the code's relocations in an object file."""
    (found,) = (section for section in elf.read_object(data).sections if section.name == ".rela.text")
    return data.index(found.data)


def test_an_address_in_code() -> None:
    data = bytearray(object_file("@x = global i32 1\ndefine ptr @f() { ret ptr @x }", TRIPLES[0]))
    struct.pack_into("<I", data, relocations_at(bytes(data)) + elf.RELOCATION.fields["kind"][1], 1)
    with pytest.raises(CompileError, match=r"an address in \.text"):
        link([bytes(data)])


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [("kind", 77, "relocations of kind 77"), ("symbol", 99, "for symbol 99 of"), ("offset", 1 << 40, "outside of it")],
)
def test_damaged_relocations(field: str, value: int, reason: str) -> None:
    data = bytearray(object_file("@x = internal global i32 1\ndefine ptr @f() { ret ptr @x }", TRIPLES[0]))
    kind, offset = elf.RELOCATION.fields[field][:2]
    at = relocations_at(bytes(data))
    data[at + offset : at + offset + kind.itemsize] = value.to_bytes(kind.itemsize, "little")
    with pytest.raises(CompileError, match=reason):
        link([bytes(data)])


@pytest.mark.parametrize("data", [b"", b"\x7fELF", bytes(64), b"!<arch>\n" + bytes(100), elf.IDENT + bytes(57)])
def test_files_that_are_not_object_files(data: bytes) -> None:
    with pytest.raises(CompileError):
        link([data])
    assert not elf.is_shared_object(data)


@pytest.mark.parametrize("triple", TRIPLES)
def test_truncated_files(triple: str) -> None:
    whole = object_file(EVERYTHING, triple)
    shared = link([whole])
    for length in range(0, len(whole), 97):
        with pytest.raises(CompileError):
            link([whole[:length]])
    assert elf.is_shared_object(shared)
    assert not any(elf.is_shared_object(shared[:length]) for length in range(0, len(shared), 97))
