"""Ops on functions in `torch.compile`, against PyTorch: loops over rows, attention with the user's own scores and
masks, checkpoints that draw random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def forget_graphs() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Callable) -> Callable:
    return torch.compile(function, backend="trivium", fullgraph=True, options={"fallback": False})


def leaves(*arrays: Tensor) -> list[Tensor]:
    return [array.clone().requires_grad_() for array in arrays]


# Loops over rows


def running(carry: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    return carry * 0.5 + x, (carry * x).sin()


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("dim", [0, 1])
def test_scan_and_its_gradient(dim: int, reverse: bool) -> None:
    def loss(init: Tensor, rows: Tensor) -> Tensor:
        last, results = scan(running, init, rows, dim=dim, reverse=reverse)
        return (last * 3).sum() + results.square().sum()

    arguments = torch.randn(4), torch.randn((6, 4) if dim == 0 else (4, 6))
    expected, actual = leaves(*arguments), leaves(*arguments)
    wanted, found = loss(*expected), compiled(loss)(*actual)
    torch.testing.assert_close(found, wanted)
    for ours, theirs in zip(torch.autograd.grad(found, actual), torch.autograd.grad(wanted, expected), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_scan_with_several_states_and_values_from_outside() -> None:
    def program(first: Tensor, second: Tensor, rows: dict[str, Tensor], factor: Tensor) -> tuple[object, object]:
        def step(carry: tuple[Tensor, Tensor], row: dict[str, Tensor]) -> tuple[tuple[Tensor, Tensor], Tensor]:
            a, b = carry
            return (a + row["x"] * factor, b * 2 + row["n"]), a + row["n"]

        return scan(step, (first, second), rows)

    rows = {"x": torch.randn(5, 3), "n": torch.arange(5)}
    arguments = torch.zeros(3), torch.tensor(1), rows, torch.tensor([1.0, 2.0, 3.0])
    torch.testing.assert_close(compiled(program)(*arguments), program(*arguments))


def test_gradient_of_a_loop_that_its_data_ends() -> None:
    def loss(x: Tensor, weight: Tensor) -> Tensor:
        ended = while_loop(lambda x: x.norm() < 10, lambda x: (x + (x @ weight).sin(),), (x,))
        return ended[0].square().sum()

    def unrolled(x: Tensor, weight: Tensor) -> Tensor:
        while x.norm() < 10:
            x = x + (x @ weight).sin()
        return x.square().sum()

    run = compiled(loss)
    for size in (1, 3):
        x, weight = torch.rand(3, 3) * size, torch.rand(3, 3)
        assert x.norm() < 10
        ours, theirs = leaves(x, weight), leaves(x, weight)
        found = torch.autograd.grad(run(*ours), ours)
        torch.testing.assert_close(found, torch.autograd.grad(unrolled(*theirs), theirs))


def test_map_and_its_gradient() -> None:
    def loss(rows: Tensor, weight: Tensor) -> Tensor:
        return map_over(lambda row, weight: (row @ weight).tanh(), rows, weight).square().sum()

    arguments = torch.randn(5, 3), torch.randn(3, 2)
    expected, actual = leaves(*arguments), leaves(*arguments)
    wanted, found = loss(*expected), compiled(loss)(*actual)
    torch.testing.assert_close(found, wanted)
    for ours, theirs in zip(torch.autograd.grad(found, actual), torch.autograd.grad(wanted, expected), strict=True):
        torch.testing.assert_close(ours, theirs)


# Attention

BATCH, HEADS, LENGTH, WIDTH = 2, 4, 32, 8
BIAS = torch.linspace(-1, 1, HEADS)
DOCUMENTS = torch.arange(LENGTH) // 10


def causal(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return query >= key


def same_document(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return (DOCUMENTS[query] == DOCUMENTS[key]) & (query - key).abs().le(4 + batch)


def sees_nothing_at_first(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return query > key


SCORES = {
    "distance": lambda score, batch, head, query, key: score + (key - query) * 0.1,
    "a number for each head": lambda score, batch, head, query, key: score + BIAS[head],
    "soft cap": lambda score, batch, head, query, key: 5 * torch.tanh(score / 5),
    "where": lambda score, batch, head, query, key: torch.where(query >= key, score, -float("inf")),
    "of the batch": lambda score, batch, head, query, key: score * (batch + 1) + head,
}


def attention_operands(heads: int = HEADS, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    shapes = (BATCH, HEADS, LENGTH, WIDTH), (BATCH, heads, LENGTH, WIDTH), (BATCH, heads, LENGTH, 2 * WIDTH)
    return [torch.randn(shape).to(dtype) for shape in shapes]


def block_mask(function: Callable) -> BlockMask:
    return create_block_mask(function, BATCH, HEADS, LENGTH, LENGTH, device="cpu")


@pytest.mark.parametrize("name", SCORES)
def test_scores_of_attention(name: str) -> None:
    def program(*operands: Tensor) -> Tensor:
        return flex_attention(*operands, score_mod=SCORES[name])

    operands = attention_operands()
    torch.testing.assert_close(compiled(program)(*operands), program(*operands))


@pytest.mark.parametrize("mask", [causal, same_document, sees_nothing_at_first])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_masks_of_attention(mask: Callable, dtype: torch.dtype) -> None:
    seen = block_mask(mask)

    def program(*operands: Tensor) -> tuple[Tensor, Tensor]:
        return flex_attention(*operands, block_mask=seen, return_lse=True)

    operands = attention_operands(dtype=dtype)
    result, total = compiled(program)(*operands)
    precise, precise_total = program(*(x.double() for x in operands))
    torch.testing.assert_close(result, precise.to(dtype))
    torch.testing.assert_close(total, precise_total.float())  # PyTorch captures it as f32, whatever the operands are


def test_scores_and_mask_of_grouped_heads() -> None:
    seen = block_mask(causal)

    def program(*operands: Tensor) -> Tensor:
        return flex_attention(*operands, score_mod=SCORES["distance"], block_mask=seen, scale=0.5, enable_gqa=True)

    operands = attention_operands(heads=2)
    torch.testing.assert_close(compiled(program)(*operands), program(*operands))


# Checkpoints


def test_a_checkpoint_draws_the_same_numbers_again() -> None:
    linear = torch.nn.Linear(3, 3)

    def block(x: Tensor) -> Tensor:
        return torch.rand_like(x) * torch.dropout(linear(x), 0.5, True)

    step = compiled(lambda x: checkpoint(block, x, use_reentrant=False))
    x = torch.randn(200, 3, requires_grad=True)
    kept = []
    for _ in range(2):
        result = step(x)
        drawn = (result / linear(x)).detach()
        (gradient,) = torch.autograd.grad(result.sum(), x)
        torch.testing.assert_close(gradient, drawn @ linear.weight, atol=1e-4, rtol=1e-4)
        kept.append(drawn)
    assert not torch.equal(*kept)
    assert 0.3 < (kept[0] == 0).float().mean() < 0.7
