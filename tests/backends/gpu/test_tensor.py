"""Contractions by matrix instructions, on the simulator, which has the PTX ISA's words of each lane: shapes that no
tile divides, layouts, types, convolutions, what comes before and after; and no barrier or wait may be missing."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import trivium
from tests.backends.gpu import simulator
from tests.backends.gpu.test_contraction import arrays, product
from trivium.backends.gpu import assembly, nvptx, tiles
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.llvm.code import Code
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


@pytest.fixture(params=[64, 128])
def tile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Lets every contraction that fits be computed in tiles of one size."""
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((request.param, 1),))
    return request.param


def compiled(client: GpuClient, module: Module, options: CompileOptions = ROUNDED) -> LoadedExecutable:
    executable = client.compile(module, options)
    assert "matrix" in executable.artifact.texts["schedules"]  # type: ignore[attr-defined]
    return executable


def integers(module: Module) -> list[np.ndarray]:
    """Returns small numbers, whose products and sums are exact in every type."""
    generator = np.random.default_rng(0)
    kinds = [argument.type for argument in module.main.body.arguments]
    return [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]  # type: ignore[union-attr]


def expect_exact(client: GpuClient, module: Module) -> None:
    given = integers(module)
    (expected,), (result,) = evaluate(module, *given), compiled(client, module).execute(*given)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", [(1, 0), (0, 1)])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_shapes(client: GpuClient, tile: int, dtype: str, layout: tuple[int, int], shape: tuple[int, int, int]) -> None:
    expect_exact(client, product(*shape, layout, dtype, "negate"))


@pytest.mark.parametrize(("dtype", "layout"), [("bf16", (1, 0)), ("f16", (0, 1)), ("f32", (1, 1))])
@pytest.mark.parametrize("shape", [(40, 33, 2100), (16, 130, 2100)])
def test_blocks_share_long_sums(
    client: GpuClient, dtype: str, layout: tuple[int, int], shape: tuple[int, int, int]
) -> None:
    module = product(*shape, layout, dtype, "negate")
    assert f"reduction {shape[2]} grid(0)=" in compiled(client, module).artifact.texts["schedules"]  # type: ignore[attr-defined]
    expect_exact(client, module)


@pytest.mark.parametrize(("dtype", "sums"), [("i8", "i32"), ("ui8", "ui32")])
@pytest.mark.parametrize("shape", SHAPES[2:5])
def test_integers(client: GpuClient, tile: int, dtype: str, sums: str, shape: tuple[int, int, int]) -> None:
    rows, columns, depth = shape
    expect_exact(
        client,
        trivium.parse(f"""func.func @main(%x: tensor<{rows}x{depth}x{dtype}>, %y: tensor<{depth}x{columns}x{dtype}>)
            -> tensor<{rows}x{columns}x{sums}> {{
          %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
            : (tensor<{rows}x{depth}x{dtype}>, tensor<{depth}x{columns}x{dtype}>) -> tensor<{rows}x{columns}x{sums}>
          return %0 : tensor<{rows}x{columns}x{sums}>
        }}"""),
    )


@pytest.mark.parametrize(
    ("dtype", "options", "error"),
    [("bf16", CompileOptions(), 2e-6), ("f16", CompileOptions(), 2e-6), ("f32", ROUNDED, 5e-3)],
)
def test_rounding(client: GpuClient, dtype: str, options: CompileOptions, error: float) -> None:
    """bf16 and f16 are added up in f32; f32 is rounded to tf32, if the user allows that."""
    module = product(100, 72, 80, dtype=dtype)
    given = arrays(module)
    lhs, rhs = (a.astype(np.float64) for a in given)
    (result,) = client.compile(module, options).execute(*given)
    np.testing.assert_allclose(result, np.tanh(lhs @ rhs), atol=error)


def test_f32_is_not_rounded_unless_the_user_allows_it(client: GpuClient, tile: int) -> None:
    executable = client.compile(product(64, 64, 64))
    assert "matrix" not in executable.artifact.texts["schedules"]  # type: ignore[attr-defined]


def test_batches_with_what_is_before_and_after(client: GpuClient, tile: int) -> None:
    module = trivium.parse("""func.func @main(%x: tensor<3x40x37xf32>, %y: tensor<3x37x50xf32>, %z: tensor<50xf32>)
        -> tensor<3x40x50xf32> {
      %a = stablehlo.abs %x : tensor<3x40x37xf32>
      %0 = stablehlo.dot_general %a, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<3x40x37xf32>, tensor<3x37x50xf32>) -> tensor<3x40x50xf32>
      %1 = stablehlo.broadcast_in_dim %z, dims = [2] : (tensor<50xf32>) -> tensor<3x40x50xf32>
      %2 = stablehlo.add %0, %1 : tensor<3x40x50xf32>
      return %2 : tensor<3x40x50xf32>
    }""")
    expect_exact(client, module)


@pytest.mark.parametrize(
    ("window", "size"),
    [
        ("pad = [[1, 1], [0, 2]]", "9x9"),
        ("stride = [2, 1], pad = [[2, 2], [1, 1]], rhs_dilate = [2, 1]", "5x9"),
        ("pad = [[1, 1], [1, 1]], lhs_dilate = [2, 3]", "17x25"),
    ],
)
@pytest.mark.parametrize("features", [8, 5])
def test_convolutions(client: GpuClient, tile: int, window: str, size: str, features: int) -> None:
    x, y, z = f"2x9x9x{features}xbf16", f"3x3x{features}x24xbf16", f"2x{size}x24xf32"
    expect_exact(
        client,
        trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{{window}}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      return %0 : tensor<{z}>
    }}"""),
    )


@pytest.mark.parametrize("word", ["barrier", "wait"])
def test_every_barrier_and_wait_is_needed(
    word: str, tile: int, client: GpuClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, module = getattr(Nvptx, word), product(tile, tile, 192, dtype="bf16", epilogue="negate")
    given = integers(module)
    (expected,) = evaluate(module, *given)

    def correct(left_out: int) -> tuple[bool, int]:
        places = itertools.count()

        def emit(self: Nvptx, code: Code, *operands: int) -> None:
            if next(places) != left_out:
                kept(self, code, *operands)

        monkeypatch.setattr(Nvptx, word, emit)
        executable = compiled(client, module)
        return all(right_with(executable, seed) for seed in range(4)), next(places)

    def right_with(executable: LoadedExecutable, seed: int) -> bool:
        simulator.fake().fake_seed(seed)
        return np.array_equal(executable.execute(*given)[0], expected)

    assert correct(-1) == (True, 3 if word == "barrier" else 1)
    assert not any(correct(number)[0] for number in range(3 if word == "barrier" else 1))


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
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert set(re.findall(r"(\d+) bytes spill", told)) == {"0"}
    assert max(map(int, re.findall(r"Used (\d+) registers", told))) <= 128
    assert max(map(int, re.findall(r"(\d+) bytes smem", told))) <= 48 << 10
