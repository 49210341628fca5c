"""Running folds and sorts, whose rows or tiles are a block's, on a device of OpenCL and on the simulator, where every
barrier must be there."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.backends.gpu import simulator
from tests.backends.gpu.simulator import LeaveOut, needs_simulator
from tests.compiler.lowering.test_orders import Less, hard, plain, sorted_by, total, two_keys
from tests.compiler.lowering.test_scans import integers, running
from tests.compiler.lowering.test_sorting import TOTAL, sorted_pairs
from trivium.backends.gpu import assembly, nvptx, rows
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.pjrt import LoadedExecutable
from trivium.compiler.stages import CompileOptions, Stages
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-20, 20, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "dimension", "dtype"),
    [((64,), 0, np.int32), ((3, 1001), 1, np.int64), ((2, 4000), 1, np.uint8), ((1793, 2), 0, np.int16)],
)
def test_running_sums(client: GpuClient, shape: tuple[int, ...], dimension: int, dtype: type) -> None:
    argument = integers(*shape, dtype=dtype)
    executable = client.compile(running(argument, dimension))
    assert "reduction" in (report := executable.artifact.texts["schedules"]) or " block(" in report  # type: ignore[attr-defined]
    np.testing.assert_array_equal(executable.execute(argument)[0], argument.cumsum(dimension, dtype=dtype))


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_running_products_of_floats(client: GpuClient, dtype: type, error: float) -> None:
    argument = np.random.default_rng(1).uniform(0.99, 1.01, (2, 2500)).astype(dtype)
    (result,) = client.compile(running(argument, 1, ops.Multiply, 1, reverse=True)).execute(argument)
    expected = np.multiply.accumulate(argument[:, ::-1].astype(np.longdouble), axis=1)[:, ::-1]
    np.testing.assert_allclose(result, expected.astype(np.float64), rtol=10 * error)


@pytest.mark.parametrize(
    ("shape", "dimension"), [((64,), 0), ((100,), 0), ((3, 333), 1), ((1000, 2), 0), ((1, 2500), 1), ((5000,), 0)]
)
def test_sorts(client: GpuClient, shape: tuple[int, ...], dimension: int) -> None:
    """Stable, with the places of the elements beside them."""
    module, argument = sorted_pairs(shape, dimension, TOTAL), values(*shape)
    for result, expected in zip(client.compile(module).execute(argument), evaluate(module, argument), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("less", [total, two_keys, plain])
def test_sorts_with_nan(client: GpuClient, less: Less) -> None:
    """Every bit is the interpreter's; floats of which neither is less are no order, and are sorted by one thread."""
    module, given = sorted_by(less, (3, 700)), hard((3, 700))
    for result, expected in zip(client.compile(module).execute(*given), evaluate(module, *given), strict=True):
        np.testing.assert_array_equal(result.view(np.int32), expected.view(np.int32))


@needs_simulator
@pytest.mark.parametrize("name", ["sum", "sums of tiles", "running sum", "long running sum", "sort", "sort of tiles"])
def test_every_barrier_is_needed(
    name: str, simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch, leave_out_barrier: LeaveOut
) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    client = GpuClient(simulated_device, 0)
    monkeypatch.setattr(rows, "AT_ONCE", 16)
    simulated_device.target = replace(simulated_device.target, scans="running" in name)
    lengths = {"sum": 1500, "sums of tiles": 4000, "running sum": 3000, "long running sum": 16_000, "sort": 1100}
    argument = (values if name.startswith("sort") else integers)(lengths.get(name, 2500))
    module = sorted_pairs(argument.shape, 0, TOTAL) if name.startswith("sort") else running(argument, 0)
    expected = evaluate(module, argument) if name.startswith("sort") else [argument.cumsum(dtype=np.int32)]

    def correct(left_out: int) -> tuple[bool, int]:
        places = leave_out_barrier(left_out)
        executable = client.compile(module)
        return all(right_with(executable, seed) for seed in range(3)), next(places)

    def right_with(executable: LoadedExecutable, seed: int) -> bool:
        """Whether the result is right in this order of warps."""
        simulator.fake().fake_seed(seed)
        return all(map(np.array_equal, executable.execute(argument), expected))

    right, barriers = correct(-1)
    assert right
    assert barriers > 8 or barriers == {"running sum": 2, "long running sum": 4}[name]
    # Each thread makes the keys of elements that it has copied itself, and after the last merge it reads the places
    # that it has written.
    spare = [0, barriers - 1] if name.startswith("sort") else []
    assert [number for number in range(barriers) if correct(number)[0]] == spare


def ptxas_report(module: Module, architecture: str, folder: Path, tf32: bool = False) -> str:
    facts, file = replace(nvptx.target(architecture), tf32=tf32), folder / "program.ptx"
    program = Stages(module, facts, CompileOptions()).program
    file.write_bytes(assembly.compiled(assembly.emit_program(program, Nvptx(), facts).text, Nvptx(), facts))
    command = ["ptxas", f"-arch={architecture}", "-v", str(file), "-o", str(folder / "program.cubin")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is part of CUDA, which is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_registers(architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    for module in (running(integers(40, 5000), 1), sorted_pairs((40, 900), 1, TOTAL), sorted_pairs((5000,), 0, TOTAL)):
        report = ptxas_report(module, architecture, tmp_path)
        assert set(re.findall(r"(\d+) bytes spill", report)) == {"0"}
        assert max(map(int, re.findall(r"Used (\d+) registers", report))) <= 64
