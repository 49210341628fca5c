"""Rows, and columns, that several blocks share: the results of the parts are folded in a second launch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.harness import program_of
from trivium.backends.gpu import nvptx
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.schedule import choose, grid
from trivium.compiler.kernel import Kernel, KernelBuilder, numpy_dtype
from trivium.compiler.kernel.affine import Analysis


def largest(rows: int, extent: int, across: bool, dtype: str) -> Kernel:
    """Returns the largest elements of rows, or columns, and their sums."""
    b = KernelBuilder("largest")
    x = b.input("x", dtype, (extent, rows) if across else (rows, extent))
    y, total = b.output("y", dtype, (rows,)), b.output("total", dtype, (rows,))
    with b.block(dtype, dtype, dtype, dtype) as both:
        a, sums, other, more = both.parameters
        both.yields = [b.apply("maximum", a, other), b.add(sums, more)]
    with b.parallel(rows) as (i,):
        inits = [b.constant(0, dtype), b.constant(0, dtype)]
        with b.reduction(extent, inits=inits, combiner=both) as loop:
            value = b.load(x, loop.index, i) if across else b.load(x, i, loop.index)
            loop.yield_(value, value)
        b.store(y, loop.results[0], i)
        b.store(total, loop.results[1], i)
    return b.build()


@pytest.mark.parametrize("dtype", ["i64", "i16"])
@pytest.mark.parametrize(
    ("rows", "extent", "across"), [(3, 40_000, False), (1, 70_001, False), (330, 3000, True), (70, 9000, True)]
)
def test_parts(client: GpuClient, rows: int, extent: int, across: bool, dtype: str) -> None:
    kernel = largest(rows, extent, across, dtype)
    found = grid(kernel, choose(kernel, nvptx.target("sm_80"), Analysis(kernel)))
    assert (found.parts > 1, found.beside) == (True, 32 if across else 1)
    a = np.random.default_rng(0).integers(-99, 99, (rows, extent)).astype(numpy_dtype(dtype))
    results = client.load_program(program_of(kernel)).execute(np.ascontiguousarray(a.T) if across else a)
    np.testing.assert_array_equal(results[0], a.max(axis=1))
    np.testing.assert_array_equal(results[1], a.sum(axis=1, dtype=a.dtype))
