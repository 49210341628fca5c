"""Tensors with classes of their own in `torch.compile`, nested and wrapped ones, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import return_and_correct_aliasing

from trivium.ir.errors import Error

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
close = torch.testing.assert_close

LENGTHS = [2, 3], [1, 5], [4, 4, 2], [3], [2, 6, 1, 1], [7, 1]
LINEAR, NORM = nn.Linear(4, 3), nn.LayerNorm(4)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Callable, fallback: bool = False) -> Callable:
    return torch.compile(function, backend="trivium", fullgraph=True, options={"fallback": fallback})


def nested(lengths: list[int]) -> Tensor:
    rows = [torch.randn(length, 4) for length in lengths]
    return torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)


def layers(x: Tensor) -> Tensor:
    return LINEAR(NORM(x)).sin()


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x * x.size(0), -1)


def transposed(x: Tensor) -> Tensor:
    return x.transpose(1, 2) * 2


def parts(x: Tensor) -> tuple[Tensor, Tensor]:
    return x + 1, x.values().exp()


@pytest.mark.parametrize("function", [layers, softmax, transposed, parts])
def test_nested_tensors_and_their_gradients(function: Callable) -> None:
    """Each has a ragged dimension of its own, whose size is no number."""
    run = compiled(function)
    for lengths in LENGTHS:
        x = nested(lengths)
        found, expected = pytree.tree_leaves(run(x)), pytree.tree_leaves(function(x))
        assert [y.shape for y in found] == [y.shape for y in expected]
        ours, theirs = ([y.values() if y.is_nested else y for y in results] for results in (found, expected))
        close(ours, theirs)
        gradients = [torch.autograd.grad(sum((y * y).sum() for y in results), x)[0] for results in (ours, theirs)]
        assert gradients[0].shape == x.shape
        close(*(gradient.values() for gradient in gradients))


def test_the_size_of_a_ragged_dimension_as_a_result(caplog: pytest.LogCaptureFixture) -> None:
    def tripled(x: Tensor) -> tuple[Tensor, Any]:
        return x * 3, x.size(1)

    run = compiled(tripled, fallback=True)
    for lengths in LENGTHS:
        x = nested(lengths)
        found, size = run(x)
        assert size == x.size(1)
        close(found.values(), x.values() * 3)
    assert "reads the size of a ragged dimension, which is no number: it runs in PyTorch" in caplog.text
    torch._dynamo.reset()
    with pytest.raises(Exception, match="reads the size of a ragged dimension") as caught:
        compiled(tripled)(nested([2, 3]))
    assert isinstance(getattr(caught.value, "inner_exception", caught.value), Error)


class Wrapped(Tensor):
    """A tensor that is one other tensor."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> Self:
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, strides=inner.stride())
        made.inner = inner
        return made

    def __repr__(self) -> str:
        return "Wrapped()"

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], meta: None, size: object, stride: object) -> Wrapped:
        return Wrapped(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, op: Callable, types: object, args: tuple, kwargs: dict | None = None) -> Any:
        given = args, kwargs or {}
        plain, keywords = pytree.tree_map_only(Wrapped, lambda x: x.inner, given)
        return return_and_correct_aliasing(op, *given, pytree.tree_map_only(Tensor, Wrapped, op(*plain, **keywords)))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("trained", [False, True])
def test_tensors_around_one_other_tensor(count: int, trained: bool) -> None:
    """As many tensors are given as the graph takes, and yet not these."""

    def function(*arrays: Tensor) -> Tensor:
        return (arrays[0] @ arrays[-1]).sin()

    inner = [torch.randn(3, 3) for _ in range(count)]
    run = compiled(function)
    for _ in range(2):
        arrays = [Wrapped(x).requires_grad_(trained) for x in inner]
        plain = [x.clone().requires_grad_(trained) for x in inner]
        found, expected = run(*arrays), function(*plain)
        assert isinstance(found, Wrapped)
        close(found.inner, expected.detach())
        if trained:
            found.sum().backward()
            expected.sum().backward()
            close([x.grad.inner for x in arrays], [x.grad for x in plain])


def test_a_wrapper_that_a_graph_makes() -> None:
    def function(x: Tensor) -> Tensor:
        return Wrapped(x.sin()) * 2

    x = torch.randn(3)
    found = torch.compile(function, backend="trivium")(x)
    assert isinstance(found, Wrapped)
    close(found.inner, x.sin() * 2)
