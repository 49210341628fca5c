"""Contractions in tiles, on a device of OpenCL and on the simulator: shapes that no tile divides, layouts, padding and
dilation, what is fused on the way in and out, and barriers."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import trivium
from tests.backends.gpu.simulator import LeaveOut, needs_simulator
from trivium.backends.gpu import assembly, nvptx, shapes, tiles
from trivium.backends.gpu.assembler import Assembler
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.dialect import Assembling
from trivium.backends.gpu.nvptx import Nvptx
from trivium.compiler.stages import CompileOptions, Stages
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import TensorType


@pytest.fixture(autouse=True)
def simple() -> Iterator[None]:
    """Lets simulated NVIDIA GPUs compute like all others, of which threads do not copy while they multiply. The fixture
    `monkeypatch`, which tests use after they have opened a device, must end before that device does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "SHAPES", ())
        yield


@pytest.fixture(params=[32, 64])
def tile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Lets every contraction that fits be computed in tiles of one size."""
    monkeypatch.setattr(tiles, "TILES", ((request.param, 1),))
    return request.param


def product(
    rows: int, columns: int, depth: int, layout: tuple[int, int] = (1, 0), dtype: str = "f32", epilogue: str = "tanh"
) -> Module:
    """Returns a product whose factors have their depth in these dimensions, and an op after it."""
    lhs, rhs = (rows, depth) if layout[0] else (depth, rows), (columns, depth) if layout[1] else (depth, columns)
    x, y, z = f"{lhs[0]}x{lhs[1]}x{dtype}", f"{rhs[0]}x{rhs[1]}x{dtype}", f"{rows}x{columns}xf32"
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [{layout[0]}] x [{layout[1]}]
        : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      %1 = stablehlo.{epilogue} %0 : tensor<{z}>
      return %1 : tensor<{z}>
    }}""")


def arrays(module: Module) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    kinds = [argument.type for argument in module.main.body.arguments]
    assert all(isinstance(kind, TensorType) for kind in kinds)
    return [(generator.standard_normal(kind.static_shape) / 4).astype(kind.dtype) for kind in kinds]


def compare(client: GpuClient, module: Module, tile: int) -> None:
    """Compares with the interpreter what is computed in tiles."""
    given, executable = arrays(module), client.compile(module)
    assert f"={tile} " in executable.artifact.texts["schedules"]  # type: ignore[attr-defined]
    (expected,), (result,) = evaluate(module, *given), executable.execute(*given)
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("rows", "columns", "depth"), [(40, 33, 4000), (16, 64, 5000), (130, 20, 2051)])
def test_blocks_share_long_sums(client: GpuClient, rows: int, columns: int, depth: int) -> None:
    """Always in the same way: the last block adds up what each has summed, in order, and runs the epilogue."""
    module = product(rows, columns, depth)
    given, executable = arrays(module), client.compile(module)
    assert re.search(rf"reduction {depth} grid\(0\)=\d+", executable.artifact.texts["schedules"])  # type: ignore[attr-defined]
    (expected,), (result,) = evaluate(module, *given), executable.execute(*given)
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(executable.execute(*given)[0], result)


@pytest.mark.parametrize(
    ("rows", "columns", "depth"),
    [(64, 64, 32), (16, 16, 16), (65, 33, 17), (31, 129, 40), (100, 20, 51), (128, 96, 16)],
)
def test_sizes(client: GpuClient, tile: int, rows: int, columns: int, depth: int) -> None:
    compare(client, product(rows, columns, depth), tile)


@pytest.mark.parametrize("layout", [(0, 0), (0, 1), (1, 1)])
def test_layouts(client: GpuClient, tile: int, layout: tuple[int, int]) -> None:
    compare(client, product(70, 40, 37, layout), tile)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_factors(client: GpuClient, tile: int, dtype: str) -> None:
    compare(client, product(70, 40, 37, dtype=dtype), tile)


def test_batches_with_what_is_before_and_after(client: GpuClient, tile: int) -> None:
    module = trivium.parse("""func.func @main(%x: tensor<3x40x37xf32>, %y: tensor<3x37x50xf32>, %z: tensor<50xf32>)
        -> tensor<3x40x50xf32> {
      %a = stablehlo.exponential %x : tensor<3x40x37xf32>
      %0 = stablehlo.dot_general %a, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<3x40x37xf32>, tensor<3x37x50xf32>) -> tensor<3x40x50xf32>
      %1 = stablehlo.broadcast_in_dim %z, dims = [2] : (tensor<50xf32>) -> tensor<3x40x50xf32>
      %2 = stablehlo.add %0, %1 : tensor<3x40x50xf32>
      %3 = stablehlo.logistic %2 : tensor<3x40x50xf32>
      return %3 : tensor<3x40x50xf32>
    }""")
    compare(client, module, tile)


@pytest.mark.parametrize(
    ("window", "size"),
    [
        ("pad = [[1, 1], [0, 2]]", "9x9"),
        ("stride = [2, 1], pad = [[2, 2], [1, 1]], rhs_dilate = [2, 1]", "5x9"),
        ("pad = [[1, 1], [1, 1]], lhs_dilate = [2, 3]", "17x25"),
    ],
)
def test_convolutions(client: GpuClient, tile: int, window: str, size: str) -> None:
    module = trivium.parse(f"""func.func @main(%x: tensor<2x9x9x8xf32>, %y: tensor<3x3x8x24xf32>)
        -> tensor<2x{size}x24xf32> {{
      %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{{window}}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<2x9x9x8xf32>, tensor<3x3x8x24xf32>) -> tensor<2x{size}x24xf32>
      return %0 : tensor<2x{size}x24xf32>
    }}""")
    compare(client, module, tile)


@needs_simulator
def test_every_barrier_is_needed(
    tile: int, simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch, leave_out_barrier: LeaveOut
) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    module = product(64, 64, 48)
    given, client = arrays(module), GpuClient(simulated_device, 0)
    (expected,) = evaluate(module, *given)

    def correct(left_out: int) -> tuple[bool, int]:
        places = leave_out_barrier(left_out)
        (result,) = client.compile(module).execute(*given)
        return np.allclose(result, expected, rtol=2e-5, atol=2e-5), next(places)

    assert correct(-1) == (True, 2)
    assert not correct(0)[0]
    assert not correct(1)[0]


COUNTING = {
    r"atomicrmw add (.*), i32 1 monotonic": r"atomicrmw add \1, i32 2 monotonic",
    r"  store i32 0, ptr addrspace\(1\) .*\n": "",
}
"""How a block says that it is done, and what makes the next launch count from zero; and what would be wrong there."""


@needs_simulator
@pytest.mark.parametrize("part", [None, *COUNTING])
def test_blocks_are_counted(part: str | None, simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    assemble: Callable[[Assembler, str, Assembling], bytes] = Assembler.compile

    def compile_(self: Assembler, text: str, how: Assembling) -> bytes:
        if part is not None:
            text, count = re.subn(part, COUNTING[part], text)
            assert count == 1
        return assemble(self, text, how)

    monkeypatch.setattr(Assembler, "compile", compile_)
    module = product(64, 64, 4000)
    given, executable = arrays(module), GpuClient(simulated_device, 0).compile(module)
    (expected,) = evaluate(module, *given)
    results = [executable.execute(*given)[0] for _ in range(3)]
    assert all(np.allclose(result, expected, rtol=2e-5, atol=2e-5) for result in results) == (part is None)


@needs_simulator
def test_all_threads_learn_whether_their_block_is_the_last(
    simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch, leave_out_barrier: LeaveOut
) -> None:
    """The barrier before a block is counted keeps other blocks from reading too early; blocks that run at the same time
    are not simulated."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    places = leave_out_barrier(3)
    module = product(64, 64, 4000)
    given, executable = arrays(module), GpuClient(simulated_device, 0).compile(module)
    assert next(places) == 4
    (expected,), (result,) = evaluate(module, *given), executable.execute(*given)
    assert not np.allclose(result, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is part of CUDA, which is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_registers(architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 65536 registers, each thread of three blocks has 80."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    facts, file = nvptx.target(architecture), tmp_path / "program.ptx"
    program = Stages(product(1024, 1000, 500), facts, CompileOptions()).program
    file.write_bytes(assembly.compiled(assembly.emit_program(program, Nvptx(), facts).text, Nvptx(), facts))
    command = ["ptxas", f"-arch={architecture}", "-v", str(file), "-o", str(tmp_path / "program.cubin")]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in report
    (registers,) = re.findall(r"Used (\d+) registers", report)
    assert int(registers) <= 80
