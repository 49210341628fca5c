"""Sparse tensors by their components, in the order of their indices: sorted, joined, added, cut, and normalized. How
many elements a sum or a part has depends on data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import accumulation_type, lowest
from trivium.importers.extents import is_number
from trivium.importers.tensorflow.context import Context, Known, Operand, rule
from trivium.importers.tensorflow.counted import Counted
from trivium.importers.tensorflow.indexing import scattered
from trivium.importers.tensorflow.selection import chosen, groups_of, number_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64


def columns(ctx: Context, indices: Value) -> list[Value]:
    """Returns the indices along each dimension."""
    rank = indices.type.shape[1]
    assert rank is not None
    return [ctx.squeeze(ctx.slice(indices, 1, i, i + 1), [1]) for i in range(rank)]


def ordered(ctx: Context, indices: Value, *lists: Value) -> list[Value]:
    """Sorts elements by their indices, stably: by one dimension after another, the first one last. Returns the sorted
    indices, and the lists in the same order."""
    count = ctx.extent(indices, 0)
    if is_number(count, 0):
        return [indices, *lists]
    places = ctx.iota([count], 0)
    for column in reversed(columns(ctx, indices)):
        places = ctx.sort([ctx.take(column, places), places], 0)[1]
    return [ctx.take(x, places) for x in (indices, *lists)]


@rule("SparseReorder")
def sparse_reorder(ctx: Context, input_indices: Value, input_values: Value, input_shape: Value) -> list[Value]:
    """SparseReorder(input_indices, input_values, input_shape) -> output_indices, output_values"""
    return ordered(ctx, input_indices, input_values)


@rule("SparseConcat")
def sparse_concat(
    ctx: Context, indices: list[Value], values: list[Value], shapes: list[Value], *, concat_dim: int
) -> list[Value]:
    """SparseConcat(N * indices, N * values, N * shapes; concat_dim) -> output_indices, output_values, output_shape"""
    rank = shapes[0].type.static_shape[0]
    along = ctx.compare("EQ", ctx.iota((rank,), 0), ctx.scalar(ctx.axis(concat_dim, rank, "concat_dim"), I64))
    start, moved = ctx.full((rank,), 0, I64), []
    for x, shape in zip(indices, shapes, strict=True):
        moved.append(ctx.plus(x, ctx.broadcast(start, x.type.static_shape)))
        start = ctx.plus(start, ctx.select(along, shape, ctx.full_like(shape, 0)))
    found = ordered(ctx, ctx.concatenate(moved, 0), ctx.concatenate(values, 0))
    return [*found, ctx.select(along, start, shapes[0])]


@rule("SparseSlice")
def sparse_slice(
    ctx: Context, indices: Value, values: Value, shape: Value, start: Value, size: Value
) -> Sequence[Operand]:
    """SparseSlice(indices, values, shape, start, size) -> output_indices, output_values, output_shape"""
    _require_room(ctx)
    rest = ctx.binary(ops.Maximum, ctx.minus(shape, start), ctx.full_like(shape, 0))
    return [*_cut(ctx, indices, values, start, size), ctx.binary(ops.Minimum, size, rest)]


@rule("SparseSplit")
def sparse_split(
    ctx: Context, split_dim: Known, indices: Value, values: Value, shape: Value, *, num_split: int
) -> Sequence[Operand]:
    """SparseSplit(split_dim, indices, values, shape; num_split) -> N * output_indices, N * output_values,
    N * output_shape: the first parts are larger by one if there is a remainder"""
    _require_room(ctx)
    rank = shape.type.static_shape[0]
    along = ctx.compare("EQ", ctx.iota((rank,), 0), ctx.scalar(ctx.axis(split_dim, rank, "split_dim"), I64))
    count, one = ctx.full_like(shape, num_split), ctx.full_like(shape, 1)
    each, more = (ctx.binary(op, shape, count) for op in (ops.Divide, ops.Remainder))
    start, parts = ctx.full_like(shape, 0), []
    for number in range(num_split):
        is_larger = ctx.compare("GT", more, ctx.full_like(shape, number))
        size = ctx.select(along, ctx.select(is_larger, ctx.plus(each, one), each), shape)
        parts.append([*_cut(ctx, indices, values, start, size), size])
        start = ctx.select(along, ctx.plus(start, size), start)
    return [part[i] for i in range(3) for part in parts]


def _cut(ctx: Context, indices: Value, values: Value, start: Value, size: Value) -> list[Operand]:
    """Returns the elements that are in a part of a sparse tensor, at their places in it."""
    moved = ctx.minus(indices, ctx.broadcast(start, indices.type.static_shape))
    after = ctx.compare("GE", moved, ctx.full_like(moved, 0))
    before = ctx.compare("LT", moved, ctx.broadcast(size, indices.type.static_shape))
    kept = ctx.reduce(ops.And, ctx.binary(ops.And, after, before), [1])
    return _counted(ctx, kept, moved, values)


@rule("SparseAdd")
def sparse_add(
    ctx: Context,
    a_indices: Value,
    a_values: Value,
    a_shape: Value,
    b_indices: Value,
    b_values: Value,
    b_shape: Value,
    thresh: Value,
) -> Sequence[Operand]:
    """SparseAdd(a_indices, a_values, a_shape, b_indices, b_values, b_shape, thresh) -> sum_indices, sum_values,
    sum_shape"""
    _require_room(ctx)
    both = ctx.concatenate([a_indices, b_indices], 0)
    indices, values = ordered(ctx, both, ctx.concatenate([a_values, b_values], 0))
    is_first = begins(ctx, indices)
    after = ctx.pad(values, [-1], [1])
    is_last = ctx.pad(is_first, [-1], [1], True)
    sums = ctx.select(is_last, values, ctx.plus(values, after))
    # TensorFlow drops no element that only one of them has.
    stays = ctx.binary(ops.Or, is_last, ctx.compare("GE", ctx.add(ops.Abs(sums)), thresh))
    kept = ctx.binary(ops.And, is_first, stays)
    return [*_counted(ctx, kept, indices, sums), a_shape]


@rule("SparseSparseMaximum", "SparseSparseMinimum")
def sparse_extremum(
    ctx: Context,
    a_indices: Value,
    a_values: Value,
    a_shape: Value,
    b_indices: Value,
    b_values: Value,
    b_shape: Value,
) -> Sequence[Operand]:
    """SparseSparseMaximum(a_indices, a_values, a_shape, b_indices, b_values, b_shape) -> output_indices,
    output_values: what only one of them has is compared with zero"""
    _require_room(ctx)
    op = ops.Maximum if ctx.op == "SparseSparseMaximum" else ops.Minimum
    both = ctx.concatenate([a_indices, b_indices], 0)
    indices, values = ordered(ctx, both, ctx.concatenate([a_values, b_values], 0))
    is_first = begins(ctx, indices)
    other = ctx.select(ctx.pad(is_first, [-1], [1], True), ctx.full_like(values, 0), ctx.pad(values, [-1], [1]))
    return _counted(ctx, is_first, indices, ctx.binary(op, values, other))


@rule("SparseReduceSumSparse", "SparseReduceMaxSparse")
def sparse_reduce(
    ctx: Context,
    input_indices: Value,
    input_values: Value,
    input_shape: Value,
    reduction_axes: Known,
    *,
    keep_dims: bool,
) -> Sequence[Operand]:
    """SparseReduceSumSparse(input_indices, input_values, input_shape, reduction_axes; keep_dims=false) ->
    output_indices, output_values, output_shape: an element for each index at which there are some"""
    _require_room(ctx)
    rank = input_shape.type.static_shape[0]
    gone = ctx.axes(reduction_axes, rank, "reduction_axes")
    kept = [d for d in range(rank) if d not in gone]
    listed = [input_indices, ctx.unsqueeze(input_shape, [0])]
    if keep_dims:
        stays = ctx.elements(np.array([d in kept for d in range(rank)]))
        indices, shape = (ctx.select(stays, x, ctx.full_like(x, lost)) for x, lost in zip(listed, (0, 1), strict=True))
    else:
        indices, shape = (ctx.take(x, ctx.elements(np.array(kept, np.int64)), 1) for x in listed)
    indices, values = ordered(ctx, indices, input_values)
    is_first, kind = begins(ctx, indices), values.type.element_type
    group = ctx.unsqueeze(groups(ctx, is_first), [1])
    op, start = (ops.Add, 0) if ctx.op == "SparseReduceSumSparse" else (ops.Maximum, lowest(kind))
    combined = scattered(ctx, op, ctx.full_like(values, start), group, values)
    return [*_counted(ctx, is_first, indices, ctx.take(combined, ctx.squeeze(group, [1]))), ctx.squeeze(shape, [0])]


def _require_room(ctx: Context) -> None:
    if ctx.room is None:
        ctx.unsupported("indices", "values computed at run time", "a function that is compiled when it is called")


def begins(ctx: Context, rows: Value) -> Value:
    """Whether each row differs from the one before."""
    first = ctx.compare("EQ", ctx.iota(ctx.extents(rows)[:1], 0), ctx.scalar(0, I64))
    differs = ctx.compare("NE", rows, ctx.pad(rows, [1, 0], [-1, 0]))
    return ctx.binary(ops.Or, first, ctx.reduce(ops.Or, differs, [1]))


def groups(ctx: Context, is_first: Value) -> Value:
    """Returns the number of the group of each row, of those that begin where `is_first` says."""
    return ctx.minus(ctx.cumulative(ops.Add, ctx.convert(is_first, I64), 0), ctx.scalar(1, I64))


def _counted(ctx: Context, kept: Value, indices: Value, values: Value) -> list[Operand]:
    """Returns those elements for which an entry is true."""
    places, taken = chosen(ctx, kept, ctx.iota_like(kept, 0), values)
    number = number_of(ctx, kept)
    return [Counted(ctx.op, ctx.take(indices, places), number), Counted(ctx.op, taken, number)]


@rule("SparseAddGrad")
def sparse_add_grad(
    ctx: Context, backprop_val_grad: Value, a_indices: Value, b_indices: Value, sum_indices: Value
) -> list[Value]:
    """SparseAddGrad(backprop_val_grad, a_indices, b_indices, sum_indices) -> a_val_grad, b_val_grad"""
    return [_found(ctx, x, sum_indices, backprop_val_grad) for x in (a_indices, b_indices)]


@rule("SparseSliceGrad")
def sparse_slice_grad(
    ctx: Context, backprop_val_grad: Value, input_indices: Value, input_start: Value, output_indices: Value
) -> Value:
    """SparseSliceGrad(backprop_val_grad, input_indices, input_start, output_indices) -> val_grad"""
    moved = ctx.minus(input_indices, ctx.broadcast(input_start, input_indices.type.static_shape))
    return _found(ctx, moved, output_indices, backprop_val_grad)


def _found(ctx: Context, indices: Value, keys: Value, values: Value) -> Value:
    """Returns the values of which the keys are those indices, and zero for all other indices."""
    count, size = keys.type.static_shape[0], indices.type.static_shape[0]
    if keys.type.shape != (*values.type.shape, *indices.type.shape[1:]):
        ctx.unsupported("indices", f"{keys.type} and {indices.type}", f"rows of one length, for {values.type}")
    none = ctx.full((size,), 0, values.type.element_type)
    if not count or not size:
        return none
    firsts = groups_of(ctx, ctx.concatenate([keys, indices], 0)).firsts
    place = ctx.slice(firsts, 0, count, count + size)
    is_there = ctx.compare("LT", place, ctx.full_like(place, count))
    return ctx.select(is_there, ctx.take(values, place), none)


@rule("SparseSoftmax")
def sparse_softmax(ctx: Context, sp_indices: Value, sp_values: Value, sp_shape: Value) -> Value:
    """SparseSoftmax(sp_indices, sp_values, sp_shape) -> output: the elements of one row are side by side"""
    count, rank = sp_indices.type.static_shape
    if not count:
        return sp_values
    kind = sp_values.type.element_type
    row = groups(ctx, begins(ctx, ctx.slice(sp_indices, 1, 0, rank - 1)))
    places, wide = ctx.unsqueeze(row, [1]), ctx.convert(sp_values, accumulation_type(kind))
    least = ctx.full_like(wide, float("-inf"))
    highest = ctx.take(scattered(ctx, ops.Maximum, least, places, wide), row)
    powers = ctx.add(ops.Exponential(ctx.minus(wide, highest)))
    sums = scattered(ctx, ops.Add, ctx.full_like(wide, 0), places, powers)
    return ctx.convert(ctx.over(powers, ctx.take(sums, row)), kind)
