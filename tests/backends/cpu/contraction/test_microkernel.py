"""Tiles of accumulators sum the same products as NumPy, for any loops over taps and steps."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.running import of_memory
from trivium.backends.cpu.contraction import microkernel
from trivium.backends.cpu.contraction.microkernel import MOST_UNROLLED, Ahead, Stream, accumulate
from trivium.backends.cpu.target import host
from trivium.backends.llvm.code import F32, I64, Code
from trivium.backends.llvm.numbers import Int, Number
from trivium.backends.llvm.vectors import Vectors

LANES, ROWS, VECTORS = 4, 3, 2
WIDTH = LANES * VECTORS
LHS, PANEL, TILE = 0, 2048, 6144
"""The start of each operand, in elements."""
PITCH = WIDTH + 5


def memory(seed: int = 0) -> np.ndarray:
    """Returns small whole numbers, whose sums are exact."""
    return np.random.default_rng(seed).integers(-4, 5, 7000).astype(np.float32)


def run(emit: Callable[[Vectors, ll.Value], None], array: np.ndarray) -> np.ndarray:
    array = array.copy()
    of_memory(lambda code, pointer: emit(Vectors(code.builder, host(), F32, LANES), pointer))(array.ctypes.data)
    return array


def unknown(code: Code, number: int) -> Int:
    """Returns a number that is unknown while code is emitted."""
    slot = code.builder.alloca(I64)
    code.builder.store(I64(number), slot)
    return Int(code, code.builder.load(slot, typ=I64))


def tiles(array: np.ndarray) -> np.ndarray:
    return np.stack([array[TILE + r * PITCH :][:WIDTH] for r in range(ROWS)])


def rows_from(e: Vectors, base: ll.Value, row_step: int, tap_step: int) -> Callable[[Number], list[ll.Value]]:
    return lambda tap: [e.at(base, LHS + r * row_step + tap * tap_step) for r in range(ROWS)]


@pytest.mark.parametrize("known", [True, False], ids=("known", "unknown"))
@pytest.mark.parametrize("ahead", [True, False], ids=("prefetch", "plain"))
@pytest.mark.parametrize(
    ("taps", "steps"), [((0, 1), 1), ((0, 1), 30), ((2, 5), 7), ((0, MOST_UNROLLED), 1), ((3, 40), 1), ((1, 4), 1)]
)
def test_sums_of_products(taps: tuple[int, int], steps: int, ahead: bool, known: bool) -> None:
    """Rows of lhs are 11 apart, taps 40, and steps 2; rows of the panel are contiguous."""
    row_step, tap_step, stride, pitch = 11, 40, 2, WIDTH

    def emit(e: Vectors, base: ll.Value) -> None:
        bounds = taps if known else tuple(unknown(e, tap) for tap in taps)
        count = steps if known else unknown(e, steps)
        panel = e.at(base, PANEL)
        rows = rows_from(e, base, row_step, tap_step)
        stream = Stream(e, e, rows, bounds, count, stride, panel, pitch, Ahead(panel, e.lanes) if ahead else None)
        tile = microkernel.load_tile(e, e.at(base, TILE), PITCH, ROWS, VECTORS)
        microkernel.store_tile(e, accumulate(e, tile, stream), e.at(base, TILE), PITCH)

    before = memory()
    expected, line = tiles(before).copy(), PANEL
    for tap in range(*taps):
        for step in range(steps):
            lhs = [before[LHS + r * row_step + tap * tap_step + step * stride] for r in range(ROWS)]
            expected += np.outer(lhs, before[line : line + WIDTH])
            line += pitch
    after = run(emit, before)
    np.testing.assert_array_equal(tiles(after), expected)
    after[TILE:] = before[TILE:]
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("active", range(1, LANES + 1))
def test_lane_by_lane(active: int) -> None:
    """Rows of lhs have an element for every column; those that the mask excludes from the last vector are not read."""
    steps, stride, row_step = 5, 40, 300

    def emit(e: Vectors, base: ll.Value) -> None:
        stream = Stream(
            e, e, rows_from(e, base, row_step, 0), (0, 1), steps, stride, e.at(base, PANEL), WIDTH,
            lanewise=True, mask=e.lanes_below(active),
        )  # fmt: skip
        tile = microkernel.zeros(e, ROWS, VECTORS)
        microkernel.store_tile(e, accumulate(e, tile, stream), e.at(base, TILE), PITCH)

    before = memory()
    existing = WIDTH - LANES + active
    for row in range(ROWS):
        for step in range(steps):
            start = LHS + row * row_step + step * stride
            before[start + existing : start + WIDTH] = np.nan
    got = tiles(run(emit, before))
    panel = before[PANEL : PANEL + steps * WIDTH].reshape(steps, WIDTH)
    for row in range(ROWS):
        lhs = np.stack([before[row * row_step + step * stride :][:WIDTH] for step in range(steps)])
        wanted = (np.nan_to_num(lhs) * panel).sum(axis=0)
        np.testing.assert_array_equal(got[row], wanted)


def test_tiles_are_loaded_and_stored_by_rows() -> None:
    def emit(e: Vectors, base: ll.Value) -> None:
        tile = microkernel.load_tile(e, base, 100, ROWS, VECTORS)
        assert microkernel.shaped(tile, [vector for row in tile for vector in row]) == tile
        microkernel.store_tile(e, tile, e.at(base, TILE), PITCH)

    before = memory()
    np.testing.assert_array_equal(tiles(run(emit, before)), [before[100 * r :][:WIDTH] for r in range(ROWS)])


def test_few_taps_of_one_step_have_no_loop() -> None:
    def blocks(taps: tuple[int, int], steps: int) -> int:
        function = ll.Function(ll.Module("test"), ll.FunctionType(ll.VoidType(), [ll.PointerType()]), "test")
        e = Vectors(ll.IRBuilder(function.append_basic_block("entry")), host(), F32, LANES)
        base = function.args[0]
        stream = Stream(e, e, rows_from(e, base, 11, 40), taps, steps, 2, base, WIDTH)
        accumulate(e, microkernel.zeros(e, ROWS, VECTORS), stream)
        return len(function.blocks)

    assert blocks((0, MOST_UNROLLED), 1) == 1
    assert blocks((0, MOST_UNROLLED + 1), 1) == 3
    assert blocks((0, 1), 9) == 3
    assert blocks((0, 2), 9) == 5
