"""Running folds in lanes: each result folds what is before it in its row, and the loop carries the fold of all."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.backends.harness import load
from tests.backends.llvm.test_squares import scheduled
from trivium.compiler.kernel import Kernel, KernelBuilder, Loop
from trivium.compiler.kernel.dtypes import numpy_dtype
from trivium.compiler.kernel.structure import walk

KINDS = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "ui16": np.uint16, "i32": np.int32, "i64": np.int64}
FOLDS = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


def running(shape: tuple[int, int], dtype: str, fold: str, combiner: str | None, reverse: bool = False) -> Kernel:
    """Returns the running fold of x + 1 along rows, doubled, and the fold of each row."""
    b = KernelBuilder("running")
    rows, length = shape
    x, y, totals = b.input("x", dtype, shape), b.output("y", dtype, shape), b.output("totals", dtype, (rows,))
    with b.parallel(rows) as (i,):
        with b.sequential(length, inits=[b.load(x, i, 0)], combiner=combiner) as loop:
            j = b.subtract(length - 1, loop.index) if reverse else loop.index
            term = b.add(b.load(x, i, j), b.constant(1, dtype))
            total = b.apply(fold, loop.carried[0], term)
            b.store(y, b.add(total, total), i, j)
            loop.yield_(total)
        b.store(totals, loop.results[0], i)
    return b.build()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("fold", FOLDS)
def test_every_element_is_folded_with_what_is_before_it(fold: str, dtype: str, reverse: bool) -> None:
    for length in (64, 65, 127, 300):
        kernel = running((3, length), dtype, fold, fold, reverse)
        x = np.random.default_rng(length).integers(0, 2, (3, length)).astype(KINDS[dtype])
        terms = np.concatenate([x[:, :1], (x[:, ::-1] if reverse else x) + 1], axis=1).astype(KINDS[dtype])
        with np.errstate(over="ignore"):
            expected = FOLDS[fold].accumulate(terms, axis=1, dtype=KINDS[dtype])
            doubled = (expected + expected)[:, 1:]
        y, totals = load(kernel).execute(x)
        np.testing.assert_allclose(y[:, ::-1] if reverse else y, doubled, rtol=1e-5)
        np.testing.assert_allclose(totals, expected[:, -1], rtol=1e-5)


def test_extremes_are_exact_and_nan_stays() -> None:
    x = np.random.default_rng(0).standard_normal((2, 200)).astype(np.float32)
    x[1, 77] = np.nan
    y, _ = load(running((2, 200), "f32", "maximum", "maximum")).execute(x)
    start = np.maximum.accumulate(np.concatenate([x[:, :1], x + 1], axis=1), axis=1)[:, 1:]
    np.testing.assert_array_equal(y, 2 * start)
    assert np.isnan(y[1, 77:]).all()


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("fold", ["maximum", "minimum"])
def test_extremes_of_all_floats(fold: str, dtype: str) -> None:
    """Zeros of both signs, infinities, subnormal numbers and NaNs of both signs."""
    kind, lowest = numpy_dtype(dtype), 4 * float(ml_dtypes.finfo(numpy_dtype(dtype)).smallest_subnormal)
    special = np.array([0.0, -0.0, np.inf, -np.inf, lowest, -lowest, 1, -2], kind)
    x = np.random.default_rng(6).choice(special, (40, 70))
    x[::3, 40], x[1::3, 50] = np.nan, -np.array(np.nan, kind)
    b = KernelBuilder("extremes")
    source, y = b.input("x", dtype, x.shape), b.output("y", dtype, x.shape)
    with b.parallel(len(x)) as (i,), b.sequential(70, inits=[b.load(source, i, 0)], combiner=fold) as loop:
        found = b.apply(fold, loop.carried[0], b.load(source, i, loop.index))
        b.store(y, found, i, loop.index)
        loop.yield_(found)
    kernel = b.build()
    assert scheduled(kernel, "x86-64-v4", inner(kernel)).lanes > 1
    (found,) = load(kernel).execute(x)
    # For NumPy, -0 is not less than 0, so that smaller numbers than all others stand for them.
    ordered = np.where(x == 0, np.copysign(lowest / 4, x), x.astype(np.float64))
    expected = FOLDS[fold].accumulate(ordered, axis=1)
    zero = np.abs(expected) == lowest / 4
    expected = np.where(zero, np.copysign(0, expected), expected)
    np.testing.assert_array_equal(found.astype(np.float64), expected)
    np.testing.assert_array_equal(np.signbit(found)[zero], np.signbit(expected)[zero])


def inner(kernel: Kernel) -> Loop:
    return next(i for i in walk(kernel.body) if isinstance(i, Loop) and i.kind == "sequential")


def test_the_schedule_has_lanes_if_the_order_is_free() -> None:
    for combiner, lanes in (("add", 16), (None, 1)):
        kernel = running((3, 200), "f32", "add", combiner)
        assert scheduled(kernel, "x86-64-v4", inner(kernel)).lanes == lanes
