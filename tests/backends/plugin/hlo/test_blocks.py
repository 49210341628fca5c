"""Kernels as fusions, and ops that HLO does not have."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.jax

pytest.importorskip("jaxlib")

from tests.backends.plugin.hlo.reading import shown, written
from trivium.backends.gpu.nvptx import target

SOFTMAX = """func.func @main(%x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.exponential %x : tensor<8x16xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
  %q = stablehlo.divide %e, %b : tensor<8x16xf32>
  return %q, %s : tensor<8x16xf32>, tensor<8xf32>
}"""

PRODUCT = """func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %z = stablehlo.tanh %y : tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}"""

ELEMENTS = """func.func @main(%x: tensor<8xf32>) -> tensor<4x2xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<8xf32>
  %y = stablehlo.multiply %x, %two : tensor<8xf32>
  %z = stablehlo.tanh %y : tensor<8xf32>
  %r = stablehlo.reshape %z : (tensor<8xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}"""


def lines(text: str, opcode: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if f" {opcode}(" in line]


@pytest.mark.parametrize(
    ("program", "kind"),
    [(SOFTMAX, "kInput"), (PRODUCT, "kOutput"), (ELEMENTS, "kLoop")],
    ids=["rows", "product", "loop"],
)
def test_kernels_are_fusions(program: str, kind: str) -> None:
    (fusion,) = lines(shown(written(program)), "fusion")
    assert f"kind={kind}, calls=%fused_computation" in fusion


def test_a_kernel_with_several_results_returns_a_tuple() -> None:
    text = shown(written(SOFTMAX))
    (fusion,) = lines(text, "fusion")
    assert sorted(re.findall(r"f32\[[\d,]+\]", fusion.partition("fusion(")[0])) == ["f32[8,16]", "f32[8]"]
    assert len(lines(text, "get-tuple-element")) == 2


def test_programs_of_gpus() -> None:
    for architecture in ("sm_80", "sm_90a"):
        assert "calls=%fused_computation" in shown(written(SOFTMAX, target(architecture)))


def test_a_result_without_readers_is_left_out() -> None:
    program = """func.func @main(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32> {
      %b = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
      %s:2 = "stablehlo.sort"(%x, %b) ({
        ^bb0(%a: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>, %e: tensor<f32>):
          %p = stablehlo.compare LT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
      }) {dimension = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
      return %s#1 : tensor<4x8xf32>
    }"""
    assert lines(shown(written(program)), "sort")


def test_numbers_are_part_of_kernels() -> None:
    (fusion,) = lines(shown(written(ELEMENTS)), "fusion")
    assert re.search(r"fusion\(%Arg_0\.\d+\)", fusion)


def test_a_view_is_a_bitcast() -> None:
    program = """func.func @main(%x: tensor<8xf32>) -> (tensor<4x2xf32>, tensor<8xf32>) {
      %y = stablehlo.sine %x : tensor<8xf32>
      %z = stablehlo.tanh %y : tensor<8xf32>
      %r = stablehlo.reshape %z : (tensor<8xf32>) -> tensor<4x2xf32>
      return %r, %z : tensor<4x2xf32>, tensor<8xf32>
    }"""
    (view,) = lines(shown(written(program)), "bitcast")
    assert "f32[4,2]{1,0} bitcast(%fusion" in view


def test_a_kernel_of_one_op_is_its_instruction() -> None:
    program = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.sine %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    text = shown(written(program))
    assert lines(text, "sine")
    assert not lines(text, "fusion")


def test_an_op_that_hlo_does_not_have_is_a_call_of_its_name() -> None:
    program = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = chlo.erfc %x : tensor<4xf32> -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    (call,) = lines(shown(written(program)), "custom-call")
    assert 'custom_call_target="chlo.erfc"' in call


def test_a_reduction_in_another_type_is_a_call_of_its_name() -> None:
    program = """func.func @main(%x: tensor<3x4xi8>, %z: tensor<i8>) -> tensor<3xi32> {
      %0 = "stablehlo.reduce"(%x, %z) ({
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          %c = stablehlo.add %a, %b : tensor<i32>
          stablehlo.return %c : tensor<i32>
      }) {dimensions = array<i64: 1>} : (tensor<3x4xi8>, tensor<i8>) -> tensor<3xi32>
      return %0 : tensor<3xi32>
    }"""
    (call,) = lines(shown(written(program)), "custom-call")
    assert 'custom_call_target="stablehlo.reduce"' in call
    assert "dimensions = " in call
