"""The command line: each command does its work, and every error is one message and exit code 2."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.page.programs import data_of, stages_of
from trivium.cli import main
from trivium.executable import STAGES

PROGRAM = """
func.func @main(%x: tensor<2x3xf32>, %n: tensor<i32>) -> (tensor<2x3xf32>, tensor<i32>) {
  %0 = stablehlo.exponential %x : tensor<2x3xf32>
  %1 = stablehlo.add %0, %x : tensor<2x3xf32>
  return %1, %n : tensor<2x3xf32>, tensor<i32>
}
"""

Command = Callable[..., Result]


@pytest.fixture
def trivium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command line in a folder that has `program.mlir`."""
    monkeypatch.chdir(tmp_path)
    Path("program.mlir").write_text(PROGRAM)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


def succeed(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.output


def refuse(result: Result, message: str) -> None:
    """Requires a user error: exit code 2, one message on standard error, and no traceback."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


# What the commands do


def test_help_names_every_command(trivium: Command) -> None:
    text = succeed(trivium("--help"))
    for command in ("bench", "convert", "demo", "devices", "run", "show"):
        assert command in text


def test_convert_writes_a_program(trivium: Command) -> None:
    assert "tensor<2x3xf32>" in succeed(trivium("convert", "program.mlir", "-o", "copy.mlir"))
    assert succeed(trivium("show", "copy.mlir")) == succeed(trivium("show", "program.mlir"))


@pytest.mark.parametrize("version", ["0.9.0", "1.9.0", "1.13.7", "1.20.0"])
def test_convert_writes_for_a_version(trivium: Command, version: str) -> None:
    succeed(trivium("convert", "program.mlir", "-o", "copy.mlirbc", "--target-version", version))
    assert f"StableHLO_v{version}\0".encode() in Path("copy.mlirbc").read_bytes()
    assert "stablehlo.exponential" in succeed(trivium("show", "copy.mlirbc"))


def test_convert_writes_a_library(trivium: Command) -> None:
    """Functions none of which is the entry."""
    functions = (PROGRAM.replace("@main", f"@{name}") for name in ("one", "other"))
    Path("program.mlir").write_text("".join(functions))
    assert "no entry, functions one, other" in succeed(trivium("convert", "program.mlir", "-o", "copy.mlirbc"))
    assert succeed(trivium("show", "copy.mlirbc")).count("func.func") == 2


def test_dynamic_shapes_are_those_of_the_inputs(trivium: Command) -> None:
    Path("program.mlir").write_text(PROGRAM.replace("2x3xf32", "?x3xf32"))
    np.save("x.npy", np.ones((5, 3), np.float32))
    np.save("n.npy", np.int32(1))
    assert "(5, 3)" in succeed(trivium("run", "program.mlir", "--input", "x.npy", "--input", "n.npy"))
    expected = "argument 0 has type tensor<?x3xf32>, expected one of static shape (trivium convert --shape fixes sizes)"
    for words in (("run", "program.mlir", "--random"), ("bench", "program.mlir")):
        refuse(trivium(*words), expected)


def test_convert_writes_for_the_lowest_version(trivium: Command) -> None:
    succeed(trivium("convert", "program.mlir", "-o", "copy.mlirbc"))
    assert b"StableHLO_v1.0.0\0" in Path("copy.mlirbc").read_bytes()


def test_convert_lists_features_that_a_version_lacks(trivium: Command) -> None:
    Path("later.mlir").write_text(PROGRAM.replace("stablehlo.exponential", "stablehlo.tan"))
    message = (
        "cannot be written for version 1.3.0 of StableHLO\n  - stablehlo.tan, first at later.mlir:3:8: needs 1.4.0"
    )
    refuse(trivium("convert", "later.mlir", "-o", "copy.mlirbc", "--target-version", "1.3.0"), message)
    assert not Path("copy.mlirbc").exists()


@pytest.mark.parametrize(
    ("name", "version", "message"),
    [
        ("copy.mlirbc", "1.21.0", "the version is 1.21.0, expected one from 0.9.0 to 1.20.0"),
        ("copy.mlirbc", "newest", "the version is 'newest', expected three numbers"),
        ("copy.mlir", "1.9.0", "text has no version"),
    ],
)
def test_convert_refuses_versions(trivium: Command, name: str, version: str, message: str) -> None:
    refuse(trivium("convert", "program.mlir", "-o", name, "--target-version", version), message)


@pytest.mark.onnx
def test_convert_reads_onnx(trivium: Command) -> None:
    onnx = pytest.importorskip("onnx")
    text = '<ir_version: 9, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(text), "model.onnx")
    succeed(trivium("convert", "model.onnx", "-o", "model.mlir"))
    assert "stablehlo.select" in succeed(trivium("show", "model.mlir"))


@pytest.mark.torch
def test_pickles_are_for_files_that_are_trusted(trivium: Command) -> None:
    torch = pytest.importorskip("torch")
    from tests.importers.pytorch.archives import edited, payload

    torch.export.save(torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)), "genuine.pt2")

    def use_pickle(config: dict) -> None:
        config["config"]["bias"].update(use_pickle=True, path_name="weight_9")

    config = "data/weights/model_weights_config.json"
    changes = {config: use_pickle, "data/weights/weight_9": payload(Path("it_ran"))}
    edited(Path("model.pt2"), Path("genuine.pt2"), changes)
    for words in (("convert", "model.pt2", "-o", "m.mlir"), ("show", "model.pt2"), ("run", "model.pt2", "--random")):
        refuse(trivium(*words), "is a pickle, which may run any code when it is loaded; trust=True (--trust) allows it")
        assert not Path("it_ran").exists()
    trivium("show", "model.pt2", "--trust")
    assert Path("it_ran").exists()
    assert "stablehlo.dot_general" in succeed(trivium("show", "genuine.pt2", "--trust"))


SHOWN = {"graph": "stablehlo.add", "kernels": "kernel @", "llvm": "define", "asm": "trivium_entry:"}


@pytest.mark.parametrize(("stage", "shows"), SHOWN.items(), ids=SHOWN.keys())
def test_show_prints_each_stage(trivium: Command, stage: str, shows: str) -> None:
    assert shows in succeed(trivium("show", "program.mlir", "--stage", stage))


OPEN = """
func.func @main(%x: tensor<?x3xf32> {trivium.name = "rows"}, %y: tensor<2xf32>) -> tensor<?x3xf32> {
  %0 = stablehlo.tanh %x : tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
"""


@pytest.mark.parametrize("given", ["rows=2x3", "0=2,3"])
def test_open_sizes_are_fixed(trivium: Command, given: str) -> None:
    Path("open.mlir").write_text(OPEN)
    succeed(trivium("convert", "open.mlir", "-o", "fixed.mlir", "--shape", given))
    assert "?" not in succeed(trivium("show", "fixed.mlir"))
    assert "2x3xf32" in succeed(trivium("show", "open.mlir", "--stage", "kernels", "--shape", given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("rows", "--shape has 'rows', expected a name and sizes"),
        ("z=2x3", "--shape names z, expected any of rows, 1"),
        ("rows=" + "9" * 23 + "x3", "expected a name and sizes"),
        ("rows=" + "9" * 5000 + "x3", "expected a name and sizes"),
        ("rows=2x4", "--shape has 2x4 for rows, which is tensor<?x3xf32>"),
        ("1=2", "--shape has no sizes for the dynamic arguments rows"),
    ],
)
def test_sizes_that_cannot_be_fixed(trivium: Command, given: str, message: str) -> None:
    Path("open.mlir").write_text(OPEN)
    refuse(trivium("convert", "open.mlir", "-o", "fixed.mlir", "--shape", given), message)


def test_show_writes_a_page_of_all_stages(trivium: Command) -> None:
    succeed(trivium("show", "program.mlir", "--html", "page.html", "--stage", "llvm"))
    page = Path("page.html").read_text()
    assert data_of(page)["open"] == "llvm"
    assert set(stages_of(page)) >= {"source", "program", *STAGES}


def test_show_writes_a_page_with_times(trivium: Command) -> None:
    succeed(trivium("show", "program.mlir", "--html", "page.html", "--profile"))
    assert data_of(Path("page.html").read_text())["times"]["seconds"] > 0
    refuse(trivium("show", "program.mlir", "--profile"), "expected --html")
    refuse(trivium("show", "program.mlir", "--device", "cpu"), "--device selects the device of a stage")


def test_run_with_random_inputs_is_repeatable(trivium: Command) -> None:
    first = succeed(trivium("run", "program.mlir", "--random"))
    assert "(2, 3)" in first
    assert "float32" in first
    assert first == succeed(trivium("run", "program.mlir", "--random", "0"))
    assert first != succeed(trivium("run", "program.mlir", "--random", "1"))


def test_run_reads_inputs_and_saves_results(trivium: Command) -> None:
    x = np.arange(6, dtype=np.float32)
    np.save("x.npy", x)
    np.save("n.npy", np.int32(7))
    inputs = ("--input", "x.npy", "--input", "n.npy")
    refuse(trivium("run", "program.mlir", *inputs), "argument 0 of main has shape (6,), expected (2, 3)")
    succeed(trivium("run", "program.mlir", *inputs, "--reshape", "--save", "results.npz"))
    with np.load("results.npz") as results:
        np.testing.assert_allclose(results["0"], (np.exp(x) + x).reshape(2, 3), rtol=1e-6)
        assert results["1"] == 7


def test_bench_measures(trivium: Command) -> None:
    text = succeed(trivium("bench", "program.mlir", "--seconds", "0.1", "--threads", "1"))
    assert "median" in text
    assert "trivium" in text


@pytest.mark.jax
def test_bench_measures_against_xla(trivium: Command) -> None:
    pytest.importorskip("jax")
    text = succeed(trivium("bench", "program.mlir", "--seconds", "0.1", "--against", "xla"))
    assert "xla" in text


def test_devices_lists_the_processor(trivium: Command) -> None:
    assert "cpu:0" in succeed(trivium("devices"))


def test_dump_writes_every_stage(trivium: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_DUMP", "dump")
    for _ in range(2):
        succeed(trivium("run", "program.mlir", "--random"))
    assert sorted(path.name for path in Path("dump").iterdir()) == ["000-main", "001-main"]
    names = sorted(path.name for path in Path("dump/001-main").iterdir())
    assert names[:2] == ["00-input.mlir", "01-inline.mlir"]
    assert names[-3:] == ["asm.s", "kernels.txt", "llvm.ll"]
    assert Path("dump/000-main/00-input.mlir").read_text() == succeed(trivium("show", "program.mlir"))


# User errors

WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "missing file": (("show", "nowhere.mlir"), "nowhere.mlir does not exist"),
    "folder": (("show", "."), "has no saved_model.pb, expected a SavedModel"),
    "unknown suffix": (("show", "program.txt"), "has the suffix '.txt', expected one of .bc, .h5, .keras, .mlir"),
    "wrong text": (("show", "wrong.mlir"), "wrong.mlir:1:10: 'nonsense' is not an operation"),
    "wrong program": (("convert", "invalid.mlir", "-o", "x.mlir"), "add: [C1]"),
    "not text": (("show", "bytes.mlir"), "cannot read bytes.mlir"),
    "empty text": (("show", "empty.mlir"), "the text contains no module and no function"),
    "output suffix": (("convert", "program.mlir", "-o", "x.xyz"), "has the suffix '.xyz', expected"),
    "output folder": (("convert", "program.mlir", "-o", "no/x.mlir"), "cannot write no/x.mlir"),
    "no output": (("convert", "program.mlir"), "Missing option '-o'"),
    "no command": (("fly",), "No such command 'fly'"),
    "no argument": (("run",), "Missing argument 'PROGRAM'"),
    "unknown option": (("run", "program.mlir", "--fast"), "No such option"),
    "unknown stage": (("show", "program.mlir", "--stage", "wasm"), "'wasm' is not one of 'graph'"),
    "unknown device": (("run", "program.mlir", "--random", "--device", "tpu"), "unknown device 'tpu'; expected one of"),
    "no inputs": (("run", "program.mlir"), "has 0 --input files, expected 2 (or --random)"),
    "both inputs": (("run", "program.mlir", "--random", "--input", "x.npy"), "cannot be used together"),
    "missing input": (("run", "program.mlir", *("--input", "x.npy") * 2), "x.npy does not exist"),
    "unknown device of the demo": (("demo", "--device", "nothing"), "unknown device 'nothing'"),
    "results in a folder": (("run", "program.mlir", "--random", "--save", "."), "cannot write .: Is a directory"),
    "wrong input": (("run", "program.mlir", *("--input", "bytes.mlir") * 2), "cannot read bytes.mlir"),
    "wrong seed": (("run", "program.mlir", "--random=one"), "'one' is not a valid integer"),
    "save folder": (("run", "program.mlir", "--random", "--save", "no/x.npz"), "cannot write no/x.npz"),
    "page folder": (("show", "program.mlir", "--html", "no/x.html"), "cannot write no/x.html"),
    "unknown peer": (
        ("bench", "program.mlir", "--against", "gcc"),
        "unknown peer 'gcc', expected one of xla, iree",
    ),
    "no time": (("bench", "program.mlir", "--seconds", "nan"), "seconds has nan, expected a number"),
    "several arrays": (("run", "program.mlir", *("--input", "two.npz") * 2), "two.npz: has several arrays"),
    "no threads": (("bench", "program.mlir", "--threads", "0"), "0 is not in the range x>=1"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG.keys())
def test_every_error_is_one_message(trivium: Command, words: tuple[str, ...], message: str) -> None:
    Path("program.txt").write_text(PROGRAM)
    Path("wrong.mlir").write_text("module { nonsense")
    Path("bytes.mlir").write_bytes(bytes(range(128, 256)))
    Path("empty.mlir").write_text("")
    np.savez("two.npz", np.zeros(2), np.zeros(2))
    Path("invalid.mlir").write_text(
        "func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {\n"
        '  %0 = "stablehlo.add"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>\n'
        "  return %0 : tensor<2xf32>\n}\n"
    )
    refuse(trivium(*words), message)


@pytest.mark.onnx
@pytest.mark.parametrize("content", [b"", b"\x08\x09\xff\xff junk"], ids=["empty", "junk"])
def test_wrong_onnx_files_are_refused(trivium: Command, content: bytes) -> None:
    pytest.importorskip("onnx")
    Path("model.onnx").write_bytes(content)
    refuse(trivium("show", "model.onnx"), "model.onnx is not an ONNX model")


def test_dump_needs_a_folder(trivium: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_DUMP", "program.mlir")
    refuse(trivium("run", "program.mlir", "--random"), "TRIVIUM_DUMP names program.mlir")


def test_the_module_is_a_command(tmp_path: Path) -> None:
    """Runs the command line in a separate process, as users do: output, messages and exit codes."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "trivium", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ)

    (tmp_path / "program.mlir").write_text(PROGRAM)
    done = run("run", "program.mlir", "--random")
    assert (done.returncode, done.stderr) == (0, "")
    assert "float32" in done.stdout
    failed = run("show", "nowhere.mlir")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr == "Error: nowhere.mlir does not exist\n"


def test_compile_writes_what_run_takes(trivium: Command) -> None:
    told = succeed(trivium("compile", "program.mlir", "-o", "model.so", "--threads", "1"))
    assert "tensor<2x3xf32>" in told
    assert f"{Path('model.so').stat().st_size} bytes" in told
    refuse(trivium("run", "model.so", "--random"), "model.so holds machine code, expected --trust")
    compiled = succeed(trivium("run", "model.so", "--random", "--trust"))
    assert compiled == succeed(trivium("run", "program.mlir", "--random"))
    data = Path("model.so").read_bytes()
    Path("model.so").write_bytes(data[:-1])
    refuse(trivium("run", "model.so", "--random", "--trust"), "not a compiled program of this version of Trivium")


def test_compile_of_dynamic_shapes_is_refused(trivium: Command) -> None:
    Path("program.mlir").write_text(PROGRAM.replace("2x3xf32", "?x3xf32"))
    refuse(trivium("compile", "program.mlir", "-o", "model.so"), "has dynamic shapes")
    assert not Path("model.so").exists()
