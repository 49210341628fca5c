"""Compiled programs as foreign functions, with the C ABI that XLA's clients share: a host that is not ours, such as
JAX's CPU platform, runs them on its own buffers. The opposite of `foreign.py`; the handler is
`backends/native/pjrt/foreign_program.cc`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from trivium.backends import native
from trivium.backends.cpu.client import CpuLoadedExecutable
from trivium.backends.cpu.host import view_of
from trivium.backends.pjrt import LoadedExecutable
from trivium.ir.types import TensorType, Type

HANDLER = "trivium_call_program"
"""The handler of all programs: a function of the native runtime, and the name under which hosts know it."""


def handler() -> ctypes._CFunctionType:
    """Returns the handler, which hosts register."""
    return getattr(native.load(), HANDLER)


class ForeignProgram:
    """A program that custom calls of `HANDLER` run. It must live as long as they do."""

    def __init__(self, loaded: LoadedExecutable):
        self._loaded = loaded
        library = native.load()
        new, self._delete = library.trivium_new_program, library.trivium_delete_program
        new.restype, library.trivium_process.restype = ctypes.c_void_p, ctypes.c_int64
        new.argtypes = [*(ctypes.c_void_p,) * 2, *(ctypes.c_size_t,) * 2, ctypes.c_char_p]
        self._delete.argtypes = [ctypes.c_void_p]
        if isinstance(loaded, CpuLoadedExecutable):
            artifact = loaded.artifact
            memory = artifact.arena_size, artifact.arena_alignment
            self._address = new(loaded.entry, loaded.context, *memory, loaded.name.encode())
        else:
            self._call = _OnArrays(loaded)
            # In CPython, the id of an object is its address.
            self._context = (ctypes.c_void_p * 1)(id(self._call))
            self._address = new(native.address("trivium_run_in_python"), self._context, 0, 1, loaded.name.encode())
        self.attributes = {"process": np.int64(library.trivium_process()), "program": np.int64(self._address)}
        """The attributes of custom calls."""

    def __call__(self, *arrays: object) -> list[np.ndarray]:
        """Runs the program on host arrays."""
        return self._loaded.execute(*arrays)

    def __del__(self) -> None:
        if hasattr(self, "_address"):
            self._delete(self._address)


class _OnArrays:
    """Runs an executable of another device on memory of the host. Called from native code, with a number that has no
    meaning here, and the address of the pointers."""

    def __init__(self, loaded: LoadedExecutable):
        kind = loaded.signature.function_type
        self._execute = loaded.execute
        self._inputs, self._results = _views(kind.inputs), _views(kind.results)

    def __call__(self, number: int, address: int) -> None:
        count = len(self._inputs)
        pointers = (ctypes.c_void_p * (count + len(self._results))).from_address(address)
        arrays = [view(pointers[i]) for i, view in enumerate(self._inputs)]
        for i, result in enumerate(self._execute(*arrays)):
            self._results[i](pointers[count + i])[...] = result


def _views(types: Sequence[Type]) -> list[Callable[[int], np.ndarray]]:
    return [view_of(kind) for kind in types if isinstance(kind, TensorType)]
