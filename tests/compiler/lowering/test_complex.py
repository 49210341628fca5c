"""Complex arithmetic on pairs of real numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.interpreted import expect_same, function, lowered
from trivium.compiler.interpreter import interpret
from trivium.compiler.kernel import KernelBuilder
from trivium.compiler.lowering.complex import apply
from trivium.ir.errors import CompileError
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

KIND = "tensor<7xcomplex<f32>>"
X = np.array([1 + 2j, -3 + 0.5j, 0, 1e-20 + 1e-20j, 3e30 - 1e30j, -1j, 4], np.complex64)
Y = np.array([2 - 1j, 1e-3j, 1 + 1j, 3e-20 - 2e-20j, 2e30 + 1e30j, 2, -1 + 1j], np.complex64)


def binary(op: str) -> str:
    return function(f"%x: {KIND}, %y: {KIND}", KIND, f"%0 = stablehlo.{op} %x, %y : {KIND}", f"return %0 : {KIND}")


@pytest.mark.parametrize("op", ["add", "subtract", "multiply"])
def test_arithmetic(op: str) -> None:
    small = np.abs(X) < 1e10
    expect_same(binary(op), np.where(small, X, 1), np.where(small, Y, 1), rtol=2e-7)


def test_quotients_neither_overflow_nor_vanish() -> None:
    """The square of the divisor is out of range for two of the elements."""
    expect_same(binary("divide"), X, Y, rtol=1e-6)


@pytest.mark.parametrize("op", ["exponential", "log", "sqrt", "tanh", "negate", "sine", "cosine", "log_plus_one"])
def test_functions(op: str) -> None:
    text = function(f"%x: {KIND}", KIND, f"%0 = stablehlo.{op} %x : {KIND}", f"return %0 : {KIND}")
    expect_same(text, np.array([0.5 + 1j, -1 + 0.25j, 2, 0.1j + 1, 1 - 1j, -0.5 - 2j, 3 + 3j], np.complex64), rtol=2e-5)


@pytest.mark.parametrize("op", ["exponential", "exponential_minus_one"])
def test_exponentials_out_of_range(op: str) -> None:
    """Results that overflow are infinite, and real numbers stay real."""
    text = function(f"%x: {KIND}", KIND, f"%0 = stablehlo.{op} %x : {KIND}", f"return %0 : {KIND}")
    x = np.array([1e30, complex(1e30, -0.0), np.inf, 89 + 1e-30j, 89 + 1.5707963j, -1e30, 100 + 1j], np.complex64)
    (wanted,) = evaluate(parse(text), x)
    with np.errstate(all="ignore"):
        (found,) = interpret(lowered(text), x)
    np.testing.assert_allclose(found.view(np.float32), wanted.view(np.float32), rtol=2e-5)


def test_hyperbolic_tangents_at_infinity() -> None:
    text = function(f"%x: {KIND}", KIND, f"%0 = stablehlo.tanh %x : {KIND}", f"return %0 : {KIND}")
    infinite = [complex(re, im) for re in (np.inf, -np.inf) for im in (np.inf, np.nan, 1.0)]
    with np.errstate(all="ignore"):
        (found,) = interpret(lowered(text), np.array([*infinite, 0.5], np.complex64))
    np.testing.assert_array_equal(found[:-1].real, [1, 1, 1, -1, -1, -1])
    np.testing.assert_array_equal(found[:-1].imag, 0)


@pytest.mark.parametrize("op", ["abs", "real", "imag"])
def test_real_results(op: str) -> None:
    text = function(
        f"%x: {KIND}",
        "tensor<7xf32>",
        f"%0 = stablehlo.{op} %x : ({KIND}) -> tensor<7xf32>",
        "return %0 : tensor<7xf32>",
    )
    expect_same(text, X, rtol=1e-6)


@pytest.mark.parametrize("direction", ["EQ", "NE"])
def test_comparisons(direction: str) -> None:
    text = function(
        f"%x: {KIND}, %y: {KIND}",
        "tensor<7xi1>",
        f"%0 = stablehlo.compare {direction}, %x, %y : ({KIND}, {KIND}) -> tensor<7xi1>",
        "return %0 : tensor<7xi1>",
    )
    expect_same(text, X, np.where(np.arange(7) % 2, X, X.conj()))


def test_names_without_a_rule_are_reported() -> None:
    b = KernelBuilder("none")
    one = b.constant(1.0, "f32")
    with pytest.raises(CompileError, match="frobnicate of complex numbers cannot be compiled"):
        apply(b, "frobnicate", [(one, one)])


def numbers(*parts: float) -> np.ndarray:
    return np.array([complex(re, im) for re in parts for im in parts], np.complex64)


def test_quotients_by_zero_and_infinity() -> None:
    dividends, divisors = numbers(0.0, 1.0, -2.5), numbers(0.0, -0.0, np.inf, -np.inf)
    x, y = np.repeat(dividends, len(divisors)), np.tile(divisors, len(dividends))
    expect_same(binary("divide").replace("7x", f"{len(x)}x"), x, y, rtol=0)


@pytest.mark.parametrize("op", ["sine", "cosine", "rsqrt"])
def test_functions_of_imaginary_numbers_that_overflow(op: str) -> None:
    text = function(f"%x: {KIND}", KIND, f"%0 = stablehlo.{op} %x : {KIND}", f"return %0 : {KIND}")
    x = np.array([complex(0, size) for size in (100, -100, 1e30, -1e30, np.inf, -np.inf, 1)], np.complex64)
    expect_same(text, x, rtol=2e-6)
