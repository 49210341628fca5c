"""Contractions by the matrix instructions of Hopper whose factors the threads copy (`test_bulk.py` has those that the
device copies by itself), on the simulator, which decodes their descriptions of matrices as
the PTX ISA has them, and lets them read and write as late, and as early, as they may: shapes that no tile divides,
layouts, types, convolutions, shared launches; and no barrier, wait or fence may be missing."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import llvmlite.ir as ll
import pytest

import trivium
from tests.backends.gpu import simulator, tasks
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
from tests.garbage import collected
from tests.random_programs.programs import program_of_neighbours
from trivium.backends.gpu import assembly, nvptx, tiles
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.llvm.code import Code
from trivium.backends.pjrt import LoadedExecutable
from trivium.compiler.driver import CompileOptions
from trivium.compiler.stages import Stages
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

pytestmark = pytest.mark.skipif(simulator.compiler() is None, reason="no compiler of C++ builds the simulator")

ROUNDED = CompileOptions(tf32=True)

FACTS = replace(nvptx.target("sm_90a"), bulk_copies=False)

SHAPES = [(128, 128, 64), (65, 33, 17), (100, 200, 136), (31, 129, 72)]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[GpuClient]:
    """A simulated GPU of compute capability 9.0 without TMA, which must have nothing allocated at the end."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    fake = simulator.fake()
    fake.fake_reset(0, 0)
    fake.fake_capability(9, 0)
    with simulator.opened() as opened, collected():
        opened.target = replace(opened.target, bulk_copies=False)
        yield GpuClient(opened, 0)
    assert fake.fake_live() == 0
    fake.fake_reset(0, 0)


def compiled(client: GpuClient, module: Module, options: CompileOptions = ROUNDED) -> LoadedExecutable:
    executable = client.compile(module, options)
    assert re.search(r"matrix\([\d, ]+\)=128", schedules(executable))
    return executable


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", [(1, 0), (0, 1)])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_shapes(client: GpuClient, tile: int, dtype: str, layout: tuple[int, int], shape: tuple[int, int, int]) -> None:
    module = product(*shape, layout, dtype, "negate")
    expect_exact(compiled(client, module), module)


@pytest.mark.parametrize(("dtype", "sums"), [("i8", "i32"), ("ui8", "ui32")])
@pytest.mark.parametrize("layout", [(1, 1), (0, 0)])
def test_integers(client: GpuClient, tile: int, dtype: str, sums: str, layout: tuple[int, int]) -> None:
    module = of_integers(100, 72, 208, layout, dtype, sums)
    expect_exact(compiled(client, module), module)


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_rounding(client: GpuClient, tile: int, dtype: str) -> None:
    module = product(100, 72, 80, (1, 1), dtype)
    expect_rounded(compiled(client, module), module, (1, 1))


@pytest.mark.parametrize(("dtype", "layout"), [("bf16", (1, 0)), ("f32", (1, 1))])
def test_blocks_share_long_sums(client: GpuClient, dtype: str, layout: tuple[int, int]) -> None:
    module = product(40, 130, 2100, layout, dtype, "negate")
    executable = compiled(client, module)
    assert "reduction 2100 grid(0)=" in schedules(executable)
    expect_exact(executable, module)


def test_batches_with_what_is_after(client: GpuClient, tile: int) -> None:
    module = batches(40, "bf16")
    expect_exact(compiled(client, module), module)


@pytest.mark.parametrize(("window", "size"), [WINDOWS[0], WINDOWS[2]])
@pytest.mark.parametrize("features", [8, 5])
def test_convolutions(client: GpuClient, tile: int, window: str, size: str, features: int) -> None:
    module = convolution(window, size, features)
    expect_exact(compiled(client, module), module)


def neighbours() -> Module:
    """Returns products that share a launch: of one form, and of another one with other factors."""
    x, y, z = "70x72xbf16", "72x40xbf16", "72x40xf16"
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>, %z: tensor<{y}>, %u: tensor<70x72xf16>,
        %v: tensor<{z}>) -> (tensor<70x40xf32>, tensor<70x40xf32>, tensor<70x40xf32>) {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<{x}>, tensor<{y}>) -> tensor<70x40xf32>
      %1 = stablehlo.dot_general %x, %z, contracting_dims = [1] x [0]
        : (tensor<{x}>, tensor<{y}>) -> tensor<70x40xf32>
      %2 = stablehlo.dot_general %u, %v, contracting_dims = [1] x [0]
        : (tensor<70x72xf16>, tensor<{z}>) -> tensor<70x40xf32>
      return %0, %1, %2 : tensor<70x40xf32>, tensor<70x40xf32>, tensor<70x40xf32>
    }}""")


def test_products_share_a_launch(client: GpuClient, tile: int) -> None:
    module = neighbours()
    executable = compiled(client, module)
    simulator.fake().fake_reset(0, 0)
    expect_exact(executable, module)
    assert simulator.fake().fake_log().decode().split().count("cuLaunchKernel") == 1


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_whose_products_share_launches(
    client: GpuClient, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    assert not tasks.judged(client, program_of_neighbours(seed), seed)


def test_f32_is_not_rounded_unless_the_user_allows_it(client: GpuClient, tile: int) -> None:
    assert "matrix" not in schedules(client.compile(product(64, 64, 64)))


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_only_hopper_has_these_instructions(architecture: str, tile: int) -> None:
    facts = nvptx.target(architecture)
    text = assembly.emit_program(
        Stages(product(128, 128, 64, dtype="bf16"), facts, CompileOptions()).program, Nvptx(), facts
    ).text
    assert "mma" in text
    assert "wgmma" not in text


PLACES = {"barrier": 3, "wait": 1, "publish": 1, "begin_products": 1, "commit_products": 1, "end_products": 1}


@pytest.mark.parametrize("word", PLACES)
def test_every_barrier_fence_and_wait_is_needed(
    word: str, tile: int, client: GpuClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = product(tile, tile, 320, dtype="bf16", epilogue="negate")
    expect_all_needed(word, PLACES[word], module, lambda: compiled(client, module), monkeypatch)


@pytest.mark.parametrize(("lead", "stride"), [(2, 1), (1, 2)])
def test_descriptions_of_matrices_matter(
    lead: int, stride: int, client: GpuClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((128, 1),))
    kept, module = Nvptx.matrix, product(128, 128, 128, (1, 0), "bf16", "negate")
    given = integers(module)

    def matrix(self: Nvptx, code: Code, pointer: ll.Value, one: int, other: int) -> ll.Value:
        return kept(self, code, pointer, lead * one, stride * other)

    monkeypatch.setattr(Nvptx, "matrix", matrix)
    assert (compiled(client, module).execute(*given)[0] != evaluate(module, *given)[0]).any()


def assembled(text: str, folder: Path) -> str:
    """Returns what ptxas says of a module."""
    file = folder / "program.ptx"
    file.write_bytes(assembly.compiled(text, Nvptx(), nvptx.target("sm_90a")))
    command = ["ptxas", "-arch=sm_90a", "-v", str(file), "-o", str(folder / "program.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = done.stdout + done.stderr
    # Otherwise, it says that it lets one matrix instruction wait for another.
    assert "wgmma" not in said
    assert "warning" not in said
    return said


needs_ptxas = pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is part of CUDA, which is not installed")


def one_after_the_other() -> Module:
    """Returns two products, each of which is a launch."""
    x, y = "72x72xbf16", "72x72xf32"
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{x}>, %z: tensor<{x}>) -> tensor<{y}> {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<{x}>, tensor<{x}>) -> tensor<{x}>
      %1 = stablehlo.dot_general %0, %z, contracting_dims = [1] x [0] : (tensor<{x}>, tensor<{x}>) -> tensor<{y}>
      return %1 : tensor<{y}>
    }}""")


def test_products_one_after_the_other(client: GpuClient, tile: int) -> None:
    module = one_after_the_other()
    expect_exact(compiled(client, module), module)


@needs_ptxas
def test_kernels_with_memory_that_launches_grant(tile: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    facts = FACTS
    program = Stages(one_after_the_other(), facts, CompileOptions()).program
    said = assembled(assembly.emit_program(program, Nvptx(), facts).text, tmp_path)
    assert said.count("Used") == 2


@needs_ptxas
@pytest.mark.parametrize(
    ("dtype", "layout", "depth", "most"),
    [
        ("bf16", (1, 0), 512, 128),
        ("f16", (0, 1), 512, 128),
        ("bf16", (1, 1), 8192, 128),
        ("f32", (1, 1), 512, 128),
        ("i8", (1, 1), 512, 128),
        ("f32", (0, 0), 512, 255),
        ("bf16", (1, 0), 517, 255),
    ],
)
def test_registers(
    dtype: str,
    layout: tuple[int, int],
    depth: int,
    most: int,
    tile: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 65536 registers, each thread of two blocks of 256 has 128; of 227 KiB of shared memory, a block has half. What
    is copied element by element takes more registers."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    facts = replace(FACTS, tf32=True)
    size = (1024, 1023 if depth % 2 else 1024, depth)
    module = of_integers(*size, layout, "i8", "i32") if dtype == "i8" else product(*size, layout, dtype)
    program = Stages(module, facts, CompileOptions()).program
    emitted = assembly.emit_program(program, Nvptx(), facts)
    assert "wgmma" in emitted.text
    said = assembled(emitted.text, tmp_path)
    assert set(re.findall(r"(\d+) bytes spill", said)) == {"0"}
    assert max(map(int, re.findall(r"Used (\d+) registers", said))) <= most
    (work,) = emitted.work.values()
    assert max(one.memory for one in work.functions) <= 113 << 10
