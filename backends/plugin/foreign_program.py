"""Compiled programs as foreign functions, with the C ABI that XLA's clients share: a host that is not ours, such as
JAX's CPU platform, runs them on its own buffers. The opposite of `foreign.py`; the handler is
`backends/native/pjrt/foreign_program.cc`."""

from __future__ import annotations

import atexit
import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np

from trivium.backends import native
from trivium.backends.cpu.client import CpuLoadedExecutable
from trivium.backends.cpu.host import view_of
from trivium.backends.pjrt import LoadedExecutable
from trivium.ir.errors import ExecutionError
from trivium.ir.types import TensorType, Type

HANDLER = "trivium_call_program"
"""The name under which hosts know the handlers of all programs."""

STAGES = {"instantiate": "trivium_instantiate_program", "execute": HANDLER}
"""The handlers: functions of the native runtime."""

STATE = "trivium_program"
"""The name of the type of a call's state."""


def handlers() -> dict[str, ctypes._CFunctionType]:
    """Returns the handlers, which hosts register."""
    return {stage: getattr(_library(), name) for stage, name in STAGES.items()}


def state_type() -> tuple[int, int]:
    """Returns the addresses of the type of a call's state and of what is known of it, which hosts register."""
    return _library().trivium_program_type(), _library().trivium_program_type_info()


@functools.cache
def _library() -> ctypes.CDLL:
    library = native.load()
    new = library.trivium_new_program
    new.restype = ctypes.c_void_p
    new.argtypes = [*(ctypes.c_void_p,) * 3, *(ctypes.c_size_t,) * 2, ctypes.c_char_p]
    library.trivium_number_of_program.restype = ctypes.c_int64
    library.trivium_number_of_program.argtypes = library.trivium_release_program.argtypes = [ctypes.c_void_p]
    library.trivium_program_type.restype = library.trivium_program_type_info.restype = ctypes.c_void_p
    atexit.register(library.trivium_keep_objects)
    return library


class ForeignProgram:
    """A program that custom calls of `HANDLER` run. It must live until the host has compiled them: what the host
    compiles keeps the program, not this object."""

    def __init__(self, loaded: LoadedExecutable):
        self._loaded = loaded
        library = _library()
        self._release = library.trivium_release_program  # modules may be gone when this object goes
        _release_objects()
        if isinstance(loaded, CpuLoadedExecutable):
            owner, entry, context = loaded, loaded.entry, loaded.context
            memory = loaded.artifact.arena_size, loaded.artifact.arena_alignment
        else:
            owner = _OnArrays(loaded)
            entry, context, memory = native.address("trivium_run_in_python"), owner.context, (0, 1)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
        # In CPython, the id of an object is its address.
        self._address = library.trivium_new_program(entry, context, id(owner), *memory, loaded.name.encode())
        number = library.trivium_number_of_program(self._address)
        self.attributes = {"number": np.int64(number), "program": np.int64(self._address)}
        """The attributes of custom calls."""

    def __call__(self, *arrays: object) -> list[np.ndarray]:
        """Runs the program on host arrays."""
        return self._loaded.execute(*arrays)

    def __del__(self) -> None:
        if hasattr(self, "_address"):
            self._release(self._address)

    def __reduce__(self) -> NoReturn:
        raise ExecutionError(
            f"{self._loaded.name}: a program of trivium.jit stays in its process, and cannot be serialized; jax.export "
            "writes the function itself, for JAX's own compilers and for Trivium's device"
        )


def _release_objects() -> None:
    """Releases the programs that hosts have given up: otherwise Python's main thread does, which may be busy."""
    ctypes.PYFUNCTYPE(None)(native.address("trivium_release_objects"))()


class _OnArrays:
    """Runs an executable of another device on memory of the host. Called from native code, with a number that has no
    meaning here, and the address of the pointers."""

    def __init__(self, loaded: LoadedExecutable):
        kind = loaded.signature.function_type
        self._execute = loaded.execute
        self._inputs, self._results = _views(kind.inputs), _views(kind.results)
        self.context = (ctypes.c_void_p * 1)(id(self))

    def __call__(self, number: int, address: int) -> None:
        count = len(self._inputs)
        pointers = (ctypes.c_void_p * (count + len(self._results))).from_address(address)
        arrays = [view(pointers[i]) for i, view in enumerate(self._inputs)]
        for i, result in enumerate(self._execute(*arrays)):
            self._results[i](pointers[count + i])[...] = result


def _views(types: Sequence[Type]) -> list[Callable[[int], np.ndarray]]:
    return [view_of(kind) for kind in types if isinstance(kind, TensorType)]
