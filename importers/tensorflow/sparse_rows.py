"""Sparse tensors in other shapes, and with an element in each row."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trivium.importers.tensorflow.context import Context, Operand, Tensor, rule
from trivium.importers.tensorflow.counted import existing_rows
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64


@rule("SparseReshape")
def sparse_reshape(ctx: Context, input_indices: Value, input_shape: Tensor, new_shape: Tensor) -> tuple[Value, Operand]:
    """SparseReshape(input_indices, input_shape, new_shape) -> output_indices, output_shape"""
    have, wanted = ctx.known_if_possible(input_shape), ctx.known_if_possible(new_shape)
    if have is not None and wanted is not None:
        shape: Tensor = np.array(_inferred(ctx, have, wanted), np.int64)
    else:
        shape = _inferred_later(ctx, ctx.value(input_shape), ctx.value(new_shape))
    place = ctx.full(ctx.extents(input_indices)[:1], 0, I64)
    for d, extent in enumerate(_extents(ctx, input_shape)):
        column = ctx.squeeze(ctx.slice(input_indices, 1, d, d + 1), [1])
        place = ctx.plus(ctx.times(place, extent), column)
    columns = []
    for extent in reversed(_extents(ctx, shape)):
        by = ctx.binary(ops.Maximum, extent, ctx.scalar(1, I64))
        columns.append(ctx.unsqueeze(ctx.binary(ops.Remainder, place, by), [1]))
        place = ctx.over(place, by)
    if not columns:
        return ctx.full([*ctx.extents(input_indices)[:1], 0], 0, I64), shape
    return ctx.concatenate(columns[::-1], 1), shape


def _extents(ctx: Context, shape: Tensor) -> list[Value]:
    x = ctx.value(shape)
    return [ctx.reshape(ctx.slice(x, 0, i, i + 1), ()) for i in range(x.type.static_shape[0])]


def _inferred(ctx: Context, have: np.ndarray, wanted: np.ndarray) -> list[int]:
    """Returns a shape in which -1 stands for what is left."""
    size, shape = math.prod(have.tolist()), wanted.tolist()
    rest = math.prod(extent for extent in shape if extent != -1)
    if shape.count(-1) == 1 and rest and size % rest == 0:
        shape[shape.index(-1)] = size // rest
    if -1 in shape or math.prod(shape) != size:
        ctx.unsupported("new_shape", wanted.tolist(), f"the shape of {size} elements")
    return shape


def _inferred_later(ctx: Context, have: Value, wanted: Value) -> Value:
    one = ctx.scalar(1, I64)
    is_open = ctx.compare("EQ", wanted, ctx.scalar(-1, I64))
    rest = ctx.reduce(ops.Multiply, ctx.select(is_open, one, wanted), [0])
    left = ctx.over(ctx.reduce(ops.Multiply, have, [0]), ctx.binary(ops.Maximum, rest, one))
    return ctx.select(is_open, left, wanted)


@rule("SparseFillEmptyRows")
def fill_empty_rows(
    ctx: Context, indices: Value, values: Value, dense_shape: Tensor, default_value: Value
) -> Sequence[Operand]:
    """SparseFillEmptyRows(indices, values, dense_shape, default_value) -> output_indices, output_values,
    empty_row_indicator, reverse_index_map"""
    rows, *_ = ctx.given_sizes(dense_shape, "dense_shape")
    count, rank = ctx.extents(indices)
    row = ctx.squeeze(ctx.slice(indices, 1, 0, 1), [1])
    number, last = ctx.iota([rows], 0), ctx.number_as(rows, I64)
    is_there = ctx.compare("EQ", ctx.unsqueeze(number, [1]), ctx.unsqueeze(row, [0]))
    is_empty = ctx.add(ops.Not(ctx.reduce(ops.Or, is_there, [1])))
    # Elements for the empty rows, which are sorted in; those for other rows come last.
    keys = ctx.concatenate([row, ctx.select(is_empty, number, last)], 0)
    _, places = ctx.sort([keys, ctx.iota_like(keys, 0)], 0)
    filled = ctx.pad(ctx.unsqueeze(number, [1]), [0, 0], [0, rank - 1])
    whole = ctx.concatenate([indices, filled], 0)
    elements = ctx.concatenate([values, ctx.broadcast(default_value, [rows])], 0)
    found = [ctx.take(x, places) for x in (whole, elements)]
    _, back = ctx.sort([places, ctx.iota_like(places, 0)], 0)
    total = ctx.plus(ctx.reduce(ops.Add, ctx.convert(is_empty, I64), [0]), ctx.number_as(count, I64))
    return [*(existing_rows(ctx, x, total) for x in found), is_empty, ctx.slice(back, 0, 0, count)]


@rule("SparseFillEmptyRowsGrad")
def fill_empty_rows_grad(ctx: Context, reverse_index_map: Value, grad_values: Value) -> list[Value]:
    """SparseFillEmptyRowsGrad(reverse_index_map, grad_values) -> d_values, d_default_value"""
    place = ctx.unsqueeze(ctx.iota_like(grad_values, 0), [1])
    is_given = ctx.reduce(ops.Or, ctx.compare("EQ", place, ctx.unsqueeze(reverse_index_map, [0])), [1])
    filled = ctx.select(is_given, ctx.full_like(grad_values, 0), grad_values)
    return [ctx.take(grad_values, reverse_index_map), ctx.reduce(ops.Add, filled, [0])]
