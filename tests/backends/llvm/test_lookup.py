"""Lanes select numbers of a table by the low bits of integers."""

from __future__ import annotations

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.running import of_memory
from trivium.backends.cpu.target import host
from trivium.backends.llvm import lookup
from trivium.backends.llvm.code import F32, I32, Code
from trivium.backends.llvm.memory import load_vector, store_vector

SIZES = [size for size in (lookup.SHORT, lookup.SIZE) if size <= host().looks_up]
"""Those of the tables that this processor has an instruction for."""


def table(size: int) -> list[float]:
    return [float(number) for number in np.float32(1.5) * np.arange(-5, size - 5)]


@pytest.mark.parametrize("lanes", [1, 2, 8, 16, 64])
@pytest.mark.parametrize("size", SIZES)
def test_every_number_of_lanes(size: int, lanes: int) -> None:
    def emit(code: Code, pointer: ll.Value) -> None:
        index = load_vector(code, pointer, ll.VectorType(I32, lanes))
        (found,) = lookup.rows(code, [table(size)], index)
        store_vector(code, code.bits(found, I32), pointer)

    indices = np.random.default_rng(0).integers(-1000, 1000, lanes).astype(np.int32)
    expected = np.array(table(size), np.float32)[indices % size]
    of_memory(emit)(indices.ctypes.data)
    np.testing.assert_array_equal(indices.view(np.float32), expected)


@pytest.mark.parametrize("size", SIZES)
def test_a_single_number(size: int) -> None:
    def emit(code: Code, pointer: ll.Value) -> None:
        (found,) = lookup.rows(code, [table(size)], code.builder.load(pointer, typ=I32))
        assert found.type == F32
        code.builder.store(found, pointer)

    number = np.array([18], np.int32)
    of_memory(emit)(number.ctypes.data)
    assert number.view(np.float32)[0] == table(size)[2]
