"""Integers are sorted by vectors, in rows of all lengths and orders, without a write beyond them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.running import compiled
from trivium.backends.cpu.target import emulated, host
from trivium.backends.llvm.code import I1, I64, POINTER
from trivium.backends.llvm.key_sort import key_sort

pytestmark = pytest.mark.skipif(not host().sorts_keys, reason="this processor has no instructions for it")

LEVELS = [level for level in ("x86-64-v3", "x86-64-v4") if emulated(level).vector_bytes <= host().vector_bytes]
LENGTHS = [*range(1, 70), *range(70, 700, 23), *(power + d for power in (256, 512, 1024, 2048) for d in (-1, 0, 1))]


@cache
def sort_of(bits: int, level: str) -> Callable[[np.ndarray, bool], np.ndarray]:
    """Returns a function that sorts a copy of an array, from one piece of memory to another if that is wanted."""
    target, module = emulated(level), ll.Module("test")
    test = ll.Function(module, ll.FunctionType(ll.VoidType(), [POINTER, POINTER, I64, I1]), "test")
    builder = ll.IRBuilder(test.append_basic_block("entry"))
    builder.call(key_sort(module, bits, target), [*test.args, I1(0)])
    builder.ret_void()
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool)
    call = compiled(module, kind, target)

    def run(row: np.ndarray, away: bool) -> np.ndarray:
        keys, spare = (np.full(len(row) + 32, 77, row.dtype) for _ in range(2))
        keys[16:-16] = row
        call(keys[16:].ctypes.data, spare[16:].ctypes.data, len(row), away)
        for memory in (keys, spare):
            assert (np.concatenate([memory[:16], memory[-16:]]) == 77).all()
        return (spare if away else keys)[16:-16]

    return run


def rows(count: int, bits: int) -> list[np.ndarray]:
    random, places = np.random.default_rng(count), np.arange(count)
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    found = [
        random.integers(least, most, count, np.int64, endpoint=True),
        np.full(count, most),
        places,
        places[::-1],
        np.minimum(places, places[::-1]),
        random.integers(0, 3, count),
        np.where(places % 2, most, least),
        np.where(random.random(count) < 0.02, random.integers(0, 1 << 30, count), most),
        1 << (places % (bits - 1)),
    ]
    return [np.asarray(row).astype(f"i{bits // 8}") for row in found]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("bits", [32, 64])
def test_every_length_and_order(bits: int, level: str) -> None:
    for count in LENGTHS:
        for number, row in enumerate(rows(count, bits)):
            np.testing.assert_array_equal(sort_of(bits, level)(row, number % 2 == 1), np.sort(row))
            np.testing.assert_array_equal(sort_of(bits, level)(row, number % 2 == 0), np.sort(row))


@pytest.mark.parametrize("level", LEVELS)
def test_rows_whose_medians_split_badly(level: str) -> None:
    """Most keys are equal, and the others grow by powers of two: each split but the first is at the middle of the
    range."""
    count = 20_000
    row = np.zeros(count, np.int64)
    row[:: count // 62][:62] = 1 << np.arange(62)
    np.testing.assert_array_equal(sort_of(64, level)(row, False), np.sort(row))
