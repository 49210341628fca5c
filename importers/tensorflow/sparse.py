"""Sparse tensors by their components. Their shape must be known during import; indices and elements need not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from trivium.importers.emit import lowest
from trivium.importers.tensorflow.context import Context, Known, rule
from trivium.importers.tensorflow.indexing import scattered
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, I1, is_complex, is_float


@rule("SparseTensorDenseMatMul")
def sparse_matmul(
    ctx: Context, a_indices: Value, a_values: Value, a_shape: Known, b: Value, *, adjoint_a: bool, adjoint_b: bool
) -> Value:
    """SparseTensorDenseMatMul(a_indices, a_values, a_shape, b; adjoint_a=false, adjoint_b=false) -> product"""
    kind = b.type.element_type
    if is_float(kind) and kind.width < 32:
        a_values, b = ctx.convert(a_values, F32), ctx.convert(b, F32)
    a_values = _conjugate(ctx, a_values) if adjoint_a else a_values
    b = ctx.transpose(_conjugate(ctx, b), [1, 0]) if adjoint_b else b
    row, column = (1, 0) if adjoint_a else (0, 1)
    taken = ctx.take(b, _column(ctx, a_indices, column))
    terms = ctx.times(taken, ctx.broadcast_in_dim(a_values, taken.type.shape, [0]))
    start = ctx.full((int(a_shape[row]), b.type.shape[1]), 0, b.type.element_type)
    places = ctx.slice(a_indices, 1, row, row + 1)
    return ctx.convert(scattered(ctx, ops.Add, start, places, terms), kind)


def _conjugate(ctx: Context, x: Value) -> Value:
    return ctx.add(ops.Conj(x)) if is_complex(x.type.element_type) else x


def _column(ctx: Context, indices: Value, place: int) -> Value:
    return ctx.reshape(ctx.slice(indices, 1, place, place + 1), indices.type.shape[:1])


@rule("SparseReduceSum")
def sparse_sum(
    ctx: Context,
    input_indices: Value,
    input_values: Value,
    input_shape: Known,
    reduction_axes: Known,
    *,
    keep_dims: bool,
) -> Value:
    """SparseReduceSum(input_indices, input_values, input_shape, reduction_axes; keep_dims=false) -> output"""
    kept, shape = _reduced(ctx, input_indices, input_values, input_shape, reduction_axes, keep_dims)
    start = ctx.full([int(input_shape[i]) for i in kept], 0, input_values.type.element_type)
    return ctx.reshape(_combined(ctx, ops.Add, start, input_indices, kept, input_values), shape)


@rule("SparseReduceMax")
def sparse_max(
    ctx: Context,
    input_indices: Value,
    input_values: Value,
    input_shape: Known,
    reduction_axes: Known,
    *,
    keep_dims: bool,
) -> Value:
    """SparseReduceMax(input_indices, input_values, input_shape, reduction_axes; keep_dims=false) -> output: zero where
    there are no elements"""
    kept, shape = _reduced(ctx, input_indices, input_values, input_shape, reduction_axes, keep_dims)
    kind, sizes = input_values.type.element_type, [int(input_shape[i]) for i in kept]
    start, nowhere = ctx.full(sizes, lowest(kind), kind), ctx.full(sizes, False, I1)
    largest = _combined(ctx, ops.Maximum, start, input_indices, kept, input_values)
    somewhere = ctx.full(input_values.type.static_shape, True, I1)
    exists = _combined(ctx, ops.Or, nowhere, input_indices, kept, somewhere)
    return ctx.reshape(ctx.select(exists, largest, ctx.full(sizes, 0, kind)), shape)


def _reduced(
    ctx: Context, indices: Value, values: Value, whole: Known, axes: Known, keep_dims: bool
) -> tuple[list[int], list[int]]:
    """Returns the dimensions that stay, and the shape of the result."""
    rank = len(whole)
    if indices.type.shape != (*values.type.shape, rank):
        ctx.unsupported("input_indices", indices.type, f"a row of {rank} numbers for each of {values.type}")
    gone = ctx.axes(axes, rank, "reduction_axes")
    kept = [i for i in range(rank) if i not in gone]
    return kept, [1 if i in gone else int(whole[i]) for i in range(rank) if keep_dims or i not in gone]


def _combined(ctx: Context, op: type, start: Value, indices: Value, kept: Sequence[int], values: Value) -> Value:
    """Combines values at their indices along the dimensions that stay."""
    if not kept:
        return ctx.binary(op, start, ctx.reduce(op, values, [0]))
    places = ctx.concatenate([ctx.slice(indices, 1, i, i + 1) for i in kept], 1)
    return scattered(ctx, op, start, places, values)


@rule("SparseTensorDenseAdd")
def sparse_dense_add(ctx: Context, a_indices: Value, a_values: Value, a_shape: Value, b: Value) -> Value:
    """SparseTensorDenseAdd(a_indices, a_values, a_shape, b) -> output"""
    return scattered(ctx, ops.Add, b, a_indices, a_values)


def _with_dense(name: str, combine: Callable[[Context, Value, Value], Value]) -> None:
    def rule_of(ctx: Context, sp_indices: Value, sp_values: Value, sp_shape: Known, dense: Value) -> Value:
        """SparseDenseCwise(sp_indices, sp_values, sp_shape, dense) -> output"""
        flat = ctx.reshape(ctx.broadcast(dense, sp_shape.tolist()), (int(np.prod(sp_shape)),))
        strides = np.cumprod([1, *sp_shape[:0:-1]])[::-1].astype(sp_indices.type.element_type.dtype)
        weights = ctx.broadcast(ctx.elements(np.ascontiguousarray(strides)), sp_indices.type.shape)
        places = ctx.reduce(ops.Add, ctx.times(sp_indices, weights), [1])
        return combine(ctx, sp_values, ctx.take(flat, places))

    rule.add(name, rule_of)


_with_dense("SparseDenseCwiseAdd", lambda ctx, x, y: ctx.plus(x, y))
_with_dense("SparseDenseCwiseDiv", lambda ctx, x, y: ctx.over(x, y))
_with_dense("SparseDenseCwiseMul", lambda ctx, x, y: ctx.times(x, y))
