"""Tensors on PyTorch's device `meta`, which have no elements: graphs may take, compute and return them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.importers.pytorch.models import difference, outputs_of

pytestmark = pytest.mark.torch


def compiled(function: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(function, backend="trivium", **options)


def check(ours: Any, theirs: Any) -> None:
    """Checks that results are on the same devices, lie alike in memory, and have the same elements, if any."""
    for one, other in zip(outputs_of(ours), outputs_of(theirs), strict=True):
        assert (one.device, one.shape, one.stride(), one.dtype) == (
            other.device,
            other.shape,
            other.stride(),
            other.dtype,
        )
        assert one.is_meta or difference(one, other) < 1e-6


def placed(x: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, ...]:
    filled = torch.empty_like(other, device="cpu").zero_() + x[0, 0]
    return x + 1, x.to("meta").t(), other * 2, filled, other.view(-1)


@pytest.mark.parametrize("dynamic", [False, True])
def test_results_and_arguments(dynamic: bool) -> None:
    fast = compiled(placed, fullgraph=True, dynamic=dynamic)
    for size in (3, 5):
        x, other = torch.linspace(0, 1, 4 * size).reshape(size, 4), torch.empty(size, 4, device="meta")
        check(fast(x, other), placed(x, other))


def test_a_graph_without_elements() -> None:
    given = torch.empty(3, device="meta")
    double = compiled(lambda x: x * 2, fullgraph=True)
    assert double(given) is not double(given)
    check(double(given), given * 2)


def test_gradients_beside_them() -> None:
    w = torch.linspace(1, 2, 3).requires_grad_()
    loss, nowhere = compiled(lambda w: ((w * w).sum(), w.to("meta") * 2), fullgraph=True)(w)
    loss.backward()
    assert difference(w.grad, 2 * w.detach()) < 1e-6
    assert nowhere.is_meta
    assert nowhere.requires_grad


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr")
def test_linear_approximations() -> None:
    """Zero tangents are copied to `meta`, whose shape alone is needed."""

    def approximated(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        result, slope = torch.func.linearize(lambda x: x * x * 2 + x.sin(), x)
        return result, slope(torch.ones_like(x))

    x = torch.linspace(-1, 1, 5)
    check(compiled(approximated)(x), approximated(x))
