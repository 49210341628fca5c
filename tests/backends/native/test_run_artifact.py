"""A host that is no Python program: it compiles, by a Python that starts in it; and it runs serialized executables
without Python, and rejects those that are damaged, or made for another machine, before their code is loaded."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import venv
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import trivium
from trivium.backends import native
from trivium.backends.artifact import to_bytes
from trivium.backends.cpu.target import host
from trivium.compiler.artifact import Artifact
from trivium.ir.bytecode import serialize

HERE = Path(__file__).parent
WEIGHTS = np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32)
X = np.random.default_rng(1).standard_normal(64).astype(np.float32)
NETWORK = f"""func.func @main(%x: tensor<64xf32>) -> tensor<96xf32> {{
  %w = stablehlo.constant dense<"0x{WEIGHTS.tobytes().hex()}"> : tensor<64x96xf32>
  %row = stablehlo.reshape %x : (tensor<64xf32>) -> tensor<1x64xf32>
  %0 = stablehlo.dot_general %row, %w, contracting_dims = [1] x [0]
    : (tensor<1x64xf32>, tensor<64x96xf32>) -> tensor<1x96xf32>
  %1 = stablehlo.tanh %0 : tensor<1x96xf32>
  %2 = stablehlo.reshape %1 : (tensor<1x96xf32>) -> tensor<96xf32>
  return %2 : tensor<96xf32>
}}"""
FACTOR = """func.func @main(%x: tensor<64xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.reshape %x : (tensor<64xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.cholesky %0, lower = true : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}"""


def whole(text: str) -> Artifact:
    return trivium.compile(trivium.parse(text)).loaded.whole()


@pytest.fixture(scope="module")
def network() -> Artifact:
    return whole(NETWORK)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns the command of the host, with the plugin."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    binary = tmp_path_factory.mktemp("host") / "run_artifact"
    include = HERE.parents[2] / "backends/native"
    command = [compiler, "-std=c++20", f"-I{include}", str(HERE / "run_artifact.cc"), "-o", str(binary), "-ldl"]
    subprocess.run(command, check=True, timeout=120)
    return [str(binary), str(native.path())]


def run(runner: list[str], *arguments: object, **environment: str) -> subprocess.CompletedProcess:
    """Runs a command in an environment that has no Python, unless `environment` names one."""
    command, variables = [*runner, *map(str, arguments)], {"PATH": "", **environment}
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, env=variables)


def refusals(runner: list[str], folder: Path, contents: list[bytes]) -> list[str]:
    """Returns the reason for which each executable is rejected."""
    paths = [folder / f"{number}.bin" for number in range(len(contents))]
    for path, data in zip(paths, contents, strict=True):
        path.write_bytes(data)
    done = run(runner, "--load", *paths)
    assert done.returncode == 0, (done.returncode, done.stderr)
    lines = done.stdout.splitlines()
    assert len(lines) == len(contents)
    return lines


def test_it_runs_without_python(runner: list[str], network: Artifact, tmp_path: Path) -> None:
    data = to_bytes(network)
    (tmp_path / "executable").write_bytes(data)
    (tmp_path / "input").write_bytes(X.tobytes())
    done = run(runner, tmp_path / "input", tmp_path / "output", tmp_path / "executable")
    assert (done.returncode, done.stdout) == (0, "serialized as it was\n"), done.stderr
    result = np.fromfile(tmp_path / "output", np.float32)
    np.testing.assert_allclose(result, np.tanh(X @ WEIGHTS), rtol=1e-5, atol=1e-5)
    libraries = subprocess.run(["ldd", runner[1]], capture_output=True, text=True, check=True).stdout
    assert "python" not in libraries


def test_host_functions_of_the_runtime_run_too(runner: list[str], tmp_path: Path) -> None:
    text = """func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
      %low = stablehlo.constant dense<2.0> : tensor<f32>
      %high = stablehlo.constant dense<3.0> : tensor<f32>
      %shape = stablehlo.constant dense<64> : tensor<1xi64>
      %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM
        : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<64xf32>
      %1 = stablehlo.add %0, %x : tensor<64xf32>
      return %1 : tensor<64xf32>
    }"""
    artifact = whole(text)
    assert [call.function for call in artifact.host_functions] == ["trivium_random_state"]
    (tmp_path / "executable").write_bytes(to_bytes(artifact))
    (tmp_path / "input").write_bytes(X.tobytes())
    drawn = []
    for _ in range(2):
        done = run(runner, tmp_path / "input", tmp_path / "output", tmp_path / "executable")
        assert done.returncode == 0, done.stderr
        drawn.append(np.fromfile(tmp_path / "output", np.float32) - X)
    assert ((np.concatenate(drawn) >= 1.99) & (np.concatenate(drawn) < 3.01)).all()
    assert not np.array_equal(*drawn)


def test_what_needs_python_says_so(runner: list[str], tmp_path: Path) -> None:
    data = to_bytes(whole(FACTOR))
    (reason,) = refusals(runner, tmp_path, [data])
    assert "there is no compiler, which is written in Python" in reason
    square = np.diag(np.arange(1, 9, dtype=np.float32)) + 1
    (tmp_path / "executable").write_bytes(data)
    (tmp_path / "input").write_bytes(square.tobytes())
    paths = [tmp_path / name for name in ("input", "output", "executable")]
    done = run(runner, *paths, TRIVIUM_PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr
    factor = np.fromfile(tmp_path / "output", np.float32).reshape(8, 8)
    np.testing.assert_allclose(factor, np.linalg.cholesky(square), rtol=1e-5)


def compile_and_run(
    runner: list[str], folder: Path, *options: object, **environment: str
) -> subprocess.CompletedProcess:
    """Compiles the network, and runs it: writes `executable` and `output`."""
    (folder / "program").write_bytes(serialize(trivium.parse(NETWORK)))
    (folder / "input").write_bytes(X.tobytes())
    paths = [folder / name for name in ("program", "executable", "input", "output")]
    return run(runner, "--compile", *paths, *options, TRIVIUM_CACHE="0", **environment)


@pytest.mark.parametrize("by_option", [True, False])
def test_python_starts_to_compile(runner: list[str], tmp_path: Path, by_option: bool) -> None:
    options, environment = ([sys.executable], {}) if by_option else ([], {"TRIVIUM_PYTHON": sys.executable})
    done = compile_and_run(runner, tmp_path, *options, **environment)
    assert done.returncode == 0, done.stderr
    result = np.fromfile(tmp_path / "output", np.float32)
    np.testing.assert_allclose(result, np.tanh(X @ WEIGHTS), rtol=1e-5, atol=1e-5)
    done = run(runner, tmp_path / "input", tmp_path / "again", tmp_path / "executable")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.fromfile(tmp_path / "again", np.float32), result)


def test_a_process_without_a_compiler_says_what_it_expects(runner: list[str], tmp_path: Path) -> None:
    done = compile_and_run(runner, tmp_path)
    assert done.returncode == 2
    assert "expected TRIVIUM_PYTHON, or the option python of the client, to name the interpreter" in done.stderr


@pytest.mark.parametrize(
    ("python", "reason"),
    [
        ("/nowhere/python", "Python at /nowhere/python does not start: No such file"),
        (shutil.which("true"), "has no library that another process can load, or is no Python"),
    ],
)
def test_what_is_no_python(runner: list[str], tmp_path: Path, python: str, reason: str) -> None:
    done = compile_and_run(runner, tmp_path, TRIVIUM_PYTHON=python)
    assert done.returncode == 2
    assert reason in done.stderr


def test_a_python_without_trivium(runner: list[str], tmp_path: Path) -> None:
    venv.create(tmp_path / "empty", with_pip=False)
    done = compile_and_run(runner, tmp_path, tmp_path / "empty/bin/python")
    assert done.returncode == 2
    assert "Python cannot start Trivium's compiler, trivium.backends.plugin: No module named 'trivium'" in done.stderr


def test_python_compiles_for_its_own_copy_of_the_plugin(runner: list[str], tmp_path: Path) -> None:
    copy = shutil.copy(runner[1], tmp_path / "copy.so")
    done = compile_and_run([runner[0], str(copy)], tmp_path, TRIVIUM_PYTHON=sys.executable)
    assert done.returncode == 2
    assert "Python has loaded another copy of the plugin" in done.stderr


IN_PYTHON = """
import trivium
main = "func.func @main(%x: tensor<f32>) -> tensor<f32>"
text = main + "{ %0 = stablehlo.add %x, %x : tensor<f32> return %0 : tensor<f32> }"
print(trivium.compile(trivium.parse(text), device="other")(4.5)[0])
"""


def test_a_python_program_that_loads_the_plugin_as_any_other() -> None:
    variables = {**os.environ, "PJRT_NAMES_AND_LIBRARY_PATHS": f"other:{native.path()}"}
    done = subprocess.run([sys.executable, "-c", IN_PYTHON], capture_output=True, text=True, timeout=120, env=variables)
    assert done.stdout == "9.0\n", done.stderr


def sealed(data: bytearray) -> bytes:
    """Returns the bytes with a correct checksum."""
    data[12:16] = zlib.crc32(memoryview(data)[16:]).to_bytes(4, "little")
    return bytes(data)


def test_another_machine_or_version(runner: list[str], network: Artifact, tmp_path: Path) -> None:
    machine = network.machine
    others = {
        "this processor has no z80": replace(network, machine=replace(machine, features="+sse2,-avx,+z80")),
        "this machine is x86_64": replace(network, machine=replace(machine, triple="aarch64-unknown-linux-gnu")),
        "compiled for version 3 of the native runtime": replace(network, runtime=3),
    }
    for reason, wanted in zip(refusals(runner, tmp_path, list(map(to_bytes, others.values()))), others, strict=True):
        assert wanted in reason


def test_every_feature_of_this_machine_is_known(runner: list[str], network: Artifact, tmp_path: Path) -> None:
    assert network.machine.features == host().features
    assert refusals(runner, tmp_path, [to_bytes(network)]) == ["loaded"]


def test_artifacts_with_references_are_refused(runner: list[str], tmp_path: Path) -> None:
    artifact = trivium.compile(trivium.parse(NETWORK)).loaded.artifact
    assert not artifact.is_whole
    (reason,) = refusals(runner, tmp_path, [to_bytes(artifact)])
    assert "does not embed its constants" in reason


def test_damaged_bytes(runner: list[str], network: Artifact, tmp_path: Path) -> None:
    whole = to_bytes(network)
    cut = [whole[:length] for length in (0, 7, 100, 240, len(whole) // 2, len(whole) - 1)]
    flipped = []
    for place in range(0, len(whole), len(whole) // 40):
        data = bytearray(whole)
        data[place] ^= 0x10
        flipped.append(bytes(data))
    for reason in refusals(runner, tmp_path, [*cut, *flipped]):
        assert "not a compiled program of this version of Trivium" in reason


def test_mutated_descriptions_do_not_crash(runner: list[str], network: Artifact, tmp_path: Path) -> None:
    """Numbers in the description are changed, and the checksum is correct: only checks of the numbers find the
    damage."""
    original, draws = to_bytes(replace(network, code=b"no shared object" * 4)), random.Random(5)
    contents = []
    for _ in range(400):
        data = bytearray(original)
        for _ in range(draws.randint(1, 2)):
            place = draws.randrange(24, 1500) & ~7
            number = draws.choice([0, 1, 7, 2**31, 2**32 - 1, 2**63, 2**64 - 1, len(data), draws.getrandbits(64)])
            data[place : place + 8] = number.to_bytes(8, "little")
        contents.append(sealed(data))
    reasons = refusals(runner, tmp_path, contents)
    assert "loaded" not in reasons
    assert len({line.partition(" (")[0] for line in reasons}) > 8
