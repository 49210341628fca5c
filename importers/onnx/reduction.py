"""Reductions, extremes, sorting and cumulative sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent, numbers_of, scalar_of
from trivium.importers.onnx.context import Context, axes_of, axis_of, require_rank, rule
from trivium.importers.onnx.shape import among, axes_from_front, remaining
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F64, I32, is_integer

PLAIN = {"ReduceSum": ops.Add, "ReduceProd": ops.Multiply, "ReduceMax": ops.Maximum, "ReduceMin": ops.Minimum}


Total = Callable[[type, Value, bool], Value]
"""Combines elements over the axes of a node by an op; the dimensions remain with extent 1, or are dropped."""


@rule(*PLAIN, "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def reduce(
    ctx: Context, x: Value, axes: Value | Sequence[int] | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Value:
    """Reduce<kind>(data, axes, keepdims): axes come as a tensor, or as an attribute before version 18"""
    places = ctx.listed(axes, "axes") if isinstance(axes, Value) else list(axes or ())
    kind = x.type.element_type
    through_float = is_integer(kind) and ctx.op in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
    wide = ctx.convert(x, F64 if through_float else accumulation_type(kind))
    if not places and noop_with_empty_axes:  # what comes before and after the reduction remains
        return ctx.convert(_reduced(ctx, wide, lambda op, x, keep: x, True), kind)
    known = numbers_of(places)
    if known is None:
        return ctx.convert(_reduced(ctx, wide, _over_computed(ctx, places), bool(keepdims)), kind)
    dimensions = axes_of(known, x.type.rank) if known else tuple(range(x.type.rank))
    return ctx.convert(_reduced(ctx, wide, lambda *how: _over(ctx, dimensions, *how), bool(keepdims)), kind)


def _over(ctx: Context, dimensions: Sequence[int], op: type, x: Value, keep: bool) -> Value:
    return ctx.reduce(op, x, dimensions, keep)


def _over_computed(ctx: Context, axes: Sequence[Extent]) -> Total:
    """Reduces each dimension, and takes either the result or what was there before."""

    def total(op: type, x: Value, keep: bool) -> Value:
        places = axes_from_front(ctx, axes, x.type.rank)
        shape = ctx.extents(x)
        for dimension, extent in enumerate(shape):
            both = ctx.concatenate([x, ctx.reduce(op, x, [dimension], keep=True)], dimension)
            start = among(ctx, places, dimension, extent, 0)
            x = ctx.slice(both, dimension, start, among(ctx, places, dimension, extent + 1, extent))
        return x if keep else ctx.reshape(x, remaining(ctx, ctx.extents(x), axes))

    return total


def _reduced(ctx: Context, x: Value, total: Total, keep: bool) -> Value:
    kind = ctx.op
    if kind in PLAIN:
        return total(PLAIN[kind], x, keep)
    if kind == "ReduceMean":
        # The count is a constant, or follows from sizes, once the program is compiled.
        count = total(ops.Add, ctx.full_like(x, 1), keep)
        return ctx.over(total(ops.Add, x, keep), count)
    if kind == "ReduceLogSumExp":
        top = total(ops.Maximum, x, True)
        # If the maximum is infinite, nothing is subtracted: infinity minus itself would be NaN.
        top = ctx.select(ctx.add(ops.IsFinite(top)), top, ctx.full_like(top, 0))
        sums = total(ops.Add, ctx.add(ops.Exponential(ctx.minus(x, top))), keep)
        return ctx.plus(ctx.add(ops.Log(sums)), top if keep else total(ops.Maximum, top, False))
    prepared = {"ReduceL1": lambda: ctx.add(ops.Abs(x)), "ReduceLogSum": lambda: x}.get(kind, lambda: ctx.times(x, x))()
    sums = total(ops.Add, prepared, keep)
    finish = {"ReduceL2": ops.Sqrt, "ReduceLogSum": ops.Log}.get(kind)
    return sums if finish is None else ctx.add(finish(sums))


@rule("ArgMax", "ArgMin")
def arg_extreme(ctx: Context, x: Value, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
    """ArgMax(data, axis, keepdims, select_last_index)"""
    axis = axis_of(axis, x.type.rank)
    source = ctx.add(ops.Reverse(x, dimensions=(axis,))) if select_last_index else x
    _, indices = ctx.arg_reduce("GT" if ctx.op == "ArgMax" else "LT", source, axis)
    if select_last_index:
        indices = ctx.minus(scalar_of(ctx, ctx.extent(x, axis) - 1), indices)
    return ctx.unsqueeze(indices, [axis]) if keepdims else indices


@rule("TopK", since=10)
def top_k(ctx: Context, x: Value, k: Value, axis: int = -1, largest: int = 1, sorted: int = 1) -> Sequence[Value]:
    """TopK(X, K, axis, largest)"""
    axis = axis_of(axis, x.type.rank)
    count = ctx.number(k, "K")
    values, indices = ctx.sort([x, ctx.iota_like(x, axis)], axis, descending=bool(largest))
    return ctx.slice(values, axis, 0, count), ctx.slice(indices, axis, 0, count)


@rule("CumSum", "CumProd")
def cumulative(ctx: Context, x: Value, axis: Value, exclusive: int = 0, reverse: int = 0) -> Value:
    """CumSum(x, axis, exclusive, reverse)"""
    require_rank(x, "x", 1, or_more=True)
    kind, op = x.type.element_type, ops.Add if ctx.op == "CumSum" else ops.Multiply
    wide = ctx.convert(x, accumulation_type(kind))

    def along(emit: Context, dimension: int) -> Value:
        return emit.cumulative(op, wide, dimension, bool(reverse), bool(exclusive))

    place = ctx.number(axis, "axis")
    if isinstance(place, int):
        return ctx.convert(along(ctx, axis_of(place, x.type.rank)), kind)
    (place,) = axes_from_front(ctx, [place], x.type.rank)
    branches = [ctx.region([], lambda emit, d=d: along(emit, d)) for d in range(x.type.rank)]
    return ctx.convert(ctx.add(ops.Case(ctx.convert(scalar_of(ctx, place), I32), branches))[0], kind)
