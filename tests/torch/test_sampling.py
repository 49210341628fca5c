"""Gamma, Dirichlet and normal distributions under `torch.compile`: what is drawn against the exact distributions, and
gradients against PyTorch's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
stats = pytest.importorskip("scipy.stats")

from torch.distributions import Dirichlet, Gamma

pytestmark = pytest.mark.torch

COUNT = 20000


def compiled(function: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    torch.manual_seed(0)
    return torch.compile(function, backend="trivium", fullgraph=True, **options)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("alpha", [0.1, 0.7, 1.0, 2.5, 300.0])
def test_gamma(alpha: float, kind: torch.dtype) -> None:
    drawn = compiled(torch._standard_gamma)(torch.full((COUNT,), alpha, dtype=kind))
    assert drawn.dtype == kind
    assert stats.kstest(drawn.numpy(), stats.gamma(alpha).cdf).pvalue > 1e-3


def test_each_element_of_gamma_has_its_own_shape() -> None:
    alpha = torch.tensor([0.3, 1.0, 7.0]).expand(COUNT, 3)
    fast = compiled(torch._standard_gamma)
    first, second = fast(alpha), fast(alpha)
    assert not torch.equal(first, second)
    for column, shape in zip(first.T, (0.3, 1.0, 7.0), strict=True):
        assert stats.kstest(column.numpy(), stats.gamma(shape).cdf).pvalue > 1e-3
    assert np.abs(np.corrcoef(first.T.numpy()) - np.eye(3)).max() < 0.05


def test_limits_of_gamma() -> None:
    drawn = compiled(torch._standard_gamma)(torch.tensor([0.0, torch.inf, 1e-5, -1.0, torch.nan]))
    least = torch.finfo(torch.float32).smallest_normal
    assert drawn[:3].tolist() == [least, torch.inf, least]
    assert drawn[3:].isnan().all()


def test_narrow_types_of_gamma() -> None:
    drawn = compiled(torch._standard_gamma)(torch.full((COUNT,), 3.0, dtype=torch.float16))
    assert drawn.dtype == torch.float16
    assert abs(float(drawn.double().mean()) - 3) < 0.05


def test_dynamic_sizes() -> None:
    fast = compiled(torch._standard_gamma, dynamic=True)
    for size in (3, 5, 4000):
        drawn = fast(torch.full((size, 2), 5.0))
        assert drawn.shape == (size, 2)
        assert (drawn > 0).all()
    assert stats.kstest(drawn.flatten().numpy(), stats.gamma(5.0).cdf).pvalue > 1e-3


def test_dirichlet() -> None:
    shapes = [0.4, 1.5, 3.0]
    drawn = compiled(torch._sample_dirichlet)(torch.tensor(shapes).expand(COUNT, 3))
    assert float((drawn.sum(-1) - 1).abs().max()) < 1e-6
    for column, shape in zip(drawn.T, shapes, strict=True):
        assert stats.kstest(column.numpy(), stats.beta(shape, sum(shapes) - shape).cdf).pvalue > 1e-3


def test_limits_of_dirichlet() -> None:
    """Of tiny shapes, nearly all of a row is one of its numbers."""
    drawn = compiled(torch._sample_dirichlet)(torch.full((1000, 3), 1e-4))
    assert drawn.isfinite().all()
    assert (drawn.amax(-1) > 0.999).float().mean() > 0.99
    assert 0 < float(drawn.min()) < float(drawn.max()) < 1
    assert (
        compiled(torch._sample_dirichlet)(torch.tensor(2.0)).tolist()
        == torch._sample_dirichlet(torch.tensor(2.0)).tolist()
    )


def test_gradient_of_gamma() -> None:
    """The gradient follows from what was drawn."""

    def loss(alpha: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        drawn = Gamma(alpha, torch.ones_like(alpha), validate_args=False).rsample()
        return (drawn * drawn).sum(), drawn

    alpha = torch.linspace(0.2, 20, 100, dtype=torch.float64).requires_grad_()
    total, drawn = compiled(loss)(alpha)
    total.backward()
    expected = 2 * drawn * torch._standard_gamma_grad(alpha, drawn)
    assert alpha.grad is not None
    torch.testing.assert_close(alpha.grad, expected.detach(), rtol=2e-3, atol=1e-6)


def test_dirichlet_of_distributions() -> None:
    alpha = torch.tensor([[2.0, 3.0, 4.0]])
    drawn = compiled(lambda alpha: Dirichlet(alpha, validate_args=False).sample((COUNT,)))(alpha)
    assert float((drawn.mean((0, 1)) - alpha / alpha.sum()).abs().max()) < 0.01


@pytest.mark.parametrize("kinds", ["both", "mean", "std"])
def test_normal_of_tensors(kinds: str) -> None:
    mean = 3.0 if kinds == "std" else torch.full((COUNT,), 3.0)
    std = 0.5 if kinds == "mean" else torch.full((COUNT,), 0.5)
    drawn = compiled(lambda: torch.normal(mean, std), options={"fallback": False})()
    assert stats.kstest(drawn.numpy(), stats.norm(3, 0.5).cdf).pvalue > 1e-3
