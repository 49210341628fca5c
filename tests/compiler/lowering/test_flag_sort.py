"""Rows are sorted by one bit in two passes, stably, in blocks if they are long."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from tests.compiler.lowering.test_place_sort import expect
from tests.compiler.lowering.test_radix import DIRECTIONS, sorted_rows
from tests.compiler.lowering.test_sorting import lowered, names
from tests.compiler.targets import TARGET
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.types import F32, I1, I64, tensor

BLOCKS = replace(TARGET, fusion=replace(TARGET.fusion, serial_row=7))
TARGETS = pytest.mark.parametrize("target", [TARGET, BLOCKS], ids=["whole", "blocks"])


def flags(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape) < 0.4


@TARGETS
@pytest.mark.parametrize("direction", [DIRECTIONS.LT, DIRECTIONS.GT], ids=["ascending", "descending"])
@pytest.mark.parametrize(
    ("shape", "dimension"),
    [((1,), 0), ((7,), 0), ((8,), 0), ((41,), 0), ((41, 3), 0), ((2, 14, 3), 1), ((2, 1, 20), 2)],
)
def test_flags_and_their_places(
    shape: tuple[int, ...], dimension: int, direction: ops.ComparisonDirection, target: Target
) -> None:
    expect(sorted_rows(shape, dimension, I1, direction), flags(*shape), target)


@TARGETS
@pytest.mark.parametrize("value", [False, True])
def test_flags_that_are_all_alike(value: bool, target: Target) -> None:
    expect(sorted_rows((2, 23), 1, I1, DIRECTIONS.LT), np.full((2, 23), value), target)


def positive_first(b, x, limit: int):
    """The numbers of a row, positive ones first, and their places; only the first `limit` are needed."""
    extent = x.type.shape[0]
    zero = b.add(ops.Constant(np.zeros(extent, np.float32)))
    is_positive = b.add(ops.Compare(x, zero, DIRECTIONS.GT))
    places = b.add(ops.Iota(0, result=tensor(extent, of=I64)))
    kinds = [tensor(of=kind) for kind in (I1, I1, F32, F32, I64, I64)]
    less = region(kinds, lambda b, p, q, *_: b.add(ops.Compare(p, q, DIRECTIONS.GT)))
    _, numbers, order = b.add(ops.Sort([is_positive, x, places], dimension=0, is_stable=True, comparator=less))
    return [b.add(ops.Slice(v, [0], [limit], [1])) for v in (numbers, order)]


@TARGETS
@pytest.mark.parametrize("limit", [1, 6, 30, 50])
def test_numbers_by_computed_flags(limit: int, target: Target) -> None:
    module = program_of([tensor(50)], lambda b, x: positive_first(b, x, limit))
    expect(module, np.random.default_rng(1).standard_normal(50).astype(np.float32), target)


def test_the_launches_of_a_long_row() -> None:
    assert names(lowered(sorted_rows((8,), 0, I1, DIRECTIONS.LT), BLOCKS)) == ["_count", "_begin", "_place"]
    assert names(lowered(sorted_rows((7,), 0, I1, DIRECTIONS.LT), BLOCKS)) == [""]
