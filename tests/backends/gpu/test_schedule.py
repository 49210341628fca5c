"""Schedules for a grid, as people read them."""

from __future__ import annotations

from tests.backends.harness import elementwise
from trivium.backends.gpu.nvptx import target
from trivium.backends.gpu.schedule import Grid, choose, grid
from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.kernel.affine import Analysis

TARGET = target("sm_80")


def lines(kernel: Kernel) -> list[str]:
    return str(choose(kernel, TARGET, Analysis(kernel))).splitlines()[1:-1]


def test_a_thread_for_each_element() -> None:
    kernel = elementwise("negate", ["f32"], "f32", 1000)
    assert lines(kernel) == ["  parallel 1000 grid(0)=1 block(0)=256"]
    assert grid(kernel, choose(kernel, TARGET, Analysis(kernel))) == Grid(1000, 4, 256)


def test_one_thread_for_what_has_no_loop() -> None:
    b = KernelBuilder("next")
    x, y = b.input("x", "i32", ()), b.output("y", "i32", ())
    b.store(y, b.add(b.load(x), 1))
    kernel = b.build()
    assert lines(kernel) == []
    assert grid(kernel, choose(kernel, TARGET, Analysis(kernel))) == Grid(1, 1, 1)


def test_a_block_for_each_row() -> None:
    b = KernelBuilder("sums")
    x, y = b.input("x", "f32", (5, 7, 300)), b.output("y", "f32", (5, 7))
    with b.parallel(5, 7) as (i, j):
        with b.reduction(300, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
            loop.yield_(b.load(x, i, j, loop.index))
        b.store(y, loop.result, i, j)
    kernel = b.build()
    assert lines(kernel) == ["  parallel 1x35 grid(0, 1)=1", "  reduction 300 block(0)=64 lanes(0)=4"]
    assert grid(kernel, choose(kernel, TARGET, Analysis(kernel))) == Grid(35, 35, 64, shared=True)


def test_updates_of_one_element_are_atomic_or_its_owners() -> None:
    b = KernelBuilder("counts")
    places, y = b.input("at", "i64", (4, 500)), b.inout("y", "i32", (4, 9))
    with b.parallel(4, 500) as (i, j):
        b.update([(y, (i, b.load(places, i, j)))], [b.constant(1, "i32")], "add")
    assert lines(b.build()) == ["  parallel 4x500 grid(0, 1)=1 block(0, 1)=256 atomic(0, 1)=1"]
    b = KernelBuilder("products")
    places, y = b.input("at", "i64", (4, 500)), b.inout("y", "f32", (4, 9))
    with b.parallel(4, 500) as (i, j):
        b.update([(y, (i, b.load(places, i, j)))], [b.constant(2.0, "f32")], "multiply")
    assert lines(b.build()) == ["  parallel 4x500 grid(0)=1 block(0, 1)=32 owners(1)=8"]
