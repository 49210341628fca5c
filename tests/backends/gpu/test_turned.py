"""Products of f32 that may be rounded, of which one factor lies in memory across the depth, and goes to matrix
instructions from registers: both sides, shapes, batches, sums that blocks share, rounding; no step may be missing; and
what ptxas makes of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import trivium
from tests.backends.gpu import products, simulator
from tests.backends.gpu.products import schedules
from tests.backends.gpu.test_bulk import client, compiled, expect_all_needed, expect_exact
from tests.backends.gpu.test_contraction import product
from tests.backends.gpu.test_persistent import small
from tests.backends.gpu.test_warpgroup import assembled, needs_ptxas
from trivium.backends.gpu import assembly, nvptx, persistent, tiles
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.nvptx import Nvptx
from trivium.compiler.driver import CompileOptions
from trivium.compiler.stages import Stages

__all__ = ["client", "small"]

pytestmark = simulator.needs_simulator


@pytest.mark.parametrize(
    ("shape", "layout"), [((200, 264, 164), (1, 0)), ((72, 40, 96), (1, 0)), ((132, 260, 160), (0, 1))]
)
def test_shapes(client: GpuClient, shape: tuple[int, int, int], layout: tuple[int, int]) -> None:
    module = product(*shape, layout, "f32", "negate")
    executable = compiled(client, module)
    rows, columns = (64, 128) if layout == (1, 0) else (128, 64)
    assert f"grid(0)={rows} grid(1)={columns} block(0, 1)=384" in schedules(executable)
    for seed in range(3):
        simulator.fake().fake_seed(seed)
        products.expect_exact(executable, module)


def test_the_tile_that_is_used(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "WIDE_TILES", ((128, 256),))
    expect_exact(client, product(264, 132, 96, (1, 0), "f32", "negate"))


def test_narrow_results_with_what_is_after(client: GpuClient) -> None:
    x, y, z = "3x40x48xf32", "48x72xf32", "3x40x72xbf16"
    module = trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>, %z: tensor<72xf32>) -> tensor<{z}> {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [2] x [0]
        : (tensor<{x}>, tensor<{y}>) -> tensor<3x40x72xf32>
      %1 = stablehlo.broadcast_in_dim %z, dims = [2] : (tensor<72xf32>) -> tensor<3x40x72xf32>
      %2 = stablehlo.add %0, %1 : tensor<3x40x72xf32>
      %3 = stablehlo.convert %2 : (tensor<3x40x72xf32>) -> tensor<{z}>
      return %3 : tensor<{z}>
    }}""")
    expect_exact(client, module)


def test_blocks_share_long_sums(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "parts", lambda *_: 2)
    module = product(40, 136, 2104, (1, 0), "f32", "negate")
    executable = compiled(client, module)
    assert "reduction 2104 grid(0)=" in schedules(executable)
    products.expect_exact(executable, module)


def test_both_factors_are_rounded(client: GpuClient) -> None:
    """To the nearest number, halves to even."""
    generator, module = np.random.default_rng(5), product(72, 136, 64, (1, 0), "f32", "negate")
    x, y = ((generator.standard_normal(shape) / 4).astype(np.float32) for shape in ((72, 64), (64, 136)))
    x[:, ::4] = 1 + (2 * np.arange(16) + 1) * np.float32(2.0**-11)
    (result,) = compiled(client, module).execute(x, y)
    lhs, rhs = (to_even(array).astype(np.float64) for array in (x, y))
    assert (to_even(x) != x).all()
    np.testing.assert_allclose(result, -(lhs @ rhs), atol=5e-6)


def to_even(array: np.ndarray) -> np.ndarray:
    bits = array.view(np.uint32)
    return (bits + np.uint32(0xFFF) + (bits >> 13 & 1) & np.uint32(0xFFFFE000)).view(np.float32)


PLACES = {
    "warp_barrier": 3,
    "arrive": 1,
    "wait_for_phase": 2,
    "begin_products": 1,
    "commit_products": 1,
    "end_products": 1,
}


@pytest.mark.parametrize("word", PLACES)
def test_every_step_is_needed(word: str, client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistent, "COLUMNS", 64)
    monkeypatch.setattr(tiles, "PROCESSORS", 1)
    module = product(64, 256, 192, (1, 0), "f32", epilogue="negate")
    expect_all_needed(word, PLACES[word], client, module, monkeypatch)


@needs_ptxas
@pytest.mark.parametrize("layout", [(1, 0), (0, 1)])
def test_registers(layout: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is spilled, and no `wgmma` waits for another one."""
    monkeypatch.setattr(tiles, "WIDE_TILES", ((128, 256),))
    facts = replace(nvptx.target("sm_90a"), tf32=True)
    module = product(1024, 1024, 512, layout, "f32")
    emitted = assembly.emit_program(Stages(module, facts, CompileOptions()).program, Nvptx(), facts)
    said = assembled(emitted.text, tmp_path)
    assert set(re.findall(r"(\d+) bytes (?:spill|stack)", said)) == {"0"}
    assert "setmaxnreg" not in said
