"""Names of values, and the one-line texts of ops in error messages."""

import numpy as np

from trivium.ir.attributes import DenseElements
from trivium.ir.core import Block, Operation
from trivium.ir.declare import OPS
from trivium.ir.text import parse, print_op
from trivium.ir.types import F32, tensor


def test_chosen_names_stay_and_others_are_made_anew():
    module = parse(
        """\
func.func @f(%input: tensor<f32>, %7: tensor<f32>) -> tensor<f32> {
  %sum = stablehlo.add %input, %7 : tensor<f32>
  %90 = stablehlo.add %sum, %sum : tensor<f32>
  %cst_9 = stablehlo.constant dense<1.0> : tensor<f32>
  %cst_4 = stablehlo.constant dense<2.0> : tensor<f32>
  return %90 : tensor<f32>
}
"""
    )
    lines = str(module).splitlines()[1:-1]
    assert [line.split(" = ")[0].strip() for line in lines[1:5]] == ["%sum", "%0", "%cst", "%cst_0"]
    assert lines[0].startswith("  func.func @f(%input: tensor<f32>, %arg0: tensor<f32>)")


def test_hints_become_names():
    module = parse("func.func @f(%arg0: tensor<f32>, %arg1: tensor<f32>) { return }")
    one, other = module.functions["f"].arguments
    one.name_hint, other.name_hint = "9 lives/x", "_9_lives_x"
    assert "(%_9_lives_x: tensor<f32>, %_9_lives_x_0: tensor<f32>)" in str(module)


def test_message_of_an_op():
    module = parse(
        """\
func.func @f(%arg0: tensor<101xi32>) -> tensor<101xi32> {
  %0 = stablehlo.negate %arg0 : tensor<101xi32>
  %1 = stablehlo.add %0, %0 : tensor<101xi32>
  return %1 : tensor<101xi32>
}
"""
    )
    function = module.functions["f"]
    _, add, _ = function.body.block
    assert print_op(add) == "%1 = stablehlo.add %0, %0 : tensor<101xi32>"
    assert print_op(function) == "func.func @f(%arg0: tensor<101xi32>) -> tensor<101xi32> {...}"
    constant = OPS["stablehlo.constant"](DenseElements(np.arange(101, dtype=np.int32)))
    assert print_op(constant) == "%c = stablehlo.constant dense<...> : tensor<101xi32>"


def test_message_about_an_incomplete_op():
    value = Block([tensor(4)]).arguments[0]
    for name, cls in OPS.items():
        assert name in print_op(cls.create()) or name in ("builtin.module", "func.return", "func.call", "func.func")
        assert print_op(cls.create([value], [tensor(of=F32)]))
        assert print_op(cls.create([value] * 7, [tensor(of=F32)] * 3, {"value": object(), "dimensions": None}))
    assert print_op(Operation([value])) == '""(%?) : (tensor<4xf32>) -> ()'


def test_sibling_regions_start_alike():
    text = """\
module {
  func.func @f(%arg0: tensor<i1>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.if"(%arg0) ({
      %1 = stablehlo.negate %arg1 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }, {
      %1 = stablehlo.abs %arg1 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
"""
    assert str(parse(text)) == text
