"""Uniform, normal, gamma and other distributions, and choices by weights, under `torch.compile`: what is drawn against
the exact distributions, and gradients against PyTorch's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
stats = pytest.importorskip("scipy.stats")

from torch.distributions import Categorical, Dirichlet, Gamma
from torch.nn.functional import rrelu

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


KINDS = torch.float16, torch.bfloat16, torch.float32, torch.float64


@pytest.mark.parametrize("kind", KINDS)
def test_uniform_numbers_stay_below_their_end(kind: torch.dtype) -> None:
    """Rounding to a narrow type would make the last of them the end."""
    ones, numbers = compiled(lambda: (torch.rand(10**6, dtype=kind), torch.empty(10**6, dtype=kind).uniform_(2, 3)))()
    assert (ones.min() >= 0, ones.max() < 1) == (True, True)
    assert (numbers.min() >= 2, numbers.max() < 3) == (True, True)
    assert stats.kstest(ones[:1000].double().numpy(), stats.uniform.cdf).pvalue > 1e-4


def test_exponential_numbers_are_positive() -> None:
    """One of 2**24 drawn numbers is zero."""
    drawn = compiled(lambda: torch.empty(2**26).exponential_(3))()
    assert drawn.min() > 0
    assert stats.kstest(drawn[:COUNT].numpy(), stats.expon(scale=1 / 3).cdf).pvalue > 1e-3


def test_double_numbers_have_all_their_bits() -> None:
    drawn = compiled(lambda: (torch.rand(COUNT, dtype=torch.float64), torch.randn(COUNT, dtype=torch.float64)))()
    for numbers, law in zip(drawn, (stats.uniform, stats.norm), strict=True):
        assert not torch.equal(numbers, numbers.float().double())
        assert stats.kstest(numbers.numpy(), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("kind", [torch.complex64, torch.complex128])
def test_complex_numbers(kind: torch.dtype) -> None:
    """Both parts are drawn; together, those of the standard normal distribution have the variance 1."""

    def draw() -> tuple[torch.Tensor, ...]:
        x = torch.zeros(COUNT, dtype=kind)
        return torch.randn(COUNT, dtype=kind), torch.rand(COUNT, dtype=kind), torch.randn_like(x), x.normal_(1, 2)

    half = 0.5**0.5
    laws = stats.norm(0, half), stats.uniform, stats.norm(0, half), stats.norm(1, 2 * half)
    for numbers, law in zip(compiled(draw)(), laws, strict=True):
        assert numbers.dtype == kind
        assert np.abs(np.corrcoef(numbers.real, numbers.imag)[0, 1]) < 0.05
        for part in (numbers.real, numbers.imag):
            assert stats.kstest(part.numpy(), law.cdf).pvalue > 1e-3


WEIGHTS = [0.0, 1.0, 0.0, 4.0, 3.0, 0.0]


def require_shares(places: torch.Tensor, weights: list[float]) -> None:
    """Checks that each place was drawn as often as its weight says, and none without a weight."""
    counts = np.bincount(places.flatten().numpy(), minlength=len(weights))
    kept = np.array(weights) > 0
    assert not counts[~kept].any()
    expected = np.array(weights)[kept] / sum(weights) * places.numel()
    assert stats.chisquare(counts[kept], expected).pvalue > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial_of_one_sample(replacement: bool, kind: torch.dtype) -> None:
    weights = torch.tensor([WEIGHTS, WEIGHTS[::-1]], dtype=kind).repeat(COUNT, 1)
    drawn = compiled(torch.multinomial, options={"fallback": False})(weights, 1, replacement)
    assert (drawn.shape, drawn.dtype) == ((2 * COUNT, 1), torch.int64)
    require_shares(drawn[::2], WEIGHTS)
    require_shares(drawn[1::2], WEIGHTS[::-1])


def test_multinomial_with_replacement() -> None:
    fast = compiled(torch.multinomial, options={"fallback": False})
    drawn = fast(torch.tensor(WEIGHTS), COUNT, True)
    assert drawn.shape == (COUNT,)
    require_shares(drawn, WEIGHTS)
    assert not torch.equal(drawn, fast(torch.tensor(WEIGHTS), COUNT, True))
    rows = fast(torch.tensor([WEIGHTS, WEIGHTS]), COUNT, True)
    assert not torch.equal(rows[0], rows[1])


def test_multinomial_without_replacement() -> None:
    drawn = compiled(torch.multinomial, options={"fallback": False})(torch.tensor(WEIGHTS).repeat(COUNT, 1), 3)
    assert drawn.sort(-1).values.tolist() == [[1, 3, 4]] * COUNT
    require_shares(drawn[:, 0], WEIGHTS)
    # Where the first is the largest, the others are as likely as their weights.
    require_shares(drawn[drawn[:, 0] == 3][:, 1], [0.0, 1.0, 0.0, 0.0, 3.0, 0.0])


def test_multinomial_of_other_sizes() -> None:
    fast = compiled(torch.multinomial, dynamic=True, options={"fallback": False, "tiered": False})
    for rows, count, samples in ((3, 5, 2), (4, 7, 3), (0, 5, 2), (3, 4, 1)):
        for replacement in (True, False):
            drawn = fast(torch.ones(rows, count), samples, replacement)
            assert drawn.shape == (rows, samples)
            assert ((drawn >= 0) & (drawn < count)).all()


def test_multinomial_of_negative_weights() -> None:
    fast = compiled(torch.multinomial, options={"checks": True})
    with pytest.raises(RuntimeError, match="probability tensor contains"):
        fast(torch.tensor([1.0, -1.0]), 1)


def test_categorical_of_distributions() -> None:
    weights = torch.tensor([[1.0, 3.0]])
    drawn = compiled(lambda p: Categorical(p, validate_args=False).sample((COUNT,)))(weights)
    require_shares(drawn, [1.0, 3.0])


def test_bernoulli_of_probabilities() -> None:
    shares = torch.tensor([0.0, 0.3, 1.0])
    fast = compiled(lambda p: torch.zeros(COUNT, 3).bernoulli_(p), options={"fallback": False})
    drawn = fast(shares)
    assert drawn.unique().tolist() == [0, 1]
    assert float((drawn.mean(0) - shares).abs().max()) < 0.02


@pytest.mark.parametrize("training", [True, False])
def test_rrelu(training: bool) -> None:
    """Negative numbers have slopes that are drawn, by which their gradients are scaled, too."""
    x = torch.linspace(-3, 3, COUNT, requires_grad=True)
    fast = compiled(lambda x: rrelu(x, 0.2, 0.6, training=training), options={"fallback": False})
    y = fast(x)
    y.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(x > 0, 1.0, (y / x).detach()))
    slopes = x.grad[x < 0]
    if training:
        assert stats.kstest(slopes.numpy(), stats.uniform(0.2, 0.4).cdf).pvalue > 1e-3
    else:
        torch.testing.assert_close(slopes, torch.full_like(slopes, 0.4))
