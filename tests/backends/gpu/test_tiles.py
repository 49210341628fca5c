"""When contractions are computed in tiles, and when with matrix instructions: these take the types of the operands as
they are, and f32 only if it may be rounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.backends.gpu.test_contraction import product
from trivium.backends.gpu import nvptx, spirv, tiles
from trivium.backends.gpu.schedule import parallel_loop
from trivium.backends.gpu.target import GpuTarget
from trivium.compiler.kernel.structure import Block
from trivium.compiler.program import Launch
from trivium.compiler.schedule import Unit
from trivium.compiler.stages import CompileOptions, Stages
from trivium.ir.func import Module


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "tiled"),
    [
        (1024, 1024, 64, 64),
        (512, 512, 64, 32),
        (1024, 8, 64, 0),
        (64, 64, 64, 0),
        (512, 512, 8, 0),
        (64, 64, 1 << 15, 64),
        (512, 512, 2048, 64),
    ],
)
def test_there_must_be_enough_tiles(rows: int, columns: int, depth: int, tiled: int) -> None:
    target = replace(nvptx.target("sm_80"), async_copies=False)
    (step,) = Stages(product(rows, columns, depth), target, CompileOptions()).program.steps
    assert isinstance(step, Launch)
    loop = parallel_loop(step.kernel)
    assert loop is not None
    plan = tiles.choose(step.kernel, loop, target)
    assert (tiles.tile(plan) if plan else 0) == tiled


@pytest.mark.parametrize(
    ("rows", "columns", "depth"), [((1 << 31) - 1, 16, 16), (16, (1 << 31) - 1, 16), (16, 16, (1 << 31) - 1)]
)
@pytest.mark.parametrize("more", [0, 1])
def test_iterations_have_numbers_of_32_bits(rows: int, columns: int, depth: int, more: int) -> None:
    """What is larger is computed without tiles: LLVM would cut its extents off."""
    sizes = [size + more if size > 16 else size for size in (rows, columns, depth)]
    for architecture in ("sm_80", "sm_90a"):
        target = replace(nvptx.target(architecture), memory_bytes=1 << 48)
        (step,) = Stages(product(sizes[0], sizes[1], sizes[2], dtype="bf16"), target, CompileOptions()).program.steps
        assert isinstance(step, Launch)
        loop = parallel_loop(step.kernel)
        assert loop is not None
        assert (tiles.choose(step.kernel, loop, target) is None) is bool(more)


def chosen(module: Module, target: GpuTarget) -> str:
    """Returns the type of the operands of the instruction that multiplies."""
    (step,) = Stages(module, target, CompileOptions()).program.steps
    assert isinstance(step, Launch)
    assert step.kernel.contraction is not None
    found = tiles.instruction(step.kernel.contraction, target)
    return found.operands if found else ""


@pytest.mark.parametrize(
    ("dtype", "tf32", "operands"),
    [("bf16", False, "bf16"), ("f16", True, "f16"), ("f32", False, ""), ("f32", True, "tf32"), ("f64", True, "")],
)
def test_instructions(dtype: str, tf32: bool, operands: str) -> None:
    assert chosen(product(64, 64, 64, dtype=dtype), replace(nvptx.target("sm_80"), tf32=tf32)) == operands
    assert chosen(product(64, 64, 64, dtype=dtype), spirv.target()) == ""


def test_what_is_computed_on_the_way_needs_registers() -> None:
    """Instructions that four warps share read memory."""
    target = replace(nvptx.target("sm_90a"), tf32=True)
    (step,) = Stages(product(64, 64, 64), target, CompileOptions()).program.steps
    assert isinstance(step, Launch)
    mark = step.kernel.contraction
    assert mark is not None
    for prologue, shared in ((None, True), (Block(), False)):
        computed = replace(mark, lhs_prologue=prologue)
        assert (tiles.warpgroup_instruction(computed, target) is not None) is shared
        assert tiles.instruction(computed, target) is not None


@pytest.mark.parametrize(("tile", "threads"), [(64, 128), (128, 256)])
def test_warps(tile: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((tile, 1),))
    target = nvptx.target("sm_80")
    (step,) = Stages(product(256, 256, 64, dtype="bf16"), target, CompileOptions()).program.steps
    assert isinstance(step, Launch)
    loop = parallel_loop(step.kernel)
    assert loop is not None
    plan = tiles.choose(step.kernel, loop, target)
    assert plan is not None
    assert tiles.launch(plan) == (256 * 256, (256 // tile) ** 2, threads)


@pytest.mark.parametrize(("layout", "rounded"), [((1, 1), True), ((1, 0), False)])
def test_only_what_the_device_copies_is_rounded(
    layout: tuple[int, int], rounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of these factors, only those whose depth is contiguous are boxes of square tiles."""
    monkeypatch.setattr(tiles, "THREADS_ROUND", False)
    target = replace(nvptx.target("sm_90a"), tf32=True)
    (step,) = Stages(product(1024, 1024, 256, layout), target, CompileOptions()).program.steps
    assert isinstance(step, Launch)
    loop = parallel_loop(step.kernel)
    assert loop is not None
    plan = tiles.choose(step.kernel, loop, target)
    assert plan is not None
    assert (plan.mapping(Unit.MATRIX) is not None) is rounded
