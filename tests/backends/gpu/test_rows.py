"""When a block's threads share rows: the schedules of reductions in all directions."""

from __future__ import annotations

import pytest

from trivium.backends.gpu.nvptx import target
from trivium.backends.gpu.schedule import choose, grid
from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.kernel.affine import Analysis

TARGET = target("sm_80")


def sums(rows: int, columns: int, axis: int) -> Kernel:
    """Returns the sums of a matrix along one axis, of `columns` elements each."""
    b = KernelBuilder("sums")
    x = b.input("x", "f32", (rows, columns) if axis else (columns, rows))
    y = b.output("y", "f32", (rows,))
    with b.parallel(rows) as (i,):
        with b.reduction(columns, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
            loop.yield_(b.load(x, i, loop.index) if axis else b.load(x, loop.index, i))
        b.store(y, loop.result, i)
    return b.build()


def launched(kernel: Kernel) -> tuple[bool, int, int]:
    found = grid(kernel, choose(kernel, TARGET, Analysis(kernel)))
    return found.shared, found.blocks, found.threads


@pytest.mark.parametrize(
    ("rows", "columns", "axis", "expected"),
    [
        (100, 20, 1, (False, 1, 128)),  # short rows
        (100, 100, 1, (True, 100, 32)),
        (4002, 100, 1, (True, 501, 256)),  # each warp has a row
        (4000, 20_000, 1, (True, 4000, 512)),
        (100, 5000, 1, (True, 100, 512)),
        (4000, 5000, 1, (True, 4000, 256)),
        (100_000, 1000, 1, (True, 100_000, 64)),  # neighbouring threads read neighbours
        (100_000, 1000, 0, (False, 391, 256)),  # they do in columns, one thread for each
        (100, 1000, 0, (True, 100, 128)),  # too few columns to keep a device busy
        (100, 10_000, 0, (True, 4 * 40, 256)),  # blocks share columns, which are beside one another
        (3000, 200, 0, (True, 94, 256)),
        (1, 10_000, 1, (True, 1, 512)),
        (1, 100_000, 1, (True, 7, 512)),  # blocks share the row
        (3, 100_000_000, 1, (True, 3 * 86, 512)),
    ],
)
def test_sums(rows: int, columns: int, axis: int, expected: tuple[bool, int, int]) -> None:
    assert launched(sums(rows, columns, axis)) == expected


def test_scratch_that_does_not_fit_stays_with_one_thread() -> None:
    for extent, shared in ((1000, True), (100_000, False)):
        b = KernelBuilder("reverse")
        x, y = b.input("x", "f32", (7, extent)), b.output("y", "f32", (7, extent))
        with b.parallel(7) as (i,):
            scratch = b.scratch("f32", (extent,))
            with b.parallel(extent) as (j,):
                b.store(scratch, b.load(x, i, j), j)
            with b.parallel(extent) as (j,):
                b.store(y, b.load(scratch, b.subtract(extent - 1, j)), i, j)
        assert launched(b.build())[0] is shared


def test_loops_in_order_stay_with_one_thread() -> None:
    b = KernelBuilder("running")
    x, y = b.input("x", "f32", (7, 500)), b.output("y", "f32", (7, 500))
    with b.parallel(7) as (i,), b.sequential(500, inits=[b.constant(0.0, "f32")]) as loop:
        total = b.add(loop.carried[0], b.load(x, i, loop.index))
        b.store(y, total, i, loop.index)
        loop.yield_(total)
    assert not launched(b.build())[0]
