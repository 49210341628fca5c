"""Shapes that depend on the elements of tensors, in one graph of `torch.compile`, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def captures_open_shapes() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        yield
    torch._dynamo.reset()


def put(x: Tensor) -> Tensor:
    changed = x.clone()
    changed[x > 0] = x[x > 0] * 2
    return changed


FUNCTIONS: dict[str, Callable[[Tensor], object]] = {
    "nonzero": lambda x: torch.nonzero(x > 0),
    "nonzero of a number": lambda x: torch.nonzero(x[0, 0] > 0),
    "where": lambda x: torch.where(x > 0),
    "parts of nonzero": lambda x: (lambda y: (y[:, 1], y.t(), y[:, :1] * 2))(torch.nonzero(x > 0)),
    "parts of elements": lambda x: (lambda y: (y, y.unsqueeze(0), y.sum()))(x[x > 0]),
    "argwhere": lambda x: torch.argwhere(x > 0) + 1,
    "elements": lambda x: x[x > 0] * 2,
    "sum of elements": lambda x: x[x > 0].sum(),
    "rows": lambda x: x[x[:, 0] > 0] @ torch.ones(3, 2),
    "columns": lambda x: x[:, x[0] > 0],
    "masked_select": lambda x: torch.masked_select(x, x[0] > 0.2),
    "put": put,
    "repeat_interleave": lambda x: torch.repeat_interleave(x, (x[:, 0].abs() * 2).int(), dim=0).cos(),
    "bincount": lambda x: torch.bincount((x.abs() * 3).int().flatten(), minlength=2),
    "weighted bincount": lambda x: torch.bincount((x.abs() * 3).int().flatten(), x.flatten()),
    "unique": lambda x: torch.unique((x * 2).round(), return_inverse=True, return_counts=True),
    "unique of chosen elements": lambda x: torch.unique(x[x > 0].round(), return_counts=True),
    "unique NaN": lambda x: torch.unique(x.log(), return_inverse=True, return_counts=True),
    "unique rows": lambda x: torch.unique(x > 0.3, dim=0, return_inverse=True, return_counts=True),
    "unique of chosen rows": lambda x: torch.unique(x[x[:, 0] > 0] > 0.3, dim=0, return_inverse=True),
    "gather of chosen rows": lambda x: (lambda y: y.gather(0, (y[:, :2] * 0).long()))(x[x[:, 0] > 0]),
    "places among chosen rows": lambda x: (lambda y: y[y[:, 1].argsort()])(x[x[:, 0] > 0]),
    "unique_consecutive": lambda x: torch.unique_consecutive(x > 0, return_inverse=True, return_counts=True),
    "unique_consecutive columns": lambda x: torch.unique_consecutive(x > 0, dim=-1),
    "item": lambda x: torch.ones(x.flatten().argmax().item() + 1) * x.sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_shapes_that_follow_from_elements(name: str) -> None:
    function = FUNCTIONS[name]
    compiled = torch.compile(function, backend="trivium", fullgraph=True, options={"fallback": False})
    for x in (torch.randn(5, 3), torch.randn(5, 3), torch.ones(5, 3), -torch.ones(5, 3)):
        torch.testing.assert_close(compiled(x), function(x), equal_nan=True)


def written(function: Callable[[Tensor, int], None]) -> Callable[[Tensor, Tensor], Tensor]:
    """Returns a function that writes to a copy."""

    def write(x: Tensor, i: Tensor) -> Tensor:
        changed = x * 2
        function(changed, i.item())
        return changed

    return write


def put_row(x: Tensor, i: int) -> None:
    x[i] = 5


def add_to_row(x: Tensor, i: int) -> None:
    x[i] += x[0]


def put_rows(x: Tensor, i: int) -> None:
    x[i:] = -1


def put_every_second(x: Tensor, i: int) -> None:
    x[i::2] = x[0]


def put_between(x: Tensor, i: int) -> None:
    x[i : i + 2] *= 3


PLACED: dict[str, Callable[[Tensor, Tensor], object]] = {
    "row": lambda x, i: x[i.item()] * 2,
    "view of a row": lambda x, i: x[i.item()],
    "narrowed to a row": lambda x, i: (x.narrow(0, i, 1), x.narrow(0, i, 1) * 2),
    "rows from one on": lambda x, i: x[i.item() :: 2] * 2,
    "view of rows": lambda x, i: x[: i.item()],
    "rows between two": lambda x, i: x[i.item() : i.item() + 2].sum(),
    "view and sum": lambda x, i: (x[i.item() :], x[i.item() :].sum()),
    "parts": lambda x, i: [part + 1 for part in torch.tensor_split(x, torch.stack([i, i + 1]))],
    "written row": written(put_row),
    "sum in a row": written(add_to_row),
    "written column": lambda x, i: torch.select_scatter(x.t(), x[0], 1, i.item()),
    "written from one on": written(put_rows),
    "written in steps": written(put_every_second),
    "written between two": written(put_between),
    "views of parts": lambda x, i: torch.tensor_split(x[1:], torch.stack([i, i + 1]), 1),
}


@pytest.mark.parametrize("name", PLACED)
def test_places_that_follow_from_elements(name: str) -> None:
    """Negative ones count from the end; slices take those outside, too."""
    function, x = PLACED[name], torch.randn(5, 3)
    compiled = torch.compile(function, backend="trivium", fullgraph=True, options={"fallback": False})
    for place in (2, -1, -4, 0) if {"row", "column"} & {*name.split()} else (2, -1, -4, 0, 7, -9):
        torch.testing.assert_close(compiled(x, torch.tensor(place)), function(x, torch.tensor(place)))


NUMBERS: dict[str, Callable[[int], int]] = {
    "quotient": lambda n: 7 // n,
    "negative quotient": lambda n: n // -3,
    "remainder": lambda n: 7 % n,
    "negative remainder": lambda n: n % -3,
    "extremum": lambda n: min(n + 2, n * n),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_follow_from_elements(name: str) -> None:
    def function(x: Tensor, n: Tensor) -> Tensor:
        return x * NUMBERS[name]((n * 2).item())

    x = torch.randn(3)
    compiled = torch.compile(function, backend="trivium", fullgraph=True, options={"fallback": False})
    for number in (2, -1, -2, 5, -7):
        torch.testing.assert_close(compiled(x, torch.tensor(number)), function(x, torch.tensor(number)))


def test_rows_that_do_not_exist() -> None:
    program = torch.compile(lambda i: torch.ones(6)[(i * 1).item()] * 2, backend="trivium", options={"checks": True})
    assert program(torch.tensor(-6)) == 2
    for place in (6, -7):
        with pytest.raises(IndexError, match=f"index {place} is out of bounds for dimension 0 with size 6"):
            program(torch.tensor(place))


def test_views_of_a_result_whose_shape_follows_from_elements_share_its_memory() -> None:
    def places(x: Tensor) -> tuple[Tensor, ...]:
        return torch.where(x > 0)

    compiled = torch.compile(places, backend="trivium", fullgraph=True, options={"fallback": False})
    for x in (torch.randn(5, 3), torch.ones(5, 3)):
        found, wanted = compiled(x), places(x)
        assert [y.stride() for y in found] == [y.stride() for y in wanted]
        assert [y.storage_offset() for y in found] == [y.storage_offset() for y in wanted]
        assert len({y.untyped_storage().data_ptr() for y in found}) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x[x > 0] ** 2).sum(),
        lambda x: torch.masked_select(x, x > 0).sin().sum(),
        lambda x: (torch.repeat_interleave(x, torch.tensor([2, 0, 1, 3, 1]), dim=0) ** 2).sum(),
        lambda x: (x[x[:, 0].argmax().item()] ** 2).sum(),
        lambda x: (x[x[:, 0].argmax().item() :] ** 2).sum(),
        lambda x: (x[x[:, 0].argmax().item() :: 3] ** 2).sum(),
        lambda x: (written(put_row)(x, x[:, 0].argmax()) ** 2).sum(),
        lambda x: (written(put_rows)(x, x[:, 0].argmax()) ** 2).sum(),
        lambda x: (written(put_every_second)(x, x[:, 0].argmax()) ** 2).sum(),
    ],
    ids=[
        "mask",
        "masked_select",
        "repeat_interleave",
        "row",
        "rows",
        "steps",
        "written row",
        "written rows",
        "written in steps",
    ],
)
def test_gradients(function: Callable[[Tensor], Tensor]) -> None:
    compiled = torch.compile(function, backend="trivium", fullgraph=True, options={"fallback": False})
    for _ in range(2):
        ours = torch.randn(5, 3, requires_grad=True)
        theirs = ours.detach().clone().requires_grad_()
        (found,), (wanted,) = (torch.autograd.grad(f(x), x) for f, x in ((compiled, ours), (function, theirs)))
        torch.testing.assert_close(found, wanted)
