"""Loops, branches and exchanges, which become several instructions: XLA reads the same program."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.jax

pytest.importorskip("jaxlib")

from tests.backends.plugin.hlo.reading import run, shown, written
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

LOOP = """func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %i = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%a = %x, %k = %i) : tensor<4xf32>, tensor<i32>
  cond {
    %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %b = stablehlo.multiply %a, %w : tensor<4xf32>
    %d = stablehlo.sine %b : tensor<4xf32>
    %e = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %d, %e : tensor<4xf32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<i32>
}"""

BRANCHES = """func.func @main(%i: tensor<i32>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%i) ({
    %a = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %a : tensor<4xf32>
  }, {
    stablehlo.return %y : tensor<4xf32>
  }, {
    %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    stablehlo.return %c : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""

X, W = np.linspace(0, 1, 4, dtype=np.float32), np.linspace(2, 3, 4, dtype=np.float32)


def test_a_loop_that_reads_values_from_outside() -> None:
    arrays = X, W, np.array(3, np.int32)
    text = shown(written(LOOP))
    assert " while(" in text
    assert ", condition=%condition" in text
    for found, wanted in zip(run(LOOP, arrays), evaluate(parse(LOOP), *arrays), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("index", [0, 1, 2, 5])
def test_branches(index: int) -> None:
    arrays = np.array(index, np.int32), X, W
    assert "branch_computations={%branch" in shown(written(BRANCHES))
    np.testing.assert_allclose(run(BRANCHES, arrays)[0], evaluate(parse(BRANCHES), *arrays)[0], rtol=1e-6)


def test_an_if_is_a_conditional_with_two_computations() -> None:
    program = """func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.if"(%p) ({
        %a = stablehlo.sine %x : tensor<4xf32>
        stablehlo.return %a : tensor<4xf32>
      }, {
        stablehlo.return %x : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    assert "true_computation=%branch" in shown(written(program))
    np.testing.assert_array_equal(run(program, (np.array(False), X))[0], X)


@pytest.mark.parametrize(("rank", "split", "concat"), [(2, 0, 1), (2, 1, 0), (3, 0, 2), (3, 2, 0), (3, 1, 2)])
def test_what_is_exchanged_is_where_the_op_puts_it(rank: int, split: int, concat: int) -> None:
    """HLO exchanges parts along one dimension. Here each device has the same array, so that the exchange alone repeats
    one part of it, and the ops after it move the parts."""
    from jaxlib import _hlo

    shape = [2, 4, 6][:rank]
    result = list(shape)
    result[split] //= 2
    result[concat] *= 2
    kinds = ["tensor<" + "x".join(map(str, extents)) + "xf32>" for extents in (shape, result)]
    program = f"""func.func @main(%x: {kinds[0]}) -> {kinds[1]} {{
      %0 = "stablehlo.all_to_all"(%x) {{split_dimension = {split} : i64, concat_dimension = {concat} : i64,
        split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}} : ({kinds[0]}) -> {kinds[1]}
      return %0 : {kinds[1]}
    }}"""
    text = shown(written(program, replicas=2))
    assert f"replica_groups={{{{0,1}}}}, dimensions={{{split}}}" in text
    moves = text.replace("all-to-all(", "copy(").replace(f", replica_groups={{{{0,1}}}}, dimensions={{{split}}}", "")
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    moved = _evaluate_text(_hlo.hlo_module_from_text(moves).as_serialized_hlo_module_proto(), array)
    np.testing.assert_array_equal(moved, np.concatenate(np.split(array, 2, split), concat))


def _evaluate_text(module: bytes, array: np.ndarray) -> np.ndarray:
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax
    from jax._src.lib.mlir import ir

    with mlir.make_ir_context():
        text = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(module)).operation.get_asm(print_generic_op_form=True)
    text = text.replace('"mhlo.copy"', '"stablehlo.optimization_barrier"')
    return evaluate(parse(text), array)[0]


def test_a_broadcast_of_ones_is_reshaped_first() -> None:
    program = """func.func @main(%x: tensor<3x1xf32>) -> tensor<3x4xf32> {
      %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x4xf32>
      return %0 : tensor<3x4xf32>
    }"""
    array = np.arange(3, dtype=np.float32).reshape(3, 1)
    np.testing.assert_array_equal(run(program, [array])[0], np.broadcast_to(array, (3, 4)))


def test_a_custom_call_has_its_target_and_configuration() -> None:
    program = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @target(%x) {has_side_effect = true, backend_config = {n = 3 : i32},
        api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    text = shown(written(program))
    assert 'custom_call_target="target", custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI' in text
    assert "{n = 3 : i32}" in text
