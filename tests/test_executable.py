"""Compiled programs as files: a saved program runs in another process as it does in this one, and other files are
refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import trivium
from trivium.backends.artifact import from_bytes, to_bytes
from trivium.executable import Executable

WEIGHTS = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32)
TEXT = f"""func.func @main(%x: tensor<5x40xf32> {{trivium.name = "x", trivium.role = "input"}}) -> tensor<5x30xf32> {{
  %w = stablehlo.constant dense<"0x{WEIGHTS.tobytes().hex()}"> : tensor<40x30xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<5x40xf32>, tensor<40x30xf32>) -> tensor<5x30xf32>
  return %0 : tensor<5x30xf32>
}}"""
X = np.random.default_rng(1).standard_normal((5, 40)).astype(np.float32)


@pytest.fixture
def run() -> Executable:
    return trivium.compile(trivium.parse(TEXT))


def test_a_saved_program_runs_without_its_module(run: Executable, tmp_path: Path) -> None:
    run.save(tmp_path / "model.so")
    loaded = trivium.load_executable(tmp_path / "model.so")
    assert str(loaded.signature) == str(run.signature) == "(x: tensor<5x40xf32> (input)) -> (tensor<5x30xf32>)"
    assert loaded.cost_analysis() == run.cost_analysis()
    assert loaded.memory_analysis() == run.memory_analysis()
    np.testing.assert_array_equal(loaded(X)[0], run(X)[0])
    np.testing.assert_allclose(loaded(X)[0], X @ WEIGHTS, rtol=1e-4, atol=1e-4)
    with pytest.raises(trivium.Error, match="was loaded without the module"):
        loaded.stage("graph")


def test_another_process_compiles_nothing(run: Executable, tmp_path: Path) -> None:
    run.save(tmp_path / "model.so")
    np.save(tmp_path / "x.npy", X)
    program = (
        "import sys, numpy as np, trivium\n"
        "run = trivium.load_executable(sys.argv[1])\n"
        "np.save(sys.argv[3], run(np.load(sys.argv[2]))[0])\n"
        "assert 'trivium.compiler.lower' not in sys.modules\n"
    )
    paths = [tmp_path / name for name in ("model.so", "x.npy", "y.npy")]
    subprocess.run([sys.executable, "-c", program, *paths], check=True, timeout=120)
    np.testing.assert_array_equal(np.load(paths[2]), run(X)[0])


def test_files_that_are_not_compiled_programs_are_refused(run: Executable, tmp_path: Path) -> None:
    file = tmp_path / "model.so"
    with pytest.raises(trivium.Error, match=r"cannot read .*No such file"):
        trivium.load_executable(file)
    with pytest.raises(trivium.Error, match="the path is a int"):
        trivium.load_executable(5)  # type: ignore[arg-type]
    with pytest.raises(trivium.Error, match="cannot write"):
        run.save(tmp_path / "nowhere" / "model.so")
    file.write_text(TEXT)
    with pytest.raises(trivium.Error, match="not a compiled program of this version"):
        trivium.load_executable(file)
    run.save(file)
    artifact = from_bytes(file.read_bytes())
    file.write_bytes(to_bytes(replace(artifact, machine=replace(artifact.machine, features="+z80"))))
    with pytest.raises(trivium.Error, match="has no z80"):
        trivium.load_executable(file)
    file.write_bytes(to_bytes(replace(artifact, runtime=3)))
    with pytest.raises(trivium.Error, match="version 3 of the native runtime"):
        trivium.load_executable(file)


def test_an_artifact_with_references_needs_its_module(run: Executable, tmp_path: Path) -> None:
    (tmp_path / "model.so").write_bytes(to_bytes(run.loaded.artifact))
    with pytest.raises(trivium.Error, match="needs the module that it was compiled from"):
        trivium.load_executable(tmp_path / "model.so")
