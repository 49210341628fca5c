"""Sorts and largest elements along open sizes: what is in the space comes last."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from tests.compiler.bounded.programs import combinations, require_equal, require_text
from trivium.compiler.bounded import Unbounded, bounded

N = combinations(n=(2, 3, 7))


def sorting(direction: str, dimension: int, kind: str = "f32") -> str:
    """A sort with the places that the elements had."""
    of = f"tensor<?x?x{kind}>"
    return f"""func.func @main(%x: {of}, %y: tensor<?x?xi32>) -> ({of}, tensor<?x?xi32>) {{
    %r:2 = "stablehlo.sort"(%x, %y) <{{dimension = {dimension} : i64, is_stable = true}}> ({{
      ^bb0(%a: tensor<{kind}>, %b: tensor<{kind}>, %c: tensor<i32>, %d: tensor<i32>):
        %e = stablehlo.compare {direction}, %a, %b : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>
        stablehlo.return %e : tensor<i1>
      }}) : ({of}, tensor<?x?xi32>) -> ({of}, tensor<?x?xi32>)
    return %r#0, %r#1 : {of}, tensor<?x?xi32> }}"""


@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize("kind", ["f32", "i32", "ui8"])
def test_sorts(direction: str, dimension: int, kind: str) -> None:
    require_text(sorting(direction, dimension, kind), ["n m", "n m"], combinations(n=(2, 5), m=(3, 4)), compiled=True)


def test_elements_that_are_like_the_space_keep_their_places() -> None:
    """NaN, and the lowest and highest numbers, some of them several times."""
    extremes = np.array([np.inf, -np.inf, 3, np.inf, -np.inf, 0, np.inf, -np.inf], np.float32)
    module = trivium.parse(sorting("LT", 1))
    given = [[extremes[None, :n], np.arange(n, dtype=np.int32)[None]] for n in (4, 7, 8)]
    require_equal(module, given)
    require_equal(module, given, trivium.compile(bounded(module, [[x.shape for x in g] for g in given], {}).module))
    largest = """func.func @main(%x: tensor<?xf32>) -> (tensor<3xf32>, tensor<3xi32>) {
    %v, %i = chlo.top_k(%x, k = 3) : tensor<?xf32> -> (tensor<3xf32>, tensor<3xi32>)
    return %v, %i : tensor<3xf32>, tensor<3xi32> }"""
    lowest = np.array([0xFFFFFFFF, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0xFFC00000], np.uint32).view(np.float32)
    module = trivium.parse(largest)
    for run in (None, trivium.compile(bounded(module, [[(n,)] for n in (3, 4, 5)], {}).module)):
        require_equal(module, [[lowest[:n]] for n in (3, 4, 5)], run)


@pytest.mark.parametrize("kind", ["f32", "bf16", "f64", "i8", "ui16"])
@pytest.mark.parametrize("shape", ["3 n", "n 4", "n 2*n"])
def test_the_largest_elements(kind: str, shape: str) -> None:
    known = ["?" if "n" in extent else extent for extent in shape.split()]
    of, values, places = (f"tensor<{'x'.join(each)}" for each in (known, [known[0], "2"], [known[0], "2"]))
    text = f"""func.func @main(%x: {of}x{kind}>) -> ({values}x{kind}>, {places}xi32>) {{
    %v, %i = chlo.top_k(%x, k = 2) : {of}x{kind}> -> ({values}x{kind}>, {places}xi32>)
    return %v, %i : {values}x{kind}>, {places}xi32> }}"""
    require_text(text, [shape], N, compiled=True)


def test_types_without_a_least_element_are_refused() -> None:
    text = """func.func @main(%x: tensor<?xf8E4M3FNUZ>) -> (tensor<1xf8E4M3FNUZ>, tensor<1xi32>) {
    %v, %i = chlo.top_k(%x, k = 1) : tensor<?xf8E4M3FNUZ> -> (tensor<1xf8E4M3FNUZ>, tensor<1xi32>)
    return %v, %i : tensor<1xf8E4M3FNUZ>, tensor<1xi32> }"""
    with pytest.raises(
        Unbounded, match="the largest elements along a dimension whose size differs, of type f8E4M3FNUZ"
    ):
        bounded(trivium.parse(text), [[(2,)], [(3,)]], {})
