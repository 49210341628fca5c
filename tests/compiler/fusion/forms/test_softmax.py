"""What is no attention, although it looks like it."""

from __future__ import annotations

import pytest

from tests.compiler.attention import Case, changed
from tests.compiler.fusion.forms.test_attention import kernels


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("stablehlo.subtract %x, %b", "stablehlo.subtract %p, %b"),
        ("applies stablehlo.maximum", "applies stablehlo.minimum"),
        ("stablehlo.divide %e, %r", "stablehlo.divide %r, %e"),
        ("%inf = stablehlo.constant dense<0xFF800000>", "%inf = stablehlo.constant dense<0.0>"),
        ("%zero = stablehlo.constant dense<0.0>", "%zero = stablehlo.constant dense<1.0>"),
        ("stablehlo.reduce(%e init", "stablehlo.reduce(%d init"),
    ],
)
def test_other_computations_are_no_softmax(old: str, new: str) -> None:
    assert True not in kernels(changed(Case(mask="causal").text(), (old, new)))


def test_weights_that_are_needed_are_computed_as_a_whole() -> None:
    plane, out = "tensor<1x2x40x70xf32>", "tensor<1x2x40x36xf32>"
    given = Case().text()
    module = changed(
        given,
        (f") -> {out} {{", f") -> ({out}, {plane}) {{"),
        (f"return %o : {out}", f"return %o, %w : {out}, {plane}"),
    )
    assert True not in kernels(module)
