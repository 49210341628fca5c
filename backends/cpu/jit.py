"""LLVM modules to machine code in this process. Objects are kept in a folder on disk, named by a hash of all that
they follow from, so that a program that was compiled once loads in a few milliseconds."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from trivium.backends import native
from trivium.backends.cpu.target import CODE_GENERATION, Target
from trivium.ir.errors import CompileError

DIGEST_BYTES = hashlib.sha256().digest_size
RUNTIME = ("trivium_parallel_for", "trivium_host_call")


class Code:
    """Machine code in memory, for as long as this object lives."""

    def __init__(self, machine_code: bytes, target: Target):
        _register_runtime()
        empty = llvm.parse_assembly(f'target triple = "{target.triple}"')
        self._engine = llvm.create_mcjit_compiler(empty, target.machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function lies."""
        return self._engine.get_function_address(name)


def compile_module(text: str, target: Target) -> bytes:
    """The object file for LLVM assembly, from the cache where it is there."""
    path = _cache_path(text, target)
    machine_code = _read(path) if path is not None else None
    if machine_code is not None:
        return machine_code
    machine_code = target.machine().emit_object(parsed(text))
    if path is not None:
        _write(path, machine_code)
    return machine_code


def parsed(text: str) -> llvm.ModuleRef:
    """LLVM's module of the assembly, verified."""
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refuses the emitted module: {error}") from error
    return module


def _cache_path(text: str, target: Target) -> Path | None:
    """TRIVIUM_CACHE is a folder, or 0 for no cache; by default the user's cache folder."""
    setting = os.environ.get("TRIVIUM_CACHE")
    if setting == "0":
        return None
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(setting) if setting else Path(base).expanduser() / "trivium"
    facts = "\0".join((llvmlite.__version__, str(CODE_GENERATION), target.triple, target.cpu, target.features, text))
    return folder / f"{hashlib.sha256(facts.encode()).hexdigest()}.object"


def _read(path: Path) -> bytes | None:
    """What a cached file holds, if it is whole: loading a damaged object would end the process."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, machine_code = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
    return machine_code if hashlib.sha256(machine_code).digest() == digest else None


def _write(path: Path, machine_code: bytes) -> None:
    """Whole or not at all, behind its digest; a cache that cannot be written is a cache less, not an error."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(machine_code).digest() + machine_code)
        Path(file.name).replace(path)


@functools.cache
def _register_runtime() -> None:
    """Makes the native runtime's functions known to the linker."""
    for name in RUNTIME:
        llvm.add_symbol(name, native.address(name))
