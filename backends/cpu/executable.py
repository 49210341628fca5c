"""A compiled program, ready to run from Python: one native call, all else prepared beforehand. Calls from several
threads are independent: each takes a frame (argument table and arena) from a pool, and the interpreter lock is free
while native code runs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from trivium.backends import native
from trivium.backends.cpu import jit
from trivium.backends.cpu.constant_memory import kept
from trivium.backends.cpu.host import HostFunctions
from trivium.backends.cpu.program import ENTRY, emit_program
from trivium.backends.cpu.target import CpuTarget
from trivium.compiler.kernel.dtypes import numpy_dtype
from trivium.compiler.program import Constant, Program, Value
from trivium.compiler.verifier import verify
from trivium.ir.arrays import read_argument
from trivium.ir.errors import ExecutionError
from trivium.ir.types import TensorType, tensor

# Called with the interpreter lock, which `trivium_run` leaves: so an exception that is set in a run, by a host call
# or by the handler of a signal, is raised when the run returns.
_RUN_TYPE = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


LACKS_MEMORY = "a function of the host lacks memory"
"""All that a native function has to say where it ends a run without a text."""


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
    """A program's machine code and constants. To run it, call `entry` on a table of addresses, those of `inputs` and
    then of `outputs`, an arena, and `context`."""

    def __init__(self, program: Program, target: CpuTarget, fast_math: bool = False):
        verify(program)
        emitted = emit_program(program, target, fast_math)
        self.name = program.name
        self.program = program
        self.schedules = emitted.schedules
        self.llvm = str(emitted.module)
        self._target = target
        machine_code = jit.compile_module(self.llvm, target)
        self.code_size = len(machine_code)
        self._code = jit.Code(machine_code)
        self._run = _RUN_TYPE(native.address("trivium_run"))
        self.entry = self._code.address(ENTRY)
        self.inputs = [_slot(value) for value in program.inputs]
        self.outputs = [_slot(value) for value in program.outputs]
        self._host = HostFunctions(emitted.host_calls)
        constants = [value.storage.array for value in emitted.constants if isinstance(value.storage, Constant)]
        self._constants = [kept(array) for array in constants]
        self.constant_size = sum(array.nbytes for array in constants)
        self._context = _table([*chain(*self._host.addresses), *(array.ctypes.data for array in self._constants)])
        self.context = ctypes.addressof(self._context)
        self.arena_size, self.arena_alignment = emitted.arena_size, target.alignment
        self._frames: list[_Frame] = []

    def assembly(self) -> str:
        """The machine code as assembly text."""
        return self._target.machine().emit_assembly(jit.parsed(self.llvm))

    def execute(self, *arguments: object) -> list[np.ndarray]:
        """Runs on host arrays and gives new ones, the caller's own."""
        if len(arguments) != len(self.inputs):
            raise ExecutionError(f"{self.name} was given {len(arguments)} arguments, expected {len(self.inputs)}")
        arrays = [
            argument
            if type(argument) is np.ndarray
            and argument.dtype == slot.dtype
            and argument.shape == slot.shape
            and argument.flags.c_contiguous
            else self._fitted(argument, slot, position)
            for position, (argument, slot) in enumerate(zip(arguments, self.inputs, strict=True))
        ]
        try:
            results = [np.empty(slot.shape, slot.dtype) for slot in self.outputs]
        except (MemoryError, ValueError) as error:  # NumPy's for arrays beyond the space of addresses
            raise self._lacks_memory(error) from error
        self.execute_at([array.__array_interface__["data"][0] for array in (*arrays, *results)])
        return results

    def execute_at(self, pointers: Sequence[int]) -> None:
        """Runs on memory of the caller's: the addresses of arguments, then of results, each as large as its slot and
        C-contiguous. Nothing is checked. One native call in a frame of its own. Whatever ends the run early is raised:
        what a host call raised, or what the handler of a signal did, such as KeyboardInterrupt."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = self._new_frame(len(pointers))
        frame.table[:] = pointers
        try:
            status = self._run(frame.address)
        finally:
            self._frames.append(frame)
        if status:
            raise ExecutionError(f"{self.name} ended early: {native.exception() or LACKS_MEMORY}")

    def _new_frame(self, pointers: int) -> _Frame:
        try:
            return _Frame(self.entry, pointers, self.arena_size, self.context, self.arena_alignment)
        except (MemoryError, ValueError) as error:
            raise self._lacks_memory(error) from error

    def _lacks_memory(self, error: Exception) -> ExecutionError:
        return ExecutionError(f"{self.name} needs more memory than there is: {error}")

    def _fitted(self, argument: object, slot: Slot, position: int) -> np.ndarray:
        """`argument` as a C-contiguous array of exactly the slot's type and shape."""
        array = read_argument(argument, slot.type, f"argument {position} of {self.name}")
        try:
            return np.ascontiguousarray(array).reshape(slot.shape)
        except MemoryError as error:
            raise self._lacks_memory(error) from error


class _Frame:
    """What one run needs for itself, and where the runtime finds it: `trivium::Frame` of interpreter.h."""

    def __init__(self, entry: int, pointers: int, arena_size: int, context: int, alignment: int):
        self.table = (ctypes.c_void_p * pointers)()
        self._memory = np.empty(arena_size + alignment, np.uint8)
        start = self._memory.ctypes.data
        self._fields = _table([entry, ctypes.addressof(self.table), start + (-start) % alignment, context])
        self.address = ctypes.addressof(self._fields)


def _slot(value: Value) -> Slot:
    dtype = numpy_dtype(value.dtype)
    if value.is_complex:
        return Slot(np.result_type(dtype, np.complex64), tuple(value.shape[:-1]))
    return Slot(dtype, tuple(value.shape))


def _table(addresses: Sequence[int | None]) -> ctypes.Array:
    return (ctypes.c_void_p * len(addresses))(*addresses)
