"""Outputs that share memory, with one another or with inputs: what is written into one later is seen in the others, as
in eager mode."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

torch = pytest.importorskip("torch")


pytestmark = pytest.mark.torch


def rows(y: Any) -> Any:
    return y, y[1:], y[0]


def mutated(x: Any) -> Any:
    y = x * 2
    first = y[0]
    first.add_(5)
    return y, first


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "base and views": lambda x: rows(x * 2),
    "views without their base": lambda x: (lambda y: (y[0], y[:, 1], y.sum()))(x * 2),
    "strides": lambda x: (lambda y: (y.t(), y.view(-1), y[:, ::2], y.diagonal(), y.as_strided((2, 2), (4, 1), 1)))(
        x * 2
    ),
    "same twice": lambda x: (lambda y: (y, y))(x + 1),
    "detached": lambda x: (lambda y: (y, y.detach()))(x + 1),
    "expanded": lambda x: (lambda y: (y, y.expand(3, *y.shape)))(x.sum(0)),
    "split": lambda x: (x * 2).split(1),
    "two memories": lambda x: (*rows(x * 2), *rows(x * 3)),
    "no alias": lambda x: (x + 1, x + 1),
    "copies": lambda x: (lambda y: (y, y.clone(), y.t().contiguous()))(x * 2),
    "mutated before": mutated,
    "view of the input": lambda x: (x.view(-1), x * 2, x.t()),
    "parts of the input": lambda x: (*x.unbind(0), x + 1),
    "the input itself": lambda x: (x, x[0], x + 1),
    "channels last": lambda x: rows((x * 2).reshape(2, 2, 2, 2).to(memory_format=torch.channels_last)),
    "complex parts": lambda x: (lambda y: (y, y.real, y.imag[1:], torch.view_as_real(y)))(torch.complex(x, x * 2)),
    "part of a conjugate": lambda x: (lambda y: (y, y.conj().imag, y.conj().imag.t() + 1))(torch.complex(x, x * 2)),
    "bits": lambda x: (lambda y: (y, y.view(torch.int32)[1]))(x * 2),
}
MODES = {"no_grad": torch.no_grad, "inference": torch.inference_mode, "grad": torch.enable_grad}


def run(function: Callable, x: Any, mode: Callable[[], AbstractContextManager], shift: int) -> list[Any]:
    """All outputs and the input, after a number of its own was written into the first element of each in turn."""
    with mode():
        outputs = function(x)
        tensors = [output for output in outputs if isinstance(output, torch.Tensor)]
        for index, tensor in enumerate(tensors):
            if tensor.dim() and not any(stride == 0 for stride in tensor.stride()):
                tensor[(0,) * tensor.dim()] = 100 + index + shift
        x[0, 0] = -7
    return [*tensors, x]


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_writes_are_seen_through_views(name: str, mode: Callable[[], AbstractContextManager]) -> None:
    torch._dynamo.reset()
    fast = torch.compile(FUNCTIONS[name], backend="trivium", fullgraph=True)
    for shift in (0, 50):
        ours, theirs = (run(f, torch.arange(16.0).reshape(4, 4), mode, shift) for f in (fast, FUNCTIONS[name]))
        for mine, expected in zip(ours, theirs, strict=True):
            assert torch.equal(mine, expected)
            assert mine.stride() == expected.stride()


def test_views_of_a_part_of_the_callers_memory() -> None:
    torch._dynamo.reset()
    function = FUNCTIONS["parts of the input"]
    results = []
    for call in (torch.compile(function, backend="trivium", fullgraph=True), function):
        memory = torch.arange(40.0)
        results.append([*run(call, memory[7:23].reshape(4, 4), torch.no_grad, 0), memory])
    for mine, expected in zip(*results, strict=True):
        assert torch.equal(mine, expected)


def test_views_follow_sizes_that_change() -> None:
    torch._dynamo.reset()
    function = FUNCTIONS["base and views"]
    fast = torch.compile(function, backend="trivium", fullgraph=True, dynamic=True)
    for size in (3, 5, 4):
        ours, theirs = (run(f, torch.arange(4.0 * size).reshape(size, 4), torch.no_grad, 0) for f in (fast, function))
        assert all(map(torch.equal, ours, theirs))


@pytest.mark.parametrize(
    "name", ["base and views", "strides", "detached", "expanded", "mutated before", "two memories"]
)
def test_gradients_through_outputs_that_share_memory(name: str) -> None:
    torch._dynamo.reset()
    gradients = []
    for call in (torch.compile(FUNCTIONS[name], backend="trivium", fullgraph=True), FUNCTIONS[name]):
        x = torch.arange(16.0).reshape(4, 4).requires_grad_()
        outputs = [output for output in call(x) if output.requires_grad]
        sum((output * output).sum() for output in outputs).backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


def test_a_result_that_is_no_view_can_be_changed_where_gradients_are_wanted() -> None:
    torch._dynamo.reset()
    fast = torch.compile(FUNCTIONS["base and views"], backend="trivium", fullgraph=True)
    x = torch.ones(4, 4, requires_grad=True)
    whole, rest, _ = fast(x)
    whole.mul_(3)
    assert rest.detach().eq(6).all()
    whole.sum().backward()
    assert x.grad.eq(6).all()


def test_views_of_a_detached_result_have_no_gradients() -> None:
    torch._dynamo.reset()
    fast = torch.compile(lambda x: rows((x * 2).detach()) + rows(x * 3) + rows((x * 2).detach()), backend="trivium")
    outputs = fast(torch.ones(4, 4, requires_grad=True))
    assert [output.requires_grad for output in outputs] == 3 * [False] + 3 * [True] + 3 * [False]

    fast = torch.compile(lambda x: (lambda y: (y, *rows(y.detach())))(x * 2), backend="trivium")
    x = torch.ones(4, 4, requires_grad=True)
    whole, *parts = fast(x)
    assert [part.requires_grad for part in parts] == [False, False, False]
    parts[1][0] = 5
    assert whole[1].eq(5).all()
    whole.sum().backward()
    assert x.grad.eq(2).all()


class Counting(torch.nn.Module):
    """Its backward graph needs the parameter, a view of it, and the buffer as it was before."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(1.0, 7.0).reshape(2, 3))
        self.register_buffer("count", torch.ones(3))

    def forward(self, x: Any) -> Any:
        y = (x * self.weight.exp()).sum() + (self.weight.view(-1) ** 2).sum() + (x * x * (self.count + 1)).sum()
        self.count.add_(1)
        return y


def test_a_backward_graph_has_parameters_as_they_are() -> None:
    model, x = Counting(), torch.randn(2, 3, requires_grad=True)
    saved: list[int] = []

    def pack(tensor: Any) -> Any:
        saved.append(tensor.data_ptr())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = torch.compile(model, backend="trivium")(x)
    assert model.weight.data_ptr() in saved
    assert model.count.data_ptr() not in saved
    loss.backward()
    expected, y = Counting(), x.detach().clone().requires_grad_()
    expected(y).backward()
    torch.testing.assert_close(model.weight.grad, expected.weight.grad)
    torch.testing.assert_close(x.grad, y.grad)
    torch.testing.assert_close(model.count, expected.count)


def test_a_parameter_that_changes_before_the_backward_graph_runs_is_an_error_as_in_pytorch() -> None:
    model, x = Counting(), torch.randn(2, 3)
    loss = torch.compile(model, backend="trivium")(x)
    with torch.no_grad():
        model.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
