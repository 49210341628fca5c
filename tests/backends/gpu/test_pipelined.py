"""Products and convolutions whose pieces are copied while others are multiplied, on the simulator: shapes that no tile
divides, layouts, padding and dilation, what follows the sums, and each barrier and wait."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import trivium
from tests.backends.gpu.products import WINDOWS, expect_all_needed, schedules
from tests.backends.gpu.simulator import needs_simulator
from tests.backends.gpu.test_contraction import compare, product
from trivium.backends.gpu import assembly, nvptx, shapes
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.gpu.shapes import Shape
from trivium.compiler.stages import CompileOptions, Stages
from trivium.ir.func import Module

SHAPES = (
    Shape(32, 32, 64, 8, 4),
    Shape(32, 64, 128, 32, 2, 4),
    Shape(64, 32, 64, 16, 2),
    Shape(64, 64, 64, 8, 3),
)


@pytest.fixture
def client(simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch) -> GpuClient:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    return GpuClient(simulated_device, 0)


def convolution(window: str, size: str, features: int) -> Module:
    """Returns a convolution by one of `WINDOWS`, whose features are scaled, and to which other images are added."""
    x, y, z = f"2x9x9x{features}xf32", f"3x3x{features}x24xf32", f"2x{size}x24xf32"
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>, %a: tensor<24xf32>, %b: tensor<{z}>)
        -> tensor<{z}> {{
      %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{{window}}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      %1 = stablehlo.broadcast_in_dim %a, dims = [3] : (tensor<24xf32>) -> tensor<{z}>
      %2 = stablehlo.multiply %0, %1 : tensor<{z}>
      %3 = stablehlo.add %2, %b : tensor<{z}>
      return %3 : tensor<{z}>
    }}""")


def expect_pipelined(client: GpuClient, module: Module, shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "SHAPES", (shape,))
    assert f"={shape.stages}" in schedules(client.compile(module)).partition("stages")[2]
    compare(client, module, shape.columns)


@needs_simulator
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products(client: GpuClient, shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    """With whole copies and without, of parts of a long sum, and with tiles that are not full."""
    for rows, columns, depth, layout in (
        (shape.rows, shape.columns, 64, (1, 0)),
        (shape.rows + 1, shape.columns - 3, 45, (1, 0)),
        (70, 36, 100, (0, 0)),
        (20, 24, 500, (1, 1)),
    ):
        expect_pipelined(client, product(rows, columns, depth, layout, epilogue="negate"), shape, monkeypatch)


@needs_simulator
@pytest.mark.parametrize("features", [3, 16])
@pytest.mark.parametrize(("window", "size"), WINDOWS)
def test_convolutions(
    client: GpuClient, window: str, size: str, features: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of features that are whole pieces, or not."""
    expect_pipelined(client, convolution(window, size, features), SHAPES[features == 16], monkeypatch)


@needs_simulator
def test_batches(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    module = trivium.parse("""func.func @main(%x: tensor<3x40x37xf32>, %y: tensor<3x37x50xf32>, %z: tensor<50xf32>)
        -> tensor<3x40x50xf32> {
      %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<3x40x37xf32>, tensor<3x37x50xf32>) -> tensor<3x40x50xf32>
      %1 = stablehlo.broadcast_in_dim %z, dims = [2] : (tensor<50xf32>) -> tensor<3x40x50xf32>
      %2 = stablehlo.add %0, %1 : tensor<3x40x50xf32>
      %3 = stablehlo.logistic %2 : tensor<3x40x50xf32>
      return %3 : tensor<3x40x50xf32>
    }""")
    expect_pipelined(client, module, SHAPES[0], monkeypatch)


@needs_simulator
@pytest.mark.parametrize(
    ("word", "count", "shape"),
    [
        ("barrier", 2, Shape(64, 64, 64, 8, 2)),
        ("wait", 2, Shape(64, 64, 64, 8, 3)),
        ("barrier", 3, Shape(32, 64, 128, 16, 3, 2)),
    ],
)
def test_every_step_is_needed(
    client: GpuClient, word: str, count: int, shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapes, "SHAPES", (shape,))
    monkeypatch.setattr(shapes, "MOST_PARTS", 1)
    module = product(64, 64, 96, epilogue="abs")
    expect_all_needed(word, count, module, lambda: client.compile(module), monkeypatch)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is part of CUDA, which is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_registers(architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for 512 threads, which spill next to nothing."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    facts, file = nvptx.target(architecture), tmp_path / "program.ptx"
    for shape in shapes.SHAPES:
        monkeypatch.setattr(shapes, "SHAPES", (shape,))
        program = Stages(product(1024, 1000, 500), facts, CompileOptions()).program
        file.write_bytes(assembly.compiled(assembly.emit_program(program, Nvptx(), facts).text, Nvptx(), facts))
        command = ["ptxas", f"-arch={architecture}", "-v", str(file), "-o", str(tmp_path / "program.cubin")]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        ((registers, spilled),) = zip(
            re.findall(r"Used (\d+) registers", report), re.findall(r"(\d+) bytes spill stores", report), strict=True
        )
        assert int(registers) <= 128, shape
        assert int(spilled) <= 64, shape
