"""Loads and stores of vectors at every kind of address touch the requested elements, and no others."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from itertools import product

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.running import of_memory
from trivium.backends.cpu.target import emulated
from trivium.backends.llvm import memory
from trivium.backends.llvm.code import F32, I1, I64, Code, literal
from trivium.backends.llvm.memory import Address
from trivium.backends.llvm.numbers import Int
from trivium.compiler.kernel.dtypes import numpy_dtype

GUARD = 64


def masks(lanes: int) -> list[int | None]:
    """The number of leading active lanes; None: all, without a mask."""
    return [None, *range(1, lanes + 1)]


def steps(lanes: int, step: int = 1) -> tuple[int, ...]:
    return tuple(lane * step for lane in range(lanes))


def moved(emit_load: bool, offsets: tuple[int, ...], active: int | None, scattered: bool = False) -> np.ndarray:
    """Copies elements at `offsets` to adjacent ones, or the reverse; returns the target."""
    lanes = len(offsets)
    mask = None if active is None else memory.leading_mask(lanes, active)

    def emit(code: Code, pointer: ll.Value) -> None:
        target = code.builder.gep(pointer, [I64(4 * GUARD)], source_etype=F32)
        more = memory.lane_literal(steps(lanes, 3)) if scattered else None
        apart, dense = (offsets, more), (steps(lanes), None)
        pairs = (pointer, apart if emit_load else dense), (target, dense if emit_load else apart)
        source, there = (Address(where, "f32", I64(GUARD), *places) for where, places in pairs)
        memory.store(code, there, memory.load(code, source, lanes, mask), lanes, mask)

    array = np.arange(8 * GUARD, dtype=np.float32)
    array[4 * GUARD :] = -1
    of_memory(emit)(array.ctypes.data)
    np.testing.assert_array_equal(array[: 4 * GUARD], np.arange(4 * GUARD))
    return array[4 * GUARD :]


PATTERNS: dict[str, Callable[[int], int]] = {
    **{f"steps of {step}": lambda lane, step=step: lane * step for step in (0, 1, -1, 2, 3, 4, -2, -4)},
    "pairs": lambda lane: lane // 2,
    "pairs from the second on": lambda lane: (lane + 1) // 2,
    "fours": lambda lane: lane // 4,
    "thirds": lambda lane: (2 * lane + 1) // 3,
    "repeated": lambda lane: lane % 2,
    "two groups": lambda lane: lane % 2 + lane // 2 % 2 * 26,
    "swapped": lambda lane: lane ^ 1,
    "swapped, from the last on": lambda lane: -(lane ^ 1),
}
"""Where elements are, in lanes."""


@pytest.mark.parametrize("pattern", PATTERNS)
def test_loads(pattern: str) -> None:
    for lanes, active in ((width, active) for width in (2, 4, 8) for active in masks(width)):
        offsets = tuple(map(PATTERNS[pattern], range(lanes)))
        got = moved(True, offsets, active)
        count = lanes if active is None else active
        wanted = np.full(4 * GUARD, -1, np.float32)
        wanted[GUARD : GUARD + count] = GUARD + np.array(offsets[:count])
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("at_end", [False, True])
def test_loads_touch_nothing_before_the_first_and_after_the_last_element(pattern: str, at_end: bool) -> None:
    """The elements of the active lanes are the first, or the last, ones between two pages that must not be read."""
    page = mmap.PAGESIZE // 4
    area = mmap.mmap(-1, 3 * mmap.PAGESIZE)
    memory_of = np.frombuffer(area, np.float32)
    memory_of[page : 2 * page] = np.arange(page)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for number in (0, 2):
        assert not protect(ctypes.c_void_p(memory_of.ctypes.data + number * mmap.PAGESIZE), mmap.PAGESIZE, 0)
    for lanes, active in ((width, active) for width in (2, 8, 16) for active in masks(width)):
        offsets = tuple(map(PATTERNS[pattern], range(lanes)))
        seen = offsets[:active]
        base = 2 * page - 1 - max(seen) if at_end else page - min(seen)
        mask = None if active is None else memory.leading_mask(lanes, active)

        def emit(code: Code, pointer: ll.Value) -> None:
            source = Address(pointer, "f32", I64(base), offsets)  # noqa: B023
            target = Address(pointer, "f32", I64(page + page // 2), steps(lanes))  # noqa: B023
            memory.store(code, target, memory.load(code, source, lanes, mask), lanes, mask)  # noqa: B023

        of_memory(emit)(memory_of.ctypes.data)
        middle = memory_of[page + page // 2 :][: len(seen)]
        np.testing.assert_array_equal(middle, base - page + np.array(seen))
        memory_of[page : 2 * page] = np.arange(page)


@pytest.mark.parametrize("step", [1, -1, 2, 3])
def test_stores(step: int) -> None:
    for lanes, active in product((2, 8), (None, 1, 2)):
        got = moved(False, steps(lanes, step), active)
        count = lanes if active is None else active
        wanted = np.full(4 * GUARD, -1, np.float32)
        wanted[GUARD + step * np.arange(count)] = GUARD + np.arange(count)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("wide", "dtype"), [(32, np.int8), (32, np.int16), (64, np.int32)])
def test_one_lane_of_truncated_numbers_is_one_element(wide: int, dtype: type) -> None:
    """LLVM joins the truncation and the store, and then writes the bytes of the wide number."""
    narrow = 8 * np.dtype(dtype).itemsize
    for lanes, active in product((2, 4, 8, 16), (1, 2)):

        def emit(code: Code, pointer: ll.Value) -> None:
            source = Address(pointer, f"i{wide}", I64(0), steps(lanes))  # noqa: B023
            numbers = memory.load(code, source, lanes, None)  # noqa: B023
            cut = code.builder.trunc(numbers, ll.VectorType(ll.IntType(narrow), lanes))  # noqa: B023
            target = code.builder.gep(pointer, [I64(256)], source_etype=ll.IntType(8))
            memory.store_vector(code, cut, target, memory.leading_mask(lanes, active))  # noqa: B023

        array = np.full(512, 0x55, np.uint8)
        numbers = np.arange(1, lanes + 1) * 0x0102
        array[: lanes * wide // 8] = numbers.astype(f"i{wide // 8}").view(np.uint8)
        of_memory(emit)(array.ctypes.data)
        stored = array[256:].view(dtype)
        np.testing.assert_array_equal(stored[:active], numbers[:active].astype(dtype))
        assert (stored[active:] == stored[-1]).all()


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["i8", "i16", "f32", "f64"])
def test_lanes_under_a_mask_that_is_computed(dtype: str, name: str) -> None:
    lanes, type_ = 16, memory.memory_type(dtype)

    def emit(code: Code, pointer: ll.Value, count: Int) -> None:
        value = memory.load_vector(code, pointer, ll.VectorType(type_, lanes))
        target = code.builder.gep(pointer, [I64(lanes)], source_etype=type_)
        mask = code.builder.icmp_signed("<", memory.lane_numbers(lanes), code.splat(count.value, lanes))
        memory.store_vector(code, value, target, mask)

    run = of_memory(emit, 1, emulated(name))
    for active in range(lanes + 1):
        array = np.concatenate([np.arange(1, lanes + 1), np.full(lanes, -1)]).astype(numpy_dtype(dtype))
        run(array.ctypes.data, active)
        assert array[lanes:].tolist() == [*range(1, active + 1), *[-1] * (lanes - active)]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 8, 9, 12, 16])
@pytest.mark.parametrize("lanes", [2, 4, 16, 64])
def test_interleaved_loads(count: int, lanes: int) -> None:
    def emit(code: Code, pointer: ll.Value) -> None:
        source = Address(pointer, "f32", I64(1), steps(lanes, count))
        for row, value in enumerate(memory.load_interleaved(code, source, count, lanes)):
            target = Address(pointer, "f32", I64((count + row) * lanes + 1), steps(lanes))
            memory.store(code, target, value, lanes, None)

    array = np.arange(2 * count * lanes + 1, dtype=np.float32)
    wanted = array.copy()
    wanted[count * lanes + 1 :] = array[1 : count * lanes + 1].reshape(lanes, count).T.ravel()
    of_memory(emit)(array.ctypes.data)
    np.testing.assert_array_equal(array, wanted)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 8, 9, 12, 16])
@pytest.mark.parametrize("lanes", [2, 4, 16, 64])
def test_interleaved_stores(count: int, lanes: int) -> None:
    def emit(code: Code, pointer: ll.Value) -> None:
        rows = [Address(pointer, "f32", I64(row * lanes), steps(lanes)) for row in range(count)]
        values = [memory.load(code, row, lanes, None) for row in rows]
        target = Address(pointer, "f32", I64(count * lanes + 1), steps(lanes, count))
        memory.store_interleaved(code, target, values, lanes)

    array = np.arange(2 * count * lanes + 2, dtype=np.float32)
    wanted = array.copy()
    wanted[count * lanes + 1 : -1] = array[: count * lanes].reshape(count, lanes).T.ravel()
    of_memory(emit)(array.ctypes.data)
    np.testing.assert_array_equal(array, wanted)


@pytest.mark.parametrize("active", [None, 3, 8])
def test_scattered_offsets_add_to_the_step(active: int | None) -> None:
    got = moved(True, steps(8), active, scattered=True)
    count = 8 if active is None else active
    np.testing.assert_array_equal(got[GUARD : GUARD + count], GUARD + 4 * np.arange(count))


def test_lanes_that_a_mask_leaves_out_are_taken_from_elsewhere_or_zero() -> None:
    def emit(code: Code, pointer: ll.Value) -> None:
        vector, mask = ll.VectorType(F32, 4), memory.leading_mask(4, 2)
        zeros = memory.load_vector(code, pointer, vector, mask)
        sevens = memory.load_vector(code, pointer, vector, mask, literal(vector, 7.0))
        for position, value in ((4, zeros), (8, sevens)):
            memory.store_vector(code, value, code.builder.gep(pointer, [I64(position)], source_etype=F32))

    array = np.arange(1, 13, dtype=np.float32)
    of_memory(emit)(array.ctypes.data)
    assert array[4:].tolist() == [1, 2, 0, 0, 1, 2, 7, 7]


def test_no_lane_touches_memory_where_none_is_active() -> None:
    """One element for all lanes, at an address that is not mapped."""

    def emit(code: Code, pointer: ll.Value) -> None:
        nowhere = Address(pointer, "f32", I64(1 << 40), steps(4, 0))
        off = literal(ll.VectorType(I1, 4), 0)
        value = code.splat(memory.load(code, nowhere, 4, off), 4)
        memory.store(code, Address(pointer, "f32", I64(1 << 40), steps(4)), value, 4, off)

    of_memory(emit)(np.zeros(4, np.float32).ctypes.data)
