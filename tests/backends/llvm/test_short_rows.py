"""Rows of a few elements: vectors hold several of them, and every element arrives, whatever is the same for all rows,
or for all elements of a row."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.backends.harness import load
from tests.backends.llvm.test_squares import scheduled
from trivium.compiler.kernel import Kernel, KernelBuilder

KINDS = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i64": np.int64}


def rows(shape: tuple[int, int], dtype: str) -> Kernel:
    """Returns (x + columns) * rows, and the place of each element in its row."""
    b = KernelBuilder("rows")
    count, length = shape
    x, columns, each = (b.input(n, dtype, s) for n, s in (("x", shape), ("columns", (length,)), ("rows", (count,))))
    y, places = b.output("y", dtype, shape), b.output("places", "i64", shape)
    with b.parallel(count, length) as (i, j):
        b.store(y, b.apply("multiply", b.add(b.load(x, i, j), b.load(columns, j)), b.load(each, i)), i, j)
        b.store(places, j, i, j)
    return b.build()


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("length", [2, 3, 5, 7, 8, 12])
def test_every_element_arrives(length: int, dtype: str) -> None:
    for count in (2, 16, 33, 71):
        rng = np.random.default_rng(count)
        shapes = (count, length), (length,), (count,)
        x, columns, each = (rng.integers(-4, 5, shape).astype(KINDS[dtype]) for shape in shapes)
        y, places = load(rows((count, length), dtype)).execute(x, columns, each)
        np.testing.assert_array_equal(y, (x + columns) * each[:, None])
        np.testing.assert_array_equal(places, np.tile(np.arange(length), (count, 1)))


def test_the_schedule_has_rows() -> None:
    assert str(scheduled(rows((1000, 3), "f32"), "x86-64-v4")) == "1000x3 rows(1)=3 lanes(0)=8"
    assert str(scheduled(rows((1000, 3), "f32"), "x86-64-v3")) == "1000x3 rows(1)=3 lanes(0)=4"
    assert scheduled(rows((1000, 64), "f32"), "x86-64-v4").row is None  # rows fill vectors
