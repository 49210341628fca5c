"""Artifacts in the cache: a second process neither lowers nor emits, and only an artifact that was stored for exactly
this program, on this machine, by this compiler, is ever loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import trivium
from trivium.backends import artifacts, cache, client
from trivium.backends.artifact import from_bytes, to_bytes
from trivium.backends.cache import DIGEST_BYTES
from trivium.backends.cpu import assembly
from trivium.backends.cpu.client import CpuClient
from trivium.backends.cpu.target import CpuTarget, host
from trivium.compiler.artifact import Artifact, ModuleConstant
from trivium.compiler.stages import CompileOptions, Stages
from trivium.ir.custom_calls import CUSTOM_CALLS, register_custom_call
from trivium.ir.errors import Error
from trivium.ir.func import Module

WEIGHTS = np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32)
X = np.random.default_rng(1).standard_normal((8, 64)).astype(np.float32)
TEXT = """
func.func @main(%x: tensor<8x64xf32> {trivium.name = "x"}) -> tensor<8x96xf32> {
  %w = stablehlo.constant dense<"0xWEIGHTS"> : tensor<64x96xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x64xf32>, tensor<64x96xf32>) -> tensor<8x96xf32>
  %1 = stablehlo.tanh %0 : tensor<8x96xf32>
  return %1 : tensor<8x96xf32>
}"""


def text_of(weights: np.ndarray = WEIGHTS) -> str:
    return TEXT.replace("WEIGHTS", weights.tobytes().hex())


def module_of(weights: np.ndarray = WEIGHTS) -> Module:
    return trivium.parse(text_of(weights))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRIVIUM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def assembled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Records the names of programs that are lowered and emitted from here on."""
    names: list[str] = []
    original = assembly.assemble

    def noted(stages: Stages, target: CpuTarget) -> Artifact:
        names.append(stages.module.main.sym_name)
        return original(stages, target)

    monkeypatch.setattr(assembly, "assemble", noted)
    return names


def expect_right(module: Module, weights: np.ndarray = WEIGHTS) -> trivium.executable.Executable:
    run = trivium.compile(module)
    np.testing.assert_allclose(run(X)[0], np.tanh(X @ weights), rtol=1e-4, atol=1e-4)
    return run


def test_what_was_compiled_is_found(assembled: list[str]) -> None:
    first, second = expect_right(module_of()), expect_right(module_of())
    assert assembled == ["main"]
    assert str(second.signature) == str(first.signature) == "(x: tensor<8x64xf32>) -> (tensor<8x96xf32>)"
    assert second.cost_analysis() == first.cost_analysis()
    assert second.memory_analysis() == first.memory_analysis()
    for stage in ("graph", "kernels", "llvm"):
        assert second.stage(stage) == first.stage(stage)


def test_a_second_process_neither_lowers_nor_emits(tmp_path: Path) -> None:
    """The modules that lower and emit are not even imported."""
    (tmp_path / "program.mlir").write_text(text_of())
    program = (
        "import sys, numpy as np, trivium\n"
        "run = trivium.compile(trivium.load(sys.argv[1]))\n"
        "np.save(sys.argv[2], run(np.load(sys.argv[3]))[0])\n"
        "print(*(name for name in sys.argv[4:] if name in sys.modules))\n"
    )
    names = ("compiler.lower", "compiler.pipeline", "backends.llvm.code", "backends.cpu.emit", "backends.cpu.jit")
    np.save(tmp_path / "x.npy", X)
    outputs, results = [], []
    for number in range(2):
        result = tmp_path / f"{number}.npy"
        arguments = [sys.executable, "-c", program, tmp_path / "program.mlir", result, tmp_path / "x.npy"]
        arguments += [f"trivium.{name}" for name in names]
        done = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=120)
        outputs.append(done.stdout.split())
        results.append(np.load(result))
    assert len(outputs[0]) == 5
    assert outputs[1] == []
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0], np.tanh(X @ WEIGHTS), rtol=1e-4, atol=1e-4)


def test_one_bit_of_a_weight_is_another_program(assembled: list[str]) -> None:
    other = WEIGHTS.copy()
    other[63, 95] += 1
    expect_right(module_of())
    expect_right(module_of(other), other)
    assert len(assembled) == 2


def test_weights_that_change_in_place(assembled: list[str]) -> None:
    """Frameworks share the memory of their parameters: each compilation reads it again."""
    weights = WEIGHTS.copy()
    module = module_of()
    (constant,) = (op for op in module.walk() if op.NAME == "stablehlo.constant")
    constant.attributes["value"] = type(constant.value)(weights, constant.value.type)
    before = expect_right(module)
    weights *= 2
    expect_right(module, 2 * WEIGHTS)
    np.testing.assert_allclose(before(X)[0], np.tanh(X @ WEIGHTS), rtol=1e-4, atol=1e-4)
    assert len(assembled) == 2


def test_options_and_targets_have_artifacts_of_their_own(assembled: list[str]) -> None:
    for options in ({}, {"fast_math": True}, {"threads": 1}):
        trivium.compile(module_of(), **options)
        trivium.compile(module_of(), **options)
    assert len(assembled) == 2 + (CpuClient().target(CompileOptions()).threads > 1)
    stages = Stages(module_of(), host(), CompileOptions())
    keys = {
        artifacts._key(b"digest", Stages(stages.module, target, stages.options))
        for target in (
            host(),
            replace(host(), cpu="another"),
            replace(host(), features="+none"),
            replace(host(), cache_bytes=(1, 2)),
        )
    }
    assert len(keys) == 4


def test_a_compiler_that_was_changed_finds_nothing(assembled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    expect_right(module_of())
    monkeypatch.setattr(artifacts, "_producer", lambda: b"another")
    expect_right(module_of())
    assert len(assembled) == 2


def test_every_source_of_the_compiler_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "room").mkdir()
    source = tmp_path / "room" / "__init__.py"
    source.write_text("a = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(artifacts, "ROOMS", ("room",))
    found = [artifacts._producer.__wrapped__()]
    source.write_text("a = 2\n")
    found.append(artifacts._producer.__wrapped__())
    (tmp_path / "room" / "more.py").write_text("")
    found.append(artifacts._producer.__wrapped__())
    assert len(set(found)) == 3
    assert found[2] == artifacts._producer.__wrapped__()


def test_a_changed_module_has_no_stages() -> None:
    module = module_of()
    expect_right(module)
    run = expect_right(module)
    module.main.attributes["sym_name"] = "other"
    with pytest.raises(Error, match="was changed after it was compiled"):
        run.stage("graph")
    assert run(X)[0].shape == (8, 96)


# Invalid entries


def entries(folder: Path) -> dict[Path, bytes]:
    """Returns the files of artifacts, and their contents after the digest."""
    payloads = {file: file.read_bytes()[DIGEST_BYTES:] for file in folder.iterdir()}
    return {file: data for file, data in payloads.items() if data.startswith(b"\x93TRIVIUM")}


def key_of(module: Module) -> bytes:
    stages = Stages(module, CpuClient().target(CompileOptions()), CompileOptions())
    return artifacts._key(artifacts.module_digest(module).whole, stages)


@pytest.mark.parametrize("damage", ["bit", "half", "empty", "code", "foreign"])
def test_a_damaged_entry_is_made_again(folder: Path, assembled: list[str], damage: str) -> None:
    """No byte of it is used, whether the file was damaged or something else was stored under the key."""
    expect_right(module_of())
    ((file, payload),) = entries(folder).items()
    whole = file.read_bytes()
    kept = cache.default()
    assert kept is not None
    if damage == "bit":
        file.write_bytes(whole[:-2000] + bytes([whole[-2000] ^ 4]) + whole[-1999:])
    elif damage == "half":
        file.write_bytes(whole[: len(whole) // 2])
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "code":  # with the digest of other machine code
        kept.put(key_of(module_of()), payload[:300] + b"\xcc" * 64 + payload[364:])
    else:
        kept.put(key_of(module_of()), b"no artifact")
    expect_right(module_of())
    assert len(assembled) == 2
    expect_right(module_of())
    assert len(assembled) == 2


def test_an_artifact_of_another_machine_is_refused(folder: Path) -> None:
    """If somebody stores one under this machine's key, there is an error before its code is loaded."""
    expect_right(module_of())
    ((_, payload),) = entries(folder).items()
    found = from_bytes(payload)
    elsewhere = replace(found, machine=replace(found.machine, cpu="zilog", features="+z80"), code=b"no code")
    with pytest.raises(Error, match=r"was compiled for zilog .* has no z80"):
        CpuClient().load(elsewhere, Stages(module_of(), host(), CompileOptions()))
    kept = cache.default()
    assert kept is not None
    kept.put(key_of(module_of()), to_bytes(elsewhere))
    with pytest.raises(Error, match="was compiled for zilog"):
        trivium.compile(module_of())


def test_an_artifact_of_another_module_is_refused(folder: Path) -> None:
    expect_right(module_of())
    ((_, payload),) = entries(folder).items()
    small = trivium.parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
    with pytest.raises(Error, match="was made of another module"):
        CpuClient().load(from_bytes(payload), Stages(small, host(), CompileOptions()))


def test_weights_are_not_written(folder: Path) -> None:
    expect_right(module_of())
    ((file, payload),) = entries(folder).items()
    (constant,) = from_bytes(payload).constants
    assert constant.source == ModuleConstant(0, 0, WEIGHTS.nbytes)
    assert constant.packing is not None
    assert WEIGHTS[:4].tobytes() not in payload
    assert file.stat().st_mode & 0o777 == 0o600


def test_processes_compile_the_same_at_once(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "program.mlir").write_text(text_of())
    np.savez(tmp_path / "arrays.npz", x=X, y=np.tanh(X @ WEIGHTS))
    program = (
        "import sys, numpy as np, trivium\n"
        "arrays = np.load(sys.argv[2])\n"
        "for _ in range(20):\n"
        "    run = trivium.compile(trivium.load(sys.argv[1]))\n"
        "    np.testing.assert_allclose(run(arrays['x'])[0], arrays['y'], rtol=1e-4, atol=1e-4)\n"
    )
    arguments = [sys.executable, "-c", program, tmp_path / "program.mlir", tmp_path / "arrays.npz"]
    processes = [subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
    assert len(entries(folder)) == 1


# Facts that do not follow from the module alone

CALL = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @test.artifacts(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    CUSTOM_CALLS.pop("test.artifacts", None)


@pytest.mark.usefixtures("registered")
def test_custom_calls_are_looked_up_anew(assembled: list[str]) -> None:
    """The artifact contains their names; their meaning is whatever is registered when it is loaded."""
    x = np.arange(4, dtype=np.float32)
    for factor in (2, 3):
        register_custom_call("test.artifacts", evaluate=lambda op, a, n=factor: a * np.float32(n), replace=True)
        np.testing.assert_array_equal(trivium.compile(trivium.parse(CALL))(x)[0], factor * x)
    assert len(assembled) == 1
    del CUSTOM_CALLS["test.artifacts"]
    with pytest.raises(Error, match=r"test\.artifacts"):
        trivium.compile(trivium.parse(CALL))


@pytest.mark.usefixtures("registered")
def test_lowerings_of_custom_calls_are_never_kept(folder: Path) -> None:
    register_custom_call("test.artifacts", evaluate=lambda op, a: a, lower=lambda *given: None)
    assert not artifacts._follows_from_its_text(trivium.parse(CALL))
    assert artifacts._follows_from_its_text(module_of())


def test_shapes_of_dynamic_programs_have_artifacts(assembled: list[str]) -> None:
    text = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { %0 = stablehlo.tanh %x : tensor<?xf32> return %0 : tensor<?xf32> }"  # noqa: E501
    for _ in range(2):
        run = trivium.compile(trivium.parse(text))
        for extent in (3, 5):
            x = np.linspace(0, 1, extent, dtype=np.float32)
            np.testing.assert_allclose(run(x)[0], np.tanh(x), rtol=1e-6)
    assert len(assembled) == 2


def test_without_a_cache(assembled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    expect_right(module_of())
    expect_right(module_of())
    assert len(assembled) == 2


def test_every_stage_is_dumped_of_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expect_right(module_of())
    monkeypatch.setenv("TRIVIUM_DUMP", str(tmp_path / "dump"))
    expect_right(module_of())
    (dumped,) = (tmp_path / "dump").iterdir()
    names = sorted(os.listdir(dumped))
    assert names[0] == "00-input.mlir"
    assert {"kernels.txt", "llvm.ll", "asm.s"} < set(names)
    assert len(names) > 6


def test_a_whole_artifact_needs_no_module(folder: Path) -> None:
    run = expect_right(module_of())
    whole = from_bytes(to_bytes(run.loaded.whole()))
    assert whole.is_whole
    loaded = client("cpu").load(whole)
    np.testing.assert_array_equal(loaded.execute(X)[0], run(X)[0])
    assert str(trivium.executable.Executable(loaded).signature) == str(run.signature)
    with pytest.raises(Error, match="loaded without the module"):
        loaded.stage("graph")
