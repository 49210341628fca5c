"""Computations of HLO: lists of instructions, each of which has a number. A program is a list of computations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from trivium.backends.plugin.hlo.metadata import metadata
from trivium.backends.plugin.hlo.shapes import array_shape, literal_of, tuple_shape
from trivium.backends.plugin.hlo.wire import message, messages, number, numbers, text
from trivium.compiler.target import Target
from trivium.ir.core import Value
from trivium.ir.location import UNKNOWN, Location
from trivium.ir.types import Type

DIMENSIONS, TUPLE_INDEX, CHANNEL, REPLICA_GROUPS, GLOBAL_IDS = 14, 13, 26, 49, 71
"""Fields of `HloInstructionProto` that several modules write. The last one says that groups have devices, not
replicas."""


@dataclass
class Program:
    """The computations of a module that are finished, in an order in which each follows those that it calls, and the
    numbers that are taken."""

    target: Target
    computations: list[bytes] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _channels: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def number(self) -> int:
        """Returns a number for an instruction or a computation."""
        return next(self._numbers)

    def channel(self) -> bytes:
        """Returns the field with the channel of a collective: each has its own."""
        return number(CHANNEL, next(self._channels))


class Computation:
    """A computation that is being written. `fuses`: its ops are divided into kernels. `known` has the instructions of
    values, and `views` the values that others are in the memory of."""

    def __init__(self, program: Program, name: str, fuses: bool = True) -> None:
        self.program = program
        self.fuses = fuses
        self.number = program.number()
        self.name = f"{name}.{self.number}"
        self.known: dict[Value, int] = {}
        self.views: dict[Value, Value] = {}
        self._shapes: dict[int, bytes] = {}
        self._instructions: list[bytes] = []
        self._parameters: list[int] = []
        self._names: list[str] = []

    def add(
        self,
        opcode: str,
        shape: bytes,
        operands: Sequence[int] = (),
        fields: bytes = b"",
        called: Sequence[int] = (),
        location: Location = UNKNOWN,
        name: str = "",
    ) -> int:
        """Writes an instruction, and returns its number."""
        found = self.program.number()
        self._shapes[found] = shape
        described = text(1, f"{name or opcode}.{found}") + text(2, opcode) + message(3, shape) + metadata(location)
        linked = number(35, found) + numbers(36, operands) + numbers(38, called)
        self._instructions.append(described + fields + linked)
        return found

    def parameter(self, shape: bytes, name: str) -> int:
        """Adds a parameter."""
        found = self.add("parameter", shape, fields=number(9, len(self._parameters)), name=name)
        self._parameters.append(found)
        self._names.append(name)
        return found

    def constant(self, array: np.ndarray, element: Type, location: Location = UNKNOWN) -> int:
        """Writes a constant. Its elements are left out if there are many."""
        literal = literal_of(array, element)
        fields = b"" if literal is None else message(8, literal)
        return self.add("constant", array_shape(array.shape, element), fields=fields, location=location)

    def tuple(self, members: Sequence[int]) -> int:
        """Joins values."""
        return self.add("tuple", tuple_shape(list(map(self.shape, members))), members)

    def element(self, of: int, index: int, shape: bytes) -> int:
        """Takes a value out of a tuple."""
        return self.add("get-tuple-element", shape, [of], number(TUPLE_INDEX, index))

    def shape(self, value: int) -> bytes:
        """Returns the shape of a value."""
        return self._shapes[value]

    def signature(self, root: int) -> bytes:
        """Returns the `ProgramShapeProto` of the computation with this result."""
        shapes = messages(1, map(self.shape, self._parameters)) + message(2, self.shape(root))
        return shapes + b"".join(text(3, name) for name in self._names)

    def finish(self, root: int, is_fusion: bool = False) -> int:
        """Ends the computation with its result, and returns its number."""
        body = text(1, self.name) + messages(2, self._instructions) + message(4, self.signature(root))
        about = number(5, self.number) + number(6, root) + number(7, is_fusion)
        self.program.computations.append(body + about)
        return self.number
