"""Windows: scatters to selected elements, and running reductions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.compiler.lowering.interpreted import expect_same, function, lowered
from trivium.compiler.interpreter import interpret
from trivium.compiler.lowering.windows import running_dimension, starts_neutral
from trivium.ir.ops import ReduceWindow
from trivium.ir.text import parse


def select_and_scatter(operand: str, source: str, options: str) -> str:
    return function(
        f"%x: tensor<{operand}xf32>, %s: tensor<{source}xf32>",
        f"tensor<{operand}xf32>",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        f'%0 = "stablehlo.select_and_scatter"(%x, %s, %zero) <{{{options}}}> ({{',
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):",
        "  %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        "  stablehlo.return %1 : tensor<i1>",
        "}, {",
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):",
        "  %1 = stablehlo.add %a, %b : tensor<f32>",
        "  stablehlo.return %1 : tensor<f32>",
        f"}}) : (tensor<{operand}xf32>, tensor<{source}xf32>, tensor<f32>) -> tensor<{operand}xf32>",
        f"return %0 : tensor<{operand}xf32>",
    )


@pytest.mark.parametrize(
    ("operand", "source", "options"),
    [
        ("4x6", "2x3", "window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>"),
        ("4x6", "3x5", "window_dimensions = array<i64: 2, 2>"),
        (
            "5x5",
            "3x3",
            "window_dimensions = array<i64: 3, 3>, window_strides = array<i64: 2, 2>, "
            "padding = dense<1> : tensor<2x2xi64>",
        ),
    ],
    ids=["apart", "overlapping", "padded"],
)
def test_select_and_scatter(operand: str, source: str, options: str) -> None:
    rng = np.random.default_rng(0)
    x, s = (rng.integers(-4, 5, tuple(map(int, shape.split("x")))).astype(np.float32) for shape in (operand, source))
    expect_same(select_and_scatter(operand, source, options), x, s)


def window(op: str, init: str, dimensions: str, padding: str, result: str = "3x8") -> str:
    return function(
        "%x: tensor<3x8xf32>",
        f"tensor<{result}xf32>",
        f"%init = stablehlo.constant dense<{init}> : tensor<f32>",
        f'%0 = "stablehlo.reduce_window"(%x, %init) <{{window_dimensions = array<i64: {dimensions}>, '
        f"padding = dense<{padding}> : tensor<2x2xi64>}}> ({{",
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):",
        f"  %1 = stablehlo.{op} %a, %b : tensor<f32>",
        "  stablehlo.return %1 : tensor<f32>",
        f"}}) : (tensor<3x8xf32>, tensor<f32>) -> tensor<{result}xf32>",
        f"return %0 : tensor<{result}xf32>",
    )


RUNNING = [
    ("add", "0.0", "1, 8", "[[0, 0], [7, 0]]", 1),
    ("maximum", "0xFF800000", "1, 8", "[[0, 0], [0, 7]]", 1),
    ("multiply", "1.0", "3, 1", "[[2, 0], [0, 0]]", 0),
]


@pytest.mark.parametrize(("op", "init", "dimensions", "padding", "dimension"), RUNNING)
def test_windows_as_long_as_a_row_run_along_it(
    op: str, init: str, dimensions: str, padding: str, dimension: int
) -> None:
    text = window(op, init, dimensions, padding)
    (found,) = (each for each in parse(text).walk() if isinstance(each, ReduceWindow))
    assert running_dimension(found) == dimension
    assert starts_neutral(found)
    expect_same(text, np.random.default_rng(1).integers(-3, 4, (3, 8)).astype(np.float32))


def test_shorter_windows_do_not() -> None:
    text = window("add", "0.0", "1, 3", "[[0, 0], [2, 0]]")
    (found,) = (each for each in parse(text).walk() if isinstance(each, ReduceWindow))
    assert running_dimension(found) is None
    expect_same(text, np.arange(24, dtype=np.float32).reshape(3, 8))


def test_a_start_that_is_not_neutral_counts_in_every_window() -> None:
    text = window("add", "1.0", "1, 8", "[[0, 0], [7, 0]]")
    (found,) = (each for each in parse(text).walk() if isinstance(each, ReduceWindow))
    assert not starts_neutral(found)
    expect_same(text, np.arange(24, dtype=np.float32).reshape(3, 8))


def pairs(init: tuple[str, str], padding: str, body: tuple[str, ...], results: str) -> str:
    """Returns a program that folds pairs (a, b), (c, d) along rows of 40 in windows of 40."""
    return function(
        "%x: tensor<3x40xf32>, %y: tensor<3x40xf32>",
        "tensor<3x40xf32>, tensor<3x40xf32>",
        f"%p = stablehlo.constant dense<{init[0]}> : tensor<f32>",
        f"%q = stablehlo.constant dense<{init[1]}> : tensor<f32>",
        '%0:2 = "stablehlo.reduce_window"(%x, %y, %p, %q) <{window_dimensions = array<i64: 1, 40>, '
        f"padding = dense<{padding}> : tensor<2x2xi64>}}> ({{",
        "^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):",
        *(f"  {line}" for line in body),
        f"  stablehlo.return {results} : tensor<f32>, tensor<f32>",
        "}) : (tensor<3x40xf32>, tensor<3x40xf32>, tensor<f32>, tensor<f32>) -> (tensor<3x40xf32>, tensor<3x40xf32>)",
        "return %0#0, %0#1 : tensor<3x40xf32>, tensor<3x40xf32>",
    )


COMPOSED = (
    "%1 = stablehlo.multiply %a, %c : tensor<f32>",
    "%2 = stablehlo.multiply %b, %c : tensor<f32>",
    "%3 = stablehlo.add %2, %d : tensor<f32>",
)
"""x * a + b, then x * c + d: associative, but not commutative"""


FORWARD, BACKWARD = "[[0, 0], [7, 0]]", "[[0, 0], [0, 7]]"
LONG_FORWARD, LONG_BACKWARD = "[[0, 0], [39, 0]]", "[[0, 0], [0, 39]]"


@pytest.mark.parametrize(
    ("padding", "init", "body", "results", "dimension"),
    [
        (LONG_FORWARD, ("1.0", "0.0"), COMPOSED, "%1, %3", 1),
        (LONG_BACKWARD, ("1.0", "0.0"), COMPOSED, "%1, %3", 1),
        (LONG_FORWARD, ("7.0", "5.0"), (), "%a, %b", 1),
        (LONG_FORWARD, ("7.0", "5.0"), (), "%c, %d", 1),
        (LONG_BACKWARD, ("7.0", "5.0"), (), "%a, %b", None),
        (LONG_BACKWARD, ("7.0", "5.0"), (), "%c, %d", None),
        (LONG_FORWARD, ("2.0", "1.0"), COMPOSED, "%1, %3", None),
    ],
    ids=["composed", "backward", "first", "last", "first-backward", "last-backward", "changed"],
)
def test_a_combination_that_keeps_its_start_runs_in_the_order_of_the_elements(
    padding: str, init: tuple[str, str], body: tuple[str, ...], results: str, dimension: int | None
) -> None:
    text = pairs(init, padding, body, results)
    (found,) = (each for each in parse(text).walk() if isinstance(each, ReduceWindow))
    assert running_dimension(found) == dimension
    assert not starts_neutral(found)
    rng = np.random.default_rng(2)
    expect_same(text, *(rng.integers(-1, 2, (3, 40)).astype(np.float32) for _ in range(2)))


def test_short_windows_are_folded_in_their_own_order() -> None:
    """Backwards, a running fold combines the last elements first: results that cancel differ by some units."""
    texts = [pairs(("1.0", "0.0"), "[[0, 0], [0, 39]]", COMPOSED, "%1, %3")]
    texts.append(texts[0].replace("40", "32").replace("39", "31"))
    ops = [each for text in texts for each in parse(text).walk() if isinstance(each, ReduceWindow)]
    assert [running_dimension(op) for op in ops] == [1, None]


@pytest.mark.parametrize("padding", [FORWARD, BACKWARD])
def test_complex_sums_run(padding: str) -> None:
    text = window("add", "(0.0, 0.0)", "1, 8", padding).replace("f32", "complex<f32>")
    (found,) = (each for each in parse(text).walk() if isinstance(each, ReduceWindow))
    assert running_dimension(found) == 1
    x, y = np.random.default_rng(3).integers(-3, 4, (2, 3, 8))
    expect_same(text, (x + 1j * y).astype(np.complex64))


@pytest.mark.parametrize("padding", ["[[0, 0], [299, 0]]", "[[0, 0], [0, 299]]"])
def test_sums_of_narrow_floats_are_rounded_once(padding: str) -> None:
    text = window("add", "0.0", "1, 300", padding).replace("f32", "bf16").replace("3x8", "3x300")
    (result,) = interpret(lowered(text), np.ones((3, 300), ml_dtypes.bfloat16))
    expected = np.arange(1, 301).astype(ml_dtypes.bfloat16)
    backward = padding.endswith("299]]")
    np.testing.assert_array_equal(result[1].astype(np.float32), expected[:: -1 if backward else 1].astype(np.float32))
