"""Executables with dynamic shapes, for every backend: compiled when they are first called with arguments of new shapes,
or with new values of the arguments from which extents are computed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from trivium.backends.pjrt import Buffer, Device, LoadedExecutable, MemoryStats
from trivium.backends.recent import Recent
from trivium.compiler.driver import DynamicModule
from trivium.ir.arrays import read_argument
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.func import Function, Module

if TYPE_CHECKING:
    from trivium.compiler.artifact import Artifact
    from trivium.compiler.program import Program

log = logging.getLogger("trivium.executable")

Key = tuple[tuple[tuple[int, ...] | None, ...], tuple[bytes, ...]]


class SpecializingExecutable:
    """A program with dynamic shapes. The last `KEPT` specializations are kept; the log reports each new one."""

    KEPT = 64

    def __init__(self, dynamic: DynamicModule[LoadedExecutable], device: Device):
        self.graph: Module = dynamic.module
        self.signature: Function = dynamic.module.main
        self.name = dynamic.module.main.sym_name
        self.device = device
        self._types = dynamic.module.main.function_type.inputs
        self._shape_arguments = dynamic.shape_arguments
        self._compile = dynamic.compile
        self._compiled: Recent[Key, LoadedExecutable] = Recent(self.KEPT)
        self._compiling = threading.Lock()  # one at a time, while calls of compiled programs continue

    @property
    def program(self) -> Program:
        """The program of the last call."""
        return self._last("its program").program

    def execute(self, *arguments: object) -> list[np.ndarray]:
        """Runs on host arrays and returns new ones, which belong to the caller."""
        arrays = self._read(arguments)
        return self._specialized(arrays).execute(*arrays)

    def execute_buffers(self, arguments: Sequence[Buffer]) -> Sequence[Buffer]:
        """Like `execute`, on buffers."""
        return self._specialized(self._read([argument.to_numpy() for argument in arguments])).execute_buffers(arguments)

    def execute_at(self, pointers: Sequence[int]) -> None:
        """Always raises, since addresses have no shapes."""
        raise ExecutionError(f"{self.name} has dynamic shapes, expected `specialize` before it runs on addresses")

    def specialize(self, *arguments: object) -> LoadedExecutable:
        """Returns the executable for arguments like these."""
        return self._specialized(self._read(arguments))

    def stage(self, name: str) -> str:
        """Returns the program at a stage, as it was last called."""
        return self._last("its stages").stage(name)

    def whole(self) -> Artifact:
        """Always raises, since there is one program for each combination of shapes."""
        raise Error(f"{self.name} has dynamic shapes, expected `specialize` before it is written")

    def cost_analysis(self) -> dict[str, float]:
        """Returns the costs of the last call."""
        return self._last("what it costs").cost_analysis()

    def memory_analysis(self) -> MemoryStats:
        """Returns the memory that the last call needed."""
        return self._last("what it needs").memory_analysis()

    @property
    def last(self) -> LoadedExecutable:
        """The executable of the last call."""
        return self._last("it")

    def compiled_shapes(self) -> list[tuple[tuple[int, ...] | None, ...]]:
        """Returns the shapes of the arguments for which there are executables, the least recently used first."""
        return [shapes for shapes, _ in self._compiled]

    def _last(self, wanted: str) -> LoadedExecutable:
        last = self._compiled.last
        if last is None:
            raise Error(f"{self.name} has dynamic shapes and is compiled when it is called; call it to see {wanted}")
        return last

    def _read(self, arguments: Sequence[object]) -> list[np.ndarray]:
        if len(arguments) != len(self._types):
            raise ExecutionError(f"{self.name} was given {len(arguments)} arguments, expected {len(self._types)}")
        return [
            read_argument(value, kind, f"argument {index} of {self.name}")
            for index, (value, kind) in enumerate(zip(arguments, self._types, strict=True))
        ]

    def _specialized(self, arrays: list[np.ndarray]) -> LoadedExecutable:
        shapes = tuple(getattr(array, "shape", None) for array in arrays)
        values = {index: arrays[index].copy() for index in self._shape_arguments}
        key = shapes, tuple(value.tobytes() for value in values.values())
        found = self._compiled.get(key)
        if found is None:
            with self._compiling:
                found = self._compiled.get(key) or self._compiled_for(key, values)
        return found

    def _compiled_for(self, key: Key, values: dict[int, np.ndarray]) -> LoadedExecutable:
        shapes, _ = key
        listed = {index: value.tolist() for index, value in values.items()}
        log.info("compiling %s for shapes %s, and the values %s of arguments", self.name, shapes, listed)
        executable = self._compile(shapes, values)
        self._compiled.put(key, executable)
        return executable
