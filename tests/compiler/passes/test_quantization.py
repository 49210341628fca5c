"""Quantized programs, compiled: as integers, with the arithmetic that converts them to numbers and back."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.running import run
from tests.compiler.targets import TARGET
from tests.ir import checks
from trivium.compiler.lower import lower
from trivium.compiler.passes.quantization import ExpandQuantized
from trivium.compiler.pipeline import optimize
from trivium.ir.errors import Error
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

NARROW, WIDE = "!quant.uniform<i8:f32, 0.5:-3>", "!quant.uniform<i32:f32, 0.25:7>"
ROWS = "!quant.uniform<i8:f32:0, {0.5:1,0.3:-2,2.0}>"

SUM_IN_ANOTHER_TYPE = f"""
func.func @main(%0: tensor<3x40x{NARROW}>) -> tensor<3x{WIDE}> {{
  %1 = stablehlo.constant() <{{value = dense<-1> : tensor<i8>}}> : () -> tensor<{NARROW}>
  %2 = stablehlo.reduce(%0 init: %1) across dimensions = [1]
    : (tensor<3x40x{NARROW}>, tensor<{NARROW}>) -> tensor<3x{WIDE}>
    reducer(%3: tensor<{WIDE}>, %4: tensor<{WIDE}>)  {{
    %5 = stablehlo.add %3, %4 : tensor<{WIDE}>
    stablehlo.return %5 : tensor<{WIDE}>
  }}
  return %2 : tensor<3x{WIDE}>
}}
"""

LOOP = f"""
func.func @main(%0: tensor<3x40x{ROWS}>) -> tensor<40x3xf32> {{
  %1 = stablehlo.constant dense<0> : tensor<i32>
  %2:2 = stablehlo.while(%3 = %1, %4 = %0) : tensor<i32>, tensor<3x40x{ROWS}>
  cond {{
    %5 = stablehlo.constant dense<3> : tensor<i32>
    %6 = stablehlo.compare LT, %3, %5 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %6 : tensor<i1>
  }} do {{
    %7 = stablehlo.constant dense<1> : tensor<i32>
    %8 = stablehlo.add %3, %7 : tensor<i32>
    %9 = stablehlo.add %4, %4 : tensor<3x40x{ROWS}>
    stablehlo.return %8, %9 : tensor<i32>, tensor<3x40x{ROWS}>
  }}
  %10 = stablehlo.transpose %2#1, dims = [1, 0] : (tensor<3x40x{ROWS}>) -> tensor<40x3x{ROWS.replace(":0", ":1")}>
  %11 = stablehlo.uniform_dequantize %10 : (tensor<40x3x{ROWS.replace(":0", ":1")}>) -> tensor<40x3xf32>
  return %11 : tensor<40x3xf32>
}}
"""

SORT = f"""
func.func @main(%0: tensor<3x40x{NARROW}>) -> (tensor<3x40x{NARROW}>, tensor<3x40xi1>) {{
  %1 = "stablehlo.sort"(%0) <{{dimension = 1 : i64}}> ({{
  ^bb0(%2: tensor<{NARROW}>, %3: tensor<{NARROW}>):
    %4 = stablehlo.compare GT, %2, %3 : (tensor<{NARROW}>, tensor<{NARROW}>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  }}) : (tensor<3x40x{NARROW}>) -> tensor<3x40x{NARROW}>
  %5 = stablehlo.is_finite %0 : (tensor<3x40x{NARROW}>) -> tensor<3x40xi1>
  return %1, %5 : tensor<3x40x{NARROW}>, tensor<3x40xi1>
}}
"""


UNSIGNED = """
func.func @main(%0: tensor<3x40xi8>) -> tensor<3x40x!quant.uniform<u8:f32, 0.5:3>> {
  %1 = stablehlo.constant() <{value = dense<-1> : tensor<3x40xi8>}> : () -> tensor<3x40x!quant.uniform<u8:f32, 0.5:3>>
  %2 = stablehlo.bitcast_convert %0 : (tensor<3x40xi8>) -> tensor<3x40x!quant.uniform<u8:f32, 0.5:3>>
  %3 = stablehlo.minimum %1, %2 : tensor<3x40x!quant.uniform<u8:f32, 0.5:3>>
  %4 = stablehlo.add %3, %2 : tensor<3x40x!quant.uniform<u8:f32, 0.5:3>>
  return %4 : tensor<3x40x!quant.uniform<u8:f32, 0.5:3>>
}
"""

PROGRAMS = {"sum": SUM_IN_ANOTHER_TYPE, "loop": LOOP, "sort": SORT, "unsigned": UNSIGNED}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_compiled_equals_evaluated(text: str) -> None:
    module = parse(text)
    module.verify()
    array = np.random.default_rng(0).integers(-128, 128, (3, 40)).astype(np.int8)
    expected = evaluate(module, array)
    integers = module.clone()
    assert ExpandQuantized().run(integers)
    integers.verify()
    assert "quant" not in str(integers)
    for results in (evaluate(integers, array), run(lower(optimize(module, verify=True), TARGET), [array])):
        for result, wanted in zip(results, expected, strict=True):
            assert result.dtype == wanted.dtype
            np.testing.assert_array_equal(result, wanted)


def test_a_module_without_quantized_elements_stays_as_it_is() -> None:
    module = parse("func.func @main(%0: tensor<2xf32>) -> tensor<2xf32> { return %0 : tensor<2xf32> }")
    assert not ExpandQuantized().run(module)


def test_parameters_of_unknown_extents_are_an_error() -> None:
    kind = f"tensor<?x{NARROW}>"
    text = f"func.func @main(%0: {kind}) -> {kind} {{ %1 = stablehlo.negate %0 : {kind} return %1 : {kind} }}"
    with pytest.raises(Error, match="dynamic dimensions"):
        ExpandQuantized().run(parse(text))


def test_quantized_programs(conformance) -> None:
    """StableHLO's own programs, whose checks are exact."""
    checks.register()
    for path in sorted((conformance / "stablehlo" / "testdata" / "quantized").glob("*.mlir")):
        for text in path.read_text().split("// -----"):
            if "!quant" in text:
                run(lower(optimize(parse(text, path.name), verify=True), TARGET), [])
