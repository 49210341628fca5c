"""Trivium as a PJRT plugin: the native library's table of C functions, with this process's Python as its compiler. The
compiler is imported when the first program arrives: a host that only lists devices does not wait for it."""

from __future__ import annotations

import atexit
import ctypes
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trivium.backends import native
from trivium.backends.plugin.accelerator_structures import AcceleratorFunctions
from trivium.backends.plugin.structures import COMPILE, OPTIONS, RELEASE, SERIALIZE, TRACE, CompileReply, CompileRequest

if TYPE_CHECKING:
    from trivium.backends.plugin.compiler import Compiled, Inspector, Kept
    from trivium.backends.plugin.foreign import Find

foreign_functions: list[Find] = []
"""Lookups for custom calls whose target Trivium does not know: each returns capsules of handlers by stage, in the form
that `trivium.backends.plugin.foreign` expects."""

option_checks: list[Callable[[bytes], None]] = []
"""Called with XLA's `CompileOptionsProto`, if it sets options of the compiler by their names: each raises an `Error`
for options that do not exist, or that have values of another type."""

sharding_inspectors: list[Inspector] = []
"""Called for each question of a program how devices hold a value, once it has been compiled."""

observers: list[Callable[[Compiled], None]] = []
"""Called with each program that was compiled, not with those that were loaded."""

preparations: list[Callable[[], None]] = []
"""Called before the first program is compiled."""

_kept: dict[int, Kept] = {}
"""The objects that native executables use, by the handle with which they release them."""


@functools.cache
def api() -> int:
    """Returns the address of the table, PJRT's `PJRT_Api`, for plugin hosts. Programs can be compiled from here on,
    until the interpreter exits."""
    library = native.load()
    _set_compiler(library, _compile, _release, _serialize, _trace, _check_options, _describe)
    library.trivium_pjrt_set_accelerators(ctypes.byref(_accelerators()))
    atexit.register(_finish, library)
    library.GetPjrtApi.restype = ctypes.c_void_p
    return library.GetPjrtApi()


def _finish(library: ctypes.CDLL) -> None:
    """Called before the interpreter ends: runs in flight may call it. Other threads may outlive it, and must not find a
    Python function then."""
    library.trivium_pjrt_finish()
    library.trivium_pjrt_set_accelerators(None)
    _set_compiler(library, COMPILE(), RELEASE(), SERIALIZE(), TRACE(), OPTIONS(), SERIALIZE())


def _set_compiler(
    library: ctypes.CDLL,
    compile: object,
    release: object,
    serialize: object,
    trace: object,
    options: object,
    describe: object,
) -> None:
    library.trivium_pjrt_set_compiler(compile, release)
    library.trivium_pjrt_set_serializer(serialize)
    library.trivium_pjrt_set_tracer(trace)
    library.trivium_pjrt_set_options_check(options)
    library.trivium_pjrt_set_describer(describe)


@COMPILE
def _compile(request: ctypes._Pointer[CompileRequest], reply: ctypes._Pointer[CompileReply], failure: int) -> int:
    """Called from native code, in any thread. Nothing may be raised into it: errors become a code and a text."""
    try:
        from trivium.backends.plugin.compiler import compile_program

        for prepare in preparations:
            prepare()
        preparations.clear()
        kept = compile_program(request.contents, reply.contents, foreign_functions, sharding_inspectors)
        if kept.is_compiled:
            for observe in observers:
                observe(kept.executable)
        _kept[reply.contents.handle] = kept
        return 0
    except BaseException as error:
        return _failed(error, failure)


@RELEASE
def _release(handle: int) -> None:
    _kept.pop(handle, None)


@SERIALIZE
def _serialize(handle: int, sink: int, failure: int) -> int:
    """Called from native code, like `_compile`."""
    return _written(lambda: _kept[handle].serialized(), sink, failure)


@SERIALIZE
def _describe(handle: int, sink: int, failure: int) -> int:
    """Called from native code, like `_compile`."""
    return _written(lambda: _kept[handle].optimized_program(), sink, failure)


def _written(data_of: Callable[[], bytes], sink: int, failure: int) -> int:
    """Passes bytes to native code."""
    try:
        data = data_of()
        native.load().trivium_pjrt_write(ctypes.c_void_p(sink), data, ctypes.c_size_t(len(data)))
        return 0
    except BaseException as error:
        return _failed(error, failure)


@TRACE
def _trace(handle: int, reply: ctypes._Pointer[CompileReply], failure: int) -> int:
    """Called from native code, like `_compile`."""
    try:
        from trivium.backends.plugin.compiler import compile_traced

        kept = compile_traced(_kept[handle], reply.contents)
        _kept[reply.contents.handle] = kept
        return 0
    except BaseException as error:
        return _failed(error, failure)


@OPTIONS
def _check_options(options: int, size: int, failure: int) -> int:
    """Called from native code, like `_compile`."""
    try:
        serialized = ctypes.string_at(options, size)
        for check in option_checks:
            check(serialized)
        return 0
    except BaseException as error:
        return _failed(error, failure)


@functools.cache
def _accelerators() -> AcceleratorFunctions:
    """Returns the functions of `trivium.backends.plugin.accelerators`, which is imported when one is called."""
    table = AcceleratorFunctions()
    for name, kind, *_ in AcceleratorFunctions._fields_:
        setattr(table, name, kind(functools.partial(_drive, name)))
    return table


def _drive(name: str, *arguments: Any) -> int:
    """Called from native code, like `_compile`."""
    *given, failure = arguments
    try:
        from trivium.backends.plugin import accelerators

        getattr(accelerators, name)(*given)
        return 0
    except BaseException as error:
        return _failed(error, failure)


def _failed(error: BaseException, failure: int) -> int:
    from trivium.backends.plugin.compiler import explanation

    code, text = explanation(error)
    message = text.encode(errors="replace")
    native.load().trivium_pjrt_fail(ctypes.c_void_p(failure), message, ctypes.c_size_t(len(message)))
    return code
