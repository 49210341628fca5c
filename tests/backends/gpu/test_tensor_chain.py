"""The gradients of attention with matrix instructions, on simulated NVIDIA GPUs."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.backends.gpu import simulator
from tests.backends.gpu.simulator import needs_simulator
from tests.backends.gpu.test_shared_rows import ptxas_report
from tests.compiler.attention import changed
from tests.compiler.attention_gradients import Gradients
from tests.garbage import collected
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.llvm.code import Code
from trivium.backends.pjrt import LoadedExecutable
from trivium.compiler.driver import CompileOptions
from trivium.ir.interpreter import evaluate

pytestmark = needs_simulator


@contextmanager
def client(capability: int) -> Iterator[GpuClient]:
    """A simulated GPU, which must have nothing allocated at the end."""
    fake = simulator.fake()
    fake.fake_reset(0, 0)
    fake.fake_capability(capability, 0)
    with simulator.opened() as opened, collected():
        yield GpuClient(opened, 0)
    assert fake.fake_live() == 0
    fake.fake_reset(0, 0)


def compiled(device: GpuClient, case: Gradients) -> LoadedExecutable:
    executable = device.compile(case.module(), CompileOptions(tf32=case.dtype == "f32"))
    schedules = executable.artifact.texts["schedules"]  # type: ignore[attr-defined]
    assert schedules.count(": schedule") == schedules.count("matrix") == (1 if case.queries_only else 3)
    return executable


def difference(case: Gradients, given: list[np.ndarray], results: Sequence[np.ndarray]) -> float:
    """Returns the greatest error of a gradient, relative to its greatest element."""
    pairs = zip(results, case.expected(*given), strict=True)
    return max(float(np.abs(result - expected).max() / np.abs(expected).max()) for result, expected in pairs)


CASE = Gradients()


@pytest.mark.parametrize(
    ("capability", "case"),
    [
        (8, CASE),
        (8, replace(CASE, dtype="f16", mask="added", rounded=True)),
        (8, replace(CASE, dtype="f32", mask="causal")),
        (9, CASE),
        (9, replace(CASE, mask="causal", rounded=True, queries=130, keys=130, depth=64, features=64)),
        (9, replace(CASE, dtype="f16", mask="added", depth=100, features=128)),
    ],
)
def test_shapes_and_masks(monkeypatch: pytest.MonkeyPatch, capability: int, case: Gradients) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    most, given = 3e-3 if case.dtype == "f32" else 2e-2 if case.rounded else 1e-5, case.arguments()
    with client(capability) as device:
        assert difference(case, given, compiled(device, case).execute(*given)) < most


PLACES = [(8, "barrier", 1), (8, "wait", 1), (9, "barrier", 1), (9, "wait", 1), (9, "publish", 1)]
PLACES += [(9, word, 2) for word in ("begin_products", "commit_products", "end_products")]


def test_queries_times_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    case = replace(CASE, heads=1, queries=16, keys=20)
    query = f"tensor<{case.heads}x{case.queries}x{case.depth}xf32>"
    scale = "%c = stablehlo.constant dense<{}> : {}"
    module = changed(case.text(), (scale.format(0.25, query), scale.format("0.0", query)))
    given = case.arguments()
    with client(9) as device:
        found = device.compile(module, CompileOptions()).execute(*given)
        for result, expected in zip(found, evaluate(module, *given), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("capability", "word", "count"), PLACES)
def test_every_barrier_fence_and_wait_is_needed(
    capability: int, word: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    case, kept = (
        Gradients(heads=1, queries=64, keys=192, depth=16, features=32, queries_only=True),
        getattr(Nvptx, word),
    )
    given = case.arguments()

    def correct(left_out: int) -> bool:
        places = itertools.count()

        def emit(self: Nvptx, code: Code, *operands: object) -> object:
            if next(places) == left_out:
                return operands[0] if operands and word != "wait" else None
            return kept(self, code, *operands)

        monkeypatch.setattr(Nvptx, word, emit)
        with client(capability) as device:
            executable = compiled(device, case)
            assert next(places) == count
            return all(right_with(executable, seed) for seed in range(4))

    def right_with(executable: LoadedExecutable, seed: int) -> bool:
        simulator.fake().fake_seed(seed)
        return difference(case, given, executable.execute(*given)) < 1e-4

    assert correct(-1)
    assert not any(correct(number) for number in range(count))


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is part of CUDA, which is not installed")
@pytest.mark.parametrize(
    ("mask", "size", "most", "spilled"), [("causal", 64, 168, 0), ("added", 64, 168, 64), ("", 128, 255, 0)]
)
def test_registers(
    mask: str, size: int, most: int, spilled: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 65536 registers, each thread of three blocks of 128 has 168, of two blocks 255."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    case = Gradients(heads=96, queries=1000, keys=1000, depth=size, features=size, mask=mask, rounded=True)
    report = ptxas_report(case.module(), "sm_90a", tmp_path)
    # Otherwise, it says that it lets one matrix instruction wait for another.
    assert "wgmma" not in report
    assert max(map(int, re.findall(r"(\d+) bytes spill", report))) <= spilled
    assert max(map(int, re.findall(r"Used (\d+) registers", report))) <= most
