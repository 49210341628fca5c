"""Control flow: `torch.cond`, `while_loop`, `scan` and `map`, whose branches and bodies are separate graphs; and the
order of effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from torch import fx
from torch._ops import OpOverload

from trivium.importers import loops
from trivium.importers.common import refuse
from trivium.importers.extents import Size, larger
from trivium.importers.pytorch.context import STATE, Context, Meta, Number, Operand, Randomness, bind, rule
from trivium.importers.pytorch.random import randomness
from trivium.ir import ops
from trivium.ir.core import Region, Value
from trivium.ir.types import F32, I1, I32, I64, UI8, TensorType

STATE_BYTES = TensorType((*STATE.static_shape, 8), UI8)
"""The state of the random generator, as it is saved."""


@rule("higher_order.cond")
def cond(
    ctx: Context,
    pred: Value | Number,
    true_fn: fx.GraphModule,
    false_fn: fx.GraphModule,
    operands: Sequence[Operand] = (),
) -> tuple[Value, ...]:
    """cond(pred, true_fn, false_fn, operands) -> results"""
    branches = [_region(ctx, graph, (), operands) for graph in (true_fn, false_fn)]
    pred = ctx.reshape(ctx.tensor(pred, I1), ())
    return ctx.add(ops.If(pred, *branches, results=list(ctx.results)))


@rule("higher_order.while_loop")
def while_loop(
    ctx: Context,
    cond_fn: fx.GraphModule,
    body_fn: fx.GraphModule,
    carried_inputs: Sequence[Operand],
    additional_inputs: Sequence[Operand] = (),
) -> tuple[Value, ...]:
    """while_loop(cond_fn, body_fn, carried_inputs, additional_inputs) -> carried"""
    inits = _tensors(ctx, carried_inputs)
    types = [value.type for value in inits]
    regions = [_region(ctx, graph, types, additional_inputs) for graph in (cond_fn, body_fn)]
    return ctx.add(ops.While(inits, *regions))


def _tensors(ctx: Context, carried: Sequence[Operand]) -> list[Value]:
    tensors = [value for value in carried if isinstance(value, Value)]
    if len(tensors) < len(carried):
        ctx.unsupported("carried_inputs", "numbers", "tensors")
    return tensors


@rule("higher_order.while_loop_stack_output")
def while_loop_stack_output(
    ctx: Context,
    cond_fn: fx.GraphModule,
    body_fn: fx.GraphModule,
    carried_inputs: Sequence[Operand],
    additional_inputs: Sequence[Operand] = (),
) -> Sequence[Value]:
    """while_loop_stack_output(cond_fn, body_fn, carried_inputs, additional_inputs) -> all that was carried, stacked"""
    inits = _tensors(ctx, carried_inputs)
    count = len(inits)

    def loop(wholes: Sequence[Value]) -> Sequence[Value]:
        """Runs the loop, and writes what it carries after each iteration. Returns also the number of iterations."""
        start = [ctx.scalar(0, I64), *inits, *wholes]
        types = [value.type for value in start]

        def more(emit: Context, at: Value, *values: Value) -> Sequence[Value]:
            return cast(Sequence[Value], emit.inline(cond_fn, *values[:count], *additional_inputs))

        def advance(emit: Context, at: Value, *values: Value) -> list[Value]:
            following = cast(Sequence[Value], emit.inline(body_fn, *values[:count], *additional_inputs))
            rows = zip(values[count:], following, strict=False)
            written = [loops.with_row(emit, whole, row, at) for whole, row in rows]
            return [emit.plus(at, emit.scalar(1, I64)), *following, *written]

        return ctx.add(ops.While(start, ctx.region(types, more), ctx.region(types, advance)))

    # A first loop only counts. Without an iteration, the result is one row: what the loop begins with.
    rows = larger(ctx, Size(ctx, loop(())[0], is_extent=True), 1)
    wholes = [ctx.broadcast(ctx.unsqueeze(value, [0]), (rows, *value.type.static_shape)) for value in inits]
    return loop(wholes)[1 + count :]


@rule("higher_order.scan")
def scan(
    ctx: Context,
    combine_fn: fx.GraphModule,
    init: Sequence[Value],
    xs: Sequence[Value],
    additional_inputs: Sequence[Operand] = (),
) -> Sequence[Value]:
    """scan(combine_fn, init, xs, additional_inputs) -> (*carry, *ys): along the first dimension"""

    def step(emit: Context, carry: Sequence[Value], taken: Sequence[Value]) -> Sequence[Value]:
        return cast(Sequence[Value], emit.inline(combine_fn, *carry, *taken, *additional_inputs))

    return loops.scan(ctx, step, init, xs, ctx.result_types[len(init) :], xs[0].type.static_shape[0])


@rule("higher_order.map_impl")
def map_over(ctx: Context, f: fx.GraphModule, xs: Sequence[Value], pos_args: Sequence[Operand] = ()) -> Sequence[Value]:
    """map_impl(f, xs, pos_args) -> ys: along the first dimension"""
    return scan(ctx, f, (), xs, pos_args)


# Tokens order the effects of a graph; its ops are converted in that order anyway.


@rule("prims._make_token.default")
def make_token(ctx: Context) -> Value:
    """_make_token() -> Tensor"""
    return ctx.full((0,), 0, F32)


@rule("prims._sink_tokens.default")
def sink_tokens(ctx: Context, tokens: Sequence[Value]) -> None:
    """_sink_tokens(Tensor[] tokens) -> ()"""


@rule("higher_order.with_effects")
def with_effects(ctx: Context, token: Value, op: OpOverload, *args: Operand, **kwargs: Operand) -> tuple[Operand, ...]:
    """with_effects(token, op, *args, **kwargs) -> (token, *results)"""
    found = _call(ctx, op, ctx.described[1:], args, kwargs)
    return (token, *(found if isinstance(found, tuple) else (found,)))


# Checkpoints: an op that draws random numbers is computed again in the backward pass, with the same ones.


@rule("higher_order.run_and_save_rng_state")
def run_and_save_rng_state(ctx: Context, op: OpOverload, *args: Operand, **kwargs: Operand) -> tuple[Value, Operand]:
    """run_and_save_rng_state(op, *args, **kwargs) -> (state, result): the state before, as bytes"""
    state = ctx.add(ops.BitcastConvert(randomness(ctx).state, result=STATE_BYTES))
    room = ctx.full((ctx.shape[0],), 0, UI8)  # of the size of PyTorch's own state
    saved = ctx.add(ops.DynamicUpdateSlice(room, ctx.reshape(state, (STATE_BYTES.size,)), [ctx.scalar(0, I32)]))
    return saved, _call(ctx, op, ctx.described[1], args, kwargs)


@rule("higher_order.run_with_rng_state")
def run_with_rng_state(ctx: Context, saved: Value, op: OpOverload, *args: Operand, **kwargs: Operand) -> Operand:
    """run_with_rng_state(state, op, *args, **kwargs) -> result: with a state that was saved"""
    first = ctx.add(ops.DynamicSlice(saved, [ctx.scalar(0, I32)], slice_sizes=(STATE_BYTES.size,)))
    state = ctx.add(ops.BitcastConvert(ctx.reshape(first, STATE_BYTES.static_shape), result=STATE))
    inner = ctx.copied()
    inner.randomness = Randomness(ctx.block, state)
    return _call(inner, op, ctx.described, args, kwargs)


def _call(
    ctx: Context, op: OpOverload, described: Meta, args: Sequence[Operand], kwargs: Mapping[str, Operand]
) -> Operand:
    """Converts another op in the node's place, whose results are those described."""
    function = rule.find(str(op))
    if function is None:
        refuse([(str(op), ctx.location)])
    inner = ctx.copied()
    inner.describe(str(op), described)
    arguments, keywords = bind(op, function, args, kwargs, inner)
    return function(inner, *arguments, **keywords)


def _region(
    ctx: Context, graph: fx.GraphModule, argument_types: Sequence[TensorType], captured: Sequence[Operand]
) -> Region:
    """Returns a graph as a region: its first inputs are the region's arguments, the others values from outside."""
    return ctx.region(argument_types, lambda emit, *arguments: emit.inline(graph, *arguments, *captured))
