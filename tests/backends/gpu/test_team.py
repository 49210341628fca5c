"""Blocks of threads that share a row, on a device of OpenCL and on the simulator, where threads run in any order until
they wait for each other, so that a barrier that is left out makes a result wrong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.backends.gpu.simulator import LeaveOut, needs_simulator
from tests.backends.harness import program_of
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.compiler.kernel import Kernel, KernelBuilder, numpy_dtype

EXTENTS = 64, 900, 3000, 40_000
"""Rows of one warp, of several, of the largest block, and of several blocks."""


def run(client: GpuClient, kernel: Kernel, *arguments: np.ndarray) -> Sequence[np.ndarray]:
    return client.load_program(program_of(kernel)).execute(*arguments)


def folds(dtype: str, initial: float, combiner: str, extent: int) -> Kernel:
    b = KernelBuilder("folds")
    x, y = b.input("x", dtype, (3, extent)), b.output("y", dtype, (3,))
    with b.parallel(3) as (i,):
        with b.reduction(extent, inits=[b.constant(initial, dtype)], combiner=combiner) as loop:
            loop.yield_(b.load(x, i, loop.index))
        b.store(y, loop.result, i)
    return b.build()


def softmax(extent: int) -> Kernel:
    """Returns a softmax that keeps its exponentials in scratch memory, and writes each row backwards, in place."""
    b = KernelBuilder("softmax")
    x, y = b.input("x", "f32", (3, extent)), b.output("y", "f32", (3, extent))
    with b.parallel(3) as (i,):
        scratch = b.scratch("f32", (extent,))
        with b.reduction(extent, inits=[b.constant(float("-inf"), "f32")], combiner="maximum") as largest:
            largest.yield_(b.load(x, i, largest.index))
        with b.parallel(extent) as (j,):
            b.store(scratch, b.apply("exponential", b.subtract(b.load(x, i, j), largest.result)), j)
        with b.reduction(extent, inits=[b.constant(0.0, "f32")], combiner="add") as total:
            total.yield_(b.load(scratch, b.subtract(extent - 1, total.index)))
        with b.parallel(extent) as (j,):
            b.store(y, b.divide(b.load(scratch, b.subtract(extent - 1, j)), total.result), i, j)
    return b.build()


def expected_softmax(a: np.ndarray) -> np.ndarray:
    powers = np.exp(a.astype(np.float64) - a.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True))[:, ::-1]


@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "ui8", "i16"])
def test_sums(client: GpuClient, dtype: str) -> None:
    for extent in EXTENTS:
        a = np.random.default_rng(0).integers(-9, 9, (3, extent)).astype(numpy_dtype(dtype))
        (result,) = run(client, folds(dtype, 3, "add", extent), a)
        np.testing.assert_array_equal(result, a.sum(axis=1, dtype=a.dtype) + a.dtype.type(3))


def test_conjunctions(client: GpuClient) -> None:
    for extent in EXTENTS:
        a = np.ones((3, extent), bool)
        a[1, extent - 5] = False
        (result,) = run(client, folds("i1", True, "and", extent), a)
        np.testing.assert_array_equal(result, [True, False, True])


@pytest.mark.parametrize("extent", EXTENTS)
def test_the_largest_and_its_place(client: GpuClient, extent: int) -> None:
    """Of equal elements, the first one, whatever the order of threads: a combiner of two values."""
    b = KernelBuilder("places")
    x, y, place = b.input("x", "f32", (3, extent)), b.output("y", "f32", (3,)), b.output("place", "i64", (3,))
    with b.block("f32", "i64", "f32", "i64") as larger:
        a, at, other, other_at = larger.parameters
        equal = b.apply("and", b.compare("EQ", a, other), b.compare("LT", at, other_at))
        keeps = b.apply("or", b.compare("GT", a, other), equal)
        larger.yields = [b.select(keeps, a, other), b.select(keeps, at, other_at)]
    with b.parallel(3) as (i,):
        inits = [b.constant(float("-inf"), "f32"), b.constant(1 << 40, "i64")]
        with b.reduction(extent, inits=inits, combiner=larger) as loop:
            loop.yield_(b.load(x, i, loop.index), loop.index)
        b.store(y, loop.results[0], i)
        b.store(place, loop.results[1], i)
    values = np.random.default_rng(0).integers(0, 50, (3, extent)).astype(np.float32)
    results = run(client, b.build(), values)
    np.testing.assert_array_equal(results[0], values.max(axis=1))
    np.testing.assert_array_equal(results[1], values.argmax(axis=1))


def test_a_row_with_scratch(client: GpuClient) -> None:
    for extent in EXTENTS[:3]:
        a = np.random.default_rng(1).standard_normal((3, extent)).astype(np.float32)
        (result,) = run(client, softmax(extent), a)
        np.testing.assert_allclose(result, expected_softmax(a), rtol=3e-6)


def test_loops_of_several_dimensions(client: GpuClient) -> None:
    b = KernelBuilder("sums")
    x, y = b.input("x", "f32", (3, 10, 20)), b.output("y", "f32", (3, 20, 10))
    with b.parallel(3) as (i,):
        with b.reduction(10, 20, inits=[b.constant(0.0, "f32")], combiner="maximum") as loop:
            loop.yield_(b.load(x, i, *loop.indices))
        with b.parallel(20, 10) as (j, k):
            b.store(y, b.subtract(b.load(x, i, k, j), loop.result), i, j, k)
    a = np.random.default_rng(1).standard_normal((3, 10, 20)).astype(np.float32)
    (result,) = run(client, b.build(), a)
    np.testing.assert_array_equal(result, (a - np.maximum(a.max(axis=(1, 2)), 0)[:, None, None]).transpose(0, 2, 1))


@needs_simulator
@pytest.mark.parametrize("extent", EXTENTS[:3])
def test_every_barrier_is_needed(
    extent: int, simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch, leave_out_barrier: LeaveOut
) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    client = GpuClient(simulated_device, 0)
    a = np.random.default_rng(1).standard_normal((3, extent)).astype(np.float32)

    def correct(left_out: int) -> tuple[bool, int]:
        """Whether the result is right without one of the barriers, and how many there are."""
        places = leave_out_barrier(left_out)
        (result,) = run(client, softmax(extent), a)
        return np.allclose(result, expected_softmax(a), rtol=3e-6), next(places)

    right, barriers = correct(-1)
    assert right
    assert barriers == (1 if extent == 64 else 3)
    assert not any(correct(number)[0] for number in range(barriers))
