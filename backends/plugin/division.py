"""Programs that several devices run together: the parts of arrays that the devices hold, for the native runtime, and in
the form in which hosts query it."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trivium.backends.plugin.structures import CompileReply, PieceType
from trivium.compiler.passes.partition import Held, Partitioned, partition
from trivium.compiler.pipeline import inline
from trivium.ir.func import Module
from trivium.ir.sharding import Part
from trivium.ir.types import TensorType, Type


@dataclass(frozen=True)
class Divided:
    """A program for several devices, and a module that shows hosts how they hold its arguments and results."""

    program: Partitioned
    description: str

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
    return Divided(divided, _description(wholes.inputs, wholes.results, divided))


def fill_pieces(reply: CompileReply, divided: Divided) -> Sequence[Any]:
    """Fills in the reply, and returns the data that it points to."""
    program = divided.program
    held = [*program.arguments, *program.results]
    dims = [(ctypes.c_int64 * len(each.part.shape))(*each.part.shape) for each in held]
    begins = [_integers(list(itertools.chain(*each.part.begins))) for each in held]
    pieces = (PieceType * len(held))(
        *(PieceType(each.is_whole, extents, places) for each, extents, places in zip(held, dims, begins, strict=True))
    )
    reply.pieces, reply.is_shared, reply.has_device = pieces, program.is_shared, program.has_device
    text = divided.description.encode()
    reply.description = text
    return dims, begins, pieces, text


def _integers(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(numbers))(*numbers)


def _description(inputs: Sequence[Type], results: Sequence[Type], divided: Partitioned) -> str:
    """Returns a module that calls the program as each device does, on its parts, with the shardings of arguments and
    results, which hosts read from it."""
    before = ", ".join(f'"{_sharding(kind, held.part)}"' for kind, held in zip(inputs, divided.arguments, strict=True))
    after = [_sharding(kind, held.part) for kind, held in zip(results, divided.results, strict=True)]
    inputs = [_own(kind, held) for kind, held in zip(inputs, divided.arguments, strict=True)]
    results = [_own(kind, held) for kind, held in zip(results, divided.results, strict=True)]
    # XLA has one sharding for a result that is an empty tuple.
    together = after[0] if len(after) == 1 else f"{{{', '.join(after or ['{replicated}'])}}}"
    attributes = f'mhlo.spmd_output_sharding = "{together}", mhlo.spmd_parameters_shardings = [{before}]'
    given = ", ".join(f"%arg{index}: {kind}" for index, kind in enumerate(inputs))
    names = ", ".join(f"%arg{index}" for index in range(len(inputs)))
    taken, gives = (", ".join(map(str, kinds)) for kinds in (inputs, results))
    found = ", ".join(f"%result{index}" for index in range(len(results)))
    lines = [
        f"module attributes {{{attributes}}} {{",
        f"func.func public @main({given}) -> ({gives}) {{",
        f"{found}{' = ' if found else ''}stablehlo.custom_call @trivium({names}) {{has_side_effect = true}} : "
        f"({taken}) -> ({gives})",
        f"return {found} : {gives}" if found else "return",
        "}}",
    ]
    return "\n".join(lines)


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
