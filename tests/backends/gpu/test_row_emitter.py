"""Rows that a block's threads share: elements that stay in registers from one loop to the next, rows that are no
multiple of a vector, and columns beside one another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.backends.harness import program_of
from trivium.backends.gpu import nvptx, rows
from trivium.backends.gpu.assembly import emit_program
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.nvptx import Nvptx
from trivium.compiler.kernel import Kernel, KernelBuilder, numpy_dtype


def run(client: GpuClient, kernel: Kernel, *arguments: np.ndarray) -> Sequence[np.ndarray]:
    return client.load_program(program_of(kernel)).execute(*arguments)


def centred(dtype: str, extent: int, many: int = 5) -> Kernel:
    """Returns rows, and a bias for each place, without the mean of the row."""
    b = KernelBuilder("centred")
    x, bias = b.input("x", dtype, (many, extent)), b.input("bias", "f32", (extent,))
    y = b.output("y", dtype, (many, extent))
    with b.parallel(many) as (i,):
        with b.reduction(extent, inits=[b.constant(0.0, "f32")], combiner="add") as total:
            total.yield_(b.convert(b.load(x, i, total.index), "f32"))
        mean = b.divide(total.result, b.constant(float(extent), "f32"))
        with b.parallel(extent) as (j,):
            value = b.subtract(b.convert(b.load(x, i, j), "f32"), mean)
            b.store(y, b.convert(b.add(value, b.load(bias, j)), dtype), i, j)
    return b.build()


@pytest.mark.parametrize("dtype", ["bf16", "f64"])
@pytest.mark.parametrize("extent", [64, 100, 1001, 4096, 4100, 20_000])
def test_rows(client: GpuClient, dtype: str, extent: int) -> None:
    generator = np.random.default_rng(0)
    a = generator.integers(-9, 9, (5, extent)).astype(numpy_dtype(dtype))
    bias = generator.integers(-9, 9, extent).astype(np.float32)
    mean = a.astype(np.float32).sum(axis=1, keepdims=True) / np.float32(extent)
    expected = ((a.astype(np.float32) - mean) + bias).astype(a.dtype)
    np.testing.assert_array_equal(run(client, centred(dtype, extent), a, bias)[0], expected)


@pytest.mark.parametrize("extent", [64, 128, 100])
def test_several_rows_of_a_block(client: GpuClient, extent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "FEW", 1)
    a = np.random.default_rng(0).integers(-9, 9, (5, extent)).astype(np.float32)
    bias = np.arange(extent, dtype=np.float32)
    mean = a.sum(axis=1, keepdims=True) / np.float32(extent)
    np.testing.assert_array_equal(run(client, centred("f32", extent), a, bias)[0], (a - mean) + bias)


def test_a_row_is_loaded_once() -> None:
    """Both loops over a row need it; the second one has it in registers, if these are enough. Otherwise, a loop of
    eight loads, and one of those that remain, load it again."""
    facts = nvptx.target("sm_90a")
    for extent, rounds, times in ((1024, 4, 1), (1 << 17, 9, 2)):
        text = emit_program(program_of(centred("f32", extent, 3000)), Nvptx(), facts).text
        loads = [line for line in text.splitlines() if "load <4 x float>" in line]
        assert all(line.endswith("align 16") for line in loads)
        assert len(loads) == rounds * (times + 1)


def column_means(extent: int, subtracted: bool) -> Kernel:
    """Returns the means of columns, or these, and the columns without them."""
    b = KernelBuilder("means")
    x, mean, y = (b.input("x", "f32", (extent, 37)), b.output("mean", "f32", (37,)), b.output("y", "f32", (extent, 37)))
    with b.parallel(37) as (i,):
        with b.reduction(extent, inits=[b.constant(0.0, "f32")], combiner="add") as total:
            total.yield_(b.load(x, total.index, i))
        average = b.divide(total.result, b.constant(float(extent), "f32"))
        b.store(mean, average, i)
        if subtracted:
            with b.parallel(extent) as (j,):
                b.store(y, b.subtract(b.load(x, j, i), average), j, i)
    return b.build()


@pytest.mark.parametrize("extent", [64, 900, 5000])
def test_columns_beside_one_another(client: GpuClient, extent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "FEW", 32)
    monkeypatch.setattr(rows, "LARGE", 1)
    a = np.random.default_rng(0).integers(-9, 9, (extent, 37)).astype(np.float32)
    expected = a.sum(axis=0) / np.float32(extent)
    mean, rest = run(client, column_means(extent, True), a)
    np.testing.assert_array_equal(mean, expected)
    np.testing.assert_array_equal(rest, a - expected)
    np.testing.assert_array_equal(run(client, column_means(extent, False), a)[0], expected)
