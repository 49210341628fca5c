"""Kernels on a device: every iteration runs once, in a grid of any shape, and with separate scratch memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.harness import program_of
from trivium.backends.gpu.client import GpuClient
from trivium.compiler.kernel import Kernel, KernelBuilder


def run(device: GpuClient, kernel: Kernel, *arguments: np.ndarray) -> np.ndarray:
    (result,) = device.load_program(program_of(kernel)).execute(*arguments)
    return result


@pytest.mark.parametrize("shape", [(1,), (31,), (256,), (257,), (3, 5, 7), (1, 300, 1), (2, 1, 129)])
def test_every_iteration_runs_once(device: GpuClient, shape: tuple[int, ...]) -> None:
    b = KernelBuilder("transposed")
    x, y = b.input("x", "i32", shape), b.output("y", "i32", shape[::-1])
    with b.parallel(*shape) as indices:
        b.store(y, b.load(x, *indices), *indices[::-1])
    a = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    np.testing.assert_array_equal(run(device, b.build(), a), a.transpose())


@pytest.mark.parametrize("extent", [16, 3000])
def test_scratch_is_each_threads_own(device: GpuClient, extent: int) -> None:
    """On the stack of the thread, and in the workspace."""
    b = KernelBuilder("reverse")
    x, y = b.input("x", "f32", (70, extent)), b.output("y", "f32", (70, extent))
    with b.parallel(70) as (i,):
        scratch = b.scratch("f32", (extent,))
        with b.parallel(extent) as (j,):
            b.store(scratch, b.load(x, i, j), j)
        with b.parallel(extent) as (j,):
            b.store(y, b.load(scratch, b.subtract(extent - 1, j)), i, j)
    a = np.random.default_rng(0).standard_normal((70, extent)).astype(np.float32)
    np.testing.assert_array_equal(run(device, b.build(), a), a[:, ::-1])


def test_updates_of_one_element_happen_in_order(device: GpuClient) -> None:
    """Floats are added in the order of the iterations."""
    b = KernelBuilder("sums")
    x, places, y = b.input("x", "f32", (40, 99)), b.input("at", "i64", (99,)), b.output("y", "f32", (40, 3))
    with b.parallel(40) as (i,):
        sums = b.scratch("f32", (3,))
        with b.parallel(3) as (k,):
            b.store(sums, b.constant(0.0, "f32"), k)
        with b.parallel(99) as (j,):
            b.update([(sums, (b.load(places, j),))], [b.load(x, i, j)], "add")
        with b.parallel(3) as (k,):
            b.store(y, b.load(sums, k), i, k)
    a = np.random.default_rng(0).standard_normal((40, 99)).astype(np.float32)
    at = np.random.default_rng(1).integers(0, 3, 99)
    expected = np.zeros((40, 3), np.float32)
    for j in range(99):
        expected[:, at[j]] += a[:, j]
    np.testing.assert_array_equal(run(device, b.build(), a, at), expected)


def test_a_kernel_without_loops_runs_once(device: GpuClient) -> None:
    b = KernelBuilder("next")
    x, y = b.input("x", "i32", ()), b.output("y", "i32", ())
    b.store(y, b.add(b.load(x), 1))
    assert run(device, b.build(), np.array(4, np.int32)) == 5
