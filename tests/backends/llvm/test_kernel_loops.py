"""Loops on the CPU, in lanes, with tails, masks and threads, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.harness import CLIENT, program_of, run
from trivium.compiler.kernel import KernelBuilder, expression

EXTENTS = [1, 2, 3, 7, 16, 17, 31, 64, 65, 130, 1000]


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "i1", "bf16"])
def test_every_length_of_a_vector_loop(extent: int, dtype: str) -> None:
    b = KernelBuilder("copy")
    x, y = b.input("x", dtype, (extent,)), b.output("y", dtype, (extent + 1,))
    with b.parallel(1):
        with b.parallel(extent) as (i,):
            b.store(y, b.load(x, i), b.add(i, 1))
        b.store(y, b.load(x, 0), 0)
    from trivium.compiler.kernel import numpy_dtype

    a = (f32(extent) > 0).astype(numpy_dtype(dtype)) if dtype == "i1" else (f32(extent) * 50).astype(numpy_dtype(dtype))
    np.testing.assert_array_equal(run(b.build(), a), np.concatenate([a[:1], a]))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1), (0, 2, 1)])
@pytest.mark.parametrize("shape", [(3, 5, 7), (16, 4, 33), (1, 20, 1)])
def test_transposition(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    b = KernelBuilder("transpose")
    x, y = b.input("x", "f32", shape), b.output("y", "f32", tuple(shape[d] for d in order))
    with b.parallel(*y.shape) as indices:
        source = [indices[order.index(d)] for d in range(3)]
        b.store(y, b.load(x, *source), *indices)
    a = f32(*shape)
    np.testing.assert_array_equal(run(b.build(), a), a.transpose(order))


def test_reversal_and_strides() -> None:
    b = KernelBuilder("reverse")
    x, y = b.input("x", "f32", (100,)), b.output("y", "f32", (50,))
    with b.parallel(50) as (i,):
        from_end, every_second = expression([(i, -1)], 99), expression([(i, 2)])
        b.store(y, b.add(b.load(x, from_end), b.load(x, every_second)), i)
    a = f32(100)
    np.testing.assert_array_equal(run(b.build(), a), a[::-1][:50] + a[::2])


def test_views() -> None:
    b = KernelBuilder("view")
    x = b.input("x", "f32", (4, 3), strides=(1, 5), offset=2)
    y = b.output("y", "f32", (4, 3))
    with b.parallel(4, 3) as (i, j):
        b.store(y, b.load(x, i, j), i, j)
    kernel = b.build()

    program = program_of(kernel)
    program.inputs[0].shape = (20,)
    a = f32(20)
    (result,) = CLIENT.load_program(program).execute(a)
    np.testing.assert_array_equal(result, np.lib.stride_tricks.as_strided(a[2:], (4, 3), (4, 20)))


@pytest.mark.parametrize("shape", [(4, 9), (3, 64), (2, 100)])
def test_softmax_in_one_kernel(shape: tuple[int, int]) -> None:
    b = KernelBuilder("softmax")
    rows, columns = shape
    x, y = b.input("x", "f32", shape), b.output("y", "f32", shape)
    with b.parallel(rows) as (i,):
        with b.reduction(columns, inits=[b.constant(-np.inf, "f32")], combiner="maximum") as largest:
            largest.yield_(b.load(x, i, largest.index))
        scratch = b.scratch("f32", (columns,))
        with b.reduction(columns, inits=[b.constant(0.0, "f32")], combiner="add") as total:
            power = b.apply("exponential", b.subtract(b.load(x, i, total.index), largest.result))
            b.store(scratch, power, total.index)
            total.yield_(power)
        with b.parallel(columns) as (j,):
            b.store(y, b.divide(b.load(scratch, j), total.result), i, j)
    a = f32(*shape)
    powers = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
    np.testing.assert_allclose(run(b.build(), a), powers / powers.sum(1, keepdims=True), rtol=3e-6)


def test_sequential_loops_carry_values() -> None:
    b = KernelBuilder("cumsum")
    x, y = b.input("x", "f32", (5, 30)), b.output("y", "f32", (5, 30))
    with b.parallel(30) as (j,), b.sequential(5, inits=[b.constant(0.0, "f32")]) as loop:
        total = b.add(loop.carried[0], b.load(x, loop.index, j))
        b.store(y, total, loop.index, j)
        loop.yield_(total)
    a = f32(5, 30)
    np.testing.assert_allclose(run(b.build(), a), a.cumsum(0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("extent", [0, 1, 15, 16, 100])
def test_extents_known_at_run_time(extent: int) -> None:
    b = KernelBuilder("dynamic")
    x, n, y = b.input("x", "f32", (100,)), b.input("n", "i64", (1,)), b.output("y", "f32", (101,))
    count = b.load(n, 0)
    with b.parallel(1):
        with b.parallel(101) as (i,):
            b.store(y, -1.0, i)
        with b.parallel(count) as (i,):
            b.store(y, b.load(x, i), i)
        with b.reduction(count, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
            loop.yield_(b.load(x, loop.index))
        b.store(y, loop.result, 100)
    a = f32(100)
    got = run(b.build(), a, np.array([extent]))
    np.testing.assert_array_equal(got[:100], np.where(np.arange(100) < extent, a, -1))
    np.testing.assert_allclose(got[100], a[:extent].sum(), atol=1e-5)


@pytest.mark.parametrize("width", [3, 16, 37, 64, 130, 1000])
def test_a_branch_that_all_lanes_take_or_none(width: int) -> None:
    b = KernelBuilder("branch")
    x, at, y = b.input("x", "f32", (20, width)), b.input("at", "i64", (20,)), b.output("y", "f32", (9, width))
    with b.parallel(1):
        sums = b.scratch("f32", (9, width))
        with b.parallel(9, width) as (i, j):
            b.store(sums, 0.0, i, j)
        with b.sequential(20) as rows:
            place = b.load(at, rows.index)
            with b.parallel(width) as (j,):
                inside = b.apply("and", b.compare("GE", place, 0), b.compare("LT", place, 9))
                with b.if_(inside):
                    product = b.multiply(b.load(x, rows.index, j), b.load(x, rows.index, 0))
                    b.update([(sums, (place, j))], [product], "add")
        with b.parallel(9, width) as (i, j):
            b.store(y, b.load(sums, i, j), i, j)
    a, places = f32(20, width), np.random.default_rng(0).integers(-4, 13, 20)
    expected = np.zeros((9, width), np.float32)
    for row, place in zip(a, places, strict=True):
        if 0 <= place < 9:
            expected[place] += row * row[0]
    np.testing.assert_array_equal(run(b.build(), a, places), expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(300, 1000), (2, 150_001), (300_001,)])
def test_threads_cover_every_iteration(shape: tuple[int, ...], threads: int) -> None:
    b = KernelBuilder("big")
    x, y = b.input("x", "f32", shape), b.output("y", "f32", shape)
    scale = b.load(x, *([0] * len(shape)))
    with b.parallel(*shape) as indices:
        b.store(y, b.apply("tanh", b.multiply(b.load(x, *indices), scale)), *indices)
    a = f32(*shape)
    np.testing.assert_allclose(run(b.build(), a, threads=threads), np.tanh(a * a.flat[0]), rtol=1e-5, atol=1e-7)


def test_threaded_rows_with_reductions() -> None:
    b = KernelBuilder("normalize")
    x, y = b.input("x", "f32", (20, 30, 700)), b.output("y", "f32", (20, 30, 700))
    with b.parallel(20, 30) as (i, j):
        with b.reduction(700, inits=[b.constant(0.0, "f32")], combiner="add") as total:
            total.yield_(b.load(x, i, j, total.index))
        with b.parallel(700) as (k,):
            b.store(y, b.subtract(b.load(x, i, j, k), b.divide(total.result, 700.0)), i, j, k)
    a = f32(20, 30, 700)
    np.testing.assert_allclose(run(b.build(), a), a - a.mean(-1, keepdims=True), atol=1e-5)


def test_empty_loops() -> None:
    b = KernelBuilder("empty")
    x, y = b.input("x", "f32", (0, 4)), b.output("y", "f32", (4,))
    with b.parallel(4) as (j,):
        with b.reduction(0, inits=[b.constant(3.0, "f32")], combiner="add") as loop:
            loop.yield_(b.load(x, loop.index, j))
        b.store(y, loop.result, j)
    np.testing.assert_array_equal(run(b.build(), np.empty((0, 4), np.float32)), [3, 3, 3, 3])


def test_wrapping_index_arithmetic_on_data() -> None:
    b = KernelBuilder("wrap")
    x, y = b.input("x", "i64", (20,)), b.output("y", "i64", (20,))
    with b.parallel(20) as (i,):
        value = b.load(x, i)
        scaled = b.multiply(b.multiply(value, 2**40), 2**30)
        b.store(y, b.add(b.add(scaled, value), 2**62), i)
    a = np.arange(20) * 123456789
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run(b.build(), a), a * 2**40 * 2**30 + a + 2**62)
