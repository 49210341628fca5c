"""The loss for sequences without alignment, and its gradient, in one graph, against PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor
from torch.nn.functional import ctc_loss

pytestmark = pytest.mark.torch
LABELS = torch.tensor([[1, 1, 3, 0], [0, 0, 0, 0], [4, 3, 3, 1]])
LENGTHS = torch.tensor([[4, 0, 2], [1, 3, 2]])


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(("reduction", "is_flat"), [("none", False), ("mean", True)], ids=["rows", "flat"])
def test_loss_and_gradient(reduction: str, is_flat: bool) -> None:
    """Repeated labels, sequences without labels and without steps, and more labels than steps."""

    def loss(x: Tensor, labels: Tensor, steps: Tensor, lengths: Tensor) -> Tensor:
        options = {"reduction": reduction, "zero_infinity": is_flat, "blank": 2}
        return ctc_loss(x.log_softmax(2), labels, steps, lengths, **options)

    compiled = torch.compile(loss, backend="trivium", fullgraph=True, options={"fallback": False}, dynamic=False)
    ours = torch.randn(12, 3, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    for lengths in LENGTHS:
        rows = [row[:count] for row, count in zip(LABELS, lengths.tolist(), strict=True)]
        labels = torch.cat(rows) if is_flat else LABELS
        for steps in (torch.tensor([12, 10, 7]), torch.tensor([3, 12, 0])):
            pairs = zip((compiled, loss), (ours, theirs), strict=True)
            (a, of_a), (b, of_b) = (_both(function(x, labels, steps, lengths), x) for function, x in pairs)
            torch.testing.assert_close(a, b, equal_nan=True)
            torch.testing.assert_close(of_a, of_b, equal_nan=True)


def _both(loss: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    return loss.detach(), torch.autograd.grad(loss.sum(), x)[0]


def test_other_compilers_still_leave_it_to_eager() -> None:
    """They do not know the shape of what the op keeps for its gradient."""
    compiled = torch.compile(ctc_loss, backend="aot_eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="_ctc_loss"):
        compiled(torch.randn(4, 1, 3), torch.ones(1, 2, dtype=torch.long), torch.tensor([4]), torch.tensor([2]))
