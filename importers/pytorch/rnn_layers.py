"""Keeps the layers of recurrent networks whole on their way through AOTAutograd. PyTorch decomposes them step by step
(an LSTM only if its input requires a gradient), and a sequence of 60 steps becomes thousands of ops; its fused layer,
which has a gradient too, becomes a loop here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, fx
from torch._C import DispatchKey, _get_dispatch_mode, _TorchDispatchModeKey
from torch._C._functorch import peek_interpreter_stack
from torch._ops import OpOverload

from trivium.importers.pytorch.capture import is_ours
from trivium.importers.pytorch.rnn import LSTM, MODES

NETWORKS = {mode: getattr(torch, name) for name, mode in MODES.items()}
"""PyTorch's functions by the modes of its fused layers."""


def keep_recurrent_layers(module: fx.GraphModule) -> None:
    """Replaces the calls of recurrent networks in a graph that Dynamo captured, and in graphs inside of it; those of
    packed sequences, or with projections, remain, and those whose gradient might have a gradient: of a fused layer,
    only an LSTM's has."""
    graphs = [inner for inner in module.modules() if isinstance(inner, fx.GraphModule)]
    is_differentiated = any(_calls(inner.graph, torch.autograd.grad) for inner in graphs)
    for inner in graphs:
        _replace(inner, [mode for mode in NETWORKS if mode == LSTM or not is_differentiated])


def _replace(module: fx.GraphModule, modes: Sequence[int]) -> None:
    found = [(node, mode) for mode in modes for node in _calls(module.graph, NETWORKS[mode]) if _is_plain(node)]
    for node, mode in found:
        node.target, node.args = recurrent_network, (mode, *node.args)
    if found:
        module.recompile()


def _calls(graph: fx.Graph, function: Callable[..., object]) -> list[fx.Node]:
    return list(graph.find_nodes(op="call_function", target=function))


def _is_plain(node: fx.Node) -> bool:
    if len(node.args) != 9 or not isinstance(node.args[3], bool):
        return False
    _, _, params, has_biases, num_layers, _, _, bidirectional, _ = node.args
    return len(params) == num_layers * (2 if bidirectional else 1) * (4 if has_biases else 2)  # type: ignore[arg-type]


def recurrent_network(
    mode: int,
    input: Tensor,
    hx: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """Computes the same as PyTorch's network of this mode, from fused layers."""
    if mode != LSTM and peek_interpreter_stack() is not None:  # torch.func, whose gradients have gradients
        given = input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
        return NETWORKS[mode](*given)
    states = [hx] if isinstance(hx, Tensor) else hx
    if mode != LSTM and (kind := _autocast_type(mode, input, states[0])) is not None:
        input, states, params = input.to(kind), [x.to(kind) for x in states], [x.to(kind) for x in params]
        with torch.autocast(input.device.type, enabled=False):
            return _network(mode, input, states, params, num_layers, dropout * train, bidirectional, batch_first)
    return _network(mode, input, states, params, num_layers, dropout * train, bidirectional, batch_first)


def _autocast_type(mode: int, input: Tensor, state: Tensor) -> torch.dtype | None:
    """Returns in what type the results of a network are under autocast, if it is enabled. A GRU computes only products
    in the narrow type; its state remains in its own, if that is wider."""
    if not torch.is_autocast_enabled(input.device.type):
        return None
    narrow = torch.get_autocast_dtype(input.device.type)
    return torch.promote_types(state.dtype, narrow) if mode == MODES["gru"] else narrow


def _network(
    mode: int,
    input: Tensor,
    states: Sequence[Tensor],
    params: Sequence[Tensor],
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    batched = input.dim() == 3
    x = input if batched else input.unsqueeze(1)
    states = states if batched else [state.unsqueeze(1) for state in states]
    x = x.transpose(0, 1) if batch_first and batched else x
    directions = 2 if bidirectional else 1
    size = len(params) // (num_layers * directions)
    ended = []
    for layer in range(num_layers):
        sides = []
        for run in range(layer * directions, (layer + 1) * directions):
            weights = params[run * size : (run + 1) * size]
            outputs, *last = _layer(mode, x, weights, [state[run] for state in states], run % directions == 1)
            sides.append(outputs)
            ended.append(last)
        x = torch.cat(sides, 2) if bidirectional else sides[0]
        if dropout and layer < num_layers - 1:
            x = torch.nn.functional.dropout(x, dropout)
    last = [torch.stack(states) for states in zip(*ended, strict=True)]
    if not batched:
        return x.squeeze(1), *(state.squeeze(1) for state in last)
    return x.transpose(0, 1) if batch_first else x, *last


def _layer(
    mode: int, x: Tensor, weights: Sequence[Tensor], states: Sequence[Tensor], reverse: bool
) -> Sequence[Tensor]:  # fmt: skip
    """Returns the outputs of one layer in one direction, and its last states."""
    has_biases = len(weights) == 4
    biases = weights[2:] if has_biases else [torch.zeros_like(weights[0][:, 0]) for _ in range(2)]
    # The fused layer has an LSTM's memory as an argument, whatever it computes.
    given = [state.unsqueeze(0) for state in states] if len(states) == 2 else [states[0].unsqueeze(0), x.new_empty(0)]
    outputs, *ended, _ = torch.ops.aten.mkldnn_rnn_layer(
        *(x.contiguous(), *weights[:2], *biases, *given, reverse, [], mode, states[0].shape[-1], 1),
        *(has_biases, False, False, True),
    )
    return outputs, *(state.squeeze(0) for state in ended[: len(states)])


# For its own use, Dynamo computes the shapes of results, step by step, and then takes a length for a constant.


def _described(mode: int, decomposed: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, ...]]:
    """Returns a function that describes a network to Dynamo: its results have the right shapes and types, and depend on
    the right tensors. What traces the network for its ops gets them."""

    def described(
        input: Tensor,
        hx: Tensor,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        tracers = _TorchDispatchModeKey.PROXY, _TorchDispatchModeKey.FUNCTIONAL
        if not is_ours() or any(_get_dispatch_mode(tracer) is not None for tracer in tracers):
            return decomposed(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
        kind = _autocast_type(mode, input, hx) or input.dtype
        total = sum((x.sum() for x in (hx, *params)), input.sum()).to(kind)
        is_turned = batch_first and input.dim() == 3
        steps = (input.transpose(0, 1) if is_turned else input).shape[:-1]
        shapes = (*steps, hx.shape[-1] * (2 if bidirectional else 1)), hx.shape
        outputs, last = (total.expand(shape).clone(memory_format=torch.contiguous_format) for shape in shapes)
        return outputs.transpose(0, 1) if is_turned else outputs, last

    return described


def _describe(op: OpOverload, mode: int) -> None:
    for key in (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd):
        op.py_kernels[key] = _described(mode, op.py_kernels[key])
    op._dispatch_cache.clear()


for _name in ("rnn_relu", "rnn_tanh", "gru"):
    _describe(getattr(torch.ops.aten, _name).input, MODES[_name])
