"""`torch.compile(model, backend="trivium", fullgraph=True)`: inference, gradients, training, sizes that change.
Graphs and native functions are counted, so that nothing runs eagerly unseen."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch._dynamo.exc import BackendCompilerFailed
from torch._higher_order_ops.while_loop import while_loop

import trivium
import trivium.torch.variant
from tests.importers.pytorch.models import MODELS, Cnn, build, difference, outputs_of
from tests.importers.pytorch.programs import foreign
from trivium.backends import native
from trivium.backends.cpu.threads import PARALLEL_FOR

pytestmark = pytest.mark.torch


class Counts:
    """How many graphs Dynamo captured, how many functions were compiled, and how often one ran."""

    def __init__(self) -> None:
        self.graphs = self.functions = self.runs = 0


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    """Counts what the backend does, from a fresh start of Dynamo."""
    found = Counts()

    def counting(owner: object, name: str, counter: str) -> None:
        original = getattr(owner, name)

        def counted(*args, **kwargs):
            setattr(found, counter, getattr(found, counter) + 1)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    counting(trivium.torch, "backend", "graphs")
    counting(trivium, "compile", "functions")
    counting(trivium.torch.variant.Variant, "__call__", "runs")
    torch._dynamo.reset()
    yield found
    torch._dynamo.reset()


def compiled(model: nn.Module, **options) -> nn.Module:
    return torch.compile(model, backend=trivium.torch.backend, fullgraph=True, **options)


def test_the_backend_is_registered() -> None:
    assert "trivium" in torch.compiler.list_backends()
    result = torch.compile(lambda x: x + 1, backend="trivium", fullgraph=True)(torch.ones(2))
    assert result.tolist() == [2, 2]


@pytest.mark.parametrize("name", MODELS)
def test_inference(name: str, counts: Counts) -> None:
    if name not in ("lstm", "cnn"):
        pytest.importorskip("transformers")
    model, inputs = build(name)
    with torch.no_grad():
        expected = outputs_of(model(*inputs))
        fast = compiled(model)
        found = outputs_of(fast(*inputs))
        fast(*inputs)
    assert (counts.graphs, counts.functions, counts.runs) == (1, 1, 2)
    assert len(found) == len(expected)
    assert max(map(difference, found, expected)) < 1e-4


@pytest.mark.parametrize("name", ["bert", "resnet", "lstm"])
def test_training_step(name: str, counts: Counts) -> None:
    if name != "lstm":
        pytest.importorskip("transformers")
    model, inputs = build(name)
    model.train()
    reference = copy.deepcopy(model)
    for run in (compiled(model), reference):
        outputs = outputs_of(run(*inputs))
        sum((x * torch.linspace(-1, 1, x.numel()).reshape(x.shape)).sum() for x in outputs).backward()
    assert (counts.graphs, counts.functions, counts.runs) == (1, 2, 2)
    scale = max(q.grad.abs().max().item() for q in reference.parameters())
    for p, q in zip(model.parameters(), reference.parameters(), strict=True):
        # Some gradients, of a bias in front of a normalization or a softmax, are zero but for rounding.
        assert difference(p.grad, q.grad) < 1e-4 or q.grad.abs().max() < 1e-5 * scale
    for p, q in zip(model.buffers(), reference.buffers(), strict=True):
        assert difference(p, q) < 1e-4


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_training_of_a_small_cnn(optimizer: type, counts: Counts) -> None:
    """Three epochs on real digits; the last batch is smaller, and compiled for its own size."""
    datasets = pytest.importorskip("sklearn.datasets")
    digits = datasets.load_digits()
    images = torch.tensor(digits.images[:140] / 16, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target[:140])
    torch.manual_seed(0)
    model = Cnn()
    reference = copy.deepcopy(model)
    losses = []
    for run in (compiled(model), reference):
        step = optimizer(run.parameters(), lr=0.05 if optimizer is torch.optim.SGD else 0.003)
        losses.append([])
        for _ in range(3):
            for batch, expected in zip(images.split(64), labels.split(64), strict=True):
                step.zero_grad()
                loss = nn.functional.cross_entropy(run(batch), expected)
                loss.backward()
                step.step()
                losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert losses[0][-1] < losses[0][0]
    assert counts.graphs == 2
    assert counts.runs == 2 * 9


def test_dropout_draws_afresh_at_each_call_and_follows_the_seed(counts: Counts) -> None:
    dropout = compiled(nn.Dropout(0.5).train())
    x = torch.ones(1000)
    torch.manual_seed(7)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(7)
    again = dropout(x)
    assert not torch.equal(first, second)
    assert torch.equal(first, again)
    assert 300 < (first == 0).sum() < 700


def test_dropout_has_one_mask_in_both_directions(counts: Counts) -> None:
    x = torch.ones(1000, requires_grad=True)
    y = compiled(nn.Dropout(0.5).train())(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_changing_sizes_are_compiled_once_each_and_reported(counts: Counts, caplog: pytest.LogCaptureFixture) -> None:
    linear = nn.Linear(3, 2)
    fast = compiled(linear, dynamic=True, options={"tiered": False})
    with torch.no_grad(), caplog.at_level(logging.INFO, logger="trivium.torch"):
        for size in (4, 5, 4, 5, 6):
            x = torch.randn(size, 3)
            assert difference(fast(x), linear(x)) < 1e-5
    assert counts.graphs == 1
    assert counts.functions == 3
    assert "has (5, 3), had (4, 3)" in caplog.text


class Branches(nn.Module):
    """A branch on data, a loop, and a constant of the graph."""

    def forward(self, x):
        x = torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
        _, x = while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))
        return x * torch.tensor([1.0, 2.0])


@pytest.mark.parametrize("x", [torch.ones(3, 2), -torch.ones(3, 2)], ids=["positive", "negative"])
def test_control_flow(x: torch.Tensor, counts: Counts) -> None:
    assert torch.equal(compiled(Branches())(x), Branches()(x))
    assert counts.graphs == 1


class Aliases(nn.Module):
    """Views of inputs, mutation of inputs, the same value twice, a number among the results."""

    def forward(self, x, y):
        y.add_(1)
        z = x * 2
        return x.t(), z, z[0], y.view(-1), x.shape[0], z


def test_views_aliases_and_mutation(counts: Counts) -> None:
    results = []
    for run in (Aliases(), compiled(Aliases())):
        x, y = torch.arange(6.0).reshape(2, 3), torch.zeros(2, 2)
        with torch.no_grad():
            found = run(x, y)
        assert y.tolist() == [[1, 1], [1, 1]]
        assert found[0].data_ptr() == x.data_ptr()
        assert found[4] == 2
        results.append([part for part in found if isinstance(part, torch.Tensor)])
    for theirs, ours in zip(*results, strict=True):
        assert torch.equal(ours, theirs)
        assert ours.stride() == theirs.stride()


@pytest.mark.parametrize(
    "x",
    [
        torch.tensor(3.0),
        torch.ones(0, 4),
        torch.arange(6.0).reshape(2, 3).t(),
        torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last),
        torch.arange(12.0)[::3],
        torch.ones(3, dtype=torch.bfloat16),
        torch.arange(3),
        torch.tensor([1 + 2j, 3j]),
        torch.ones(3, dtype=torch.bool),
        torch.ones(1, 3).expand(2, 3),
        torch.ones(2, 3, dtype=torch.complex64).conj(),
        torch._efficientzerotensor((3, 1)),
    ],
    ids=lambda x: f"{x.dtype}-{list(x.shape)}-{x.stride()}".replace("torch.", ""),
)
def test_inputs_of_every_kind(x: torch.Tensor, counts: Counts) -> None:
    def function(x):
        return x + x, x.sum()

    expected = function(x)
    for ours, theirs in zip(compiled(function)(x), expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.stride() == theirs.stride()
        torch.testing.assert_close(ours, theirs)
    assert counts.runs == 1


def test_layouts_of_results(counts: Counts) -> None:
    def function(x):
        y = x + 1
        meshes = torch.meshgrid(y[0], y[1], indexing="ij")
        return y.t().clone(), y.expand(2, 3, 3).contiguous(), *meshes, nn.functional.logsigmoid(y.t()).round()

    x = torch.arange(9.0).reshape(3, 3)
    for ours, theirs in zip(outputs_of(compiled(function)(x)), outputs_of(function(x)), strict=True):
        assert torch.equal(ours, theirs)
        assert ours.stride() == theirs.stride()


def test_layouts_of_results_that_have_gradients(counts: Counts) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    reference = copy.deepcopy(model)
    gradients = []
    for run in (compiled(model), reference):
        x = torch.linspace(-1, 1, 384).reshape(2, 3, 8, 8).to(memory_format=torch.channels_last).requires_grad_()
        y = run(x)
        # The sum of squares after a normalization hardly depends on x: its gradient would be rounding alone.
        (y * torch.linspace(0, 1, y.numel()).reshape(y.shape)).sum().backward()
        gradients.append((y.detach(), x.grad))
    for ours, theirs in zip(*gradients, strict=True):
        assert ours.stride() == theirs.stride()
        assert difference(ours, theirs) < 1e-5


def test_results_are_the_callers_own(counts: Counts) -> None:
    fast = compiled(lambda x: x * 2)
    first = fast(torch.ones(4))
    second = fast(torch.full((4,), 5.0))
    second.zero_()
    assert first.tolist() == [2, 2, 2, 2]


def test_updated_parameters_are_seen(counts: Counts) -> None:
    linear = nn.Linear(3, 2)
    fast = compiled(linear)
    x = torch.ones(1, 3)
    with torch.no_grad():
        fast(x)
        linear.weight.mul_(2)
        assert difference(fast(x), linear(x)) < 1e-6
    assert counts.functions == 1


def test_unsupported_ops_are_named_with_their_lines(counts: Counts) -> None:
    def function(x):
        return foreign(x)

    with pytest.raises(BackendCompilerFailed) as caught:
        compiled(function, options={"fallback": False})(torch.ones(3, 3))
    assert "trivium_tests.foreign.default" in str(caught.value)
    assert "test_compile.py" in str(caught.value)


def test_options_reach_the_compiler() -> None:
    torch._dynamo.reset()
    expected = r"options speed .* expected any of device, target, threads, fast_math, autotune, .*freeze"
    with pytest.raises(BackendCompilerFailed, match=expected):
        compiled(lambda x: x + 1, options={"speed": "all of it"})(torch.ones(2))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_modes_of_pytorch_s_own_compiler_are_accepted(mode: str) -> None:
    torch._dynamo.reset()
    assert torch.compile(lambda x: x + 1, backend="trivium", mode=mode)(torch.ones(2)).tolist() == [2, 2]


def test_an_unknown_mode_is_refused() -> None:
    torch._dynamo.reset()
    with pytest.raises(BackendCompilerFailed, match=r"mode='max-speed' .* expected one of default, reduce-overhead"):
        torch.compile(lambda x: x + 1, backend="trivium", mode="max-speed")(torch.ones(2))


def test_the_last_programs_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    torch._dynamo.reset()
    caplog.set_level(logging.INFO, "trivium.torch")
    options = {"programs": 2, "tiered": False}
    fast = torch.compile(lambda x: x.sum() * 2, backend="trivium", dynamic=True, options=options)
    for size in (3, 4, 3, 5, 3, 4, 6):
        assert fast(torch.ones(size)) == 2 * size
    messages = [record.getMessage() for record in caplog.records]
    # 4 goes when 5 comes, 5 when 4 comes again, and 3 when 6 comes.
    assert sum(message.startswith("compiling the inference graph") for message in messages) == 5
    assert sum("the option programs says how many" in message for message in messages) == 1


def test_the_number_of_programs_is_checked() -> None:
    torch._dynamo.reset()
    with pytest.raises(BackendCompilerFailed, match="the option programs has 0, expected a positive number"):
        compiled(lambda x: x + 1, options={"programs": 0})(torch.ones(2))


@pytest.mark.parametrize("threads", [1, 2])
def test_programs_have_the_threads_of_pytorch_s_ops(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    executables, original = [], trivium.compile

    def kept(*args, **kwargs):
        executables.append(original(*args, **kwargs))
        return executables[-1]

    monkeypatch.setattr(trivium, "compile", kept)
    torch._dynamo.reset()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x = torch.randn(1024, 1024)
        assert torch.equal(compiled(lambda x: x * 2)(x), x * 2)
    finally:
        torch.set_num_threads(before)
    (made,) = executables
    assert (PARALLEL_FOR in made.loaded.stage("llvm")) == (min(threads, native.num_threads()) > 1)
