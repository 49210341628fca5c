"""Reductions, extremes, sorting and cumulative sums."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.importers.emit import accumulation_type
from trivium.importers.onnx.context import Context, axes_of, axis_of, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64

PLAIN = {"ReduceSum": ops.Add, "ReduceProd": ops.Multiply, "ReduceMax": ops.Maximum, "ReduceMin": ops.Minimum}


@rule(*PLAIN, "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def reduce(
    ctx: Context, x: Value, axes: Value | Sequence[int] | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Value:
    """Reduce<kind>(data, axes, keepdims): axes come as a tensor, or as an attribute before version 18"""
    places = ctx.known_ints(axes, "axes") if isinstance(axes, Value) else list(axes or ())
    if not places and noop_with_empty_axes:
        return x
    dimensions = axes_of(places, x.type.rank) if places else tuple(range(x.type.rank))
    kind = x.type.element_type
    wide = ctx.convert(x, accumulation_type(kind))
    return ctx.convert(_reduced(ctx, wide, dimensions, bool(keepdims)), kind)


def _reduced(ctx: Context, x: Value, dimensions: Sequence[int], keep: bool) -> Value:
    kind = ctx.op
    if kind in PLAIN:
        return ctx.reduce(PLAIN[kind], x, dimensions, keep)
    if kind == "ReduceMean":
        count = math.prod(x.type.shape[dimension] for dimension in dimensions)
        total = ctx.reduce(ops.Add, x, dimensions, keep)
        return ctx.over(total, ctx.scalar(count, x.type.element_type))
    if kind == "ReduceLogSumExp":
        top = ctx.reduce(ops.Maximum, x, dimensions, keep=True)
        # If the maximum is infinite, nothing is subtracted: infinity minus itself would be NaN.
        top = ctx.select(ctx.add(ops.IsFinite(top)), top, ctx.full_like(top, 0))
        sums = ctx.reduce(ops.Add, ctx.add(ops.Exponential(ctx.minus(x, top))), dimensions, keep=True)
        result = ctx.plus(ctx.add(ops.Log(sums)), top)
        return result if keep else ctx.squeeze(result, dimensions)
    prepared = {"ReduceL1": lambda: ctx.add(ops.Abs(x)), "ReduceLogSum": lambda: x}.get(kind, lambda: ctx.times(x, x))()
    total = ctx.reduce(ops.Add, prepared, dimensions, keep)
    finish = {"ReduceL2": ops.Sqrt, "ReduceLogSum": ops.Log}.get(kind)
    return total if finish is None else ctx.add(finish(total))


@rule("ArgMax", "ArgMin")
def arg_extreme(ctx: Context, x: Value, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
    """ArgMax(data, axis, keepdims, select_last_index)"""
    axis = axis_of(axis, x.type.rank)
    source = ctx.add(ops.Reverse(x, dimensions=(axis,))) if select_last_index else x
    _, indices = ctx.arg_reduce("GT" if ctx.op == "ArgMax" else "LT", source, axis)
    if select_last_index:
        indices = ctx.minus(ctx.full_like(indices, x.type.shape[axis] - 1), indices)
    return ctx.unsqueeze(indices, [axis]) if keepdims else indices


@rule("TopK")
def top_k(ctx: Context, x: Value, k: Value, axis: int = -1, largest: int = 1, sorted: int = 1) -> Sequence[Value]:
    """TopK(X, K, axis, largest)"""
    axis = axis_of(axis, x.type.rank)
    (count,) = ctx.known_ints(k, "K")
    values, indices = ctx.sort([x, ctx.iota(x.type.static_shape, axis, I64)], axis, descending=bool(largest))
    return ctx.slice(values, axis, 0, count), ctx.slice(indices, axis, 0, count)


@rule("CumSum")
def cumsum(ctx: Context, x: Value, axis: Value, exclusive: int = 0, reverse: int = 0) -> Value:
    """CumSum(x, axis, exclusive, reverse)"""
    place = axis_of(ctx.known_ints(axis, "axis")[0], x.type.rank)
    kind = x.type.element_type
    wide = ctx.convert(x, accumulation_type(kind))
    return ctx.convert(ctx.cumulative(ops.Add, wide, place, bool(reverse), bool(exclusive)), kind)
