"""Rows that are combined by segments: those whose numbers are given for each row, in any order or sorted; and rows of
a table, which are looked up and combined at once, as embeddings are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import ml_dtypes
import numpy as np

from trivium.importers.emit import accumulation_type, neutral
from trivium.importers.extents import Extent, Size
from trivium.importers.tensorflow.context import Context, Operand, Tensor, rule, shape_of
from trivium.importers.tensorflow.counted import Counted, existing_rows
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64

# In any order


SEGMENTS = {
    "UnsortedSegmentMax": ops.Maximum,
    "UnsortedSegmentMin": ops.Minimum,
    "UnsortedSegmentProd": ops.Multiply,
    "UnsortedSegmentSum": ops.Add,
}


def _register_segments() -> None:
    for name, op in SEGMENTS.items():
        rule.add(name, _segment(op))


def _segment(op: type):
    def unsorted_segment(ctx: Context, data: Value, segment_ids: Value, num_segments: Tensor) -> Value:
        """UnsortedSegmentSum(data, segment_ids, num_segments) -> output"""
        (count,) = ctx.given_sizes(num_segments, "num_segments")
        return segments(ctx, op, data, segment_ids, count)

    return unsorted_segment


def segments(ctx: Context, op: type, data: Value, ids: Value, count: Extent) -> Value:
    """Combines the rows of `data` that have the same id. Rows with an id out of range are left out."""
    kind, inner = data.type.element_type, ctx.extents(data)[ids.type.rank :]
    start = neutral(op, kind)
    if not np.isfinite(start):  # TensorFlow starts at the lowest finite number
        info = ml_dtypes.finfo(kind.dtype)
        start = info.min if op is ops.Maximum else info.max
    number = math.prod(ctx.extents(ids))
    places = ctx.reshape(ids, (number, 1))
    rows = ctx.reshape(data, (number, *inner))
    numbers = ops.ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, 1 + len(inner))),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
    )
    whole = ctx.full((count, *inner), start, kind)
    return ctx.add(
        ops.Scatter(
            [whole], places, [rows], scatter_dimension_numbers=numbers, update_computation=ctx.combiner(op, kind)
        )
    )[0]


_register_segments()


# Sorted segments: the last number says how many there are


class Sorted:
    """Numbers of segments. `count` is how many there are, or for how many there is room."""

    def __init__(self, ctx: Context, ids: Tensor):
        self.ctx, self.number = ctx, None
        known = ctx.known_if_possible(ids)
        self.ids = ctx.value(ids)
        if known is not None:
            self.count: Extent = int(known.max(initial=-1)) + 1
            return
        last = ctx.plus(ctx.convert(ctx.reduce(ops.Maximum, self.ids, [0], init=-1), I64), ctx.scalar(1, I64))
        if ctx.room is None:
            self.count = Size(ctx, last, is_extent=True)
        else:
            self.count, self.number = max(ctx.room, *shape_of(self.ids)), last

    def cut(self, rows: Value) -> Operand:
        """Returns the rows that exist."""
        if self.number is None:
            return rows
        return Counted(self.ctx.op, rows, self.number, expected="segment ids from 0 on")


SORTED_SEGMENTS = {
    "SegmentMax": ops.Maximum,
    "SegmentMin": ops.Minimum,
    "SegmentProd": ops.Multiply,
    "SegmentSum": ops.Add,
}


def _sorted_segment_of(op: type):
    def segment(ctx: Context, data: Value, segment_ids: Value, num_segments: Tensor) -> Value:
        """SegmentSumV2(data, segment_ids, num_segments) -> output"""
        (count,) = ctx.given_sizes(num_segments, "num_segments")
        return segments(ctx, op, data, segment_ids, count)

    return segment


def _register_sorted() -> None:
    for name, op in SORTED_SEGMENTS.items():
        rule.add(f"{name}V2", _sorted_segment_of(op))
        rule.add(name, _sorted_segment(op))


def _sorted_segment(op: type):
    def segment(ctx: Context, data: Value, segment_ids: Tensor) -> Operand:
        """SegmentSum(data, segment_ids) -> output"""
        found = Sorted(ctx, segment_ids)
        result = segments(ctx, op, data, found.ids, found.count)
        if op not in (ops.Add, ops.Multiply):
            # The maximum of nothing is 0 here, unlike in the unsorted ones.
            exists = ctx.compare("GT", _sizes(ctx, found.ids, found.count, data.type.rank), ctx.scalar(0, I64))
            result = ctx.select(exists, result, ctx.constant_like(result, 0))
        return found.cut(result)

    return segment


_register_sorted()


def _sizes(ctx: Context, ids: Value, count: Extent, rank: int) -> Value:
    """Returns how many rows each segment has, as a column for rows of that rank."""
    ones = ctx.full_like(ctx.convert(ids, I64), 1)
    return ctx.reshape(segments(ctx, ops.Add, ones, ids, count), [count, *[1] * (rank - 1)])


@rule("SegmentMean")
def segment_mean(ctx: Context, data: Value, segment_ids: Tensor) -> Operand:
    """SegmentMean(data, segment_ids) -> output"""
    found = Sorted(ctx, segment_ids)
    total = segments(ctx, ops.Add, data, found.ids, found.count)
    counts = ctx.binary(ops.Maximum, _sizes(ctx, found.ids, found.count, data.type.rank), ctx.scalar(1, I64))
    return found.cut(ctx.over(total, ctx.convert(counts, data.type.element_type)))


# Rows of a table


def _register_sparse() -> None:
    for word in ("Sum", "Mean", "SqrtN"):
        rule.add(f"SparseSegment{word}", _sparse_segment(word))
        rule.add(f"SparseSegment{word}WithNumSegments", _sparse_segment_of(word))
        rule.add(f"SparseSegment{word}Grad", _sparse_gradient(word))
        rule.add(f"SparseSegment{word}GradV2", _sparse_gradient_rows(word))


def _sparse_segment(word: str):
    def segment(ctx: Context, data: Value, indices: Value, segment_ids: Tensor, *, sparse_gradient: bool) -> Operand:
        """SparseSegmentSum(data, indices, segment_ids; sparse_gradient=false) -> output"""
        found = Sorted(ctx, segment_ids)
        return found.cut(_looked_up(ctx, word, data, indices, found.ids, found.count))

    return segment


def _sparse_segment_of(word: str):
    def segment(
        ctx: Context,
        data: Value,
        indices: Value,
        segment_ids: Value,
        num_segments: Tensor,
        *,
        sparse_gradient: bool,
    ) -> Value:
        """SparseSegmentSumWithNumSegments(data, indices, segment_ids, num_segments; sparse_gradient=false) -> output"""
        (count,) = ctx.given_sizes(num_segments, "num_segments")
        return _looked_up(ctx, word, data, indices, segment_ids, count)

    return segment


def _looked_up(ctx: Context, word: str, data: Value, indices: Value, ids: Value, count: Extent) -> Value:
    kind = data.type.element_type
    rows = ctx.convert(ctx.take(data, indices), accumulation_type(kind))
    total = segments(ctx, ops.Add, rows, ids, count)
    if word != "Sum":
        total = ctx.over(total, _divisors(ctx, word, ids, count, total))
    return ctx.convert(total, kind)


def _divisors(ctx: Context, word: str, ids: Value, count: Extent, like: Value) -> Value:
    """Returns by what the sum of each segment is divided: how many rows it has, or the square root of that."""
    sizes = ctx.binary(ops.Maximum, _sizes(ctx, ids, count, like.type.rank), ctx.scalar(1, I64))
    sizes = ctx.convert(sizes, like.type.element_type)
    return ctx.add(ops.Sqrt(sizes)) if word == "SqrtN" else sizes


def _shares(ctx: Context, word: str, gradient: Value, ids: Value) -> Value:
    """Returns the gradient of each row that was looked up."""
    gradient = ctx.convert(gradient, accumulation_type(gradient.type.element_type))
    if word != "Sum":
        gradient = ctx.over(gradient, _divisors(ctx, word, ids, ctx.extent(gradient, 0), gradient))
    return ctx.take(gradient, ids)


def _sparse_gradient(word: str):
    def gradient(ctx: Context, grad: Value, indices: Value, segment_ids: Value, output_dim0: Tensor) -> Value:
        """SparseSegmentSumGrad(grad, indices, segment_ids, output_dim0) -> output"""
        (count,) = ctx.given_sizes(output_dim0, "output_dim0")
        shares = _shares(ctx, word, grad, segment_ids)
        return ctx.convert(segments(ctx, ops.Add, shares, indices, count), grad.type.element_type)

    return gradient


def _sparse_gradient_rows(word: str):
    def gradient(
        ctx: Context, grad: Value, indices: Value, segment_ids: Value, dense_output_dim0: Tensor
    ) -> Sequence[Operand]:
        """SparseSegmentSumGradV2(grad, indices, segment_ids, dense_output_dim0) -> output, sorted_unique_indices"""
        shares, count = _shares(ctx, word, grad, segment_ids), ctx.extent(indices, 0)
        ordered, places = ctx.sort([indices, ctx.iota_like(indices, 0)], 0)
        before = ctx.take(ordered, ctx.minus(ctx.iota_like(ordered, 0), ctx.scalar(1, I64)))
        is_first = ctx.compare("EQ", ctx.iota_like(ordered, 0), ctx.scalar(0, I64))
        is_first = ctx.binary(ops.Or, is_first, ctx.compare("NE", ordered, before))
        ranks = ctx.minus(ctx.cumulative(ops.Add, ctx.convert(is_first, I64), 0), ctx.scalar(1, I64))
        sums = segments(ctx, ops.Add, ctx.take(shares, places), ranks, count)
        sums = ctx.convert(sums, grad.type.element_type)
        _, firsts = ctx.sort([ctx.add(ops.Not(is_first)), ordered], 0)
        number = ctx.reduce(ops.Add, ctx.convert(is_first, I64), [0])
        return [existing_rows(ctx, x, number) for x in (sums, firsts)]

    return gradient


_register_sparse()
