"""Ops that have no rule run in PyTorch, between the compiled parts of their graph."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.exc import BackendCompilerFailed

import trivium
from tests.importers.pytorch.models import difference
from tests.importers.pytorch.programs import foreign, foreign_pair

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trivium.torch.graph._warned", set())
    torch._dynamo.reset()


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs that are compiled."""
    found, compiler = [], trivium.compile

    def kept(module: Any, **options: Any) -> Any:
        found.append(module)
        return compiler(module, **options)

    monkeypatch.setattr(trivium, "compile", kept)
    return found


@torch.library.custom_op("trivium_tests::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@torch.library.custom_op("trivium_tests::grow", mutates_args={"x"})
def grow(x: torch.Tensor) -> None:
    x += 1


doubled.register_fake(torch.empty_like)
doubled.register_autograd(lambda ctx, gradient: doubled(gradient))


def around(x: torch.Tensor) -> torch.Tensor:
    return doubled(x.sin()).cos() * 3


def grown(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    grow(y)
    return y.exp()


FUNCTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "custom op": around,
    "custom op that writes": grown,
    "op without a rule": lambda x: (x.cos(), torch.ldexp(x, foreign(x @ x.mT))),
    "at both ends": lambda x: doubled(doubled(x).exp()),
    "nothing else": doubled,
    "shapes of elements": lambda x: torch.nonzero(x > 0) * 2,
    "masks": lambda x: x[x > 0].sum() + x,
    "elements of 16-bit parts": lambda x: torch.view_as_real(x.sin().chalf() * 2).float().cos(),
    "tuples": lambda x: foreign_pair(x @ x.mT)[1].cos(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str) -> None:
    x = torch.linspace(-1, 1, 9).reshape(3, 3)
    with torch.no_grad():
        expected = FUNCTIONS[name](x.clone())
        found = torch.compile(FUNCTIONS[name], backend="trivium", fullgraph=True)(x.clone())
    for ours, theirs in zip(*((y,) if isinstance(y, torch.Tensor) else y for y in (found, expected)), strict=True):
        assert ours.dtype == theirs.dtype
        assert difference(ours, theirs) < 1e-5


def test_gradients_and_parts(programs: list[Any]) -> None:
    x, y = (torch.linspace(-1, 1, 9).requires_grad_() for _ in range(2))
    torch.compile(around, backend="trivium", fullgraph=True)(x).square().sum().backward()
    around(y).square().sum().backward()
    assert difference(x.grad, y.grad) < 1e-5
    assert len(programs) == 4


@pytest.mark.parametrize("layer", [torch.nn.Embedding, torch.nn.EmbeddingBag])
def test_sparse_gradients(layer: type) -> None:
    ours, theirs = (layer(5, 3, sparse=True, _weight=torch.arange(15.0).reshape(5, 3)) for _ in range(2))
    indices = torch.tensor([[1, 2], [4, 1]])
    for run in (torch.compile(ours, backend="trivium"), theirs):
        run(indices).square().sum().backward()
    assert ours.weight.grad.is_sparse
    assert torch.equal(ours.weight.grad.to_dense(), theirs.weight.grad.to_dense())


def test_sizes_that_change() -> None:
    fast = torch.compile(around, backend="trivium", dynamic=True)
    for size in (2, 3, 5):
        assert difference(fast(torch.ones(size)), around(torch.ones(size))) < 1e-5


def test_views_of_results_of_other_parts() -> None:
    def function(x: torch.Tensor) -> Any:
        y = x * 2
        return doubled(y)[0], y, y[1:], doubled(y).exp()

    with torch.no_grad():
        _, y, rest, _ = torch.compile(function, backend="trivium", fullgraph=True)(torch.ones(3))
        y[1] = 7
    assert rest.tolist() == [7, 2]


def test_it_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "trivium.torch"):
        for shape in (2, 3):
            torch._dynamo.reset()
            torch.compile(around, backend="trivium")(torch.ones(shape))
    (message,) = caplog.messages
    assert "test_fallback.py" in message
    assert "trivium_tests.doubled.default runs in PyTorch, between compiled parts: it has no rule" in message


def test_memory_that_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    """A graph that assigns to the data of a parameter runs in PyTorch."""
    weight = torch.nn.Parameter(torch.zeros(3))

    def function(x: torch.Tensor) -> torch.Tensor:
        weight.data = x * 2
        return weight * x

    x = torch.tensor([1.0, 2.0, 3.0])
    with pytest.raises(BackendCompilerFailed, match="gives a tensor other memory, which a program cannot do"):
        torch.compile(function, backend="trivium", options={"fallback": False})(x)
    torch._dynamo.reset()
    with caplog.at_level(logging.WARNING, "trivium.torch"):
        result = torch.compile(function, backend="trivium")(x)
    assert "the graph runs in PyTorch" in caplog.text
    assert "test_fallback.py" in caplog.text
    result.sum().backward()
    assert (result.tolist(), weight.tolist()) == ([2, 8, 18], [2, 4, 6])
    assert weight.grad is not None
    assert weight.grad.tolist() == [1, 2, 3]


def test_without_it_all_are_listed() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return doubled(foreign(x))

    with pytest.raises(BackendCompilerFailed) as error:
        torch.compile(function, backend="trivium", options={"fallback": False})(torch.ones(2, 2))
    assert "trivium_tests.doubled.default" in str(error.value)
    assert "trivium_tests.foreign.default" in str(error.value)


def test_parameters_stay_frozen(programs: list[Any]) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 2))

    def function(x: torch.Tensor) -> torch.Tensor:
        return model[1](doubled(model[0](x)))

    fast, x = torch.compile(function, backend="trivium", options={"freeze": True}), torch.ones(2, 3)
    with torch.no_grad():
        assert difference(fast(x), function(x)) < 1e-5
        assert len(programs[0].main.function_type.inputs) == 1
        model[1].bias.add_(1)
        assert difference(fast(x), function(x)) < 1e-5
