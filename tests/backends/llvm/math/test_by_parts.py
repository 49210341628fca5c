"""A function by parts takes the polynomial of the part that a number is in, and its distance from the centre."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.llvm.math.measuring import WAYS, in_lanes
from trivium.backends.llvm.lookup import SIZE
from trivium.backends.llvm.math.by_parts import FIRST, ByParts

SCALE, LAST = 0.5, 14.5


@pytest.mark.skipif(SIZE not in WAYS, reason="this processor has no instruction for it")
def test_each_part_has_its_polynomial() -> None:
    centres, slopes = np.linspace(-3, 4, SIZE), np.linspace(2, 5, SIZE)
    function = ByParts(SCALE, LAST, centres.tolist(), (slopes.tolist(), list(range(SIZE))))
    x = np.linspace(0, LAST, 4 * SIZE).astype(np.float32)
    fraction, exponent = np.frexp(SCALE * x + FIRST)
    # The number in [1, 2) and the exponent as the format has them.
    part = 4 * ((exponent - 1 + 127) % 4) + np.floor(4 * (2 * fraction - 1)).astype(int)
    assert set(part) == set(range(SIZE))
    expected = part + slopes[part] * (x - centres[part])
    np.testing.assert_allclose(in_lanes(function, x, SIZE, SIZE), expected, rtol=1e-5)
