"""Control flow: `torch.cond` and `while_loop`, whose branches and bodies are separate graphs; and the order of
effects."""

from __future__ import annotations

from collections.abc import Sequence

from torch import fx
from torch._ops import OpOverload

from trivium.importers.common import refuse
from trivium.importers.pytorch.context import Context, Number, Operand, bind, rule
from trivium.ir import ops
from trivium.ir.core import Region, Value
from trivium.ir.types import F32, I1, TensorType


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
    inits = [value for value in carried_inputs if isinstance(value, Value)]
    if len(inits) < len(carried_inputs):
        ctx.unsupported("carried_inputs", "numbers", "tensors")
    types = [value.type for value in inits]
    regions = [_region(ctx, graph, types, additional_inputs) for graph in (cond_fn, body_fn)]
    return ctx.add(ops.While(inits, *regions))


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
    function = rule.find(str(op))
    if function is None:
        refuse([(str(op), ctx.location)])
    arguments, keywords = bind(op, function, args, kwargs, ctx)
    found = function(ctx, *arguments, **keywords)
    return (token, *(found if isinstance(found, tuple) else (found,)))


def _region(
    ctx: Context, graph: fx.GraphModule, argument_types: Sequence[TensorType], captured: Sequence[Operand]
) -> Region:
    """Returns a graph as a region: its first inputs are the region's arguments, the others values from outside."""
    return ctx.region(argument_types, lambda emit, *arguments: emit.inline(graph, *arguments, *captured))
