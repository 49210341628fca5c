"""The CPU's schedules for a kernel's loops, and code planned for one processor computing the same on another."""

from __future__ import annotations

import numpy as np
import pytest

from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.forms import prepared
from trivium.backends.cpu.schedule import choose
from trivium.backends.cpu.target import LEVELS, emulated, host, level
from trivium.compiler.kernel import Kernel, KernelBuilder, expression
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.ir.errors import Error
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

pytestmark = pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="the levels are those of x86-64")

PROGRAM = """
func.func @main(%x: tensor<37x50xf32>) -> tensor<37x50xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.exponential %x : tensor<37x50xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<37x50xf32>, tensor<f32>) -> tensor<37xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<37xf32>) -> tensor<37x50xf32>
  %result = stablehlo.divide %e, %sums : tensor<37x50xf32>
  return %result : tensor<37x50xf32>
}
"""
"""A softmax, whose rows end within a vector."""


def scaled() -> Kernel:
    b = KernelBuilder("scaled")
    x, y = b.input("x", "f32", (4, 8)), b.output("y", "f32", (4, 8))
    with b.parallel(4, 8) as (i, j):
        b.store(y, b.multiply(b.load(x, i, j), 2.0), i, j)
    return b.build()


def large(extent: int) -> Kernel:
    b = KernelBuilder("large")
    x, y = b.input("x", "f32", (extent, 7)), b.output("y", "f32", (7, extent))
    with b.parallel(extent, 7) as (i, j):
        b.store(y, b.apply("tanh", b.load(x, i, j)), j, i)
    return b.build()


def loops(kernel: Kernel, name: str, threads: int = 1) -> list[str]:
    """Returns the schedule's lines, one for each loop."""
    return str(choose(kernel, level(name).with_threads(threads))).splitlines()[1:-1]


@pytest.mark.parametrize(("name", "lanes"), [("x86-64-v2", 4), ("x86-64-v3", 8), ("x86-64-v4", 16)])
def test_dimensions_are_merged_and_run_in_the_lanes_of_the_target(name: str, lanes: int) -> None:
    assert loops(scaled(), name) == [f"  parallel 1x32 lanes(1)={lanes}"]


@pytest.mark.parametrize(("name", "lanes"), [("x86-64-v3", 8), ("x86-64-v4", 16)])
def test_integers_that_only_decide_do_not_narrow_the_vectors(name: str, lanes: int) -> None:
    b = KernelBuilder("masked")
    x, m, y = b.input("x", "f32", (64,)), b.input("m", "i64", (64,)), b.output("y", "f32", (64,))
    with b.parallel(64) as (i,):
        b.store(y, b.apply("select", b.compare("LT", b.load(m, i), 3), b.load(x, i), 0.0), i)
    assert loops(b.build(), name) == [f"  parallel 64 lanes(0)={lanes}"]


@pytest.mark.parametrize(("name", "lanes"), [("x86-64-v3", 4), ("x86-64-v4", 8)])
def test_wide_integers_that_are_stored_fill_the_vectors(name: str, lanes: int) -> None:
    b = KernelBuilder("converted")
    x, y = b.input("x", "f32", (64,)), b.output("y", "i64", (64,))
    with b.parallel(64) as (i,):
        b.store(y, b.convert(b.load(x, i), "i64"), i)
    assert loops(b.build(), name) == [f"  parallel 64 lanes(0)={lanes}"]


@pytest.mark.parametrize(("name", "lanes"), [("x86-64-v3", 32), ("x86-64-v4", 64)])
def test_long_chains_run_several_vectors_at_once(name: str, lanes: int) -> None:
    b = KernelBuilder("chain")
    x, y = b.input("x", "f32", (640,)), b.output("y", "f32", (640,))
    with b.parallel(640) as (i,):
        b.store(y, b.apply("tanh", b.load(x, i)), i)
    assert loops(b.build(), name) == [f"  parallel 640 lanes(0)={lanes}"]


@pytest.mark.parametrize(("inputs", "lanes"), [(4, 16), (7, 16), (8, 8)])
def test_two_vectors_may_hold_more_than_the_registers(inputs: int, lanes: int) -> None:
    b = KernelBuilder("held")
    arrays, y = [b.input(f"x{n}", "f32", (640,)) for n in range(inputs)], b.output("y", "f32", (640,))
    with b.parallel(640) as (i,):
        first, *others = [b.load(x, i) for x in arrays]
        total = b.apply("tanh", first)
        for other in others:
            total = b.apply("add", total, other)
        b.store(y, total, i)
    assert loops(b.build(), "x86-64-v3") == [f"  parallel 640 lanes(0)={lanes}"]


def test_a_loop_of_few_vectors_is_not_filled_up() -> None:
    b = KernelBuilder("short")
    x, y = b.input("x", "f32", (80,)), b.output("y", "f32", (80,))
    with b.parallel(80) as (i,):
        b.store(y, b.apply("tanh", b.load(x, i)), i)
    assert loops(b.build(), "x86-64-v4") == ["  parallel 80 lanes(0)=16"]


def test_a_column_reduction_runs_its_columns_in_lanes() -> None:
    b = KernelBuilder("columns")
    x, y = b.input("x", "f32", (50, 256)), b.output("y", "f32", (256,))
    with b.parallel(256) as (j,):
        with b.reduction(50, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
            loop.yield_(b.load(x, loop.index, j))
        b.store(y, loop.result, j)
    kernel = b.build()
    assert loops(kernel, "x86-64-v4") == ["  parallel 256 lanes(0)=128", "  reduction 50"]
    assert loops(kernel, "x86-64-v4", threads=2) == ["  parallel 256 lanes(0)=64", "  reduction 50"]


def windows(rows: int, columns: int, size: int, stride: int = 1) -> Kernel:
    b = KernelBuilder("windows")
    x = b.input("x", "f32", ((rows - 1) * stride + size, (columns - 1) * stride + size))
    y = b.output("y", "f32", (rows, columns))
    with b.parallel(rows, columns) as (i, j):
        with b.reduction(size, size, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
            k, m = loop.indices
            loop.yield_(b.load(x, expression([(i, stride), (k, 1)]), expression([(j, stride), (m, 1)])))
        b.store(y, loop.result, i, j)
    return b.build()


@pytest.mark.parametrize(
    ("name", "rows", "columns", "tiles"),
    [
        ("x86-64-v4", 56, 56, "registers(0)=4 lanes(1)=32"),
        ("x86-64-v4", 14, 14, "registers(0)=7 lanes(1)=16"),
        ("x86-64-v4", 9, 64, "registers(0)=3 lanes(1)=32"),
        ("x86-64-v3", 56, 56, "registers(0)=4 lanes(1)=16"),
    ],
)
def test_neighbouring_windows_run_in_tiles_of_about_equal_size(name: str, rows: int, columns: int, tiles: str) -> None:
    assert loops(windows(rows, columns, 3), name) == [f"  parallel {rows}x{columns} {tiles}", "  reduction 3x3"]


def test_windows_that_hardly_overlap_do_not_run_in_tiles() -> None:
    assert loops(windows(56, 56, 3, stride=2), "x86-64-v4")[0] == "  parallel 56x56 lanes(1)=16"


def test_large_windows_are_not_written_out() -> None:
    assert loops(windows(56, 56, 14), "x86-64-v4")[0] == "  parallel 56x56 registers(0)=4 lanes(1)=32"
    assert loops(windows(56, 56, 15), "x86-64-v4")[0] == "  parallel 56x56 lanes(1)=16"


def test_threads_share_whole_tiles() -> None:
    (line, _) = loops(windows(1000, 560, 5), "x86-64-v4", threads=2)
    assert line.startswith("  parallel 1000x560 threads(0)=")
    assert line.endswith(" registers(0)=4 lanes(1)=32")


def rows(count: int, length: int) -> Kernel:
    """Returns each row, divided by its sum."""
    b = KernelBuilder("rows")
    x, y = b.input("x", "f32", (count, length)), b.output("y", "f32", (count, length))
    with b.parallel(count) as (i,):
        with b.reduction(length, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
            loop.yield_(b.load(x, i, loop.index))
        with b.parallel(length) as (j,):
            b.store(y, b.divide(b.load(x, i, j), loop.result), i, j)
    return b.build()


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4"])
def test_short_rows_are_written_out(name: str) -> None:
    kernel, _, schedule = prepared(rows(1000, 3), level(name))
    (loop,) = schedule.loops
    assert loop.extents == (1000,)
    assert schedule.loops[loop].lanes % (level(name).vector_bytes // 4) == 0
    assert loop in kernel.body.instructions


def test_long_rows_and_single_ones_are_not() -> None:
    for kernel in (rows(1000, 200), rows(1, 3)):
        assert prepared(kernel, level("x86-64-v4"))[0] is kernel


def sums(rows: int, columns: int, terms: int) -> Kernel:
    """Returns sums along the middle dimension."""
    b = KernelBuilder("sums")
    x, y = b.input("x", "f32", (rows, terms, columns)), b.output("y", "f32", (rows, columns))
    with b.parallel(rows, columns) as (i, j):
        with b.reduction(terms, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
            loop.yield_(b.load(x, i, loop.index, j))
        b.store(y, loop.result, i, j)
    return b.build()


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4"])
def test_rows_that_fill_vectors_are_not_written_out(name: str) -> None:
    assert "rows" not in loops(sums(64, 64, 64), name)[0]


def test_small_work_is_not_threaded() -> None:
    assert loops(scaled(), "x86-64-v4", threads=8) == loops(scaled(), "x86-64-v4")


def test_large_work_is_split_over_threads_in_pieces_that_are_worth_it() -> None:
    (line,) = loops(large(100), "x86-64-v3", threads=8)
    assert "threads" not in line
    (line,) = loops(large(1000), "x86-64-v3", threads=8)
    assert line == "  parallel 1000x7 threads(0)=272 squares(1)=8 lanes(0)=8 brief"
    (line,) = loops(large(100_000), "x86-64-v3", threads=2)
    assert line == "  parallel 100000x7 threads(0)=6256 squares(1)=8 lanes(0)=8"


@pytest.mark.parametrize("name", LEVELS)
def test_a_program_planned_for_another_processor(name: str) -> None:
    module = parse(PROGRAM)
    target = emulated(name).with_threads(2)
    executable = CpuExecutable(assemble_program(lower(optimize(module), target), target))
    x = np.random.default_rng(0).uniform(-1, 1, (37, 50)).astype(np.float32)
    (result,), (wanted,) = executable.execute(x), evaluate(module, x)
    np.testing.assert_allclose(result, wanted, rtol=1e-5)


def test_an_unknown_processor_is_refused() -> None:
    with pytest.raises(Error, match="unknown target 'pentium', expected one of x86-64-v2"):
        level("pentium")
