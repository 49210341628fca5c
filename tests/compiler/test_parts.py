"""Programs whose extents follow from their data: where they are divided, and what passes from one part to the next."""

import numpy as np
import pytest

import trivium
from trivium.compiler.parts import UnknownExtents, split
from trivium.compiler.pipeline import inline, specialize
from trivium.ir.errors import CompileError
from trivium.ir.ops import Constant, DynamicIota

COUNTED = """func.func @main(%x: tensor<70xf32>) -> (tensor<?xi64>, tensor<70xf32>) {
  %weights = stablehlo.constant dense<2.0> : tensor<70xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<70xf32>
  %none = stablehlo.constant dense<0> : tensor<i64>
  %y = stablehlo.multiply %x, %weights : tensor<70xf32>
  %positive = stablehlo.compare GT, %y, %zero : (tensor<70xf32>, tensor<70xf32>) -> tensor<70xi1>
  %numbers = stablehlo.convert %positive : (tensor<70xi1>) -> tensor<70xi64>
  %count = stablehlo.reduce(%numbers init: %none) applies stablehlo.add across dimensions = [0]
    : (tensor<70xi64>, tensor<i64>) -> tensor<i64>
  %size = stablehlo.reshape %count : (tensor<i64>) -> tensor<1xi64>
  %0 = stablehlo.dynamic_iota %size, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
  %z = stablehlo.add %y, %weights : tensor<70xf32>
  return %0, %z : tensor<?xi64>, tensor<70xf32>
}"""
INSIDE = """func.func @main(%x: tensor<70xi64>, %p: tensor<i1>) -> tensor<i64> {
  %first = stablehlo.slice %x [0:1] : (tensor<70xi64>) -> tensor<1xi64>
  %none = stablehlo.constant dense<0> : tensor<i64>
  %r = "stablehlo.if"(%p) ({
    %0 = stablehlo.dynamic_iota %first, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
    %1 = stablehlo.reduce(%0 init: %none) applies stablehlo.add across dimensions = [0]
      : (tensor<?xi64>, tensor<i64>) -> tensor<i64>
    stablehlo.return %1 : tensor<i64>
  }, {
    stablehlo.return %none : tensor<i64>
  }) : (tensor<i1>) -> tensor<i64>
  return %r : tensor<i64>
}"""


def numbers(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(70).astype(np.float32)


def unknown(text: str, shapes: list) -> UnknownExtents:
    with pytest.raises(UnknownExtents, match="its extents depend on values that are only known at run time") as caught:
        specialize(inline(trivium.parse(text)), shapes, {})
    return caught.value


def test_a_program_is_divided_where_an_extent_is_unknown() -> None:
    found = unknown(COUNTED, [(70,)])
    assert isinstance(found.op, DynamicIota)
    first, rest = split(found)
    first.verify()
    rest.verify()
    assert [str(kind) for kind in first.main.function_type.results] == ["tensor<1xi64>", "tensor<70xf32>"]
    assert first.main.function_type.results == rest.main.function_type.inputs
    assert any(isinstance(op, Constant) for op in rest.main.body.block), "constants are not passed on"
    x = numbers(0)
    results = trivium.evaluate(rest, *trivium.evaluate(first, x))
    for ours, wanted in zip(results, trivium.evaluate(trivium.parse(COUNTED), x), strict=True):
        np.testing.assert_array_equal(ours, wanted)


def test_inside_of_an_op_nothing_is_divided() -> None:
    found = unknown(INSIDE, [(70,), ()])
    with pytest.raises(CompileError) as caught:
        split(found)
    assert caught.value is found
    with pytest.raises(CompileError, match="only known at run time"):
        trivium.compile(trivium.parse(INSIDE))
