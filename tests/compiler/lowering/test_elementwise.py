"""Elementwise ops that are more than the scalar operation of their name."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.interpreted import expect_same, function
from trivium.ir.text import parse

FLOATS = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 300.7], np.float32)


def unary(op: str, operand: str, result: str) -> str:
    line = f"%0 = stablehlo.{op} %x : (tensor<8x{operand}>) -> tensor<8x{result}>"
    return function(f"%x: tensor<8x{operand}>", f"tensor<8x{result}>", line, f"return %0 : tensor<8x{result}>")


@pytest.mark.parametrize("result", ["i1", "i8", "ui8", "i64", "f16", "bf16", "f64", "f8E4M3FN"])
def test_conversions_of_floats(result: str) -> None:
    expect_same(unary("convert", "f32", result), FLOATS)


@pytest.mark.parametrize("result", ["i1", "ui16", "f32", "bf16", "complex<f32>"])
def test_conversions_of_integers(result: str) -> None:
    expect_same(unary("convert", "i32", result), np.array([0, 1, -1, 7, 1 << 24, -(1 << 31), 255, 256], np.int32))


@pytest.mark.parametrize(
    ("operand", "result"),
    [
        ("tensor<2x4xi8>", "tensor<2xi32>"),
        ("tensor<2xi32>", "tensor<2x4xi8>"),
        ("tensor<2x2xi32>", "tensor<2xf64>"),
        ("tensor<4xf32>", "tensor<4xui32>"),
    ],
)
def test_bits_in_other_widths(operand: str, result: str) -> None:
    text = function(
        f"%x: {operand}",
        result,
        f"%0 = stablehlo.bitcast_convert %x : ({operand}) -> {result}",
        f"return %0 : {result}",
    )
    shape = tuple(int(part) for part in operand.removeprefix("tensor<").split("x")[:-1])
    dtype = {"i8": np.int8, "i32": np.int32, "f32": np.float32}[operand.rstrip(">").rpartition("x")[2]]
    expect_same(text, np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype))


@pytest.mark.parametrize("direction", ["LT", "EQ", "GE"])
@pytest.mark.parametrize("order", ["FLOAT", "TOTALORDER"])
def test_comparisons_of_special_numbers(direction: str, order: str) -> None:
    kind = "tensor<8xf32>"
    line = f"%0 = stablehlo.compare {direction}, %x, %y, {order} : ({kind}, {kind}) -> tensor<8xi1>"
    text = function(f"%x: {kind}, %y: {kind}", "tensor<8xi1>", line, "return %0 : tensor<8xi1>")
    expect_same(text, FLOATS, np.roll(FLOATS, 1))
    expect_same(text, FLOATS, -FLOATS)


def test_scalar_operands_hold_everywhere() -> None:
    text = function(
        "%p: tensor<i1>, %low: tensor<f32>, %x: tensor<8xf32>, %y: tensor<8xf32>",
        "tensor<8xf32>",
        "%0 = stablehlo.clamp %low, %x, %low : (tensor<f32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>",
        "%1 = stablehlo.select %p, %0, %y : tensor<i1>, tensor<8xf32>",
        "return %1 : tensor<8xf32>",
    )
    for taken in (True, False):
        expect_same(text, np.bool_(taken), np.float32(0.5), np.arange(8, dtype=np.float32), FLOATS)


@pytest.mark.parametrize("kind", ["i4", "ui8", "i32", "ui64"])
@pytest.mark.parametrize("op", ["popcnt", "count_leading_zeros", "not"])
def test_bits_of_integers(op: str, kind: str) -> None:
    text = function(
        f"%x: tensor<8x{kind}>",
        f"tensor<8x{kind}>",
        f"%0 = stablehlo.{op} %x : tensor<8x{kind}>",
        f"return %0 : tensor<8x{kind}>",
    )
    dtype = parse(text).main.function_type.inputs[0].dtype
    expect_same(text, np.array([0, 1, 2, 3, 5, 7, 4, 6]).astype(dtype))
