"""Padding of a dimension with elements of the tensor itself, defined once for all frameworks."""

from __future__ import annotations

from typing import Literal

import numpy as np

from trivium.importers.dynamic import DynamicEmitter
from trivium.importers.emit import require_computable
from trivium.importers.extents import Extent, larger, scalar_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64

Mode = Literal["reflect", "edge", "wrap"]
"""NumPy's name of what is before the first and after the last element: the others in reverse, these two again and
again, or the others from the other end."""


def places_of_padding(emit: DynamicEmitter, extent: Extent, edges: tuple[Extent, Extent], mode: Mode) -> Value:
    """Returns the index of the element at each position of a dimension with `edges` before and after it. Negative ones
    crop: `wrap` repeats what is left, the other modes take elements that were cropped, too."""
    low, high = edges
    if isinstance(extent, int) and isinstance(low, int) and isinstance(high, int):
        require_computable(extent + low + high, "a padded dimension")
        return emit.elements(_known_places(extent, low, high, mode), I64)
    places = emit.minus(emit.iota([low + extent + high], 0), scalar_of(emit, low))
    if mode == "edge":
        return emit.add(ops.Clamp(emit.scalar(0, I64), places, scalar_of(emit, extent - 1)))
    if mode == "wrap":
        first = larger(emit, -low, 0)
        left, start = extent - first - larger(emit, -high, 0), scalar_of(emit, first)
        return emit.plus(modulo(emit, emit.minus(places, start), left), start)
    period = larger(emit, (extent - 1) * 2, 1)
    turned = modulo(emit, places, period)
    return emit.binary(ops.Minimum, turned, emit.minus(scalar_of(emit, period), turned))


def _known_places(extent: int, low: int, high: int, mode: Mode) -> np.ndarray:
    places = np.arange(-low, extent + high)
    if mode == "edge":
        return np.clip(places, 0, extent - 1)
    if mode == "wrap":
        return np.pad(np.arange(max(-low, 0), extent - max(-high, 0)), (max(low, 0), max(high, 0)), mode=mode)
    period = max((extent - 1) * 2, 1)
    turned = places % period
    return np.minimum(turned, period - turned)


def modulo(emit: DynamicEmitter, x: Value, period: Extent) -> Value:
    """Returns what remains of integers, not negative."""
    by = scalar_of(emit, period)
    rest = emit.binary(ops.Remainder, x, by)
    return emit.binary(ops.Remainder, emit.plus(rest, by), by)
