"""Ragged tensors by their components. How many elements rows have must be known during import; elements need not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from trivium.importers.tensorflow.context import Context, Known, Operand, rule
from trivium.ir.core import Value


@rule("RaggedTensorToTensor")
def ragged_to_dense(
    ctx: Context,
    shape: Known,
    values: Value,
    default_value: Value,
    row_partition_tensors: list[Operand],
    *,
    row_partition_types: tuple[bytes, ...],
) -> Value:
    """RaggedTensorToTensor(shape, values, default_value, row_partition_tensors...; row_partition_types) -> result"""
    levels = list(_row_splits(ctx, row_partition_tensors, row_partition_types))
    element = values.type.static_shape[1:]
    given = [-1] * (1 + len(levels)) if not shape.ndim else [int(x) for x in shape[: 1 + len(levels)]]
    rows = len(levels[0]) - 1
    count = given[0] if given[0] >= 0 else rows
    places = np.where(np.arange(count) < rows, np.arange(count), -1)
    for splits, extent in zip(levels, given[1:], strict=True):
        lengths = np.append(np.diff(splits), 0)  # the last one is that of a row that is missing
        columns = np.arange(extent if extent >= 0 else int(lengths.max()))
        is_here = columns < lengths[places][..., None]
        places = np.where(is_here, splits[places][..., None] + columns, -1)
    whole = (*places.shape, *element)
    missing = ctx.broadcast(default_value, whole)
    if not values.type.shape[0] or not places.size:
        return missing
    taken = ctx.take(values, ctx.elements(np.maximum(places, 0).astype(np.int32)))
    is_here = ctx.broadcast_in_dim(ctx.elements(places >= 0), whole, range(places.ndim))
    return ctx.select(is_here, taken, missing)


def _row_splits(ctx: Context, partitions: Sequence[Operand], types: Sequence[bytes]) -> Iterator[np.ndarray]:
    """Yields where the rows of each ragged dimension begin, and where the last one ends; the outermost first."""
    kinds = [x.decode() if isinstance(x, bytes) else x for x in types]
    tensors = [ctx.known(x, "row_partition_tensors").astype(np.int64) for x in partitions]
    rows = None
    for kind, tensor in zip(kinds, tensors, strict=True):
        if kind == "FIRST_DIM_SIZE":
            rows = int(tensor)
            continue
        if kind == "ROW_SPLITS":
            splits = tensor
        elif kind == "VALUE_ROWIDS" and rows is not None:
            splits = np.searchsorted(tensor, np.arange(rows + 1))
        else:
            ctx.unsupported("row_partition_types", kinds, "ROW_SPLITS, or VALUE_ROWIDS after FIRST_DIM_SIZE")
        rows = int(splits[-1]) if len(splits) else 0
        yield splits


@rule("RaggedTensorToSparse")
def ragged_to_sparse(
    ctx: Context, rt_nested_splits: list[Operand], rt_dense_values: Value
) -> tuple[np.ndarray, Value, np.ndarray]:
    """RaggedTensorToSparse(rt_nested_splits..., rt_dense_values) -> sparse_indices, sparse_values,
    sparse_dense_shape"""
    levels = [ctx.known(x, "rt_nested_splits").astype(np.int64) for x in rt_nested_splits]
    indices = np.arange(len(levels[0]) - 1)[:, None]
    extents = [len(indices)]
    for splits in levels:
        lengths = np.diff(splits)
        within = np.arange(splits[-1]) - np.repeat(splits[:-1], lengths)
        indices = np.concatenate([np.repeat(indices, lengths, 0), within[:, None]], 1)
        extents.append(int(lengths.max(initial=0)))
    for extent in rt_dense_values.type.static_shape[1:]:
        within = np.tile(np.arange(extent), len(indices))
        indices = np.concatenate([np.repeat(indices, extent, 0), within[:, None]], 1)
        extents.append(extent)
    return indices, ctx.reshape(rt_dense_values, [rt_dense_values.type.size]), np.array(extents)


@rule("RaggedRange")
def ragged_range(
    ctx: Context, starts: Known, limits: Known, deltas: Known, *, Tsplits: tf.DType
) -> tuple[np.ndarray, np.ndarray]:
    """RaggedRange(starts, limits, deltas; Tsplits) -> rt_nested_splits, rt_dense_values"""
    if not np.all(deltas):
        ctx.unsupported("deltas", deltas.tolist(), "numbers that are not zero")
    kind = starts.dtype
    rows = np.broadcast(*map(np.atleast_1d, (starts, limits, deltas)))
    found = []
    for start, limit, delta in rows:
        first, last, step = start.item(), limit.item(), delta.item()
        # Floats might not hold the quotient of integers.
        count = max(0, -((first - last) // step) if isinstance(step, int) else math.ceil((last - first) / step))
        steps = np.full(count + 1, step, kind)
        steps[0] = first
        found.append(np.add.accumulate(steps, dtype=kind)[:count])  # as its kernel adds
    return _splits([len(x) for x in found], Tsplits), np.concatenate([np.zeros(0, kind), *found])


@rule("RaggedGather")
def ragged_gather(
    ctx: Context,
    params_nested_splits: list[Operand],
    params_dense_values: Value,
    indices: Known,
    *,
    Tsplits: tf.DType,
) -> list[Operand]:
    """RaggedGather(params_nested_splits..., params_dense_values, indices) -> output_nested_splits...,
    output_dense_values"""
    if indices.ndim != 1:
        ctx.unsupported("indices", f"{indices.ndim} dimensions", "one")
    rows, found = indices.astype(np.int64), []
    for splits in (ctx.known(x, "params_nested_splits") for x in params_nested_splits):
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(splits) - 1:
            ctx.unsupported("indices", indices.tolist(), f"numbers from 0 to {len(splits) - 2}")
        found.append(_splits(np.diff(splits)[rows], Tsplits))
        parts = [np.arange(int(splits[row]), int(splits[row + 1])) for row in rows]
        rows = np.concatenate([np.zeros(0, np.int64), *parts])
    return [*found, ctx.take(params_dense_values, ctx.elements(rows))]


def _splits(lengths: Sequence[int] | np.ndarray, kind: tf.DType) -> np.ndarray:
    return np.cumsum([0, *lengths]).astype(kind.as_numpy_dtype)
