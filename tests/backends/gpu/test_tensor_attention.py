"""Attention by matrix instructions, on the simulator: that of bf16 and f16 is as exact as attention of f32, although
weights are multiplied in terms of the values' type; that of tf32 rounds factors once. No barrier or wait may be
missing."""

from __future__ import annotations

import itertools
import re
import shutil
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.backends.gpu import simulator, tasks
from tests.backends.gpu.products import to_tf32
from tests.backends.gpu.simulator import LeaveOut, needs_simulator
from tests.backends.gpu.test_shared_rows import ptxas_report
from tests.compiler.attention import Case
from tests.random_programs.programs import program_of_attention, program_of_wide_attention
from trivium.backends.gpu import tiles
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.llvm.code import Code
from trivium.backends.pjrt import LoadedExecutable
from trivium.compiler.driver import CompileOptions
from trivium.compiler.kernel.builder import KernelBuilder
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}

TF32 = CompileOptions(tf32=True)

WIDE = Case(batch=2, queries=65, keys=130, depth=33, features=17)


@pytest.fixture
def client(simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch) -> GpuClient:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    return GpuClient(simulated_device, 0)


def compiled(client: GpuClient, module: Module, options: CompileOptions = TF32) -> LoadedExecutable:
    executable = client.compile(module, options)
    schedules = executable.artifact.texts["schedules"]  # type: ignore[attr-defined]
    assert schedules.count(": schedule") == 1
    assert "matrix" in schedules
    return executable


def arguments(case: Case, dtype: str) -> list[np.ndarray]:
    return [array.astype(TYPES[dtype]) if i < 3 else array for i, array in enumerate(case.arguments())]


@needs_simulator
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "case",
    [
        Case(),
        replace(WIDE, mask="bool", safe=True),
        replace(WIDE, mask="added", queries=16),
        Case(heads=6, groups=3, queries=70, keys=40, depth=64, features=64, mask="causal"),
        Case(heads=1, queries=33, keys=100, depth=128, features=128),
        Case(values_first=True, features=100, depth=16),
        replace(WIDE, mask="bool", safe=True, merged=True),
    ],
)
def test_shapes_and_masks(client: GpuClient, case: Case, dtype: str) -> None:
    given = arguments(case, dtype)
    (result,) = compiled(client, case.narrow(dtype)).execute(*given)
    np.testing.assert_allclose(result, case.expected(*given), rtol=2e-6, atol=6e-6)


@needs_simulator
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("fast", [False, True])
def test_narrow_results(client: GpuClient, dtype: str, fast: bool) -> None:
    """With `fast_math`, a weight is rounded to one number of the values' type."""
    case, unit = Case(), float(ml_dtypes.finfo(TYPES[dtype]).eps)
    given = arguments(case, dtype)
    (result,) = compiled(client, case.narrow(dtype, dtype), CompileOptions(fast_math=fast)).execute(*given)
    expected = case.expected(*given)
    error = np.abs(result.astype(np.float64) - expected)
    # Half a unit is what the result's own rounding takes.
    assert (error <= 0.51 * unit * np.abs(expected) + (unit if fast else 1e-5)).all()


@needs_simulator
@pytest.mark.parametrize(
    "case",
    [
        Case(depth=64, features=64),
        replace(WIDE, mask="bool", safe=True),
        replace(WIDE, mask="added", queries=16),
        Case(heads=6, groups=3, queries=70, keys=40, depth=64, features=64, mask="causal"),
        Case(heads=1, queries=33, keys=100, depth=24, features=96),
        Case(values_first=True, features=70, depth=16),
    ],
)
def test_tf32(client: GpuClient, case: Case) -> None:
    """Queries, keys and values are rounded to the nearest number of tf32, and so are weights, whose error is 2^-11 of
    them or less."""
    given = case.arguments()
    (result,) = compiled(client, case.module()).execute(*given)
    held: list[np.ndarray] = [to_tf32(array) for array in given[:3]]
    bound = case.expected(*held[:2], np.abs(held[2]), *given[3:]) * 2**-11
    assert (np.abs(result - case.expected(*held, *given[3:])) <= bound + 1e-5).all()


@needs_simulator
def test_rows_of_infinities_and_nan(client: GpuClient) -> None:
    case = Case(mask="bool")
    given = arguments(case, "bf16")
    given[0][0, 0, 1] = np.nan
    given[0][0, 1, 2, 0] = np.inf
    module = case.narrow("bf16")
    (result,), (expected,) = compiled(client, module).execute(*given), evaluate(module, *given)
    assert np.isnan(expected).any(-1).sum() == 4
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=6e-6)


@needs_simulator
def test_rows_that_are_masked_with_the_least_number(client: GpuClient) -> None:
    """All of their keys have the same weight."""
    case = Case(mask="added")
    given = arguments(case, "bf16")
    given[3][0, 0, 7], given[3][0, 0, 5, 9:] = np.finfo(np.float32).min, np.finfo(np.float32).min
    module = case.narrow("bf16")
    (result,), (expected,) = compiled(client, module).execute(*given), evaluate(module, *given)
    np.testing.assert_allclose(expected[0, :, 7], given[2][0].astype(np.float32).mean(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=6e-6)


@needs_simulator
def test_infinite_values(client: GpuClient) -> None:
    """No term of a weight of an infinite value is zero, or less."""
    case = Case()
    given = arguments(case, "bf16")
    given[2][0, 0, 7, 3], given[2][0, 1, 60, 5] = np.inf, -np.inf
    module = case.narrow("bf16")
    (result,), (expected,) = compiled(client, module).execute(*given), evaluate(module, *given)
    assert np.isinf(expected).sum() == 2 * case.queries
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=6e-6)


def case_of_three_tiles(dtype: str) -> tuple[Case, Module, list[np.ndarray]]:
    """Factors are exact in every type."""
    case = Case(heads=1, queries=64, keys=96, depth=16, features=32)
    given = arguments(case, "bf16")
    # Of such scores, exponentials are finite only beside the greatest one.
    given[0] *= TYPES["bf16"](50)
    if dtype == "bf16":
        return case, case.narrow("bf16"), given
    return case, case.module(), [array.astype(np.float32) for array in given]


def right(executable: LoadedExecutable, case: Case, given: list[np.ndarray]) -> bool:
    """Whether the result is right in several orders of warps."""
    expected = case.expected(*given)
    for seed in range(6):
        simulator.fake().fake_seed(seed)
        if not np.allclose(executable.execute(*given)[0], expected, rtol=1e-3, atol=1e-3):
            return False
    return True


@needs_simulator
@pytest.mark.parametrize("dtype", ["bf16", "tf32"])
def test_every_barrier_is_needed(client: GpuClient, leave_out_barrier: LeaveOut, dtype: str) -> None:
    case, module, given = case_of_three_tiles(dtype)
    for left_out in (-1, 0, 1):
        places = leave_out_barrier(left_out)
        executable = compiled(client, module)
        assert next(places) == 2
        assert right(executable, case, given) == (left_out < 0)


@needs_simulator
@pytest.mark.parametrize("dtype", ["bf16", "tf32"])
def test_every_wait_is_needed(client: GpuClient, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    wait, (case, module, given) = Nvptx.wait, case_of_three_tiles(dtype)
    for left_out in (-1, 0, 1):
        places = itertools.count()

        def emit(self: Nvptx, code: Code, groups: int, place: int = left_out, places: itertools.count = places) -> None:
            if next(places) != place:
                wait(self, code, groups)

        monkeypatch.setattr(Nvptx, "wait", emit)
        executable = compiled(client, module)
        assert next(places) == 2
        assert right(executable, case, given) == (left_out < 0)


@needs_simulator
def test_queries_that_are_multiplied_with_zero(client: GpuClient) -> None:
    case = Case(mask="added")
    given, module = arguments(case, "bf16"), trivium.parse(str(case.narrow("bf16")).replace("<2.500000e-01>", "<0.0>"))
    (result,), (expected,) = compiled(client, module).execute(*given), evaluate(module, *given)
    assert np.abs(expected - case.expected(*given)).max() > 0.1
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=6e-6)


def test_what_is_multiplied_with_factors() -> None:
    b = KernelBuilder("scaled")
    with b.block("bf16", "i64") as block:
        wide = b.apply("convert", block.parameters[0], dtype="f32")
        block.yields = [b.multiply(0.5, b.multiply(wide, 0.25))]
    assert tiles.scale_of(block) == 0.125
    with b.block("bf16", "i64") as squared:
        wide = b.apply("convert", squared.parameters[0], dtype="f32")
        squared.yields = [b.multiply(wide, wide)]
    with b.block("bf16", "i64") as other:
        other.yields = [b.apply("exponential", b.apply("convert", other.parameters[0], dtype="f32"))]
    with b.block("bf16", "i64") as narrow:
        narrow.yields = [b.apply("convert", narrow.parameters[0], dtype="f16")]
    assert tiles.scale_of(squared) is tiles.scale_of(other) is tiles.scale_of(narrow) is None


@needs_simulator
@pytest.mark.parametrize(
    ("module", "options"),
    [
        (Case(depth=129).narrow("bf16"), CompileOptions()),
        (Case(features=129).narrow("f16"), CompileOptions()),
        (Case(depth=96, features=96).module(), TF32),
        (Case(features=97).module(), TF32),
        (Case().module(), CompileOptions()),
    ],
)
def test_what_has_no_room_or_is_wide_is_computed_otherwise(
    client: GpuClient, module: Module, options: CompileOptions
) -> None:
    assert "matrix" not in client.compile(module, options).artifact.texts["schedules"]  # type: ignore[attr-defined]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is part of CUDA, which is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(
    ("dtype", "mask", "depth", "features", "most"),
    [
        ("bf16", "", 64, 64, 168),
        ("bf16", "causal", 64, 64, 168),
        ("bf16", "added", 64, 64, 255),
        ("f16", "causal", 64, 64, 168),
        ("bf16", "added", 128, 128, 255),
        ("f32", "", 64, 64, 168),
        ("f32", "added", 64, 64, 255),
        ("f32", "added", 64, 96, 255),
    ],
)
def test_registers(
    architecture: str,
    dtype: str,
    mask: str,
    depth: int,
    features: int,
    most: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 65536 registers, each thread of two blocks of 128 has 255, of three blocks 168."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    case = Case(batch=8, heads=12, queries=1000, keys=1000, depth=depth, features=features, mask=mask)
    module = case.module() if dtype == "f32" else case.narrow(dtype)
    report = ptxas_report(module, architecture, tmp_path, tf32=True)
    assert set(re.findall(r"(\d+) bytes spill", report)) == {"0"}
    assert max(map(int, re.findall(r"Used (\d+) registers", report))) <= most
    assert max(map(int, re.findall(r"(\d+) bytes smem", report))) <= 48 << 10


@needs_simulator
@pytest.mark.parametrize("seed", range(4))
def test_random_programs(client: GpuClient, seed: int) -> None:
    assert not tasks.judged(client, program_of_attention(seed), seed)
    assert not tasks.judged(client, program_of_wide_attention(seed), seed, TF32)
