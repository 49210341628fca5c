"""Compiles LLVM modules to machine code: shared objects. These are kept in the cache, under everything that determines
them: different modules may become the same code, such as those that another version of Trivium emits."""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
from llvmlite.binding import ffi

from trivium.backends import cache, native
from trivium.backends.cpu.target import CpuTarget
from trivium.backends.llvm import elf, merging, relocations, shared_object
from trivium.ir.errors import CompileError


def compile_module(parts: Sequence[str], target: CpuTarget) -> bytes:
    """Returns the shared object for LLVM assembly, from the cache if it is there."""
    kept, key = cache.default(), _key(parts, target)
    machine_code = kept.get(key) if kept else None
    if machine_code is not None and elf.is_shared_object(machine_code):
        return machine_code
    threads = min(len(parts), native.num_threads())
    if threads > 1:
        with ThreadPoolExecutor(threads) as pool:
            emitted = list(pool.map(functools.partial(_emitted_beside_others, target=target), parts))
    else:
        emitted = [_emitted(part, target) for part in parts]
    machine_code = shared_object.link(emitted, [native.LIBRARY])
    if kept:
        kept.put(key, machine_code)
    return machine_code


def _emitted(text: str, target: CpuTarget) -> bytes:
    """Returns the object file for assembly."""
    # Closed here, and not when it is dropped: Python loses an interrupt that arrives in `__del__`.
    with parsed(text) as module:
        return target.machine().emit_object(module)


def _emitted_beside_others(text: str, target: CpuTarget) -> bytes:
    """Returns the object file for assembly, while other threads make theirs. LLVM requires that threads do not share a
    context or a code generator; llvmlite lets one thread use LLVM at a time, so its lock is not taken here."""
    generate = _without_lock("LLVMPY_TargetMachineEmitToMemory")
    with llvm.create_context() as context, parsed(text, context) as module, target.new_machine() as machine:
        with ffi.OutputString() as error:
            buffer = generate(machine, module, True, error)
            if not buffer:
                raise CompileError(f"LLVM cannot emit the module: {error}")
        try:
            return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
        finally:
            ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@functools.cache
def _without_lock(name: str) -> Callable[..., int]:
    """Returns a function of the library that llvmlite calls."""
    library = ctypes.CDLL(ffi.lib._name, handle=ffi.lib._handle)  # with functions that are not llvmlite's wrappers
    locked, function = getattr(ffi.lib, name), getattr(library, name)
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function


def parsed(text: str, context: llvm.ContextRef | None = None) -> llvm.ModuleRef:
    """Returns LLVM's module of the assembly, verified."""
    try:
        module = llvm.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refuses the emitted module: {error}") from error
    return module


def _key(parts: Sequence[str], target: CpuTarget) -> bytes:
    """Returns everything that determines the machine code."""
    versions = llvmlite.__version__, native.VERSION, _linker()
    facts = *versions, target.code_generation, target.triple, target.cpu, target.tuned_features, *parts
    return "\0".join(map(str, facts)).encode()


@functools.cache
def _linker() -> str:
    """Returns a digest of the sources that make a shared object of LLVM's code."""
    sources = (Path(str(module.__file__)).read_bytes() for module in (elf, merging, relocations, shared_object))
    return hashlib.sha256(b"".join(sources)).hexdigest()
