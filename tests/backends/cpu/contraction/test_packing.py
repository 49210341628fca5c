"""Operands in panels: constants, and what is packed on the way."""

from __future__ import annotations

import pytest

from tests.backends.cpu.contraction.cases import LAYOUTS, WINDOWS, assert_close, convolution, normal, reference


@pytest.mark.parametrize("constants", [{"rhs"}, {"lhs"}, {"lhs", "rhs"}], ids=("weights", "images", "both"))
@pytest.mark.parametrize("layout", ["channels last", "channels first"])
@pytest.mark.parametrize("name", WINDOWS)
def test_convolution_of_constants(name: str, layout: str, constants: set[str]) -> None:
    lhs_shape, rhs_shape, window = WINDOWS[name]
    lhs, rhs = normal(*lhs_shape), normal(*rhs_shape)
    assert_close(convolution(lhs, rhs, window, LAYOUTS[layout]).run(constants), reference(lhs, rhs, window))
