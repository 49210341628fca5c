"""Inputs that a graph changes are written by the program itself, and hold afterwards what PyTorch writes to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from trivium.torch.variant import Variant

pytestmark = pytest.mark.torch


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many results each run writes into the memory of arguments."""
    torch._dynamo.reset()
    counts: list[int] = []
    call = Variant.__call__

    def run(variant: Variant, inputs: list[Any]) -> Sequence[Any]:
        counts.append(len(variant.replaced))
        return call(variant, inputs)

    monkeypatch.setattr(Variant, "__call__", run)
    return counts


def cache(x: Any, place: Any, row: Any) -> Any:
    x.index_copy_(1, place, row)
    return (x * x).sum(1)


def twice(x: Any, place: Any, row: Any) -> Any:
    x.add_(row)
    x[:, 1].mul_(2)
    return x + 1


def both(x: Any, place: Any, row: Any) -> Any:
    x.mul_(2)
    row.add_(x[:, :1])
    return x.sum() + row.sum()


def exchanged(x: Any, place: Any, row: Any) -> Any:
    y = x.clone()
    x.copy_(row.expand_as(x))
    row.copy_(y[:, :1])


def through_a_view(x: Any, place: Any, row: Any) -> Any:
    x[:, 2:4].zero_()
    return x.sum()


def same_as_a_result(x: Any, place: Any, row: Any) -> Any:
    y = x.sigmoid()
    x.copy_(y)
    return y


def returned(x: Any, place: Any, row: Any) -> Any:
    x.add_(1)
    return x, x[0], x.t() if x.dim() == 2 else x.transpose(0, 1)


def turned(x: Any, place: Any, row: Any) -> Any:
    x.copy_(x.transpose(1, 2).reshape(x.shape) + row)


def of_old_elements(x: Any, place: Any, row: Any) -> Any:
    old = x.cumsum(1)
    x.index_copy_(1, place, row)
    return old + x, old


FUNCTIONS: dict[Callable[..., Any], int] = {
    cache: 1,
    twice: 1,
    both: 2,
    exchanged: 1,
    through_a_view: 0,  # the result is written part by part, and the parts after the first one still need the input
    same_as_a_result: 1,
    returned: 1,
    turned: 0,  # elements are needed after others are written
    of_old_elements: 1,
}
"""Each with the number of results that are expected in the memory of inputs."""


def inputs() -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(3, 6, 8, generator=generator), torch.tensor([4]), torch.randn(3, 1, 8, generator=generator)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "row-major": lambda x: x,
    "part": lambda x: torch.cat([x, x])[3:],
    "turned": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "with gaps": lambda x: torch.stack([x, x], -1)[..., 0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_same_is_written(function: Callable, mode: Callable, layout: str, replaced: list[int]) -> None:
    fast = torch.compile(function, backend="trivium", fullgraph=True)
    with mode():
        ours, theirs = ((LAYOUTS[layout](x), *others) for x, *others in (inputs(), inputs()))
        results = []
        for _ in range(3):
            results.append((fast(*ours), function(*theirs)))
            torch.testing.assert_close(ours, theirs)
            for mine, expected in results:  # Those of earlier calls change only if they are views of inputs.
                torch.testing.assert_close(mine, expected)
            assert [x.stride() for x in ours] == [x.stride() for x in theirs]
    if layout in ("row-major", "part"):
        assert replaced == [FUNCTIONS[function]] * 3


def test_nothing_is_copied(replaced: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A result in an input's memory has its address, so that PyTorch's own copy has nothing to do."""
    addresses: list[set[int]] = []
    call = Variant.__call__

    def run(variant: Variant, given: list[Any]) -> Sequence[Any]:
        before = {x.data_ptr() for x in given}
        results = call(variant, given)
        addresses.append(before & {x.data_ptr() for x in results})
        return results

    monkeypatch.setattr(Variant, "__call__", run)
    x, place, row = inputs()
    with torch.no_grad():
        torch.compile(cache, backend="trivium")(x, place, row)
    assert addresses == [{x.data_ptr()}]


def test_statistics_of_training(replaced: list[int]) -> None:
    """A forward graph writes running statistics, which autograd does not record, in place."""
    model, expected = (torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)) for _ in range(2))
    expected.load_state_dict(model.state_dict())
    fast = torch.compile(model, backend="trivium")
    for seed in range(3):
        x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
        fast(x).square().sum().backward()
        expected(x).square().sum().backward()
    torch.testing.assert_close(model.state_dict(), expected.state_dict(), rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-4)
    assert max(replaced) == 3  # mean, variance, and the number of batches


def test_an_input_whose_change_is_recorded_is_copied(replaced: list[int]) -> None:
    def f(x: Any) -> Any:
        x.mul_(3)
        return x.sin()

    leaves = [torch.arange(6.0).requires_grad_() for _ in range(2)]
    for leaf, call in zip(leaves, (torch.compile(f, backend="trivium"), f), strict=True):
        x = leaf * 2
        (call(x) + x).sum().backward()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad)
    assert not any(replaced)


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_optimizers_update_parameters_in_place(kind: Any, replaced: list[int]) -> None:
    weights = [[torch.nn.Parameter(torch.arange(12.0).reshape(shape)) for shape in ((3, 4), (12,))] for _ in range(2)]
    options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
    steps = [kind(each, lr=torch.tensor(0.1), **options) for each in weights]
    fast = torch.compile(steps[0].step, backend="trivium")
    for number in range(3):
        for each in weights:
            for weight in each:
                weight.grad = torch.full_like(weight, 0.5 + number)
        fast()
        steps[1].step()
        torch.testing.assert_close(weights[0], weights[1])
    assert max(replaced) >= 4


def test_an_error_after_a_run_leaves_inputs_as_they_were(replaced: list[int]) -> None:
    def f(x: Any, at: Any, row: Any) -> Any:
        x.mul_(2)
        return x + row[at]

    fast = torch.compile(f, backend="trivium", options={"checks": True})
    x, row = torch.ones(4), torch.ones(4)
    with torch.no_grad(), pytest.raises(IndexError):
        fast(x, torch.tensor(9), row)
    torch.testing.assert_close(x, torch.ones(4))
    assert not any(replaced)
