"""All ways to compute the error function in f32 are accurate, on any number of lanes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as special

from tests.backends.llvm.math.measuring import NAN, WAYS, expect_lanes_not_to_matter, in_lanes, samples, ulps
from trivium.backends.llvm.lookup import SHORT
from trivium.backends.llvm.math.short_error import SIXTEEN, erf


@pytest.mark.parametrize("looks_up", WAYS)
def test_accuracy(looks_up: int) -> None:
    x = samples(500_000)
    x = np.concatenate([x, np.arange(5000, dtype=np.float32) / 1024])
    x = x[~np.isnan(x)]
    x = x[: x.size // 16 * 16]
    exact, got = special.erf(x.astype(np.float64)), in_lanes(erf, x, 16, looks_up)
    assert ulps(got, exact).max() <= (1.1 if looks_up == SHORT else 1.9)
    assert np.abs(got).max() == 1
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))


@pytest.mark.parametrize("looks_up", WAYS)
def test_lanes_do_not_matter(looks_up: int) -> None:
    expect_lanes_not_to_matter(erf, looks_up, [NAN, 1, -1, 0, 0], SIXTEEN.last)
