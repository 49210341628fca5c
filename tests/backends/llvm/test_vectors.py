"""Vectors of one type: addresses in elements, masks of lanes, gathers."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.running import of_memory
from trivium.backends.cpu.target import host
from trivium.backends.llvm.code import F32, F64, I64, Code
from trivium.backends.llvm.numbers import Int
from trivium.backends.llvm.vectors import Vectors

LANES = 4


def run(emit: Callable[[Vectors, ll.Value], None], array: np.ndarray, element: ll.Type = F32) -> list[float]:
    """Returns the result of `emit` on an array."""

    def body(code: Code, pointer: ll.Value) -> None:
        emit(Vectors(code.builder, host(), element, LANES), pointer)

    array = array.copy()
    of_memory(body)(array.ctypes.data)
    return array.tolist()


@pytest.mark.parametrize(("element", "dtype"), [(F32, np.float32), (F64, np.float64)])
def test_loads_and_stores_at_offsets(element: ll.Type, dtype: type) -> None:
    def emit(e: Vectors, pointer: ll.Value) -> None:
        assert e.at(pointer, 0) is pointer
        e.store(e.load(e.at(pointer, 2)), e.at(pointer, Int(e, I64(6))))

    assert run(emit, np.arange(10, dtype=dtype), element) == [0, 1, 2, 3, 4, 5, 2, 3, 4, 5]


def test_masks_of_leading_lanes() -> None:
    def emit(e: Vectors, pointer: ll.Value) -> None:
        for row, count in enumerate((-1, 0, 3, Int(e, I64(2)), 9)):
            place = e.at(pointer, LANES * row)
            e.store(e.broadcast(pointer), place, e.lanes_below(count))

    active = [[0] * 4, [0] * 4, [1, 1, 1, 0], [1, 1, 0, 0], [1] * 4]
    array = np.array([5.0, *[0.0] * 19], np.float32)
    assert np.reshape(run(emit, array), (5, 4))[1:].tolist() == [[5.0 * lane for lane in row] for row in active[1:]]


def test_gathers_leave_out_what_the_mask_does() -> None:
    def emit(e: Vectors, pointer: ll.Value) -> None:
        offsets = e.spread(1) * 2
        e.store(e.gather(pointer, offsets, e.lanes_below(3)), pointer)

    assert run(emit, np.arange(7, dtype=np.float32))[:4] == [2, 4, 6, 0]


def test_conjunctions_of_masks() -> None:
    def emit(e: Vectors, pointer: ll.Value) -> None:
        first, everywhere = e.lanes_below(2), e.builder.icmp_signed("<", I64(1), I64(2))
        assert e.conjunction(None, None) is None
        assert e.conjunction(first, None) is first
        assert e.conjunction(None, first) is first
        e.store(e.zero, pointer, e.conjunction(first, everywhere))

    assert run(emit, np.ones(4, np.float32)) == [0, 0, 1, 1]
