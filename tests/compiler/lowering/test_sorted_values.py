"""Sorts and greatest elements: all lengths, ties, and NaN."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.interpreted import expect_same, function


def sort(shape: str, kind: str, dimension: int, compare: str) -> str:
    tensor = f"tensor<{shape}x{kind}>"
    return function(
        f"%x: {tensor}",
        tensor,
        f'%0 = "stablehlo.sort"(%x) <{{dimension = {dimension} : i64, is_stable = true}}> ({{',
        f"^bb0(%a: tensor<{kind}>, %b: tensor<{kind}>):",
        f"  %1 = stablehlo.compare {compare} : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>",
        "  stablehlo.return %1 : tensor<i1>",
        f"}}) : ({tensor}) -> {tensor}",
        f"return %0 : {tensor}",
    )


@pytest.mark.parametrize("extent", [1, 2, 3, 5, 8, 11, 16])
def test_every_length(extent: int) -> None:
    x = np.random.default_rng(extent).integers(0, 6, (3, extent)).astype(np.int32)
    expect_same(sort(f"3x{extent}", "i32", 1, "LT, %a, %b"), x)
    expect_same(sort(f"{extent}x3", "i32", 0, "GT, %a, %b"), np.ascontiguousarray(x.T))


def test_total_order_puts_nan_last() -> None:
    x = np.array([2, np.nan, -np.inf, -0.0, 0.0, np.inf, -1], np.float32)
    expect_same(sort("7", "f32", 0, "LT, %a, %b, TOTALORDER"), x)


def test_ties_keep_their_order_with_what_belongs_to_them() -> None:
    keys, values = np.array([2, 1, 2, 1, 0, 2, 1], np.int32), np.arange(7, dtype=np.float32)
    text = function(
        "%k: tensor<7xi32>, %v: tensor<7xf32>",
        "tensor<7xi32>, tensor<7xf32>",
        '%0:2 = "stablehlo.sort"(%k, %v) <{dimension = 0 : i64, is_stable = true}> ({',
        "^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<f32>):",
        "  %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "  stablehlo.return %1 : tensor<i1>",
        "}) : (tensor<7xi32>, tensor<7xf32>) -> (tensor<7xi32>, tensor<7xf32>)",
        "return %0#0, %0#1 : tensor<7xi32>, tensor<7xf32>",
    )
    expect_same(text, keys, values)


@pytest.mark.parametrize(("extent", "k"), [(1, 1), (5, 2), (8, 8), (9, 3)])
def test_the_greatest_elements_first(extent: int, k: int) -> None:
    x = np.random.default_rng(k).integers(0, 4, (2, extent)).astype(np.float32)
    text = function(
        f"%x: tensor<2x{extent}xf32>",
        f"tensor<2x{k}xf32>, tensor<2x{k}xi32>",
        f"%0, %1 = chlo.top_k(%x, k = {k}) : tensor<2x{extent}xf32> -> (tensor<2x{k}xf32>, tensor<2x{k}xi32>)",
        f"return %0, %1 : tensor<2x{k}xf32>, tensor<2x{k}xi32>",
    )
    expect_same(text, x)
