"""All ways to compute the hyperbolic tangent in f32 are accurate, on any number of lanes."""

from __future__ import annotations

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.math.measuring import NAN, WAYS, expect_lanes_not_to_matter, in_lanes, samples, ulps
from trivium.backends.llvm.code import Code
from trivium.backends.llvm.lookup import SIZE
from trivium.backends.llvm.math import f32, short_tanh


def tanh(code: Code, x: ll.Value) -> ll.Value:
    return short_tanh.tanh(code, x, f32.exp)


@pytest.mark.parametrize("looks_up", WAYS)
def test_accuracy(looks_up: int) -> None:
    """The result never exceeds 1, and has the sign of the argument."""
    x = np.concatenate([samples(500_000), np.arange(10_000, dtype=np.float32) / 1024])
    x = x[~np.isnan(x)]
    x = x[: x.size // 16 * 16]
    got = in_lanes(tanh, x, 16, looks_up)
    assert ulps(got, np.tanh(x.astype(np.float64))).max() <= (1.2 if looks_up == SIZE else 1.6)
    assert np.abs(got).max() == 1
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))


@pytest.mark.parametrize("looks_up", WAYS)
def test_small_arguments_lose_no_digits(looks_up: int) -> None:
    x = np.float32(2.0) ** np.linspace(-149, -14, 1600).astype(np.float32)
    np.testing.assert_array_equal(in_lanes(tanh, x, 16, looks_up), x)


@pytest.mark.parametrize("looks_up", WAYS)
def test_lanes_do_not_matter(looks_up: int) -> None:
    expect_lanes_not_to_matter(tanh, looks_up, [NAN, 1, -1, 0, 0], short_tanh.LAST)
