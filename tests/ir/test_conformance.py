"""Runs StableHLO's own test programs: each computes the values that it expects, and checks its results against them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ir import checks
from trivium.ir.attributes import DenseElements
from trivium.ir.equality import difference
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import Constant
from trivium.ir.text import parse, print_module, print_op, register_form
from trivium.ir.types import Type

WRONG = {
    "cosh_float32_20_20_chlo": "1 of 400 numbers: expected is 4.3 units of the last place off, ours 0.3",
    "cumprod_complex64_8_9": "5 of 144: expected is up to 4.2 units off, ours up to 1.2",
    "fft_complex64_14_15_16_17": "25,698 of 107,520: expected is 3.5 units off and more, ours 0.5 at most",
    "fft_float32_14_15_16_17": "5,807 of 60,480: expected is 3.5 units off and more, ours 0.5 at most",
    "pow_complex64_20_30_complex64_20_30": "120 of 1,200: expected is up to 136 units off, ours 0.5 at most",
    "sin_complex64_20_20": "1 of 800: expected is 0.7 units off, which are 0.0027 where 0.001 is allowed, ours 0.3",
    "sinh_float32_20_20_chlo": "4 of 400: expected is 4.6 to 6.6 units off, ours 0.4 at most",
}
"""Programs whose checks fail, and what is wrong with them: the expected values were rounded at every intermediate step,
and wherever the check fails, they are farther from the true value than the check itself allows. `test_wrong_programs`
shows this for each of them."""


def test_programs(conformance):
    checks.register()
    failed: dict[str, str] = {}
    for path in sorted((conformance / "stablehlo" / "testdata").glob("*.mlir")):
        module = parse(path.read_text(), path.name)
        try:
            evaluate(module)
        except ExecutionError as error:
            failed[path.stem] = str(error)
    assert failed.keys() == WRONG.keys(), {name: failed[name] for name in failed.keys() - WRONG.keys()}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs(conformance, name):
    """Of the numbers that differ, the expected one is always farther from the true one than allowed. Ours is never as
    far off as the worst of them, and is the nearest float, or next to it."""
    pytest.importorskip("mpmath")
    from tests.ir.true_values import TRUE_VALUES, error

    assert TRUE_VALUES.keys() == WRONG.keys()
    text = (conformance / "stablehlo" / "testdata" / f"{name}.mlir").read_text()
    module = parse("\n".join(line for line in text.splitlines() if "custom_call @check" not in line))
    inputs, (expected,), (value,) = (evaluate(module, function=function) for function in ("inputs", "expected", "main"))
    true = TRUE_VALUES[name](*inputs)
    ours, theirs = error(value, true), error(expected, true)
    ulp = np.spacing(np.abs(checks.parts(value)))
    if "@check.expect_close" in text:
        differs, allowed = ~checks.close(value, expected), checks.MAX_ULPS * ulp
    else:
        tolerance = checks.ALMOST_CUSTOM_CALL
        differs, allowed = ~checks.almost_equal(value, expected, tolerance), np.full_like(ulp, tolerance)
    assert np.any(differs)
    assert np.all(theirs[differs] > allowed[differs])
    assert np.max(ours[differs]) < np.max(theirs[differs])
    assert np.all(ours[differs] <= 1.5 * ulp[differs])


def test_quantized_programs(conformance):
    """Models of one op each, on quantized elements; some files also contain other programs of the same op."""
    checks.register()
    paths = sorted((conformance / "stablehlo" / "testdata" / "quantized").glob("*.mlir"))
    assert len(paths) == 93
    for path in paths:
        for module in modules(path):
            module.verify()
            for name in module.functions:
                evaluate(module, function=name)


def test_interpreted_programs(conformance):
    """Programs of one op each. Several processes run those with collectives."""
    checks.register()
    folder = conformance / "stablehlo" / "interpret"
    for path in sorted(folder.rglob("*.mlir")):
        checks.PROBED.clear()
        for module in modules(path):
            assert difference(parse(print_module(module)), module) == "", path.name
            for name in ["main"] if "main" in module.functions else module.functions:
                if not module.function(name).arguments:
                    evaluate(module, function=name)


def modules(path: Path) -> list[Module]:
    """Returns the programs of a file, which may hold several. One has no function: it only shows that a program may be
    empty."""
    return [parse(text, path.name) for text in path.read_text().split("// -----") if "func.func" in text]


def test_printed_values(conformance, capsys):
    """The values that programs print and return are printed as the comments between their lines say."""
    path = conformance / "stablehlo" / "interpret" / "printing.mlir"
    for value, kind in results_of(path):
        print(checks.tensor_text(value, kind))
    expect_printed(re.findall(r"// CHECK(|-NEXT)(?:{LITERAL})?: +(.*)", path.read_text()), capsys.readouterr().out)


def test_printed_constants(conformance):
    """The same values as attributes."""
    path = conformance / "stablehlo" / "interpret" / "printing.mlir"
    printed = [print_op(Constant(value=DenseElements(value, kind))) for value, kind in results_of(path)]
    expect_printed(re.findall(r"// CHECK-DENSE()(?:{LITERAL})?: +(.*)", path.read_text()), "\n".join(printed))


def results_of(path: Path) -> Iterator[tuple[Any, Type]]:
    """Yields the results of the entry functions of a file, one function after another."""
    for module in modules(path):
        yield from zip(evaluate(module), module.main.function_type.results, strict=True)


def expect_printed(expected: list[tuple[str, str]], printed: str) -> None:
    """Requires lines that contain the texts, in order: each anywhere after the previous one, or, for -NEXT, immediately
    after it."""
    assert expected
    lines = iter(printed.splitlines())
    for kind, text in expected:
        found = next(lines, "") if kind else next((line for line in lines if text in line), "")
        assert text in found


def test_a_form_that_names_no_field_is_an_error():
    with pytest.raises(Error, match=r"interpreter.probe names rate, which is not an operand or attribute"):
        register_form(checks.Probe, "$operand at $rate : same")


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
