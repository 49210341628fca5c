"""Loops of which several iterations run in one body, with windows that overlap, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from tests.backends.harness import load, run
from trivium.backends.cpu.schedule import choose
from trivium.backends.cpu.target import host
from trivium.compiler.kernel import Buffer, Index, Kernel, KernelBuilder, Register, expression, numpy_dtype

pytestmark = pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="tiles depend on the registers")

NEUTRAL = {"add": 0, "maximum": -(2**15), "minimum": 2**15}
FOLDS: dict[str, Callable[..., np.ndarray]] = {"add": np.sum, "maximum": np.max, "minimum": np.min}


def inside(b: KernelBuilder, position: Register, extent: int) -> Register:
    return b.apply("and", b.compare("GE", position, 0), b.compare("LT", position, extent))


def guarded_element(b: KernelBuilder, x: Buffer, places: list[Index], otherwise: Register) -> Register:
    """Returns an element of an array, or, outside of it, another value."""
    checks = [inside(b, b.position(place), extent) for place, extent in zip(places, x.shape, strict=True)]
    with b.if_(b.apply("and", *checks)) as branch:
        branch.yield_(b.load(x, *places))
    with branch.otherwise():
        branch.yield_(otherwise)
    return branch.results[0]


def windows(
    shape: tuple[int, int], size: int, stride: int = 1, dilation: int = 1, pad: int = 0, dtype: str = "f32",
    combiner: str = "add", reverse: bool = False, weights: bool = False,
) -> Kernel:  # fmt: skip
    """Folds windows, whose elements are multiplied by `weights`, if any, and adds the row's number to the result."""
    b, reach = KernelBuilder("windows"), dilation * (size - 1) + 1
    rows, columns = ((extent + 2 * pad - reach) // stride + 1 for extent in shape)
    x, w = b.input("x", dtype, shape), b.input("w", dtype, (size, size)) if weights else None
    y = b.output("y", dtype, (rows, columns))
    neutral = b.constant(NEUTRAL[combiner], dtype)
    with b.parallel(rows, columns) as (i, j):
        with b.reduction(size, size, inits=[neutral], combiner=combiner) as loop:
            down = (-dilation, reach - 1) if reverse else (dilation, 0)
            steps = zip((i, j), loop.indices, (down, (dilation, 0)), strict=True)
            places = [expression([(one, stride), (other, step)], first - pad) for one, other, (step, first) in steps]
            element = guarded_element(b, x, places, neutral) if pad else b.load(x, *places)
            loop.yield_(element if w is None else b.multiply(element, b.load(w, *loop.indices)))
        b.store(y, b.add(loop.result, b.convert(i, dtype)), i, j)
    return b.build()


def expected(
    x: np.ndarray, size: int, stride: int = 1, dilation: int = 1, pad: int = 0, combiner: str = "add",
    w: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    padded = np.pad(x, pad, constant_values=NEUTRAL[combiner])
    reach = dilation * (size - 1) + 1
    view = np.lib.stride_tricks.sliding_window_view(padded, (reach, reach))
    view = view[::stride, ::stride, ::dilation, ::dilation]
    folded = FOLDS[combiner](view if w is None else view * w, axis=(2, 3))
    return (folded + np.arange(len(folded))[:, None]).astype(x.dtype)


def integers(*shape: int, dtype: str = "f32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(numpy_dtype(dtype))


def is_jammed(kernel: Kernel) -> bool:
    return "registers" in str(choose(kernel, host()))


@pytest.mark.parametrize("columns", [5, 16, 33, 57, 100])
@pytest.mark.parametrize("rows", [5, 8, 9, 22])
def test_tiles_of_every_size_at_the_edges_and_between_them(rows: int, columns: int) -> None:
    x = integers(rows, columns)
    for size, pad in ((3, 0), (3, 1), (5, 4)):
        kernel = windows((rows, columns), size, pad=pad)
        assert is_jammed(kernel) or columns < 16
        np.testing.assert_array_equal(run(kernel, x), expected(x, size, pad=pad))


@pytest.mark.parametrize(("stride", "dilation", "pad"), [*product((1, 2, 3), (1, 2), (0, 3))])
@pytest.mark.parametrize("reverse", [False, True])
def test_strides_and_dilations(stride: int, dilation: int, pad: int, reverse: bool) -> None:
    x, w = integers(29, 61), integers(5, 5)
    kernel = windows((29, 61), 5, stride, dilation, pad, reverse=reverse, weights=True)
    turned = w[::-1] if reverse else w
    np.testing.assert_array_equal(run(kernel, x, w), expected(x, 5, stride, dilation, pad, w=turned))


@pytest.mark.parametrize(("size", "pad"), [(7, 0), (7, 3), (9, 4), (10, 4), (11, 5)])
def test_padding_makes_no_window_too_large(size: int, pad: int) -> None:
    kernel, x, w = windows((30, 61), size, pad=pad, weights=True), integers(30, 61), integers(size, size)
    assert is_jammed(kernel) == (size <= 10)
    np.testing.assert_array_equal(run(kernel, x, w), expected(x, size, pad=pad, w=w))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "i32", "i8", "ui16"])
@pytest.mark.parametrize("combiner", FOLDS)
def test_types_and_folds(dtype: str, combiner: str) -> None:
    if not dtype.startswith(("f", "bf")) and combiner != "add":
        return
    x = integers(19, 45, dtype=dtype)
    if combiner == "add":
        w = integers(3, 3, dtype=dtype)
        got = run(windows((19, 45), 3, pad=1, dtype=dtype, weights=True), x, w)
        np.testing.assert_array_equal(got, expected(x.astype(np.int64), 3, pad=1, w=w.astype(np.int64)).astype(x.dtype))
    else:
        got = run(windows((19, 45), 3, dtype=dtype, combiner=combiner), x)
        np.testing.assert_array_equal(got, expected(x, 3, combiner=combiner))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_compute_whole_tiles(threads: int) -> None:
    b = KernelBuilder("images")
    x, y = b.input("x", "f32", (40, 31, 70)), b.output("y", "f32", (40, 29, 68))
    with b.parallel(40, 29, 68) as (n, i, j):
        with b.reduction(3, 3, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
            k, m = loop.indices
            loop.yield_(b.load(x, n, expression([(i, 1), (k, 1)]), expression([(j, 1), (m, 1)])))
        b.store(y, loop.result, n, i, j)
    kernel, a = b.build(), integers(40, 31, 70)
    assert is_jammed(kernel)
    wanted = np.lib.stride_tricks.sliding_window_view(a, (3, 3), axis=(1, 2)).sum((3, 4))
    np.testing.assert_array_equal(run(kernel, a, threads=threads), wanted)


def test_a_window_that_uses_the_result_of_another_one() -> None:
    """The sum of squares of differences from the mean of the window, which each iteration has computed before."""
    b = KernelBuilder("deviations")
    x, y = b.input("x", "f32", (20, 50)), b.output("y", "f32", (18, 48))
    with b.parallel(18, 48) as (i, j):
        zero = b.constant(0.0, "f32")
        with b.reduction(3, 3, inits=[zero], combiner="add") as total:
            k, m = total.indices
            total.yield_(b.load(x, expression([(i, 1), (k, 1)]), expression([(j, 1), (m, 1)])))
        mean = b.multiply(total.result, 1 / 9)
        with b.reduction(3, 3, inits=[mean], combiner="add") as loop:
            k, m = loop.indices
            element = b.load(x, expression([(i, 1), (k, 1)]), expression([(j, 1), (m, 1)]))
            difference = b.apply("subtract", element, mean)
            loop.yield_(b.multiply(difference, difference))
        b.store(y, loop.result, i, j)
    kernel, a = b.build(), np.random.default_rng(0).standard_normal((20, 50)).astype(np.float32)
    assert is_jammed(kernel)
    view = np.lib.stride_tricks.sliding_window_view(a, (3, 3)).astype(np.float64)
    mean = view.mean((2, 3))
    wanted = ((view - mean[..., None, None]) ** 2).sum((2, 3)) + mean
    np.testing.assert_allclose(run(kernel, a), wanted, rtol=1e-5)


def test_a_fold_by_a_block() -> None:
    """The place in its window of the largest element; of several, the first."""
    b = KernelBuilder("places")
    x, y = b.input("x", "f32", (17, 40)), b.output("y", "i32", (15, 38))
    with b.block("f32", "i32", "f32", "i32") as combiner:
        best, where, value, index = combiner.parameters
        tie = b.apply("and", b.compare("EQ", value, best), b.compare("LT", index, where))
        better = b.apply("or", b.compare("GT", value, best), tie)
        combiner.yields = [b.select(better, value, best), b.select(better, index, where)]
    with b.parallel(15, 38) as (i, j):
        inits = [b.constant(-np.inf, "f32"), b.constant(9, "i32")]
        with b.reduction(3, 3, inits=inits, combiner=combiner) as loop:
            k, m = loop.indices
            element = b.load(x, expression([(i, 1), (k, 1)]), expression([(j, 1), (m, 1)]))
            loop.yield_(element, b.convert(b.position(expression([(k, 3), (m, 1)])), "i32"))
        b.store(y, loop.results[1], i, j)
    kernel, a = b.build(), integers(17, 40)
    assert is_jammed(kernel)
    view = np.lib.stride_tricks.sliding_window_view(a, (3, 3)).reshape(15, 38, 9)
    np.testing.assert_array_equal(run(kernel, a), view.argmax(2))


def test_nan_and_infinity_are_in_the_windows_that_contain_them() -> None:
    x = integers(15, 40)
    x[3, 7], x[0, 0], x[14, 39] = np.nan, np.inf, -np.inf
    kernel = windows((15, 40), 3, pad=1, combiner="maximum")
    assert is_jammed(kernel)
    np.testing.assert_array_equal(run(kernel, x), expected(x, 3, pad=1, combiner="maximum"))


def test_each_element_is_loaded_once_for_all_windows_of_a_tile() -> None:
    kernel = windows((34, 34), 3, weights=True)
    text = load(kernel, threads=1).stage("llvm")  # type: ignore[attr-defined]
    (schedule,) = (line for line in str(choose(kernel, host())).splitlines() if "registers" in line)
    size, lanes = (int(part.partition("=")[2]) for part in schedule.split()[-2:])
    loads = [line for line in text.splitlines() if f"= load <{lanes} x float>" in line]
    assert len(loads) == 3 * (size + 2)
