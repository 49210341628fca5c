"""The cells of recurrent networks on CUDA tensors, whose ops PyTorch cannot run without a GPU, against its cells for
the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, dtype
from torch.fx.experimental.proxy_tensor import make_fx

from trivium.importers.pytorch import ResultIndex, import_graph
from trivium.importers.pytorch.capture import describing
from trivium.importers.pytorch.types import to_array
from trivium.ir.interpreter import evaluate

pytestmark = pytest.mark.torch

ATEN = torch.ops.aten
CELLS = {"lstm": torch.lstm_cell, "gru": torch.gru_cell}
GATES = {"lstm": 4, "gru": 3}


def fused(name: str, x: Tensor, states: list[Tensor], weights: list[Tensor]) -> tuple[Tensor, ...]:
    """Returns the next states, as PyTorch computes them from CUDA tensors."""
    products = x @ weights[0].T, states[0] @ weights[1].T
    biases = weights[2:] or [None, None]
    if name == "lstm":
        return ATEN._thnn_fused_lstm_cell(*products, states[1], *biases)[:2]
    return ATEN._thnn_fused_gru_cell(*products, states[0], *biases)[:1]


def on_cpu(name: str, x: Tensor, states: list[Tensor], weights: list[Tensor]) -> tuple[Tensor, ...]:
    """Returns the same by PyTorch's cells for the CPU."""
    found = CELLS[name](x, states if name == "lstm" else states[0], *weights)
    return found if name == "lstm" else (found,)


def with_gradients(cell: Callable[..., tuple[Tensor, ...]], name: str, used: int) -> Callable[..., list[Tensor]]:
    """Returns a function of all tensors that returns the first `used` of the next states, and all gradients."""

    def function(x: Tensor, *given: Tensor) -> list[Tensor]:
        count = 2 if name == "lstm" else 1
        found = cell(name, x, list(given[:count]), list(given[count:]))[-used:]
        total = sum(
            (state.float() * torch.linspace(-1, 2, state.numel()).reshape(state.shape)).sum() for state in found
        )
        return [*found, *torch.autograd.grad(total, [x, *given], materialize_grads=True)]

    return function


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(("name", "used"), [("lstm", 2), ("lstm", 1), ("gru", 1)])
def test_cells_and_their_gradients(name: str, used: int, biased: bool, kind: dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    width = GATES[name] * 5
    shapes = [(3, 4), *[(3, 5)] * (2 if name == "lstm" else 1), (width, 4), (width, 5)]
    shapes += [(width,), (width,)] if biased else []
    tensors = [torch.randn(shape, generator=generator).to(kind).requires_grad_() for shape in shapes]
    with describing():
        graph = make_fx(with_gradients(fused, name, used), tracing_mode="fake")(*tensors)
    imported = import_graph(graph, tensors)
    imported.module.verify()
    found = evaluate(imported.module, *(to_array(x.detach()) for x in tensors))
    expected = with_gradients(on_cpu, name, used)(*(x.detach().double().requires_grad_() for x in tensors))
    tolerance = 1e-5 if kind is torch.float32 else 5e-2
    for output, theirs in zip(imported.outputs, expected, strict=True):
        assert isinstance(output, ResultIndex)
        ours = found[output.index].astype(np.float64)
        exact = theirs.detach().numpy()
        np.testing.assert_allclose(ours, exact, rtol=tolerance, atol=tolerance * np.abs(exact).max())
