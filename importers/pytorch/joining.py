"""Joins, pads, and writes to parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import in_single
from trivium.importers.extents import Extent, Size, clamped, from_front, is_number, scalar_of
from trivium.importers.padding import Mode, places_of_padding
from trivium.importers.pytorch.checking import check_indices
from trivium.importers.pytorch.context import Context, Number, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64


@rule("aten.cat.default")
def cat(ctx: Context, tensors: Sequence[Value], dim: int = 0) -> Value:
    """cat(Tensor[] tensors, int dim=0) -> Tensor"""
    kind = ctx.result.element_type
    # For historical reasons, an empty vector can be joined with anything.
    parts = [ctx.convert(x, kind) for x in tensors if x.type.rank == ctx.result.rank]
    return ctx.concatenate(parts, dim % ctx.result.rank)


@rule("aten.stack.default")
def stack(ctx: Context, tensors: Sequence[Value], dim: int = 0) -> Value:
    """stack(Tensor[] tensors, int dim=0) -> Tensor"""
    d = dim % ctx.result.rank
    return ctx.concatenate([ctx.unsqueeze(ctx.convert(x, ctx.result.element_type), [d]) for x in tensors], d)


@rule("aten.constant_pad_nd.default")
def constant_pad_nd(ctx: Context, x: Value, pad: Sequence[int], value: Number = 0) -> Value:
    """constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor"""
    rest = (0,) * (x.type.rank - len(pad) // 2)
    return ctx.pad(x, (*rest, *pad[-2::-2]), (*rest, *pad[::-2]), ctx.tensor(value, x.type.element_type))


PADDING_MODES: dict[str, Mode] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@rule("aten.pad.default")
def pad(ctx: Context, x: Value, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Value:
    """pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor"""
    if mode == "constant":
        return constant_pad_nd(ctx, x, pad, value or 0)
    return padded_by_index(ctx, x, pad, PADDING_MODES[mode])


def padded_by_index(ctx: Context, x: Value, pad: Sequence[int], mode: Mode) -> Value:
    """Pads the last dimensions with elements of `x` itself, selected as by NumPy's mode of that name."""
    for i in range(len(pad) // 2):
        d = x.type.rank - 1 - i
        x = ctx.take(x, places_of_padding(ctx, ctx.extent(x, d), (pad[2 * i], pad[2 * i + 1]), mode), d)
    return x


@rule("aten.reflection_pad1d.default", "aten.reflection_pad2d.default", "aten.reflection_pad3d.default")
def reflection_pad(ctx: Context, x: Value, padding: Sequence[int]) -> Value:
    """reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor"""
    return padded_by_index(ctx, x, padding, "reflect")


@rule("aten.replication_pad1d.default", "aten.replication_pad2d.default", "aten.replication_pad3d.default")
def replication_pad(ctx: Context, x: Value, padding: Sequence[int]) -> Value:
    """replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor"""
    return padded_by_index(ctx, x, padding, "edge")


@rule(*(f"aten.replication_pad{n}d_backward.default" for n in (1, 2, 3)))
@in_single
def replication_pad_backward(ctx: Context, grad_output: Value, x: Value, padding: Sequence[int]) -> Value:
    """replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor"""
    for i in range(len(padding) // 2):
        d = x.type.rank - 1 - i
        grad_output = _edges_gathered(ctx, grad_output, d, padding[2 * i], padding[2 * i + 1], ctx.extent(x, d))
    return grad_output


def _edges_gathered(ctx: Context, gradient: Value, d: int, low: int, high: int, extent: Extent) -> Value:
    """Adds up the elements that are repetitions of the first and the last element of a dimension; cropped ones have no
    share."""

    def at(part: Value, first: Extent) -> Value:
        return _spread_out(ctx, part, d, first, 1, extent)

    if isinstance(extent, Size) and min(low, high) < 0:
        ctx.unsupported("padding", (low, high), "numbers that are not negative, for a dynamic size")
    if isinstance(extent, int) and max(-low, -high) >= extent:  # every element repeats the last, or the first one
        return at(ctx.reduce(ops.Add, gradient, [d], keep=True), extent - 1 if -low >= extent else 0)
    front, end = max(low, 0), ctx.extent(gradient, d) - max(high, 0)
    result = at(ctx.slice(gradient, d, front, end), max(-low, 0))
    if low > 0:
        result = ctx.plus(result, at(ctx.reduce(ops.Add, ctx.slice(gradient, d, 0, low), [d], keep=True), 0))
    if high > 0:
        tail = ctx.slice(gradient, d, end, end + high)
        result = ctx.plus(result, at(ctx.reduce(ops.Add, tail, [d], keep=True), extent - 1))
    return result


@rule("aten.slice_scatter.default")
def slice_scatter(
    ctx: Context,
    x: Value,
    src: Value,
    dim: int = 0,
    start: Extent | None = None,
    end: Extent | None = None,
    step: int = 1,
) -> Value:
    """slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) ->
    Tensor"""
    d = dim % x.type.rank
    src, extent = ctx.convert(src, x.type.element_type), ctx.extent(x, d)
    if isinstance(extent, int) and isinstance(start, int | None) and isinstance(end, int | None):
        first, last, _ = slice(start, end).indices(extent)
        return written(ctx, x, src, d, first, max(first, last), step)
    return _replaced(ctx, x, src, d, clamped(ctx, from_front(ctx, start or 0, extent), 0, extent), step)


def _replaced(ctx: Context, x: Value, src: Value, d: int, first: Extent, step: int) -> Value:
    """Returns `x` with `src` at `first`, `first + step`, ... of a dimension, where sizes or places stay open."""
    if step == 1:
        return ctx.replace(x, src, d, first)
    beyond = ctx.minus(ctx.iota([ctx.extent(x, d)], 0), scalar_of(ctx, first))
    by, last = ctx.scalar(step, I64), scalar_of(ctx, ctx.extent(src, d) - 1)
    turn = ctx.over(beyond, by)  # towards 0, so that only the test of `beyond` excludes what is before
    is_hit = ctx.binary(ops.And, ctx.compare("GE", beyond, ctx.scalar(0, I64)), ctx.compare("LE", turn, last))
    is_hit = ctx.binary(ops.And, is_hit, ctx.compare("EQ", ctx.times(turn, by), beyond))
    spread = ctx.take(src, turn, d)
    return ctx.select(ctx.broadcast_in_dim(is_hit, ctx.extents(x), [d]), spread, x)


@rule("aten.select_scatter.default")
def select_scatter(ctx: Context, x: Value, src: Value, dim: int, index: Extent) -> Value:
    """select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor"""
    d = dim % x.type.rank
    extent = ctx.extent(x, d)
    check_indices(ctx, scalar_of(ctx, index), extent, d, IndexError, wraps=True)
    first = from_front(ctx, index, extent)
    row = ctx.unsqueeze(ctx.convert(src, x.type.element_type), [d])
    if isinstance(extent, int) and isinstance(first, int):
        return written(ctx, x, row, d, first, first + 1)
    return ctx.replace(x, row, d, first)


@rule("aten.diagonal_scatter.default")
def diagonal_scatter(ctx: Context, x: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor"""
    shape, rank = ctx.extents(x), x.type.rank
    row, column = dim1 % rank, dim2 % rank
    # An element of the diagonal is numbered by its row, or, below the main one, by its column.
    along = row if offset >= 0 else column
    last = src.type.rank - 1
    length = [0] * last + [shape[along] - ctx.extent(src, last)]
    rest = [d for d in range(rank) if d not in (row, column)]
    values = ctx.pad(ctx.convert(src, x.type.element_type), [0] * (last + 1), length)
    spread = ctx.broadcast_in_dim(values, shape, [*rest, along])
    rows, columns = ctx.iota(shape, row), ctx.iota(shape, column)
    is_diagonal = ctx.compare("EQ", ctx.plus(rows, ctx.full_like(rows, offset)), columns)
    return ctx.select(is_diagonal, spread, x)


@rule("aten.slice_backward.default")
def slice_backward(
    ctx: Context, grad_output: Value, input_sizes: Sequence[Extent], dim: int, start: Extent, end: Extent, step: int
) -> Value:
    """slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) ->
    Tensor"""
    d = dim % len(input_sizes)
    extent = input_sizes[d]
    if isinstance(extent, int) and isinstance(start, int) and isinstance(end, int):
        first, _, _ = slice(start, end).indices(extent)
        return _spread_out(ctx, grad_output, d, first, step, extent)
    zeros = ctx.full(input_sizes, 0, grad_output.type.element_type)
    return _replaced(ctx, zeros, grad_output, d, clamped(ctx, from_front(ctx, start, extent), 0, extent), step)


@rule("aten.select_backward.default")
def select_backward(ctx: Context, grad_output: Value, input_sizes: Sequence[Extent], dim: int, index: Extent) -> Value:
    """select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor"""
    d = dim % len(input_sizes)
    extent, row = input_sizes[d], ctx.unsqueeze(grad_output, [d])
    first = from_front(ctx, index, extent)
    if isinstance(extent, int) and isinstance(first, int):
        return _spread_out(ctx, row, d, first, 1, extent)
    return ctx.replace(ctx.full(input_sizes, 0, row.type.element_type), row, d, first)


def _spread_out(ctx: Context, x: Value, d: int, first: Extent, step: int, extent: Extent, fill: Number = 0) -> Value:
    """Places the elements of `x` at `first`, `first + step`, ... of a dimension of `extent`, with `fill` between
    them."""
    count = ctx.extent(x, d)
    if is_number(count, 0):
        return ctx.full(ctx.shape, fill, x.type.element_type)
    low: list[Extent] = [0] * x.type.rank
    high, interior = list(low), [0] * x.type.rank
    low[d], interior[d] = first, step - 1
    high[d] = extent - first - (count - 1) * step - 1
    return ctx.pad(x, low, high, fill, interior)


def written(ctx: Context, x: Value, src: Value, d: int, first: int, last: int, step: int = 1) -> Value:
    """Returns `x` with `x[..., first:last:step, ...]` replaced by `src`."""
    extent = x.type.shape[d]
    if first == last:
        return x
    if step == 1:
        parts = [ctx.slice(x, d, 0, first), src, ctx.slice(x, d, last, extent)]
        return ctx.concatenate([part for part in parts if part.type.shape[d]], d)
    spread = _spread_out(ctx, src, d, first, step, extent)
    hit = np.zeros(extent, bool)
    hit[first:last:step] = True
    mask = ctx.broadcast_in_dim(ctx.elements(hit), x.type.shape, [d])
    return ctx.select(mask, spread, x)
