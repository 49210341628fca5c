"""Reading lhs where it lies: windows of every kind, in every layout."""

from __future__ import annotations

import pytest

from tests.backends.cpu.contraction.cases import LAYOUTS, WINDOWS, assert_close, convolution, normal, reference


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", WINDOWS)
def test_convolution(name: str, layout: str) -> None:
    lhs_shape, rhs_shape, window = WINDOWS[name]
    lhs, rhs = normal(*lhs_shape), normal(*rhs_shape)
    assert_close(convolution(lhs, rhs, window, LAYOUTS[layout]).run(), reference(lhs, rhs, window))
