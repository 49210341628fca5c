"""Recurrent layers: a loop over time for each direction. Sequences of different lengths keep their last state after
their end; for the backward direction, each is reversed separately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trivium.importers.extents import larger
from trivium.importers.onnx import elementwise
from trivium.importers.onnx.context import Context, axis_of, require_rank, require_shape, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import I64

Activation = Callable[[Context, Value], Value]
Step = Callable[[Context, Value, list[Value]], list[Value]]
"""From the input at one time and the state to the next state, whose first part is the output."""

Gates = Callable[[Context, Value, Value], Value]
"""From the input at one time and the last output to all gates of an LSTM layer, without their biases."""

LSTM = ("Sigmoid", "Tanh", "Tanh")
"""The activations of an LSTM layer, unless others are given."""


@dataclass(frozen=True)
class Layer:
    """The attributes of a node, and its inputs, whose first dimension is the direction."""

    direction: str
    activations: Sequence[Activation]
    clip: float | None
    w: Value
    r: Value
    bias: Value | None
    lengths: Value | None


@dataclass(frozen=True)
class Sizes:
    """What determines the sizes of a layer: how many gates it has, its attribute `hidden_size`, and its other inputs
    with such a size."""

    gates: int
    hidden: int | None
    states: Sequence[Value | None]
    peepholes: Value | None = None


def _activation(ctx: Context, name: str, alpha: float | None, beta: float | None) -> Activation:
    options = {key: value for key, value in (("alpha", alpha), ("beta", beta)) if value is not None}
    simple = {"sigmoid": ops.Logistic, "tanh": ops.Tanh}
    rules = {
        "relu": elementwise.relu,
        "leakyrelu": elementwise.leaky_relu,
        "elu": lambda ctx, x, alpha=1.0: ctx.select(ctx.compare("GT", x, ctx.full_like(x, 0)), x, ctx.scaled(
            ctx.add(ops.ExponentialMinusOne(x)), alpha)),
        "hardsigmoid": elementwise.hard_sigmoid,
        "softsign": elementwise.softsign,
        "softplus": elementwise.softplus,
        "affine": lambda ctx, x, alpha=1.0, beta=0.0: ctx.plus(ctx.scaled(x, alpha), ctx.full_like(x, beta)),
        "thresholdedrelu": lambda ctx, x, alpha=1.0: ctx.select(
            ctx.compare("GT", x, ctx.full_like(x, alpha)), x, ctx.full_like(x, 0)),
        "scaledtanh": lambda ctx, x, alpha=1.0, beta=1.0: ctx.scaled(ctx.add(ops.Tanh(ctx.scaled(x, beta))), alpha),
    }  # fmt: skip
    key = name.lower()
    if key in simple:
        return lambda ctx, x: ctx.add(simple[key](x))
    if key not in rules:
        ctx.unsupported("activations", name, f"one of {', '.join((*simple, *rules))}")
    found = rules[key]
    return lambda ctx, x: found(ctx, x, **options)


def _activations(
    ctx: Context, names: Sequence[str], alphas: Sequence[float] | None, betas: Sequence[float] | None
) -> list[Activation]:
    """Returns functions by their names; the numbers are for those that take some, in order."""
    takes = {"alpha": ("leakyrelu", "elu", "hardsigmoid", "affine", "thresholdedrelu", "scaledtanh"),
             "beta": ("hardsigmoid", "affine", "scaledtanh")}  # fmt: skip
    queues = {"alpha": list(alphas or ()), "beta": list(betas or ())}
    found = []
    for name in names:
        numbers = {key: queue.pop(0) if name.lower() in takes[key] and queue else None for key, queue in queues.items()}
        found.append(_activation(ctx, name, numbers["alpha"], numbers["beta"]))
    return found


@rule("RNN")
def rnn(
    ctx: Context, x: Value, w: Value, r: Value, bias: Value | None = None, lengths: Value | None = None,
    state: Value | None = None, activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None, activations: Sequence[str] | None = None,
    clip: float | None = None, direction: str = "forward", hidden_size: int | None = None, layout: int = 0,
) -> Sequence[Value]:  # fmt: skip
    """RNN(X, W, R, B, sequence_lens, initial_h, ...): H = f(X W + H R + biases)"""
    functions = functions_of(ctx, activations, ["Tanh"], w, activation_alpha, activation_beta)
    layer = Layer(direction, functions, clip, w, r, bias, lengths)

    def step(ctx: Context, index: int) -> Step:
        activate = layer.activations[index]
        weights, recurrent, biases = _weights(ctx, layer, index)
        offset = ctx.plus(*biases)

        def advance(emit: Context, row: Value, state: list[Value]) -> list[Value]:
            total = emit.plus(emit.plus(_times(emit, row, weights), _times(emit, state[0], recurrent)), offset)
            return [activate(emit, _clipped(emit, total, clip))]

        return advance

    return _run(ctx, layer, x, Sizes(1, hidden_size, [state]), step, layout)


@rule("GRU")
def gru(
    ctx: Context, x: Value, w: Value, r: Value, bias: Value | None = None, lengths: Value | None = None,
    state: Value | None = None, activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None, activations: Sequence[str] | None = None,
    clip: float | None = None, direction: str = "forward", hidden_size: int | None = None, layout: int = 0,
    linear_before_reset: int = 0,
) -> Sequence[Value]:  # fmt: skip
    """GRU(X, W, R, B, sequence_lens, initial_h, ...): gates z, r, h"""
    functions = functions_of(ctx, activations, ["Sigmoid", "Tanh"], w, activation_alpha, activation_beta)
    layer = Layer(direction, functions, clip, w, r, bias, lengths)

    def step(ctx: Context, index: int) -> Step:
        f, g = layer.activations[2 * index : 2 * index + 2]
        weights, recurrent, (wb, rb) = _weights(ctx, layer, index)
        recurrent_gates = _parts(ctx, recurrent, 3)
        recurrent_offsets = _parts(ctx, rb, 3)

        def advance(emit: Context, row: Value, state: list[Value]) -> list[Value]:
            hidden = state[0]
            given = _parts(emit, emit.plus(_times(emit, row, weights), wb), 3, 1)
            back = [emit.plus(_times(emit, hidden, matrix), offset) for matrix, offset in
                    zip(recurrent_gates, recurrent_offsets, strict=True)]  # fmt: skip
            z, reset = (f(emit, _clipped(emit, emit.plus(given[i], back[i]), clip)) for i in (0, 1))
            if linear_before_reset:
                last = emit.times(reset, back[2])
            else:
                last = emit.plus(_times(emit, emit.times(reset, hidden), recurrent_gates[2]), recurrent_offsets[2])
            new = g(emit, _clipped(emit, emit.plus(given[2], last), clip))
            return [emit.plus(emit.times(emit.minus(emit.full_like(z, 1), z), new), emit.times(z, hidden))]

        return advance

    return _run(ctx, layer, x, Sizes(3, hidden_size, [state]), step, layout)


@rule("LSTM")
def lstm(
    ctx: Context, x: Value, w: Value, r: Value, bias: Value | None = None, lengths: Value | None = None,
    hidden: Value | None = None, cell: Value | None = None, peepholes: Value | None = None,
    activation_alpha: Sequence[float] | None = None, activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None, clip: float | None = None, direction: str = "forward",
    hidden_size: int | None = None, input_forget: int = 0, layout: int = 0,
) -> Sequence[Value]:  # fmt: skip
    """LSTM(X, W, R, B, sequence_lens, initial_h, initial_c, P, ...): gates i, o, f, c"""
    functions = functions_of(ctx, activations, LSTM, w, activation_alpha, activation_beta)
    layer = Layer(direction, functions, clip, w, r, bias, lengths)

    def step(ctx: Context, index: int) -> Step:
        weights, recurrent = (direction_of(ctx, x, index) for x in (w, r))

        def gates(emit: Context, row: Value, hidden: Value) -> Value:
            return emit.plus(_times(emit, row, weights), _times(emit, hidden, recurrent))

        return lstm_step(ctx, layer, index, gates, peepholes, input_forget)

    return _run(ctx, layer, x, Sizes(4, hidden_size, [hidden, cell], peepholes), step, layout)


def lstm_step(ctx: Context, layer: Layer, index: int, gates: Gates, peepholes: Value | None, input_forget: int) -> Step:
    """Returns the step of a direction of an LSTM layer, from the function that computes its gates."""
    f, g, h = layer.activations[3 * index : 3 * index + 3]
    offset = ctx.plus(*_biases(ctx, layer, index))
    seen = None if peepholes is None else _parts(ctx, direction_of(ctx, peepholes, index), 3)

    def peek(emit: Context, gate: Value, which: int, cell: Value) -> Value:
        gate = gate if seen is None else emit.plus(gate, emit.times(seen[which], cell))
        return f(emit, _clipped(emit, gate, layer.clip))

    def advance(emit: Context, row: Value, state: list[Value]) -> list[Value]:
        hidden, cell = state
        i, o, forget, c = _parts(emit, emit.plus(gates(emit, row, hidden), offset), 4, 1)
        i = peek(emit, i, 0, cell)
        forget = emit.minus(emit.full_like(i, 1), i) if input_forget else peek(emit, forget, 2, cell)
        new = emit.plus(emit.times(forget, cell), emit.times(i, g(emit, _clipped(emit, c, layer.clip))))
        return [emit.times(peek(emit, o, 1, new), h(emit, new)), new]

    return advance


def functions_of(
    ctx: Context, names: Sequence[str] | None, defaults: Sequence[str], w: Value, alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
) -> list[Activation]:  # fmt: skip
    """Returns the activations of a layer with such weights, for each of its directions."""
    require_rank(w, "W", 3)
    count = w.type.static_shape[0]
    return _activations(ctx, names or [*defaults] * count, alphas, betas)


def _weights(ctx: Context, layer: Layer, index: int) -> tuple[Value, Value, tuple[Value, Value]]:
    """Returns the weights of one direction, and the two halves of its biases."""
    w, r = (direction_of(ctx, x, index) for x in (layer.w, layer.r))
    return w, r, _biases(ctx, layer, index)


def _biases(ctx: Context, layer: Layer, index: int) -> tuple[Value, Value]:
    if layer.bias is None:
        zero = ctx.full(layer.w.type.static_shape[1:2], 0, layer.w.type.element_type)
        return zero, zero
    wb, rb = _parts(ctx, direction_of(ctx, layer.bias, index), 2)
    return wb, rb


def direction_of(ctx: Context, x: Value, index: int) -> Value:
    """Returns the part of one direction."""
    return ctx.squeeze(ctx.slice(x, 0, index, index + 1), [0])


def _parts(ctx: Context, x: Value, count: int, axis: int = 0) -> list[Value]:
    each = x.type.shape[axis]
    assert each is not None
    each //= count
    return [ctx.slice(x, axis, i * each, (i + 1) * each) for i in range(count)]


def _times(ctx: Context, x: Value, matrix: Value) -> Value:
    return ctx.dot(x, matrix, ([1], [1]))


def _clipped(ctx: Context, x: Value, clip: float | None) -> Value:
    if clip is None:
        return x
    kind = x.type.element_type
    return ctx.add(ops.Clamp(ctx.scalar(-clip, kind), x, ctx.scalar(clip, kind)))


def _run(
    ctx: Context, layer: Layer, x: Value, sizes: Sizes, step: Callable[[Context, int], Step], layout: int
) -> list[Value]:
    """Returns all outputs [time, direction, batch, hidden], and each part of the last state; batch first if asked."""
    require_sizes(ctx, layer, x, sizes, layout)
    states = sizes.states
    if layout:
        x = ctx.transpose(x, [1, 0, 2])
        states = [None if state is None else ctx.transpose(state, [1, 0, 2]) for state in states]
    y, *lasts = run(ctx, layer, x, states, step)
    if layout:
        y, lasts = ctx.transpose(y, [2, 0, 1, 3]), [ctx.transpose(last, [1, 0, 2]) for last in lasts]
    return [y, *lasts]


def run(
    ctx: Context, layer: Layer, x: Value, states: Sequence[Value | None], step: Callable[[Context, int], Step]
) -> list[Value]:
    """Returns all outputs [time, direction, batch, hidden], and each part of the last state, of rows [time, batch, ...]
    that the steps of all directions read."""
    shape = [ctx.extent(x, 1), layer.r.type.static_shape[-1]]
    outputs, finals = [], []
    for index in range(_count(layer)):
        backward = layer.direction == "reverse" or index == 1
        rows = reverse_sequences(ctx, x, layer.lengths) if backward else x
        first = [
            ctx.full(shape, 0, x.type.element_type) if state is None else direction_of(ctx, state, index)
            for state in states
        ]
        made, last = _over_time(ctx, rows, first, step(ctx, index), layer.lengths)
        outputs.append(ctx.unsqueeze(reverse_sequences(ctx, made, layer.lengths) if backward else made, [1]))
        finals.append([ctx.unsqueeze(part, [0]) for part in last])
    lasts = [ctx.concatenate(list(parts), 0) for parts in zip(*finals, strict=True)]
    return [ctx.concatenate(outputs, 1), *lasts]


def _count(layer: Layer) -> int:
    return 2 if layer.direction == "bidirectional" else 1


def require_sizes(ctx: Context, layer: Layer, x: Value, sizes: Sizes, layout: int = 0) -> None:
    """Rejects inputs whose sizes do not fit together."""
    if layer.direction not in ("forward", "reverse", "bidirectional"):
        ctx.unsupported("direction", layer.direction, "forward, reverse or bidirectional")
    require_rank(x, "X", 3)
    require_rank(layer.r, "R", 3)
    count, hidden = _count(layer), layer.r.type.shape[2]
    if sizes.hidden is not None and hidden != sizes.hidden:
        raise Error(f"R has type {layer.r.type}, expected rows of hidden_size, {sizes.hidden}")
    assert hidden is not None, "weights have static shapes"
    batch = x.type.shape[0 if layout else 1]
    state = [batch, count, hidden] if layout else [count, batch, hidden]
    expected = [
        ("W", layer.w, [count, sizes.gates * hidden, x.type.shape[2]]),
        ("R", layer.r, [count, sizes.gates * hidden, hidden]),
        ("B", layer.bias, [count, 2 * sizes.gates * hidden]),
        ("sequence_lens", layer.lengths, [batch]),
        *(("initial state", value, state) for value in sizes.states),
        ("P", sizes.peepholes, [count, 3 * hidden]),
    ]
    for name, value, shape in expected:
        if value is not None:
            require_shape(value, f"{name} of a {layer.direction} layer", shape)


def _over_time(
    ctx: Context, rows: Value, state: list[Value], step: Step, lengths: Value | None
) -> tuple[Value, list[Value]]:
    turns = ctx.extent(rows, 0)
    limit = turns.value if not isinstance(turns, int) else ctx.scalar(turns, I64)
    room = ctx.full([larger(ctx, turns, 1), *ctx.extents(state[0])], 0, state[0].type.element_type)
    full = ctx.not_empty(rows)
    ends = None if lengths is None else ctx.convert(ctx.unsqueeze(lengths, [1]), I64)
    carried = [ctx.scalar(0, I64), room, *state]
    types = [value.type for value in carried]

    def goes_on(emit: Context, turn: Value, *values: Value) -> Value:
        return emit.compare("LT", turn, limit)

    def body(emit: Context, turn: Value, made: Value, *old: Value) -> list[Value]:
        new = step(emit, emit.take(full, turn, 0), list(old))
        output = new[0]
        if ends is not None:
            is_over = emit.compare("GE", turn, ends)
            output = emit.select(is_over, emit.full_like(output, 0), output)
            new = [emit.select(is_over, before, after) for before, after in zip(old, new, strict=True)]
        zero = emit.scalar(0, I64)
        made = emit.add(ops.DynamicUpdateSlice(made, emit.unsqueeze(output, [0]), [turn, zero, zero]))
        return [emit.plus(turn, emit.scalar(1, I64)), made, *new]

    _, made, *last = ctx.add(ops.While(carried, ctx.region(types, goes_on), ctx.region(types, body)))
    return ctx.slice(made, 0, 0, turns), last


def reverse_sequences(ctx: Context, x: Value, lengths: Value | None, time: int = 0, batch: int = 1) -> Value:
    """Returns sequences of which each is reversed up to its length."""
    if lengths is None:
        return ctx.add(ops.Reverse(x, dimensions=(time,)))
    extents = ctx.extents(x)
    places = ctx.iota([extents[time], extents[batch]], 0)
    ends = ctx.unsqueeze(ctx.convert(lengths, I64), [0])
    turned = ctx.minus(ctx.minus(ends, ctx.scalar(1, I64)), places)
    source = ctx.select(ctx.compare("LT", places, ends), turned, places)
    indices = ctx.concatenate([ctx.unsqueeze(part, [2]) for part in (source, ctx.iota_like(places, 1))], 2)
    rest = [d for d in range(x.type.rank) if d not in (time, batch)]
    moved = ctx.transpose(x, [time, batch, *rest])
    numbers = ops.GatherDimensionNumbers(
        offset_dims=tuple(range(2, x.type.rank)), collapsed_slice_dims=(0, 1), start_index_map=(0, 1),
        index_vector_dim=2,
    )  # fmt: skip
    taken = ctx.gather(moved, indices, numbers, [1, 1, *ctx.extents(moved)[2:]])
    order = [time, batch, *rest]
    return ctx.transpose(taken, [order.index(d) for d in range(x.type.rank)])


@rule("ReverseSequence")
def reverse_sequence(ctx: Context, x: Value, lengths: Value, batch_axis: int = 1, time_axis: int = 0) -> Value:
    """ReverseSequence(input, sequence_lens, batch_axis, time_axis)"""
    rank = x.type.rank
    return reverse_sequences(ctx, x, lengths, axis_of(time_axis, rank), axis_of(batch_axis, rank))
