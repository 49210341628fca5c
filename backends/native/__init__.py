"""The native runtime as Python sees it: one shared library, loaded on first use from this folder (where a wheel
installs it), from the path in TRIVIUM_RUNTIME, or from where an editable install put it."""

from __future__ import annotations

import ctypes
import functools
import os
import sysconfig
import threading
from importlib import resources
from pathlib import Path

from trivium.ir.errors import ExecutionError

LIBRARY = "libtrivium_runtime.so"
VERSION = 7
MAX_THREADS = 4096


@functools.cache
def load() -> ctypes.CDLL:
    """The library, its version checked."""
    path = _find()
    try:
        library = ctypes.CDLL(str(path))
        version = library.trivium_runtime_version()
    except (OSError, AttributeError) as error:
        raise ExecutionError(f"{path} is not Trivium's native runtime: {error}") from None
    if version != VERSION:
        raise ExecutionError(f"{path} has version {version}, expected {VERSION}: reinstall trivium")
    _set_interpreter(library)
    os.register_at_fork(after_in_child=lambda: _set_interpreter(library))
    return library


def address(name: str) -> int:
    """Where a function of the library lies, for native code to call."""
    return ctypes.cast(getattr(load(), name), ctypes.c_void_p).value or 0


def exception() -> str:
    """What ended this thread's last call of the library early, where that has raised nothing in Python."""
    function = load().trivium_exception
    function.restype = ctypes.c_char_p
    return function().decode(errors="replace")


def num_threads() -> int:
    """Threads that the runtime uses, the caller's included."""
    # The runtime itself, which no Python need stand in front of, takes what is no number for nothing.
    wish = os.environ.get("TRIVIUM_NUM_THREADS", "")
    if wish and not (wish.isascii() and wish.isdigit() and 1 <= int(wish[:5]) <= MAX_THREADS):
        raise ExecutionError(f"TRIVIUM_NUM_THREADS has {wish!r}, expected a number from 1 to {MAX_THREADS}")
    return int(load().trivium_num_threads())


class _Interpreter(ctypes.Structure):
    """`trivium::Interpreter` of interpreter.h."""

    FUNCTIONS = (
        "PyEval_SaveThread",
        "PyEval_RestoreThread",
        "PyErr_CheckSignals",
        "PyObject_CallFunction",
        "Py_DecRef",
        "PyGILState_Ensure",
        "PyGILState_Release",
        "PyErr_Fetch",
        "PyObject_Str",
        "PyUnicode_AsUTF8AndSize",
        "PyErr_Clear",
    )
    _fields_ = (*((name, ctypes.c_void_p) for name in FUNCTIONS), ("main_thread", ctypes.c_uint64))


def _set_interpreter(library: ctypes.CDLL) -> None:
    """Gives the library what it needs of this interpreter."""
    functions = [field[0] for field in _Interpreter._fields_ if field[0] != "main_thread"]
    addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in functions]
    library.trivium_set_interpreter(ctypes.byref(_Interpreter(*addresses, threading.main_thread().ident)))


def _find() -> Path:
    if override := os.environ.get("TRIVIUM_RUNTIME"):
        return Path(override)
    # An editable install keeps what CMake built in site-packages, apart from the sources: look through the whole
    # package path.
    folders = [Path(str(resources.files(__name__))), *_installed_folders()]
    for folder in folders:
        if (folder / LIBRARY).exists():
            return folder / LIBRARY
    looked = ", ".join(map(str, folders))
    raise ExecutionError(f"{LIBRARY} is not in {looked}; install trivium, or set TRIVIUM_RUNTIME to the library's path")


def _installed_folders() -> list[Path]:
    return [Path(sysconfig.get_path(kind)) / "trivium/backends/native" for kind in ("platlib", "purelib")]
