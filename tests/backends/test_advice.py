"""An error of compiling a program names the command that reduces it, and the file that it reads."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import trivium
from trivium import executable
from trivium.backends import advice
from trivium.backends.advice import advised
from trivium.cli import main
from trivium.compiler.digest import structure_digest
from trivium.ir.errors import CompileError, Error, ExecutionError, VerificationError

COMMAND = "try:   trivium debug minify "
TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = stablehlo.add %x, %c : tensor<4xf32>
  %1 = stablehlo.tanh %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


def failing(error: Error) -> str:
    with pytest.raises(Error) as caught, advised(trivium.parse(TEXT)):
        raise error
    return str(caught.value)


def test_the_command_that_is_named_runs(tmp_path: Path) -> None:
    found = re.search(r"try:   (trivium debug minify (\S+) -o small.mlir)", failing(CompileError("no")))
    assert found is not None
    assert structure_digest(trivium.load(found[2])) == structure_digest(trivium.parse(TEXT))
    words = found[1].replace("small.mlir", str(tmp_path / "small.mlir")).split()
    assert "gives the right results" in CliRunner().invoke(main, words[1:]).output


def test_other_errors_stay_as_they_are() -> None:
    assert "try:" not in failing(ExecutionError("argument 0 has dtype float64, expected float32"))


def test_large_programs_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "MOST_BYTES", 8)
    assert "try:" not in failing(CompileError("no"))


def test_programs_that_break_a_rule_are_not_written() -> None:
    """The error says which rule: there is nothing to reduce."""
    wrong = TEXT.replace("tanh %0 : tensor<4xf32>", "tanh %0 : (tensor<4xf32>) -> tensor<5xf32>")
    module = trivium.parse(
        wrong.replace("-> tensor<4xf32> {", "-> tensor<5xf32> {").replace("%1 : tensor<4", "%1 : tensor<5")
    )
    with pytest.raises(VerificationError) as caught:
        trivium.compile(module)
    assert "try:" not in str(caught.value)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be compiled."""

    def refuse(*arguments: object, **options: object) -> None:
        raise CompileError("no")

    monkeypatch.setattr(executable, "compile_module", refuse)


@pytest.mark.usefixtures("refused")
def test_errors_of_the_command_line_name_it(tmp_path: Path) -> None:
    (tmp_path / "program.mlir").write_text(TEXT)
    result = CliRunner().invoke(main, ["compile", str(tmp_path / "program.mlir"), "-o", str(tmp_path / "program.bin")])
    assert COMMAND in result.output
    assert result.exit_code == 2


@pytest.mark.torch
@pytest.mark.usefixtures("refused")
def test_errors_of_torch_compile_name_it() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception, match=COMMAND):
        torch.compile(lambda x: torch.tanh(x) + 1, backend="trivium")(torch.ones(3))


@pytest.mark.tensorflow
@pytest.mark.usefixtures("refused")
def test_errors_of_functions_of_tensorflow_name_it() -> None:
    tf = pytest.importorskip("tensorflow")
    import trivium.tensorflow

    with pytest.raises(Exception, match=COMMAND):
        trivium.tensorflow.function(lambda x: tf.tanh(x) + 1)(tf.ones(3))


@pytest.mark.jax
@pytest.mark.usefixtures("refused")
def test_errors_of_jit_name_it() -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(Exception, match=COMMAND):
        trivium.jit(lambda x: jax.numpy.tanh(x) + 3)(jax.numpy.ones(5))
