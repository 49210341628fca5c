"""A function by parts takes the polynomial of the part that a number is in, and its distance from the centre."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.llvm.math.measuring import WAYS, in_lanes
from trivium.backends.llvm.math.by_parts import FIRST, ByParts

SCALE, LAST = 0.5, 14.5


@pytest.mark.parametrize("size", WAYS[1:])
def test_each_part_has_its_polynomial(size: int) -> None:
    centres, slopes = np.linspace(-3, 4, size), np.linspace(2, 5, size)
    function = ByParts(SCALE, LAST, centres.tolist(), (slopes.tolist(), list(range(size))))
    x = np.linspace(0, LAST, 4 * size).astype(np.float32)
    fraction, exponent = np.frexp(SCALE * x + FIRST)
    # The number in [1, 2) and the exponent as the format has them.
    shares = size // 4
    part = shares * ((exponent - 1 + 127) % 4) + np.floor(shares * (2 * fraction - 1)).astype(int)
    assert set(part) == set(range(size))
    expected = part + slopes[part] * (x - centres[part])
    np.testing.assert_allclose(in_lanes(function, x, size, size), expected, rtol=1e-5)
