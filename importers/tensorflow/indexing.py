"""Gathers and scatters."""

from __future__ import annotations

import numpy as np

from trivium.importers.tensorflow.context import Context, Known, Operand, Tensor, rule
from trivium.importers.tensorflow.state import read_value, update
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import is_boolean

# Gathers


@rule("ReverseSequence")
def reverse_sequence(ctx: Context, input: Value, seq_lengths: Value, *, seq_dim: int, batch_dim: int) -> Value:
    """ReverseSequence(input, seq_lengths; seq_dim, batch_dim=0) -> output"""
    shape, kind = input.type.shape, seq_lengths.type.element_type
    seq, batch = ctx.axis(seq_dim, len(shape), "seq_dim"), ctx.axis(batch_dim, len(shape), "batch_dim")
    rows = (ctx.extent(input, batch), ctx.extent(input, seq))
    place = ctx.iota(rows, 1, kind)
    lengths = ctx.broadcast_in_dim(seq_lengths, rows, [0])
    mirrored = ctx.minus(ctx.minus(lengths, ctx.constant_like(lengths, 1)), place)
    places = ctx.select(ctx.compare("LT", place, lengths), mirrored, place)
    front = [batch, seq, *(d for d in range(len(shape)) if d not in (batch, seq))]
    moved = gathered(ctx, ctx.transpose(input, front), places, 1, 1)
    return ctx.transpose(moved, np.argsort(front).tolist())


@rule("GatherV2")
def gather(ctx: Context, params: Value, indices: Value, axis: Known, *, batch_dims: int) -> Value:
    """GatherV2(params, indices, axis; batch_dims=0) -> output"""
    # A negative number of dimensions counts from the rank of the indices.
    batch = batch_dims + indices.type.rank if batch_dims < 0 else batch_dims
    return gathered(ctx, params, indices, ctx.axis(axis, params.type.rank), batch)


@rule("Gather")
def gather_rows(ctx: Context, params: Value, indices: Value) -> Value:
    """Gather(params, indices; validate_indices=true) -> output"""
    return ctx.take(params, indices)


@rule("ResourceGather")
def resource_gather(ctx: Context, resource: Operand, indices: Value, *, batch_dims: int) -> Value:
    """ResourceGather(resource, indices; batch_dims=0) -> output"""
    return gathered(ctx, read_value(ctx, resource), indices, batch_dims, batch_dims)


def gathered(ctx: Context, x: Value, indices: Value, dimension: int, batch: int) -> Value:
    """Returns slices along a dimension; the first `batch` dimensions of both operands are paired."""
    if not batch:
        return ctx.take(x, indices, dimension)
    inner = indices.type.rank - batch  # dimensions of indices that replace `dimension`
    offset = [*range(batch, dimension), *range(dimension + inner, x.type.rank - 1 + inner)]
    numbers = ops.GatherDimensionNumbers(
        offset_dims=tuple(offset),
        collapsed_slice_dims=(dimension,),
        operand_batching_dims=tuple(range(batch)),
        start_indices_batching_dims=tuple(range(batch)),
        start_index_map=(dimension,),
        index_vector_dim=indices.type.rank,
    )
    sizes = [1 if i < batch or i == dimension else extent for i, extent in enumerate(ctx.extents(x))]
    # Gather puts all dimensions of `indices` in order; those before `dimension` are between batch and the others.
    return ctx.gather(x, indices, numbers, sizes)


@rule("GatherNd")
def gather_nd(ctx: Context, params: Value, indices: Value) -> Value:
    """GatherNd(params, indices) -> output"""
    return gathered_nd(ctx, params, indices)


@rule("ResourceGatherNd")
def resource_gather_nd(ctx: Context, resource: Operand, indices: Value) -> Value:
    """ResourceGatherNd(resource, indices) -> output"""
    return gathered_nd(ctx, read_value(ctx, resource), indices)


def gathered_nd(ctx: Context, x: Value, indices: Value) -> Value:
    count, depth = indices.type.rank - 1, _depth(ctx, indices)
    rest = ctx.extents(x)[depth:]
    if 0 in indices.type.shape[:-1] or 0 in x.type.shape[:depth]:
        return ctx.full((*ctx.extents(indices)[:-1], *rest), 0, x.type.element_type)
    numbers = ops.GatherDimensionNumbers(
        offset_dims=tuple(range(count, count + len(rest))),
        collapsed_slice_dims=tuple(range(depth)),
        start_index_map=tuple(range(depth)),
        index_vector_dim=count,
    )
    return ctx.gather(x, indices, numbers, [*(ctx.one_of(x, d) for d in range(depth)), *rest])


def _depth(ctx: Context, indices: Value) -> int:
    """Returns how many numbers each position has: those in the last dimension."""
    depth = indices.type.shape[-1]
    if depth is None:
        ctx.unsupported("indices", f"the type {indices.type}", "a known number of indices for each element")
    return depth


# Scatters

COMBINATIONS = {"Add": ops.Add, "Max": ops.Maximum, "Min": ops.Minimum, "Sub": ops.Subtract, "Update": None}


def _register() -> None:
    for word, op in COMBINATIONS.items():
        rule.add(f"TensorScatter{word}", _tensor_scatter(op))
        rule.add(f"ResourceScatter{word}", _resource_scatter(op))
        rule.add(f"ResourceScatterNd{word}", _resource_scatter_nd(op))
    for word, op in (("Mul", ops.Multiply), ("Div", ops.Divide)):
        rule.add(f"ResourceScatter{word}", _resource_scatter(op))


def _tensor_scatter(op: type | None):
    def tensor_scatter(ctx: Context, tensor: Value, indices: Value, updates: Value) -> Value:
        """TensorScatterUpdate(tensor, indices, updates) -> output"""
        return scattered(ctx, op, tensor, indices, updates)

    return tensor_scatter


def _resource_scatter(op: type | None):
    def resource_scatter(ctx: Context, resource: Operand, indices: Value, updates: Value) -> None:
        """ResourceScatterUpdate(resource, indices, updates)"""
        rows = ctx.unsqueeze(indices, [indices.type.rank])

        def change(old: Value) -> Value:
            table = old if old.type.rank else ctx.reshape(old, (1,))  # a scalar counts as one row
            given = ctx.broadcast(updates, (*ctx.extents(indices), *ctx.extents(table)[1:]))
            return ctx.reshape(scattered(ctx, op, table, rows, given), old.type.static_shape)

        update(ctx, resource, change)

    return resource_scatter


def _resource_scatter_nd(op: type | None):
    def resource_scatter_nd(ctx: Context, ref: Operand, indices: Value, updates: Value) -> None:
        """ResourceScatterNdUpdate(ref, indices, updates)"""
        update(ctx, ref, lambda old: scattered(ctx, op, old, indices, updates))

    return resource_scatter_nd


_register()


@rule("SparseToDense")
def sparse_to_dense(
    ctx: Context, sparse_indices: Value, output_shape: Tensor, sparse_values: Value, default_value: Value
) -> Value:
    """SparseToDense(sparse_indices, output_shape, sparse_values, default_value; validate_indices=true) -> dense"""
    shape = ctx.given_shape(output_shape, "output_shape")
    count, depth = (*ctx.extents(sparse_indices), 1, 1)[:2] if sparse_indices.type.rank else (1, 1)
    places = ctx.reshape(sparse_indices, (count, depth))
    values = ctx.broadcast(sparse_values, [count])
    return scattered(ctx, None, ctx.broadcast(default_value, shape), places, values)


@rule("ScatterNd")
def scatter_nd(ctx: Context, indices: Value, updates: Value, shape: Tensor) -> Value:
    """ScatterNd(indices, updates, shape) -> output"""
    return scattered(ctx, ops.Add, ctx.full(ctx.given_shape(shape), 0, updates.type.element_type), indices, updates)


def scattered(ctx: Context, op: type | None, x: Value, indices: Value, updates: Value) -> Value:
    """Returns `x` with `updates` combined (or stored, without an op) at the positions given by the vectors in the last
    dimension of `indices`."""
    count, depth = indices.type.rank - 1, _depth(ctx, indices)
    numbers = ops.ScatterDimensionNumbers(
        update_window_dims=tuple(range(count, updates.type.rank)),
        inserted_window_dims=tuple(range(depth)),
        scatter_dims_to_operand_dims=tuple(range(depth)),
        index_vector_dim=count,
    )
    kind = x.type.element_type
    if op is ops.Subtract and is_boolean(kind):
        op = ops.Xor  # the difference is not zero
    scalar = [x.type.with_shape(())] * 2
    body = ctx.combiner(op, kind) if op is not None else ctx.region(scalar, lambda emit, old, new: new)
    return ctx.add(ops.Scatter([x], indices, [updates], scatter_dimension_numbers=numbers, update_computation=body))[0]
