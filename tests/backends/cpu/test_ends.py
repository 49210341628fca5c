"""Loops of programs for several sizes end where the sizes do."""

from __future__ import annotations

import pytest

from tests.backends.cpu.ended import require

ROWS = "%r = stablehlo.exponential %x0 : tensor<6x40x48xf32>"
SOFTMAX = """
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x0 init: %low) applies stablehlo.maximum across dimensions = [2]
    : (tensor<6x40x48xf32>, tensor<f32>) -> tensor<6x40xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<6x40xf32>) -> tensor<6x40x48xf32>
  %d = stablehlo.subtract %x0, %b : tensor<6x40x48xf32>
  %e = stablehlo.exponential %d : tensor<6x40x48xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
    : (tensor<6x40x48xf32>, tensor<f32>) -> tensor<6x40xf32>
  %t = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<6x40xf32>) -> tensor<6x40x48xf32>
  %r = stablehlo.divide %e, %t : tensor<6x40x48xf32>"""
FLAT = """
  %f = stablehlo.reshape %x0 : (tensor<6x40x48xf32>) -> tensor<240x48xf32>
  %g = stablehlo.exponential %f : tensor<240x48xf32>
  %r = stablehlo.reshape %g : (tensor<240x48xf32>) -> tensor<6x40x48xf32>"""


@pytest.mark.parametrize("extents", [(6, 40), (3, 40), (6, 17), (2, 1), (1, 39), (0, 5), (4, 0)], ids=str)
@pytest.mark.parametrize("body", [ROWS, SOFTMAX, FLAT], ids=["elements", "rows", "flat"])
def test_iterations_behind_the_ends_do_not_run(body: str, extents: tuple[int, int]) -> None:
    share = require(body, ["6x40x48xf32"], (6, 40, 48), [0, 1, -1], list(extents))
    assert share == 1.0
