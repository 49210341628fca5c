"""The schedule of a contraction whose rhs is an image (`image_template.py`), as in a convolution of few features whose
vectors are neighbouring pixels."""

from __future__ import annotations

import math
from dataclasses import replace

from trivium.backends.cpu.contraction import tiling
from trivium.backends.cpu.contraction.tiling import AS_STORED, Knobs, Reading, Reduction, Rhs, Split, Tiling
from trivium.compiler.contraction.problem import Access, Axis, AxisGroup, Problem
from trivium.compiler.kernel.index import Index
from trivium.compiler.target import MASKED_BYTES, Target

MOST_TILES = 6
"""Each tile reads a panel's vectors again, with their masks. If there are more, packing the panel takes less time."""
MOST_MASKS = 6
"""The number of masks that a tile uses at once and that stay in registers of their own."""
LONGEST_RUN, SHORTEST_RUN = 32, 8
"""The number of the image's features that all taps read before the next features begin: their lines are then still in
the first-level cache. Features are not divided into shorter parts, for which computing the masks takes the time."""
LEAST_USED = 3 / 4
"""The least share of the lanes in a line's vectors that are pixels."""


def ordered(problem: Problem) -> Problem:
    """Returns the problem with the axis of the reduction along which rhs advances evenly, and farthest, at the end:
    along it, or a part of it, a tile runs. The others are taps, each of which has its own mask."""
    axes, rhs = problem.reduction.axes, problem.rhs
    even = [axis for axis in axes if not rhs.windowed(axis)]
    if not even:
        return problem
    run = max(even, key=lambda axis: abs(rhs.stride(axis)))
    taps = tuple(axis for axis in axes if axis is not run)
    length = max(count for count in range(1, LONGEST_RUN + 1) if run.extent % count == 0)
    if length == run.extent or length < SHORTEST_RUN or problem.lhs.windowed(run):
        return replace(problem, reduction=AxisGroup((*taps, run)))
    part, place = Axis(run.extent // length), Axis(length)
    sides = {side: _divided(getattr(problem, side), run, part, place) for side in ("lhs", "rhs")}
    return replace(problem, reduction=AxisGroup((part, *taps, place)), **sides)


def _divided(access: Access, axis: Axis, outer: Axis, inner: Axis) -> Access:
    """Returns an access whose `axis`, which has no window, is two axes."""
    stride = access.stride(axis)
    terms = {other: factor for other, factor in access.index.terms.items() if other is not axis}
    return replace(access, index=Index({**terms, outer: stride * inner.extent, inner: stride}, access.index.offset))


def choose(
    problem: Problem, element_bytes: int, target: Target, knobs: Knobs, reading: Reading = AS_STORED
) -> Tiling | None:
    """Returns the schedule of a problem in the order of `ordered`; None if rhs is no image, or if there is a better
    one."""
    lanes = target.vector_bytes // element_bytes
    if target.vector_bytes < MASKED_BYTES or reading != AS_STORED or not _is_image(problem, lanes):
        return None
    rows, columns = problem.rows.extent, problem.columns.axes
    line = -(-columns[-1].extent // lanes)
    vectors = math.prod(axis.extent for axis in columns[:-1]) * line
    widest = min(tiling.widest_panel(rows, target.vector_registers), MOST_MASKS // problem.rhs.stride(columns[-1]))
    panels = tiling.split(vectors, knobs.vectors or widest)
    tiles = tiling.split(rows, tiling.rows_that_fit(panels.size, target.vector_registers))
    if tiles.count > MOST_TILES:
        return None
    run = 1 if problem.rhs.windowed(problem.reduction.axes[-1]) else problem.reduction.axes[-1].extent
    taps = problem.reduction.extent // run
    chunks, groups = Split(tiles.count, 1), Split(panels.count, panels.count)
    if target.threads > 1:
        wanted = min(4 * target.threads, int(target.product_cost(problem.flops, element_bytes) / target.piece_cost))
        chunks, groups = tiling.shared_out(chunks, groups, problem.batch.extent, wanted, rows_first=False)
    reduction = Reduction(taps, run, taps, run)
    places = lanes, panels, tiles, reduction, chunks, groups, False, Rhs.IMAGE
    return Tiling(*places, by_rows=False, prefetch=False, line=line)


def _is_image(problem: Problem, lanes: int) -> bool:
    """Whether rhs has lines of neighbouring elements, or of every second one, that fill vectors well, and in which
    windows overlap. Windows of rhs may only say where it ends, and lhs, whose rows run evenly, has none."""
    columns, rhs = problem.columns.axes, problem.rhs
    if problem.elementwise or problem.lhs.windows or not columns or rhs.stride(columns[-1]) not in (1, 2):
        return False
    inner = [window for window in rhs.windows if window.uses(columns[-1])]
    if any(window.dilation != 1 for window in rhs.windows) or len(inner) > 1 or any(one.stride != 1 for one in inner):
        return False
    extent = columns[-1].extent
    overlap = any(rhs.windowed(axis) or abs(rhs.stride(axis)) < extent for axis in problem.reduction.axes)
    return overlap and extent >= LEAST_USED * -(-extent // lanes) * lanes
