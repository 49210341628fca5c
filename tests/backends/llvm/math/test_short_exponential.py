"""All ways to compute the exponential function in f32 are accurate, on any number of lanes."""

from __future__ import annotations

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.math.measuring import INF, NAN, WAYS, expect_lanes_not_to_matter, in_lanes, samples, ulps
from trivium.backends.llvm.code import Code
from trivium.backends.llvm.math import f32, short_exponential


def exp(code: Code, x: ll.Value) -> ll.Value:
    return short_exponential.exp(code, x, f32.exp)


def whole(x: np.ndarray) -> np.ndarray:
    """Returns as many numbers as fill vectors."""
    return x[: x.size // 16 * 16].astype(np.float32)


@pytest.mark.parametrize("looks_up", WAYS)
def test_accuracy(looks_up: int) -> None:
    x = whole(samples(500_000))
    with np.errstate(all="ignore"):
        got, exact = in_lanes(exp, x, 16, looks_up), np.exp(x.astype(np.float64))
        expected = exact.astype(np.float32)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(got[~finite], expected[~finite])
    assert ulps(got[finite], exact[finite]).max() <= 1.0
    # Subnormal results are rounded once, too.
    low = whole(np.linspace(-103.9, -87.4, 160_000))
    assert np.abs(in_lanes(exp, low, 16, looks_up) - np.exp(low.astype(np.float64))).max() <= 2.0**-149


@pytest.mark.parametrize("looks_up", WAYS)
def test_where_parts_meet(looks_up: int) -> None:
    """At the boundaries of reduced ranges, also those of roots, the result is off by no more than elsewhere."""
    meeting = (np.arange(-126 * 16, 127 * 16) + 0.5) * np.log(2) / 16
    steps = 1 + np.finfo(np.float32).eps * np.arange(-8, 9)
    x = whole((meeting[:, None] * steps).ravel())
    assert ulps(in_lanes(exp, x, 16, looks_up), np.exp(x.astype(np.float64))).max() <= 1.0


@pytest.mark.parametrize("looks_up", WAYS)
def test_where_it_overflows_and_vanishes(looks_up: int) -> None:
    last = np.float32(88.72283)
    x = np.array(
        [last, np.nextafter(last, np.float32(INF)), -103.972, -103.973, -199, -201, 1e30, -1e30, *[0] * 8], np.float32
    )
    got = in_lanes(exp, x, 16, looks_up)
    assert np.isfinite(got[0])
    np.testing.assert_array_equal(got[1:8], np.array([INF, 1e-45, 0, 0, 0, INF, 0], np.float32))


@pytest.mark.parametrize("looks_up", WAYS)
def test_lanes_do_not_matter(looks_up: int) -> None:
    expect_lanes_not_to_matter(exp, looks_up, [NAN, INF, 0, 1, 1], 89)
