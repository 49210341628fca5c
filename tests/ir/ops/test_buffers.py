"""Programs that make buffers, pass them through a loop, and read them again."""

import numpy as np
import pytest

from trivium.ir.custom_calls import register_custom_call
from trivium.ir.errors import ExecutionError
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

ALIAS = "#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>"
PROGRAM = f"""
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %empty = stablehlo.custom_call @CreateBuffer() : () -> memref<2xf32>
  %full = stablehlo.custom_call @Pin(%x) : (tensor<2xf32>) -> memref<2xf32>
  %r:2 = stablehlo.while(%i = %zero, %b = %full) : tensor<i32>, memref<2xf32> cond {{
    %three = stablehlo.constant dense<3> : tensor<i32>
    %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %u = stablehlo.custom_call @tests.add_to(%b, %x) {{output_operand_aliases = [{ALIAS}]}}
      : (memref<2xf32>, tensor<2xf32>) -> memref<2xf32>
    stablehlo.return %j, %u : tensor<i32>, memref<2xf32>
  }}
  %0 = stablehlo.custom_call @Unpin(%r#1) : (memref<2xf32>) -> tensor<2xf32>
  %1 = stablehlo.custom_call @Unpin(%empty) : (memref<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}}
"""


def test_buffers_pass_through_loops() -> None:
    register_custom_call("tests.add_to", evaluate=lambda op, buffer, x: buffer + x, replace=True)
    module = parse(PROGRAM)
    module.verify()
    full, empty = evaluate(module, np.float32([1, 2]))
    np.testing.assert_array_equal(full, np.float32([4, 8]))
    assert (empty.shape, empty.dtype) == ((2,), np.float32)


def test_a_buffer_of_unknown_extent_cannot_be_made() -> None:
    module = parse("func.func @main() { %0 = stablehlo.custom_call @CreateBuffer() : () -> memref<?xf32> return }")
    with pytest.raises(ExecutionError, match="expected one with static extents"):
        evaluate(module)
