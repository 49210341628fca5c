"""Compiles LLVM modules to machine code: shared objects. The object files of their parts are kept in the cache, under
everything that determines them: different modules may have the same parts, such as those that another version of
Trivium emits."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

import llvmlite
import llvmlite.binding as llvm
from llvmlite.binding import ffi

from trivium.backends import cache, native
from trivium.backends.cpu.target import CpuTarget
from trivium.backends.llvm import elf, shared_object
from trivium.ir.errors import CompileError


class Compilation:
    """Generates machine code for the parts of a module: on several threads, which begin with the first parts while the
    next are emitted."""

    def __init__(self, target: CpuTarget):
        self._target = target
        threads = native.num_threads()
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._parts: list[Future[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        # After an interrupt or an error, no one waits for the parts that threads have begun: LLVM cannot stop in one.
        if self._pool:
            self._pool.shutdown(wait=kind is None, cancel_futures=True)

    def add(self, parts: Iterable[str]) -> None:
        """Takes parts, which are LLVM assembly. More are to come."""
        for part in parts:
            if self._pool:
                made = self._pool.submit(_object_file, part, self._target, _emitted_beside_others)
            else:
                made = Future[bytes]()
                made.set_result(_object_file(part, self._target, _emitted))
            self._parts.append(made)

    def finish(self, parts: Iterable[str]) -> bytes:
        """Takes the last parts, and returns the shared object of all."""
        first, *others = parts
        if self._parts or others:
            self.add([first, *others])
            made = [part.result() for part in self._parts]
        else:
            made = [_object_file(first, self._target, _emitted)]
        return shared_object.link(made, [native.LIBRARY])


def compile_module(text: str, target: CpuTarget) -> bytes:
    """Returns the shared object for LLVM assembly."""
    with Compilation(target) as compilation:
        return compilation.finish([text])


def _object_file(text: str, target: CpuTarget, make: Callable[[str, CpuTarget], bytes]) -> bytes:
    """Returns the object file for assembly: from the cache, or as `make` makes it, which the cache then keeps."""
    kept, key = cache.default(), _key(text, target)
    found = kept.get(key) if kept else None
    if found is not None and elf.is_object_file(found):
        return found
    made = make(text, target)
    if kept:
        kept.put(key, made)
    return made


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


def _key(text: str, target: CpuTarget) -> bytes:
    """Returns everything that determines an object file."""
    facts = llvmlite.__version__, target.code_generation, target.triple, target.cpu, target.tuned_features, text
    return "\0".join(map(str, facts)).encode()
