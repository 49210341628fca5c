"""Reductions, cumulative ones, windows and sorting."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax.extend import core

from trivium.importers.emit import neutral
from trivium.importers.jax.context import Context, Ints, Jaxpr, Padding, rule
from trivium.ir import ops
from trivium.ir.core import Region, Value
from trivium.ir.types import ElementType, TensorType, is_complex, is_float

COMBINERS = {
    "sum": ops.Add,
    "prod": ops.Multiply,
    "max": ops.Maximum,
    "min": ops.Minimum,
    "and": ops.And,
    "or": ops.Or,
    "xor": ops.Xor,
}


@rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor")
def reduce_known(ctx: Context, x: Value, axes: Ints) -> Value:
    """reduce_<combiner>(operand, axes)"""
    return ctx.reduce(COMBINERS[ctx.op.removeprefix("reduce_")], x, axes)


@rule("argmax", "argmin")
def arg_extreme(ctx: Context, x: Value, axes: Ints) -> Value:
    """argmax(operand, axes, index_dtype): the first place of the extreme; a NaN wins"""
    (axis,) = axes
    _, indices = ctx.arg_reduce("GT" if ctx.op == "argmax" else "LT", x, axis)
    return ctx.convert(indices, ctx.result.element_type)


@rule("reduce")
def reduce(ctx: Context, *values: Value, jaxpr: core.ClosedJaxpr, dimensions: Ints) -> Sequence[Value]:
    """reduce(operands, init_values, jaxpr, dimensions)"""
    inputs, inits = _halves(values)
    body = _region(ctx, [value.type.element_type for value in inputs] * 2, jaxpr)
    return ctx.add(ops.Reduce(inputs, inits, dimensions=dimensions, body=body))


@rule("cumsum", "cumprod", "cummax", "cummin")
def cumulative(ctx: Context, x: Value, axis: int, reverse: bool) -> Value:
    """cum<combiner>(operand, axis, reverse)"""
    return ctx.cumulative(COMBINERS[ctx.op.removeprefix("cum")], x, axis, reverse)


@rule("cumlogsumexp")
def cumlogsumexp(ctx: Context, x: Value, axis: int, reverse: bool) -> Value:
    """cumlogsumexp(operand, axis, reverse), as JAX spells it: an associative scan of logaddexp"""
    scan = jax.lax.associative_scan
    return ctx.trace(lambda y: scan(jax.numpy.logaddexp, y, axis=axis, reverse=reverse), x)[0]


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def reduce_window_known(
    ctx: Context,
    x: Value,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Padding,
    base_dilation: Ints,
    window_dilation: Ints,
) -> Value:
    """reduce_window_<combiner>(operand, window_dimensions, window_strides, padding, dilations)"""
    op = COMBINERS[ctx.op.removeprefix("reduce_window_")]
    kind = x.type.element_type
    init = ctx.scalar(neutral(op, kind), kind)
    window = (window_dimensions, window_strides, padding, base_dilation, window_dilation)
    return _windows(ctx, [x], [init], ctx.combiner(op, kind), *window)[0]


@rule("reduce_window")
def reduce_window(
    ctx: Context,
    *values: Value,
    jaxpr: core.Jaxpr,
    consts: Sequence[jax.Array],
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Padding,
    base_dilation: Ints,
    window_dilation: Ints,
) -> Sequence[Value]:
    """reduce_window(operands, init_values, jaxpr, window)"""
    inputs, inits = _halves(values)
    body = _region(ctx, [value.type.element_type for value in inputs] * 2, core.ClosedJaxpr(jaxpr, consts))
    window = (window_dimensions, window_strides, padding, base_dilation, window_dilation)
    return _windows(ctx, inputs, inits, body, *window)


@rule("select_and_scatter_add")
def select_and_scatter_add(
    ctx: Context,
    source: Value,
    x: Value,
    select_prim: core.Primitive,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Padding,
) -> Value:
    """select_and_scatter_add(source, operand, select_prim, window)"""
    kind = x.type.element_type
    pair = [TensorType((), kind)] * 2
    direction = select_prim.name.upper()
    return ctx.add(
        ops.SelectAndScatter(
            x,
            source,
            ctx.scalar(0, kind),
            window_dimensions=window_dimensions,
            window_strides=window_strides,
            padding=padding,
            select=ctx.region(pair, lambda emit, old, new: emit.compare(direction, old, new)),
            scatter=ctx.combiner(ops.Add, kind),
        )
    )


@rule("select_and_scatter")
def select_and_scatter(
    ctx: Context, x: Value, source: Value, init: Value, select_jaxpr: core.Jaxpr, select_consts: Sequence[jax.Array],
    scatter_jaxpr: core.Jaxpr, scatter_consts: Sequence[jax.Array], window_dimensions: Ints, window_strides: Ints,
    padding: Padding,
) -> Value:  # fmt: skip
    """select_and_scatter(operand, source, init_value, select, scatter, window)"""
    kinds = [x.type.element_type] * 2
    return ctx.add(
        ops.SelectAndScatter(
            x,
            source,
            init,
            window_dimensions=window_dimensions,
            window_strides=window_strides,
            padding=padding,
            select=_region(ctx, kinds, core.ClosedJaxpr(select_jaxpr, select_consts)),
            scatter=_region(ctx, kinds, core.ClosedJaxpr(scatter_jaxpr, scatter_consts)),
        )
    )


@rule("select_and_gather_add")
def select_and_gather_add(
    ctx: Context,
    tangents: Value,
    x: Value,
    select_prim: core.Primitive,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Padding,
    base_dilation: Ints,
    window_dilation: Ints,
) -> Value:
    """select_and_gather_add(tangents, operand, select_prim, window): the tangent where the window's extreme is"""
    kind = x.type.element_type
    types = [TensorType((), kind)] * 4
    direction = select_prim.name.upper()

    def body(emit: Context, old: Value, old_tangent: Value, new: Value, new_tangent: Value) -> tuple[Value, Value]:
        keep = emit.compare(direction, old, new)
        return emit.select(keep, old, new), emit.select(keep, old_tangent, new_tangent)

    op = ops.Maximum if direction in ("GE", "GT") else ops.Minimum
    inits = [ctx.scalar(neutral(op, kind), kind), ctx.scalar(0, kind)]
    window = (window_dimensions, window_strides, padding, base_dilation, window_dilation)
    return _windows(ctx, [x, tangents], inits, ctx.region(types, body), *window)[1]


@rule("sort")
def sort(ctx: Context, *values: Value, dimension: int, is_stable: bool, num_keys: int) -> Sequence[Value]:
    """sort(operands, dimension, is_stable, num_keys): by the first `num_keys` operands, in order; NaN last, zeros
    equal; complex numbers by their real parts, then by their imaginary ones"""
    types = [TensorType((), value.type.element_type) for value in values for _ in range(2)]

    def before(emit: Context, *pairs: Value) -> Value:
        result: Value | None = None
        lefts, rights = (
            [part for value in side for part in _sortable(emit, value)]
            for side in (pairs[0 : 2 * num_keys : 2], pairs[1 : 2 * num_keys : 2])
        )
        for lhs, rhs in reversed(list(zip(lefts, rights, strict=True))):
            less = _compare(emit, "LT", lhs, rhs)
            if result is not None:
                less = emit.add(ops.Or(less, emit.add(ops.And(_compare(emit, "EQ", lhs, rhs), result))))
            result = less
        assert result is not None
        return result

    comparator = ctx.region(types, before)
    return ctx.add(ops.Sort(list(values), dimension=dimension, is_stable=is_stable, comparator=comparator))


def _sortable(emit: Context, x: Value) -> list[Value]:
    """Returns the real numbers to sort by, with zeros of one sign and NaNs of one kind, so that the total order sorts
    as JAX does."""
    kind = x.type.element_type
    if is_complex(kind):
        return [*_sortable(emit, emit.add(ops.Real(x))), *_sortable(emit, emit.add(ops.Imag(x)))]
    if not is_float(kind):
        return [x]
    zero = emit.select(emit.compare("EQ", x, emit.scalar(0, kind)), emit.scalar(0, kind), x)
    return [emit.select(emit.compare("NE", x, x), emit.scalar(np.nan, kind), zero)]


def _compare(emit: Context, direction: str, lhs: Value, rhs: Value) -> Value:
    total = ops.ComparisonType.TOTALORDER if is_float(lhs.type.element_type) else None
    return emit.add(ops.Compare(lhs, rhs, comparison_direction=ops.ComparisonDirection(direction), compare_type=total))


@rule("top_k")
def top_k(ctx: Context, x: Value, k: int, axis: int = -1) -> Sequence[Value]:
    """top_k(operand, k, axis)"""
    rank, axis = x.type.rank, axis % x.type.rank
    order = [d for d in range(rank) if d != axis] + [axis]
    values, indices = ctx.add(ops.TopK(ctx.transpose(x, order), k=k))
    inverse = np.argsort(order).tolist()
    return ctx.transpose(values, inverse), ctx.transpose(indices, inverse)


@rule("approx_top_k")
def approx_top_k(
    ctx: Context, x: Value, k: int, reduction_dimension: int, recall_target: float, is_max_k: bool,
    reduction_input_size_override: int, aggregate_to_topk: bool,
) -> Sequence[Value]:  # fmt: skip
    """approx_top_k(operand, k, reduction_dimension, is_max_k): the exact results, regardless of the requested recall.
    There are as many as JAX expects: more than k without `aggregate_to_topk`"""
    axis = reduction_dimension % x.type.rank
    count = ctx.result.static_shape[axis]

    def chosen(y: jax.Array) -> tuple[jax.Array, jax.Array]:
        at = jax.numpy.argsort(y, axis=axis, descending=is_max_k)
        at = jax.lax.slice_in_dim(at, 0, count, axis=axis)
        return jax.numpy.take_along_axis(y, at, axis=axis), at.astype("int32")

    return ctx.trace(chosen, x)


def _halves(values: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    half = len(values) // 2
    return list(values[:half]), list(values[half:])


def _region(ctx: Context, kinds: Sequence[ElementType], jaxpr: Jaxpr) -> Region:
    return ctx.region([TensorType((), kind) for kind in kinds], lambda emit, *values: emit.inline(jaxpr, *values))


def _windows(
    ctx: Context, inputs: list[Value], inits: list[Value], body: Region, dimensions: Ints, strides: Ints,
    padding: Padding, base_dilation: Ints, window_dilation: Ints,
) -> Sequence[Value]:  # fmt: skip
    """Combines each window of `inputs` by `body`."""
    return ctx.add(
        ops.ReduceWindow(
            inputs,
            inits,
            window_dimensions=dimensions,
            window_strides=strides,
            padding=padding,
            base_dilations=base_dilation,
            window_dilations=window_dilation,
            body=body,
        )
    )
