"""Lists whose length depends on values: elements that are chosen, and ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.importers.dynamic import DynamicEmitter
from trivium.importers.emit import Emitter
from trivium.importers.extents import Extent, Size, scalar_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, I64, is_float


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


def ranged(emit: DynamicEmitter, first: Value, last: Value, step: Value) -> Value:
    """Returns the numbers from `first` on, a step apart, that come before `last`; all three are 0-d."""
    kind = first.type.element_type
    # Integers of 64 bits count exactly: the number of steps, rounded up, is that of whole ones with one less to go.
    wide = F64 if is_float(kind) else I64
    ends = [emit.convert(value, wide) for value in (first, last, step)]
    steps = emit.add(ops.Ceil(emit.over(emit.minus(ends[1], ends[0]), ends[2]))) if wide is F64 else _steps(emit, *ends)
    count = emit.add(ops.Maximum(emit.convert(steps, I64), emit.scalar(0, I64)))
    return emit.plus(first, emit.times(emit.iota([Size(emit, count, is_extent=True)], 0, kind), step))


def _steps(emit: DynamicEmitter, first: Value, last: Value, step: Value) -> Value:
    """Returns how many steps lead from one integer up to, or beyond, another."""
    one = emit.sign(step)
    return emit.over(emit.minus(emit.plus(emit.minus(last, first), step), one), step)
