"""Largest and smallest floats of a loop in lanes: NaNs, infinities and signs of zeros, at every length of a tail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.backends.harness import program_of, run
from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import host
from trivium.compiler.kernel import Kernel, KernelBuilder

TYPES = {"f32": np.float32, "f64": np.float64}
POOLS = [
    [0.0, -0.0], [-0.0, -1.0], [0.0, -0.0, -1.0], [1.0, 0.0, -0.0], [np.nan, 1.0], [-np.nan, -np.inf], [np.inf, -1.0],
    [-np.inf], [-0.0], [1e-45, -0.0, 0.0], [-1e-45, 0.0],
]  # fmt: skip


def extreme(operation: str, dtype: str, extent: int) -> Kernel:
    b = KernelBuilder("extreme")
    x, y = b.input("x", dtype, (extent,)), b.output("y", dtype, (1,))
    with b.parallel(1):
        start = b.constant(-np.inf if operation == "maximum" else np.inf, dtype)
        with b.reduction(extent, inits=[start], combiner=operation) as loop:
            loop.yield_(b.load(x, loop.indices[0]))
        b.store(y, loop.results[0], 0)
    return b.build()


def expected(operation: str, numbers: np.ndarray) -> float:
    """In total order, where nothing is NaN."""
    if np.isnan(numbers).any():
        return np.nan
    order = sorted(numbers.tolist(), key=lambda number: (number, not np.signbit(number)))
    return order[-1 if operation == "maximum" else 0]


@pytest.mark.parametrize("operation", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("extent", [17, 64, 150])
def test_extremes(operation: str, dtype: str, extent: int) -> None:
    random = np.random.default_rng(extent)
    for pool in POOLS:
        for chosen in (random.choice(pool, extent), np.append(np.full(extent - 1, pool[0]), pool[-1])):
            numbers = chosen.astype(TYPES[dtype])
            (got,), wanted = run(extreme(operation, dtype, extent), numbers), expected(operation, numbers)
            np.testing.assert_equal(
                (got, np.isnan(got) or np.signbit(got)), (wanted, np.isnan(wanted) or np.signbit(wanted))
            )


@pytest.mark.parametrize("operation", ["maximum", "minimum"])
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_a_result_in_each_lane(operation: str, vector_bytes: int) -> None:
    """Lanes that may take several registers each have a NaN of their own."""
    random, shape = np.random.default_rng(0), (9, 64)
    b = KernelBuilder("columns")
    x, y = b.input("x", "f32", shape), b.output("y", "f32", shape[1:])
    with b.parallel(shape[1]) as (column,):
        start = b.constant(-np.inf if operation == "maximum" else np.inf, "f32")
        with b.reduction(shape[0], inits=[start], combiner=operation) as loop:
            loop.yield_(b.load(x, loop.indices[0], column))
        b.store(y, loop.results[0], column)
    numbers = random.choice([0.0, -0.0, 1.0, -1.0, np.nan], shape, p=[0.2, 0.3, 0.2, 0.2, 0.1]).astype(np.float32)
    target = replace(host(), vector_bytes=vector_bytes)
    got = np.empty(shape[1], np.float32)
    CpuExecutable(assemble_program(program_of(b.build()), target)).execute_at([numbers.ctypes.data, got.ctypes.data])
    wanted = np.array([expected(operation, row) for row in numbers.T])
    np.testing.assert_array_equal(got, wanted)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(wanted[number]))
