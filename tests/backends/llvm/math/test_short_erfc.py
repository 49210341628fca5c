"""All ways to compute the complement of the error function in f32 are accurate, on any number of lanes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as special

from tests.backends.llvm.math.measuring import NAN, WAYS, expect_lanes_not_to_matter, in_lanes, samples, ulps
from trivium.backends.llvm.math.short_erfc import LAST, erfc


@pytest.mark.parametrize("looks_up", WAYS)
def test_accuracy(looks_up: int) -> None:
    x = np.concatenate([samples(200_000), np.linspace(-1, 10.1, 200_000).astype(np.float32)])
    x = x[~np.isnan(x)]
    x = x[: x.size // 16 * 16]
    got = in_lanes(erfc, x, 16, looks_up)
    assert ulps(got, special.erfc(x.astype(np.float64))).max() <= (2.0 if looks_up else 1.0)
    assert (got >= 0).all()
    assert got.max() == 2


@pytest.mark.parametrize("looks_up", WAYS)
def test_lanes_do_not_matter(looks_up: int) -> None:
    expect_lanes_not_to_matter(erfc, looks_up, [NAN, 0, 2, 1, 1], LAST)
