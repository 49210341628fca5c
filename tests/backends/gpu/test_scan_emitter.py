"""Running folds that the threads of a block share: of rows that are one round, several, or many, and of any type."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.harness import program_of
from trivium.backends.gpu import nvptx
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.schedule import choose, grid
from trivium.compiler.kernel import Kernel, KernelBuilder, numpy_dtype
from trivium.compiler.kernel.affine import Analysis


def running(dtype: str, extent: int, combiner: str, initial: float, reverse: bool = False) -> Kernel:
    """Returns running folds of what x has, and of the total of the row, which each is less."""
    b = KernelBuilder("running")
    x, y = b.input("x", dtype, (3, extent)), b.output("y", dtype, (3, extent))
    total = b.output("total", dtype, (3,))
    with b.parallel(3) as (i,):
        loop = b.sequential(extent, inits=[b.constant(initial, dtype)], combiner=combiner)
        with loop:
            place = b.subtract(extent - 1, loop.index) if reverse else loop.index
            value = b.apply(combiner, loop.carried[0], b.load(x, i, place))
            b.store(y, value, i, place)
            loop.yield_(value)
        b.store(total, loop.result, i)
    return b.build()


@pytest.mark.parametrize("dtype", ["i32", "f64", "bf16"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("extent", [64, 100, 1001, 3000, 20_000])
def test_sums(client: GpuClient, dtype: str, extent: int, reverse: bool) -> None:
    if dtype == "bf16":
        a = np.zeros((3, extent), numpy_dtype(dtype))  # with sums that bf16 represents
        a[:, ::97] = 1
        a = a if extent < 20_000 else a * 0
    else:
        a = np.random.default_rng(0).integers(-9, 9, (3, extent)).astype(numpy_dtype(dtype))
    result, total = client.load_program(program_of(running(dtype, extent, "add", 5, reverse))).execute(a)
    turned = a[:, ::-1] if reverse else a
    expected = turned.astype(np.float64).cumsum(axis=1) + 5
    np.testing.assert_array_equal(result, (expected[:, ::-1] if reverse else expected).astype(a.dtype))
    np.testing.assert_array_equal(total, expected[:, -1].astype(a.dtype))


def test_largest_so_far(client: GpuClient) -> None:
    a = np.random.default_rng(0).standard_normal((3, 5000)).astype(np.float32)
    a[1, 700] = np.nan
    kernel = running("f32", 5000, "maximum", float("-inf"))
    result, total = client.load_program(program_of(kernel)).execute(a)
    expected = np.maximum.accumulate(a, axis=1)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(total, expected[:, -1])


def test_schedules() -> None:
    kernel = running("f32", 1024, "add", 0)
    schedule = choose(kernel, nvptx.target("sm_90a"), Analysis(kernel))
    assert "sequential 1024 block(0)=256 lanes(0)=4" in str(schedule)
    assert grid(kernel, schedule).blocks == 3
