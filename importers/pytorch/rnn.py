"""Recurrent networks: one `while` per layer and direction, over the steps of the sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trivium.importers import loops
from trivium.importers.emit import Emitter
from trivium.importers.extents import scalar_of
from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.random import dropped_out
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64

Cell = Callable[..., tuple[Value, ...]]
"""`cell(emit, projected input, states, *weights)` returns the next states; the first of them is the layer's output."""

MODES = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}
"""The numbers of PyTorch's networks as modes of its fused layers."""

LSTM = MODES["lstm"]


@rule("aten.lstm.input")
def lstm(
    ctx: Context,
    input: Value,
    hx: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, ...]:
    """lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool
    train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)"""
    return _network(
        ctx, CELLS[LSTM], input, hx, params, has_biases, num_layers, dropout * train, bidirectional, batch_first
    )


@rule("aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input")
def gru(
    ctx: Context,
    input: Value,
    hx: Value,
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, ...]:
    """gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train,
    bool bidirectional, bool batch_first) -> (Tensor, Tensor)"""
    cell = CELLS[MODES[ctx.op.split(".")[1]]]
    return _network(ctx, cell, input, [hx], params, has_biases, num_layers, dropout * train, bidirectional, batch_first)


@rule("aten.mkldnn_rnn_layer.default")
def mkldnn_rnn_layer(
    ctx: Context,
    input: Value,
    weight0: Value,
    weight1: Value,
    weight2: Value,
    weight3: Value,
    hx_: Value,
    cx_: Value,
    reverse: bool,
    batch_sizes: Sequence[int],
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    batch_first: bool,
    train: bool,
) -> tuple[Value, ...]:
    """mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_,
    Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, bool
    bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)"""
    require_plain_layer(ctx, mode, batch_sizes, batch_first)
    # One layer in one direction, over [steps, batch, features].
    weights = [weight0, weight1, weight2, weight3][: 4 if has_biases else 2]
    states = [ctx.reshape(x, x.type.shape[-2:]) for x in ((hx_, cx_) if mode == LSTM else (hx_,))]
    outputs, ended = _layer(ctx, CELLS[mode], input, states, weights, reverse)
    last = [ctx.reshape(x, kind.static_shape) for x, kind in zip(ended, ctx.result_types[1:], strict=False)]
    workspace = ctx.full(ctx.result_types[3].static_shape, 0, ctx.result_types[3].element_type)
    return outputs, *(last if mode == LSTM else [*last, cx_]), workspace


def require_plain_layer(ctx: Context, mode: int, batch_sizes: Sequence[int], batch_first: bool) -> None:
    """Raises an error for a fused layer that no recurrent network leads to."""
    if mode not in CELLS:
        ctx.unsupported("mode", mode, f"one of {', '.join(f'{number} ({name})' for name, number in MODES.items())}")
    if batch_sizes:
        ctx.unsupported("batch_sizes", batch_sizes, "none: sequences of one length")
    if batch_first:
        ctx.unsupported("batch_first", True, "False: steps before the batch")


def _network(
    ctx: Context,
    cell: Cell,
    input: Value,
    hx: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, ...]:
    """Returns the results of all layers and directions: the sequence and the last states."""
    batched = input.type.rank == 3
    x = input if batched else ctx.unsqueeze(input, [1])
    hx = hx if batched else [ctx.unsqueeze(state, [1]) for state in hx]
    x = ctx.transpose(x, [1, 0, 2]) if batch_first and batched else x
    directions = 2 if bidirectional else 1
    runs = num_layers * directions
    size = len(params) // runs
    if size != (4 if has_biases else 2):
        ctx.unsupported("params", f"{size} weights a layer", "4, or 2 without biases (no projection)")
    last: list[Sequence[Value]] = []
    for layer in range(num_layers):
        sides = []
        for direction in range(directions):
            run = layer * directions + direction
            states = [ctx.squeeze(ctx.slice(state, 0, run, run + 1), [0]) for state in hx]
            outputs, ended = _layer(ctx, cell, x, states, params[run * size : (run + 1) * size], direction == 1)
            sides.append(outputs)
            last.append(ended)
        x = ctx.concatenate(sides, 2)
        if dropout and layer < num_layers - 1:
            x = dropped_out(ctx, x, dropout)[0]
    states = [ctx.concatenate([ctx.unsqueeze(state, [0]) for state in ended], 0) for ended in zip(*last, strict=True)]
    x = ctx.transpose(x, [1, 0, 2]) if batch_first and batched else x
    return tuple(
        ctx.reshape(value, ctx.shape_of(meta)) for value, meta in zip((x, *states), ctx.described, strict=True)
    )


def _layer(
    ctx: Context, cell: Cell, x: Value, states: Sequence[Value], weights: Sequence[Value], reverse: bool
) -> tuple[Value, Sequence[Value]]:
    """Computes one layer in one direction over `x` [steps, batch, features]. The inputs of all steps are projected at
    once."""
    to_gates, *recurrent = (weights[0], weights[1], *weights[3:])
    projected = ctx.dot(x, to_gates, ([2], [1]))
    if len(weights) == 4:
        projected = ctx.plus(projected, weights[2])
    steps, batch, _ = ctx.extents(projected)
    last = scalar_of(ctx, steps - 1)
    zero = ctx.scalar(0, I64)
    outputs = ctx.full((steps, batch, states[0].type.shape[1]), 0, x.type.element_type)
    carried = [zero, outputs, *states]
    types = [value.type for value in carried]

    def more(emit: Emitter, step: Value, *rest: Value) -> Value:
        return emit.compare("LE", step, last)

    def advance(emit: Emitter, step: Value, outputs: Value, *states: Value) -> list[Value]:
        at = emit.minus(last, step) if reverse else step
        following = cell(emit, loops.row(emit, projected, at), states, *recurrent)
        outputs = loops.with_row(emit, outputs, following[0], at)
        return [emit.plus(step, emit.scalar(1, I64)), outputs, *following]

    loop = ops.While(carried, cond=ctx.region(types, more), body=ctx.region(types, advance))
    _, outputs, *ended = ctx.add(loop)
    return outputs, ended


def _projected(emit: Emitter, state: Value, weight: Value, bias: Value | None) -> Value:
    product = emit.dot(state, weight, ([1], [1]))
    return product if bias is None else emit.plus(product, bias)


def parts(emit: Emitter, x: Value, count: int) -> list[Value]:
    """Returns the gates of a cell, which are side by side."""
    width = x.type.shape[1] // count
    return [emit.slice(x, 1, i * width, (i + 1) * width) for i in range(count)]


def _lstm_cell(
    emit: Emitter, x: Value, states: Sequence[Value], weight: Value, bias: Value | None = None
) -> tuple[Value, ...]:
    hidden, memory = states
    gates = emit.plus(x, _projected(emit, hidden, weight, bias))
    enter, forget, candidate, leave = parts(emit, gates, 4)
    enter, forget, leave = (emit.add(ops.Logistic(gate)) for gate in (enter, forget, leave))
    kept = emit.times(forget, memory)
    memory = emit.plus(kept, emit.times(enter, emit.add(ops.Tanh(candidate))))
    return emit.times(leave, emit.add(ops.Tanh(memory))), memory


def _gru_cell(
    emit: Emitter, x: Value, states: Sequence[Value], weight: Value, bias: Value | None = None
) -> tuple[Value, ...]:
    (hidden,) = states
    reset, update, candidate = parts(emit, x, 3)
    from_reset, from_update, from_candidate = parts(emit, _projected(emit, hidden, weight, bias), 3)
    reset = emit.add(ops.Logistic(emit.plus(reset, from_reset)))
    update = emit.add(ops.Logistic(emit.plus(update, from_update)))
    candidate = emit.add(ops.Tanh(emit.plus(candidate, emit.times(reset, from_candidate))))
    return (emit.plus(candidate, emit.times(update, emit.minus(hidden, candidate))),)


def _tanh_cell(
    emit: Emitter, x: Value, states: Sequence[Value], weight: Value, bias: Value | None = None
) -> tuple[Value, ...]:
    return (emit.add(ops.Tanh(emit.plus(x, _projected(emit, states[0], weight, bias)))),)


def _relu_cell(
    emit: Emitter, x: Value, states: Sequence[Value], weight: Value, bias: Value | None = None
) -> tuple[Value, ...]:
    total = emit.plus(x, _projected(emit, states[0], weight, bias))
    return (emit.binary(ops.Maximum, total, emit.full_like(total, 0)),)


CELLS = {
    MODES["rnn_relu"]: _relu_cell,
    MODES["rnn_tanh"]: _tanh_cell,
    LSTM: _lstm_cell,
    MODES["gru"]: _gru_cell,
}
"""The cell of each mode."""
