"""What quantized elements mean in ops with regions, and in collectives."""

from __future__ import annotations

import numpy as np

from tests.ir.ops.records.quantization import nearest, numbers
from tests.ir.quantized import per_tensor
from trivium.ir.interpreter import evaluate
from trivium.ir.ops.quantization import dequantize, quantize
from trivium.ir.parallel import run_parallel
from trivium.ir.text import parse
from trivium.ir.types import I32, SubChannelType

NARROW, WIDE = per_tensor(0.5, -3), per_tensor(0.25, 7, I32)

SUM = f"""
func.func @main(%0: tensor<3x40x{NARROW}>, %1: tensor<{NARROW}>) -> tensor<3x{WIDE}> {{
  %2 = stablehlo.reduce(%0 init: %1) across dimensions = [1]
    : (tensor<3x40x{NARROW}>, tensor<{NARROW}>) -> tensor<3x{WIDE}>
    reducer(%3: tensor<{WIDE}>, %4: tensor<{WIDE}>)  {{
    %5 = stablehlo.add %3, %4 : tensor<{WIDE}>
    stablehlo.return %5 : tensor<{WIDE}>
  }}
  return %2 : tensor<3x{WIDE}>
}}
"""

PERMUTE = f"""
func.func @main(%0: tensor<2x{NARROW}>) -> tensor<2x{NARROW}> {{
  %1 = "stablehlo.collective_permute"(%0) <{{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}}>
    : (tensor<2x{NARROW}>) -> tensor<2x{NARROW}>
  return %1 : tensor<2x{NARROW}>
}}
"""

ALL_REDUCE = f"""
func.func @main(%0: tensor<2x{NARROW}>) -> tensor<2x{WIDE}> {{
  %1 = "stablehlo.all_reduce"(%0) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> ({{
  ^bb0(%2: tensor<{WIDE}>, %3: tensor<{WIDE}>):
    %4 = stablehlo.add %2, %3 : tensor<{WIDE}>
    stablehlo.return %4 : tensor<{WIDE}>
  }}) : (tensor<2x{NARROW}>) -> tensor<2x{WIDE}>
  return %1 : tensor<2x{WIDE}>
}}
"""

ONE, TWO = np.array([1, -128], np.int8), np.array([100, 127], np.int8)


def verified(text: str):
    module = parse(text)
    module.verify()
    return module


def test_sums_may_be_kept_in_a_wider_type():
    array = np.random.default_rng(0).integers(-128, 128, (3, 40)).astype(np.int8)
    (result,) = evaluate(verified(SUM), array, np.int8(-1))
    wanted = numbers(array, NARROW).sum(1) + numbers(np.array(-1), NARROW)
    np.testing.assert_array_equal(result, nearest(wanted, WIDE))


def test_processes_sum_the_numbers_that_elements_express():
    for (result,) in run_parallel(verified(ALL_REDUCE), [["main"], ["main"]], [[ONE], [TWO]]):
        np.testing.assert_array_equal(result, nearest(numbers(ONE, NARROW) + numbers(TWO, NARROW), WIDE))


def test_processes_that_get_nothing_have_zeros():
    (first,), (second,) = run_parallel(verified(PERMUTE), [["main"], ["main"]], [[ONE], [TWO]])
    assert first.tolist() == [NARROW.zero_point] * 2
    assert second.tolist() == ONE.tolist()


def test_blocks_have_separate_parameters():
    blocks = SubChannelType(
        *(NARROW.storage_type, NARROW.expressed_type, -128, 127),
        *(((0, 2), (1, 3)), (2, 2), (1.0, 0.5, 2.0, 4.0), (0, 1, -2, 0)),
    )
    values = np.array([[4, 4, 4, 2, 2, 2]] * 2 + [[6, 6, 6, 8, 8, 8]] * 2, np.float32)
    stored = quantize(values, blocks)
    assert stored.tolist() == [[4, 4, 4, 5, 5, 5]] * 2 + [[1, 1, 1, 2, 2, 2]] * 2
    np.testing.assert_array_equal(dequantize(stored, blocks), values)
