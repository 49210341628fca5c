"""Sums, extremes and other folds of every length, in one lane or in several, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.harness import load, run
from trivium.compiler.kernel import Kernel, KernelBuilder, Register

EXTENTS = [1, 2, 3, 7, 16, 17, 31, 64, 65, 130, 1000]


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


REDUCTIONS = {"add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min}
NEUTRAL = {"add": 0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf}


def reduction(shape: tuple[int, ...], axes: tuple[int, ...], combiner: str, init: float) -> Kernel:
    b = KernelBuilder("reduce")
    kept = [d for d in range(len(shape)) if d not in axes]
    x, y = b.input("x", "f32", shape), b.output("y", "f32", tuple(shape[d] for d in kept) or (1,))
    with b.parallel(*y.shape) as outer:
        start = b.constant(init, "f32")
        with b.reduction(*(shape[d] for d in axes), inits=[start], combiner=combiner) as loop:
            place: dict[int, Register] = dict(zip(kept, outer, strict=False)) | dict(
                zip(axes, loop.indices, strict=True)
            )
            loop.yield_(b.load(x, *(place[d] for d in range(len(shape)))))
        b.store(y, loop.result, *outer)
    return b.build()


@pytest.mark.parametrize("combiner", REDUCTIONS)
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(3, 5, 70), (2, 33, 4), (1, 1, 1)])
def test_reductions(shape: tuple[int, ...], axes: tuple[int, ...], combiner: str) -> None:
    a = f32(*shape)
    got = run(reduction(shape, axes, combiner, NEUTRAL[combiner]), a)
    expected = REDUCTIONS[combiner](a.astype(np.float64), axis=axes)
    np.testing.assert_allclose(got.reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("extent", EXTENTS)
def test_the_init_is_folded_in_once(extent: int) -> None:
    got = run(reduction((2, extent), (1,), "add", 10.0), np.ones((2, extent), np.float32))
    np.testing.assert_array_equal(got, [extent + 10, extent + 10])


def test_nan_survives_a_maximum() -> None:
    a = f32(1, 100)
    a[0, 70] = np.nan
    assert np.isnan(run(reduction((1, 100), (1,), "maximum", -np.inf), a)).all()


@pytest.mark.parametrize("extent", EXTENTS)
def test_reduction_with_a_block(extent: int) -> None:
    """The index of the largest element; of several, the first."""
    b = KernelBuilder("argmax")
    x, y = b.input("x", "f32", (3, extent)), b.output("y", "i32", (3,))
    with b.block("f32", "i32", "f32", "i32") as combiner:
        best, where, value, index = combiner.parameters
        tie = b.apply("and", b.compare("EQ", value, best), b.compare("LT", index, where))
        better = b.apply("or", b.compare("GT", value, best), tie)
        combiner.yields = [b.select(better, value, best), b.select(better, index, where)]
    with b.parallel(3) as (i,):
        inits = [b.constant(-np.inf, "f32"), b.constant(0, "i32")]
        with b.reduction(extent, inits=inits, combiner=combiner) as loop:
            loop.yield_(b.load(x, i, loop.index), b.convert(loop.index, "i32"))
        b.store(y, loop.results[1], i)
    a = np.random.default_rng(0).integers(0, 5, (3, extent)).astype(np.float32)
    np.testing.assert_array_equal(run(b.build(), a), a.argmax(1))


@pytest.mark.parametrize("extent", EXTENTS)
def test_the_init_of_a_sum_beside_another_reduction_is_folded_in_once(extent: int) -> None:
    """The sum, and the largest of the absolute values with their signs, in one pass."""
    b = KernelBuilder("both")
    x = b.input("x", "f32", (3, extent))
    sums, largest = b.output("sums", "f32", (3,)), b.output("largest", "f32", (3,))
    with b.block("f32", "f32", "f32", "f32") as combiner:
        total, best, term, value = combiner.parameters
        better = b.compare("GT", b.apply("abs", value), b.apply("abs", best))
        combiner.yields = [b.apply("add", total, term), b.select(better, value, best)]
    with b.parallel(3) as (i,):
        with b.reduction(extent, inits=[b.constant(10.0, "f32"), b.constant(0.0, "f32")], combiner=combiner) as loop:
            element = b.load(x, i, loop.index)
            loop.yield_(element, element)
        b.store(sums, loop.results[0], i)
        b.store(largest, loop.results[1], i)
    sizes = np.random.default_rng(0).permutation(3 * extent).reshape(3, extent).astype(np.float32)
    a = np.where(sizes % 2 == 0, sizes, -sizes)
    got_sums, got_largest = load(b.build()).execute(a)
    np.testing.assert_array_equal(got_sums, a.sum(1) + 10)
    np.testing.assert_array_equal(got_largest, np.take_along_axis(a, np.abs(a).argmax(1)[:, None], 1)[:, 0])


@pytest.mark.parametrize("dtype", ["i8", "i32", "ui16", "i64", "i1"])
def test_integer_reductions(dtype: str) -> None:
    from trivium.compiler.kernel import numpy_dtype

    type_ = numpy_dtype(dtype)
    a = np.random.default_rng(0).integers(0, 2 if dtype == "i1" else 100, (5, 77)).astype(type_)
    for combiner, expected in (("add", a.sum(1, dtype=type_)), ("maximum", a.max(1)), ("minimum", a.min(1))):
        b = KernelBuilder("reduce")
        x, y = b.input("x", dtype, (5, 77)), b.output("y", dtype, (5,))
        with b.parallel(5) as (i,):
            init = b.load(x, i, 0) if combiner != "add" else b.constant(0, dtype)
            with b.reduction(77, inits=[init], combiner=combiner) as loop:
                loop.yield_(b.load(x, i, loop.index))
            b.store(y, loop.result, i)
        np.testing.assert_array_equal(run(b.build(), a), expected)
