"""Functions and calls: what a function records about itself, and which calls have effects."""

from __future__ import annotations

import pytest

from trivium.ir.errors import ParseError, VerificationError
from trivium.ir.func import Module
from trivium.ir.text import parse
from trivium.ir.verifier import verify

MAIN = "func.func @main(%a: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {"
RECURSIVE_IN_BRANCH = f"""{MAIN}
  %0 = "stablehlo.if"(%p) ({{
    %1 = func.call @main(%a, %p) : (tensor<f32>, tensor<i1>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }}, {{
    stablehlo.return %a : tensor<f32>
  }}) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}}"""


def calls(depth: int, last: str) -> Module:
    """Returns functions that each call the next one twice; the last one does `last`."""
    one = "tensor<f32>"
    lines = [
        f"func.func private @f{index}(%a: {one}) -> {one} {{\n"
        f"  %0 = call @f{index + 1}(%a) : ({one}) -> {one}\n"
        f"  %1 = call @f{index + 1}(%0) : ({one}) -> {one}\n"
        f"  return %1 : {one}\n}}"
        for index in range(depth)
    ]
    return parse("\n".join([*lines, f"func.func @f{depth}(%a: {one}) -> {one} {{\n  {last}\n  return %0 : {one}\n}}"]))


@pytest.mark.parametrize(
    ("last", "pure"),
    [
        ("%0 = stablehlo.abs %a : tensor<f32>", True),
        ("%0 = stablehlo.custom_call @f(%a) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>", False),
    ],
)
def test_effects_of_deep_and_many_calls(last: str, pure: bool) -> None:
    module = calls(2000, last)
    assert module.function("f0").body.block.first.is_pure == pure


def test_a_call_that_recurses_inside_a_branch_has_effects() -> None:
    branch = parse(RECURSIVE_IN_BRANCH).main.body.block.first
    assert not branch.is_pure
    assert not branch.regions[0].block.first.is_pure


def test_an_op_may_use_values_from_outside() -> None:
    verify(parse(RECURSIVE_IN_BRANCH).main.body.block.first)


def test_visibility_is_one_of_mlirs() -> None:
    attributes = '{function_type = () -> (), sym_name = "f", sym_visibility = "secret"}'
    module = parse(f'"func.func"() <{attributes}> ({{ func.return }}) : () -> ()')
    with pytest.raises(VerificationError, match="has visibility 'secret', expected public, private or nested"):
        module.verify()


def test_bounds_belong_to_dynamic_dimensions() -> None:
    with pytest.raises(ParseError, match="the bound 4 for dimension 0, of static extent"):
        parse("func.func @f(%a: tensor<4xf32, #stablehlo.bounds<4>>) { return }")
