"""Elements of vectors are sorted in registers, for all numbers of lanes and vectors."""

from __future__ import annotations

import itertools

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.running import of_memory
from trivium.backends.llvm import memory
from trivium.backends.llvm.code import I64, Code
from trivium.backends.llvm.network import sorted_vectors


@pytest.mark.parametrize(
    ("bits", "lanes", "count"), [(32, 2, 2), (64, 2, 8), (32, 4, 2), (32, 8, 8), (64, 8, 4), (32, 16, 16)]
)
def test_zeros_and_ones_are_sorted(bits: int, lanes: int, count: int) -> None:
    """A network that sorts all rows of zeros and ones sorts everything."""
    type_, size = ll.IntType(bits), lanes * count
    vector = ll.VectorType(type_, lanes)

    def emit(code: Code, pointer: ll.Value) -> None:
        places = [code.builder.gep(pointer, [I64(n * lanes)], source_etype=type_) for n in range(count)]
        found = sorted_vectors(code, [memory.load_vector(code, place, vector) for place in places])
        for place, value in zip(places, found, strict=True):
            memory.store_vector(code, value, place)

    call = of_memory(emit)
    if size <= 8:
        rows = [np.array(row, f"i{bits // 8}") for row in itertools.product((0, 1), repeat=size)]
    else:
        random = np.random.default_rng(0)
        rows = [random.permutation(np.arange(size) >= ones).astype(f"i{bits // 8}") for ones in range(size + 1)] * 5
        rows.append(random.integers(-(1 << 31), 1 << 31, size).astype(f"i{bits // 8}"))
    for row in rows:
        expected = np.sort(row)
        call(row.ctypes.data)
        np.testing.assert_array_equal(row, expected)
