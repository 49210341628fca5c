"""Attention in f32 by halves of warps, on the simulator: shapes and masks in tiles of each size; and no barrier or wait
may be missing."""

from __future__ import annotations

import itertools
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.backends.gpu import simulator, tasks
from tests.backends.gpu.simulator import needs_simulator
from tests.backends.gpu.test_attention import compiled
from tests.backends.gpu.test_shared_rows import ptxas_report
from tests.compiler.attention import Case
from tests.random_programs.programs import program_of_attention
from trivium.backends.gpu import tiles
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.llvm.code import Code
from trivium.backends.pjrt import LoadedExecutable
from trivium.ir.interpreter import evaluate

WIDE = Case(queries=33, keys=130, depth=33, features=17)


@pytest.fixture
def client(simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch) -> GpuClient:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    return GpuClient(simulated_device, 0)


@needs_simulator
@pytest.mark.parametrize(
    ("tile", "case"),
    [
        (16, WIDE),
        (32, replace(WIDE, mask="bool", safe=True)),
        (64, replace(WIDE, mask="added", safe=True)),
        (32, Case(heads=6, groups=3, queries=40, keys=31, depth=64, features=64, mask="causal")),
        (16, Case(heads=1, queries=33, keys=100, depth=128, features=128)),
        (32, Case(heads=1, queries=70, keys=100, depth=20, features=100)),
        (16, Case(values_first=True)),
    ],
)
def test_shapes_and_masks(client: GpuClient, tile: int, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "HALF_WARP_TILES", ((tile, 1),))
    given = case.arguments()
    (result,) = compiled(client, case.module()).execute(*given)
    np.testing.assert_allclose(result, case.expected(*given), rtol=2e-6, atol=6e-6)


@needs_simulator
def test_rows_and_values_that_are_not_finite(client: GpuClient) -> None:
    case = Case(mask="added")
    given = case.arguments()
    given[0][0, 0, 1] = np.nan
    given[0][0, 1, 2, 0] = np.inf
    given[2][0, 0, 7, 3], given[2][0, 1, 60, 5] = np.inf, -np.inf
    # All keys of such a row have the same weight.
    given[3][0, 0, 9] = np.finfo(np.float32).min
    (result,), (expected,) = compiled(client, case.module()).execute(*given), evaluate(case.module(), *given)
    assert np.isinf(expected).any()
    assert np.isnan(expected).any()
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=6e-6)


PLACES = {"barrier": 2, "wait": 2, "warp_barrier": 1}


@needs_simulator
@pytest.mark.parametrize("word", PLACES)
def test_every_barrier_and_wait_is_needed(word: str, client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    case, kept = Case(heads=1, queries=32, keys=192, depth=16, features=32), getattr(Nvptx, word)
    given, module = case.arguments(), case.module()
    # Of such scores, exponentials are finite only beside the greatest one.
    given[0] *= 50
    expected = case.expected(*given)

    def correct(left_out: int) -> bool:
        places = itertools.count()

        def emit(self: Nvptx, code: Code, *operands: object) -> None:
            if next(places) != left_out:
                kept(self, code, *operands)

        monkeypatch.setattr(Nvptx, word, emit)
        executable = compiled(client, module)
        assert next(places) == PLACES[word]
        return all(right_with(executable, seed) for seed in range(6))

    def right_with(executable: LoadedExecutable, seed: int) -> bool:
        simulator.fake().fake_seed(seed)
        return np.allclose(executable.execute(*given)[0], expected, rtol=1e-3, atol=1e-3)

    assert correct(-1)
    assert not any(correct(number) for number in range(PLACES[word]))


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is part of CUDA, which is not installed")
@pytest.mark.parametrize(("size", "width"), [(128, 64), (1000, 64), (1000, 128)])
def test_registers(size: int, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 65536 registers, each thread of two blocks of 256 has 128."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    case = Case(heads=12, queries=size, keys=size, depth=width, features=width, mask="added")
    report = ptxas_report(case.module(), "sm_90", tmp_path)
    assert set(re.findall(r"(\d+) bytes spill", report)) == {"0"}
    assert max(map(int, re.findall(r"Used (\d+) registers", report))) <= 128


@needs_simulator
@pytest.mark.parametrize("seed", range(3))
def test_random_programs(client: GpuClient, seed: int) -> None:
    assert not tasks.judged(client, program_of_attention(seed), seed)
