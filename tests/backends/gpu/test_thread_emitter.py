"""Threads that compute vectors: lengths that end with a part of one, several vectors of a thread, and accesses that are
aligned less than a vector."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.harness import program_of
from trivium.backends.gpu import nvptx, vectors
from trivium.backends.gpu.assembly import emit_program
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.nvptx import Nvptx
from trivium.compiler.kernel import Kernel, KernelBuilder, numpy_dtype
from trivium.compiler.kernel.dtypes import DType
from trivium.compiler.kernel.structure import Buffer


def twice_and_place(dtype: str, extent: int) -> Kernel:
    """Returns the kernel that stores twice each element, and its place."""
    b = KernelBuilder("twice")
    x, y, place = b.input("x", dtype, (extent,)), b.output("y", dtype, (extent,)), b.output("place", "i32", (extent,))
    with b.parallel(extent) as (i,):
        value = b.load(x, i)
        b.store(y, b.add(value, value), i)
        b.store(place, b.convert(i, "i32"), i)
    return b.build()


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Lets even short loops run in vectors."""
    monkeypatch.setattr(vectors, "FEWEST", 1)
    return monkeypatch


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64", "ui8"])
@pytest.mark.parametrize("extent", [1000, 1001, 1003, 4097])
def test_lengths(client: GpuClient, everywhere: pytest.MonkeyPatch, dtype: str, extent: int) -> None:
    a = np.random.default_rng(0).integers(0, 9, extent).astype(numpy_dtype(dtype))
    twice, place = client.load_program(program_of(twice_and_place(dtype, extent))).execute(a)
    np.testing.assert_array_equal(twice, a + a)
    np.testing.assert_array_equal(place, np.arange(extent))


@pytest.mark.parametrize("extent", [4 * 300, 4 * 1025])
def test_several_vectors_of_a_thread(client: GpuClient, everywhere: pytest.MonkeyPatch, extent: int) -> None:
    everywhere.setattr(vectors, "EACH", 3)
    everywhere.setattr(vectors, "MANY", 1)
    a = np.random.default_rng(0).standard_normal(extent).astype(np.float32)
    twice, place = client.load_program(program_of(twice_and_place("f32", extent))).execute(a)
    np.testing.assert_array_equal(twice, a + a)
    np.testing.assert_array_equal(place, np.arange(extent))


def test_alignment() -> None:
    """An access is as wide as the offset of a view allows."""
    b = KernelBuilder("copied")
    y, view = b.output("y", "f32", (2, 1 << 16)), Buffer("x", DType("f32"), (2, 1 << 16), "in", ((1 << 16) + 8, 1), 2)
    b.params.insert(0, view)
    with b.parallel(2, 1 << 16) as (i, j):
        b.store(y, b.load(view, i, j), i, j)
    text = emit_program(program_of(b.build()), Nvptx(), nvptx.target("sm_90a")).text
    assert [line.strip().rsplit(", ", 1)[1] for line in text.splitlines() if "load <2 x float>" in line] == ["align 8"]
