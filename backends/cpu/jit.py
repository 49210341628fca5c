"""LLVM modules to machine code in this process. Object files are kept in the cache, under all that they follow from,
so that a program that was compiled once loads in a few milliseconds."""

from __future__ import annotations

import functools
import struct

import llvmlite
import llvmlite.binding as llvm

from trivium.backends import cache, native
from trivium.backends.cpu.target import CODE_GENERATION, CpuTarget
from trivium.ir.errors import CompileError

# Of the ELF header of 64 bits: the magic number with class and byte order, the type of file, where the table of
# sections is, and the size and number of its entries.
OBJECT_HEADER = struct.Struct("<6s10xH22xQ10xHH2x")
OBJECT_MAGIC, RELOCATABLE = b"\x7fELF\x02\x01", 1
RUNTIME = ("trivium_parallel_for", "trivium_host_call", "trivium_check_signals")


class Code:
    """Machine code in memory, for as long as this object lives."""

    def __init__(self, machine_code: bytes, target: CpuTarget):
        _register_runtime()
        empty = llvm.parse_assembly(f'target triple = "{target.triple}"')
        self._engine = llvm.create_mcjit_compiler(empty, target.machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function lies."""
        return self._engine.get_function_address(name)


def compile_module(text: str, target: CpuTarget) -> bytes:
    """The object file for LLVM assembly, from the cache where it is there."""
    kept, key = cache.default(), _key(text, target)
    machine_code = kept.get(key) if kept else None
    if machine_code is not None and _is_object(machine_code):
        return machine_code
    machine_code = target.machine().emit_object(parsed(text))
    if kept:
        kept.put(key, machine_code)
    return machine_code


def parsed(text: str) -> llvm.ModuleRef:
    """LLVM's module of the assembly, verified."""
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refuses the emitted module: {error}") from error
    return module


def _key(text: str, target: CpuTarget) -> bytes:
    """All that machine code follows from."""
    facts = llvmlite.__version__, native.VERSION, CODE_GENERATION, target.triple, target.cpu, target.features, text
    return "\0".join(map(str, facts)).encode()


def _is_object(machine_code: bytes) -> bool:
    """Whether this can be an object file: LLVM's loader ends the process on what is none."""
    if len(machine_code) < OBJECT_HEADER.size:
        return False
    magic, kind, sections, entry_size, count = OBJECT_HEADER.unpack_from(machine_code)
    return magic == OBJECT_MAGIC and kind == RELOCATABLE and sections + entry_size * count <= len(machine_code)


@functools.cache
def _register_runtime() -> None:
    """Makes the native runtime's functions known to the linker."""
    for name in RUNTIME:
        llvm.add_symbol(name, native.address(name))
