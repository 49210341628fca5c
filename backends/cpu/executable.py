"""A loaded artifact, ready to run from Python: one native call, with everything else prepared in advance. Calls from
several threads are independent: each takes a frame (argument table and arena) from a pool, and the interpreter lock is
released while native code runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from trivium.backends import native
from trivium.backends.cpu.code import ENTRY, Code
from trivium.backends.cpu.host import HostFunctions
from trivium.backends.cpu.packed import constants_of
from trivium.compiler.artifact import Artifact, ConstantData, Embedded, Slot
from trivium.ir.arrays import read_argument
from trivium.ir.errors import ExecutionError

# Called with the interpreter lock held, which `trivium_run` releases: an exception that is set during a run, by a host
# call or by a signal handler, is therefore raised when the run returns.
_RUN_TYPE = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_RUN_ON_TYPE = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.py_object, ctypes.c_int64, ctypes.c_void_p)


LACKS_MEMORY = "a function of the host lacks memory"
"""The message for a native function that ends a run without a message of its own."""


def whole(artifact: Artifact, constants: Sequence[np.ndarray]) -> Artifact:
    """Returns an artifact with these constants embedded: all that it has, as its program reads them."""
    return replace(artifact, constants=tuple(ConstantData(Embedded(array)) for array in constants))


LARGE = 1 << 16
"""The number of bytes from which on a result is aligned: this takes longer than allocating a small array."""


class CpuExecutable:
    """An artifact's machine code and constants; `constants` are those of the module that it was made from, in order,
    and are needed if it is not whole. `table` is where timed code records its steps. To run it, call `entry` on a table
    of addresses (those of `inputs`, then those of `outputs`), an arena, and `context`."""

    def __init__(self, artifact: Artifact, constants: Sequence[np.ndarray] = (), table: np.ndarray | None = None):
        self.artifact = artifact
        self.name = artifact.name
        self._code = Code(artifact.code)
        self._run = _RUN_TYPE(native.address("trivium_run"))
        self._run_on = _RUN_ON_TYPE(native.address("trivium_run_on"))
        self.entry = self._code.address(ENTRY)
        self.inputs, self.outputs = artifact.inputs, artifact.outputs
        self._allocations = [_allocation(slot, artifact.arena_alignment) for slot in self.outputs]
        self._host = HostFunctions(artifact.host_functions)
        self._constants = constants_of(artifact, constants)
        arrays = [*self._constants, *(() if table is None else (table,))]
        self._context = _table([*chain(*self._host.addresses), *(array.ctypes.data for array in arrays)])
        self.context = ctypes.addressof(self._context)
        self._frames: list[_Frame] = []

    def whole(self) -> Artifact:
        """Returns the artifact with all constants embedded, as the program reads them."""
        return whole(self.artifact, self._constants)

    def execute(self, *arguments: object) -> list[np.ndarray]:
        """Runs on host arrays and returns new ones, which belong to the caller."""
        if len(arguments) != len(self.inputs):
            raise ExecutionError(f"{self.name} was given {len(arguments)} arguments, expected {len(self.inputs)}")
        arrays = [
            argument
            if type(argument) is np.ndarray
            and (argument.dtype is slot.dtype or argument.dtype == slot.dtype)
            and argument.shape == slot.shape
            and argument.flags.c_contiguous
            else self._fitted(argument, slot, position)
            for position, (argument, slot) in enumerate(zip(arguments, self.inputs, strict=True))
        ]
        try:
            results = [allocate() for allocate in self._allocations]
        except (MemoryError, ValueError) as error:  # raised by NumPy for arrays beyond the address space
            raise self._lacks_memory(error) from error
        arrays += results
        frame = self._take_frame(len(arrays))
        try:
            status = self._run_on(arrays, len(arrays), frame.address)
        finally:
            self._frames.append(frame)
        if status:
            raise self._ended_early()
        return results

    def execute_at(self, pointers: Sequence[int]) -> None:
        """Runs on memory of the caller: the addresses of arguments, then of results, each as large as its slot and
        C-contiguous. Nothing is checked. Each run is one native call in a frame of its own. If the run ends early, the
        cause is raised: the exception of a host call or of a signal handler, such as KeyboardInterrupt."""
        frame = self._take_frame(len(pointers))
        frame.table[:] = pointers
        try:
            status = self._run(frame.address)
        finally:
            self._frames.append(frame)
        if status:
            raise self._ended_early()

    def _ended_early(self) -> ExecutionError:
        return ExecutionError(f"{self.name} ended early: {native.exception() or LACKS_MEMORY}")

    def _take_frame(self, pointers: int) -> _Frame:
        try:
            return self._frames.pop()
        except IndexError:
            pass
        try:
            return _Frame(self.entry, pointers, self.context, self.artifact)
        except (MemoryError, ValueError) as error:
            raise self._lacks_memory(error) from error

    def _lacks_memory(self, error: Exception) -> ExecutionError:
        return ExecutionError(f"{self.name} needs more memory than is available: {error}")

    def _fitted(self, argument: object, slot: Slot, position: int) -> np.ndarray:
        """Returns `argument` as a C-contiguous array of exactly the slot's type and shape."""
        array = read_argument(argument, slot.type, f"argument {position} of {self.name}")
        try:
            return np.ascontiguousarray(array).reshape(slot.shape)
        except MemoryError as error:
            raise self._lacks_memory(error) from error


class _Frame:
    """The memory that one run needs for itself, in the form that the runtime expects: `trivium::Frame` of
    interpreter.h."""

    def __init__(self, entry: int, pointers: int, context: int, artifact: Artifact):
        alignment = artifact.arena_alignment
        self.table = (ctypes.c_void_p * pointers)()
        self._memory = _room(artifact.arena_size, alignment)
        self._fields = _table([entry, ctypes.addressof(self.table), self._memory.ctypes.data, context, 0])
        self.address = ctypes.addressof(self._fields)


def _allocation(slot: Slot, alignment: int) -> Callable[[], np.ndarray]:
    """Returns what allocates a result. A large one is as aligned as the arena: its memory is used like the arena's."""
    if slot.nbytes < LARGE:
        return partial(np.empty, slot.shape, slot.dtype)
    return lambda: _room(slot.nbytes, alignment).view(slot.dtype).reshape(slot.shape)


def _room(nbytes: int, alignment: int) -> np.ndarray:
    """Returns bytes that begin at a multiple of `alignment`."""
    memory = np.empty(nbytes + alignment, np.uint8)
    begin = -memory.__array_interface__["data"][0] % alignment
    return memory[begin : begin + nbytes]


def _table(addresses: Sequence[int | None]) -> ctypes.Array:
    return (ctypes.c_void_p * len(addresses))(*addresses)
