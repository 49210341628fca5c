"""Attention by the matrix instructions of Hopper, on the simulator: as exact as attention of f32; and no barrier, wait
or fence may be missing."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.backends.gpu import simulator, tasks
from tests.backends.gpu.test_shared_rows import ptxas_report
from tests.backends.gpu.test_tensor_attention import TYPES, WIDE, arguments
from tests.compiler.attention import Case
from tests.garbage import collected
from tests.random_programs.programs import program_of_attention, program_of_wide_attention
from trivium.backends.gpu import tiles
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.llvm.code import Code
from trivium.backends.pjrt import LoadedExecutable
from trivium.compiler.driver import CompileOptions
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

pytestmark = pytest.mark.skipif(simulator.compiler() is None, reason="no compiler of C++ builds the simulator")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[GpuClient]:
    """A simulated GPU of compute capability 9.0, which must have nothing allocated at the end."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    fake = simulator.fake()
    fake.fake_reset(0, 0)
    fake.fake_capability(9, 0)
    with simulator.opened() as opened, collected():
        yield GpuClient(opened, 0)
    assert fake.fake_live() == 0
    fake.fake_reset(0, 0)


def compiled(client: GpuClient, module: Module, options: CompileOptions | None = None) -> LoadedExecutable:
    executable = client.compile(module, options or CompileOptions())
    assert re.search(r"matrix\([\d, ]+\)=128", executable.artifact.texts["schedules"])  # type: ignore[attr-defined]
    return executable


@pytest.mark.parametrize(
    ("dtype", "queries", "case"),
    [
        ("bf16", 64, Case()),
        ("f16", 128, Case()),
        ("f16", 64, replace(WIDE, batch=1, mask="bool", safe=True)),
        ("bf16", 128, replace(WIDE, batch=1, mask="added", queries=16)),
        ("bf16", 128, Case(groups=2, queries=140, keys=100, depth=64, features=64, mask="causal")),
        ("bf16", 64, Case(heads=1, queries=33, keys=100, depth=128, features=128)),
        ("f16", 64, Case(values_first=True, features=100, depth=16)),
        ("bf16", 64, replace(WIDE, batch=2, mask="added", merged=True)),
    ],
)
def test_shapes_and_masks(
    client: GpuClient, monkeypatch: pytest.MonkeyPatch, dtype: str, queries: int, case: Case
) -> None:
    monkeypatch.setattr(tiles, "WARPGROUP_QUERIES", queries)
    given = arguments(case, dtype)
    (result,) = compiled(client, case.narrow(dtype)).execute(*given)
    np.testing.assert_allclose(result, case.expected(*given), rtol=2e-6, atol=6e-6)


@pytest.mark.parametrize("fast", [False, True])
def test_narrow_results(client: GpuClient, fast: bool) -> None:
    """With `fast_math`, a weight is rounded to one number of the values' type."""
    case, unit = Case(), float(ml_dtypes.finfo(ml_dtypes.bfloat16).eps)
    given = arguments(case, "bf16")
    (result,) = compiled(client, case.narrow("bf16", "bf16"), CompileOptions(fast_math=fast)).execute(*given)
    expected = case.expected(*given)
    error = np.abs(result.astype(np.float64) - expected)
    # Half a unit is what the result's own rounding takes.
    assert (error <= 0.51 * unit * np.abs(expected) + (unit if fast else 1e-5)).all()


def test_rows_and_values_that_are_not_finite(client: GpuClient) -> None:
    case = Case(mask="bool")
    given = arguments(case, "bf16")
    given[0][0, 0, 1] = np.nan
    given[0][0, 1, 2, 0] = np.inf
    given[2][0, 0, 7, 3], given[2][0, 1, 60, 5] = np.inf, -np.inf
    module = case.narrow("bf16")
    (result,), (expected,) = compiled(client, module).execute(*given), evaluate(module, *given)
    assert np.isinf(expected).any()
    assert np.isnan(expected).any()
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=6e-6)


PLACES = {"barrier": 2, "wait": 2, "publish": 2, "begin_products": 2, "commit_products": 2, "end_products": 2}


@pytest.mark.parametrize("word", PLACES)
def test_every_barrier_fence_and_wait_is_needed(word: str, client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    case, kept = Case(heads=1, queries=128, keys=192, depth=16, features=32), getattr(Nvptx, word)
    monkeypatch.setattr(tiles, "WARPGROUP_QUERIES", 128)
    given, module = arguments(case, "bf16"), case.narrow("bf16")
    # Of such scores, exponentials are finite only beside the greatest one.
    given[0] *= TYPES["bf16"](50)
    expected = case.expected(*given)

    def correct(left_out: int) -> bool:
        places = itertools.count()

        def emit(self: Nvptx, code: Code, *operands: object) -> object:
            if next(places) == left_out:
                return operands[0] if operands else None
            return kept(self, code, *operands)

        monkeypatch.setattr(Nvptx, word, emit)
        executable = compiled(client, module)
        assert next(places) == PLACES[word]
        return all(right_with(executable, seed) for seed in range(4))

    def right_with(executable: LoadedExecutable, seed: int) -> bool:
        simulator.fake().fake_seed(seed)
        return np.allclose(executable.execute(*given)[0], expected, rtol=1e-3, atol=1e-3)

    assert correct(-1)
    assert not any(correct(number) for number in range(PLACES[word]))


def test_tf32_is_not_transposed(client: GpuClient) -> None:
    executable = client.compile(Case().module(), CompileOptions(tf32=True))
    assert "matrix(1)=32" in executable.artifact.texts["schedules"]  # type: ignore[attr-defined]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is part of CUDA, which is not installed")
@pytest.mark.parametrize(
    ("dtype", "result", "mask", "size", "most"),
    [
        ("bf16", "bf16", "", 64, 168),
        ("bf16", "f32", "causal", 64, 255),
        ("f16", "f16", "", 64, 168),
        ("bf16", "bf16", "added", 64, 255),
        ("bf16", "f32", "added", 128, 255),
        ("f16", "f16", "", 128, 255),
    ],
)
def test_registers(
    dtype: str,
    result: str,
    mask: str,
    size: int,
    most: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 65536 registers, each thread of three blocks of 128 has 168, of two blocks 255."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    case = Case(batch=8, heads=12, queries=1000, keys=1000, depth=size, features=size, mask=mask)
    report = ptxas_report(case.narrow(dtype, result), "sm_90a", tmp_path)
    # Otherwise, it says that it lets one matrix instruction wait for another.
    assert "wgmma" not in report
    assert set(re.findall(r"(\d+) bytes spill", report)) == {"0"}
    assert max(map(int, re.findall(r"Used (\d+) registers", report))) <= most


@pytest.mark.parametrize("seed", range(3))
def test_random_programs(client: GpuClient, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not tasks.judged(client, program_of_attention(seed), seed)
    assert not tasks.judged(client, program_of_wide_attention(seed), seed)
