"""Kernels of rows compute the same with several rows side by side, and others stay as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import matmul
from tests.backends.harness import load
from trivium.backends.cpu.emit import emit_kernel
from trivium.backends.cpu.forms import prepared
from trivium.backends.cpu.target import level
from trivium.backends.llvm.workspace import WorkspaceSize
from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.kernel.interpreter import garbage, run
from trivium.compiler.kernel.side_by_side import EXTREMES, REGISTERS, STREAMS, SUMS, side_by_side
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


def _rows(jammed: Kernel) -> int:
    """Returns how many rows are side by side: each sum has as many results."""
    return max(len(i.results) for i in walk(jammed.body) if isinstance(i, Loop) and i.kind == "reduction")


def results(kernel: Kernel, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns what the interpreter computes."""
    outputs = [p for p in kernel.params if p.mode == "out"]
    memory = [garbage(p.size, inputs[0].dtype) for p in outputs]
    run(kernel, [*(array.reshape(-1) for array in inputs), *memory], False)
    return [array.reshape(p.shape) for array, p in zip(memory, outputs, strict=True)]


@pytest.mark.parametrize("shape", [(16, 64), (4, 7), (2, 9, 33), (3, 8, 100), (6, 40), (8, 3, 5), (7, 20), (41, 9)])
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
        ((17, 64), False, 32, SUMS),
        ((18, 64), True, 32, EXTREMES),
        ((3, 64), False, 32, EXTREMES),
        ((1, 64), False, 32, None),
        ((17, 8, 64), False, 32, SUMS),
        ((8, 17, 64), False, 32, SUMS),
    ],
)
def test_how_many_rows(shape: tuple[int, ...], extremes: bool, registers: int, expected: int | None) -> None:
    kernel = norm(shape, extremes=extremes)
    jammed = side_by_side(kernel, registers, CACHED)
    assert (None if jammed is None else _rows(jammed)) == expected


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


def test_long_rows_are_side_by_side_if_they_have_the_same_weights() -> None:
    def kernel(row: int) -> Kernel:
        b = KernelBuilder("scaled")
        x, y = b.input("x", "f32", (16, row)), b.output("y", "f32", (16, row))
        with b.parallel(16) as (i,):
            totals = [b.constant(0.0, "f32")]
            for _ in range(2):
                fold = b.reduction(row, inits=[totals[-1]], combiner="add")
                with fold:
                    fold.yield_(b.multiply(b.load(x, i, *fold.indices), totals[-1]))
                totals.append(fold.results[0])
            with b.parallel(row) as (j,):
                b.store(y, totals[-1], i, j)
        return b.build()

    assert side_by_side(kernel(256), REGISTERS, CACHED) is not None
    assert side_by_side(kernel(257), REGISTERS, CACHED) is None


def folded(rows: int, row: int, combiner: str = "add") -> Kernel:
    b = KernelBuilder("folded")
    x, y = b.input("x", "f32", (rows, row)), b.output("y", "f32", (rows,))
    with b.parallel(rows) as (i,):
        total = b.reduction(row, inits=[b.constant(0.0, "f32")], combiner=combiner)
        with total:
            total.yield_(b.load(x, i, *total.indices))
        b.store(y, total.results[0], i)
    return b.build()


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (folded(1024, 300), STREAMS),
        (folded(1025, 300, "maximum"), STREAMS // 2),
        (folded(3, 400_000), EXTREMES),
        (folded(16, 300), None),  # in a core's own caches
        (folded(1 << 14, 64), None),
    ],
)
def test_rows_from_memory_that_are_read_once(kernel: Kernel, expected: int | None) -> None:
    jammed = side_by_side(kernel, REGISTERS, CACHED)
    assert (None if jammed is None else _rows(jammed)) == expected


@pytest.mark.parametrize("rows", [8, 13, 29, 3])
@pytest.mark.parametrize("level_name", ["x86-64-v3", "x86-64-v4"])
def test_products_with_vectors(rows: int, level_name: str) -> None:
    """Each sum adds products that are not rounded before, those of rows that are left over, too."""
    rng = np.random.default_rng(rows)
    matrix = rng.standard_normal((rows, 200)).astype(np.float32)
    vector = rng.standard_normal((1, 200)).astype(np.float32)
    kernel = matmul(vector[None], matrix.T[None].copy(), ((0, 1, 2), (0, 2, 1), (0, 1, 2))).kernel
    target = level(level_name)
    chosen, analysis, schedule = prepared(kernel, target)
    assert _rows(chosen) == min(STREAMS, 1 << (rows.bit_length() - 1))
    chosen.verify()
    module = ll.Module()
    emit_kernel(module, "f", chosen, schedule, target, analysis, WorkspaceSize())
    sums, products = (len(re.findall(f" = {text}", str(module))) for text in (r'call .*@"llvm.fma', "fmul"))
    assert sums == products > 0  # the products themselves are not used
    (found,) = load(chosen, threads=2).execute(vector[None], matrix[None])
    exact = matrix.astype(np.float64) @ vector[0].astype(np.float64)
    np.testing.assert_allclose(found.reshape(-1), exact, rtol=1e-5, atol=1e-5)


def test_the_cpu_computes_rows_side_by_side() -> None:
    kernel = norm((16, 64))
    chosen, _, schedule = prepared(kernel, level("x86-64-v4"))
    assert _rows(chosen) == SUMS
    outer, *inner = schedule.loops.values()
    assert outer.vector is None
    assert all(each.vector is not None for each in inner)
    short = norm((16, 3))
    (loop,) = (i for i in prepared(short, level("x86-64-v4"))[0].body.instructions if isinstance(i, Loop))
    assert loop.extents == (16,)
