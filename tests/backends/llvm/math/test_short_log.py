"""All ways to compute logarithms in f32 are accurate, on any number of lanes, and beside any numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.special as special

from tests.backends.llvm.math.measuring import INF, NAN, WAYS, expect_lanes_not_to_matter, in_lanes, samples, ulps
from trivium.backends.llvm.math import f32, short_log


@pytest.mark.parametrize("looks_up", WAYS)
def test_accuracy(looks_up: int) -> None:
    x = np.abs(np.concatenate([samples(500_000), np.linspace(0.2, 8, 400_000).astype(np.float32)]))
    x = x[(x > 0) & np.isfinite(x)]
    x = x[: x.size // 16 * 16]
    assert ulps(in_lanes(f32.log, x, 16, looks_up), np.log(x.astype(np.float64))).max() <= 1.0


@pytest.mark.parametrize("looks_up", WAYS)
def test_lanes_do_not_matter(looks_up: int) -> None:
    expect_lanes_not_to_matter(f32.log, looks_up, [NAN, INF, NAN, -INF, -INF], 2.0**-126)


@pytest.mark.parametrize("function", [f32.log, f32.erf_inv, f32.log1p])
def test_neighbours_do_not_matter(function: Callable) -> None:
    """A vector of ordinary numbers only is computed with fewer operations: with the same results as beside others."""
    x = np.random.default_rng(0).uniform(0, 1, 4096).astype(np.float32)
    together = in_lanes(function, x, 16, 0)
    apart = in_lanes(function, np.stack([x, np.full_like(x, NAN)], 1).ravel(), 16, 0)
    assert np.isnan(apart[1::2]).all()
    np.testing.assert_array_equal(together, apart[::2])


def test_all_of_one_kind() -> None:
    """Numbers that are not ordinary, of which whole vectors consist."""
    tiny = np.float32(2.0**-126)
    below, above = np.nextafter(tiny, np.float32(0)), np.finfo(np.float32).max
    x = np.repeat(np.array([tiny, below, 1e-45, 0, -0.0, -1, INF, -INF, above], np.float32), 16)
    with np.errstate(all="ignore"):
        expected = np.log(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(in_lanes(short_log.log, x, 16, 0), expected, rtol=2.0**-23)


def test_the_inverse_error_function_beyond_its_middle() -> None:
    x = np.concatenate([np.linspace(-1, 1, 8000), 1 - np.exp2(np.linspace(-24, -4, 8000))]).astype(np.float32)
    x = x[np.abs(x) < 1]
    x = x[: x.size // 16 * 16]
    assert ulps(in_lanes(f32.erf_inv, x, 16, 0), special.erfinv(x.astype(np.float64))).max() <= 2.0
