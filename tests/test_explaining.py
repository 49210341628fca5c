"""The sentences that describe what the compiler made of a program."""

import numpy as np
import pytest
from click.testing import CliRunner

import trivium
from trivium.cli import main
from trivium.ir.location import FileLocation

FUSED = """
func.func @main(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %a = stablehlo.tanh %x : tensor<64x64xf32>
  %b = stablehlo.exponential %a : tensor<64x64xf32>
  %c = stablehlo.dot_general %b, %x, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %c, %x : tensor<64x64xf32>, tensor<64x64xf32>
}
"""
LOOP = """
func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0:2 = stablehlo.while(%i = %n, %a = %x) : tensor<i32>, tensor<4xf32>
   cond {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %c = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
   }
   do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.subtract %i, %one : tensor<i32>
    %b = stablehlo.sine %a : tensor<4xf32>
    stablehlo.return %j, %b : tensor<i32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
}
"""


def explained(text: str) -> str:
    return trivium.compile(trivium.parse(text)).explain()


def test_which_ops_share_a_kernel() -> None:
    text = explained(FUSED)
    assert text.startswith("3 ops became 2 launches of 2 kernels; the values that pass between them take 16,384 bytes.")
    assert "tanh and exponential are one kernel" in text
    assert "The result of exponential is stored by fused_tanh_exponential_0 for dot_0: " in text
    assert "dot_general reads each element many times" in text
    assert "16,384 bytes are copied from arg0 to result1, which is a result of its own." in text


def test_lines_and_repeated_ops() -> None:
    module = trivium.parse(FUSED)
    for op, line in zip(module.main.body.block, (3, 4, 5, 6), strict=True):
        op.location = FileLocation("/home/model.py", line)
    assert "(model.py:3 and 4): tanh and exponential are one kernel;" in trivium.compile(module).explain()
    squares = trivium.parse(FUSED.replace("exponential", "tanh"))
    assert ": tanh (2 times) are one kernel;" in trivium.compile(squares).explain()


def test_values_of_a_loop_are_copied() -> None:
    assert "which is a value that a loop or branch changes" in explained(LOOP)


def test_shapes_that_were_compiled() -> None:
    text = "func.func @main(%x: tensor<?xf32>, %y: tensor<3xf32>) -> tensor<?xf32> { %0 = stablehlo.tanh %x : tensor<?xf32> return %0 : tensor<?xf32> }"  # noqa: E501
    run = trivium.compile(trivium.parse(text))
    assert run.explain().startswith("main has dynamic shapes, and is compiled for those of its arguments")
    assert "It was compiled" not in run.explain()
    for size in (2, 5, 2):
        run(np.zeros(size, np.float32), np.zeros(3, np.float32))
    lines = run.explain().split("\n")
    assert "It was compiled for the shapes 5, 3." in lines
    assert "It was compiled for the shapes 2, 3: the shape of argument 0 is new." in lines
    assert "1 op became 1 launch of 1 kernel; no value passes between them in memory." in lines


def test_explaining_changes_nothing() -> None:
    run = trivium.compile(trivium.parse(FUSED))
    before = run.stage("kernels")
    run.explain()
    assert run.stage("kernels") == before


@pytest.mark.parametrize("command", ["explain"])
def test_the_command(tmp_path, command: str) -> None:
    (tmp_path / "program.mlir").write_text(FUSED)
    result = CliRunner().invoke(main, [command, str(tmp_path / "program.mlir")])
    assert "are one kernel" in result.output


def test_a_program_that_computes_nothing() -> None:
    first, *rest = explained(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    ).splitlines()
    assert first == "It computes nothing: its results are its arguments, or constants."
    assert rest == ["16 bytes are copied from arg0 to result0, which is a result of its own."]
