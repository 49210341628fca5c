"""Padded windows: in the interior nothing is checked, and the result is the same everywhere."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.backends.harness import load, run
from trivium.backends.cpu.schedule import choose
from trivium.backends.cpu.target import level
from trivium.backends.llvm.interior import Interior, interior
from trivium.compiler.kernel import Kernel, KernelBuilder, Register, expression
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.index import variable
from trivium.compiler.kernel.structure import Loop, walk


def within(b: KernelBuilder, position: Register, extent: int) -> Register:
    return b.apply("and", b.compare("GE", position, 0), b.compare("LT", position, extent))


def pool(rows: int, columns: int, window: int, stride: int, low: int, high: int) -> Kernel:
    """Returns sums of windows over two dimensions, with `low` and `high` elements of padding at the ends."""
    b = KernelBuilder("pool")
    counts = [(extent + low + high - window) // stride + 1 for extent in (rows, columns)]
    x, y = b.input("x", "f32", (rows, columns)), b.output("y", "f32", tuple(counts))
    with b.parallel(*counts) as (i, j):
        with b.reduction(window, window, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
            places = [
                expression([(out, stride), (inner, 1)], -low) for out, inner in zip((i, j), loop.indices, strict=True)
            ]
            inside = [within(b, b.position(p), extent) for p, extent in zip(places, (rows, columns), strict=True)]
            with b.if_(b.apply("and", *inside)) as branch:
                branch.yield_(b.load(x, *places))
            with branch.otherwise():
                branch.yield_(b.constant(0.0, "f32"))
            loop.yield_(branch.results[0])
        b.store(y, loop.result, i, j)
    return b.build()


def expected(x: np.ndarray, window: int, stride: int, low: int, high: int) -> np.ndarray:
    widths = [(max(low, 0), max(high, 0))] * 2
    padded = np.pad(x, widths)[max(-low, 0) :, max(-low, 0) :]
    padded = padded[: padded.shape[0] - max(-high, 0), : padded.shape[1] - max(-high, 0)]
    return np.lib.stride_tricks.sliding_window_view(padded, (window, window))[::stride, ::stride].sum((2, 3))


PADDINGS = [(0, 0), (1, 1), (0, 2), (2, 0), (3, 1), (-1, 1), (1, -2), (-1, -1), (9, 9)]


@pytest.mark.parametrize(("low", "high"), PADDINGS)
def test_windows_of_all_paddings(low: int, high: int) -> None:
    for columns, window, stride in [*product((7, 33, 70), (3,), (1, 2)), (20, 1, 1), (40, 2, 3)]:
        x = np.random.default_rng(columns).standard_normal((11, columns)).astype(np.float32)
        got = run(pool(11, columns, window, stride, low, high), x)
        np.testing.assert_allclose(got, expected(x, window, stride, low, high), rtol=1e-5, atol=1e-5)


def found(kernel: Kernel, dimension: int = 1) -> Interior | None:
    (loop,) = (loop for loop in walk(kernel.body) if isinstance(loop, Loop) and loop.kind == "parallel")
    schedule, analysis = choose(kernel, level("x86-64-v3")), Analysis(kernel)
    extent = loop.extents[dimension]
    assert isinstance(extent, int)
    known = set(loop.indices) - {loop.indices[dimension]}
    return interior(loop.body, loop.indices[dimension], extent, schedule, analysis, known)


def test_the_interior_of_a_pool() -> None:
    kernel = pool(112, 112, 3, 2, 1, 1)
    inside = found(kernel)
    assert inside is not None
    assert (inside.begin, inside.end, len(inside.guards), len(inside.around)) == (1, 56, 2, 2)
    (loop,) = (loop for loop in walk(kernel.body) if isinstance(loop, Loop) and loop.kind == "parallel")
    row = variable(loop.indices[0])
    assert set(inside.margins) == {row * 2 - 1, row * -2 + 110}


def test_what_has_no_interior() -> None:
    assert found(pool(112, 5, 5, 1, 2, 2)) is None, "it would be a fifth of the row"
    b = KernelBuilder("triangle")
    x, y = b.input("x", "f32", (40, 40)), b.output("y", "f32", (40, 40))
    with b.parallel(40, 40) as (i, j):
        with b.if_(b.compare("GE", i, j)) as branch:
            branch.yield_(b.load(x, i, j))
        with branch.otherwise():
            branch.yield_(b.constant(0.0, "f32"))
        b.store(y, branch.results[0], i, j)
    kernel = b.build()
    assert found(kernel) is None, "the check depends on both indices"
    x_array = np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32)
    np.testing.assert_array_equal(run(kernel, x_array), np.tril(x_array))


def test_the_interior_has_no_masks() -> None:
    text = load(pool(34, 130, 3, 1, 1, 1), threads=1).stage("llvm")  # type: ignore[attr-defined]
    loads = [line for line in text.splitlines() if "load" in line and " x float>" in line and "@" not in line]
    assert loads, "whole vectors are loaded"
