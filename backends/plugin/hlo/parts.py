"""Arrays of which each device has a part, in a program that computes with wholes: a part is gathered from all devices,
and each takes its part of a whole, as the native runtime does it (`divided_execution.cc`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.backends.plugin.hlo.computation import DIMENSIONS, GLOBAL_IDS, REPLICA_GROUPS, Computation
from trivium.backends.plugin.hlo.shapes import array_shape
from trivium.backends.plugin.hlo.wire import messages, number, numbers
from trivium.ir.sharding import Part
from trivium.ir.types import I32, UI32, Type


def gather(computation: Computation, value: int, part: Part, whole: Sequence[int], element: Type) -> int:
    """Returns the whole of a value: one dimension after the other is gathered."""
    begins, shape = np.array(part.begins, np.int64).reshape(len(part.begins), len(part.shape)), list(part.shape)
    for dimension in reversed(range(len(shape))):
        if shape[dimension] == whole[dimension]:
            continue
        rows = _rows(begins, dimension)
        begins[:, dimension] = 0
        shape[dimension] = whole[dimension]
        fields = numbers(DIMENSIONS, [dimension]) + messages(REPLICA_GROUPS, (numbers(1, row) for row in rows))
        fields += number(GLOBAL_IDS, True) + computation.program.channel()
        value = computation.add("all-gather", array_shape(shape, element), [value], fields)
    return value


def _rows(begins: np.ndarray, dimension: int) -> list[list[int]]:
    """Returns groups of devices whose parts differ in one dimension only, in the order of their parts."""
    lines: dict[tuple[int, ...], dict[int, list[int]]] = {}
    for device, place in enumerate(begins.tolist()):
        others = (*place[:dimension], *place[dimension + 1 :])
        lines.setdefault(others, {}).setdefault(place[dimension], []).append(device)
    return [
        list(row) for places in lines.values() for row in zip(*(places[begin] for begin in sorted(places)), strict=True)
    ]


def cut(computation: Computation, value: int, part: Part, element: Type, opcode: str) -> int:
    """Returns the part of a whole that a device has. `opcode` is the instruction that returns its number."""
    device = computation.add(opcode, array_shape((), UI32))
    starts = []
    for column in np.array(part.begins, np.int32).reshape(len(part.begins), len(part.shape)).T:
        if not column.any():
            starts.append(computation.constant(np.zeros((), np.int32), I32))
            continue
        table = computation.constant(np.ascontiguousarray(column), I32)
        one = computation.add("dynamic-slice", array_shape((1,), I32), [table, device], numbers(20, [1]))
        starts.append(computation.add("reshape", array_shape((), I32), [one]))
    return computation.add("dynamic-slice", array_shape(part.shape, element), [value, *starts], numbers(20, part.shape))
