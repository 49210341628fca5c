"""Ops that move elements: demands for their elements become indices of their operands."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering import running
from tests.compiler.lowering.interpreted import expect_same, function
from trivium.compiler.kernel.affine import divisions
from trivium.compiler.kernel.structure import walk
from trivium.ir.text import parse

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def chain(result: str, *lines: str) -> str:
    return function("%x: tensor<2x3x4xf32>", result, *lines, f"return %r : {result}")


@pytest.mark.parametrize(
    ("result", "op"),
    [
        ("tensor<4x6xf32>", "reshape %x"),
        ("tensor<4x2x3xf32>", "transpose %x, dims = [2, 0, 1]"),
        ("tensor<2x3x4xf32>", "transpose %x, dims = [0, 1, 2]"),
        ("tensor<1x2x2xf32>", "slice %x [1:2, 0:3:2, 1:4:2]"),
        ("tensor<2x5x3x4xf32>", "broadcast_in_dim %x, dims = [0, 2, 3]"),
    ],
    ids=["reshape", "transpose", "identity", "slice", "broadcast"],
)
def test_each(result: str, op: str) -> None:
    expect_same(chain(result, f"%r = stablehlo.{op} : (tensor<2x3x4xf32>) -> {result}"), X)


def test_a_chain_is_one_kernel() -> None:
    program = expect_same(
        chain(
            "tensor<3x4xf32>",
            "%0 = stablehlo.transpose %x, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>",
            "%1 = stablehlo.reshape %0 : (tensor<3x4x2xf32>) -> tensor<6x4xf32>",
            "%2 = stablehlo.reverse %1, dims = [1] : tensor<6x4xf32>",
            "%3 = stablehlo.slice %2 [0:6:2, 0:4] : (tensor<6x4xf32>) -> tensor<3x4xf32>",
            "%r = stablehlo.negate %3 : tensor<3x4xf32>",
        ),
        X,
    )
    assert len(program.kernels()) == 1


@pytest.mark.parametrize(
    ("low", "high", "interior", "shape"),
    [
        ([1, 0, 2], [0, 1, 0], [0, 0, 0], "3x4x6"),
        ([0, 0, 0], [0, 0, 0], [0, 1, 2], "2x5x10"),
        ([-1, 0, -1], [0, -1, 1], [0, 0, 0], "1x2x4"),
        ([0, 0, -2], [0, 0, -1], [0, 0, 1], "2x3x4"),
    ],
)
def test_pad(low: list[int], high: list[int], interior: list[int], shape: str) -> None:
    """Negative edges remove elements, after the interior has been padded."""
    kind = f"tensor<{shape}xf32>"
    text = chain(
        kind,
        "%c = stablehlo.constant dense<7.5> : tensor<f32>",
        "%n = stablehlo.exponential %x : tensor<2x3x4xf32>",
        f"%p = stablehlo.pad %n, %c, low = {low}, high = {high}, interior = {interior}"
        f" : (tensor<2x3x4xf32>, tensor<f32>) -> {kind}",
        f"%r = stablehlo.negate %p : {kind}",
    )
    expect_same(text, X / 24, rtol=1e-6)


@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_concatenate_inside_a_kernel(dimension: int) -> None:
    shape = [2, 3, 4]
    shape[dimension] *= 3
    kind = f"tensor<{'x'.join(map(str, shape))}xf32>"
    text = chain(
        kind,
        "%0 = stablehlo.negate %x : tensor<2x3x4xf32>",
        f"%1 = stablehlo.concatenate %0, %x, %0, dim = {dimension}"
        f" : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> {kind}",
        f"%r = stablehlo.abs %1 : {kind}",
    )
    expect_same(text, X)


def _quotients(text: str, argument: np.ndarray) -> int:
    """Returns the number of quotients and remainders in the kernels of a program, after checking its results."""
    program = expect_same(text, argument)
    running.expect_same(parse(text), [argument])
    return sum(len(list(divisions(i))) for kernel in program.kernels() for i in walk(kernel.body))


def test_rotated_halves_of_heads() -> None:
    """Each half is read where it is: no place in a row of all heads is a quotient, because a half ends in its head."""
    heads, half = "tensor<3x4x8xf32>", "tensor<3x4x4xf32>"
    text = function(
        "%x: tensor<4x24xf32>",
        heads,
        "%0 = stablehlo.reshape %x : (tensor<4x24xf32>) -> tensor<4x3x8xf32>",
        f"%1 = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<4x3x8xf32>) -> {heads}",
        f"%2 = stablehlo.slice %1 [0:3, 0:4, 4:8] : ({heads}) -> {half}",
        f"%3 = stablehlo.negate %2 : {half}",
        f"%4 = stablehlo.slice %1 [0:3, 0:4, 0:4] : ({heads}) -> {half}",
        f"%5 = stablehlo.concatenate %3, %4, dim = 2 : ({half}, {half}) -> {heads}",
        f"%r = stablehlo.add %1, %5 : {heads}",
        f"return %r : {heads}",
    )
    assert _quotients(text, np.arange(96, dtype=np.float32).reshape(4, 24)) == 0


def test_rotated_pairs_of_heads() -> None:
    """Of pairs of neighbours, each is read next to the other."""
    heads, half = "tensor<3x4x8xf32>", "tensor<3x4x4x1xf32>"
    text = function(
        "%x: tensor<4x24xf32>",
        heads,
        "%0 = stablehlo.reshape %x : (tensor<4x24xf32>) -> tensor<4x3x8xf32>",
        f"%1 = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<4x3x8xf32>) -> {heads}",
        f"%2 = stablehlo.slice %1 [0:3, 0:4, 1:8:2] : ({heads}) -> tensor<3x4x4xf32>",
        f"%3 = stablehlo.slice %1 [0:3, 0:4, 0:8:2] : ({heads}) -> tensor<3x4x4xf32>",
        f"%4 = stablehlo.reshape %2 : (tensor<3x4x4xf32>) -> {half}",
        f"%5 = stablehlo.negate %4 : {half}",
        f"%6 = stablehlo.reshape %3 : (tensor<3x4x4xf32>) -> {half}",
        f"%7 = stablehlo.concatenate %5, %6, dim = 3 : ({half}, {half}) -> tensor<3x4x4x2xf32>",
        f"%8 = stablehlo.reshape %7 : (tensor<3x4x4x2xf32>) -> {heads}",
        f"%r = stablehlo.add %1, %8 : {heads}",
        f"return %r : {heads}",
    )
    assert _quotients(text, np.arange(96, dtype=np.float32).reshape(4, 24)) == 1, "which one of a pair it is"


@pytest.mark.parametrize(("low", "interior", "left"), [(2, 0, 0), (-1, 0, 0), (1, 1, 1)], ids=["edges", "cut", "gaps"])
def test_padded_heads(low: int, interior: int, left: int) -> None:
    """Inside the edges, the place in a row of all heads is no quotient; with gaps, one tells which element it is."""
    extent = 8 + 7 * interior + low + 3
    heads, padded = "tensor<4x3x8xf32>", f"tensor<4x3x{extent}xf32>"
    text = function(
        "%x: tensor<4x24xf32>",
        padded,
        "%c = stablehlo.constant dense<7.5> : tensor<f32>",
        f"%0 = stablehlo.reshape %x : (tensor<4x24xf32>) -> {heads}",
        f"%1 = stablehlo.pad %0, %c, low = [0, 0, {low}], high = [0, 0, 3], interior = [0, 0, {interior}]"
        f" : ({heads}, tensor<f32>) -> {padded}",
        f"%r = stablehlo.negate %1 : {padded}",
        f"return %r : {padded}",
    )
    assert _quotients(text, np.arange(96, dtype=np.float32).reshape(4, 24)) == left


@pytest.mark.parametrize("kind", ["i4", "ui8", "i64", "bf16", "complex<f32>"])
def test_iota(kind: str) -> None:
    result = f"tensor<3x5x{kind}>"
    expect_same(function("", result, f"%r = stablehlo.iota dim = 1 : {result}", f"return %r : {result}"))


def test_sum_of_many_pieces() -> None:
    """The choices between them are nested no deeper than the logarithm of their number."""
    count = 300
    arguments = ", ".join(f"%x{n}: tensor<2xf32>" for n in range(count))
    names, types = ", ".join(f"%x{n}" for n in range(count)), ", ".join(["tensor<2xf32>"] * count)
    module = parse(f"""
        func.func @main({arguments}) -> tensor<f32> {{
          %all = stablehlo.concatenate {names}, dim = 0 : ({types}) -> tensor<{2 * count}xf32>
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %sum = stablehlo.reduce(%all init: %zero) applies stablehlo.add across dimensions = [0]
            : (tensor<{2 * count}xf32>, tensor<f32>) -> tensor<f32>
          return %sum : tensor<f32>
        }}
    """)
    running.expect_same(module, [np.array([n, -2 * n], np.float32) for n in range(count)])
