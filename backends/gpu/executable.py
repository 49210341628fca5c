"""A loaded artifact, ready to run on a GPU: the steps of its plan are enqueued on the driver in order. Only loops and
branches, which read the number that decides, and host calls wait for the device."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from trivium.backends.constants import source_of
from trivium.backends.gpu import plan as plans
from trivium.backends.gpu.driver import AnyDriver, Guest, Memory, Queue, Recordings
from trivium.backends.gpu.host import function_of
from trivium.backends.gpu.plan import Call, Collective, Copy, Launch, Step, Switch, While
from trivium.compiler import collectives
from trivium.compiler.artifact import Artifact, ConstantData, Embedded, Slot
from trivium.compiler.kernel import numpy_dtype
from trivium.ir.arrays import read_argument
from trivium.ir.errors import ExecutionError


class GpuExecutable:
    """An artifact's kernels, constants and temporaries on a device. Runs follow one another in the device's queue, and
    share the temporaries; `constants` are those of the module that the artifact was made from, if it is not whole."""

    def __init__(self, artifact: Artifact, driver: AnyDriver, constants: Sequence[np.ndarray] = ()):
        self.artifact = artifact
        self.name = artifact.name
        self.inputs, self.outputs = artifact.inputs, artifact.outputs
        self._driver = driver
        self._plan, binary = plans.from_bytes(artifact.code)
        launches = [step for step in plans.walk(self._plan.steps) if isinstance(step, Launch)]
        granted, maps = {step.kernel: step.memory for step in launches}, {step.kernel: step.maps for step in launches}
        self._kernels = driver.load(binary, granted, maps) if granted else {}
        self._repeats = len(self._plan.steps) > 1 and all(isinstance(step, Launch | Copy) for step in self._plan.steps)
        self._recordings: Recordings = {}
        self._single = self._only_launch()
        self._picked: tuple[Callable[[Sequence[int]], Sequence[int]], list[int]] | None = None
        self._constants = [source_of(constant, constants, artifact.name) for constant in artifact.constants]
        self._functions = {step: function_of(step) for step in plans.walk(self._plan.steps) if isinstance(step, Call)}
        self._resident: list[Memory | None] | None = None
        self._workspace: Memory | None = None
        self._counters: Memory | None = None
        self._guest: int | None = None
        self._lock = threading.Lock()

    def _only_launch(self) -> Launch | None:
        """Returns the launch that the program is, if its arguments are whole arguments and results, or stay."""
        if len(self._plan.steps) != 1 or not isinstance(step := self._plan.steps[0], Launch) or not step.blocks:
            return None
        given = [self._plan.values[number] for number in step.arguments]
        parts = (value.storage == "output" and value.nbytes < self.outputs[value.number].nbytes for value in given)
        return None if any(parts) else step

    def whole(self) -> Artifact:
        """Returns the artifact with all constants embedded."""
        return replace(self.artifact, constants=tuple(ConstantData(Embedded(data)) for data in self._constants))

    def execute(self, *arguments: object) -> list[np.ndarray]:
        """Runs on host arrays and returns new ones, which belong to the caller."""
        if len(arguments) != len(self.inputs):
            raise ExecutionError(f"{self.name} was given {len(arguments)} arguments, expected {len(self.inputs)}")
        results = [np.empty(slot.shape, slot.dtype) for slot in self.outputs]
        self._execute_on([self._argument(*pair) for pair in enumerate(arguments)], results)
        return results

    def _argument(self, position: int, argument: object) -> Memory:
        """Returns an argument's memory on the device: the argument's own memory if it is there already."""
        slot, found = self.inputs[position], self._driver.borrowed(argument)
        if found is None:
            return self.uploaded(read_argument(argument, slot.type, f"argument {position} of {self.name}"))
        memory, dtype, shape = found
        if (dtype, shape) != (slot.dtype, slot.shape):
            has, expected = f"{dtype} {shape}", f"{slot.dtype} {slot.shape}"
            raise ExecutionError(f"argument {position} of {self.name} has {has}, expected {expected}")
        return memory

    def execute_at(self, pointers: Sequence[int]) -> None:
        """Runs on memory of the host: the addresses of arguments, then of results. Nothing is checked."""
        slots = (*self.inputs, *self.outputs)
        arrays = [_at_address(pointer, slot) for pointer, slot in zip(pointers, slots, strict=True)]
        self._execute_on(list(map(self.uploaded, arrays[: len(self.inputs)])), arrays[len(self.inputs) :])

    def _execute_on(self, arguments: list[Memory], results: Sequence[np.ndarray]) -> None:
        """Runs, and copies the results to the host. Memory is released in the order in which the next run asks for it,
        so that its addresses, and with them the recordings of launches, are the same."""
        made = self.run(arguments)
        for result, memory in zip(results, made, strict=True):
            self._driver.download(result, memory)
        arguments.clear()

    def uploaded(self, array: np.ndarray) -> Memory:
        """Returns a copy of an array on the device."""
        memory = self._driver.allocate(array.nbytes)
        self._driver.upload(memory, np.ascontiguousarray(array))
        return memory

    def run(self, arguments: Sequence[Memory]) -> list[Memory]:
        """Runs on device memory and returns that of the results, which the device may still have to write."""
        results = [self._driver.allocate(slot.nbytes) for slot in self.outputs]
        self.run_on(arguments, results)
        return results

    def run_on(self, arguments: Sequence[Memory], results: Sequence[Memory]) -> None:
        """Does the same with memory for the results."""

        def enqueue(queue: Queue[Any, Any]) -> None:
            self._enqueue(queue, arguments, results)

        with self._lock:
            self._guest = None
            if self._repeats:
                self._place()
                self._driver.repeat(self._recordings, [*arguments, *results], enqueue)
            else:
                enqueue(self._driver)

    def execute_in(self, stream: int, pointers: Sequence[int]) -> None:
        """Runs on another library's stream, and returns before the work is done: on the addresses of
        arguments, then of results, in the device's memory. Nothing is checked."""
        with self._lock:
            self._place()
            # The runs of one stream follow one another, also in their use of temporaries.
            after_ours, self._guest = stream != self._guest, stream
            with self._driver.guest(stream, after_ours) as guest:
                if self._single is not None:
                    self._launch_at(guest, self._single, pointers)
                    return

                def enqueue(queue: Queue[Any, Any]) -> None:
                    pairs = zip(pointers, (*self.inputs, *self.outputs), strict=True)
                    memories = [guest.memory(at, slot.nbytes) for at, slot in pairs]
                    self._enqueue(queue, memories[: len(self.inputs)], memories[len(self.inputs) :])

                if self._repeats:
                    guest.repeat(self._recordings, tuple(pointers), enqueue)
                else:
                    enqueue(guest)

    def _launch_at(self, guest: Guest[Any, Any], step: Launch, pointers: Sequence[int]) -> None:
        """Runs a program that is one launch: which of its arguments are whole arguments or results is known."""
        if self._picked is None:
            self._picked = self._picks(step)
        pick, fixed = self._picked
        with _Running(step):
            guest.launch_at(self._kernels[step.kernel], step.blocks, step.threads, pick((*pointers, *fixed)))

    def _picks(self, step: Launch) -> tuple[Callable[[Sequence[int]], Sequence[int]], list[int]]:
        """Returns what picks the addresses of a launch's arguments from the program's pointers and those of memory that
        stays, which come after them."""
        begins = {"input": 0, "output": len(self.inputs)}
        fixed: list[int] = []
        picks = []
        owned = self._workspace, self._counters
        resident = self._place()
        for memory in (*(resident[number] for number in step.arguments), *owned):
            place = len(picks)
            value = self._plan.values[step.arguments[place]] if place < len(step.arguments) else None
            if memory is None and value is not None:
                picks.append(begins[value.storage] + value.number)
                continue
            picks.append(len(self.inputs) + len(self.outputs) + len(fixed))
            fixed.append(self._driver.address(memory) if memory is not None else 0)
        return itemgetter(*picks), fixed

    def _enqueue(self, queue: Queue[Any, Any], arguments: Sequence[Memory], results: Sequence[Memory]) -> None:
        """Enqueues all steps of a run."""
        for step in _Run(self, self._memories(arguments, results), queue).steps(self._plan.steps):
            name = collectives.NAMES[type(step.kind)]
            raise ExecutionError(f"{self.name}: {name} exchanges values with other devices, but one runs alone")

    def _begun(self, arguments: Sequence[Memory], results: Sequence[Memory]) -> _Run:
        """Returns a run that has not been enqueued yet. The caller holds the lock."""
        self._guest = None
        return _Run(self, self._memories(arguments, results), self._driver)

    def _memories(self, arguments: Sequence[Memory], results: Sequence[Memory]) -> list[Memory]:
        """Returns the memory of each value."""
        given = {"input": arguments, "output": results}

        def passed(value: plans.Value) -> Memory:
            memory = given[value.storage][value.number]
            is_part = value.storage == "output" and value.nbytes < self.outputs[value.number].nbytes
            return memory.part(value.offset, value.nbytes) if is_part else memory

        pairs = zip(self._plan.values, self._place(), strict=True)
        return [memory if memory is not None else passed(value) for value, memory in pairs]

    def _place(self) -> list[Memory | None]:
        """Returns the memory of the values that stay on the device from one run to the next: constants, and the parts
        of the arena."""
        if self._resident is None:
            self._resident = self._placed()
        return self._resident

    def _placed(self) -> list[Memory | None]:
        size, counters, begin = self.artifact.arena_size, self._plan.counters, self._plan.workspace
        arena = self._driver.allocate(size)
        if begin < size:
            self._workspace = arena.part(begin, size - begin)
        if counters < begin:
            self._counters = arena.part(counters, begin - counters)
            self._driver.upload(self._counters, np.zeros(begin - counters, np.uint8))
        placed: list[Memory | None] = []
        for value in self._plan.values:
            match value.storage:
                case "constant":
                    placed.append(self.uploaded(self._constants[value.number]))
                case "arena":
                    placed.append(arena.part(value.number, value.nbytes))
                case _:
                    placed.append(None)
        return placed


Memories = Sequence[Sequence[Memory]]
"""Memory of several devices."""


def run_together(executables: Sequence[GpuExecutable], arguments: Memories, results: Memories) -> None:
    """Runs a program on several devices, each of which has loaded it: what they exchange goes through the host."""
    with ExitStack() as held:
        for executable in executables:
            held.enter_context(executable._lock)
        given = zip(executables, arguments, results, strict=True)
        runs = [executable._begun(own, made) for executable, own, made in given]

        def meet(step: Collective, members: Sequence[int]) -> None:
            sources = [runs[member].read(step.source).reshape(step.shape) for member in members]
            dtype = executables[0]._plan.values[step.source].dtype
            found = collectives.exchange(step.kind, step.groups, members, sources, dtype)  # type: ignore[arg-type]
            for member, result in zip(members, found, strict=True):
                runs[member].write(step.destination, result)

        steps = executables[0]._plan.steps  # the same for all: devices meet in one of them
        collectives.run_together(executables[0].name, [run.steps(steps) for run in runs], meet)


class _Run:
    """One run: the memory of each value, and the queue on which it runs."""

    def __init__(self, executable: GpuExecutable, memories: Sequence[Memory], queue: Queue[Any, Any]):
        self._executable = executable
        self._queue = queue
        self._values = executable._plan.values
        self._memories = memories

    def steps(self, steps: Sequence[Step]) -> Iterator[Collective]:
        """Tells the queue all steps but those that exchange values with other devices, which it yields."""
        for step in steps:
            match step:
                case Launch():
                    self._launch(step)
                case Copy(source, destination):
                    self._queue.copy(self._memories[destination], self._memories[source], self._values[source].nbytes)
                case While(condition, predicate, body):
                    yield from self.steps(condition)
                    while self._number(predicate):
                        yield from self.steps(body)
                        yield from self.steps(condition)
                case Switch(index, branches):
                    taken = self._number(index)
                    yield from self.steps(branches[taken if 0 <= taken < len(branches) else -1])
                case Call():
                    self._call(step)
                case Collective():
                    yield step

    def _launch(self, step: Launch) -> None:
        if not step.blocks:
            return
        owned = self._executable._workspace, self._executable._counters
        arguments = [*(self._memories[number] for number in step.arguments), *owned]
        with _Running(step):
            self._queue.launch(self._executable._kernels[step.kernel], step.blocks, step.threads, arguments)

    def _number(self, value: int) -> int:
        return int(self.read(value).reshape(-1)[0])

    def read(self, value: int) -> np.ndarray:
        """Returns the elements of a value, complex ones as pairs."""
        described = self._values[value]
        array = np.empty(described.shape, numpy_dtype(described.dtype))
        self._queue.download(array, self._memories[value])
        return array

    def write(self, value: int, array: np.ndarray) -> None:
        """Copies elements to a value."""
        dtype = numpy_dtype(self._values[value].dtype)
        self._queue.upload(self._memories[value], np.ascontiguousarray(array).reshape(-1).view(dtype))

    def _whole(self, value: int) -> np.ndarray:
        array = self.read(value)
        return _as_complex(array) if self._values[value].is_complex else array

    def _call(self, step: Call) -> None:
        """Runs a function on the host, on copies of its arguments."""
        computed = self._executable._functions[step]([self._whole(argument) for argument in step.arguments])
        for value, result in zip(step.results, computed, strict=True):
            self.write(value, result)


class _Running:
    """Adds to errors which launch has failed. A class, because a generator takes several times as long."""

    __slots__ = ("_step",)

    def __init__(self, step: Launch) -> None:
        self._step = step

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ExecutionError):
            step = self._step
            what = f"running {step.kernel}" + (f", from {step.origin}" if step.origin else "")
            raise error.add(during=what) from error.__cause__


def _at_address(address: int, slot: Slot) -> np.ndarray:
    """Returns an array over memory of the host."""
    if not slot.nbytes:
        return np.empty(slot.shape, slot.dtype)
    memory = (ctypes.c_char * slot.nbytes).from_address(address)
    # NumPy's stubs do not know that a ctypes array is a buffer.
    return np.frombuffer(memory, slot.dtype).reshape(slot.shape)  # pyright: ignore[reportCallIssue, reportArgumentType]


def _as_complex(array: np.ndarray) -> np.ndarray:
    return array.view(np.result_type(array.dtype, np.complex64)).reshape(array.shape[:-1])
