"""Kernels' values, addresses and branches in vector lanes: conditions become masks, irregular accesses become gathers,
and inactive lanes access no memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.harness import load, run
from trivium.compiler.kernel import KernelBuilder, expression


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("extent", [5, 16, 50])
def test_padding_becomes_a_masked_load(extent: int) -> None:
    b = KernelBuilder("pad")
    x, y = b.input("x", "f32", (extent,)), b.output("y", "f32", (extent + 5,))
    with b.parallel(extent + 5) as (i,):
        position = expression([(i, 1)], -2)
        inside = b.apply("and", b.compare("GE", position, 0), b.compare("LT", position, extent))
        with b.if_(inside) as branch:
            branch.yield_(b.load(x, position))
        with branch.otherwise():
            branch.yield_(b.constant(9.0, "f32"))
        b.store(y, branch.results[0], i)
    a = f32(extent)
    np.testing.assert_array_equal(run(b.build(), a), np.pad(a, (2, 3), constant_values=9))


def test_a_uniform_branch_in_a_vector_loop() -> None:
    b = KernelBuilder("branch")
    x, flags, y = b.input("x", "f32", (4, 40)), b.input("flags", "i1", (4,)), b.output("y", "f32", (4, 40))
    with b.parallel(4, 40) as (i, j):
        with b.if_(b.load(flags, i)) as branch:
            branch.yield_(b.multiply(b.load(x, i, j), 2.0))
        with branch.otherwise():
            branch.yield_(b.constant(-1.0, "f32"))
        b.store(y, branch.results[0], i, j)
    a, chosen = f32(4, 40), np.array([True, False, False, True])
    np.testing.assert_array_equal(run(b.build(), a, chosen), np.where(chosen[:, None], a * 2, -1))


def test_masked_stores() -> None:
    b = KernelBuilder("some")
    x, y = b.input("x", "i32", (45,)), b.output("y", "i32", (45,))
    with b.parallel(45) as (i,):
        value = b.load(x, i)
        b.store(y, 0, i)
        with b.if_(b.compare("GT", value, 5)):
            b.store(y, value, i)
    a = np.arange(45, dtype=np.int32) % 11
    np.testing.assert_array_equal(run(b.build(), a), np.where(a > 5, a, 0))


def test_gather_and_scatter() -> None:
    b = KernelBuilder("permute")
    x, order, y = b.input("x", "f32", (60, 3)), b.input("order", "i32", (60,)), b.output("y", "f32", (60, 3))
    with b.parallel(60, 3) as (i, j):
        row = b.convert(b.load(order, i), "i64")
        b.store(y, b.load(x, row, j), i, j)
    a, permutation = f32(60, 3), np.random.default_rng(0).permutation(60).astype(np.int32)
    np.testing.assert_array_equal(run(b.build(), a, permutation), a[permutation])

    b = KernelBuilder("scatter")
    x, order, y = b.input("x", "f32", (60,)), b.input("order", "i64", (60,)), b.output("y", "f32", (60,))
    with b.parallel(60) as (i,):
        b.store(y, b.load(x, i), b.load(order, i))
    expected = np.empty(60, np.float32)
    expected[permutation] = a[:, 0]
    np.testing.assert_array_equal(run(b.build(), a[:, 0].copy(), permutation.astype(np.int64)), expected)


def test_indices_as_numbers() -> None:
    b = KernelBuilder("iota")
    y = b.output("y", "f32", (6, 20))
    with b.parallel(6, 20) as (i, j):
        quotient, rest = b.divide(expression([(i, 20), (j, 1)]), 7), b.remainder(j, 3)
        b.store(y, b.convert(b.add(b.multiply(quotient, 100), rest), "f32"), i, j)
    flat = np.arange(120).reshape(6, 20)
    np.testing.assert_array_equal(run(b.build()), flat // 7 * 100 + flat % 20 % 3)


def test_while_searches() -> None:
    """Binary search: the first position whose element is not below the searched one."""
    b = KernelBuilder("search")
    table, wanted, y = b.input("table", "f32", (50,)), b.input("wanted", "f32", (33,)), b.output("y", "i64", (33,))
    with b.parallel(33) as (i,):
        key = b.load(wanted, i)
        with b.while_(b.index(0), b.index(50)) as search:
            low, high = search.carried
            search.condition(b.compare("LT", low, high))
            middle = b.divide(b.add(low, high), 2)
            below = b.compare("LT", b.load(table, middle), key)
            search.yield_(b.select(below, b.add(middle, 1), low), b.select(below, high, middle))
        b.store(y, search.results[0], i)
    values, keys = np.sort(f32(50)), f32(33, seed=1)
    np.testing.assert_array_equal(run(b.build(), values, keys), np.searchsorted(values, keys))


def test_branches_within_branches() -> None:
    """Each lane takes its own branch; the values that both branches yield may be the same in all lanes."""
    b = KernelBuilder("nested")
    x, y = b.input("x", "f32", (45,)), b.output("y", "f32", (45,))
    with b.parallel(45) as (i,):
        value = b.load(x, i)
        with b.if_(b.compare("GT", value, 0.0)) as outer:
            with b.if_(b.compare("GT", value, 1.0)) as inner:
                inner.yield_(b.multiply(value, 10.0))
            with inner.otherwise():
                inner.yield_(b.constant(7.0, "f32"))
            outer.yield_(inner.results[0])
        with outer.otherwise():
            outer.yield_(b.constant(-1.0, "f32"))
        b.store(y, outer.results[0], i)
    a = f32(45)
    wanted = np.where(a > 0, np.where(a > 1, a * np.float32(10), np.float32(7)), np.float32(-1))
    np.testing.assert_array_equal(run(b.build(), a), wanted)


@pytest.mark.parametrize("far", [1 << 40, -(1 << 40)])
def test_lanes_that_are_off_read_and_write_nothing(far: int) -> None:
    """Their indices lead to addresses that are not mapped."""
    b = KernelBuilder("guarded")
    x, places, y = b.input("x", "f32", (50,)), b.input("places", "i64", (50,)), b.output("y", "f32", (50,))
    with b.parallel(50) as (i,):
        b.store(y, -1.0, i)
        place = b.load(places, i)
        inside = b.apply("and", b.compare("GE", place, 0), b.compare("LT", place, 50))
        with b.if_(inside):
            b.store(y, b.load(x, place), place)
    a = f32(50)
    order = np.arange(50)
    order[::3] = far
    wanted = np.where(order == np.arange(50), a, np.float32(-1))
    np.testing.assert_array_equal(run(b.build(), a, order), wanted)


def test_the_ends_of_rows_are_not_passed() -> None:
    """In a vector that extends beyond the last element, lanes beyond it neither read nor write."""
    b = KernelBuilder("ends")
    x, y = b.input("x", "f32", (3, 21)), b.output("y", "f32", (3, 21))
    with b.parallel(3, 21) as (i, j):
        b.store(y, b.multiply(b.load(x, i, b.subtract(20, j)), 2.0), i, j)
    a = f32(3, 21)
    executable = load(b.build())
    memory = np.full((5, 21), np.float32(np.nan))
    memory[1:4] = a
    out = np.full((5, 21), np.float32(-7))
    executable.execute_at([memory[1:].ctypes.data, out[1:].ctypes.data])
    np.testing.assert_array_equal(out[1:4], 2 * a[:, ::-1])
    assert (out[[0, 4]] == -7).all()


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 64, 1000])
def test_positions_are_divided_as_whole_numbers(divisor: int) -> None:
    """Also in lanes, which a quotient and a remainder share."""
    b = KernelBuilder("division")
    y = b.output("y", "i64", (7, 50))
    with b.parallel(7, 50) as (i, j):
        flat = expression([(i, 50), (j, 1)])
        b.store(y, b.add(b.multiply(b.divide(flat, divisor), 5000), b.remainder(flat, divisor)), i, j)
    flat = np.arange(350).reshape(7, 50)
    np.testing.assert_array_equal(run(b.build()), flat // divisor * 5000 + flat % divisor)


def test_updates_combine_with_what_is_there() -> None:
    """In order, if several iterations update one element."""
    b = KernelBuilder("histogram")
    x, y = b.input("x", "i32", (200,)), b.output("y", "i32", (5,))
    with b.parallel(1):
        counts = b.scratch("i32", (5,))
        with b.sequential(5) as loop:
            b.store(counts, 100, loop.index)
        with b.sequential(200) as loop:
            place = b.convert(b.load(x, loop.index), "i64")
            b.update([(counts, [place])], [b.constant(1, "i32")], "add")
        with b.sequential(5) as loop:
            b.store(y, b.load(counts, loop.index), loop.index)
    a = np.random.default_rng(0).integers(0, 5, 200).astype(np.int32)
    np.testing.assert_array_equal(run(b.build(), a), 100 + np.bincount(a, minlength=5))


def test_kernels_take_pointers_and_return_nothing() -> None:
    b = KernelBuilder("plain")
    x, y = b.input("x", "f32", (4,)), b.output("y", "f32", (4,))
    with b.parallel(4) as (i,):
        b.store(y, b.load(x, i), i)
    text = load(b.build()).stage("llvm")
    (line,) = (line for line in text.splitlines() if line.startswith("define") and "plain" in line)
    assert line.startswith("define internal void")
    assert line.count("ptr") == 3  # the params and the workspace
    assert "nounwind" in line


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 2), (1, 2, 3, 4), (0, 1, 2, 2)])
def test_stores_of_neighbours(order: tuple[int, ...]) -> None:
    """They become stores of vectors if they write all neighbours, in order."""
    b = KernelBuilder("neighbours")
    x, y = b.input("x", "f32", (5, 40)), b.output("y", "f32", (40 * 4 + 1,))
    with b.parallel(40) as (i,):
        values = [b.load(x, n, i) for n in range(len(order))]
        for value, place in zip(values, order, strict=True):
            b.store(y, value, expression([(i, 4)], place))
    a = f32(5, 40)
    found = run(b.build(), a)
    for place, n in {place: n for n, place in enumerate(order)}.items():
        np.testing.assert_array_equal(found[place : place + 160 : 4], a[n])
