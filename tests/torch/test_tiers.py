"""Graphs with symbolic sizes: the first sizes are compiled at once, further ones run in PyTorch until that has taken as
long as compiling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional

import trivium
import trivium.torch
from tests.importers.pytorch.models import difference
from trivium.torch import tiers

pytestmark = pytest.mark.torch


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The programs that are compiled, while compiling takes as long as two runs in PyTorch."""
    made: list[Any] = []
    compile_one = trivium.compile

    def compile_and_note(*args: Any, **options: Any) -> Any:
        made.append(compile_one(*args, **options))
        return made[-1]

    monkeypatch.setattr(trivium, "compile", compile_and_note)
    monkeypatch.setattr(tiers, "most_runs", lambda *costs: 2)
    torch._dynamo.reset()
    yield made
    torch._dynamo.reset()


def dynamic(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(function, backend="trivium", fullgraph=True, dynamic=True, options=options)


def grown(cache: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A step of a decoder whose cache grows."""
    cache = torch.cat([cache, x])
    return cache, (x @ cache.T).softmax(-1) @ cache


def test_sizes_that_do_not_come_again_are_not_compiled(programs: list[Any]) -> None:
    fast, x = dynamic(grown), torch.linspace(-1, 1, 8).reshape(1, 8)
    ours = theirs = torch.ones(2, 8)
    for _ in range(9):
        (ours, y), (theirs, expected) = fast(ours, x), grown(theirs, x)
        assert torch.equal(ours, theirs)
        assert difference(y, expected) < 1e-6
    assert len(programs) == tiers.COMPILED_AT_ONCE
    assert "A further one runs in PyTorch" in trivium.explain()


def test_sizes_that_come_again_are_compiled(programs: list[Any]) -> None:
    fast, counts = dynamic(lambda x: x.exp().sum()), []
    for size in (2, 3, 4, 4, 5, 4, 4, 5, 5, 2):
        x = torch.linspace(0, 1, size)
        assert difference(fast(x), x.exp().sum()) < 1e-6
        counts.append(len(programs))
    assert counts == [1, 2, 2, 2, 2, 3, 3, 3, 4, 4]


def test_the_option_compiles_all_at_once(programs: list[Any]) -> None:
    fast = dynamic(torch.exp, tiered=False)
    for size in (2, 3, 4, 5):
        fast(torch.ones(size))
    assert len(programs) == 4


def test_a_seed_gives_the_same_numbers_whichever_tier_draws_them(programs: list[Any]) -> None:
    runs = []
    for _ in range(2):
        torch._dynamo.reset()
        torch.manual_seed(3)
        fast = dynamic(lambda x: functional.dropout(x, 0.5))
        runs.append([fast(torch.ones(size)) for size in (50, 51, 52, 52, 52, 53)])
    assert all(map(torch.equal, *runs))
    assert len(programs) == 2 * 3


def turned(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Its backward graph reads products whose rows and columns were exchanged, through views."""
    y = (x @ w).transpose(0, 1).sin()
    return (y.transpose(0, 1).reshape(-1, 2).exp() * y.T.contiguous().view(-1, 2)).sum()


def test_a_backward_graph_in_pytorch_reads_what_compiled_ones_saved(programs: list[Any]) -> None:
    fast, runs = dynamic(turned), []
    for size in (2, 3, 5, 5, 5, 7):
        given = torch.linspace(-1, 1, size * 4).reshape(size, 4), torch.linspace(1, 2, 24).reshape(4, 6)
        gradients = []
        for run in (fast, turned):
            inputs = [x.clone().requires_grad_() for x in given]
            run(*inputs).backward()
            gradients.append([x.grad for x in inputs])
        assert max(map(difference, *gradients)) < 1e-4
        runs.append(len(programs))
    assert runs == [2, 4, 4, 4, 6, 6]


def test_values_that_are_addressed_need_the_layout_that_they_were_traced_with() -> None:
    traced = torch.fx.symbolic_trace(lambda x: torch.ops.aten.as_strided.default(x, [2], [3]))
    assert tiers.has_first_tier(traced, "inference")
    assert not tiers.has_first_tier(traced, "backward")
    plain = torch.fx.symbolic_trace(lambda x: torch.ops.aten.exp.default(x))
    assert tiers.has_first_tier(plain, "backward")


def test_small_graphs_run_more_often_before_they_are_compiled() -> None:
    assert tiers.most_runs(5, 1e5, 1e5) > 1000  # a small network: compiling takes 0.2 s, running 0.1 ms
    assert 5 < tiers.most_runs(236, 7e9, 4.6e8) < 30  # four layers of GPT-2 with 50 tokens: 1.9 s, and 0.12 s
    assert tiers.most_runs(10, 1e14, 0) < 1
