"""Programs that several devices run together: the parts of arrays that the devices hold, for the native runtime, and in
the form in which hosts query it."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trivium.backends.interface import DIVISION
from trivium.backends.plugin.layouts import Layouts, in_memory, take_layouts
from trivium.backends.plugin.shardings import SHARDINGS, read_shardings, shardings_text, tiles_of
from trivium.backends.plugin.structures import CompileReply, PieceType
from trivium.compiler.artifact import Artifact, Slot
from trivium.compiler.layouts import MinorToMajor
from trivium.compiler.passes.partition import Held, Partitioned, number_alone, partition
from trivium.compiler.passes.tokens import EMPTY
from trivium.compiler.pipeline import inline
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.sharding import Part
from trivium.ir.types import TOKEN, Type


@dataclass(frozen=True)
class Division:
    """How devices hold the arguments and results of a program that they run together. `shardings` is the same as XLA's
    messages, of arguments and then of results, for hosts."""

    replicas: int
    partitions: int
    arguments: Sequence[Held]
    results: Sequence[Held]
    is_shared: bool
    exchanges: bool
    has_device: bool
    shardings: Sequence[bytes]

    @property
    def count(self) -> int:
        """The number of devices."""
        return self.replicas * self.partitions

    def texts(self) -> dict[str, str]:
        """Returns this in the form of an artifact's texts. The native runtime reads it, too (`artifact_program.cc`):
        numbers, each list and each array's rank after its length."""
        numbers = [self.replicas, self.partitions, self.is_shared, self.exchanges, self.has_device]
        for held in (self.arguments, self.results):
            numbers.append(len(held))
            for each in held:
                numbers += each.is_whole, len(each.part.shape), *each.part.shape, *itertools.chain(*each.part.begins)
        return {DIVISION: " ".join(str(int(number)) for number in numbers), SHARDINGS: shardings_text(self.shardings)}

    @classmethod
    def read(cls, texts: Mapping[str, str]) -> Division | None:
        """Returns the division of an artifact, or None for a program of one device."""
        if not texts.get(DIVISION):
            return None
        numbers = iter(map(int, texts[DIVISION].split()))
        replicas, partitions, is_shared, exchanges, has_device = itertools.islice(numbers, 5)

        def row(rank: int) -> tuple[int, ...]:
            return tuple(itertools.islice(numbers, rank))

        def held() -> Held:
            is_whole, rank = bool(next(numbers)), next(numbers)
            return Held(Part(row(rank), tuple(row(rank) for _ in range(replicas * partitions))), is_whole)

        arguments, results = ([held() for _ in range(next(numbers))] for _ in range(2))
        flags = bool(is_shared), bool(exchanges), bool(has_device)
        return cls(replicas, partitions, arguments, results, *flags, read_shardings(texts.get(SHARDINGS, "")))

    def check(self, artifact: Artifact) -> None:
        """Raises an `Error` if the program has other arrays."""
        held = [
            *map(len, (self.arguments, self.results)),
            *(len(each.part.shape) for each in (*self.arguments, *self.results)),
        ]
        inputs = artifact.inputs[: len(artifact.inputs) - self.has_device]
        own = [len(inputs), len(artifact.outputs), *(len(slot.shape) for slot in (*inputs, *artifact.outputs))]
        if held != own:
            raise Error(f"the devices of {artifact.name} have arrays of the ranks {held[2:]}, the program of {own[2:]}")


@dataclass(frozen=True)
class Divided:
    """A program for several devices, and how they hold its arguments and results."""

    program: Partitioned
    division: Division
    layouts: Layouts

    def inspected(self) -> Iterator[tuple[object, str]]:
        """Yields what each inspection of shardings passes with its question, and the answer in XLA's notation."""
        for found in self.program.inspected:
            yield found.asker, "{manual}" if found.part is None else tiles_of(found.type, found.part).text()


def divide(module: Module, replicas: int, partitions: int) -> Divided | None:
    """Returns the program that each device runs, or None if there is one device, whose number `module` then knows."""
    if replicas * partitions == 1:
        number_alone(module)
        return None
    inlined = inline(module)
    wholes = inlined.main.function_type
    divided = partition(inlined, replicas, partitions)
    taken = take_layouts(divided.module)
    # The number of the device is an argument of the program, but not of its hosts.
    layouts = Layouts(taken.arguments[: len(divided.arguments)], taken.results)
    kinds = zip((*wholes.inputs, *wholes.results), (*divided.arguments, *divided.results), strict=True)
    shardings = [tiles_of(kind, held.part).proto() for kind, held in kinds]
    arguments, results = _as_arrays(wholes.inputs, divided.arguments), _as_arrays(wholes.results, divided.results)
    held = _in_memory(arguments, layouts.arguments), _in_memory(results, layouts.results)
    flags = divided.is_shared, divided.exchanges, divided.has_device
    division = Division(replicas, partitions, *held, *flags, shardings)
    return Divided(divided, division, layouts)


def _as_arrays(kinds: Sequence[Type], held: Sequence[Held]) -> list[Held]:
    """Returns how devices hold values once tokens are arrays without elements."""
    return [
        replace(each, part=Part.whole(EMPTY.static_shape, len(each.part.begins))) if kind is TOKEN else each
        for kind, each in zip(kinds, held, strict=True)
    ]


def _in_memory(held: Sequence[Held], orders: Sequence[MinorToMajor]) -> list[Held]:
    return [replace(each, part=in_memory(each.part, order)) for each, order in zip(held, orders, strict=True)]


def fill_pieces(reply: CompileReply, division: Division) -> Sequence[Any]:
    """Fills in the reply, and returns the data that it points to."""
    held = [*division.arguments, *division.results]
    dims = [(ctypes.c_int64 * len(each.part.shape))(*each.part.shape) for each in held]
    begins = [_integers(list(itertools.chain(*each.part.begins))) for each in held]
    pieces = (PieceType * len(held))(
        *(PieceType(each.is_whole, extents, places) for each, extents, places in zip(held, dims, begins, strict=True))
    )
    reply.pieces, reply.is_shared = pieces, division.is_shared
    reply.exchanges, reply.has_device = division.exchanges, division.has_device
    return dims, begins, pieces


def _integers(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(numbers))(*numbers)


def held_bytes(slots: Sequence[Slot], held: Sequence[Held]) -> list[int]:
    """Returns the sizes of the parts that each device holds. A program may have further slots."""
    return [math.prod(each.part.shape) * slot.dtype.itemsize for slot, each in zip(slots, held, strict=False)]
