"""Large constants with equal elements take no memory at compile time: a kernel fills them when the program runs."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from tests.compiler.targets import TARGET
from trivium.compiler.lower import lower
from trivium.compiler.lowering.program_builder import LARGEST_STORED_SPLAT
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import Constant
from trivium.ir.text import parse

SIZE = LARGEST_STORED_SPLAT // 2
"""A constant of this many elements of two or more bytes is filled."""


def stored(module) -> int:
    """Returns the bytes of the constants that a program contains."""
    arrays = {
        id(v.storage): v.storage.array
        for v in lower(optimize(module), TARGET).values()
        if isinstance(v.storage, Constant)
    }
    return sum(array.nbytes for array in arrays.values())


@pytest.mark.parametrize(
    ("kind", "element"),
    [("f32", "1.5"), ("i64", "-7"), ("bf16", "2.5"), ("ui32", "4000000000"), ("complex<f32>", "(1.5,-2.0)")],
)
def test_returned(kind, element):
    text = f"""func.func @main() -> tensor<2x{SIZE}x{kind}> {{
      %0 = stablehlo.constant dense<{element}> : tensor<2x{SIZE}x{kind}>
      return %0 : tensor<2x{SIZE}x{kind}>
    }}"""
    module = parse(text)
    assert stored(module) < 100
    run = trivium.compile(module)
    assert run.program.arena_size == 0  # filled directly in the caller's result
    expected = trivium.evaluate(module)[0]
    (result,) = run()
    assert result.tobytes() == expected.tobytes()
    result[0, 0] = 0  # the result belongs to the caller
    assert run()[0].tobytes() == expected.tobytes()


def test_small_ones_are_stored():
    kind = "tensor<9xi64>"
    text = f"func.func @main() -> {kind} {{ %0 = stablehlo.constant dense<3> : {kind} return %0 : {kind} }}"
    assert stored(parse(text)) == 72


def test_needed_first_in_a_branch():
    """A constant that a branch needs first is also available after it, whichever branch was taken."""
    kind = f"tensor<{SIZE}xi32>"
    text = f"""func.func @main(%p: tensor<i1>, %x: {kind}) -> ({kind}, {kind}) {{
      %0 = stablehlo.constant dense<3> : {kind}
      %1 = "stablehlo.if"(%p) ({{ stablehlo.return %0 : {kind} }}, {{ stablehlo.return %x : {kind} }})
        : (tensor<i1>) -> {kind}
      return %1, %0 : {kind}, {kind}
    }}"""
    module = parse(text)
    assert stored(module) < 100
    run = trivium.compile(module)
    x = np.arange(SIZE, dtype=np.int32)
    for p, expected in ((True, np.full(SIZE, 3, np.int32)), (False, x)):
        chosen, constant = run(np.bool_(p), x)
        np.testing.assert_array_equal(chosen, expected)
        np.testing.assert_array_equal(constant, np.full(SIZE, 3))


def test_changed_in_a_loop():
    """A loop that begins with a filled constant does not change it."""
    kind = f"tensor<{SIZE}xi32>"
    text = f"""func.func @main() -> ({kind}, {kind}) {{
      %0 = stablehlo.constant dense<3> : {kind}
      %n = stablehlo.constant dense<0> : tensor<i32>
      %1:2 = stablehlo.while(%i = %n, %a = %0) : tensor<i32>, {kind} cond {{
        %four = stablehlo.constant dense<4> : tensor<i32>
        %p = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        %b = stablehlo.reverse %a, dims = [0] : {kind}
        %c = stablehlo.add %b, %0 : {kind}
        stablehlo.return %j, %c : tensor<i32>, {kind}
      }}
      return %1#1, %0 : {kind}, {kind}
    }}"""
    module = parse(text)
    assert stored(module) < 200
    run = trivium.compile(module)
    for _ in range(2):
        changed, constant = run()
        np.testing.assert_array_equal(changed, np.full(SIZE, 15))
        np.testing.assert_array_equal(constant, np.full(SIZE, 3))
