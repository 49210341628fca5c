"""Asynchronous ops, done where they start."""

from __future__ import annotations

import numpy as np

from trivium import compile as compiled
from trivium.compiler.passes.asynchronous import DoAtStart
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

PROGRAM = """
func.func @main(%0: tensor<4xi32>) -> (tensor<2xi32>, tensor<4xi32>) {
  %1 = "stablehlo.async_start"(%0) ({
  ^bb0(%2: tensor<4xi32>):
    %3 = stablehlo.slice %2 [1:3] : (tensor<4xi32>) -> tensor<2xi32>
    stablehlo.return %3 : tensor<2xi32>
  }) : (tensor<4xi32>) -> !stablehlo.future<tensor<2xi32>>
  %4 = stablehlo.add %0, %0 : tensor<4xi32>
  stablehlo.custom_call @control_dep(%0, %4) {has_side_effect = true} : (tensor<4xi32>, tensor<4xi32>) -> ()
  %5 = "stablehlo.async_done"(%1) : (!stablehlo.future<tensor<2xi32>>) -> tensor<2xi32>
  return %5, %4 : tensor<2xi32>, tensor<4xi32>
}
"""


def test_what_starts_is_done() -> None:
    module = parse(PROGRAM)
    assert DoAtStart().run(module)
    module.verify()
    assert [op.NAME for op in module.main.body.block] == [
        "stablehlo.slice", "stablehlo.add", "func.return"
    ]  # fmt: skip
    assert not DoAtStart().run(module)
    x = np.arange(4, dtype=np.int32)
    for results in (evaluate(module, x), compiled(parse(PROGRAM))(x)):
        np.testing.assert_array_equal(results[0], x[1:3])
        np.testing.assert_array_equal(results[1], 2 * x)
