"""Products of few rows: the first tile of a panel packs it while it multiplies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import Case, assert_close, matmul, normal
from tests.backends.cpu.contraction.test_tile_packing import planned
from trivium.backends.cpu.contraction import first_tile
from trivium.backends.cpu.contraction.first_tile import Origin, packs_as_it_reads
from trivium.backends.cpu.contraction.needed import EVERYTHING, Digit, Needed
from trivium.backends.cpu.target import LEVELS, CpuTarget, emulated
from trivium.backends.llvm.code import I64

PLAIN, TURNED = (0, 1, 2), (0, 2, 1)

SIZES = {(1, 70, 600, 300): 1, (3, 41, 533, 129): 1, (1, 64, 1000, 5): 1, (1, 150, 515, 700): 4, (2, 256, 48, 513): 4}
"""Batch, rows, columns and steps, with the number of threads: whole vectors and parts of them, steps that are unrolled,
several blocks of the reduction, and units of some of the rows."""

MOST_DIFFERENCE = {np.float32: 1e-5, np.float64: 1e-13}


@pytest.fixture
def packing(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often code is emitted for tiles that may pack their panel."""
    counts = [0]
    accumulate = Origin.accumulate

    def counted(origin: Origin, *arguments: Any) -> Any:
        counts[0] += 1
        return accumulate(origin, *arguments)

    monkeypatch.setattr(Origin, "accumulate", counted)
    return counts


def far_caches(level: str) -> CpuTarget:
    """Returns a processor with so small caches that no panel of these products is read in place."""
    return replace(emulated(level), cache_bytes=(1 << 10, 64 << 10))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("order", [PLAIN, TURNED])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products(dtype: type, order: tuple[int, ...], level: str, packing: list[int]) -> None:
    target = far_caches(level)
    for (batch, m, n, k), threads in SIZES.items():
        lhs, rhs = normal(batch, m, k, dtype=dtype), normal(batch, k, n, dtype=dtype)
        found = matmul(lhs, rhs, (order, PLAIN, PLAIN)).run(threads=threads, target=target)
        wanted = (lhs.astype(np.float64) @ rhs.astype(np.float64)).astype(dtype)
        assert_close(found, wanted, MOST_DIFFERENCE[dtype])
    assert packing[0] >= (len(SIZES) if order == PLAIN else 1)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16])
def test_panels_are_packed_as_they_are_multiplied(kind: type, level: str, packing: list[int]) -> None:
    """In the type of the product, into which the first tile converts its rows."""
    lhs, rhs = normal(1, 70, 129).astype(kind), normal(1, 129, 533).astype(kind)
    found = matmul(lhs, rhs, (PLAIN, PLAIN, PLAIN)).run(target=far_caches(level))
    assert packing[0] > 0
    assert_close(found, (lhs.astype(np.float64) @ rhs.astype(np.float64)).astype(np.float32))


def test_what_the_first_tile_packs() -> None:
    """Rows of rhs that are contiguous; not for a single tile, for many rows, or for rows that may not be needed."""

    def packs(m: int, k: int, n: int, order: tuple[int, ...] = PLAIN, needed: Needed = EVERYTHING) -> bool:
        lhs, rhs = np.zeros((1, m, k), np.float32), np.zeros((1, k, n), np.float32)
        case: Case = matmul(lhs, rhs, (PLAIN, order, PLAIN))
        chosen = planned(case, emulated("x86-64-v4"))
        return packs_as_it_reads(chosen.problem, chosen.tiling, needed)

    assert packs(128, 512, 512)
    assert packs(32, 512, 512)
    assert not packs(128, 512, 512, TURNED)
    assert not packs(4, 512, 512)
    assert not packs(first_tile.SOON_DONE + 1, 512, 512)
    assert not packs(128, 512, 512, needed=Needed({"rows": [Digit(1, 128, I64(5))]}))
    assert packs(128, 512, 512, needed=Needed({"rows": [], "columns": [Digit(1, 512, I64(5))]}))
