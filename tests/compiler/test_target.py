"""Descriptions of devices in numbers, and the decisions that follow from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.compiler.targets import TARGET
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.compiler.target import Target
from trivium.ir.text import parse

SOFTMAX = """func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<4x64xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x64xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<4xf32>) -> tensor<4x64xf32>
  %3 = stablehlo.divide %0, %2 : tensor<4x64xf32>
  return %3 : tensor<4x64xf32>
}"""  # noqa: E501


def kernels(target: Target) -> str:
    return "\n".join(map(str, lower(optimize(parse(SOFTMAX)), target).kernels()))


def test_threads_are_all_that_changes() -> None:
    assert TARGET.with_threads(7) == replace(TARGET, threads=7)


def test_products_run_at_the_full_speed_of_the_device() -> None:
    """Eight floats fit in a register: sixteen operations per unit of cost for each multiply-add that it can begin."""
    assert TARGET.product_cost(1600, 4) == 100
    assert TARGET.product_cost(1600, 8) == 200
    assert TARGET.product_cost(1600, 4, 6400) == 200  # reading 6400 bytes takes longer
    assert replace(TARGET, multiply_adds=2).product_cost(1600, 4) == 50


@pytest.mark.parametrize(("recompute_cost", "exponentials"), [(4.0, 1), (1e9, 2)])
def test_what_costs_less_than_storing_it_is_computed_again(recompute_cost: float, exponentials: int) -> None:
    text = kernels(replace(TARGET, recompute_cost=recompute_cost))
    assert text.count("= exponential") == exponentials


def test_rows_too_long_for_scratch_are_computed_again() -> None:
    limits = replace(TARGET.fusion, scratch_row=8)
    assert kernels(TARGET).count("= exponential") == 1
    assert kernels(replace(TARGET, fusion=limits)).count("= exponential") == 2
