"""Products in which one warp of a block only copies, on the simulator, which lets boxes arrive as late as they may, and
reads what matrix instructions multiply until somebody has waited for them: sums that take fewer and more pieces than
there are stages, blocks that share a tile; no step that orders the warps may be missing, or come too early; and the
registers of a thread."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import llvmlite.ir as ll
import pytest

from tests.backends.gpu import products, simulator
from tests.backends.gpu.products import of_integers, schedules
from tests.backends.gpu.test_bulk import client, compiled, expect_all_needed, expect_exact, reset
from tests.backends.gpu.test_contraction import product
from tests.backends.gpu.test_warpgroup import assembled, needs_ptxas, neighbours
from trivium.backends.gpu import assembly, nvptx, tiles
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.llvm.code import I32, Code
from trivium.compiler.driver import CompileOptions
from trivium.compiler.stages import Stages
from trivium.ir.errors import ExecutionError

__all__ = ["client"]

pytestmark = simulator.needs_simulator


@pytest.mark.parametrize("pieces", [1, 3, 7])
def test_lengths_of_sums(client: GpuClient, tile: int, pieces: int) -> None:
    module = product(tile, tile, 64 * pieces, (1, 0), "bf16", "negate")
    executable = compiled(client, module)
    assert "producer(0, 1)=32" in schedules(executable)
    for seed in range(3):
        simulator.fake().fake_seed(seed)
        products.expect_exact(executable, module)


def test_all_warps_multiply_if_the_device_copies_one_factor(client: GpuClient, tile: int) -> None:
    assert "producer" not in schedules(compiled(client, product(tile, 77, 64, (1, 0), "bf16"), copied=1))


def test_factors_are_rounded_on_the_way(client: GpuClient, tile: int) -> None:
    module = product(tile, tile, 96, (1, 1), "f32", "negate")
    executable = compiled(client, module)
    assert "producer" in schedules(executable)
    products.expect_exact(executable, module)


PLACES = {
    "barrier": 1,
    "partial_barrier": 2,
    "publish": 1,
    "start_count": 6,
    "expect": 1,
    "arrive": 1,
    "copy_box": 2,
    "wait_for_phase": 2,
    "begin_products": 1,
    "commit_products": 1,
    "end_products": 2,
}


@pytest.mark.parametrize("word", PLACES)
def test_every_step_is_needed(word: str, client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    module = product(64, 64, 448, (1, 1), "bf16", epilogue="negate")
    expect_all_needed(word, PLACES[word], client, module, monkeypatch)


def _arrives_too_often(kept: Any, self: Nvptx, code: Code, count: ll.Value) -> None:
    kept(self, code, count)
    kept(self, code, count)


def _waits_for_fewer(kept: Any, self: Nvptx, code: Code, sums: list[ll.Value], groups: int = 0) -> list[ll.Value]:
    return kept(self, code, sums, groups + (groups > 0))


def _waits_for_the_other_phase(kept: Any, self: Nvptx, code: Code, count: ll.Value, phase: ll.Value) -> None:
    kept(self, code, count, code.builder.xor(phase, I32(1)))


def _counts_fewer(kept: Any, self: Nvptx, code: Code, count: ll.Value, threads: int = 1) -> None:
    kept(self, code, count, threads - (threads > 1))


def _meets_fewer(kept: Any, self: Nvptx, code: Code, threads: int) -> None:
    kept(self, code, threads - 32)


CHANGES = {
    "arrive": _arrives_too_often,
    "end_products": _waits_for_fewer,
    "wait_for_phase": _waits_for_the_other_phase,
    "start_count": _counts_fewer,
    "partial_barrier": _meets_fewer,
}


@pytest.mark.parametrize("word", CHANGES)
def test_numbers_matter(word: str, client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    kept, change = getattr(Nvptx, word), CHANGES[word]
    module = product(64, 64, 448, (1, 1), "bf16", epilogue="negate")
    monkeypatch.setattr(Nvptx, word, lambda self, *operands: change(kept, self, *operands))
    for seed in range(4):
        reset()
        simulator.fake().fake_seed(seed)
        try:
            expect_exact(client, module)
        except (AssertionError, ExecutionError):
            reset()
            return
    raise AssertionError("all results are right")


# ptxas


@needs_ptxas
@pytest.mark.parametrize(
    ("dtype", "layout", "depth"),
    [("bf16", (1, 0), 512), ("f16", (0, 1), 512), ("bf16", (1, 1), 8192), ("i8", (1, 1), 512), ("share", (1, 0), 72)],
)
def test_registers(
    dtype: str, layout: tuple[int, int], depth: int, tile: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two blocks fit, also if their launch is shared by several products; nothing is spilled, and no `wgmma` waits for
    another one."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    size, facts = (1024, 1024, depth), nvptx.target("sm_90a")
    if dtype == "share":
        module = neighbours()
    else:
        module = of_integers(*size, layout, "i8", "i32") if dtype == "i8" else product(*size, layout, dtype)
    emitted = assembly.emit_program(Stages(module, facts, CompileOptions()).program, Nvptx(), facts)
    assert "barrier.cta.sync.aligned.count" in emitted.text
    said = assembled(emitted.text, tmp_path)
    assert set(re.findall(r"(\d+) bytes (?:spill|stack)", said)) == {"0"}
    threads = tiles.SQUARE.resident * max(one.threads for work in emitted.work.values() for one in work.functions)
    assert threads == 2 * (tiles.WARP_COLUMNS * tile // 16 + 32)
    assert max(map(int, re.findall(r"Used (\d+) registers", said))) <= (1 << 16) // threads // 8 * 8
