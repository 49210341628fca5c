"""The benchmark of a GPU: its rows are right, in small, on a simulated one, and without a GPU nothing is measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from click import ClickException
from click.testing import CliRunner

import trivium
from benchmarks import apart, gpu
from tests.backends.gpu import simulator
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda_library import library
from trivium.ir.errors import Error


def has_driver() -> bool:
    try:
        library()
    except Error:
        return False
    return True


@pytest.mark.skipif(simulator.compiler() is None, reason="no compiler of C++ builds the simulator")
def test_rows_on_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    with simulator.opened() as device:
        on = GpuClient(device, 0)
        lines = list(gpu.report(on, gpu.rows(128), 0.0, copied=1 << 10))
    assert len(lines) == 2 + len(gpu.rows())
    assert all(data["times"][gpu.OURS] > 0 for _, data in lines[2:])
    assert "GB/s" in lines[2][0]


def test_a_wrong_result_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(row: gpu.Row, given: object) -> gpu.Call:
        return lambda: lambda: 0.0

    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    monkeypatch.setattr(gpu, "of_torch", wrong)
    with simulator.opened() as device, pytest.raises(ClickException, match="torch differs by 1 of the largest element"):
        gpu.measured(GpuClient(device, 0), gpu.rows(128)[0], 1.0, 0.0)


def test_failing_rows_and_failing_peers_are_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fails(row: gpu.Row, given: object) -> gpu.Call:
        raise RuntimeError("no such | kernel")

    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    monkeypatch.setattr(gpu, "of_torch", fails)
    monkeypatch.setattr(gpu, "copy_rate", lambda on, nbytes, seconds: 1e9)
    listed, figures = gpu.rows(128)[:2], tmp_path / "figures.json"
    monkeypatch.setattr(gpu, "rows", lambda: [replace(listed[0], text="no program"), listed[1]])
    with simulator.opened() as device:
        monkeypatch.setattr(gpu, "opened", lambda name: GpuClient(device, 0))
        monkeypatch.setattr(gpu, "require_gpu", lambda name: None)
        told = CliRunner().invoke(gpu.main, ["--seconds", "0", "--limit", "0", "--json", str(figures)])
    assert told.exit_code == 1
    first, second = told.output.splitlines()[3:5]
    assert first.startswith("| tanh(x) * y + x | ")
    assert second.startswith("| softmax | ")
    assert "torch failed, RuntimeError: no such / kernel |" in second
    assert "not measured: tanh(x) * y + x" in told.output
    assert [row.get("name") for row in json.loads(figures.read_text())] == [None, "tanh(x) * y + x", "softmax"]


SIMULATED = """
import time
from benchmarks import apart, gpu
from tests.backends.gpu import simulator

listed = gpu.rows(128)[:3]
gpu.rows, gpu.copy_rate = lambda: listed, lambda on, nbytes, seconds: 1e9
gpu.of_jax = lambda row, given: None
gpu.of_torch = lambda row, given: time.sleep(600) if row.name == "softmax" else None
with simulator.simulated():
    gpu.main()
"""


@pytest.mark.skipif(simulator.compiler() is None, reason="no compiler of C++ builds the simulator")
def test_a_row_that_hangs_ends_and_the_next_one_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each process measures on a simulated GPU."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    given, figures = [], tmp_path / "figures.json"

    def apart_on_the_simulator(arguments: Sequence[str], limit: float) -> apart.Outcome:
        given.append(list(arguments))
        return apart.apart(["-c", SIMULATED, *arguments[2:]], 1 if "softmax" in arguments else limit)

    monkeypatch.setattr(gpu, "apart", apart_on_the_simulator)
    monkeypatch.setattr(gpu, "require_gpu", lambda name: None)
    monkeypatch.setattr(gpu, "rows", lambda kept=gpu.rows: kept()[:3])
    told = CliRunner().invoke(gpu.main, ["--seconds", "0", "--limit", "60", "--json", str(figures)])
    assert told.exit_code == 1
    heading, *table = told.output.splitlines()
    assert "Fake, sm_80" in heading
    assert table[2].startswith("| tanh(x) * y + x | ")
    assert table[3] == "| softmax | it did not end in 1 s | | | |"
    assert table[4].startswith("| layer norm | ")
    assert "not measured: softmax" in told.output
    assert [data.get("name") for data in json.loads(figures.read_text())] == [None, *(row.name for row in gpu.rows())]
    assert all(arguments[:2] == ["-m", "benchmarks.gpu"] for arguments in given)


def test_a_process_that_fails() -> None:
    assert apart.apart(["-c", "print(1)"], 60) == apart.Outcome(["1"])
    assert apart.apart(["-c", "print(1); raise ValueError('no')"], 60) == apart.Outcome(["1"], "ValueError: no")
    assert apart.apart(["-c", "import os; os._exit(3)"], 60) == apart.Outcome([], "its process ended with the code 3")


@pytest.mark.skipif(has_driver(), reason="this machine has an NVIDIA driver")
def test_without_a_gpu() -> None:
    told = CliRunner().invoke(gpu.main, [])
    assert told.exit_code == 1
    assert "cuda:0 is not there, so there is nothing to measure" in told.output


def test_other_devices_are_refused() -> None:
    told = CliRunner().invoke(gpu.main, ["--device", "cpu"])
    assert told.exit_code == 1
    assert "cpu is not an NVIDIA GPU" in told.output


@pytest.mark.parametrize("row", gpu.rows(128), ids=lambda row: row.name)
def test_peers_are_given_the_same_program(row: gpu.Row) -> None:
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    given = gpu.arguments(row)
    (expected,) = trivium.compile(trivium.parse(row.text))(*given)
    kind = torch.bfloat16 if given[0].dtype == ml_dtypes.bfloat16 else torch.float32
    tensors = [torch.tensor(array.astype(np.float32)).to(kind) for array in given]
    results = row.function(*tensors, of=torch), row.function(*map(jax.numpy.asarray, given), of=jax.numpy)
    for result in map(gpu.as_numpy, results):
        assert np.abs(result - expected.astype(np.float32)).max() <= row.tolerance * np.abs(expected).max()
