"""Kernels of rows compute the same with several rows side by side, and others stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.backends.harness import load
from trivium.backends.cpu.forms import prepared
from trivium.backends.cpu.target import level
from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.kernel.interpreter import garbage, run
from trivium.compiler.kernel.side_by_side import EXTREMES, REGISTERS, SUMS, side_by_side
from trivium.compiler.kernel.structure import Load, Loop, walk

CACHED = 1 << 20


def norm(shape: tuple[int, ...], *, extremes: bool = False, stored: bool = False, dtype: str = "f32") -> Kernel:
    """Two reductions of each row, the second of what follows the first, then a loop that reads both, and weights."""
    b = KernelBuilder("norm")
    *points, row = shape
    x, w, y = b.input("x", dtype, shape), b.input("w", dtype, (row,)), b.output("y", dtype, shape)
    m = b.output("m", dtype, tuple(points))
    with b.parallel(*points) as outer:
        kept = b.scratch(dtype, (row,)) if stored else None
        first = b.reduction(row, inits=[b.constant(-3, dtype)], combiner="maximum" if extremes else "add")
        with first:
            first.yield_(b.load(x, *outer, *first.indices))
        if kept is not None:
            with b.parallel(row) as (j,):
                b.store(kept, b.subtract(b.load(x, *outer, j), first.results[0]), j)
        second = b.reduction(row, inits=[b.constant(2, dtype)], combiner="add")
        with second:
            (j,) = second.indices
            apart = b.load(kept, j) if kept else b.subtract(b.load(x, *outer, j), first.results[0])
            second.yield_(b.multiply(apart, b.load(w, j)))
        b.store(m, first.results[0], *outer)
        with b.parallel(row) as (j,):
            b.store(y, b.add(b.multiply(second.results[0], b.load(w, j)), b.load(x, *outer, j)), *outer, j)
    return b.build()


def _trips(kernel: Kernel) -> int:
    loop = next(i for i in kernel.body.instructions if isinstance(i, Loop))
    return int(np.prod([int(extent) for extent in loop.extents]))  # type: ignore[arg-type]


def results(kernel: Kernel, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns what the interpreter computes."""
    outputs = [p for p in kernel.params if p.mode == "out"]
    memory = [garbage(p.size, inputs[0].dtype) for p in outputs]
    run(kernel, [*(array.reshape(-1) for array in inputs), *memory], False)
    return [array.reshape(p.shape) for array, p in zip(memory, outputs, strict=True)]


@pytest.mark.parametrize("shape", [(16, 64), (4, 7), (2, 9, 33), (3, 8, 100), (6, 40), (8, 3, 5)])
@pytest.mark.parametrize("extremes", [False, True])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32"])
def test_the_same_is_computed(shape: tuple[int, ...], extremes: bool, stored: bool, dtype: str) -> None:
    kernel = norm(shape, extremes=extremes, stored=stored, dtype=dtype)
    jammed = side_by_side(kernel, REGISTERS, CACHED)
    assert jammed is not None
    jammed.verify()
    assert jammed.params == kernel.params
    rng = np.random.default_rng(0)
    kind = {"f32": np.float32, "f64": np.float64, "i32": np.int32}[dtype]
    inputs = [rng.integers(-9, 9, p.shape).astype(kind) for p in kernel.params if p.mode == "in"]
    expected = results(kernel, inputs)
    compiled = [load(each, threads=threads).execute(*inputs) for each in (kernel, jammed) for threads in (1, 2)]
    for found in (results(jammed, inputs), *compiled):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("shape", "extremes", "registers", "expected"),
    [
        ((16, 64), False, 32, SUMS),
        ((16, 64), False, 16, SUMS),
        ((16, 64), True, 32, EXTREMES),
        ((16, 64), True, 16, EXTREMES),
        ((16, 1000), True, 32, EXTREMES),
        ((16, 1000), True, 16, None),
        ((16, 1000), False, 32, SUMS),
        ((16, 1100), False, 32, None),  # four rows are larger than what stays in the first-level cache
        ((1024, 768), False, 32, None),  # larger than a core's own caches
        ((8192, 64), False, 32, EXTREMES),
        ((17, 64), False, 32, None),
        ((18, 64), False, 32, SUMS // 2),
        ((18, 64), True, 32, EXTREMES),
        ((17, 8, 64), False, 32, SUMS),
        ((8, 17, 64), False, 32, SUMS),
    ],
)
def test_how_many_rows(shape: tuple[int, ...], extremes: bool, registers: int, expected: int | None) -> None:
    kernel = norm(shape, extremes=extremes)
    jammed = side_by_side(kernel, registers, CACHED)
    assert (None if jammed is None else _trips(kernel) // _trips(jammed)) == expected


def test_threads_have_enough_rows() -> None:
    kernel = norm((32, 64))
    assert side_by_side(kernel, REGISTERS, CACHED, 8) is not None
    assert side_by_side(kernel, REGISTERS, CACHED, 9) is None


def test_what_all_rows_need_is_loaded_once() -> None:
    kernel = norm((16, 64))
    jammed = side_by_side(kernel, REGISTERS, CACHED)
    assert jammed is not None
    weights = [
        [i for i in walk(each.body) if isinstance(i, Load) and i.buffer.name == "w"] for each in (kernel, jammed)
    ]
    assert len(weights[0]) == len(weights[1]) == 2


def one_sum() -> Kernel:
    b = KernelBuilder("sums")
    x, y = b.input("x", "f32", (16, 64)), b.output("y", "f32", (16,))
    with b.parallel(16) as (i,):
        total = b.reduction(64, inits=[b.constant(0.0, "f32")], combiner="add")
        with total:
            total.yield_(b.load(x, i, *total.indices))
        b.store(y, total.results[0], i)
    return b.build()


def test_rows_that_wait_for_nothing_stay() -> None:
    assert side_by_side(one_sum(), REGISTERS, CACHED) is None


def test_the_cpu_computes_rows_side_by_side() -> None:
    kernel = norm((16, 64))
    chosen, _, schedule = prepared(kernel, level("x86-64-v4"))
    assert _trips(kernel) // _trips(chosen) == SUMS
    outer, *inner = schedule.loops.values()
    assert outer.vector is None
    assert all(each.vector is not None for each in inner)
    short = norm((16, 3))
    assert _trips(prepared(short, level("x86-64-v4"))[0]) == _trips(short)
