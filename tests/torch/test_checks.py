"""Wrong indices and divisions by zero: the errors that PyTorch raises without a compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional

pytestmark = pytest.mark.torch

TABLE = torch.arange(12.0).reshape(3, 4)
FINE, WRONG, NEGATIVE = torch.tensor([0, 2]), torch.tensor([0, 3]), torch.tensor([-4, 0])

PROGRAMS: list[tuple[Callable[..., Any], Any, list[Any]]] = [
    (lambda i: functional.embedding(i, TABLE), FINE, [WRONG, NEGATIVE]),
    (lambda i: TABLE.index_select(0, i), FINE, [WRONG, NEGATIVE]),
    (lambda i: TABLE.gather(0, i.unsqueeze(0)), FINE, [WRONG, NEGATIVE]),
    (lambda i: TABLE[i] * 2, FINE, [WRONG, NEGATIVE]),
    (lambda i: TABLE.take(i), FINE - 12, [FINE + 10, FINE - 13]),
    (lambda i: TABLE.put(i, torch.ones(2)), FINE - 12, [FINE + 10, FINE - 13]),
    (lambda i: TABLE[:, i], NEGATIVE, [torch.tensor([4]), torch.tensor([-5])]),
    (lambda i: TABLE.index_put((i,), torch.ones(4)), FINE, [WRONG]),
    (lambda i: TABLE.scatter(0, i.unsqueeze(0), 1.0), FINE, [WRONG, NEGATIVE]),
    (lambda i: TABLE.scatter_add(1, i.unsqueeze(0), TABLE), FINE, [FINE + 2, NEGATIVE]),
    (lambda i: TABLE.index_add(0, i, TABLE[:2]), FINE, [WRONG, NEGATIVE]),
    (lambda i: TABLE.index_copy(0, i, TABLE[:2]), FINE, [WRONG, NEGATIVE]),
    (lambda i: TABLE.index_fill(1, i, 7.0), NEGATIVE, [FINE + 2, NEGATIVE - 1]),
    (lambda i: functional.cross_entropy(TABLE[:2], i).round(), FINE, [FINE + 2, FINE - 1]),
    (lambda i: functional.nll_loss(TABLE.view(1, 3, 1, 4)[..., :2], i.view(1, 1, 2)), FINE, [WRONG, FINE - 1]),
    (lambda i: torch.zeros(2).masked_scatter(i > 0, torch.ones(1)), FINE, [FINE + 1]),
    (lambda x: 7 // x, FINE + 1, [FINE]),
    (lambda x: x % (x - 1), FINE + 2, [FINE + 1]),
    (lambda x: torch.fmod(x, x), FINE + 1, [FINE]),
    (lambda x: torch.div(x, x, rounding_mode="trunc"), FINE + 1, [FINE]),
]


def compiled(function: Callable[..., Any], **options: object) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, backend="trivium", fullgraph=True, dynamic=False, options=options or None)


def error_of(function: Callable[..., Any], given: Any) -> tuple[type, str]:
    with pytest.raises((IndexError, RuntimeError)) as caught:
        function(given)
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_errors_are_pytorchs_own(number: int) -> None:
    function, fine, wrong = PROGRAMS[number]
    fast = compiled(function, checks=True)
    assert torch.equal(fast(fine), function(fine))
    for given in wrong:
        assert error_of(fast, given) == error_of(function, given)


def test_sizes_may_be_dynamic() -> None:
    def function(i: Any, x: Any) -> Any:
        return x[i] + x.gather(0, i)

    x = torch.arange(5.0)
    torch._dynamo.reset()
    fast = torch.compile(function, backend="trivium", fullgraph=True, dynamic=True, options={"checks": True})
    assert torch.equal(fast(FINE, x), function(FINE, x))
    assert error_of(lambda i: fast(i, x), FINE + 3) == error_of(lambda i: function(i, x), FINE + 3)


def test_assertions_of_the_program_always_hold() -> None:
    def function(x: Any) -> Any:
        torch._assert_async((x > 0).all(), "not positive")
        return x * 2

    fast = compiled(function)
    assert torch.equal(fast(FINE + 1), function(FINE + 1))
    assert error_of(fast, FINE) == (RuntimeError, "not positive")


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_counts_are_not_negative() -> None:
    for function in (torch.repeat_interleave, torch.bincount):
        assert error_of(compiled(function, checks=True), FINE - 1) == error_of(function, FINE - 1)


def test_the_environment_turns_checks_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return 7 // x

    assert compiled(function)(FINE).shape == FINE.shape
    monkeypatch.setenv("TRIVIUM_CHECKS", "1")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        compiled(function)(FINE)
    assert compiled(function, checks=False)(FINE).shape == FINE.shape


def test_floats_and_booleans_have_no_checks() -> None:
    x = torch.tensor([1.0, 0.0])
    assert torch.equal(compiled(lambda x: x // 0.5 + 1 / x, checks=True)(x), x // 0.5 + 1 / x)
    empty = torch.zeros(0, dtype=torch.int64)
    assert compiled(lambda i: TABLE[i], checks=True)(empty).shape == (0, 4)
