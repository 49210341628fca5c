"""Bags of embeddings of which everything is asked, with gradients, against PyTorch."""

from __future__ import annotations

from itertools import product

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional

pytestmark = pytest.mark.torch

ENTRIES, OFFSETS = (3, 1, 1, 0, 4, 2, 1, 5, 0), (0, 2, 2, 5, 9)
"""Nine entries of four bags or, if the last offset is no end, of five. One is empty, or two are."""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("mode", "weighted"), [("sum", False), ("sum", True), ("mean", False), ("max", False)])
@pytest.mark.parametrize(("ended", "padding"), [*product([False, True], [None, 1])])
def test_bags(mode: str, weighted: bool, ended: bool, padding: int | None, dtype: torch.dtype) -> None:
    def loss(table: torch.Tensor, weights: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        given = {"mode": mode, "include_last_offset": ended, "padding_idx": padding}
        bags = functional.embedding_bag(
            entries, table, offsets, per_sample_weights=weights if weighted else None, **given
        )
        return bags * bags.detach().cos()

    torch._dynamo.reset()
    compiled = torch.compile(loss, backend="trivium", options={"fallback": False})
    for kind in (torch.int64, torch.int32):
        entries, offsets = torch.tensor(ENTRIES, dtype=kind), torch.tensor(OFFSETS, dtype=kind)
        found = []
        for function in (loss, compiled):
            torch.manual_seed(0)
            table = torch.randn(6, 7, dtype=dtype, requires_grad=True)
            weights = torch.rand(9, dtype=dtype, requires_grad=True)
            result = function(table, weights, offsets)
            result.sum().backward()
            found.append([result.detach(), table.grad, *([weights.grad] if weighted else [])])
        torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("initial", [None, 0.0, 2.0])
@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_segments(reduce: str, initial: float | None) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(torch.segment_reduce, backend="trivium", options={"fallback": False})
    for shape, lengths in (((9, 3), [2, 0, 7]), ((4,), [1, 0, 0, 3]), ((5, 2, 3), [5])):
        x = torch.randn(shape)
        given = {"lengths": torch.tensor(lengths), "initial": initial}
        torch.testing.assert_close(
            compiled(x, reduce, **given), torch.segment_reduce(x, reduce, **given), equal_nan=True
        )
