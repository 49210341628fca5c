"""Shardy's annotations: what JAX writes is read, kept, and written again."""

import numpy as np
import pytest

from trivium.ir.equality import difference
from trivium.ir.errors import UnsupportedOpError
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse, print_module

CONSTRAINT = """module @jit_f attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) \
-> tensor<4x4xf32> {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}]> : tensor<4x4xf32>
    %1 = sdy.reshard %0 <@mesh, [{?}, {}], replicated={"y"}> : tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}
"""
MANUAL = """module @jit_g {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<4x4xi32>) -> tensor<2x4xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] \
out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"x", "y"} (%arg1: tensor<2x2xi32>) {
      %1 = stablehlo.add %arg1, %arg1 : tensor<2x2xi32>
      sdy.return %1 : tensor<2x2xi32>
    } : (tensor<4x4xi32>) -> tensor<2x4xi32>
    return %0 : tensor<2x4xi32>
  }
}
"""


@pytest.mark.parametrize("text", [CONSTRAINT, MANUAL], ids=["constraint", "manual"])
def test_round_trip(text):
    module = parse(text)
    module.verify()
    assert print_module(module) == text
    assert difference(parse(print_module(module, generic=True)), module) == ""


def test_a_constraint_is_the_identity():
    x = np.ones((4, 4), np.float32)
    np.testing.assert_array_equal(evaluate(parse(CONSTRAINT), x)[0], x)


def test_parts_need_devices():
    with pytest.raises(UnsupportedOpError, match="takes several devices"):
        evaluate(parse(MANUAL), np.ones((4, 4), np.int32))
    whole = MANUAL.replace("2x2xi32", "4x4xi32").replace("2x4xi32", "4x4xi32").replace('"x"=2, "y"=2', '"x"=1, "y"=1')
    np.testing.assert_array_equal(evaluate(parse(whole), np.ones((4, 4), np.int32))[0], np.full((4, 4), 2))


@pytest.mark.jax
def test_mlir_agrees(mlir):
    for text in (CONSTRAINT, MANUAL):
        assert mlir(print_module(parse(text), generic=True)) == mlir(text)
        assert difference(parse(mlir(text)), parse(text)) == ""
