"""Tests that need an NVIDIA GPU: LLVM's code and the driver's compiler behave like the simulator, and matrix
instructions, asynchronous copies and atomic operations behave as we understand their documentation. `pytest -m gpu`
runs these tests. Every test reports all programs that are wrong: if one crashes or hangs, only its process ends."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.backends.gpu import hardware, tasks
from tests.backends.gpu.test_tensor_attention import TYPES
from tests.backends.gpu.workers import Task, outcomes
from tests.compiler.lowering.coverage import COMPILED
from tests.compiler.test_conformance import TRUE_TRANSFORMS, WRONG
from trivium.backends import client
from trivium.backends.gpu.client import GpuClient

pytestmark = pytest.mark.gpu

JOBS, LIMIT = 8, 180.0
"""Processes at a time, and the seconds after which a task is ended."""

LAYOUTS = [(1, 0), (0, 0), (0, 1), (1, 1)]


@pytest.fixture(autouse=True)
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names the first GPU to tasks, which run in other processes."""
    monkeypatch.setenv("TRIVIUM_TEST_DEVICE", "cuda:0")


def wrong(task: Task, items: Sequence[Any]) -> list[str]:
    return [f"{item}: {outcome}" for item, outcome in outcomes(task, items, JOBS, LIMIT) if outcome]


def test_records() -> None:
    assert not wrong(tasks.record, range(len(COMPILED)))


def test_random_programs() -> None:
    assert not wrong(tasks.program, range(300))


def test_vectors(conformance: Path) -> None:
    paths = sorted((conformance / "stablehlo" / "testdata").glob("*.mlir"))
    assert not wrong(tasks.vector, [path for path in paths if path.stem not in WRONG | TRUE_TRANSFORMS])


def test_matrix_instructions() -> None:
    shapes = (256, 256, 512), (1000, 200, 72), (65, 33, 17)
    assert not wrong(
        hardware.matrix_instructions,
        [(*item, "") for item in itertools.product(shapes, ("bf16", "f16", "f32"), LAYOUTS, (64, 128))],
    )


def test_hopper_s_instructions() -> None:
    """Sums as long as a pipeline's stages, longer, and much longer; several blocks share those of the last product."""
    found = client("cuda:0")
    assert isinstance(found, GpuClient)
    if not found.driver.target.warpgroup_instructions:
        pytest.skip("the device has no matrix instructions that four warps share")
    shapes = (128, 128, 192), (1000, 200, 72), (1024, 1024, 1024), (65, 33, 17), (256, 256, 8192)
    layouts = [layout for layout in LAYOUTS if layout != (0, 0)]
    items = itertools.product(shapes, ("bf16", "f16", "f32"), layouts, (64, 128))
    assert not wrong(hardware.matrix_instructions, [(*item, ")=128") for item in items])


def test_hopper_s_persistent_blocks() -> None:
    """One tile for each block, several, and several blocks for each."""
    found = client("cuda:0")
    assert isinstance(found, GpuClient)
    if not found.driver.target.bulk_copies:
        pytest.skip("the device does not copy boxes of arrays")
    shapes = (128, 256, 192), (1000, 200, 72), (4096, 4096, 200), (256, 256, 8192)
    layouts = [layout for layout in LAYOUTS if layout != (0, 0)]
    items = itertools.product(shapes, ("bf16", "f16", "f32"), layouts, (256,))
    assert not wrong(hardware.matrix_instructions, [(*item, "producer(0, 1)=128") for item in items])


def test_scatters() -> None:
    kinds = ("i32", True), ("ui8", True), ("f32", True), ("f32", False)
    assert not wrong(hardware.scatters, [(*kind, 50_000) for kind in kinds])


def test_running_sums_and_sorts() -> None:
    assert not wrong(hardware.running_sums, [4_000_000])
    assert not wrong(hardware.sorts, [1_000_000])


def test_attention() -> None:
    items = itertools.product(TYPES, ("", "causal", "added", "bool"), (64, 128), [200], [333])
    assert not wrong(hardware.attention, list(items))


def test_fences_between_blocks_that_share_a_tile() -> None:
    assert not wrong(hardware.fences, [(65_536, 200)])


def test_graphs_see_what_memory_holds_now() -> None:
    assert not wrong(hardware.graphs, [50])


def test_pytorch_s_streams() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    assert not wrong(hardware.streams, [40])
