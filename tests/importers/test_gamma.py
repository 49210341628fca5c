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


def test_upper_function_of_tiny_numbers() -> None:
    """It is about as small as its first argument, while the lower function is nearly one."""
    grid = np.meshgrid([1e-300, 1e-38, 1e-8, 1e-3, 0.0156, 0.0157], [1e-30, 1e-3, 0.5, 0.999, 1.0, 1.0156, 1.02, 3.0])
    a, x = (torch.from_numpy(side.ravel()) for side in grid)
    torch._dynamo.reset()
    found = torch.compile(torch.special.gammaincc, backend="trivium", options={"fallback": False})(a, x)
    np.testing.assert_allclose(found.numpy(), special.gammaincc(a.numpy(), x.numpy()), rtol=1e-12, atol=0)
    likewise = a >= 1e-8  # PyTorch's own values of smaller numbers are twice as large
    torch.testing.assert_close(found[likewise], torch.special.gammaincc(a, x)[likewise], rtol=1e-7, atol=0)
