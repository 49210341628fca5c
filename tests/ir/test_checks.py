"""The test ops of StableHLO's own programs: their text is read back unchanged, and they accept exactly what agrees."""

from __future__ import annotations

import pytest

from tests.ir import checks
from trivium.ir.equality import difference
from trivium.ir.errors import ExecutionError
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse, print_module

checks.register()

HOLD = """
  check.expect_eq %x, %x : tensor<2xf32>
  check.expect_almost_eq %x, %y, tolerance = 5.000000e-01 : tensor<2xf32>
  check.expect_almost_eq_const %x, dense<[1.5, 2.0]> : tensor<2xf32> {tolerance = 5.000000e-01 : f64}
  check.expect_close %x, %x, max_ulp_difference = 0 : tensor<2xf32>, tensor<2xf32>
  check.expect_close %x, %y, max_ulp_difference = 2097152, min_ulp_difference = 0 : tensor<2xf32>, tensor<2xf32>
"""

FAIL = """
  check.expect_eq %x, %y : tensor<2xf32>
  check.expect_almost_eq %x, %y : tensor<2xf32>
  check.expect_almost_eq_const %x, dense<[1.5, 2.0]> : tensor<2xf32>
  check.expect_close %x, %y, max_ulp_difference = 2097151 : tensor<2xf32>, tensor<2xf32>
  check.expect_close %x, %x, max_ulp_difference = 1, min_ulp_difference = 1 : tensor<2xf32>, tensor<2xf32>
"""


def program(check: str) -> str:
    return f"""
func.func @main() {{
  %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = stablehlo.constant dense<[1.25, 2.0]> : tensor<2xf32>
  {check}
  return
}}"""


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("check", lines(HOLD))
def test_equal_values_pass(check: str) -> None:
    evaluate(parse(program(check)))


@pytest.mark.parametrize("check", lines(FAIL))
def test_different_values_do_not_pass(check: str) -> None:
    with pytest.raises(ExecutionError, match="numbers differ"):
        evaluate(parse(program(check)))


@pytest.mark.parametrize("check", lines(HOLD) + lines(FAIL))
def test_checks_are_read_back(check: str) -> None:
    module = parse(program(check))
    for generic in (False, True):
        assert difference(parse(print_module(module, generic=generic)), module) == ""
