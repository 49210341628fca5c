"""Branches and loops; their graphs can use the values around them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from trivium.importers.context import evaluate_known
from trivium.importers.onnx.context import Context, Operand, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1, I64


@rule("If")
def if_(
    ctx: Context, condition: Value, then_branch: onnx.GraphProto, else_branch: onnx.GraphProto
) -> Sequence[Operand]:
    """If(cond, then_branch, else_branch): a condition that is known while importing chooses the graph"""
    known = evaluate_known(condition)
    if known is not None:
        return ctx.inline(then_branch if known.item() else else_branch)
    branches = [ctx.region([], lambda emit, graph=graph: emit.values(graph)) for graph in (then_branch, else_branch)]
    return ctx.add(ops.If(ctx.reshape(condition, ()), *branches))


@rule("Loop")
def loop(
    ctx: Context, trips: Value | None, condition: Value | None, *carried: Value, body: onnx.GraphProto
) -> Sequence[Value]:
    """Loop(M, cond, v_initial, body), without outputs that grow by an element each turn"""
    if len(body.output) - 1 != len(carried):
        ctx.unsupported("body", f"{len(body.output) - 1 - len(carried)} scan outputs", "none")
    most = np.iinfo(np.int64).max
    limit = ctx.scalar(most, I64) if trips is None else ctx.reshape(trips, ())
    going = ctx.scalar(True, I1) if condition is None else ctx.reshape(condition, ())
    state = [ctx.scalar(0, I64), going, *carried]
    types = [value.type for value in state]

    def goes_on(emit: Context, turn: Value, going: Value, *values: Value) -> Value:
        return emit.add(ops.And(emit.compare("LT", turn, limit), going))

    def turn_body(emit: Context, turn: Value, going: Value, *values: Value) -> list[Value]:
        again, *results = emit.values(body, turn, going, *values)
        for index, (result, kind) in enumerate(zip(results, types[2:], strict=True)):
            if result.type is not kind:
                emit.unsupported("body", f"{result.type} for value {index}, which was {kind}", "shapes that stay")
        return [emit.plus(turn, emit.scalar(1, I64)), emit.reshape(again, ()), *results]

    return ctx.add(ops.While(state, ctx.region(types, goes_on), ctx.region(types, turn_body)))[2:]
