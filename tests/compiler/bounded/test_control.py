"""Conditionals and loops over values with open sizes."""

import pytest

from tests.compiler.bounded.programs import combinations, require_text
from trivium.compiler.bounded import Unbounded

N = combinations(n=(2, 3, 5))


def test_loops_run_as_often_as_there_are_elements() -> None:
    text = """func.func @main(%x: tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>) {
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32> %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<3xf32>
    %r:3 = stablehlo.while(%i = %zero, %y = %x, %s = %none) : tensor<i32>, tensor<?x3xf32>, tensor<3xf32>
      cond {
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %a = stablehlo.dynamic_slice %y, %i, %zero, sizes = [1, 3] :
          (tensor<?x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
        %b = stablehlo.reshape %a : (tensor<1x3xf32>) -> tensor<3xf32>
        %t = stablehlo.add %s, %b : tensor<3xf32>
        %e = stablehlo.exponential %t : tensor<3xf32>
        %f = stablehlo.reshape %e : (tensor<3xf32>) -> tensor<1x3xf32>
        %z = stablehlo.dynamic_update_slice %y, %f, %i, %zero :
          (tensor<?x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<?x3xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %z, %t : tensor<i32>, tensor<?x3xf32>, tensor<3xf32>
      }
    return %r#1, %r#2 : tensor<?x3xf32>, tensor<3xf32> }"""
    require_text(text, ["n 3"], N, compiled=True)


def branches(one: str, other: str) -> str:
    return f"""func.func @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>, %p: tensor<i1>) -> tensor<?x3xf32> {{
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %few = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c = stablehlo.and %p, %few : tensor<i1>
    %r = "stablehlo.if"(%c) ({{ %a = stablehlo.negate {one} : tensor<?x3xf32> stablehlo.return %a : tensor<?x3xf32> }},
      {{ %b = stablehlo.exponential {other} : tensor<?x3xf32> stablehlo.return %b : tensor<?x3xf32> }}) :
      (tensor<i1>) -> tensor<?x3xf32>
    return %r : tensor<?x3xf32> }}"""


def test_which_branch_runs_may_follow_from_sizes() -> None:
    for seed in range(3):
        require_text(branches("%x", "%x"), ["n 3", "n 3", ""], N, compiled=True, seed=seed)


def test_branches_of_different_sizes_are_refused() -> None:
    with pytest.raises(Unbounded, match="another extent"):
        require_text(branches("%x", "%y"), ["n 3", "2*n 3", ""], N)
