"""Arrays that are read across their rows: squares are transposed in registers, and every element arrives."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.harness import run
from trivium.backends.cpu.forms import prepared
from trivium.backends.cpu.schedule import choose
from trivium.backends.cpu.target import level
from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.kernel.index import constant, variable
from trivium.compiler.kernel.structure import Loop, walk
from trivium.compiler.schedule import LoopSchedule


def turning(shape: tuple[int, ...], dtype: str = "f32", both: bool = False) -> Kernel:
    """Returns the transpose of the last two dimensions, negated; or the sum of that and an array that is not turned."""
    b = KernelBuilder("turning")
    *batch, rows, columns = shape
    x = b.input("x", dtype, shape)
    z = b.input("z", dtype, (*batch, columns, rows)) if both else None
    y = b.output("y", dtype, (*batch, columns, rows))
    with b.parallel(*batch, columns, rows) as (*outer, j, i):
        value = b.apply("negate", b.load(x, *outer, i, j))
        b.store(y, b.add(value, b.load(z, *outer, j, i)) if z is not None else value, *outer, j, i)
    return b.build()


def scheduled(kernel: Kernel, name: str, loop: Loop | None = None) -> LoopSchedule:
    """Returns the schedule of a kernel's loop, by default the first one."""
    schedule = choose(kernel, level(name))
    return schedule.loops[loop or next(i for i in walk(kernel.body) if isinstance(i, Loop))]


SHAPES = [(16, 16), (40, 33), (17, 100), (72, 50), (3, 20, 24), (2, 5, 8, 31)]


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_element_arrives(shape: tuple[int, ...], both: bool) -> None:
    for dtype, kind in (("f32", np.float32), ("f64", np.float64), ("i8", np.int8), ("i16", np.int16)):
        x = np.random.default_rng(1).integers(-99, 99, shape).astype(kind)
        z = np.random.default_rng(2).integers(-9, 9, x.swapaxes(-1, -2).shape).astype(kind)
        got = run(turning(shape, dtype, both), x, *([z] if both else []))
        np.testing.assert_array_equal(got, (-x).swapaxes(-1, -2) + (z if both else 0))


@pytest.mark.parametrize("shape", SHAPES)
def test_booleans_are_bytes_that_are_not_zero(shape: tuple[int, ...]) -> None:
    b = KernelBuilder("booleans")
    *batch, rows, columns = shape
    x, y = b.input("x", "i1", shape), b.output("y", "i1", (*batch, columns, rows))
    with b.parallel(*batch, columns, rows) as (*outer, j, i):
        b.store(y, b.load(x, *outer, i, j), *outer, j, i)
    kernel, given = b.build(), np.random.default_rng(4).integers(0, 3, shape).astype(np.uint8).view(bool)
    np.testing.assert_array_equal(run(kernel, given).view(np.uint8), given.view(np.uint8).swapaxes(-1, -2) != 0)


@pytest.mark.parametrize("backwards", [(True, False), (False, True), (True, True)], ids=["rows", "columns", "both"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_and_columns_are_read_backwards(shape: tuple[int, ...], backwards: tuple[bool, bool]) -> None:
    """As by a rotation."""
    b = KernelBuilder("rotation")
    *batch, rows, columns = shape
    x, y = b.input("x", "f32", shape), b.output("y", "f32", (*batch, columns, rows))
    with b.parallel(*batch, columns, rows) as (*outer, j, i):
        sides = zip((rows, columns), (i, j), backwards, strict=True)
        place = [constant(extent - 1) - variable(at) if turn else variable(at) for extent, at, turn in sides]
        b.store(y, b.load(x, *outer, *place), *outer, j, i)
    kernel, given = b.build(), np.random.default_rng(5).normal(size=shape).astype(np.float32)
    assert scheduled(kernel, "x86-64-v4").turned is not None
    axes = [axis for axis, turn in zip((-2, -1), backwards, strict=True) if turn]
    np.testing.assert_array_equal(run(kernel, given), np.flip(given, axes).swapaxes(-1, -2))


def test_the_schedule_has_squares() -> None:
    assert str(scheduled(turning((64, 64)), "x86-64-v4")) == "64x64 squares(0)=16 lanes(1)=16"
    assert str(scheduled(turning((64, 64)), "x86-64-v3")) == "64x64 squares(0)=8 lanes(1)=8"
    for dtype in ("i8", "i4"):
        assert str(scheduled(turning((64, 64), dtype), "x86-64-v4")) == "64x64 squares(0)=16 lanes(1)=16"
    assert scheduled(turning((64, 2)), "x86-64-v4").turned is None  # a square would be nearly empty


@pytest.mark.parametrize("shape", SHAPES)
def test_complex_numbers_are_elements_of_squares(shape: tuple[int, ...]) -> None:
    b = KernelBuilder("numbers")
    *batch, rows, columns = shape
    x, y = b.input("x", "f32", (*shape, 2)), b.output("y", "f32", (*batch, columns, rows, 2))
    with b.parallel(*batch, columns, rows) as (*outer, j, i):
        for part in (0, 1):
            b.store(y, b.load(x, *outer, i, j, part), *outer, j, i, part)
    kernel, numbers = b.build(), np.random.default_rng(3).normal(size=(*shape, 2)).astype(np.float32)
    _, _, schedule = prepared(kernel, level("x86-64-v4"))
    assert any(loop.turned is not None for loop in schedule.loops.values())
    np.testing.assert_array_equal(run(kernel, numbers), numbers.swapaxes(-2, -3))
