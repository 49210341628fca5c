"""The native runtime as seen from Python: one shared library, which is loaded on first use from this folder (where a
wheel installs it), from the path in TRIVIUM_RUNTIME, or from the location of an editable install."""

from __future__ import annotations

import ctypes
import functools
import os
import sysconfig
import threading
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

LIBRARY = "libtrivium_runtime.so"
VERSION = 12
MAX_THREADS = 4096


@functools.cache
def load() -> ctypes.CDLL:
    """Loads the library and checks its version."""
    found = path()
    try:
        library = ctypes.CDLL(str(found))
        version = library.trivium_runtime_version()
    except (OSError, AttributeError) as error:
        raise _error(f"{found} is not Trivium's native runtime: {error}") from None
    if version != VERSION:
        raise _error(f"{found} has version {version}, expected {VERSION}: reinstall trivium")
    _set_interpreter(library)
    os.register_at_fork(after_in_child=lambda: _set_interpreter(library))
    return library


def _error(text: str) -> Exception:
    # Imported when needed: with it come all ops, for which hosts that only list devices should not wait.
    from trivium.ir.errors import ExecutionError

    return ExecutionError(text)


def address(name: str) -> int:
    """Returns the address of a function of the library, for native code to call."""
    return ctypes.cast(getattr(load(), name), ctypes.c_void_p).value or 0


@functools.cache
def _addresses() -> Callable[..., int]:
    kinds = ctypes.py_object, ctypes.c_int64, ctypes.c_void_p
    return ctypes.PYFUNCTYPE(ctypes.c_int32, *kinds)(address("trivium_addresses"))


def addresses(objects: list[Any]) -> list[int]:
    """Returns where each object has its memory, in less time than Python needs to ask an array. Raises the object's
    exception if it does not lend its memory."""
    found = (ctypes.c_size_t * len(objects))()
    _addresses()(objects, len(objects), ctypes.addressof(found))
    return found[:]


def exception() -> str:
    """Returns the reason why this thread's last call of the library ended early, if that raised nothing in Python."""
    function = load().trivium_exception
    function.restype = ctypes.c_char_p
    return function().decode(errors="replace")


def num_threads() -> int:
    """Returns the number of threads that the runtime uses, including the caller's."""
    # The runtime itself, which also works without Python, ignores a value that is not a number.
    wish = os.environ.get("TRIVIUM_NUM_THREADS", "")
    if wish and not (wish.isascii() and wish.isdigit() and 1 <= int(wish[:5]) <= MAX_THREADS):
        raise _error(f"TRIVIUM_NUM_THREADS has {wish!r}, expected a number from 1 to {MAX_THREADS}")
    return int(load().trivium_num_threads())


HOST_FUNCTIONS = "GOMP_parallel", "omp_get_thread_num", "omp_get_max_threads"
"""Functions of an OpenMP library: those of GCC, Intel and LLVM have them. See `trivium::HostThreads`."""


def use_host_threads(addresses: Sequence[int]) -> None:
    """Lets the threads of the host, which the functions at these addresses, `HOST_FUNCTIONS`, reach, take part in
    programs that this thread calls from now on, instead of the runtime's own. Programs for more threads than those do
    not use them, nor do programs in a forked child, which has lost the host's threads."""
    load().trivium_use_host_threads((ctypes.c_void_p * len(HOST_FUNCTIONS))(*addresses))


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
        "Py_AddPendingCall",
        "PyList_GetItem",
        "PyObject_GetBuffer",
        "PyBuffer_Release",
    )
    _fields_ = (*((name, ctypes.c_void_p) for name in FUNCTIONS), ("main_thread", ctypes.c_uint64))


def _set_interpreter(library: ctypes.CDLL) -> None:
    """Passes the library the parts of this interpreter that it needs."""
    functions = [field[0] for field in _Interpreter._fields_ if field[0] != "main_thread"]
    addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in functions]
    library.trivium_set_interpreter(ctypes.byref(_Interpreter(*addresses, threading.main_thread().ident)))


def path() -> Path:
    """Returns the path of the library."""
    if override := os.environ.get("TRIVIUM_RUNTIME"):
        return Path(override)
    # An editable install keeps CMake's output in site-packages, separate from the sources: search the whole package
    # path.
    folders = [Path(str(resources.files(__name__))), *_installed_folders()]
    for folder in folders:
        if (folder / LIBRARY).exists():
            return folder / LIBRARY
    looked = ", ".join(map(str, folders))
    raise _error(f"{LIBRARY} is not in {looked}; install trivium, or set TRIVIUM_RUNTIME to the library's path")


def _installed_folders() -> list[Path]:
    return [Path(sysconfig.get_path(kind)) / "trivium/backends/native" for kind in ("platlib", "purelib")]
