"""Layers of recurrent networks under `torch.compile`: results and every gradient against PyTorch's own."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.utils.checkpoint import checkpoint

import trivium
from tests.importers.pytorch.models import difference, outputs_of

pytestmark = pytest.mark.torch

NETWORKS = {"lstm": nn.LSTM, "gru": nn.GRU, "tanh": nn.RNN, "relu": nn.RNN}

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "without-biases": {"bias": False},
    "deep": {"bidirectional": True, "num_layers": 2},
    "batch-first": {"batch_first": True, "num_layers": 2},
}


def network(name: str, *sizes: int, **options: Any) -> nn.RNNBase:
    torch.manual_seed(0)
    more = {"nonlinearity": name} if NETWORKS[name] is nn.RNN else {}
    return NETWORKS[name](*sizes, **more, **options)


def drawn(*shape: int, kind: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(kind)


def states_of(model: nn.RNNBase, *batch: int) -> list[torch.Tensor]:
    """Returns first states: two for an LSTM."""
    rows = model.num_layers * (2 if model.bidirectional else 1)
    kind = model.weight_hh_l0.dtype
    count = 2 if isinstance(model, nn.LSTM) else 1
    return [drawn(rows, *batch, model.hidden_size, kind=kind) * (index + 1) / 2 for index in range(count)]


def trained(model: nn.RNNBase, run: Any, x: torch.Tensor, states: list[torch.Tensor]) -> list[torch.Tensor]:
    """Returns the results of a network, and the gradients of everything that it read."""
    x, *states = (given.clone().requires_grad_() for given in (x, *states))
    model.zero_grad()
    found = outputs_of(run(x, *([states[0] if len(states) == 1 else tuple(states)] if states else [])))
    sum((y * torch.linspace(-1, 2, y.numel(), dtype=y.dtype).reshape(y.shape)).sum() for y in found).backward()
    return [*(y.detach() for y in found), *(given.grad for given in (x, *states, *model.parameters()))]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Collects how many ops each program has, from a fresh start of Dynamo."""
    found: list[int] = []
    compile_ = trivium.compile

    def measured(module: Any, **options: Any) -> Any:
        found.append(sum(1 for _ in module.walk()))
        return compile_(module, **options)

    monkeypatch.setattr(trivium, "compile", measured)
    torch._dynamo.reset()
    yield found
    torch._dynamo.reset()


def compiled(model: Any, **options: Any) -> Any:
    return torch.compile(model, backend="trivium", fullgraph=True, **options)


def check(model: nn.RNNBase, x: torch.Tensor, states: list[torch.Tensor], tolerance: float = 1e-5) -> None:
    pairs = zip(trained(model, compiled(model), x, states), trained(model, model, x, states), strict=True)
    assert max(difference(ours, theirs) for ours, theirs in pairs) < tolerance


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_results_and_gradients(name: str, options: str, sizes: list[int]) -> None:
    model = network(name, 5, 6, **OPTIONS[options])
    check(model, drawn(*((3, 4) if model.batch_first else (4, 3)), 5), states_of(model, 3))
    assert len(sizes) == 2


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_double_precision(name: str, sizes: list[int]) -> None:
    model = network(name, 5, 6).double()
    check(model, drawn(4, 3, 5, kind=torch.float64), states_of(model, 3), 1e-13)


@pytest.mark.parametrize("name", NETWORKS)
def test_without_a_batch_from_zeros(name: str, sizes: list[int]) -> None:
    check(network(name, 5, 6, batch_first=True), drawn(4, 5), [])


@pytest.mark.parametrize("name", NETWORKS)
def test_inference(name: str, sizes: list[int]) -> None:
    model = network(name, 5, 6, bidirectional=True, num_layers=2, batch_first=True)
    x, states = drawn(3, 40, 5), states_of(model, 3)
    hx = tuple(states) if isinstance(model, nn.LSTM) else states[0]
    with torch.no_grad():
        for ours, theirs in zip(outputs_of(compiled(model)(x, hx)), outputs_of(model(x, hx)), strict=True):
            assert difference(ours, theirs) < 1e-5
    assert len(sizes) == 1
    assert sizes[0] < 500


@pytest.mark.parametrize("name", NETWORKS)
def test_long_layers_are_loops(name: str, sizes: list[int]) -> None:
    model = network(name, 4, 5, batch_first=True)
    check(model, drawn(2, 100, 4), [])
    assert len(sizes) == 2
    assert max(sizes) < 200


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_lengths_that_change(name: str, sizes: list[int]) -> None:
    model = network(name, 3, 4)
    fast = compiled(model)
    for length in (2, 5, 9):
        x = drawn(length, 2, 3)
        torch._dynamo.mark_dynamic(x, 0)
        for ours, theirs in zip(fast(x), model(x), strict=True):
            for one, other in zip(outputs_of(ours), outputs_of(theirs), strict=True):
                assert difference(one.detach(), other.detach()) < 1e-5


@pytest.mark.parametrize("narrow", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", NETWORKS)
def test_narrow_types(name: str, narrow: torch.dtype, sizes: list[int]) -> None:
    model = network(name, 8, 8).to(narrow)
    exact = copy.deepcopy(model).double()
    x, states = drawn(5, 2, 8, kind=narrow), states_of(model, 2)
    ours = trained(model, compiled(model), x, states)
    theirs = trained(exact, exact, x.double(), [state.double() for state in states])
    assert {y.dtype for y in ours} == {narrow}
    # PyTorch's own are further away.
    assert max(difference(a.double(), b) for a, b in zip(ours, theirs, strict=True)) < 8 * torch.finfo(narrow).eps


@pytest.mark.parametrize("name", ["gru", "tanh"])
def test_autocast(name: str, sizes: list[int]) -> None:
    model = network(name, 5, 6)

    def narrowed(x: torch.Tensor, *states: torch.Tensor) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x, *states)

    check_narrow = trained(model, compiled(narrowed), drawn(4, 3, 5), states_of(model, 3))
    expected = trained(model, narrowed, drawn(4, 3, 5), states_of(model, 3))
    for ours, theirs in zip(check_narrow, expected, strict=True):
        assert difference(ours, theirs) < 4 * torch.finfo(torch.bfloat16).eps


def test_dropout_between_layers(sizes: list[int]) -> None:
    model = network("gru", 4, 200, num_layers=2, dropout=0.5)
    fast = compiled(model)
    x = drawn(5, 2, 4)
    first, second = fast(x)[0].detach(), fast(x)[0].detach()
    assert not torch.equal(first, second)
    model.eval()
    assert difference(fast(x)[0].detach(), model(x)[0].detach()) < 1e-5


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_checkpoints(name: str, sizes: list[int]) -> None:
    """The layer is in a graph inside of the graph."""
    model = network(name, 4, 5)

    def kept(x: torch.Tensor) -> Any:
        return checkpoint(model, x, use_reentrant=False)

    x = drawn(60, 2, 4)
    pairs = zip(trained(model, compiled(kept), x, []), trained(model, model, x, []), strict=True)
    assert max(difference(ours, theirs) for ours, theirs in pairs) < 1e-5
    assert max(sizes) < 300


@pytest.mark.parametrize("name", ["gru", "tanh"])
def test_gradients_of_gradients(name: str, sizes: list[int]) -> None:
    model = network(name, 3, 4)
    x = drawn(3, 2, 3)

    def curved(x: torch.Tensor) -> torch.Tensor:
        def slope(x: torch.Tensor) -> torch.Tensor:
            return torch.func.grad(lambda x: model(x)[0].square().sum())(x).square().sum()

        return torch.func.grad(slope)(x)

    assert difference(compiled(curved)(x), curved(x)) < 1e-5
