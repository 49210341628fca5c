"""The schedule of a contraction for instructions that multiply tiles of narrow numbers, such as those of AMX: tiles of
accumulators are held in registers of their own, and each instruction adds products of several neighbours of the
reduction. In rhs, these neighbours lie together (`matrix_packing.py`)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from trivium.backends.cpu.contraction.tiling import (
    LHS_SHARE,
    SUMS_SHARE,
    Knobs,
    Reduction,
    Rhs,
    Tiling,
    moved,
    shared_out,
    split,
    units_of,
)
from trivium.compiler import artifact
from trivium.compiler.contraction.problem import Problem, lies_across
from trivium.compiler.kernel.dtypes import storage_bytes
from trivium.compiler.target import MatrixInstruction, Target

if TYPE_CHECKING:
    from trivium.backends.cpu.contraction.plan import Plan

LEAST_ROWS = 4
"""With fewer rows, reading rhs takes the time, and tiles would only have to be packed for them."""
LEAST_ROWS_PACKED = 16
"""The same, if rhs must be packed during the run."""
LEAST_HEIGHT = 12
"""The number of rows of tiles of lhs below which packing rows together takes less time than lower tiles do."""
MOST_PADDING = 4
"""How many times the work may grow because tiles are filled up with zeros."""
MOST_ACCUMULATORS = 4
"""Of eight tile registers, the others hold factors."""
PANELS_TOGETHER = 32
"""The number of panels that rows of lhs are multiplied with after they were packed, searched for small numbers, or
brought into the second-level cache."""
IN_PLACE_SHARE = 1 / 2
"""The share of the second-level cache for rows of lhs that are read in place, once for each panel."""
LEAST_ROWS_IN_PLACE = 128, 256
"""The smallest number of these rows, if weights are constant and if they are arguments: with fewer, reading the next
panel, or packing it during the run, would take longer than multiplying it."""


def together(matrix: MatrixInstruction) -> int:
    """Returns the number of neighbours of the reduction that a lane of a tile or vector of rhs holds."""
    return matrix.depth // matrix.rows


def cost(plan: Plan, target: Target, element_bytes: int) -> float:
    """Returns what a contraction costs, with or without such instructions."""
    vectors = target.product_cost(plan.problem.flops, element_bytes, plan.problem.read * element_bytes)
    return vectors if plan.tiling.matrix is None else vectors / plan.tiling.matrix.speed


def choose(
    problem: Problem, target: Target, constant_rhs: bool, knobs: Knobs, matrix: MatrixInstruction
) -> Tiling | None:
    """Returns the schedule of a problem in canonical form; None if tiles are not worthwhile for it."""
    lanes, depth, size = matrix.columns, matrix.depth, storage_bytes(matrix.operands)
    rows, columns, total = problem.rows.extent, problem.columns.extent, problem.reduction.extent
    constant = constant_rhs and interleaves(problem, matrix)
    if rows < (LEAST_ROWS if constant else LEAST_ROWS_PACKED) or is_mostly_padding(problem, matrix):
        return None
    in_place = _rows_in_place(problem, depth, 2 * matrix.rows)
    pack_lhs = in_place is None
    tiles = split(rows, in_place or 2 * matrix.rows)
    vectors = MOST_ACCUMULATORS // (1 if tiles.size <= matrix.rows else 2)
    panels = split(-(-columns // lanes), min(vectors, knobs.vectors or vectors))
    cache, row_bytes = target.cache_bytes[1], panels.size * lanes * size
    reduction = _blocks(total, int(knobs.panel_share * cache) // row_bytes, depth)
    if pack_lhs:
        most_rows = int(LHS_SHARE * cache) // (size * reduction.most_steps)
    else:
        most_rows = max(LEAST_ROWS_IN_PLACE[not constant], int(IN_PLACE_SHARE * cache) // (size * _row_steps(problem)))
    sums = int(SUMS_SHARE * cache) // (panels.size * lanes * storage_bytes(matrix.accumulate))
    returns = pack_lhs or matrix.operands == "bf16" or rows > most_rows
    most_panels = PANELS_TOGETHER if returns else 1
    chunks, groups = units_of(reduction, panels, tiles, sums, max(1, most_rows), most_panels)
    if target.threads > 1:
        pieces = int(target.product_cost(problem.flops, 4) / matrix.speed / target.piece_cost)
        rows_first = constant and (pack_lhs or columns * total < moved(problem))
        wanted = min(4 * target.threads, pieces)
        chunks, groups = shared_out(chunks, groups, problem.batch.extent, wanted, rows_first)
    rhs = Rhs.CONSTANT if constant else Rhs.PACKED
    places = lanes, panels, tiles, reduction, chunks, groups, pack_lhs, rhs
    along = lies_across(problem.rhs, problem.reduction, problem.columns)
    # A single tile would have no time for it.
    prefetch = (constant or along) and chunks.size > 1
    return Tiling(*places, by_rows=False, prefetch=prefetch, matrix=matrix)


def _row_steps(problem: Problem) -> int:
    """Returns the number of elements of lhs in memory for each row. Rows of windows overlap."""
    rows, total = problem.rows.axes, problem.reduction.extent
    return min(total, abs(problem.lhs.stride(rows[-1]))) if rows else total


def is_mostly_padding(problem: Problem, matrix: MatrixInstruction) -> bool:
    """Whether filling up rhs to whole tiles would make too much work."""
    extents = (problem.reduction.extent, matrix.depth), (problem.columns.extent, matrix.columns)
    filled = math.prod(-(-extent // size) * size for extent, size in extents)
    return filled > MOST_PADDING * math.prod(extent for extent, _ in extents)


def interleaves(problem: Problem, matrix: MatrixInstruction) -> bool:
    """Whether a constant rhs can be packed in advance: as whole tiles, in which neighbours of the reduction are those
    of its last axis."""
    axes = problem.reduction.axes
    return problem.reduction.extent % matrix.depth == 0 and axes[-1].extent % together(matrix) == 0


def _rows_in_place(problem: Problem, depth: int, most: int) -> int | None:
    """Returns the number of rows, up to `most`, of tiles of lhs that are rows of memory, evenly spaced, none of which
    extends past the reduction; None if there are no such tiles, or they are low. In a convolution, they are neighbours
    in one line of positions."""
    rows, reduction, lhs = problem.rows.axes, problem.reduction.axes, problem.lhs
    if lhs.windows or not reduction or lhs.stride(reduction[-1]) != 1 or reduction[-1].extent % depth:
        return None
    if len(rows) <= 1 and len(reduction) == 1:
        return most
    others = [lhs.stride(axis) for axis in (*problem.batch.axes, *rows, *reduction[:-1])]
    if not rows or any(stride < 0 or stride % depth for stride in others) or lhs.index.offset % depth:
        return None
    line = rows[-1].extent
    height = max(size for size in range(1, most + 1) if line % size == 0)
    return height if height >= LEAST_HEIGHT else None


def _blocks(total: int, most_steps: int, depth: int) -> Reduction:
    """Returns even blocks of whole tiles, of about `most_steps` steps."""
    steps = split(total, max(depth, most_steps)).size
    return Reduction(1, total, 1, min(total, -(-steps // depth) * depth))


def interleaved(packing: artifact.Packing, count: int) -> artifact.Packing:
    """Returns the packing in which `count` neighbours of the reduction lie together, for each column. If they are
    neighbours in memory, too, they are moved as one element."""
    *outer, last = packing.reduction
    reduction = *outer, artifact.Axis(last.extent // count, last.stride * count)
    groups = packing.batch, packing.columns, reduction
    strides = [packing.offset, *(axis.stride for group in groups for axis in group)]
    if last.stride == 1 and all(stride % count == 0 for stride in strides):
        batch, columns, reduction = (
            tuple(artifact.Axis(axis.extent, axis.stride // count) for axis in group) for group in groups
        )
        size, offset = packing.itemsize * count, packing.offset // count
        return artifact.Packing(size, offset, batch, columns, reduction, packing.widths)
    columns = *packing.columns, artifact.Axis(count, last.stride)
    widths = tuple(width * count for width in packing.widths)
    return replace(packing, columns=columns, reduction=reduction, widths=widths)
