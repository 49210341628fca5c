"""Machine code in this process: shared objects, loaded from memory."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import tempfile
import weakref

from trivium.backends import native
from trivium.ir.errors import CompileError

ENTRY = "trivium_entry"
"""The function of a program; `backends.cpu.program` describes its arguments."""


class Code:
    """Machine code in memory, which is unloaded when this object is dropped."""

    def __init__(self, shared_object: bytes):
        native.load()  # the library that the code needs, which the dynamic linker then knows by name
        self._library = _loaded(shared_object)
        _unload_with(self, self._library._handle)

    def address(self, name: str) -> int:
        """Returns the address of a function. No object of ctypes is made for it: it would refer to itself, and remain
        until Python's collector finds it."""
        if (address := _symbol(self._library._handle, name.encode())) is None:
            raise AttributeError(f"the machine code has no function {name}")
        return address


_loads = itertools.count(1)


def _loaded(shared_object: bytes) -> ctypes.CDLL:
    """Loads the library from memory; or from a temporary file if the system has no files in memory, or refuses to
    execute them."""
    try:
        descriptor = os.memfd_create("trivium", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(shared_object)
            file.flush()
            return ctypes.CDLL(_memory_path(descriptor, next(_loads)))
    except OSError:
        pass
    try:
        with tempfile.NamedTemporaryFile(prefix="trivium-", suffix=".so") as file:
            file.write(shared_object)
            file.flush()
            return ctypes.CDLL(file.name)
    except OSError as error:
        raise CompileError(f"the machine code cannot be loaded: {error}") from error


def _memory_path(descriptor: int, number: int) -> str:
    """Returns a path to a file in memory that is different for each number: the dynamic linker takes a library that it
    knows for any later one with the same path, and descriptors are reused. The separators encode the digits."""
    digits = "".join("./" if digit == "1" else "/" for digit in f"{number:b}")
    return f"/proc/self/fd/{digits}{descriptor}"


_symbol = ctypes.CDLL(None).dlsym
_symbol.argtypes, _symbol.restype = (ctypes.c_void_p, ctypes.c_char_p), ctypes.c_void_p

_unload = ctypes.CDLL(None).dlclose
_unload.argtypes = ctypes.c_void_p, ctypes.py_object

_alive: set[weakref.ref[Code]] = set()


def _unload_with(code: Code, handle: int) -> None:
    """Unloads a library when its code is dropped, but not when the process exits: threads may still be running it then.
    No Python function runs at that time, because an interrupt that arrives in one would be lost: the weak reference
    calls `dlclose`, which ignores the reference that it is given after the handle."""
    _alive.difference_update([each for each in list(_alive) if each() is None])
    _alive.add(weakref.ref(code, functools.partial(_unload, handle)))
