"""Graphs with symbolic sizes, as programs for ranges of them: what is in the space behind the elements is NaN."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional

import trivium
import trivium.torch
from tests.importers.pytorch.models import difference
from tests.torch.test_tiers import SAVING, dynamic, gradients, require_growth
from trivium.backends.estimates import Costs
from trivium.backends.ranges import Ranges, shown
from trivium.torch import graph, ranges, tiers

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ranges.RangeVariant]]:
    """The programs for ranges, which are compiled at once."""
    found: list[ranges.RangeVariant] = []
    compiled_for_range = graph.CompiledGraph._compiled_for_range

    def noted(self: graph.CompiledGraph, *given: Any) -> Any:
        variant = compiled_for_range(self, *given)
        if variant is not None:
            found.append(variant)
        return variant

    def with_space(x: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> torch.Tensor:
        nothing = float("nan") if x.is_floating_point() else True if x.dtype is torch.bool else 77
        y = torch.full(shape, nothing, dtype=x.dtype)
        y.as_strided(x.shape, strides).copy_(x)
        return y

    monkeypatch.setattr(graph, "COMPILED_AT_ONCE", 0)
    monkeypatch.setattr(graph.CompiledGraph, "_compiled_for_range", noted)
    monkeypatch.setattr(ranges, "_with_space", with_space)
    monkeypatch.setattr(tiers, "most_runs", lambda costs: 0)
    torch._dynamo.reset()
    yield found
    torch._dynamo.reset()


def test_a_cache_that_grows(made: list[Any]) -> None:
    require_growth(torch.ones(16, 8), 32)
    assert [shown(variant.combinations) for variant in made] == [
        "sizes from 17 to 32",
        "sizes from 33 to 64",
    ]
    assert "sizes from 33 to 64" in trivium.explain()


@pytest.mark.parametrize("name", SAVING)
def test_gradients(name: str, made: list[Any]) -> None:
    torch.manual_seed(0)
    fast = dynamic(SAVING[name])
    for size in (9, 10, 12, 11):
        given = torch.randn(size, 4), torch.randn(4, 6)
        exact = gradients(SAVING[name], *(x.double() for x in given))
        ours, eager = (list(map(difference, gradients(run, *given), exact)) for run in (fast, SAVING[name]))
        assert all(own < max(1e-4, 2 * other) for own, other in zip(ours, eager, strict=True))
    assert {variant.kind for variant in made} == {"forward", "backward"}


def test_dropout_in_training(made: list[Any]) -> None:
    torch.manual_seed(0)
    fast = dynamic(lambda x: functional.dropout(x.sin(), 0.25))
    masks = []
    for size in (100, 110, 120, 128, 105):
        x = torch.full((size, 8), 0.5).requires_grad_()
        y = fast(x)
        y.sum().backward()
        kept = y != 0
        masks.append(kept[:100])
        assert torch.allclose(y[kept], x.sin()[kept] / 0.75)
        assert x.grad is not None
        assert torch.allclose(x.grad, torch.where(kept, x.cos() / 0.75, 0))
        assert 0.7 < kept.float().mean() < 0.8
    assert not any(torch.equal(*pair) for pair in itertools.combinations(masks, 2))
    assert {variant.kind for variant in made} == {"forward", "backward"}


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_grouped_attention(causal: bool, made: list[Any]) -> None:
    def attended(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        k = k.repeat_interleave(2, 1)
        return functional.scaled_dot_product_attention(q, k, k.sin(), is_causal=causal)

    fast = dynamic(attended)
    for batch, length in ((9, 10), (10, 12), (12, 9), (11, 15)):
        found = []
        for run in (fast, attended):
            torch.manual_seed(length)
            q, k = (torch.randn(batch, heads, length, 8).requires_grad_() for heads in (4, 2))
            run(q, k).square().sum().backward()
            found.append((q.grad, k.grad))
        assert all(difference(one, other) < 1e-4 for one, other in zip(*found, strict=True))
    assert {variant.kind for variant in made} == {"forward", "backward"}


class Decoder(torch.nn.Module):
    """Embeddings, causal attention with rotary positions, and logits, for batches of any size and length."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded = torch.nn.Embedding(30, 16)
        self.qkv, self.out = torch.nn.Linear(16, 48), torch.nn.Linear(16, 16)
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedded(tokens)
        angles = torch.arange(tokens.shape[1])[:, None] * torch.linspace(0.1, 1, 4)
        q, k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        q, k = (torch.cat([y[..., :4] * angles.cos(), y[..., 4:] * angles.sin()], -1) for y in (q, k))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return functional.gelu(x) @ self.embedded.weight.T


def test_batches_of_any_size_and_length(made: list[Any]) -> None:
    torch.manual_seed(1)
    model = Decoder().eval()
    fast = torch.compile(model, backend="trivium", dynamic=True)
    with torch.no_grad():
        for batch, length in ((11, 11), (11, 9), (12, 12), (9, 10), (17, 9), (12, 11), (3, 5), (19, 12)):
            tokens = torch.randint(0, 30, (batch, length))
            assert difference(fast(tokens), model(tokens)) < 1e-5
    assert len(made) < 8


def test_pictures_of_any_size(made: list[Any]) -> None:
    torch.manual_seed(2)
    model = torch.nn.Sequential(
        *(torch.nn.Conv2d(3, 8, 3, 2, 1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1)),
        *(torch.nn.Conv2d(8, 8, 3, groups=8), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 5)),
    ).eval()
    fast = torch.compile(model, backend="trivium", dynamic=True)
    with torch.no_grad():
        for batch, height in ((9, 33), (10, 35), (12, 40), (11, 36)):
            x = torch.randn(batch, 3, height, 39)
            assert difference(fast(x), model(x)) < 1e-5
    assert made


def test_training_of_a_convolutional_network(made: list[Any]) -> None:
    nn = torch.nn
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    layers += [nn.Conv2d(8, 8, 3, 2, 1, groups=8), nn.GroupNorm(4, 8), nn.GELU(), nn.AvgPool2d(2)]
    ours = nn.Sequential(*layers, nn.ConvTranspose2d(8, 4, 2, 2), nn.Flatten(), nn.Linear(64, 5)).train()
    theirs = copy.deepcopy(ours)
    fast = torch.compile(ours, backend="trivium", dynamic=True)
    for batch in (9, 10, 12, 11, 15):
        x, y = torch.randn(batch, 3, 16, 16), torch.randint(0, 5, (batch,))
        for run in (fast, theirs):
            functional.cross_entropy(run(x), y).backward()
        for pair in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert difference(*(x.grad for x in pair)) < 1e-4
        for pair in zip(ours.buffers(), theirs.buffers(), strict=True):
            assert difference(*(x.double() for x in pair)) < 1e-4
    assert {variant.kind for variant in made} == {"forward", "backward"}


LAYOUTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "transposed": lambda x: (x + 1).transpose(1, 2),
    "channels last": lambda x: (x[:, None] * 2).contiguous(memory_format=torch.channels_last),
    "views of one result": lambda x: ((y := x.exp()).flatten(), y[:, 1:], y.transpose(0, 1)),
    "a view of an input": lambda x: (x[1:], x.sin()),
    "sizes": lambda x: (x.cos(), x.shape[0] * 3, x.shape[1] + 1),
    "bools and integers": lambda x: (x > 0, x.argmax(1), (x > 0).sum()),
    "a size as a number": lambda x: x * x.shape[0] / (x.shape[1] - 1),
    "flattened": lambda x: (x.reshape(-1, 4).softmax(0), x.reshape(x.shape[0], -1).cumsum(1)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_results_have_the_layouts_of_pytorch(name: str, made: list[Any]) -> None:
    fast = dynamic(LAYOUTS[name])
    for size in ((9, 5, 4), (10, 5, 4), (12, 6, 4), (9, 11, 4)):
        x = torch.linspace(-1, 1, size[0] * size[1] * size[2]).reshape(size)
        ours, theirs = (run(x) for run in (fast, LAYOUTS[name]))
        pairs = zip(*(given if isinstance(given, tuple) else (given,) for given in (ours, theirs)), strict=True)
        for one, other in pairs:
            if not isinstance(one, torch.Tensor):
                assert one == other
                continue
            assert difference(one.double(), other.double()) < 1e-5
            assert one.stride() == other.stride()
    assert made


def test_numbers_among_the_inputs_may_be_negative(made: list[Any]) -> None:
    fast = dynamic(lambda x, n: (x.select(0, n), torch.roll(x, n, 0)[0]))
    for n in (-9, -10, 9, -1):
        x = torch.linspace(0, 1, 30).reshape(15, 2)
        for one, other in zip(fast(x, n), (x[n], torch.roll(x, n, 0)[0]), strict=True):
            assert torch.equal(one, other)


def test_guards_limit_a_range(made: list[Any]) -> None:
    """A graph that was traced for even sizes knows nothing of odd ones."""

    def halves(x: torch.Tensor) -> torch.Tensor:
        return x[: x.shape[0] // 2] - x[x.shape[0] // 2 :] if x.shape[0] % 2 == 0 else x * 3

    fast = dynamic(halves)
    for size in (34, 36, 35, 40, 39, 33):
        x = torch.linspace(-1, 1, size)
        assert torch.equal(fast(x), halves(x))
    assert len(made) == 2


def test_sizes_that_come_often_get_a_program_of_their_own(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    find = Ranges.find

    def noted(self: Ranges[Any], sizes: tuple[int, ...]) -> Any:
        found = find(self, sizes)
        runs.extend(sizes if found is not None else ())
        return found

    monkeypatch.setattr(Ranges, "find", noted)
    # An estimate with which three runs lose as much as compiling takes.
    monkeypatch.setattr(Costs, "compiling", property(lambda costs: 2.5 * costs.running * 7 / 32))
    fast = dynamic(lambda x: x.exp().sum())
    for size in (17, 25, 25, 25, 25, 25, 32):
        x = torch.linspace(0, 1, size)
        assert difference(fast(x), x.exp().sum()) < 1e-5
    assert len(made) == 1
    assert runs == [25, 25, 32]


def test_graphs_that_need_one_size_say_why(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    monkeypatch.undo()
    monkeypatch.setattr(graph, "COMPILED_AT_ONCE", 0)
    monkeypatch.setattr(tiers, "most_runs", lambda costs: 0)
    monkeypatch.setattr(graph.logger, "info", lambda text, *given: logged.append(text % given))
    fast = dynamic(torch.linalg.inv)
    for size in (9, 10, 11):
        x = torch.eye(size) * 2
        assert torch.equal(fast(x), x / 4)
    (told,) = (line for line in logged if "has no programs for ranges of sizes:" in line)
    assert "stablehlo.custom_call: it cannot compute with several sizes at once" in told


def test_sorts_and_largest_elements(made: list[Any]) -> None:
    def ordered(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.round(decimals=1)  # which has equal elements
        alike = *y.sort(dim=0, descending=True, stable=True), y.argsort(dim=1, stable=True)
        return *alike, *x.topk(3, 0), x.median(0).values, x.kthvalue(2, 1).values

    fast = dynamic(ordered)
    for size in ((9, 5), (10, 6), (12, 9), (11, 7)):
        x = torch.randn(size)
        x[3, ::2] = float("nan")
        for one, other in zip(fast(x), ordered(x), strict=True):
            torch.testing.assert_close(one, other, equal_nan=True)
    assert made
