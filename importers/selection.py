"""Elements that are chosen by their values: how many there are is known when the program runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.importers.dynamic import DynamicEmitter, Extent, Size, scalar_of
from trivium.importers.emit import Emitter
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64


def selected(emit: DynamicEmitter, kept: Value, *lists: Value) -> list[Value]:
    """Returns the elements of lists for which an entry is true, in their order."""
    if kept.type.shape == (0,):
        return list(lists)
    count = Size(emit, emit.reduce(ops.Add, emit.convert(kept, I64), [0]), is_extent=True)
    _, *ordered = emit.sort([emit.add(ops.Not(kept)), *lists], 0)
    return [emit.slice(x, 0, 0, count) for x in ordered]


def true_places(emit: DynamicEmitter, mask: Value) -> list[Value]:
    """Returns the indices along each dimension of the elements that are true, in row-major order."""
    shape = emit.extents(mask)
    kept = emit.reshape(mask, [math.prod(shape)])
    (places,) = selected(emit, kept, emit.iota_like(kept, 0))
    return coordinates(emit, places, shape)


def coordinates(emit: Emitter, places: Value, shape: Sequence[Extent]) -> list[Value]:
    """Returns the index along each dimension of positions in a flattened tensor."""
    found, rest = [], places
    for extent in reversed(shape[1:]):
        by = scalar_of(emit, extent)
        found.append(emit.binary(ops.Remainder, rest, by))
        rest = emit.over(rest, by)
    return [rest, *reversed(found)]
