"""The meaning of a program, without any backend: its steps run in order on NumPy arrays at the places of the buffer
plan, and kernels run in their own interpreter. Slow; a compiled program must compute the same results. Several devices
can run a program together: each has its own memory, and they meet in the program's collectives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from trivium.compiler.collectives import exchange, run_together
from trivium.compiler.host import Function, host_function, python_function
from trivium.compiler.kernel import interpreter as kernels
from trivium.compiler.kernel import numpy_dtype
from trivium.compiler.program import (
    Arena,
    Array,
    Collective,
    Constant,
    Copy,
    HostCall,
    Input,
    Launch,
    Output,
    Program,
    PythonCall,
    Section,
    Step,
    Switch,
    While,
)
from trivium.ir.errors import ExecutionError


def interpret(program: Program, *arguments: np.ndarray, marks: bool = False) -> list[np.ndarray]:
    """Runs `program` and returns its results as new arrays. Arguments must have the types and shapes of the program's
    inputs. With `marks`, contractions run as their marks describe them, instead of as loop nests."""
    (results,) = interpret_devices(program, [arguments], marks=marks)
    return results


def interpret_devices(
    program: Program, arguments: Sequence[Sequence[np.ndarray]], *, marks: bool = False
) -> list[list[np.ndarray]]:
    """Runs `program` on several devices at once, each with its own arguments, and returns the results of each. Devices
    have the numbers 0, 1, and so on, in the order of `arguments`."""
    runs = [_Run(program, _inputs(program, given), marks) for given in arguments]

    def meet(step: Collective, members: Sequence[int]) -> None:
        sources = [runs[member].memory[step.source].reshape(step.shape).copy() for member in members]
        results = exchange(step.kind, step.groups, members, sources, step.source.dtype)
        for member, result in zip(members, results, strict=True):
            runs[member].memory[step.destination][:] = result.reshape(-1)

    run_together(program.name, [run.steps(program.steps) for run in runs], meet)
    return [[_result(run.memory[value], value) for value in program.outputs] for run in runs]


def _inputs(program: Program, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    if len(arguments) != len(program.inputs):
        raise ExecutionError(f"{program.name} was given {len(arguments)} arguments, expected {len(program.inputs)}")
    return [_flat(array, value) for array, value in zip(arguments, program.inputs, strict=True)]


class _Run:
    """The memory of each value, as a flat array of its scalar type. Values that share bytes share them here too."""

    def __init__(self, program: Program, inputs: Sequence[np.ndarray], marks: bool):
        self._marks = marks
        arena = kernels.garbage(program.arena_size, np.dtype(np.uint8))
        outputs = [kernels.garbage(_size(value), numpy_dtype(value.dtype)) for value in program.outputs]
        self.memory: dict[Array, np.ndarray] = {}
        for value in program.values():
            match value.storage:
                case Input(index):
                    self.memory[value] = inputs[index]
                case Output(index, offset):
                    self.memory[value] = _part(outputs[index], offset, value)
                case Constant(array):
                    self.memory[value] = array.reshape(-1)
                case Arena(offset):
                    assert offset is not None, "the buffer plan has given every value its place"
                    self.memory[value] = _part(arena, offset, value)

    def steps(self, steps: Sequence[Step]) -> Iterator[Collective]:
        """Runs the steps, and yields each collective, which all devices run together."""
        for step in steps:
            match step:
                case Launch(kernel, arguments):
                    kernels.run(kernel, list(map(self._given, arguments)), self._marks)
                case Copy(source, destination):
                    self.memory[destination].view(np.uint8)[:] = self.memory[source].view(np.uint8).copy()
                case While(condition, predicate, body):
                    yield from self.steps(condition)
                    while self.memory[predicate][0]:
                        yield from self.steps(body)
                        yield from self.steps(condition)
                case Switch(index, branches):
                    taken = int(self.memory[index][0])
                    yield from self.steps(branches[taken if 0 <= taken < len(branches) else -1])
                case Collective():
                    yield step
                case HostCall():
                    self._call(host_function(step), step)
                case PythonCall():
                    self._call(_as_called(step), step)

    def _given(self, value: Array) -> np.ndarray:
        """Returns the memory of an argument, which may be a section."""
        match value.storage:
            case Section(whole, place, stride, last):
                begin = stride * min(max(0, int(self.memory[place][0])), last) * (1 + value.is_complex)
                return self._given(whole)[begin : begin + _size(value)]
        return self.memory[value]

    def _call(self, function: Function, step: HostCall | PythonCall) -> None:
        """Calls a function of the host, which works on complex arrays instead of pairs."""
        computed = function([_result(self.memory[value], value) for value in step.arguments])
        for value, result in zip(step.results, computed, strict=True):
            self.memory[value][:] = np.ascontiguousarray(result).reshape(-1).view(numpy_dtype(value.dtype))


def _as_called(step: PythonCall) -> Function:
    """Returns the registered Python function, wrapped so that it gets arrays of the shapes that it expects."""
    function, arguments, _ = python_function(step)
    return lambda arrays: function([a.reshape(k.static_shape) for a, k in zip(arrays, arguments, strict=True)])


def _flat(array: np.ndarray, value: Array) -> np.ndarray:
    """Returns an argument as the program sees it: flat, read-only, and with complex numbers as pairs."""
    flat = np.ascontiguousarray(array).reshape(-1).view(numpy_dtype(value.dtype))
    flat.flags.writeable = False
    return flat


def _result(memory: np.ndarray, value: Array) -> np.ndarray:
    if not value.is_complex:
        return memory.reshape(value.shape)
    return memory.view(np.result_type(memory.dtype, np.complex64)).reshape(value.shape[:-1])


def _part(memory: np.ndarray, offset: int, value: Array) -> np.ndarray:
    """Returns the part of a flat array of memory that contains a value."""
    return memory.view(np.uint8)[offset : offset + value.nbytes].view(numpy_dtype(value.dtype))


def _size(value: Array) -> int:
    return math.prod(value.shape)
