"""The schedule of a contraction of narrow numbers for an instruction that adds, in each lane, the products of a few
neighbours of the reduction: that of vectors (`tiling.py`), where a step is as many neighbours. In rhs these lie
together (`matrix_packing.py`)."""

from __future__ import annotations

from trivium.backends.cpu.contraction import tiling
from trivium.backends.cpu.contraction.matrix_packing import LANES
from trivium.backends.cpu.contraction.matrix_tiling import PANELS_TOGETHER, interleaves, is_mostly_padding
from trivium.backends.cpu.contraction.tiling import Knobs, Reduction, Rhs, Split, Tiling
from trivium.compiler.contraction.problem import Problem, lies_across
from trivium.compiler.kernel.dtypes import storage_bytes
from trivium.compiler.target import MatrixInstruction, Target

LEAST_ROWS_ALONG, LEAST_ROWS_ACROSS = 2, 6
"""With fewer rows, packing rhs during the run would take the time: one that lies along the reduction, where groups only
have to be moved, or across it."""
ALIGNMENT = 64
"""If lhs is packed, each block begins at a multiple of this number of steps, because packing writes whole vectors."""


def choose(
    problem: Problem, target: Target, constant_rhs: bool, knobs: Knobs, matrix: MatrixInstruction, alike: bool
) -> Tiling | None:
    """Returns the schedule of a problem in canonical form; None if the instruction is not worthwhile for it. If the
    operands are `alike`, the sign bits of one are flipped, which is packed for it."""
    lanes, rows, columns, total = matrix.columns, problem.rows, problem.columns, problem.reduction.extent
    constant = constant_rhs and interleaves(problem, matrix)
    # Only vectors of AVX-512 are packed during the run.
    if not constant and (matrix.widens or lanes < LANES):
        return None
    alike = alike and not matrix.widens
    along = lies_across(problem.rhs, problem.reduction, columns)
    least = 1 if constant else LEAST_ROWS_ALONG if along else LEAST_ROWS_ACROSS
    if rows.extent < least or is_mostly_padding(problem, matrix):
        return None
    cost = target.product_cost(problem.flops, 4) / matrix.speed
    pieces = int(cost / target.piece_cost)
    threads = max(1, min(target.threads, pieces))
    panels, tiles = _tiles(problem, lanes, target.vector_registers, threads, knobs, alike)
    # Rows of bf16 are searched for small numbers, which is simple where they are packed.
    pack_lhs = alike or matrix.widens or matrix.operands == "bf16" or not _lies_in_place(problem, matrix.depth)
    size, rhs_size = 4 // matrix.depth, storage_bytes(matrix.operands)
    cache, row_bytes = target.cache_bytes[1], panels.size * lanes * rhs_size
    reduction = _blocks(problem, int(knobs.panel_share * cache) // row_bytes, matrix.depth, pack_lhs)
    most_rows = int(tiling.LHS_SHARE * cache) // (size * reduction.most_steps) if pack_lhs else rows.extent
    sums = int(tiling.SUMS_SHARE * cache) // (panels.size * lanes * storage_bytes(matrix.accumulate))
    together = PANELS_TOGETHER if pack_lhs else 1
    chunks, groups = tiling.units_of(reduction, panels, tiles, sums, max(1, most_rows), together)
    if target.threads > 1:
        rows_first = constant and (pack_lhs or columns.extent * total < tiling.moved(problem))
        wanted = min(4 * target.threads, pieces)
        chunks, groups = tiling.shared_out(chunks, groups, problem.batch.extent, wanted, rows_first)
    rhs = Rhs.CONSTANT if constant else Rhs.PACKED
    prefetch = constant and tiling.FEW_ROWS < rows.extent <= tiling.SOON_DONE
    places = lanes, panels, tiles, reduction, chunks, groups, pack_lhs, rhs
    return Tiling(*places, by_rows=False, prefetch=prefetch, matrix=matrix)


def _tiles(
    problem: Problem, lanes: int, registers: int, threads: int, knobs: Knobs, alike: bool
) -> tuple[Split, Split]:
    """Returns panels and tiles. If flipped sign bits are one more row of a single tile, panels leave registers for
    it."""
    rows, vectors = problem.rows.extent, -(-problem.columns.extent // lanes)
    if alike and not knobs.vectors:
        widest = max(tiling.USUAL_PANEL, -(-vectors // threads)) if rows == 1 else tiling.USUAL_PANEL
        panels = tiling.split(vectors, tiling.widest_panel(rows + 1, registers, widest))
        if has_registers_for_row(rows, panels.size, registers):
            return panels, tiling.split(rows, rows)
    return tiling.tiles_of(problem, lanes, registers, threads, knobs.vectors)


def has_registers_for_row(rows: int, vectors: int, registers: int) -> bool:
    """Whether accumulators for one more row fit beside those of a tile."""
    return rows + 1 <= tiling.rows_that_fit(vectors, registers)


def _lies_in_place(problem: Problem, depth: int) -> bool:
    """Whether neighbours of the reduction, in groups, are neighbours in the memory of lhs, in runs that are long
    enough."""
    reduction, lhs = problem.reduction, problem.lhs
    if not reduction.axes or lhs.stride(reduction.axes[-1]) != 1 or reduction.axes[-1].extent % depth:
        return False
    if lhs.windowed(reduction.axes[-1]):
        return False
    shortest = tiling.SHORTEST_RUN if lhs.windows else tiling.SHORTEST_SAFE_RUN
    return tiling.run_of(reduction, lhs) >= min(shortest * depth, reduction.extent)


def _blocks(problem: Problem, most_steps: int, depth: int, pack_lhs: bool) -> Reduction:
    """Returns even blocks of at most about `most_steps` steps, which begin with whole groups or, for packed lhs, with
    whole vectors."""
    total = problem.reduction.extent
    if not pack_lhs:
        run = tiling.run_of(problem.reduction, problem.lhs)
        return tiling.blocks_of(problem.reduction, total // run, run, most_steps, depth)
    steps = tiling.split(total, max(ALIGNMENT, most_steps)).size
    return Reduction(1, total, 1, min(total, -(-steps // ALIGNMENT) * ALIGNMENT))
