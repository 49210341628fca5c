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
from trivium.backends.plugin.description import DESCRIPTION, description, layout_attributes
from trivium.backends.plugin.layouts import Layouts, Order, in_memory, take_layouts
from trivium.backends.plugin.structures import CompileReply, PieceType
from trivium.compiler.artifact import Artifact, Slot
from trivium.compiler.passes.partition import Held, Partitioned, partition
from trivium.compiler.pipeline import inline
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.sharding import Part
from trivium.ir.types import TensorType, Type


@dataclass(frozen=True)
class Division:
    """How devices hold the arguments and results of a program that they run together, and a module that shows this to
    hosts."""

    replicas: int
    partitions: int
    arguments: Sequence[Held]
    results: Sequence[Held]
    is_shared: bool
    has_device: bool
    description: str

    @property
    def count(self) -> int:
        """The number of devices."""
        return self.replicas * self.partitions

    def texts(self) -> dict[str, str]:
        """Returns this in the form of an artifact's texts. The native runtime reads it, too (`artifact_program.cc`):
        numbers, each list and each array's rank after its length."""
        numbers = [self.replicas, self.partitions, self.is_shared, self.has_device]
        for held in (self.arguments, self.results):
            numbers.append(len(held))
            for each in held:
                numbers += each.is_whole, len(each.part.shape), *each.part.shape, *itertools.chain(*each.part.begins)
        return {DIVISION: " ".join(str(int(number)) for number in numbers), DESCRIPTION: self.description}

    @classmethod
    def read(cls, texts: Mapping[str, str]) -> Division | None:
        """Returns the division of an artifact, or None for a program of one device."""
        if not texts.get(DIVISION):
            return None
        numbers = iter(map(int, texts[DIVISION].split()))
        replicas, partitions, is_shared, has_device = itertools.islice(numbers, 4)

        def row(rank: int) -> tuple[int, ...]:
            return tuple(itertools.islice(numbers, rank))

        def held() -> Held:
            is_whole, rank = bool(next(numbers)), next(numbers)
            return Held(Part(row(rank), tuple(row(rank) for _ in range(replicas * partitions))), is_whole)

        arguments, results = ([held() for _ in range(next(numbers))] for _ in range(2))
        flags = bool(is_shared), bool(has_device)
        return cls(replicas, partitions, arguments, results, *flags, texts.get(DESCRIPTION, ""))

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
            yield found.asker, "{manual}" if found.part is None else _sharding(found.type, found.part)


def divide(module: Module, replicas: int, partitions: int) -> Divided | None:
    """Returns the program that each device runs, or None if there is one device."""
    if replicas * partitions == 1:
        return None
    inlined = inline(module)
    wholes = inlined.main.function_type
    divided = partition(inlined, replicas, partitions)
    taken = take_layouts(divided.module)
    # The number of the device is an argument of the program, but not of its hosts.
    layouts = Layouts(taken.arguments[: len(divided.arguments)], taken.results)
    described = _description(wholes.inputs, wholes.results, divided, layouts)
    held = _in_memory(divided.arguments, layouts.arguments), _in_memory(divided.results, layouts.results)
    division = Division(replicas, partitions, *held, divided.is_shared, divided.has_device, described)
    return Divided(divided, division, layouts)


def _in_memory(held: Sequence[Held], orders: Sequence[Order]) -> list[Held]:
    return [replace(each, part=in_memory(each.part, order)) for each, order in zip(held, orders, strict=True)]


def fill_pieces(reply: CompileReply, division: Division) -> Sequence[Any]:
    """Fills in the reply, and returns the data that it points to."""
    held = [*division.arguments, *division.results]
    dims = [(ctypes.c_int64 * len(each.part.shape))(*each.part.shape) for each in held]
    begins = [_integers(list(itertools.chain(*each.part.begins))) for each in held]
    pieces = (PieceType * len(held))(
        *(PieceType(each.is_whole, extents, places) for each, extents, places in zip(held, dims, begins, strict=True))
    )
    reply.pieces, reply.is_shared, reply.has_device = pieces, division.is_shared, division.has_device
    return dims, begins, pieces


def _integers(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(numbers))(*numbers)


def _description(inputs: Sequence[Type], results: Sequence[Type], divided: Partitioned, layouts: Layouts) -> str:
    """Returns a module in which the program has the parts of each device, with the shardings and layouts of arguments
    and results."""
    before = ", ".join(f'"{_sharding(kind, held.part)}"' for kind, held in zip(inputs, divided.arguments, strict=True))
    after = [_sharding(kind, held.part) for kind, held in zip(results, divided.results, strict=True)]
    inputs = [_own(kind, held) for kind, held in zip(inputs, divided.arguments, strict=True)]
    results = [_own(kind, held) for kind, held in zip(results, divided.results, strict=True)]
    # XLA has one sharding for a result that is an empty tuple.
    together = after[0] if len(after) == 1 else f"{{{', '.join(after or ['{replicated}'])}}}"
    attributes = f'mhlo.spmd_output_sharding = "{together}", mhlo.spmd_parameters_shardings = [{before}]'
    orders = layout_attributes(inputs, results, (*layouts.arguments, *layouts.results))
    return description(inputs, results, ", ".join(filter(None, (attributes, orders))))


def _own(kind: Type, held: Held) -> Type:
    """Returns the type of a device's part."""
    return TensorType(held.part.shape, kind.element_type) if isinstance(kind, TensorType) else kind


def _sharding(kind: Type, part: Part) -> str:
    """Returns XLA's notation: the devices of each part, part by part; devices that hold the same part follow each
    other."""
    if not isinstance(kind, TensorType) or (part.shape == kind.static_shape and not part.terms):
        return "{replicated}"
    counts = [whole // own if own else 1 for whole, own in zip(kind.static_shape, part.shape, strict=True)]
    order = sorted(range(len(part.begins)), key=lambda device: (part.begins[device], device))
    copies = len(order) // math.prod(counts)
    last = [copies] if copies > 1 else []
    note = " last_tile_dim_replicate" if copies > 1 else ""
    if part.terms:
        terms = len(part.terms[0])
        if terms == len(order):
            return "{unreduced}"
        order = _with_terms(order, part)
        last = [copies // terms, terms]
        note = " last_tile_dims={replicated,unreduced}"
    return f"{{devices=[{','.join(map(str, [*counts, *last]))}]{','.join(map(str, order))}{note}}}"


def _with_terms(order: Sequence[int], part: Part) -> list[int]:
    """Orders devices so that those with terms of one part follow each other, after those of each other copy of it."""
    groups = {group[0]: group for group in part.terms}
    return [device for first in order if first in groups for device in groups[first]]


def held_bytes(slots: Sequence[Slot], held: Sequence[Held]) -> list[int]:
    """Returns the sizes of the parts that each device holds. A program may have further slots."""
    return [math.prod(each.part.shape) * slot.dtype.itemsize for slot, each in zip(slots, held, strict=False)]
