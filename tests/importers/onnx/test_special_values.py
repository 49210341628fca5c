"""Elementwise rules against ONNX's reference evaluator at zeros of both signs, infinities, NaN, and the limits of
integers."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx.reference import ReferenceEvaluator

import trivium
from tests.importers.onnx.test_cast import model
from tests.importers.special_values import assert_runs, numbers, pairs

pytestmark = pytest.mark.onnx

# Excluded: Max and Min of zeros of both signs (the reference's result depends on the order of operands).
UNARY = [
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "IsInf"),
    *("IsNaN", "Log", "Neg", "Reciprocal", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh"),
]
BINARY = ["Add", "Sub", "Mul", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Pow"]


def check(op: str, arrays: tuple[np.ndarray, ...], **attributes: Any) -> None:
    made = model(op, list(arrays), **attributes)
    with np.errstate(all="ignore"):
        expected = ReferenceEvaluator(made).run(None, {f"x{i}": array for i, array in enumerate(arrays)})[0]
    module = trivium.from_onnx(made)
    assert_runs(module, arrays, expected)


@pytest.mark.parametrize("kind", [np.float32, np.float16], ids=["float32", "float16"])
@pytest.mark.parametrize("op", UNARY)
def test_one_operand(op: str, kind: type) -> None:
    check(op, (numbers(kind),))


@pytest.mark.parametrize("op", BINARY)
def test_two_operands(op: str) -> None:
    check(op, pairs(np.float32))


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint8], ids=["int8", "int64", "uint8"])
@pytest.mark.parametrize("op", ["Abs", "Sign"])
def test_integers(op: str, kind: type) -> None:
    check(op, (numbers(kind),))


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint8, np.float32, np.float16, np.float64])
@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders(fmod: int, kind: type) -> None:
    check("Mod", pairs(kind), fmod=fmod)
