"""StableHLO's own test programs, run: each computes what it expects of itself, and checks it."""

from __future__ import annotations

import pytest

from tests.ir import checks
from trivium.ir.equality import difference
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse, print_module

ROUNDED_ONCE = "sums in 64 bits and rounds once; expected is a sum that was rounded at every step, a few ulps off"
STEPWISE = "expected was computed step by step in the narrow type, and is farther off the true value"
NARROW = "both are rounded in complex<f32> on the way, and differ where results are large, or nearly cancel"

DIFFERING = {
    "cos_complex64_20_20": STEPWISE,
    "cosh_complex64_20_20_chlo": STEPWISE,
    "cosh_float32_20_20_chlo": STEPWISE,
    "cumlogsumexp_float16_8_9": STEPWISE,
    "cumprod_complex64_8_9": ROUNDED_ONCE,
    "cumsum_complex64_8_9": ROUNDED_ONCE,
    "cumsum_float16_8_9": ROUNDED_ONCE,
    "cumsum_float32_8_9": ROUNDED_ONCE,
    "dot_general_bfloat16_4_3_complex64_3_6": ROUNDED_ONCE,
    "dot_general_float16_4_3_complex128_3_6": ROUNDED_ONCE,
    "dot_general_float16_4_3_complex64_3_6": ROUNDED_ONCE,
    "dot_general_int16_4_3_complex64_3_6": ROUNDED_ONCE,
    "dot_general_int32_4_3_float32_3_6": ROUNDED_ONCE,
    "dot_general_uint16_4_3_complex64_3_6": ROUNDED_ONCE,
    "dot_general_uint16_4_3_float32_3_6": ROUNDED_ONCE,
    "dot_general_uint8_4_3_complex64_3_6": ROUNDED_ONCE,
    "expm1_complex64_20_20": STEPWISE,
    "fft_complex64_14_15_16_17": STEPWISE,
    "fft_float32_14_15_16_17": STEPWISE,
    "log1p_complex64_20_20": NARROW,
    "pow_complex64_20_30_complex64_20_30": NARROW,
    "reduce_window_add_float32_12_12": ROUNDED_ONCE,
    "reduce_window_add_float64_4_6": ROUNDED_ONCE,
    "sin_complex64_20_20": STEPWISE,
    "sinh_float32_20_20_chlo": STEPWISE,
}
"""Programs whose checks do not hold, by name, and why."""


def test_programs(conformance):
    checks.register()
    failed: dict[str, str] = {}
    for path in sorted((conformance / "stablehlo" / "testdata").glob("*.mlir")):
        module = parse(path.read_text(), path.name)
        try:
            evaluate(module)
        except ExecutionError as error:
            failed[path.stem] = str(error)
    assert failed.keys() == DIFFERING.keys(), {name: failed[name] for name in failed.keys() - DIFFERING.keys()}


OTHER_DIALECTS = {"probe", "printing", "quantized_ops"}
"""Files of ops that are for tests alone (`interpreter.probe`, `interpreter.print`), or of quantized types."""


def test_interpreted_programs(conformance):
    """Programs of one op each, collectives among them, which several processes run."""
    checks.register()
    folder = conformance / "stablehlo" / "interpret"
    for path in sorted(folder.rglob("*.mlir")):
        if path.stem in OTHER_DIALECTS:
            continue
        for text in path.read_text().split("// -----"):
            module = parse(text, path.name)
            assert difference(parse(print_module(module)), module) == "", path.name
            for name in ["main"] if "main" in module.functions else module.functions:
                if not module.function(name).arguments:
                    evaluate(module, function=name)


def test_a_check_that_fails_is_an_error():
    checks.register()
    call = "stablehlo.custom_call @check.expect_eq(%0, %1) : (tensor<2xi32>, tensor<2xi32>) -> ()"
    constants = (
        f"%{index} = stablehlo.constant dense<{values}> : tensor<2xi32>"
        for index, values in enumerate(([1, 2], [1, 3]))
    )
    module = parse("\n".join(["func.func @main() {", *constants, call, "return", "}"]))
    with pytest.raises(Error, match=r"1 of 2 numbers differ, the first at \(1,\): has 2, expected 3"):
        evaluate(module)
