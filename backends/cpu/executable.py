"""A compiled program, ready to run from Python: one native call, all else prepared beforehand. Calls from several
threads are independent: each takes a frame (argument table and arena) from a pool, and the interpreter lock is free
while native code runs."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trivium.backends.cpu import jit
from trivium.backends.cpu.constant_memory import kept
from trivium.backends.cpu.program import ENTRY, emit_program
from trivium.backends.cpu.target import Target
from trivium.compiler.kernel.dtypes import numpy_dtype
from trivium.compiler.program import Constant, HostCall, Program, Value
from trivium.ir.arrays import read_argument
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.types import TensorType, tensor

ALIGNMENT = 64
_ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_HOST_TYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p))


@dataclass(frozen=True)
class Slot:
    """An argument or result: what NumPy type and shape it has."""

    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def type(self) -> TensorType:
        """The same in the language's terms."""
        return tensor(*self.shape, of=self.dtype)


class CpuExecutable:
    """A program's machine code and constants. `threads` is the most that one run uses."""

    def __init__(self, program: Program, target: Target, *, threads: int = 1, fast_math: bool = False):
        program.verify()
        emitted = emit_program(program, target, threads=threads, fast_math=fast_math)
        self.name = program.name
        self.program = program
        self.schedules = emitted.schedules
        self.llvm = str(emitted.module)
        self._target = target
        self._code = jit.Code(jit.compile_module(self.llvm, target), target)
        self._entry = _ENTRY_TYPE(self._code.address(ENTRY))
        self._inputs = [_slot(value) for value in program.inputs]
        self._outputs = [_slot(value) for value in program.outputs]
        self._host = _HostCalls(emitted.host_calls)
        constants = [value.storage.array for value in emitted.constants if isinstance(value.storage, Constant)]
        self._constants = [kept(array) for array in constants]
        self._context = _table([self._host.address, *(array.ctypes.data for array in self._constants)])
        self._context_address = ctypes.addressof(self._context)
        self._arena_size = program.arena_size
        self._frames: list[_Frame] = []

    def assembly(self) -> str:
        """The machine code as assembly text."""
        return self._target.machine().emit_assembly(jit.parsed(self.llvm))

    def execute(self, *arguments: object) -> list[np.ndarray]:
        """Runs on host arrays and gives new ones, the caller's own."""
        if len(arguments) != len(self._inputs):
            raise ExecutionError(f"{self.name} was given {len(arguments)} arguments, expected {len(self._inputs)}")
        arrays = [
            argument
            if type(argument) is np.ndarray
            and argument.dtype == slot.dtype
            and argument.shape == slot.shape
            and argument.flags.c_contiguous
            else self._fitted(argument, slot, position)
            for position, (argument, slot) in enumerate(zip(arguments, self._inputs, strict=True))
        ]
        try:
            results = [np.empty(slot.shape, slot.dtype) for slot in self._outputs]
            self.execute_at([array.__array_interface__["data"][0] for array in (*arrays, *results)])
        except (MemoryError, ValueError) as error:  # NumPy's for arrays beyond the space of addresses
            raise ExecutionError(f"{self.name} needs more memory than there is: {error}") from error
        return results

    def execute_at(self, pointers: list[int]) -> None:
        """Runs on memory of the caller's: the addresses of arguments, then of results, each as large as its slot and
        C-contiguous. Nothing is checked. One native call in a frame of its own."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(len(pointers), self._arena_size)
        frame.table[:] = pointers
        status = self._entry(frame.table_address, frame.arena_address, self._context_address)
        self._frames.append(frame)
        if status != 0:
            self._host.raise_failure()

    def _fitted(self, argument: object, slot: Slot, position: int) -> np.ndarray:
        """`argument` as a C-contiguous array of exactly the slot's type and shape."""
        array = read_argument(argument, slot.type, f"argument {position} of {self.name}")
        return np.ascontiguousarray(array).reshape(slot.shape)


class _Frame:
    """What one run needs for itself."""

    def __init__(self, pointers: int, arena_size: int):
        self.table = (ctypes.c_void_p * pointers)()
        self.table_address = ctypes.addressof(self.table)
        self._memory = np.empty(arena_size + ALIGNMENT, np.uint8)
        start = self._memory.ctypes.data
        self.arena_address = start + (-start) % ALIGNMENT


class _HostCalls:
    """Native code's way back into Python: one C function for all host calls of a program, which finds the call by its
    number."""

    def __init__(self, calls: list[HostCall]):
        self._calls = [(call, [_view_of(value) for value in (*call.arguments, *call.results)]) for call in calls]
        self._failure = threading.local()
        self._function = _HOST_TYPE(self._call)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value if calls else None

    def raise_failure(self) -> None:
        """Raises what the host call of this thread's run raised."""
        call, cause = self._failure.value
        if isinstance(cause, Error):
            raise cause
        raise ExecutionError(f"host call {call.name} failed: {cause}") from cause

    def _call(self, number: int, pointers: ctypes.Array) -> int:
        call, views = self._calls[number]
        try:
            call.function(*(view(pointers[position]) for position, view in enumerate(views)))
        # Nothing may escape through native frames: it is raised again when the native call has returned.
        except BaseException as cause:
            self._failure.value = (call, cause)
            return 1
        return 0


def _view_of(value: Value) -> Callable[[int], np.ndarray]:
    """A function that makes an array over a pointer."""
    slot, size = _slot(value), value.nbytes
    if size == 0:
        return lambda pointer: np.empty(slot.shape, slot.dtype)
    kind = ctypes.c_char * size
    # NumPy's stubs do not know that a ctypes array is a buffer.
    return lambda pointer: np.frombuffer(kind.from_address(pointer), slot.dtype).reshape(slot.shape)  # pyright: ignore[reportCallIssue, reportArgumentType]


def _slot(value: Value) -> Slot:
    dtype = numpy_dtype(value.dtype)
    if value.is_complex:
        return Slot(np.result_type(dtype, np.complex64), tuple(value.shape[:-1]))
    return Slot(dtype, tuple(value.shape))


def _table(addresses: Sequence[int | None]) -> ctypes.Array:
    return (ctypes.c_void_p * len(addresses))(*addresses)
