"""The pipeline as a whole: what it copies, and which ops it leaves."""

from __future__ import annotations

import numpy as np

from trivium.compiler.pipeline import inline, inline_used, optimize
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

TEXT = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = func.call @twice(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = stablehlo.sine %0 : tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func private @twice(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %x, %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""

X = np.asarray([1, 2, 3], np.float32)


def test_the_module_does_not_change() -> None:
    module, before = parse(TEXT), str(parse(TEXT))
    for made in (inline(module), inline_used(module), optimize(module)):
        assert str(module) == before
        assert "call" not in str(made)
        np.testing.assert_array_equal(evaluate(made, X)[0], 2 * X)


def test_without_a_copy_the_module_itself_changes() -> None:
    module = parse(TEXT)
    assert optimize(module, copy=False) is module
    assert "call" not in str(module)


def test_what_nothing_uses() -> None:
    module = parse(TEXT)
    assert "sine" in str(inline(module))
    assert "sine" not in str(inline_used(module))
