"""An error of compiling a framework's program names the command that reduces it, and the file that it reads."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import trivium
from trivium import advice
from trivium.advice import advised
from trivium.cli import main
from trivium.compiler.digest import structure_digest
from trivium.ir.errors import CompileError, Error, ExecutionError

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


@pytest.mark.torch
def test_errors_of_torch_compile_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")

    def refuse(*arguments: object, **options: object) -> None:
        raise CompileError("no")

    monkeypatch.setattr(trivium, "compile", refuse)
    with pytest.raises(Exception, match="try:   trivium debug minify "):
        torch.compile(lambda x: torch.tanh(x) + 1, backend="trivium")(torch.ones(3))


@pytest.mark.jax
def test_errors_of_jit_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    jax = pytest.importorskip("jax")

    def refuse(*arguments: object, **options: object) -> None:
        raise CompileError("no")

    monkeypatch.setattr(trivium, "compile", refuse)
    with pytest.raises(Exception, match="try:   trivium debug minify "):
        trivium.jit(lambda x: jax.numpy.tanh(x) + 3)(jax.numpy.ones(5))
