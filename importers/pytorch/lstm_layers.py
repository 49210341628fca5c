"""Keeps an LSTM whole on its way through AOTAutograd. If its input requires a gradient, PyTorch decomposes it step by
step, and a sequence of 60 steps becomes thousands of ops; its fused layer, which has a gradient too, becomes a loop
here."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

LSTM_MODE = 2
"""The number of an LSTM among the modes of PyTorch's fused layers."""


def keep_lstm_layers(module: fx.GraphModule) -> None:
    """Replaces the calls of LSTMs in a graph that Dynamo captured; those of packed sequences, or with projections,
    remain."""
    for node in module.graph.find_nodes(op="call_function", target=torch.lstm):
        if not isinstance(node.args[1], fx.Node) and len(node.args) == 9 and _is_plain(node):
            node.target = lstm
    module.recompile()


def _is_plain(node: fx.Node) -> bool:
    _, _, params, has_biases, num_layers, _, _, bidirectional, _ = node.args
    return len(params) == num_layers * (2 if bidirectional else 1) * (4 if has_biases else 2)  # type: ignore[arg-type]


def lstm(
    input: torch.Tensor,
    hx: Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Computes the same as `torch.lstm`, from fused layers."""
    batched = input.dim() == 3
    x = input if batched else input.unsqueeze(1)
    hidden, memory = hx if batched else (state.unsqueeze(1) for state in hx)
    x = x.transpose(0, 1) if batch_first and batched else x
    directions, size = 2 if bidirectional else 1, 4 if has_biases else 2
    ended = []
    for layer in range(num_layers):
        sides = []
        for run in range(layer * directions, (layer + 1) * directions):
            weights = params[run * size : (run + 1) * size]
            outputs, *states = _layer(x, weights, hidden[run], memory[run], run % directions == 1)
            sides.append(outputs)
            ended.append(states)
        x = torch.cat(sides, 2) if bidirectional else sides[0]
        if dropout and train and layer < num_layers - 1:
            x = torch.nn.functional.dropout(x, dropout)
    last = [torch.stack(states) for states in zip(*ended, strict=True)]
    if not batched:
        return x.squeeze(1), last[0].squeeze(1), last[1].squeeze(1)
    return x.transpose(0, 1) if batch_first else x, last[0], last[1]


def _layer(
    x: torch.Tensor, weights: Sequence[torch.Tensor], hidden: torch.Tensor, memory: torch.Tensor, reverse: bool
) -> Sequence[torch.Tensor]:
    has_biases = len(weights) == 4
    biases = weights[2:] if has_biases else [torch.zeros_like(weights[0][:, 0]) for _ in range(2)]
    states = [state.unsqueeze(0) for state in (hidden, memory)]
    outputs, *ended, _ = torch.ops.aten.mkldnn_rnn_layer(
        *(x.contiguous(), *weights[:2], *biases, *states, reverse, [], LSTM_MODE, hidden.shape[-1], 1),
        *(has_biases, False, False, True),
    )
    return outputs, *(state.squeeze(0) for state in ended)
