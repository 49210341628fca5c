"""Draws of counts under `torch.compile`, against the exact distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
stats = pytest.importorskip("scipy.stats")

from tests.torch.test_sampling import COUNT, compiled

pytestmark = pytest.mark.torch


def expect_drawn_from(drawn: Any, distribution: Any) -> None:
    """Expects as many of each count as are likely; those in the tails are counted together."""
    low, high = (int(distribution.ppf(tail)) for tail in (1e-3, 1 - 1e-3))
    counts = np.arange(low, high + 1)
    if len(counts) > 50:
        counts = counts[:: len(counts) // 50]
    upper = np.append(distribution.cdf(counts), 1)
    found = np.searchsorted(counts, drawn.double().numpy())
    likely = np.diff(upper, prepend=0) * len(drawn)
    seen = np.bincount(found, minlength=len(likely))
    assert stats.chisquare(seen[likely > 0], likely[likely > 0]).pvalue > 1e-3


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("rate", [0.01, 0.5, 9.9, 10.0, 25.0, 3000.0])
def test_poisson(rate: float, kind: torch.dtype) -> None:
    drawn = compiled(torch.poisson)(torch.full((COUNT,), rate, dtype=kind))
    assert drawn.dtype == kind
    expect_drawn_from(drawn, stats.poisson(float(torch.tensor(rate, dtype=kind))))


def test_limits_of_poisson() -> None:
    drawn = compiled(torch.poisson)(torch.tensor([0.0, torch.inf, 1e-30, -1.0, torch.nan]))
    assert drawn[:3].tolist() == [0, torch.inf, 0]
    assert drawn[3:].isnan().all()


@pytest.mark.parametrize(
    ("count", "share"), [(1, 0.3), (20, 0.9), (100, 0.02), (100, 0.1), (100, 0.5), (2000, 0.97), (10**9, 1e-9)]
)
def test_binomial(count: int, share: float) -> None:
    given = (torch.full((COUNT,), number, dtype=torch.float64) for number in (count, share))
    drawn = compiled(torch.binomial)(*given)
    expect_drawn_from(drawn, stats.binom(count, share))


def test_limits_of_binomial_are_those_of_pytorch() -> None:
    count, share = torch.tensor([0.0, 5, 5, 5, -1, 5]), torch.tensor([0.5, 0, 1, torch.nan, 0.5, 2])
    torch.testing.assert_close(
        compiled(torch.binomial)(count, share), torch.binomial(count, share), rtol=0, atol=0, equal_nan=True
    )
    drawn = compiled(torch.binomial)(torch.tensor([torch.nan, torch.inf]), torch.tensor([0.5, 0.5]))
    assert drawn.isnan().all()


def test_elements_have_their_own_distributions() -> None:
    rates = torch.tensor([0.7, 4.0, 60.0])
    fast = compiled(torch.poisson)
    first, second = fast(rates.expand(COUNT, 3)), fast(rates.expand(COUNT, 3))
    assert not torch.equal(first, second)
    for column, rate in zip(first.T, rates.double().tolist(), strict=True):
        expect_drawn_from(column, stats.poisson(rate))
    assert np.abs(np.corrcoef(first.T.numpy()) - np.eye(3)).max() < 0.05


def test_distributions_of_counts() -> None:
    def drawn(rate: torch.Tensor, share: torch.Tensor) -> tuple[torch.Tensor, ...]:
        poisson = torch.distributions.Poisson(rate, validate_args=False)
        binomial = torch.distributions.Binomial(40, share, validate_args=False)
        return poisson.sample((COUNT,)), binomial.sample((COUNT,))

    counts, successes = compiled(drawn)(torch.tensor(12.0), torch.tensor(0.25))
    expect_drawn_from(counts, stats.poisson(12.0))
    expect_drawn_from(successes, stats.binom(40, 0.25))


def test_dynamic_sizes() -> None:
    fast = compiled(torch.poisson, dynamic=True)
    for size in (3, 5, 4000):
        drawn = fast(torch.full((size, 2), 6.0))
        assert drawn.shape == (size, 2)
    expect_drawn_from(drawn.flatten(), stats.poisson(6.0))
