"""Compiles LLVM modules to machine code: shared objects. These are kept in the cache, under everything that determines
them: different modules may become the same code, such as those that another version of Trivium emits."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from trivium.backends import cache, native
from trivium.backends.cpu.target import CODE_GENERATION, CpuTarget
from trivium.backends.llvm import elf, relocations, shared_object
from trivium.ir.errors import CompileError


def compile_module(text: str, target: CpuTarget) -> bytes:
    """Returns the shared object for LLVM assembly, from the cache if it is there."""
    kept, key = cache.default(), _key(text, target)
    machine_code = kept.get(key) if kept else None
    if machine_code is not None and elf.is_shared_object(machine_code):
        return machine_code
    # Closed here, and not when it is dropped: Python loses an interrupt that arrives in `__del__`.
    with parsed(text) as module:
        emitted = target.machine().emit_object(module)
    machine_code = shared_object.link(emitted, [native.LIBRARY])
    if kept:
        kept.put(key, machine_code)
    return machine_code


def parsed(text: str) -> llvm.ModuleRef:
    """Returns LLVM's module of the assembly, verified."""
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refuses the emitted module: {error}") from error
    return module


def _key(text: str, target: CpuTarget) -> bytes:
    """Returns everything that determines the machine code."""
    versions = llvmlite.__version__, native.VERSION, _linker()
    facts = *versions, CODE_GENERATION, target.triple, target.cpu, target.tuned_features, text
    return "\0".join(map(str, facts)).encode()


@functools.cache
def _linker() -> str:
    """Returns a digest of the sources that make a shared object of LLVM's code."""
    sources = (Path(str(module.__file__)).read_bytes() for module in (elf, relocations, shared_object))
    return hashlib.sha256(b"".join(sources)).hexdigest()
