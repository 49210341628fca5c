"""Values that follow from a program's constants."""

import numpy as np
import pytest

import trivium
from trivium.ir.known import evaluate_known

REDUCED = """func.func @main(%x: tensor<4xi64>) -> tensor<i64> {
  %zero = stablehlo.constant dense<START> : tensor<KIND>
  %list = stablehlo.constant dense<LIST> : tensor<4xKIND>
  %sum = stablehlo.reduce(OF init: %zero) applies stablehlo.OP across dimensions = [0]
    : (tensor<4xKIND>, tensor<KIND>) -> tensor<KIND>
  return %sum : tensor<KIND>
}"""


def known(**parts: str) -> np.ndarray | None:
    text = REDUCED.replace("-> tensor<i64> {", "-> tensor<KIND> {")
    for name, part in {
        "OP": "add",
        "OF": "%list",
        "START": "0",
        "KIND": "i64",
        "LIST": "[3, 1, 4, 1]",
        **parts,
    }.items():
        text = text.replace(name, part)
    return evaluate_known(trivium.parse(text).main.body.terminator.operands[0])


@pytest.mark.parametrize(("op", "wanted"), [("add", 9), ("maximum", 4), ("multiply", 0)])
def test_reductions_of_integers_are_known(op: str, wanted: int) -> None:
    found = known(OP=op)
    assert found is not None
    assert found == wanted


def test_reductions_of_arguments_and_of_floats_are_not_known() -> None:
    # Sums of floats depend on the order in which a kernel adds them.
    assert known(OF="%x") is None
    assert known(KIND="f32", START="0.0", LIST="[3.0, 1.0, 4.0, 1.0]") is None
