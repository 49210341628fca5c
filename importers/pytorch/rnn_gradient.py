"""The gradient of an LSTM layer. The results of the forward pass are enough to compute the gates of all steps at once;
two loops remain, forward for the memory and backward for the gradients that flow from step to step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from trivium.importers import loops
from trivium.importers.emit import Emitter
from trivium.importers.pytorch.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64


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
    if mode != 2:
        ctx.unsupported("mode", mode, "2, an LSTM")
    if batch_sizes:
        ctx.unsupported("batch_sizes", batch_sizes, "none: sequences of one length")
    if batch_first:
        ctx.unsupported("batch_first", True, "False: steps before the batch")
    zeros, shape = ctx.full_like(output, 0), output.type.static_shape[1:]
    in_order = [
        ctx.add(ops.Reverse(x, dimensions=(0,))) if reverse else x for x in (input, output, grad_output or zeros)
    ]
    x, outputs, of_outputs = in_order
    hidden, memory = (ctx.reshape(state, shape) for state in (hx_, cx_tmp))
    of_last = [
        ctx.reshape(g, shape) if g is not None else ctx.full(shape, 0, x.type.element_type) for g in (grad_hy, grad_cy)
    ]
    earlier = _shifted(ctx, hidden, outputs)
    biases = ctx.plus(weight3, weight4) if has_biases else None
    gates = _gates(ctx, x, earlier, weight1, weight2, biases)
    memories = _memories(ctx, gates, memory)
    of_gates, of_hidden, of_memory = _backward(ctx, gates, memories, memory, weight2, of_outputs, of_last)
    of_x = ctx.dot(of_gates, weight1, ([2], [0]))
    of_x = ctx.add(ops.Reverse(of_x, dimensions=(0,))) if reverse else of_x
    of_weights = [ctx.dot(of_gates, side, ([0, 1], [0, 1])) for side in (x, earlier)]
    of_bias = ctx.reduce(ops.Add, of_gates, (0, 1))
    found = (of_x, *of_weights, of_bias, of_bias, of_hidden, of_memory)
    # PyTorch says that some of them are f32 where its weights are bf16.
    return tuple(
        ctx.convert(ctx.reshape(value, kind.static_shape), kind.element_type)
        for value, kind in zip(found, ctx.result_types, strict=True)
    )


class Gates(NamedTuple):
    """The gates of all steps, [steps, batch, hidden] each."""

    enter: Value
    forget: Value
    candidate: Value
    leave: Value


def _gates(ctx: Context, x: Value, earlier: Value, to_gates: Value, recurrent: Value, biases: Value | None) -> Gates:
    total = ctx.plus(ctx.dot(x, to_gates, ([2], [1])), ctx.dot(earlier, recurrent, ([2], [1])))
    total = total if biases is None else ctx.plus(total, biases)
    width = total.type.shape[2] // 4
    enter, forget, candidate, leave = (ctx.slice(total, 2, i * width, (i + 1) * width) for i in range(4))
    enter, forget, leave = (ctx.add(ops.Logistic(gate)) for gate in (enter, forget, leave))
    return Gates(enter, forget, ctx.add(ops.Tanh(candidate)), leave)


def _shifted(ctx: Context, first: Value, sequence: Value) -> Value:
    """Returns the state at the start of each step: `first`, then all of a sequence but its last element."""
    return ctx.concatenate([ctx.unsqueeze(first, [0]), ctx.slice(sequence, 0, 0, sequence.type.shape[0] - 1)], 0)


def _memories(ctx: Context, gates: Gates, memory: Value) -> Value:
    """Returns the memory after each step."""
    entering = ctx.times(gates.enter, gates.candidate)

    def advance(emit: Emitter, at: Value, memories: Value, memory: Value) -> list[Value]:
        memory = emit.plus(emit.times(loops.row(emit, gates.forget, at), memory), loops.row(emit, entering, at))
        return [loops.with_row(emit, memories, memory, at), memory]

    return _loop(ctx, advance, [ctx.full_like(entering, 0), memory])[0]


def _backward(
    ctx: Context,
    gates: Gates,
    memories: Value,
    memory: Value,
    recurrent: Value,
    of_outputs: Value,
    of_last: Sequence[Value],
) -> tuple[Value, Value, Value]:
    """Returns the gradients of the gates before their functions, [steps, batch, 4 * hidden], and of the first
    states."""
    one = ctx.scalar_like(1, memories)
    shown = ctx.add(ops.Tanh(memories))
    # For the hidden state: its effect on the memory and on the output gate; for the memory: its effect on the others.
    to_memory = ctx.times(gates.leave, ctx.minus(one, ctx.times(shown, shown)))
    to_leave = ctx.times(shown, slope(ctx, gates.leave))
    to_enter = ctx.times(gates.candidate, slope(ctx, gates.enter))
    to_forget = ctx.times(_shifted(ctx, memory, memories), slope(ctx, gates.forget))
    to_candidate = ctx.times(gates.enter, ctx.minus(one, ctx.times(gates.candidate, gates.candidate)))
    steps, batch, width = memories.type.static_shape

    def retreat(emit: Emitter, step: Value, of_gates: Value, of_hidden: Value, of_memory: Value) -> list[Value]:
        at = emit.minus(emit.scalar(steps - 1, I64), step)
        of_hidden = emit.plus(of_hidden, loops.row(emit, of_outputs, at))
        of_memory = emit.plus(of_memory, emit.times(of_hidden, loops.row(emit, to_memory, at)))
        inner = [emit.times(of_memory, loops.row(emit, factor, at)) for factor in (to_enter, to_forget, to_candidate)]
        row = emit.concatenate([*inner, emit.times(of_hidden, loops.row(emit, to_leave, at))], 1)
        of_gates = loops.with_row(emit, of_gates, row, at)
        return [
            of_gates,
            emit.dot(row, recurrent, ([1], [0])),
            emit.times(of_memory, loops.row(emit, gates.forget, at)),
        ]

    empty = ctx.full((steps, batch, 4 * width), 0, memories.type.element_type)
    of_gates, of_hidden, of_memory = _loop(ctx, retreat, [empty, *of_last])
    return of_gates, of_hidden, of_memory


def slope(ctx: Context, gate: Value) -> Value:
    """Returns the derivative of a logistic function, from its value."""
    return ctx.times(gate, ctx.minus(ctx.scalar_like(1, gate), gate))


def _loop(ctx: Context, body: Callable[..., list[Value]], carried: Sequence[Value]) -> Sequence[Value]:
    """Runs `body(emit, step, *carried)` once for each step of the first carried value."""
    steps = carried[0].type.shape[0]
    values = [ctx.scalar(0, I64), *carried]
    types = [value.type for value in values]

    def more(emit: Emitter, step: Value, *rest: Value) -> Value:
        return emit.compare("LT", step, emit.scalar(steps, I64))

    def advance(emit: Emitter, step: Value, *rest: Value) -> list[Value]:
        return [emit.plus(step, emit.scalar(1, I64)), *body(emit, step, *rest)]

    return ctx.add(ops.While(values, cond=ctx.region(types, more), body=ctx.region(types, advance)))[1:]
