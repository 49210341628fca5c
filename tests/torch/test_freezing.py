"""`torch.compile(model, backend="trivium", options={"freeze": True})`: parameters are constants of inference programs,
and a change of one is noticed."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import nn

import trivium
import trivium.torch.graph
from tests.importers.pytorch.models import difference

pytestmark = pytest.mark.torch


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> list[trivium.Module]:
    """The modules that are compiled, from a fresh start of Dynamo."""
    found: list[trivium.Module] = []
    original = trivium.compile

    def compiling(module: trivium.Module, **options) -> object:
        found.append(module)
        return original(module, **options)

    monkeypatch.setattr(trivium, "compile", compiling)
    torch._dynamo.reset()
    return found


def frozen(model: Callable, **options) -> Callable:
    return torch.compile(
        model, backend=trivium.torch.backend, fullgraph=True, options={"freeze": True, "threads": 1}, **options
    )


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3)).eval()


def arguments(module: trivium.Module) -> int:
    return len(module.main.arguments)


@torch.no_grad()
def test_parameters_are_constants(modules) -> None:
    model, x = network(), torch.randn(4, 8)
    fast = frozen(model)
    assert difference(fast(x), model(x)) < 1e-5
    assert difference(fast(2 * x), model(2 * x)) < 1e-5
    assert [arguments(module) for module in modules] == [1]


def take_fused_step(parameter: nn.Parameter) -> None:
    parameter.grad = torch.ones_like(parameter)
    torch.optim.SGD([parameter], lr=0.1, fused=True).step()


def changes(model: nn.Module) -> dict[str, Callable[[], object]]:
    last = model[3]
    return {
        "in place": lambda: last.weight.add_(1),
        "buffer": lambda: model[1].running_mean.add_(1),
        "another tensor": lambda: setattr(last, "weight", nn.Parameter(torch.randn(3, 16))),
        "other memory": lambda: setattr(last.weight, "data", torch.randn(3, 16)),
        "fused optimizer": lambda: take_fused_step(last.weight),
        "loaded": lambda: model.load_state_dict(network().state_dict()),
    }


@pytest.mark.parametrize("name", changes(network()))
def test_a_change_is_noticed(name: str, modules, caplog: pytest.LogCaptureFixture) -> None:
    model, x = network(), torch.randn(4, 8)
    with torch.no_grad():
        fast = frozen(model)
        before = fast(x)
        changes(model)[name]()
        with caplog.at_level(logging.INFO, "trivium.torch"):
            after = fast(x)
        assert difference(after, model(x)) < 1e-5
        assert difference(after, before) > 1e-3
    assert len(modules) == 2
    assert [arguments(module) for module in modules] == [1, 1]


@torch.no_grad()
@pytest.mark.parametrize("name", ["in place", "another tensor"])
def test_a_change_is_noticed_where_modules_are_not_checked(name: str, modules) -> None:
    model, x = network(), torch.randn(4, 8)
    skip = torch.compiler.skip_guard_on_all_nn_modules_unsafe
    options = {"freeze": True, "threads": 1, "guard_filter_fn": skip}
    fast = torch.compile(model, backend=trivium.torch.backend, fullgraph=True, options=options)
    before = fast(x)
    changes(model)[name]()
    after = fast(x)
    assert difference(after, model(x)) < 1e-5
    assert difference(after, before) > 1e-3
    assert [arguments(module) for module in modules] == [1, 1]


@torch.no_grad()
def test_what_changes_often_becomes_an_argument_again(modules, caplog: pytest.LogCaptureFixture) -> None:
    model, x = network(), torch.randn(4, 8)
    fast = frozen(model)
    with caplog.at_level(logging.INFO, "trivium.torch"):
        for _ in range(trivium.torch.graph.MOST_FREEZES + 3):
            assert difference(fast(x), model(x)) < 1e-5
            model[0].weight.mul_(0.9)
    assert len(modules) == trivium.torch.graph.MOST_FREEZES + 1
    assert arguments(modules[-1]) > 1
    assert [record.levelname for record in caplog.records if "arguments from now on" in record.message] == ["WARNING"]


@torch.no_grad()
def test_each_size_has_its_program(modules) -> None:
    model = network()
    fast = frozen(model, dynamic=True)
    for size in (2, 5, 2, 5):
        x = torch.randn(size, 8)
        assert difference(fast(x), model(x)) < 1e-5
    assert len(modules) == 2
    model[0].bias.add_(1)
    for size in (2, 5):
        x = torch.randn(size, 8)
        assert difference(fast(x), model(x)) < 1e-5
    assert len(modules) == 4


@torch.inference_mode()
def test_parameters_whose_changes_pytorch_does_not_count_are_arguments(modules) -> None:
    model, x = nn.Linear(8, 3), torch.randn(4, 8)
    fast = frozen(model)
    for _ in range(2):
        assert difference(fast(x), model(x)) < 1e-5
        model.weight.mul_(2)
    assert [arguments(module) for module in modules] == [3]


class Counter(nn.Module):
    """A model that changes one of its buffers in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.arange(3.0))
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return x * self.scale + self.calls


@torch.no_grad()
def test_buffers_that_the_model_changes_are_arguments(modules) -> None:
    model, x = Counter(), torch.ones(3)
    fast = frozen(model)
    assert [fast(x).tolist() for _ in range(3)] == [[1, 2, 3], [2, 3, 4], [3, 4, 5]]
    assert [arguments(module) for module in modules] == [2]


def test_training_takes_parameters_as_arguments(modules) -> None:
    model = nn.Linear(4, 2)
    fast, optimizer = frozen(model), torch.optim.SGD(model.parameters(), lr=0.01)
    x, losses = torch.randn(6, 4), []
    for _ in range(4):
        loss = fast(x).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert len(modules) == 2
    assert all(arguments(module) > 1 for module in modules)


def test_without_the_option_nothing_is_frozen(modules) -> None:
    model, x = network(), torch.randn(4, 8)
    with torch.no_grad():
        torch.compile(model, backend=trivium.torch.backend, fullgraph=True)(x)
    assert arguments(modules[0]) > 1
