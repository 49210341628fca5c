"""Programs whose extents follow from their data: where they are divided, and what passes from one part to the next."""

import numpy as np
import pytest

import trivium
from trivium.compiler.parts import UnknownExtents, split
from trivium.compiler.pipeline import inline, specialize
from trivium.ir.errors import CompileError
from trivium.ir.ops import Constant, DynamicIota, If

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

NESTED = """func.func @main(%x: tensor<70xi64>, %p: tensor<i1>) -> tensor<?xi64> {
  %first = stablehlo.slice %x [0:1] : (tensor<70xi64>) -> tensor<1xi64>
  %scalar = stablehlo.reshape %first : (tensor<1xi64>) -> tensor<i64>
  %four = stablehlo.constant dense<4> : tensor<i64>
  %none = stablehlo.constant dense<0> : tensor<i64>
  %full = stablehlo.constant dense<71> : tensor<1xi64>
  %r = "stablehlo.if"(%p) ({
    %size = stablehlo.abs %first : tensor<1xi64>
    %0 = stablehlo.dynamic_iota %size, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
    %sum = stablehlo.reduce(%0 init: %none) applies stablehlo.add across dimensions = [0]
      : (tensor<?xi64>, tensor<i64>) -> tensor<i64>
    %few = stablehlo.compare LT, %sum, %four : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %1 = "stablehlo.if"(%few) ({
      %2 = stablehlo.concatenate %0, %0, dim = 0 : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64>
      stablehlo.return %2 : tensor<?xi64>
    }, {
      stablehlo.return %0 : tensor<?xi64>
    }) : (tensor<i1>) -> tensor<?xi64>
    stablehlo.return %1 : tensor<?xi64>
  }, {
    %3 = stablehlo.concatenate %x, %first, dim = 0 : (tensor<70xi64>, tensor<1xi64>) -> tensor<71xi64>
    %4 = stablehlo.dynamic_reshape %3, %full : (tensor<71xi64>, tensor<1xi64>) -> tensor<?xi64>
    stablehlo.return %4 : tensor<?xi64>
  }) : (tensor<i1>) -> tensor<?xi64>
  return %r : tensor<?xi64>
}"""
LOOP = """func.func @main(%x: tensor<70xi64>) -> tensor<i64> {
  %first = stablehlo.slice %x [0:1] : (tensor<70xi64>) -> tensor<1xi64>
  %none = stablehlo.constant dense<0> : tensor<i64>
  %r = stablehlo.while(%i = %none) : tensor<i64>
   cond {
    %more = stablehlo.compare LT, %i, %none : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %0 = stablehlo.dynamic_iota %first, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
    %1 = stablehlo.reduce(%0 init: %none) applies stablehlo.add across dimensions = [0]
      : (tensor<?xi64>, tensor<i64>) -> tensor<i64>
    stablehlo.return %1 : tensor<i64>
  }
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
    first, rest, passed, _ = split(found)
    first.verify()
    rest.verify()
    assert passed == (1, 2)
    assert [str(kind) for kind in first.main.function_type.results] == ["tensor<1xi64>", "tensor<70xf32>"]
    assert first.main.function_type.results == rest.main.function_type.inputs
    assert any(isinstance(op, Constant) for op in rest.main.body.block), "constants are not passed on"
    x = numbers(0)
    results = trivium.evaluate(rest, *trivium.evaluate(first, x))
    for ours, wanted in zip(results, trivium.evaluate(trivium.parse(COUNTED), x), strict=True):
        np.testing.assert_array_equal(ours, wanted)


def test_a_program_is_divided_before_a_conditional() -> None:
    found = unknown(INSIDE, [(70,), ()])
    assert isinstance(found.op, If)
    first, rest, passed, known = split(found)
    first.verify()
    rest.verify()
    assert first.main.function_type.results == rest.main.function_type.inputs[1:], "arguments are not computed"
    assert (passed, known, str(rest.main.function_type.inputs[0])) == ((1, 2), 1, "tensor<i1>")
    module = trivium.parse(INSIDE)
    run = trivium.compile(module)
    x = np.arange(3, 73)
    for p, expected in ((True, 3), (False, 0), (True, 3)):
        assert run(x, np.array(p))[0] == trivium.evaluate(module, x, np.array(p))[0] == expected


def test_a_program_is_divided_again_inside_of_a_branch() -> None:
    """Also by a conditional in a branch."""
    module = trivium.parse(NESTED)
    run = trivium.compile(module)
    for first in (3, 5, -1):
        x = np.full(70, first)
        for p in (True, False):
            (result,), (expected,) = (f(x, np.array(p)) for f in (run, lambda *x: trivium.evaluate(module, *x)))
            np.testing.assert_array_equal(result, expected)


def test_inside_of_a_loop_nothing_is_divided() -> None:
    found = unknown(LOOP, [(70,)])
    with pytest.raises(CompileError) as caught:
        split(found)
    assert caught.value is found
    with pytest.raises(CompileError, match="only known at run time"):
        trivium.compile(trivium.parse(LOOP))
