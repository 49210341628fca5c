"""Tilings: they cover the problem, fit in registers and caches, and describe correctly how operands are stored."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import HWIO, NCHW, NHWC, ONE, Case, Window, convolution, matmul
from tests.compiler.contraction.meaning import place, points
from trivium.backends.cpu.contraction.plan import Plan, plan
from trivium.backends.cpu.contraction.tiling import (
    FEWEST_AHEAD,
    LHS_SHARE,
    MOST_ROWS,
    MOST_STREAMED,
    PANEL_SHARE,
    STREAMS,
    SUMS_SHARE,
    TILES_SHARE,
    Reduction,
    Rhs,
    Tiling,
    rhs_step,
    rows_that_fit,
    split,
    widest_panel,
)
from trivium.backends.cpu.target import LEVELS, CpuTarget, host
from trivium.compiler.contraction.marked import Marked

DTYPES = {"f32": np.float32, "f64": np.float64}
SIZES = [
    (1, 1, 1, 1), (1, 1, 1000, 50), (1, 7, 16, 1), (3, 100, 1, 20), (1, 3, 33, 3000), (2, 61, 33, 3000),
    (1, 512, 512, 512), (1, 2000, 77, 5000), (1, 12, 4096, 4096), (8, 300, 20, 9), (1, 5, 20_000, 3),
]  # fmt: skip
CONVOLUTIONS = {
    "plain": ((2, 64, 30, 30), (96, 64, 3, 3), Window(padding=ONE)),
    "stem": ((1, 3, 112, 112), (64, 3, 7, 7), Window((2, 2), ((3, 3), (3, 3)))),
    "depthwise": ((2, 40, 30, 30), (40, 1, 5, 5), Window(padding=ONE, groups=40)),
    "one by one": ((1, 256, 14, 14), (500, 256, 1, 1), Window()),
    "many channels": ((1, 700, 6, 6), (20, 700, 3, 3), Window()),
}
LAYOUTS = {"first": (NCHW, NCHW, NCHW), "last": (NHWC, HWIO, NHWC)}


def processor(name: str, threads: int = 1) -> CpuTarget:
    facts = LEVELS[name]
    return replace(host(), vector_bytes=facts.vector_bytes, vector_registers=facts.vector_registers, threads=threads)


@cache
def cases(dtype: type) -> list[Case]:
    turned = (0, 2, 1), (0, 1, 2)
    found = [
        matmul(np.empty((b, m, k), dtype), np.empty((b, k, n), dtype), (lhs, rhs, (0, 1, 2)))
        for (b, m, n, k), lhs, rhs in product(SIZES, turned, turned)
    ]
    for (lhs_shape, rhs_shape, window), orders in product(CONVOLUTIONS.values(), LAYOUTS.values()):
        found.append(convolution(np.empty(lhs_shape, dtype), np.empty(rhs_shape, dtype), window, orders))
    return found


@cache
def plans(name: str, dtype: str, threads: int = 1) -> list[Plan]:
    nbytes, target = np.dtype(DTYPES[dtype]).itemsize, processor(name, threads)
    problems = [Marked(case.kernel.contraction).problem for case in cases(DTYPES[dtype])]  # type: ignore[arg-type]
    constants = frozenset[str](), frozenset({"lhs", "rhs"})
    return [plan(problem, nbytes, target, known) for problem in problems for known in constants]


def vectors_of_columns(chosen: Plan) -> int:
    """Returns the number of vectors of columns: those of each line, if rhs is an image."""
    columns, lanes = chosen.problem.columns, chosen.tiling.lanes
    if chosen.tiling.rhs is not Rhs.IMAGE:
        return -(-columns.extent // lanes)
    line = columns.axes[-1].extent
    return columns.extent // line * -(-line // lanes)


everywhere = pytest.mark.parametrize(("name", "dtype"), list(product(LEVELS, DTYPES)))


@everywhere
def test_every_element_is_in_one_part(name: str, dtype: str) -> None:
    for threads in (1, 8):
        for chosen in plans(name, dtype, threads):
            problem, tiling = chosen.problem, chosen.tiling
            assert tiling.lanes == LEVELS[name].vector_bytes // np.dtype(DTYPES[dtype]).itemsize
            assert (tiling.tiles.extent, tiling.chunks.extent) == (problem.rows.extent, tiling.tiles.count)
            assert tiling.panels.extent == vectors_of_columns(chosen)
            assert tiling.groups.extent == tiling.panels.count
            for part in (tiling.tiles, tiling.panels, tiling.chunks, tiling.groups):
                assert sum(part.sizes) == part.extent
                assert 0 < part.count <= part.extent
            reduction = tiling.reduction
            assert reduction.taps * reduction.run == problem.reduction.extent
            assert 0 < reduction.block_run <= reduction.run
            assert 0 < reduction.block_taps <= reduction.taps
            assert reduction.block_taps == 1 or reduction.block_run == reduction.run
            assert reduction.blocks * reduction.most_steps >= problem.reduction.extent


@everywhere
def test_tiles_fit_in_registers(name: str, dtype: str) -> None:
    """The accumulators, a row of rhs, and an operand of lhs."""
    registers = LEVELS[name].vector_registers
    for chosen in plans(name, dtype):
        rows, vectors = chosen.tiling.tiles.size, chosen.tiling.panels.size
        assert rows * vectors + vectors + 1 <= registers, chosen.tiling
        assert rows <= MOST_ROWS


@pytest.mark.parametrize(("columns", "depth", "prefetches"), [(32, 1000, False), (128, 1000, True), (32, 9000, True)])
def test_a_block_is_prefetched_if_there_is_one(columns: int, depth: int, prefetches: bool) -> None:
    """After the only block of the only panel, there is none: its address would only take a register."""
    case = matmul(np.zeros((1, 196, depth), np.float32), np.zeros((1, depth, columns), np.float32))
    problem = Marked(case.kernel.contraction).problem  # type: ignore[arg-type]
    tiling = plan(problem, 4, processor("x86-64-v4"), frozenset({"rhs"})).tiling
    assert tiling.prefetch == prefetches


def test_lines_that_tiles_share_are_in_short_blocks() -> None:
    """They stay in the first-level cache, and a panel of rhs in the second-level one, where few tiles read it."""

    def tiling(rows: int, columns: int, steps: int, order: tuple[int, int, int] = (0, 2, 1)) -> Tiling:
        lhs, rhs = np.empty((1, rows, steps), np.float32), np.empty((1, steps, columns), np.float32)
        case = matmul(lhs, rhs, (order, (0, 1, 2), (0, 1, 2)))
        return plan(Marked(case.kernel.contraction).problem, 4, processor("x86-64-v4")).tiling  # type: ignore[arg-type]

    shared, many, wide = tiling(250, 256, 2048), tiling(320, 256, 2048), tiling(250, 1024, 2048)
    assert (shared.rhs, shared.reduction.most_steps, shared.pack_lhs) == (Rhs.IN_PLACE, 128, False)
    assert (many.rhs, many.lhs_in_tiles) == (Rhs.PACKED, True)
    assert (wide.rhs, wide.reduction.most_steps) == (Rhs.PACKED, 128)
    assert tiling(250, 256, 512).reduction.most_steps == 512
    assert tiling(250, 256, 2048, (0, 1, 2)).reduction.most_steps > 128


@everywhere
def test_what_is_packed_fits_in_the_cache(name: str, dtype: str) -> None:
    """A block's panel, lhs and sums have their shares of the caches. Blocks are rounded up to the next boundary of the
    axes, at most to twice their share, and there is always one tile and one panel."""
    cache, nbytes = processor(name).cache_bytes[1], np.dtype(DTYPES[dtype]).itemsize
    for chosen in plans(name, dtype):
        tiling, steps = chosen.tiling, chosen.tiling.reduction.most_steps
        row_bytes = tiling.panels.size * tiling.lanes * nbytes
        if tiling.rhs not in (Rhs.DIRECT, Rhs.IMAGE):
            assert steps * row_bytes <= 2 * PANEL_SHARE * cache, tiling
        if tiling.pack_lhs and tiling.chunks.size > 1:
            share = TILES_SHARE if tiling.lhs_in_tiles else LHS_SHARE
            assert tiling.chunks.size * (tiling.tiles.size - 1) * steps * nbytes <= share * cache, tiling
        if tiling.reduction.blocks > 1 and (tiling.chunks.size > 1 or tiling.groups.size > 1):
            rows = tiling.chunks.size * (tiling.tiles.size - 1)
            assert rows * tiling.groups.size * row_bytes <= SUMS_SHARE * cache, tiling


@pytest.mark.parametrize("dtype", DTYPES)
def test_lhs_advances_evenly_along_a_run(dtype: str) -> None:
    """Element by element, in every plan that reads lhs in place."""
    read = [p for p in plans("x86-64-v3", dtype) if not p.tiling.pack_lhs and p.tiling.rhs is not Rhs.DIRECT]
    assert len(read) > 20
    for chosen in read:
        axes, run = chosen.problem.reduction.axes, chosen.tiling.reduction.run
        step = chosen.problem.lhs.stride(axes[-1]) if axes else 0
        places = [place(replace(chosen.problem.lhs, windows=()), point) for point in points(chosen.problem.reduction)]
        for start in range(0, len(places), run):
            assert places[start : start + run] == [places[start] + i * step for i in range(run)]


def test_rows_of_rhs_that_lie_evenly() -> None:
    """`rhs_step` is the distance between elements, and 0 if they do not have a constant one."""
    steps = []
    for chosen in plans("x86-64-v3", "f32"):
        problem, step = chosen.problem, rhs_step(chosen.problem)
        assert step > 0 or chosen.tiling.rhs is not Rhs.IN_PLACE
        places = [place(problem.rhs, point) for point in points(problem.reduction)]
        if step:
            assert places == [places[0] + i * step for i in range(len(places))]
            (column,) = problem.columns.axes
            assert problem.rhs.stride(column) == 1
        steps.append(step)
    assert 0 in steps
    assert len(set(steps)) > 3


@everywhere
def test_threads_have_something_to_do(name: str, dtype: str) -> None:
    """Large problems have at least one unit per thread, small ones no more than without threads."""
    for one, many in zip(plans(name, dtype), plans(name, dtype, threads=8), strict=True):
        target = processor(name, 8)
        problem, size = one.problem, np.dtype(DTYPES[dtype]).itemsize
        pieces = target.product_cost(problem.flops, size, problem.read * size) / target.piece_cost
        most = one.problem.batch.extent * many.tiling.chunks.extent * many.tiling.groups.extent
        assert many.units >= min(8, int(pieces), most)
        if pieces < 1:
            assert many.units == one.units


def test_constants_are_packed_unless_that_repeats_them() -> None:
    """In windows, elements would be packed repeatedly."""
    for chosen in plans("x86-64-v4", "f32")[1::2]:
        constant = chosen.tiling.rhs is Rhs.CONSTANT
        assert constant != bool(chosen.problem.rhs.windows)
        assert (chosen.packed_operand is not None) == constant


@pytest.mark.parametrize(("registers", "most"), list(product((16, 32), (8, 15, 100))))
def test_registers_are_shared_out(registers: int, most: int) -> None:
    for rows in range(1, 40):
        vectors = widest_panel(rows, registers, most)
        fitting = rows_that_fit(vectors, registers)
        assert 1 <= fitting <= MOST_ROWS
        assert fitting * vectors + vectors + 2 <= registers
    assert widest_panel(1, registers) > widest_panel(40, registers)


def test_few_rows_are_one_tile() -> None:
    """It reads rhs once."""
    for rows in range(1, MOST_ROWS + 1):
        tiling = of_product(rows, 512, 500)
        assert (tiling.tiles.count, tiling.rhs is Rhs.PACKED) == (1, False)


def of_product(rows: int, terms: int, columns: int, threads: int = 1, constant: tuple[str, ...] = ()) -> Tiling:
    case = matmul(np.empty((1, rows, terms), np.float32), np.empty((1, terms, columns), np.float32))
    problem = Marked(case.kernel.contraction).problem  # type: ignore[arg-type]
    return plan(problem, 4, processor("x86-64-v4", threads), frozenset(constant)).tiling


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "streams"),
    [
        *((rows, 512, 1024, True) for rows in (1, 2, 3, 8, MOST_STREAMED)),
        (MOST_STREAMED + 1, 512, 1024, False),
        (8, 512, 512, False),  # as large as the second-level cache
        (2, 512, 512, True),
        (8, 2048, 256, False),  # short rows
        (2, 2048, 256, True),
    ],
)
def test_few_rows_stream_long_rows_of_a_large_rhs(rows: int, terms: int, columns: int, streams: bool) -> None:
    tiling = of_product(rows, terms, columns)
    assert (tiling.rhs is Rhs.IN_PLACE and tiling.reduction.most_steps == STREAMS) == streams
    assert tiling.prefetch == (streams and rows >= FEWEST_AHEAD)


def test_a_single_row_reads_whole_rows_of_rhs_unless_threads_share_them() -> None:
    case = matmul(np.empty((1, 1, 2000), np.float32), np.empty((1, 2000, 200), np.float32))
    problem = Marked(case.kernel.contraction).problem  # type: ignore[arg-type]
    one, two = (plan(problem, 4, processor("x86-64-v4", threads)).tiling for threads in (1, 2))
    assert (one.panels.size, one.groups.count) == (13, 1)
    assert (two.panels.size, two.groups.count) == (7, 2)


@pytest.mark.parametrize(("columns", "panels"), [(1024, 6), (512, 4), (64, 2)])
def test_threads_share_the_panels_of_a_row_evenly(columns: int, panels: int) -> None:
    """However short the products take: reading a constant of megabytes is work, too."""
    tiling = of_product(1, 2048, columns, threads=2, constant=("rhs",))
    assert (tiling.panels.count, tiling.groups.count) == (panels, panels)


def test_threads_share_streams_in_whole() -> None:
    """Each thread reads long pieces of the rows of rhs."""
    tiling = of_product(8, 512, 2048, threads=4)
    assert tiling.reduction.most_steps == STREAMS
    assert tiling.chunks.count * tiling.groups.count == 4


@pytest.mark.parametrize(
    ("m", "n", "k", "by_rows", "groups"),
    [(3136, 256, 64, True, 1), (128, 256, 64, False, 4), (512, 4096, 512, True, 8), (1024, 1024, 1024, True, 4)],
)
def test_many_rows_are_written_by_rows_and_groups_of_panels_fit_in_the_cache(
    m: int, n: int, k: int, by_rows: bool, groups: int
) -> None:
    case = matmul(np.empty((1, m, k), np.float32), np.empty((1, k, n), np.float32))
    problem = Marked(case.kernel.contraction).problem  # type: ignore[arg-type]
    target = processor("x86-64-v4")
    tiling = plan(problem, 4, target, frozenset({"rhs"})).tiling
    assert (tiling.by_rows, tiling.groups.count) == (by_rows, groups)
    group = 4 * k * tiling.groups.size * tiling.panels.size * tiling.lanes
    assert group <= target.cache_bytes[1] or not by_rows


def test_split_is_even_and_whole() -> None:
    for extent, most in product(range(1, 40), range(1, 9)):
        parts = split(extent, most)
        assert sum(parts.sizes) == extent
        assert max(parts.sizes) <= most
        assert max(parts.sizes) - min(parts.sizes) <= 1
        assert [parts.start(i) for i in range(parts.count)] == [sum(parts.sizes[:i]) for i in range(parts.count)]


def test_blocks_of_a_reduction() -> None:
    assert (Reduction(9, 100, 4, 100).blocks, Reduction(9, 100, 4, 100).most_steps) == (3, 400)
    assert (Reduction(2, 100, 1, 30).run_blocks, Reduction(2, 100, 1, 30).blocks) == (4, 8)


def test_a_tiling_in_words() -> None:
    case = matmul(np.empty((1, 100, 64), np.float32), np.empty((1, 64, 100), np.float32))
    chosen = plan(Marked(case.kernel.contraction).problem, 4, processor("x86-64-v3"))  # type: ignore[arg-type]
    tiling = chosen.tiling
    assert str(tiling) == (
        f"schedule {{ tile {tiling.tiles.size}x16, blocks of 64, units {tiling.chunks.count}x{tiling.groups.count}, "
        "lhs in place, rhs packed }"
    )


def test_packed_panels_serve_all_rows() -> None:
    """Also if the last tile has fewer rows."""
    image, weights = np.empty((1, 64, 30, 30), "f"), np.empty((64, 64, 3, 3), "f")
    case = convolution(image, weights, Window(padding=ONE), LAYOUTS["first"])
    problem = Marked(case.kernel.contraction).problem  # type: ignore[arg-type]
    tiling = plan(problem, 4, processor("x86-64-v4")).tiling
    assert (tiling.rhs, tiling.tiles.extent % tiling.tiles.size, tiling.chunks.count) == (Rhs.PACKED, 4, 1)
