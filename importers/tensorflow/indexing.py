"""Slices, gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trivium.importers.tensorflow.context import Context, Known, Operand, Tensor, rule
from trivium.importers.tensorflow.state import read_value, update
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1

# Slices


@dataclass(frozen=True)
class Cut:
    """A strided slice: for each dimension a start, a number of elements and a step; then the dimensions to drop and to
    insert."""

    starts: list[int]
    counts: list[int]
    steps: list[int]
    dropped: list[int]
    shape: list[int]


def cut_of(
    shape: Sequence[int], begin: Sequence[int], end: Sequence[int], strides: Sequence[int], masks: Sequence[int]
) -> Cut:
    """Decodes NumPy's basic indexing in TensorFlow's form. Bit `i` of the masks (begin, end, ellipsis, new axis, shrink
    axis) refers to entry `i`."""
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = masks
    starts, counts, steps, dropped, result = [], [], [], [], []

    def keep(start: int, count: int, step: int) -> None:
        starts.append(start)
        counts.append(count)
        steps.append(step)
        result.append(count)

    named = [i for i in range(len(begin)) if not _has(new_axis_mask, i) and not _has(ellipsis_mask, i)]
    for i in range(len(begin)):
        if _has(ellipsis_mask, i):
            rest = len(shape) - len(named)
            for extent in shape[len(starts) : len(starts) + rest]:
                keep(0, extent, 1)
        elif _has(new_axis_mask, i):
            result.append(1)
        elif _has(shrink_axis_mask, i):
            extent = shape[len(starts)]
            dropped.append(len(starts))
            starts.append(begin[i] % extent)
            counts.append(1)
            steps.append(1)
        else:
            extent = shape[len(starts)]
            first = None if _has(begin_mask, i) else begin[i]
            last = None if _has(end_mask, i) else end[i]
            places = range(*slice(first, last, strides[i]).indices(extent))
            keep(places.start if len(places) else 0, len(places), strides[i])
    for extent in shape[len(starts) :]:
        keep(0, extent, 1)
    return Cut(starts, counts, steps, dropped, result)


def _has(mask: int, i: int) -> bool:
    return bool(mask >> i & 1)


def _read_cut(ctx: Context, shape: Sequence[int], bounds: Sequence[Tensor], masks: Sequence[int]) -> Cut:
    names = ("begin", "end", "strides")
    begin, end, strides = (ctx.known(x, name).tolist() for x, name in zip(bounds, names, strict=True))
    return cut_of(shape, begin, end, strides, masks)


@rule("StridedSlice")
def strided_slice(
    ctx: Context,
    input: Value,
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Value:
    """StridedSlice(input, begin, end, strides; begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0,
    shrink_axis_mask=0) -> output"""
    if isinstance(begin, Value):
        if shrink_axis_mask == 1 and begin.type.shape == (1,):  # x[i], for a computed i
            return ctx.take(input, _counted(ctx, ctx.reshape(begin, ()), input.type.shape[0]))
        ctx.unsupported("begin", "a value computed at run time", "one index, or bounds that are known")
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    cut = _read_cut(ctx, input.type.shape, (begin, end, strides), masks)
    return ctx.reshape(_taken(ctx, input, cut), cut.shape)


def _taken(ctx: Context, x: Value, cut: Cut) -> Value:
    if not all(cut.counts):
        return ctx.full(cut.counts, 0, x.type.element_type)
    # A backward slice is a forward one, then reversed.
    spans = [(count - 1) * step for count, step in zip(cut.counts, cut.steps, strict=True)]
    lows = [min(start, start + span) for start, span in zip(cut.starts, spans, strict=True)]
    highs = [max(start, start + span) + 1 for start, span in zip(cut.starts, spans, strict=True)]
    backwards = tuple(i for i, step in enumerate(cut.steps) if step < 0)
    steps = [abs(step) for step in cut.steps]
    if lows != [0] * len(lows) or highs != list(x.type.shape) or any(step != 1 for step in steps):
        x = ctx.add(ops.Slice(x, start_indices=lows, limit_indices=highs, strides=steps))
    return ctx.add(ops.Reverse(x, dimensions=backwards)) if backwards else x


def _counted(ctx: Context, index: Value, extent: int) -> Value:
    """Returns an index counted from the front."""
    is_negative = ctx.compare("LT", index, ctx.constant_like(index, 0))
    return ctx.select(is_negative, ctx.plus(index, ctx.constant_like(index, extent)), index)


@rule("StridedSliceGrad")
def strided_slice_grad(
    ctx: Context,
    shape: Known,
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
    dy: Value,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Value:
    """StridedSliceGrad(shape, begin, end, strides, dy; begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0,
    shrink_axis_mask=0) -> output"""
    extents = shape.tolist()
    if isinstance(begin, Value) and shrink_axis_mask == 1 and begin.type.shape == (1,):
        index = _counted(ctx, ctx.reshape(begin, ()), extents[0])
        starts = [index, *(ctx.constant_like(index, 0) for _ in extents[1:])]
        whole = ctx.full(extents, 0, dy.type.element_type)
        return ctx.add(ops.DynamicUpdateSlice(whole, ctx.unsqueeze(dy, [0]), starts))
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return _put(ctx, extents, _read_cut(ctx, extents, (begin, end, strides), masks), dy)


def _put(ctx: Context, extents: Sequence[int], cut: Cut, x: Value) -> Value:
    """Returns `x` among zeros, at the positions from which a cut of an array of the given extents would take it."""
    if not all(cut.counts):
        return ctx.full(extents, 0, x.type.element_type)
    x = ctx.reshape(x, cut.counts)
    if backwards := tuple(i for i, step in enumerate(cut.steps) if step < 0):
        x = ctx.add(ops.Reverse(x, dimensions=backwards))
    low, high, interior = [], [], []
    for extent, start, count, step in zip(extents, cut.starts, cut.counts, cut.steps, strict=True):
        span = (count - 1) * step
        low.append(min(start, start + span))
        high.append(extent - 1 - max(start, start + span))
        interior.append(abs(step) - 1 if count > 1 else 0)
    return ctx.pad(x, low, high, 0, interior)


@rule("Slice")
def slice_(ctx: Context, input: Value, begin: Tensor, size: Known) -> Value:
    """Slice(input, begin, size) -> output"""
    shape, sizes = input.type.shape, size.tolist()
    if isinstance(begin, np.ndarray):
        starts = begin.tolist()
        limits = [extent if n < 0 else at + n for at, n, extent in zip(starts, sizes, shape, strict=True)]
        return ctx.add(ops.Slice(input, start_indices=starts, limit_indices=limits, strides=[1] * len(shape)))
    if -1 in sizes:
        ctx.unsupported("size", sizes, "known sizes, with a begin that is computed at run time")
    starts = [ctx.reshape(ctx.slice(begin, 0, i, i + 1), ()) for i in range(len(shape))]
    return ctx.add(ops.DynamicSlice(input, starts, slice_sizes=sizes))


@rule("TensorStridedSliceUpdate")
def strided_slice_update(
    ctx: Context,
    input: Value,
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
    value: Value,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Value:
    """TensorStridedSliceUpdate(input, begin, end, strides, value; begin_mask=0, end_mask=0, ellipsis_mask=0,
    new_axis_mask=0, shrink_axis_mask=0) -> output"""
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return _replaced(ctx, input, _read_cut(ctx, input.type.shape, (begin, end, strides), masks), value)


@rule("ResourceStridedSliceAssign")
def strided_slice_assign(
    ctx: Context,
    ref: Operand,
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
    value: Value,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> None:
    """ResourceStridedSliceAssign(ref, begin, end, strides, value; begin_mask=0, end_mask=0, ellipsis_mask=0,
    new_axis_mask=0, shrink_axis_mask=0)"""
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    cut = _read_cut(ctx, read_value(ctx, ref).type.shape, (begin, end, strides), masks)
    update(ctx, ref, lambda old: _replaced(ctx, old, cut, value))


def _replaced(ctx: Context, x: Value, cut: Cut, new: Value) -> Value:
    """Returns `x` with other elements at the positions of a cut."""
    hit = _put(ctx, x.type.shape, cut, ctx.full(cut.counts, True, I1))
    return ctx.select(hit, _put(ctx, x.type.shape, cut, ctx.broadcast(new, cut.shape)), x)


@rule("XlaDynamicSlice")
def xla_dynamic_slice(ctx: Context, input: Value, start_indices: Value, size_indices: Known) -> Value:
    """XlaDynamicSlice(input, start_indices, size_indices) -> output"""
    return ctx.add(ops.DynamicSlice(input, _scalars(ctx, start_indices), slice_sizes=size_indices.tolist()))


@rule("XlaDynamicUpdateSlice")
def xla_dynamic_update_slice(ctx: Context, input: Value, update: Value, indices: Value) -> Value:
    """XlaDynamicUpdateSlice(input, update, indices) -> output"""
    return ctx.add(ops.DynamicUpdateSlice(input, update, _scalars(ctx, indices)))


def _scalars(ctx: Context, x: Value) -> list[Value]:
    return [ctx.reshape(ctx.slice(x, 0, i, i + 1), ()) for i in range(x.type.shape[0])]


@rule("ReverseSequence")
def reverse_sequence(ctx: Context, input: Value, seq_lengths: Value, *, seq_dim: int, batch_dim: int) -> Value:
    """ReverseSequence(input, seq_lengths; seq_dim, batch_dim=0) -> output"""
    shape, kind = input.type.shape, seq_lengths.type.element_type
    seq, batch = seq_dim % len(shape), batch_dim % len(shape)
    rows = (shape[batch], shape[seq])
    place = ctx.iota(rows, 1, kind)
    lengths = ctx.broadcast_in_dim(seq_lengths, rows, [0])
    mirrored = ctx.minus(ctx.minus(lengths, ctx.constant_like(lengths, 1)), place)
    places = ctx.select(ctx.compare("LT", place, lengths), mirrored, place)
    front = [batch, seq, *(d for d in range(len(shape)) if d not in (batch, seq))]
    moved = _gathered(ctx, ctx.transpose(input, front), places, 1, 1)
    return ctx.transpose(moved, np.argsort(front).tolist())


# Gathers


@rule("GatherV2")
def gather(ctx: Context, params: Value, indices: Value, axis: Known, *, batch_dims: int) -> Value:
    """GatherV2(params, indices, axis; batch_dims=0) -> output"""
    return _gathered(ctx, params, indices, int(axis) % params.type.rank, batch_dims % (indices.type.rank + 1))


@rule("Gather")
def gather_rows(ctx: Context, params: Value, indices: Value) -> Value:
    """Gather(params, indices; validate_indices=true) -> output"""
    return ctx.take(params, indices)


@rule("ResourceGather")
def resource_gather(ctx: Context, resource: Operand, indices: Value, *, batch_dims: int) -> Value:
    """ResourceGather(resource, indices; batch_dims=0) -> output"""
    return _gathered(ctx, read_value(ctx, resource), indices, batch_dims, batch_dims)


def _gathered(ctx: Context, x: Value, indices: Value, dimension: int, batch: int) -> Value:
    """Returns slices along a dimension; the first `batch` dimensions of both operands are paired."""
    if not batch:
        return ctx.take(x, indices, dimension)
    inner = indices.type.rank - batch  # dimensions of indices that replace `dimension`
    shape = x.type.shape
    offset = [*range(batch, dimension), *range(dimension + inner, x.type.rank - 1 + inner)]
    numbers = ops.GatherDimensionNumbers(
        offset_dims=tuple(offset),
        collapsed_slice_dims=(dimension,),
        operand_batching_dims=tuple(range(batch)),
        start_indices_batching_dims=tuple(range(batch)),
        start_index_map=(dimension,),
        index_vector_dim=indices.type.rank,
    )
    sizes = [1 if i < batch or i == dimension else extent for i, extent in enumerate(shape)]
    rows = ctx.add(ops.Gather(x, indices, dimension_numbers=numbers, slice_sizes=sizes))
    # Gather puts all dimensions of `indices` in order; those before `dimension` are between batch and the others.
    return rows


@rule("GatherNd")
def gather_nd(ctx: Context, params: Value, indices: Value) -> Value:
    """GatherNd(params, indices) -> output"""
    return _gathered_nd(ctx, params, indices)


@rule("ResourceGatherNd")
def resource_gather_nd(ctx: Context, resource: Operand, indices: Value) -> Value:
    """ResourceGatherNd(resource, indices) -> output"""
    return _gathered_nd(ctx, read_value(ctx, resource), indices)


def _gathered_nd(ctx: Context, x: Value, indices: Value) -> Value:
    *places, depth = indices.type.shape
    rest = x.type.shape[depth:]
    numbers = ops.GatherDimensionNumbers(
        offset_dims=tuple(range(len(places), len(places) + len(rest))),
        collapsed_slice_dims=tuple(range(depth)),
        start_index_map=tuple(range(depth)),
        index_vector_dim=len(places),
    )
    return ctx.add(ops.Gather(x, indices, dimension_numbers=numbers, slice_sizes=(*(1,) * depth, *rest)))


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
            given = ctx.broadcast(updates, (*indices.type.shape, *table.type.shape[1:]))
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
    ctx: Context, sparse_indices: Value, output_shape: Known, sparse_values: Value, default_value: Value
) -> Value:
    """SparseToDense(sparse_indices, output_shape, sparse_values, default_value; validate_indices=true) -> dense"""
    shape = output_shape.tolist()
    depth = sparse_indices.type.static_shape[-1] if sparse_indices.type.rank == 2 else 1
    places = ctx.reshape(sparse_indices, (sparse_indices.type.size // max(depth, 1), depth))
    values = ctx.broadcast(sparse_values, places.type.static_shape[:1])
    return scattered(ctx, None, ctx.broadcast(default_value, shape), places, values)


@rule("ScatterNd")
def scatter_nd(ctx: Context, indices: Value, updates: Value, shape: Known) -> Value:
    """ScatterNd(indices, updates, shape) -> output"""
    return scattered(ctx, ops.Add, ctx.full(shape.tolist(), 0, updates.type.element_type), indices, updates)


def scattered(ctx: Context, op: type | None, x: Value, indices: Value, updates: Value) -> Value:
    """Returns `x` with `updates` combined (or stored, without an op) at the positions given by the vectors in the last
    dimension of `indices`."""
    *places, depth = indices.type.shape
    count = len(places)
    numbers = ops.ScatterDimensionNumbers(
        update_window_dims=tuple(range(count, updates.type.rank)),
        inserted_window_dims=tuple(range(depth)),
        scatter_dims_to_operand_dims=tuple(range(depth)),
        index_vector_dim=count,
    )
    kind = x.type.element_type
    scalar = [x.type.with_shape(())] * 2
    body = ctx.combiner(op, kind) if op is not None else ctx.region(scalar, lambda emit, old, new: new)
    return ctx.add(ops.Scatter([x], indices, [updates], scatter_dimension_numbers=numbers, update_computation=body))[0]
