"""Products whose lhs has its rows as neighbours in memory and its steps far apart: it is packed in tiles."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import Case, assert_close, matmul, normal
from trivium.backends.cpu.contraction.plan import Plan, plan
from trivium.backends.cpu.target import LEVELS, CpuTarget, emulated
from trivium.compiler.contraction.marked import Marked
from trivium.compiler.kernel.dtypes import numpy_dtype

PLAIN, TURNED = (0, 1, 2), (0, 2, 1)

SIZES = {(1, 300, 533, 9): 1, (2, 270, 600, 17): 4, (1, 301, 5, 257): 1, (1, 513, 70, 300): 4}
"""Batch, rows, columns and steps, with the number of threads: many panels and few steps, of which not all are copied
together; and many steps, in several blocks."""

MOST_DIFFERENCE = {np.float32: 1e-5, np.float64: 1e-13}


def small_caches(level: str) -> CpuTarget:
    """Returns a processor with caches for which all of these products are large."""
    return replace(emulated(level), cache_bytes=(4 << 10, 32 << 10))


def planned(case: Case, target: CpuTarget) -> Plan:
    contraction = case.kernel.contraction
    assert contraction is not None
    return plan(Marked(contraction).problem, np.dtype(numpy_dtype(contraction.accumulate)).itemsize, target)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products(dtype: type, level: str) -> None:
    target = small_caches(level)
    for (batch, m, n, k), threads in SIZES.items():
        lhs, rhs = normal(batch, m, k, dtype=dtype), normal(batch, k, n, dtype=dtype)
        case = matmul(lhs, rhs, (TURNED, PLAIN, PLAIN))
        assert planned(case, target.with_threads(threads)).tiling.lhs_in_tiles
        wanted = (lhs.astype(np.float64) @ rhs.astype(np.float64)).astype(dtype)
        assert_close(case.run(threads=threads, target=target), wanted, MOST_DIFFERENCE[dtype])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16])
def test_converted_rows(kind: type, level: str) -> None:
    for batch, m, n, k in SIZES:
        lhs, rhs = normal(batch, m, k).astype(kind), normal(batch, k, n).astype(kind)
        case = matmul(lhs, rhs, (TURNED, PLAIN, PLAIN))
        wanted = lhs.astype(np.float64) @ rhs.astype(np.float64)
        assert_close(case.run(target=small_caches(level)), wanted.astype(np.float32))


def test_what_is_packed() -> None:
    """Not what lies along the reduction, has steps close to each other, or fits in the caches; nor what few panels
    read for a few steps."""

    def packs(m: int, n: int, k: int, order: tuple[int, ...] = TURNED, cache: int = 32 << 10) -> bool:
        target = replace(emulated("x86-64-v4"), cache_bytes=(4 << 10, cache))
        case = matmul(np.zeros((1, m, k), np.float32), np.zeros((1, k, n), np.float32), (order, PLAIN, PLAIN))
        return planned(case, target).tiling.lhs_in_tiles

    assert packs(300, 64, 300)
    assert packs(300, 600, 30)
    assert not packs(300, 64, 300, PLAIN)
    assert not packs(200, 64, 300)
    assert not packs(300, 64, 300, cache=1 << 20)
    assert not packs(300, 600, 30, cache=1 << 20)
    assert not packs(300, 64, 200)
