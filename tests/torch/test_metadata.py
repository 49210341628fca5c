"""Inference graphs that `torch.compile` calls without AOTAutograd's function around them, and those that need it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

import trivium
from trivium import torch as trivium_torch

pytestmark = pytest.mark.torch


def cumulated(x):
    return x.cumsum(0), x + 1


def changed(x):
    x.add_(1)
    return x * 2


def viewed(x):
    return x[1:], x * 2


def viewed_result(x):
    y = x * 2
    return y, y[1:]


@pytest.mark.parametrize(
    ("function", "needless"), [(cumulated, True), (changed, False), (viewed, False), (viewed_result, True)]
)
def test_which_graphs_are_called_alone(monkeypatch: pytest.MonkeyPatch, function: Callable, needless: bool) -> None:
    found, real = [], trivium_torch.is_needless
    monkeypatch.setattr(trivium_torch, "is_needless", lambda *counts: found.append(real(*counts)) or found[-1])
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="trivium")
    for number in range(3):
        ours, theirs = (torch.arange(4.0) + number for _ in range(2))
        results, expected = compiled(ours), function(theirs)
        torch.testing.assert_close(results, expected, rtol=0, atol=0)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    assert found == [needless]


def test_no_gradients_are_recorded() -> None:
    torch._dynamo.reset()
    layer = torch.nn.Linear(3, 2)
    compiled = torch.compile(layer, backend="trivium")
    x = torch.randn(4, 3)
    with torch.no_grad():
        assert not compiled(x).requires_grad
    assert compiled(x).requires_grad
    torch.testing.assert_close(compiled(x), layer(x))


def test_ops_in_pytorch_are_not_cast_again() -> None:
    """Outside of compiled parts, autocast would convert the operands of ops that the graph has already."""

    def sorted_products(x):
        return (x @ x).frexp().mantissa @ x.float()

    torch._dynamo.reset()
    x = torch.randn(4, 4)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        found = torch.compile(sorted_products, backend="trivium")(x)
        assert found.dtype == sorted_products(x).dtype == torch.bfloat16


def test_tangents_are_refused() -> None:
    """A compiled graph would lose them."""
    torch._dynamo.reset()
    compiled, x = torch.compile(torch.sin, backend="trivium"), torch.ones(3)
    compiled(x)
    with torch.autograd.forward_ad.dual_level():
        torch.testing.assert_close(compiled(x), x.sin())
        with pytest.raises(trivium.Error, match=r"has a tangent, expected none: compile torch\.func\.jvp"):
            compiled(torch.autograd.forward_ad.make_dual(x, x))
