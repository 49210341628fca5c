"""Which iterations of a loop run in one body ("unroll and jam"): neighbours whose windows overlap, such as those of a
depthwise convolution or of pooling. Each element is then loaded once for all of them, and what they multiply it with
once for several vectors: without this, a sum over a window waits for loads, not for products."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence

from trivium.compiler.kernel.affine import Analysis, expressions, inner_values
from trivium.compiler.kernel.overlap import overlap
from trivium.compiler.kernel.structure import Apply, Constant, If, Loop, Position, symbols, walk
from trivium.compiler.schedule import LoopSchedule, Mapping, Unit

SUMS = 8
"""The number of vectors of sums in a tile: two units start a product each cycle, which takes them four."""
LARGEST = 6000
"""The number of instructions up to which the windows of a tile are written out: those of eight windows of 7 x 7."""
LARGEST_WINDOW = 400
"""The same for one window, 10 x 10 of a depthwise convolution: LLVM takes a second and more for larger ones. Whether an
element is in the padding is not counted, because inside the image nothing is in it."""
MOSTLY = 0.7
"""The part of the loads that a tile must do with to be worth its code."""


def tiles(
    loop: Loop, schedules: dict[Loop, LoopSchedule], lanes: int, sums: int, possible: Container[int], facts: Analysis
) -> Iterator[tuple[float, LoopSchedule]]:
    """Yields schedules of a loop that is in lanes, each with the part of the loads that it needs. A register has
    `lanes`, `sums` vectors of sums fit in registers, and iterations of the `possible` dimensions are independent."""
    windows, plain = _windows(loop, schedules), schedules[loop]
    if not windows:
        return
    assert plain.vector is not None, "the loop is in lanes"
    index, extent = loop.indices[plain.vector], plain.extents[plain.vector]
    long = not isinstance(extent, int) or extent > lanes
    vectors = 2 if long and sums >= SUMS else 1
    lanes = vectors * lanes if long else min(lanes, plain.lanes)
    code = max(_code(*window) for window in windows)
    if max(_code(*window, inside=True) for window in windows) > LARGEST_WINDOW:
        return
    most = min(min(sums, SUMS) // vectors, LARGEST // code)
    terms = sum(math.prod(extents) for _, extents in windows)
    for dimension, extent in enumerate(plain.extents):
        if dimension == plain.vector or dimension not in possible:
            continue
        if not isinstance(extent, int) or min(extent, most) < 2:
            continue
        other, size = loop.indices[dimension], math.ceil(extent / math.ceil(extent / most))
        loaded = sum(len(overlap(*window, other, size, index, facts)) for window in windows) / (size * terms)
        if loaded <= MOSTLY:
            mapped = Mapping(Unit.REGISTERS, (dimension,), size), Mapping(Unit.LANES, (plain.vector,), lanes)
            yield loaded, LoopSchedule(plain.extents, mapped)


def _windows(loop: Loop, schedules: dict[Loop, LoopSchedule]) -> list[tuple[Loop, tuple[int, ...]]]:
    """Returns the windows in a parallel loop, and their extents, if these are all of its inner loops, and the places of
    all elements follow from indices and from what is known before it."""
    inner = [i for i in walk(loop.body) if isinstance(i, Loop)]
    windows = [(window, schedules[window].static_extents or ()) for window in inner]
    folds = all(window.kind == "reduction" and window in loop.body.instructions for window in inner)
    known = all(math.prod(extents) > 1 for _, extents in windows)
    if not inner or loop.kind != "parallel" or not folds or not known:
        return []
    own = inner_values(loop).difference(*(each.indices for each in (loop, *inner)))
    regular = not any(own.intersection(symbols(*expressions(i))) for i in walk(loop.body))
    return windows if regular else []


def _code(window: Loop, extents: Sequence[int], inside: bool = False) -> int:
    """Returns the number of instructions of a window that is written out, with those that add its terms; `inside`:
    without those that decide what is in the padding."""
    found = [i for i in walk(window.body) if not isinstance(i, Constant | Position)]
    if inside:
        found = [i for i in found if not (isinstance(i, If) or (isinstance(i, Apply) and i.result.dtype == "i1"))]
    return math.prod(extents) * (1 + len(found))
