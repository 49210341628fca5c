"""Executables with dynamic shapes, for every backend: compiled when they are called with arguments of new shapes, or
with new values of the arguments from which extents are computed. The first combinations get programs of their own; if
there are more, further programs are for ranges of sizes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trivium.backends.pjrt import Buffer, Device, LoadedExecutable, MemoryStats
from trivium.backends.ranged import OpenSizes, RangedProgram, RangedPrograms
from trivium.backends.ranges import Sizes, shown
from trivium.backends.recent import Recent
from trivium.compiler.driver import DynamicModule
from trivium.compiler.dynamic import Shape
from trivium.ir.arrays import read_argument
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.func import Function, Module

if TYPE_CHECKING:
    from trivium.compiler.artifact import Artifact
    from trivium.compiler.program import Program

log = logging.getLogger("trivium.executable")

Key = tuple[tuple[tuple[int, ...] | None, ...], tuple[bytes, ...]]


COMPILED_AT_ONCE = 2
"""How many combinations of sizes get programs of their own when they first occur: those of all batches, and of the last
one."""


class Given(NamedTuple):
    """What is known of the arguments of a call: their shapes, and the values of those from which extents are computed.
    The key has the same, and so have the sizes, if programs for ranges of them are possible."""

    shapes: tuple[Shape | None, ...]
    values: Mapping[int, np.ndarray]
    key: Key
    sizes: Sizes | None


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
        self._compile_static = dynamic.compile_static
        self._compiled: Recent[Key, LoadedExecutable] = Recent(self.KEPT)
        self._sizes = OpenSizes(self._types, self._shape_arguments)
        self._ranges = RangedPrograms(self.name, self._sizes, lambda: self.graph, self._compiled_for_sizes, self.KEPT)
        self._used: LoadedExecutable | None = None
        self._compiling = threading.Lock()  # one at a time, while calls of compiled programs continue

    @property
    def program(self) -> Program:
        """The program of the last call."""
        return self._last("its program").program

    def execute(self, *arguments: object) -> list[np.ndarray]:
        """Runs on host arrays and returns new ones, which belong to the caller."""
        arrays = self._read(arguments)
        given = self._given(arrays)
        if given.sizes is not None and self._compiled.get(given.key) is None:
            ranged = self._ranged(given.sizes)
            if ranged is not None:
                return ranged.execute(arrays, given.sizes)
        return self._exact(given).execute(*arrays)

    def execute_buffers(self, arguments: Sequence[Buffer]) -> Sequence[Buffer]:
        """Like `execute`, on buffers, which have no space behind their elements: each combination of shapes has a
        program of its own."""
        return self.specialize(*(argument.to_numpy() for argument in arguments)).execute_buffers(arguments)

    def execute_at(self, pointers: Sequence[int]) -> None:
        """Always raises, since addresses have no shapes."""
        raise ExecutionError(f"{self.name} has dynamic shapes, expected `specialize` before it runs on addresses")

    def specialize(self, *arguments: object) -> LoadedExecutable:
        """Returns the executable for just the shapes of these arguments."""
        return self._exact(self._given(self._read(arguments)))

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

    def compiled_ranges(self) -> list[str]:
        """Returns, for people, the ranges of sizes for which there are programs, the least recently used first."""
        return [shown(program.combinations) for program in self._ranges]

    def _last(self, wanted: str) -> LoadedExecutable:
        if self._used is None:
            raise Error(f"{self.name} has dynamic shapes and is compiled when it is called; call it to see {wanted}")
        return self._used

    def _read(self, arguments: Sequence[object]) -> list[np.ndarray]:
        if len(arguments) != len(self._types):
            raise ExecutionError(f"{self.name} was given {len(arguments)} arguments, expected {len(self._types)}")
        return [
            read_argument(value, kind, f"argument {index} of {self.name}")
            for index, (value, kind) in enumerate(zip(arguments, self._types, strict=True))
        ]

    def _given(self, arrays: Sequence[np.ndarray]) -> Given:
        shapes = tuple(getattr(array, "shape", None) for array in arrays)
        values = {index: arrays[index].copy() for index in self._shape_arguments}
        sizes = self._sizes.of(shapes, values) if self._sizes.are_known else None
        return Given(shapes, values, (shapes, tuple(value.tobytes() for value in values.values())), sizes)

    def _exact(self, given: Given) -> LoadedExecutable:
        """Returns the executable for just these shapes and values."""
        found = self._compiled.get(given.key)
        if found is None:
            with self._compiling:
                found = self._compiled.get(given.key) or self._compiled_for(given)
        self._used = found
        return found

    def _compiled_for(self, given: Given) -> LoadedExecutable:
        listed = {index: value.tolist() for index, value in given.values.items()}
        log.info("compiling %s for shapes %s, and the values %s of arguments", self.name, given.shapes, listed)
        executable = self._compile(given.shapes, given.values)
        self._compiled.put(given.key, executable)
        if given.sizes is not None:
            self._ranges.see_exact(given.sizes, executable, self.graph)
        return executable

    def _ranged(self, sizes: Sizes) -> RangedProgram | None:
        """Returns the program for a range of sizes that runs with these, unless they get one of their own."""
        found = self._ranges.find(sizes) if len(self._compiled) >= COMPILED_AT_ONCE else None
        if found is not None:
            self._used = found.loaded
        return found

    def _compiled_for_sizes(self, module: Module, sizes: str) -> LoadedExecutable:
        log.info("compiling %s for %s", self.name, sizes)
        return self._compile_static(module)
