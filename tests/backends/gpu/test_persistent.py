"""Products in large tiles of which each block computes several, on the simulator: fewer blocks than tiles, batches,
epilogues that store and read vectors, sums that blocks share; no step that orders warps, and no exchange of registers,
may be missing; and what ptxas makes of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.backends.gpu import products, simulator, tasks
from tests.backends.gpu.products import of_integers, schedules
from tests.backends.gpu.test_bulk import client, compiled, expect_all_needed, expect_exact, heads, reset
from tests.backends.gpu.test_contraction import product
from tests.backends.gpu.test_warpgroup import assembled, needs_ptxas, neighbours
from tests.random_programs.programs import program_of_neighbours, program_of_products
from trivium.backends.gpu import assembly, contracted, nvptx, persistent, tiles
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.nvptx import Nvptx
from trivium.compiler.driver import CompileOptions
from trivium.compiler.stages import Stages
from trivium.ir.errors import ExecutionError

__all__ = ["client"]

pytestmark = simulator.needs_simulator


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets smaller tiles, and two blocks, do the same, which takes the simulator less time."""
    monkeypatch.setattr(tiles, "WIDE_TILES", ((128, 64),))
    monkeypatch.setattr(tiles, "WIDE_LEAST", 1)
    monkeypatch.setattr(tiles, "WIDE_WASTE", float("inf"))
    monkeypatch.setattr(tiles, "PROCESSORS", 2)


@pytest.mark.parametrize(
    ("shape", "layout", "dtype"),
    [((128, 64, 448), (1, 0), "bf16"), ((304, 200, 72), (0, 0), "f16"), ((130, 136, 328), (1, 1), "bf16")],
)
def test_tiles_one_after_the_other(
    client: GpuClient, shape: tuple[int, int, int], layout: tuple[int, int], dtype: str
) -> None:
    module = product(*shape, layout, dtype, "negate")
    executable = compiled(client, module)
    assert "grid(0)=128 grid(1)=64 block(0, 1)=384" in schedules(executable)
    for seed in range(3):
        simulator.fake().fake_seed(seed)
        products.expect_exact(executable, module)


def test_bands_of_tiles(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one has fewer rows."""
    monkeypatch.setattr(contracted, "BAND", 2)
    expect_exact(client, product(632, 200, 64, (1, 1), "bf16", "negate"))


@pytest.mark.parametrize("wide", tiles.WIDE_TILES)
def test_the_tiles_that_are_used(wide: tuple[int, int], client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    monkeypatch.setattr(tiles, "WIDE_TILES", (wide,))
    monkeypatch.setattr(tiles, "WIDE_LEAST", 1)
    monkeypatch.setattr(tiles, "WIDE_WASTE", float("inf"))
    monkeypatch.setattr(tiles, "PROCESSORS", 1)
    module = product(130, 264, 136, (1, 0), "bf16", "negate")
    executable = compiled(client, module)
    assert f"grid(0)=128 grid(1)={wide[1]}" in schedules(executable)
    products.expect_exact(executable, module)


def test_batches(client: GpuClient) -> None:
    expect_exact(client, heads("[0, 2, 1, 3]", "2x3x40x16"))


def test_integers(client: GpuClient) -> None:
    expect_exact(client, of_integers(200, 72, 208, (1, 1), "i8", "i32"))


def test_blocks_share_long_sums(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "parts", lambda *_: 2)
    module = product(40, 136, 2104, (1, 0), "bf16", "negate")
    executable = compiled(client, module)
    assert "reduction 2104 grid(0)=" in schedules(executable)
    for _ in range(2):
        products.expect_exact(executable, module)


def test_a_block_computes_several_shares_of_tiles(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "parts", lambda *_: 3)
    module = product(130, 72, 712, (1, 0), "bf16", "negate")
    executable = compiled(client, module)
    assert "reduction 712 grid(0)=256" in schedules(executable)
    for seed in range(3):
        simulator.fake().fake_seed(seed)
        products.expect_exact(executable, module)


@pytest.mark.parametrize("seed", range(3))
def test_random_products(client: GpuClient, seed: int) -> None:
    assert not tasks.judged(client, program_of_products(seed), seed, CompileOptions(tf32=True))


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_whose_products_share_launches(client: GpuClient, seed: int) -> None:
    assert not tasks.judged(client, program_of_neighbours(seed), seed)


PLACES = {
    "warp_barrier": 3,
    "arrive": 2,
    "wait_for_phase": 2,
    "end_products": 2,
    "leave_registers": 1,
    "take_registers": 1,
}
"""The steps beyond those that `test_producers.py` leaves out."""


@pytest.mark.parametrize("word", PLACES)
def test_every_step_is_needed(word: str, client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "PROCESSORS", 1)
    monkeypatch.setattr(persistent, "COLUMNS", 32)
    module = product(128, 128, 384, (1, 1), "bf16", epilogue="negate")
    expect_all_needed(word, PLACES[word], client, module, monkeypatch)


@pytest.mark.parametrize("count", [240, 160])
def test_registers_are_exchanged(count: int, client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """There must be as many as are taken, and more than at the beginning."""
    monkeypatch.setattr(persistent, "MULTIPLYING", count)
    module = product(128, 64, 64, (1, 1), "bf16", epilogue="negate")
    with pytest.raises(ExecutionError, match="registers are taken"):
        expect_exact(client, module)
    reset()


# ptxas


@needs_ptxas
@pytest.mark.parametrize(
    ("dtype", "layout", "depth"),
    [("bf16", (1, 0), 512), ("f16", (0, 1), 512), ("bf16", (1, 1), 8192), ("i8", (1, 1), 512), ("share", (1, 0), 72)],
)
def test_registers(
    dtype: str, layout: tuple[int, int], depth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is spilled, no `wgmma` waits for another one, and warps do exchange registers, also if their launch is
    shared by several products."""
    monkeypatch.undo()
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    monkeypatch.setattr(tiles, "WIDE_LEAST", 1)
    monkeypatch.setattr(tiles, "WIDE_WASTE", float("inf"))
    size, facts = (1024, 1024, depth), nvptx.target("sm_90a")
    if dtype == "share":
        module = neighbours()
    else:
        module = of_integers(*size, layout, "i8", "i32") if dtype == "i8" else product(*size, layout, dtype)
    emitted = assembly.emit_program(Stages(module, facts, CompileOptions()).program, Nvptx(), facts)
    assert "setmaxnreg.inc" in emitted.text
    said = assembled(emitted.text, tmp_path)
    assert "setmaxnreg" not in said
    assert set(re.findall(r"(\d+) bytes (?:spill|stack)", said)) == {"0"}
    assert set(re.findall(r"Used (\d+) registers", said)) == {"168"}
    assert {one.memory for work in emitted.work.values() for one in work.functions} <= set(range(227 << 10))
