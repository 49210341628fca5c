"""The gradients of layers of recurrent networks. The results of the forward pass are enough to compute the gates of all
steps at once; what remains is a loop backward for the gradients that flow from step to step, and for an LSTM one
forward for its memory. The rule has what all layers share; after it, each cell has a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from trivium.importers import loops
from trivium.importers.emit import Emitter
from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.rnn import LSTM, MODES, require_plain_layer
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64


class Layer(NamedTuple):
    """What a layer computed, and the gradients of its results. Sequences are in the order of its steps: [steps, batch,
    hidden], and several times as wide where they have several gates."""

    entering: Value
    """The products of the inputs, with their biases."""
    kept: Value
    """The products of the hidden states, with theirs."""
    earlier: Value
    """The hidden state at the start of each step."""
    outputs: Value
    memory: Value
    """An LSTM's memory at the start of the first step."""
    recurrent: Value
    """The weights of the hidden state."""
    of_outputs: Value
    of_last: Sequence[Value]


class Gradients(NamedTuple):
    """The gradients of what a layer computed, and of its first states."""

    of_entering: Value
    of_kept: Value
    of_states: Sequence[Value]


@rule("aten.mkldnn_rnn_layer_backward.default")
def mkldnn_rnn_layer_backward(
    ctx: Context,
    input: Value,
    weight1: Value,
    weight2: Value,
    weight3: Value,
    weight4: Value,
    hx_: Value,
    cx_tmp: Value,
    output: Value,
    hy_: Value,
    cy_: Value,
    grad_output: Value | None,
    grad_hy: Value | None,
    grad_cy: Value | None,
    reverse: bool,
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    train: bool,
    bidirectional: bool,
    batch_sizes: Sequence[int],
    batch_first: bool,
    workspace: Value,
) -> tuple[Value, ...]:
    """mkldnn_rnn_layer_backward(Tensor input, Tensor weight1, Tensor weight2, Tensor weight3, Tensor weight4, Tensor
    hx_, Tensor cx_tmp, Tensor output, Tensor hy_, Tensor cy_, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy,
    bool reverse, int mode, int hidden_size, int num_layers, bool has_biases, bool train, bool bidirectional, int[]
    batch_sizes, bool batch_first, Tensor workspace) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"""
    require_plain_layer(ctx, mode, batch_sizes, batch_first)
    zeros, shape = ctx.full_like(output, 0), output.type.static_shape[1:]
    x, outputs, of_outputs = (_in_order(ctx, x, reverse) for x in (input, output, grad_output or zeros))
    hidden = ctx.reshape(hx_, shape)
    memory = ctx.reshape(cx_tmp, shape) if mode == LSTM else hidden
    of_last = [
        ctx.reshape(g, shape) if g is not None else ctx.full(shape, 0, x.type.element_type) for g in (grad_hy, grad_cy)
    ]
    earlier = _shifted(ctx, hidden, outputs)
    entering, kept = (ctx.dot(side, weight, ([2], [1])) for side, weight in ((x, weight1), (earlier, weight2)))
    if has_biases:
        entering, kept = ctx.plus(entering, weight3), ctx.plus(kept, weight4)
    layer = Layer(entering, kept, earlier, outputs, memory, weight2, of_outputs, of_last)
    of_entering, of_kept, of_states = GRADIENTS[mode](ctx, layer)
    found = (
        _in_order(ctx, ctx.dot(of_entering, weight1, ([2], [0])), reverse),
        *(ctx.dot(of, side, ([0, 1], [0, 1])) for of, side in ((of_entering, x), (of_kept, earlier))),
        *(ctx.reduce(ops.Add, of, (0, 1)) for of in (of_entering, of_kept)),
        *(of_states if mode == LSTM else [*of_states, cx_tmp]),
    )
    # PyTorch, if it describes them, says that some of them are f32 where its weights are bf16.
    return tuple(
        ctx.convert(ctx.reshape(value, kind.static_shape), kind.element_type)
        for value, kind in zip(found, ctx.result_types, strict=True)
    )


def _in_order(ctx: Context, sequence: Value, reverse: bool) -> Value:
    """Returns a sequence in the order of the steps, or one in that order as it lies."""
    return ctx.add(ops.Reverse(sequence, dimensions=(0,))) if reverse else sequence


def _shifted(ctx: Context, first: Value, sequence: Value) -> Value:
    """Returns the state at the start of each step: `first`, then all of a sequence but its last element."""
    return ctx.concatenate([ctx.unsqueeze(first, [0]), ctx.slice(sequence, 0, 0, sequence.type.shape[0] - 1)], 0)


def _gates(ctx: Context, total: Value, count: int) -> list[Value]:
    width = total.type.shape[2] // count
    return [ctx.slice(total, 2, i * width, (i + 1) * width) for i in range(count)]


def _of_lstm(ctx: Context, layer: Layer) -> Gradients:
    enter, forget, candidate, leave = _gates(ctx, ctx.plus(layer.entering, layer.kept), 4)
    enter, forget, leave = (ctx.add(ops.Logistic(gate)) for gate in (enter, forget, leave))
    candidate = ctx.add(ops.Tanh(candidate))
    memories = _memories(ctx, forget, ctx.times(enter, candidate), layer.memory)
    shown = ctx.add(ops.Tanh(memories))
    # For the hidden state: its effect on the memory and on the output gate; for the memory: its effect on the others.
    to_memory = ctx.times(leave, tanh_slope(ctx, shown))
    to_leave = ctx.times(shown, slope(ctx, leave))
    inner = (
        ctx.times(candidate, slope(ctx, enter)),
        ctx.times(_shifted(ctx, layer.memory, memories), slope(ctx, forget)),
        ctx.times(enter, tanh_slope(ctx, candidate)),
    )

    def retreat(emit: Emitter, at: Value, of_gates: Value, of_hidden: Value, of_memory: Value) -> list[Value]:
        of_hidden = emit.plus(of_hidden, loops.row(emit, layer.of_outputs, at))
        of_memory = emit.plus(of_memory, emit.times(of_hidden, loops.row(emit, to_memory, at)))
        of_inner = [emit.times(of_memory, loops.row(emit, factor, at)) for factor in inner]
        row = emit.concatenate([*of_inner, emit.times(of_hidden, loops.row(emit, to_leave, at))], 1)
        of_gates = loops.with_row(emit, of_gates, row, at)
        of_memory = emit.times(of_memory, loops.row(emit, forget, at))
        return [of_gates, emit.dot(row, layer.recurrent, ([1], [0])), of_memory]

    of_gates, *of_states = _loop(ctx, retreat, [ctx.full_like(layer.entering, 0), *layer.of_last], reverse=True)
    return Gradients(of_gates, of_gates, of_states)


def _memories(ctx: Context, forget: Value, entering: Value, memory: Value) -> Value:
    """Returns an LSTM's memory after each step."""

    def advance(emit: Emitter, at: Value, memories: Value, memory: Value) -> list[Value]:
        memory = emit.plus(emit.times(loops.row(emit, forget, at), memory), loops.row(emit, entering, at))
        return [loops.with_row(emit, memories, memory, at), memory]

    return _loop(ctx, advance, [ctx.full_like(entering, 0), memory])[0]


def _of_gru(ctx: Context, layer: Layer) -> Gradients:
    entering, kept = (_gates(ctx, total, 3) for total in (layer.entering, layer.kept))
    reset, update = (ctx.add(ops.Logistic(ctx.plus(a, b))) for a, b in zip(entering[:2], kept[:2], strict=True))
    candidate = ctx.add(ops.Tanh(ctx.plus(entering[2], ctx.times(reset, kept[2]))))
    # The effects of the hidden state after a step on what the gates of that step are computed from.
    to_candidate = ctx.times(ctx.minus(ctx.scalar_like(1, update), update), tanh_slope(ctx, candidate))
    to_gates = (
        ctx.times(ctx.times(to_candidate, kept[2]), slope(ctx, reset)),
        ctx.times(ctx.minus(layer.earlier, candidate), slope(ctx, update)),
        ctx.times(to_candidate, reset),
    )

    def retreat(emit: Emitter, at: Value, of_hiddens: Value, of_hidden: Value) -> list[Value]:
        of_hidden = emit.plus(of_hidden, loops.row(emit, layer.of_outputs, at))
        of_gates = emit.concatenate([emit.times(of_hidden, loops.row(emit, factor, at)) for factor in to_gates], 1)
        flowing = emit.plus(
            emit.times(of_hidden, loops.row(emit, update, at)), emit.dot(of_gates, layer.recurrent, ([1], [0]))
        )
        return [loops.with_row(emit, of_hiddens, of_hidden, at), flowing]

    of_hiddens, of_first = _loop(ctx, retreat, [ctx.full_like(update, 0), layer.of_last[0]], reverse=True)
    of_reset, of_update, of_kept = (ctx.times(of_hiddens, factor) for factor in to_gates)
    return Gradients(
        ctx.concatenate([of_reset, of_update, ctx.times(of_hiddens, to_candidate)], 2),
        ctx.concatenate([of_reset, of_update, of_kept], 2),
        [of_first],
    )


def _of_tanh(ctx: Context, layer: Layer) -> Gradients:
    return _of_activated(ctx, layer, tanh_slope(ctx, layer.outputs))


def _of_relu(ctx: Context, layer: Layer) -> Gradients:
    is_positive = ctx.compare("GT", layer.outputs, ctx.full_like(layer.outputs, 0))
    return _of_activated(ctx, layer, ctx.convert(is_positive, layer.outputs.type.element_type))


def _of_activated(ctx: Context, layer: Layer, slopes: Value) -> Gradients:
    """Returns the gradients of a layer without gates, from the derivatives of its activation."""

    def retreat(emit: Emitter, at: Value, of_sums: Value, of_hidden: Value) -> list[Value]:
        of_hidden = emit.plus(of_hidden, loops.row(emit, layer.of_outputs, at))
        row = emit.times(of_hidden, loops.row(emit, slopes, at))
        return [loops.with_row(emit, of_sums, row, at), emit.dot(row, layer.recurrent, ([1], [0]))]

    of_sums, of_first = _loop(ctx, retreat, [ctx.full_like(slopes, 0), layer.of_last[0]], reverse=True)
    return Gradients(of_sums, of_sums, [of_first])


GRADIENTS: dict[int, Callable[[Context, Layer], Gradients]] = {
    MODES["rnn_relu"]: _of_relu,
    MODES["rnn_tanh"]: _of_tanh,
    LSTM: _of_lstm,
    MODES["gru"]: _of_gru,
}
"""The function of the cell of each mode."""


def slope(ctx: Context, gate: Value) -> Value:
    """Returns the derivative of a logistic function, from its value."""
    return ctx.times(gate, ctx.minus(ctx.scalar_like(1, gate), gate))


def tanh_slope(ctx: Context, x: Value) -> Value:
    """Returns the derivative of a hyperbolic tangent, from its value."""
    return ctx.minus(ctx.scalar_like(1, x), ctx.times(x, x))


def _loop(
    ctx: Context, body: Callable[..., list[Value]], carried: Sequence[Value], reverse: bool = False
) -> Sequence[Value]:
    """Runs `body(emit, at, *carried)` once for each step of the first carried value, from the last one on if
    `reverse`."""
    steps = carried[0].type.shape[0]
    values = [ctx.scalar(0, I64), *carried]
    types = [value.type for value in values]

    def more(emit: Emitter, step: Value, *rest: Value) -> Value:
        return emit.compare("LT", step, emit.scalar(steps, I64))

    def advance(emit: Emitter, step: Value, *rest: Value) -> list[Value]:
        at = emit.minus(emit.scalar(steps - 1, I64), step) if reverse else step
        return [emit.plus(step, emit.scalar(1, I64)), *body(emit, at, *rest)]

    return ctx.add(ops.While(values, cond=ctx.region(types, more), body=ctx.region(types, advance)))[1:]
