"""Schedules as data: mappings, merged dimensions, and which blocks can run in lanes."""

from __future__ import annotations

import pytest

from tests.compiler.kernel.kernels import scaled
from trivium.compiler.kernel import Kernel, KernelBuilder, Loop, expression, walk
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.schedule import LoopSchedule, Mapping, Schedule, Unit, fits_lanes, merged_extents, serial


def loop_of(kernel: Kernel) -> Loop:
    return next(i for i in walk(kernel.body) if isinstance(i, Loop))


def copy(shape: tuple[int, ...], transposed: bool = False) -> Kernel:
    b = KernelBuilder("copy")
    x, y = b.input("x", "f32", shape), b.output("y", "f32", shape[::-1] if transposed else shape)
    with b.parallel(*shape) as indices:
        b.store(y, b.load(x, *indices), *(indices[::-1] if transposed else indices))
    return b.build()


@pytest.mark.parametrize(
    ("shape", "transposed", "expected"),
    [((4, 8), False, (1, 32)), ((4, 8), True, (4, 8)), ((2, 3, 4), False, (1, 1, 24)), ((4, 1, 8), False, (1, 1, 32))],
)
def test_neighbours_merge_where_every_access_allows_it(
    shape: tuple[int, ...], transposed: bool, expected: tuple[int, ...]
) -> None:
    kernel = copy(shape, transposed)
    assert merged_extents(loop_of(kernel), Analysis(kernel)) == expected


def test_dimensions_that_are_numbers_do_not_merge() -> None:
    b = KernelBuilder("iota")
    y = b.output("y", "i64", (4, 8))
    with b.parallel(4, 8) as (i, j):
        b.store(y, j, i, j)
    kernel = b.build()
    assert merged_extents(loop_of(kernel), Analysis(kernel)) == (4, 8)


def test_mappings_of_a_loop() -> None:
    lanes, threads = Mapping(Unit.LANES, (1,), 8), Mapping(Unit.THREADS, (0,), 2)
    schedule = LoopSchedule((4, 8), (threads, lanes))
    assert (schedule.vector, schedule.lanes, schedule.static_extents) == (1, 8, (4, 8))
    assert schedule.mapping(Unit.THREADS) is threads
    assert schedule.mapping(Unit.GRID) is None
    assert str(schedule) == "4x8 threads(0)=2 lanes(1)=8"
    plain = LoopSchedule((4,))
    assert (plain.vector, plain.lanes) == (None, 1)


def test_extents_of_run_time_are_not_static() -> None:
    b = KernelBuilder("dynamic")
    n = b.load(b.input("n", "i64", ()))
    schedule = LoopSchedule((n, 8))
    assert schedule.static_extents is None
    assert str(schedule) == "?x8"


def test_a_serial_schedule_maps_nothing() -> None:
    kernel = scaled()
    schedule = serial(kernel.body, Analysis(kernel))
    assert [str(each) for each in schedule.loops.values()] == ["1x32"]
    assert str(Schedule(schedule.loops, 7.0)) == "schedule (cost 7) {\n  parallel 1x32\n}"


def test_whiles_scratch_and_uneven_loops_do_not_fit_lanes() -> None:
    b = KernelBuilder("lanes")
    x, y = b.input("x", "i64", (8,)), b.output("y", "i64", (8,))
    with b.parallel(8) as (i,):
        with b.sequential(b.load(x, expression([(i, 1)])), inits=[b.index(0)]) as loop:
            loop.yield_(b.add(loop.carried[0], 3))
        b.store(y, loop.result, i)
    kernel = b.build()
    outer = loop_of(kernel)
    assert not fits_lanes(outer.body, outer.indices, Analysis(kernel))
    plain = scaled()
    assert fits_lanes(loop_of(plain).body, loop_of(plain).indices, Analysis(plain))
    b = KernelBuilder("scratch")
    with b.parallel(8) as (i,):
        b.scratch("f32", (4,))
    kernel = b.build()
    assert not fits_lanes(loop_of(kernel).body, loop_of(kernel).indices, Analysis(kernel))
