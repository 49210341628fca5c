"""Attention as one kernel, on a device of OpenCL and on the simulator, where every barrier must be there."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.backends.gpu import simulator
from tests.backends.gpu.simulator import LeaveOut, needs_simulator
from tests.backends.gpu.test_shared_rows import ptxas_report
from tests.compiler.attention import Case
from trivium.backends.gpu import tiles
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.pjrt import LoadedExecutable
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

WIDE = Case(batch=2, queries=65, keys=130, depth=33, features=17)


def compiled(client: GpuClient, module: Module) -> LoadedExecutable:
    executable = client.compile(module)
    assert executable.artifact.texts["schedules"].count(": schedule") == 1  # type: ignore[attr-defined]
    return executable


@pytest.mark.parametrize(
    ("tile", "case"),
    [
        (32, WIDE),
        (32, replace(WIDE, mask="bool", safe=True)),
        (64, replace(WIDE, mask="causal")),
        (64, replace(WIDE, mask="added", safe=True)),
        (64, Case(values_first=True)),
    ],
)
def test_masks(client: GpuClient, tile: int, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "ATTENTION_TILES", ((tile, 1),))
    given = case.arguments()
    (result,) = compiled(client, case.module()).execute(*given)
    np.testing.assert_allclose(result, case.expected(*given), rtol=2e-6, atol=4e-6)


@pytest.mark.parametrize(
    "case",
    [
        Case(heads=4, groups=2, queries=16, keys=16, depth=16, features=16),
        Case(heads=6, groups=3, queries=100, keys=31, depth=64, features=64, mask="causal"),
        Case(heads=1, queries=33, keys=300, depth=17, features=200),
        Case(batch=3, heads=1, queries=64, keys=64, depth=48, features=256),
    ],
)
def test_shapes(client: GpuClient, case: Case) -> None:
    given = case.arguments()
    (result,) = compiled(client, case.module()).execute(*given)
    np.testing.assert_allclose(result, case.expected(*given), rtol=2e-6, atol=4e-6)


def test_narrow_factors_are_converted_where_they_are_read(client: GpuClient) -> None:
    case = Case(features=130)  # too many for matrix instructions
    given = [array.astype("bfloat16") for array in case.arguments()]
    (result,) = compiled(client, case.narrow("bf16")).execute(*given)
    np.testing.assert_allclose(result, case.expected(*given), rtol=2e-6, atol=4e-6)


def test_rows_of_infinities_and_nan(client: GpuClient) -> None:
    """What has no result is the same as in the interpreter: without `safe`, a row that is masked as a whole is NaN."""
    case = Case(mask="bool")
    given = case.arguments()
    given[0][0, 0, 1] = np.nan
    given[0][0, 1, 2, 0] = np.inf
    (result,), (expected,) = compiled(client, case.module()).execute(*given), evaluate(case.module(), *given)
    assert np.isnan(expected).any(-1).sum() == 4
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=4e-6)


@needs_simulator
def test_every_barrier_is_needed(
    simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch, leave_out_barrier: LeaveOut
) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    client, case = GpuClient(simulated_device, 0), Case(heads=1, queries=32, keys=96, features=130)
    given, module = case.arguments(), case.module()
    # Of such scores, exponentials are finite only beside the greatest one.
    given[0] *= 50
    expected = case.expected(*given)

    def correct(left_out: int) -> tuple[bool, int]:
        places = leave_out_barrier(left_out)
        executable = compiled(client, module)
        return all(right_with(executable, seed) for seed in range(6)), next(places)

    def right_with(executable: LoadedExecutable, seed: int) -> bool:
        """Whether the result is right in this order of warps."""
        simulator.fake().fake_seed(seed)
        return np.allclose(executable.execute(*given)[0], expected, rtol=1e-3, atol=1e-3)

    right, barriers = correct(-1)
    assert right
    assert barriers == 8
    assert not [number for number in range(barriers) if correct(number)[0]]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is part of CUDA, which is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize(("size", "width"), [(1000, 130), (512, 256)])
def test_registers(architecture: str, size: int, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 65536 registers, each thread of two blocks of 256 has 128."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    case = Case(batch=8, heads=12, queries=size, keys=size, depth=width, features=width, mask="causal")
    report = ptxas_report(case.module(), architecture, tmp_path)
    assert set(re.findall(r"(\d+) bytes spill", report)) == {"0"}
    assert max(map(int, re.findall(r"Used (\d+) registers", report))) <= 128
    assert max(map(int, re.findall(r"(\d+) bytes smem", report))) <= 48 << 10
