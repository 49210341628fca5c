"""Reading and writing at computed positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jax import lax
from jax.extend import core

from trivium.importers.jax.context import Context, Ints, key_shape, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1, I32, I64, ElementType, IntegerType, TensorType, is_float

CLIP, FILL = lax.GatherScatterMode.CLIP, lax.GatherScatterMode.FILL_OR_DROP

MAX_I32 = 2**31 - 1


@rule("dynamic_slice")
def dynamic_slice(ctx: Context, x: Value, *starts: Value, slice_sizes: Ints) -> Value:
    """dynamic_slice(operand, *start_indices, slice_sizes)"""
    words = key_shape(ctx.operands[0])
    starts = (*starts[: x.type.rank - len(words)], *_zeros(ctx, len(words), starts))
    return ctx.add(ops.DynamicSlice(x, list(starts), slice_sizes=(*slice_sizes, *words)))


@rule("dynamic_update_slice")
def dynamic_update_slice(ctx: Context, x: Value, update: Value, *starts: Value) -> Value:
    """dynamic_update_slice(operand, update, *start_indices)"""
    words = key_shape(ctx.operands[0])
    return ctx.add(ops.DynamicUpdateSlice(x, update, [*starts, *_zeros(ctx, len(words), starts)]))


def _zeros(ctx: Context, count: int, like: Sequence[Value]) -> list[Value]:
    """Returns start indices for the dimensions of a key's words, with the type of the others."""
    if not count:
        return []
    kind = like[0].type if like else TensorType((), ctx.iota((1,), 0).type.element_type)
    return [ctx.full((), 0, kind.element_type) for _ in range(count)]


@rule("gather")
def gather(
    ctx: Context,
    x: Value,
    indices: Value,
    *,
    dimension_numbers: lax.GatherDimensionNumbers,
    slice_sizes: Ints,
    indices_are_sorted: bool,
    mode: lax.GatherScatterMode,
    fill_value: float | None,
) -> Value:
    """gather(operand, start_indices, dimension_numbers, slice_sizes, mode, fill_value)"""
    words = key_shape(ctx.operands[0])
    rank = len(ctx.result.shape)
    numbers = ops.GatherDimensionNumbers(
        offset_dims=(*dimension_numbers.offset_dims, *range(rank - len(words), rank)),
        collapsed_slice_dims=dimension_numbers.collapsed_slice_dims,
        operand_batching_dims=dimension_numbers.operand_batching_dims,
        start_indices_batching_dims=dimension_numbers.start_indices_batching_dims,
        start_index_map=dimension_numbers.start_index_map,
        index_vector_dim=indices.type.rank - 1,
    )
    sizes = (*slice_sizes, *words)
    found = ctx.add(
        ops.Gather(
            x, indices, dimension_numbers=numbers, slice_sizes=sizes, indices_are_sorted=bool(indices_are_sorted)
        )
    )
    if mode != FILL:
        return found
    inside = _in_bounds(ctx, x, indices, numbers.start_index_map, sizes)
    batch = [d for d in range(rank) if d not in numbers.offset_dims]
    inside = ctx.broadcast_in_dim(inside, found.type.static_shape, batch)
    return ctx.select(inside, found, ctx.full_like(found, _fill_value(fill_value, found.type.element_type)))


def _in_bounds(ctx: Context, x: Value, indices: Value, index_map: Ints, sizes: Ints) -> Value:
    """Returns, for each index vector, whether the slice that it selects is inside `x`."""
    if not index_map:
        return ctx.full(indices.type.shape[:-1], True, I1)
    last = [x.type.shape[d] - sizes[d] for d in index_map]
    limit = ctx.elements(np.asarray(np.clip(last, None, _largest(indices))), indices.type.element_type)
    low = ctx.compare("GE", indices, ctx.full_like(indices, 0))
    high = ctx.compare("LE", indices, limit)
    return ctx.reduce(ops.And, ctx.add(ops.And(low, high)), [indices.type.rank - 1])


def _largest(indices: Value) -> int:
    return np.iinfo(indices.type.dtype).max


def _fill_value(fill_value: float | None, kind: ElementType) -> float:
    if fill_value is not None:
        return fill_value
    if isinstance(kind, IntegerType):
        return np.iinfo(kind.dtype).min if kind.is_signed else np.iinfo(kind.dtype).max
    return np.nan if is_float(kind) else True


@rule("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
def scatter(
    ctx: Context,
    x: Value,
    indices: Value,
    updates: Value,
    *,
    dimension_numbers: lax.ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: lax.GatherScatterMode,
    update_jaxpr: core.Jaxpr | None,
    update_consts: Sequence[object],
) -> Value:
    """scatter(operand, scatter_indices, updates, dimension_numbers, mode, update_jaxpr, update_consts)"""
    words = key_shape(ctx.operands[0])
    numbers = ops.ScatterDimensionNumbers(
        update_window_dims=(
            *dimension_numbers.update_window_dims,
            *range(updates.type.rank - len(words), updates.type.rank),
        ),
        inserted_window_dims=tuple(dimension_numbers.inserted_window_dims),
        input_batching_dims=tuple(dimension_numbers.operand_batching_dims),
        scatter_indices_batching_dims=tuple(dimension_numbers.scatter_indices_batching_dims),
        scatter_dims_to_operand_dims=tuple(dimension_numbers.scatter_dims_to_operand_dims),
        index_vector_dim=indices.type.rank - 1,
    )
    sizes = _windows(x, updates, numbers)
    if mode == CLIP:
        indices = _clipped(ctx, x, indices, sizes, numbers)
    elif any(sizes[d] != 1 for d in numbers.scatter_dims_to_operand_dims):
        indices, indices_are_sorted = _outside_or_inside(ctx, x, indices, sizes, numbers), False
    kind = TensorType((), x.type.element_type)
    return ctx.add(
        ops.Scatter(
            [x],
            indices,
            [updates],
            scatter_dimension_numbers=numbers,
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            update_computation=ctx.region([kind, kind], _update(ctx.op, update_jaxpr, update_consts)),
        )
    )[0]


def _update(name: str, jaxpr: core.Jaxpr | None, constants: Sequence[object]) -> Callable[..., Value]:
    """Returns how an element and its update become the new element. The plain scatter replaces it, or has a jaxpr for
    that (`x.at[i].apply`)."""
    if name == "scatter" and jaxpr is not None:
        closed = core.ClosedJaxpr(jaxpr, constants)
        return lambda emit, old, new: emit.inline(closed, old, new)[0]
    return {
        "scatter": lambda emit, old, new: new,
        "scatter-add": lambda emit, old, new: emit.add(ops.Add(old, new)),
        "scatter-sub": lambda emit, old, new: emit.add(ops.Subtract(old, new)),
        "scatter-mul": lambda emit, old, new: emit.add(ops.Multiply(old, new)),
        "scatter-min": lambda emit, old, new: emit.add(ops.Minimum(old, new)),
        "scatter-max": lambda emit, old, new: emit.add(ops.Maximum(old, new)),
    }[name]


def _windows(x: Value, updates: Value, numbers: ops.ScatterDimensionNumbers) -> list[int]:
    """Returns the extents of a window in the dimensions of `x`."""
    absent = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    windows = iter(updates.type.shape[d] for d in numbers.update_window_dims)
    return [1 if d in absent else next(windows) for d in range(x.type.rank)]


def _clipped(
    ctx: Context, x: Value, indices: Value, sizes: Sequence[int], numbers: ops.ScatterDimensionNumbers
) -> Value:
    """Returns indices moved so that each window is inside `x`."""
    last = [x.type.shape[d] - sizes[d] for d in numbers.scatter_dims_to_operand_dims]
    limit = ctx.elements(np.clip(last, None, _largest(indices)), indices.type.element_type)
    limit = ctx.broadcast(limit, indices.type.static_shape)
    return ctx.add(ops.Clamp(ctx.full_like(indices, 0), indices, limit))


def _outside_or_inside(
    ctx: Context, x: Value, indices: Value, sizes: Sequence[int], numbers: ops.ScatterDimensionNumbers
) -> Value:
    """Returns indices moved so that a window that is not whole in `x` is outside: JAX drops such a window, even where
    it was promised that there is none, and StableHLO only its elements outside."""
    inside = _in_bounds(ctx, x, indices, numbers.scatter_dims_to_operand_dims, sizes)
    inside = ctx.broadcast_in_dim(inside, indices.type.static_shape, range(indices.type.rank - 1))
    indices = ctx.convert(indices, I32 if max(x.type.shape) <= MAX_I32 else I64)
    return ctx.select(inside, indices, ctx.full_like(indices, np.iinfo(indices.type.dtype).min))
