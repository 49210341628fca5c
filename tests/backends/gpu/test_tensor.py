"""Contractions by matrix instructions, on the simulator, which has the PTX ISA's words of each lane: shapes that no
tile divides, layouts, types, convolutions, what comes before and after; and no barrier or wait may be missing."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.backends.gpu import simulator
from tests.backends.gpu.products import (
    WINDOWS,
    batches,
    convolution,
    expect_all_needed,
    expect_exact,
    expect_rounded,
    integers,
    of_integers,
    schedules,
)
from tests.backends.gpu.test_contraction import product
from trivium.backends.gpu import assembly, nvptx
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.pjrt import LoadedExecutable
from trivium.compiler.driver import CompileOptions
from trivium.compiler.stages import Stages
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

pytestmark = pytest.mark.skipif(simulator.compiler() is None, reason="no compiler of C++ builds the simulator")

ROUNDED = CompileOptions(tf32=True)

SHAPES = [(64, 64, 64), (128, 128, 96), (16, 16, 16), (65, 33, 17), (100, 72, 80), (31, 129, 40), (17, 24, 200)]


@pytest.fixture
def client(simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch) -> GpuClient:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    return GpuClient(simulated_device, 0)


def compiled(client: GpuClient, module: Module, options: CompileOptions = ROUNDED) -> LoadedExecutable:
    executable = client.compile(module, options)
    assert "matrix" in schedules(executable)
    return executable


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", [(1, 0), (0, 1)])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_shapes(client: GpuClient, tile: int, dtype: str, layout: tuple[int, int], shape: tuple[int, int, int]) -> None:
    module = product(*shape, layout, dtype, "negate")
    expect_exact(compiled(client, module), module)


@pytest.mark.parametrize(("dtype", "layout"), [("bf16", (1, 0)), ("f16", (0, 1)), ("f32", (1, 1))])
@pytest.mark.parametrize("shape", [(40, 33, 2100), (16, 130, 2100)])
def test_blocks_share_long_sums(
    client: GpuClient, dtype: str, layout: tuple[int, int], shape: tuple[int, int, int]
) -> None:
    module = product(*shape, layout, dtype, "negate")
    executable = compiled(client, module)
    assert f"reduction {shape[2]} grid(0)=" in schedules(executable)
    expect_exact(executable, module)


@pytest.mark.parametrize(("dtype", "sums"), [("i8", "i32"), ("ui8", "ui32")])
@pytest.mark.parametrize("shape", SHAPES[2:5])
def test_integers(client: GpuClient, tile: int, dtype: str, sums: str, shape: tuple[int, int, int]) -> None:
    module = of_integers(*shape, (1, 0), dtype, sums)
    expect_exact(compiled(client, module), module)


@pytest.mark.parametrize(
    ("dtype", "options"), [("bf16", CompileOptions()), ("f16", CompileOptions()), ("f32", ROUNDED)]
)
def test_rounding(client: GpuClient, tile: int, dtype: str, options: CompileOptions) -> None:
    module = product(100, 72, 80, dtype=dtype)
    expect_rounded(compiled(client, module, options), module, (1, 0))


def test_f32_is_not_rounded_unless_the_user_allows_it(client: GpuClient, tile: int) -> None:
    assert "matrix" not in schedules(client.compile(product(64, 64, 64)))


def test_batches_with_what_is_before_and_after(client: GpuClient, tile: int) -> None:
    module = batches(37, "f32", "abs")
    expect_exact(compiled(client, module), module)


@pytest.mark.parametrize(("window", "size"), WINDOWS)
@pytest.mark.parametrize("features", [8, 5])
def test_convolutions(client: GpuClient, tile: int, window: str, size: str, features: int) -> None:
    module = convolution(window, size, features)
    expect_exact(compiled(client, module), module)


@pytest.mark.parametrize(("word", "count"), [("barrier", 3), ("wait", 1)])
def test_every_barrier_and_wait_is_needed(
    word: str, count: int, tile: int, client: GpuClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = product(tile, tile, 192, dtype="bf16", epilogue="negate")
    expect_all_needed(word, count, module, lambda: compiled(client, module), monkeypatch)


def test_waiting_for_one_group_too_few(tile: int, client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    wait, module = Nvptx.wait, product(tile, tile, 192, dtype="bf16", epilogue="negate")
    given = integers(module)
    monkeypatch.setattr(Nvptx, "wait", lambda self, code, groups: wait(self, code, groups + 1))
    assert (compiled(client, module).execute(*given)[0] != evaluate(module, *given)[0]).any()


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is part of CUDA, which is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_registers(architecture: str, dtype: str, tile: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 65536 registers, each thread of two blocks of 256 has 128."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    facts, file = replace(nvptx.target(architecture), tf32=True), tmp_path / "program.ptx"
    program = Stages(product(1024, 1024, 512, dtype=dtype), facts, CompileOptions()).program
    file.write_bytes(assembly.compiled(assembly.emit_program(program, Nvptx(), facts).text, Nvptx(), facts))
    command = ["ptxas", f"-arch={architecture}", "-v", str(file), "-o", str(tmp_path / "program.cubin")]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert set(re.findall(r"(\d+) bytes spill", report)) == {"0"}
    assert max(map(int, re.findall(r"Used (\d+) registers", report))) <= 128
    assert max(map(int, re.findall(r"(\d+) bytes smem", report))) <= 48 << 10
