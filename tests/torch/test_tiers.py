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
from trivium.backends.estimates import Costs
from trivium.torch import graph, tiers

pytestmark = pytest.mark.torch


def refuse(*_: object) -> None:
    raise trivium.Error("no program computes with several sizes")


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The programs that are compiled, while compiling takes as long as two runs in PyTorch, and no program computes
    with several sizes."""
    made: list[Any] = []
    compile_one = trivium.compile

    def compile_and_note(*args: Any, **options: Any) -> Any:
        made.append(compile_one(*args, **options))
        return made[-1]

    monkeypatch.setattr(trivium, "compile", compile_and_note)
    monkeypatch.setattr(tiers, "most_runs", lambda costs: 2)
    monkeypatch.setattr(graph, "compile_for", refuse)
    torch._dynamo.reset()
    yield made
    torch._dynamo.reset()


def dynamic(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(function, backend="trivium", fullgraph=True, dynamic=True, options=options)


def grown(cache: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A step of a decoder whose cache grows."""
    cache = torch.cat([cache, x])
    return cache, (x @ cache.T).softmax(-1) @ cache


def require_growth(cache: torch.Tensor, steps: int) -> None:
    """Checks the steps of a compiled decoder whose cache grows."""
    fast, x = dynamic(grown), torch.linspace(-1, 1, 8).reshape(1, 8)
    ours = theirs = cache
    for _ in range(steps):
        (ours, y), (theirs, expected) = fast(ours, x), grown(theirs, x)
        assert torch.equal(ours, theirs)
        assert ours.is_contiguous()
        assert difference(y, expected) < 1e-6


def test_sizes_that_do_not_come_again_are_not_compiled(programs: list[Any]) -> None:
    require_growth(torch.ones(2, 8), 9)
    assert len(programs) == graph.COMPILED_AT_ONCE
    assert "Further ones run in PyTorch" in trivium.explain()


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


def attended(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    q, k, v = (x @ w).view(1, -1, 2, 3).transpose(1, 2).unsqueeze(0).expand(3, 1, 2, -1, 3)
    return functional.scaled_dot_product_attention(q, k.sin(), v.cos(), is_causal=True)


SAVING = {
    "views": turned,
    "layer_norm": lambda x, w: functional.layer_norm(x @ w, (6,), w[0], w[1]),
    "group_norm": lambda x, w: functional.group_norm((x @ w).T[None], 2, w[:, 0].repeat(2)[:6]),
    "batch_norm": lambda x, w: functional.batch_norm(x @ w, None, None, w[0], w[1], training=True),
    "dropout": lambda x, w: functional.dropout(x @ w, 0.5) * 0 + x @ w,
    "var_mean": lambda x, w: sum(torch.var_mean(x @ w, 0)),
    "nll_loss": lambda x, w: functional.cross_entropy(x @ w, torch.zeros(x.shape[0], dtype=torch.int64)),
    "attention": attended,
    "max_pool": lambda x, w: functional.max_pool2d((x @ w)[None], (1, 2)),
    "max and min": lambda x, w: (x @ w).max(1)[0] * (x @ w).min(1)[0] + sum(torch.aminmax(x @ w, dim=1)),
    "sort and topk": lambda x, w: (x @ w).sort(1)[0][:, :2] * (x @ w).topk(2)[0],
}


@pytest.mark.parametrize("kind", ["forward", "backward"])
@pytest.mark.parametrize("name", SAVING)
def test_one_graph_reads_what_the_other_tier_saved(
    name: str, kind: str, programs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    further = graph.CompiledGraph._further

    def only_one(self: graph.CompiledGraph, sizes: tuple, inputs: list[Any]) -> Any:
        return further(self, sizes, inputs) if self.kind == kind else None

    monkeypatch.setattr(graph.CompiledGraph, "_further", only_one)
    torch.manual_seed(0)
    fast = dynamic(SAVING[name])
    for size in (2, 3, 5):
        given = torch.randn(size, 4), torch.randn(4, 6)
        exact = gradients(SAVING[name], *(x.double() for x in given))
        ours, eager = (list(map(difference, gradients(run, *given), exact)) for run in (fast, SAVING[name]))
        assert all(own < max(1e-4, 2 * other) for own, other in zip(ours, eager, strict=True))
    assert len(programs) == 5


def gradients(run: Callable[..., torch.Tensor], *given: torch.Tensor) -> list[torch.Tensor]:
    """The gradients of a weighted sum of a function's results, in double precision. Some are ill-conditioned, such as
    those of a batch of two that is normalized."""
    inputs = [x.clone().requires_grad_() for x in given]
    result = run(*inputs)
    (result * torch.linspace(1, 2, result.numel()).reshape(result.shape)).sum().backward()
    return [x.grad.double() for x in inputs if x.grad is not None]


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_a_layer_whose_op_is_ours_alone_is_compiled_for_all_sizes(kind: Any, programs: list[Any]) -> None:
    layer = kind(3, 4)
    fast = torch.compile(layer, backend="trivium", dynamic=True)
    for size in (2, 3, 4):
        x = torch.linspace(-1, 1, size * 6).reshape(size, 2, 3)
        fast(x)[0].sum().backward()
        assert difference(fast(x)[0].detach(), layer(x)[0].detach()) < 1e-5
    assert len(programs) == 6


def changing(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Its gradient needs an input as it was before the function changed it."""
    y = (x.clone() * w).sin()
    x.add_(1)
    return y.sum() + (x * w).sum()


def counting(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """It changes an input that its gradient does not need."""
    x[0] += 1
    return (w.sin() * w).sum()


@pytest.mark.parametrize(("function", "count"), [(changing, 8), (counting, 4)])
def test_inputs_that_change(function: Callable[..., Any], count: int, programs: list[Any]) -> None:
    fast = dynamic(function)
    for size in (3, 4, 5, 6):
        ran = []
        for run in (fast, function):
            x, w = torch.linspace(-1, 1, size), torch.linspace(1, 2, size).requires_grad_()
            run(x, w).backward()
            ran.append((x, w.grad))
        assert max(map(difference, *ran)) < 1e-6
    assert len(programs) == count


@pytest.mark.parametrize("kind", ["inference", "forward", "backward"])
def test_graphs_that_run_in_pytorch(kind: str) -> None:
    aten = torch.ops.aten
    traced = [
        torch.fx.symbolic_trace(function)
        for function in (
            lambda x: aten.exp.default(x),
            lambda x: aten.as_strided.default(x, [2], [3]),
            lambda x: aten.log_sigmoid_forward.default(x)[0],  # its second result is memory for the CPU's gradient
            lambda x: aten._ctc_loss.Tensor(x, x, x, x)[0],
        )
    ]
    expected = {
        "inference": [True, True, True, False],
        "forward": [True, True, False, False],
        "backward": [True, False, True, False],
    }
    assert [tiers.has_first_tier(each, kind) for each in traced] == expected[kind]


def test_graphs_without_ops() -> None:
    fast = dynamic(lambda x: (x, x.shape[0]))
    for size in (20, 31, 17, 40, 25):
        x = torch.ones(size)
        same, length = fast(x)
        assert (same.tolist(), length) == (x.tolist(), size)


def test_small_graphs_run_more_often_before_they_are_compiled() -> None:
    small = Costs(ops=5, code=5_800, flops=1e5, accessed=1e5)
    assert 0.1 < small.compiling < 0.15
    assert tiers.most_runs(small) > 1000
    decoder = Costs(ops=204, code=39_500, flops=7e9, accessed=4.6e8)  # four layers of GPT-2 with 50 tokens
    assert 0.5 < decoder.compiling < 0.7
    assert 2 < tiers.most_runs(decoder) < 10
    assert tiers.most_runs(Costs(10, 10_000, 1e14, 0)) < 1
