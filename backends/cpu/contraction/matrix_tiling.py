"""The schedule of a contraction for instructions that multiply tiles of narrow numbers, such as those of AMX: tiles of
accumulators are held in registers of their own, and each instruction adds products of several neighbours of the
reduction. In rhs, these neighbours lie together (`matrix_packing.py`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trivium.backends.cpu.contraction.tiling import (
    LHS_SHARE,
    SUMS_SHARE,
    Knobs,
    Reading,
    Reduction,
    Rhs,
    Tiling,
    moved,
    shared_out,
    split,
    units_of,
)
from trivium.compiler import artifact
from trivium.compiler.contraction.problem import Problem
from trivium.compiler.kernel.dtypes import storage_bytes
from trivium.compiler.target import MatrixInstruction, Target

if TYPE_CHECKING:
    from trivium.backends.cpu.contraction.plan import Plan

LEAST_ROWS = 4
"""With fewer rows, reading rhs takes the time, and tiles would only have to be packed for them."""
LEAST_ROWS_PACKED = 16
"""The same, if rhs must be packed during the run."""
MOST_PADDING = 4
"""How many times the work may grow because tiles are filled up with zeros."""
MOST_ACCUMULATORS = 4
"""Of eight tile registers, the others hold factors."""
PANELS_TOGETHER = 32
"""The number of panels that rows of lhs are multiplied with after they were packed, or searched for small numbers."""


def together(matrix: MatrixInstruction) -> int:
    """Returns the number of neighbours of the reduction that a lane of a tile of rhs holds."""
    return matrix.depth // matrix.rows


def cost(plan: Plan, target: Target, element_bytes: int) -> float:
    """Returns what a contraction costs, with or without such instructions."""
    vectors = target.product_cost(plan.problem.flops, element_bytes)
    return vectors if plan.tiling.matrix is None else vectors / plan.tiling.matrix.speed


def choose(problem: Problem, target: Target, constant_rhs: bool, knobs: Knobs, reading: Reading) -> Tiling | None:
    """Returns the schedule of a problem in canonical form; None if tiles are not worthwhile for it."""
    matrix = reading.matrix
    if matrix is None or problem.elementwise:
        return None
    lanes, depth, size = matrix.columns, matrix.depth, storage_bytes(matrix.operands)
    rows, columns, total = problem.rows.extent, problem.columns.extent, problem.reduction.extent
    constant = constant_rhs and _interleaves(problem, matrix)
    filled = -(-total // depth) * depth * -(-columns // lanes) * lanes
    if rows < (LEAST_ROWS if constant else LEAST_ROWS_PACKED) or filled > MOST_PADDING * total * columns:
        return None
    tiles = split(rows, matrix.rows if rows <= matrix.rows else 2 * matrix.rows)
    vectors = MOST_ACCUMULATORS // (1 if rows <= matrix.rows else 2)
    panels = split(-(-columns // lanes), min(vectors, knobs.vectors or vectors))
    pack_lhs = not _lies_in_rows(problem, depth)
    cache, row_bytes = target.cache_bytes[1], panels.size * lanes * size
    reduction = _blocks(total, int(knobs.panel_share * cache) // row_bytes, depth)
    most_rows = int(LHS_SHARE * cache) // (size * reduction.most_steps) if pack_lhs else rows
    sums = int(SUMS_SHARE * cache) // (panels.size * lanes * storage_bytes(matrix.accumulate))
    most_panels = PANELS_TOGETHER if pack_lhs or matrix.operands == "bf16" else 1
    chunks, groups = units_of(reduction, panels, tiles, sums, max(1, most_rows), most_panels)
    if target.threads > 1:
        pieces = int(target.product_cost(problem.flops, 4) / matrix.speed / target.piece_cost)
        rows_first = constant and (pack_lhs or columns * total < moved(problem))
        wanted = min(4 * target.threads, pieces)
        chunks, groups = shared_out(chunks, groups, problem.batch.extent, wanted, rows_first)
    rhs = Rhs.CONSTANT if constant else Rhs.PACKED
    places = lanes, panels, tiles, reduction, chunks, groups, pack_lhs, rhs
    return Tiling(*places, by_rows=False, prefetch=False, matrix=matrix)


def _interleaves(problem: Problem, matrix: MatrixInstruction) -> bool:
    """Whether a constant rhs can be packed in advance: as whole tiles, in which neighbours of the reduction are those
    of its last axis."""
    axes = problem.reduction.axes
    return problem.reduction.extent % matrix.depth == 0 and axes[-1].extent % together(matrix) == 0


def _lies_in_rows(problem: Problem, depth: int) -> bool:
    """Whether tiles of lhs are rows of memory, evenly spaced, and none of them extends past the reduction."""
    rows, reduction, lhs = problem.rows.axes, problem.reduction.axes, problem.lhs
    plain = not lhs.windows and len(rows) <= 1 and len(reduction) == 1
    return plain and lhs.stride(reduction[0]) == 1 and reduction[0].extent % depth == 0


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
