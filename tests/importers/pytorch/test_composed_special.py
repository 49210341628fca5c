"""Fitted special functions against SciPy's, in double precision: inside of their intervals and at the ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy import special

from trivium.importers.bessel import I0
from trivium.importers.fitting import DEGREE, coefficients_of
from trivium.importers.pytorch import composed_special

pytestmark = pytest.mark.torch

POINTS = np.array([1e-9, 1e-3, 0.25, 0.5, 1.0, 1.75, 2.0, 2.25, 3.5, 5.0, 7.75, 8.0, 8.5, 20.0])


@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (composed_special.i0, special.i0),
        (composed_special.i0e, special.i0e),
        (composed_special.i1, special.i1),
        (composed_special.i1e, special.i1e),
        (composed_special.bessel_j0, special.j0),
        (composed_special.bessel_j1, special.j1),
        (composed_special.bessel_y0, special.y0),
        (composed_special.bessel_y1, special.y1),
        (composed_special.erfcx, special.erfcx),
    ],
)
def test_a_fitted_function_is_exact_to_a_few_digits_of_the_last_place(function: Any, reference: Any) -> None:
    found = function(torch.from_numpy(POINTS)).numpy()
    expected = reference(POINTS)
    np.testing.assert_allclose(found, expected, rtol=2e-15, atol=5e-16)


def test_a_series_ends_where_its_coefficients_are_noise() -> None:
    assert len(coefficients_of(I0[0])) < DEGREE / 2


def test_ndtri_takes_the_smallest_numbers() -> None:
    p = np.array([5e-324, 1e-310, np.finfo(np.float64).tiny, 1e-301, 1e-200, 1e-9, 0.13, 0.14, 0.3, 0.7, 0.99])
    np.testing.assert_allclose(composed_special.ndtri(torch.from_numpy(p)).numpy(), special.ndtri(p), rtol=2e-15)
