"""Chains are recognized only where nothing else needs what they compute."""

from __future__ import annotations

from dataclasses import replace

import pytest

import trivium
from tests.compiler.attention_gradients import Gradients
from tests.compiler.fusion.forms.test_chained import products

CASE = Gradients()
ROW, PLANE = "tensor<2x40xf32>", "tensor<2x40x70xf32>"
RESULTS = [f"tensor<2x{size}xf32>" for size in ("40x20", "70x20", "70x36")]


def with_result(name: str, kind: str, computed: str = "") -> list[int]:
    """Returns the kernels if there is a result more."""
    all_kinds, names = ", ".join(RESULTS), "%dq, %dk, %dv"
    text = CASE.text().replace(f"-> ({all_kinds}) {{", f"-> ({all_kinds}, {kind}) {{")
    text = text.replace(f"return {names} : {all_kinds}", f"{computed}\nreturn {names}, {name} : {all_kinds}, {kind}")
    return products(trivium.parse(text))


@pytest.mark.parametrize("name", ["%w", "%dx", "%dw"])
def test_weights_that_are_results_are_stored(name: str) -> None:
    assert not any(with_result(name, PLANE))


def test_weights_that_are_summed_are_stored() -> None:
    zero = "%zero = stablehlo.constant dense<0.0> : tensor<f32>"
    total = "%t = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [2]"
    assert not any(with_result("%t", ROW, f"{zero}\n{total} : ({PLANE}, tensor<f32>) -> {ROW}"))


def test_gradients_of_queries_alone() -> None:
    assert products(replace(CASE, queries_only=True).module()) == [2]


def test_products_without_an_exponential_are_no_weights() -> None:
    text = CASE.text().replace("stablehlo.exponential", "stablehlo.negate")
    assert not any(products(trivium.parse(text)))


def test_a_reshape_that_divides_dimensions_follows_in_a_kernel_of_its_own() -> None:
    divided = "tensor<2x8x5x20xf32>"
    after = f"%r = stablehlo.reshape %dq : ({RESULTS[0]}) -> {divided}\n%n = stablehlo.negate %r : {divided}"
    text = replace(CASE, queries_only=True).text().replace(f"-> ({RESULTS[0]}) {{", f"-> {divided} {{")
    text = text.replace(f"return %dq : {RESULTS[0]}", f"{after}\nreturn %n : {divided}")
    assert products(trivium.parse(text)) == [2, 0]
