"""Incomplete gamma functions of many numbers, of which some converge long before others."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy import special

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_elements_are_exact_whatever_others_need(name: str) -> None:
    a, x = (side.ravel() for side in np.meshgrid([0.5, 1.0, 2.5, 7.0, 1e5], [1.75, 2.0, 4.0, 9.5, 1e5]))
    torch._dynamo.reset()
    fast = torch.compile(getattr(torch.special, name), backend="trivium", options={"fallback": False})
    found = fast(torch.from_numpy(a), torch.from_numpy(x)).numpy()
    small = a < 10
    np.testing.assert_allclose(found[small], getattr(special, name)(a, x)[small], rtol=2e-14, atol=1e-300)
