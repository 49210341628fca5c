"""Scatters of a few neighbours become updates of slices: the same bits, inside of the array and outside of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from tests.compiler.passes.patterns.running import names, rewritten
from trivium.compiler.passes.patterns.scattering import SCATTERING
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.types import F32, tensor, type_of

X = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)
COMBINATIONS: dict[str, Callable] = {
    "replaced": lambda b, old, new: new,
    "kept": lambda b, old, new: old,
    "added": lambda b, old, new: b.add(ops.Add(old, new)),
    "subtracted": lambda b, old, new: b.add(ops.Subtract(new, old)),
    "the largest": lambda b, old, new: b.add(ops.Maximum(old, new)),
    "of several operations": lambda b, old, new: b.add(ops.Add(old, b.add(ops.Multiply(new, new)))),
}


def scattered(indices: np.ndarray, shape: tuple[int, ...], numbers: tuple, combine: Callable = COMBINATIONS["added"]):
    """Returns the ops after the rewrite of a scatter of an update of `shape` into X, at any indices that are like the
    given ones."""

    def body(b, x, places, update):
        dimensions = ops.ScatterDimensionNumbers(*numbers)
        computation = region([tensor(of=F32)] * 2, combine)
        return b.add(ops.Scatter([x], places, [update], dimensions, update_computation=computation))[0]

    update = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    module = program_of([type_of(X), type_of(indices), type_of(update)], body)
    lists = [
        [X, (indices.astype(np.int64) + offset).astype(indices.dtype), update]
        for offset in (-6, -1, 0, 1, 2, 3, 7, 200)
    ]
    return names(rewritten(module, SCATTERING, *lists))


ELEMENT = (), (0, 1, 2), (), (), (0, 1, 2), 0


@pytest.mark.parametrize("name", COMBINATIONS)
def test_an_element(name: str) -> None:
    found = scattered(np.array([1, 2, 0]), (), ELEMENT, COMBINATIONS[name])
    assert ("scatter" in found) == (name == "of several operations")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_indices_of_any_type(dtype: type) -> None:
    assert "scatter" not in scattered(np.array([1, 2, 0], dtype), (), ELEMENT)


@pytest.mark.parametrize(
    ("indices", "shape", "numbers", "stays"),
    [
        ((1,), (5, 3), ((0, 1), (0,), (), (), (0,), 0), False),
        ((1,), (3, 2), ((0, 1), (1,), (), (), (1,), 0), False),
        ((2,), (1, 4, 1), ((0, 1, 2), (), (), (), (2, 0), 0), False),
        ((1, 2), (1, 3), ((1,), (0, 1), (), (), (1, 0), 1), False),
        ((3, 1), (1,), ((), (0, 1, 2), (), (), (2, 1, 0), 0), False),
        ((1,), (2, 5, 3), ((0, 1, 2), (), (), (), (0,), 0), True),  # partly outside
        ((3, 2), (2,), ((), (0, 1, 2), (), (), (0, 1, 2), 0), True),  # two places
        ((1,), (4, 5), ((0, 1), (2,), (), (), (2,), 0), True),  # many elements
    ],
)
def test_windows(indices: tuple[int, ...], shape: tuple[int, ...], numbers: tuple, stays: bool) -> None:
    assert ("scatter" in scattered(np.ones(indices, np.int64), shape, numbers)) == stays
