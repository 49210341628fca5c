"""Both ways to compute the error function in f32 are accurate, on any number of lanes."""

from __future__ import annotations

from dataclasses import replace

import llvmlite.ir as ll
import numpy as np
import pytest
import scipy.special as special

from tests.backends.llvm.math.measuring import samples, ulps
from tests.backends.llvm.running import of_memory
from trivium.backends.cpu.target import host
from trivium.backends.llvm.code import F32, Code
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.math.short_error import erf
from trivium.backends.llvm.memory import load_vector, store_vector
from trivium.backends.llvm.numbers import i64

WAYS = [way for way in (False, True) if not way or host().looks_up]


def computed(x: np.ndarray, lanes: int, looks_up: bool) -> np.ndarray:
    """Returns erf(x), in place of a copy of x."""
    vector = ll.VectorType(F32, lanes) if lanes > 1 else F32

    def emit(code: Code, pointer: ll.Value) -> None:
        code.target = replace(code.target, looks_up=looks_up)
        with counted(code, 0, x.size, lanes) as loop:
            place = code.builder.gep(pointer, [i64(loop.index)], source_etype=F32)
            if lanes == 1:
                code.builder.store(erf(code, code.builder.load(place, typ=F32)), place)
            else:
                store_vector(code, erf(code, load_vector(code, place, vector)), place)

    result = x.copy()
    of_memory(emit)(result.ctypes.data)
    return result


@pytest.mark.parametrize("looks_up", WAYS)
def test_accuracy(looks_up: bool) -> None:
    x = samples(500_000)
    x = np.concatenate([x, np.arange(5000, dtype=np.float32) / 1024])
    x = x[~np.isnan(x)]
    x = x[: x.size // 16 * 16]
    exact, got = special.erf(x.astype(np.float64)), computed(x, 16, looks_up)
    assert ulps(got, exact).max() <= 1.9
    assert np.abs(got).max() == 1
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))


@pytest.mark.parametrize("looks_up", WAYS)
def test_lanes_do_not_matter(looks_up: bool) -> None:
    special_numbers = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, -1e-40, 4.05]
    x = np.concatenate([special_numbers, np.random.default_rng(0).normal(0, 2, 120)]).astype(np.float32)
    expected = computed(x, 16, looks_up)
    np.testing.assert_array_equal(expected[:5], np.array([np.nan, 1, -1, 0, 0], np.float32))
    for lanes in (1, 2, 4, 8, 32, 64):
        np.testing.assert_array_equal(computed(x, lanes, looks_up).view(np.int32), expected.view(np.int32))
