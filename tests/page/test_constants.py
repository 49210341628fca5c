"""Summaries of constants."""

import ml_dtypes
import numpy as np
import pytest

from trivium.page.constants import SAMPLE, histogram


def test_a_small_array_is_counted_whole() -> None:
    array = np.array([[0, 1], [2, 3]], np.int32)
    found = histogram(array, "i32")
    assert found is not None
    assert (found.sampled, found.low, found.high, found.mean, found.zeros) == (4, 0.0, 3.0, 1.5, 1)
    assert found.deviation == pytest.approx(array.std())
    assert sum(found.counts) == 4


def test_of_a_large_array_elements_at_equal_distances_are_looked_at() -> None:
    array = np.broadcast_to(np.float32(2.0), (1 << 20, 1 << 20))  # reading all of it would take far too long
    found = histogram(array, "f32")
    assert found is not None
    assert 0 < found.sampled <= SAMPLE
    assert (found.low, found.high, sum(found.counts)) == (2.0, 2.0, found.sampled)


def test_the_sample_is_like_the_whole() -> None:
    array = np.random.default_rng(0).standard_normal((512, 512)).astype(ml_dtypes.bfloat16)
    found = histogram(array, "bf16")
    assert found is not None
    assert abs(found.mean) < 0.05
    assert found.deviation == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    "values",
    [[np.nan, np.inf], [1e308, -1e308], [5e-324, 0.0], [1.0, np.nextafter(1.0, 2)], [True, False], [1 + 2j, 0]],
)
def test_extreme_values_have_finite_summaries(values: list[complex]) -> None:
    found = histogram(np.array(values), "any")
    assert found is not None
    assert np.isfinite([found.low, found.high, found.mean, found.deviation]).all()
    assert sum(found.counts) <= 2


def test_empty_arrays_have_none() -> None:
    assert histogram(np.zeros((0, 3)), "f64") is None
